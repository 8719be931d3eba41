//! The URLs of external triggers: there as long as they open something, and no longer.

use crate::daemon::{Daemon, Home, of_kind};
use holon::words::hash::Hash;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

fn create(label: &str) -> Value {
    json!({"tool": "CreateExternalTrigger", "arguments": {"mode": "wake", "label": label}})
}

fn cancel(trigger: &str) -> Value {
    json!({"tool": "CancelExternalTrigger", "arguments": {"external_trigger_id": trigger}})
}

fn folder(home: &Home) -> PathBuf {
    home.path().join("triggers")
}

/// The URL files that are there.
fn files(home: &Home) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder(home)) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Hashes of the tokens that are written down, and of those that open something.
async fn tokens(home: &Home, daemon: &Daemon) -> (Vec<String>, Vec<String>) {
    let token = |name: String| {
        let text = fs::read_to_string(folder(home).join(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("/callbacks/wake/cb_") && lines[1].contains("/callbacks/enqueue/cb_"), "{text}");
        Hash::of(lines[0].rsplit('/').next().unwrap().as_bytes()).to_string()
    };
    let events = daemon.events("main").await;
    let revoked: Vec<&Value> =
        of_kind(&events, "external_trigger_revoked").into_iter().map(|payload| &payload["trigger"]).collect();
    let created = of_kind(&events, "external_trigger_created");
    let live = created.into_iter().filter(|payload| !revoked.contains(&&payload["trigger"]));
    let live = live.map(|payload| payload["token_hash"].as_str().expect("a hash").to_owned());
    (files(home).into_iter().map(token).collect(), live.collect())
}

#[tokio::test]
async fn a_url_is_there_until_its_trigger_is_revoked() {
    let rounds = json!([
        {"calls": [create("first"), create("second")]},
        {"wait_for": "revoke", "calls": [cancel("trigger-1")]},
    ]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "over"}}));
    let daemon = home.serve();
    let message = daemon.prompt("main", "begin").await;
    daemon.wait("main", 0, |event| event.data["payload"]["trigger"] == "trigger-2").await;
    assert_eq!(files(&home), ["main-trigger-1.url".to_owned(), "main-trigger-2.url".to_owned()].into());
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder(&home)), mode(folder(&home).join("main-trigger-1.url"))), (0o700, 0o600));
    let revoked = fs::read(folder(&home).join("main-trigger-1.url")).unwrap();
    let (written, live) = tokens(&home, &daemon).await;
    assert_eq!(written, live);
    fs::write(home.workspace().join("revoke"), "").unwrap();
    assert_eq!(daemon.answer("main", &message).await["text"], "over");
    assert_eq!(files(&home), ["main-trigger-2.url".to_owned()].into());

    // As crashes leave them: after a revocation, before the creation's event, within the writing.
    daemon.kill();
    fs::write(folder(&home).join("main-trigger-1.url"), revoked).unwrap();
    let unknown = "http://127.0.0.1:1/callbacks/wake/cb_0000\nhttp://127.0.0.1:1/callbacks/enqueue/cb_0000\n";
    fs::write(folder(&home).join("main-trigger-3.url"), unknown).unwrap();
    fs::write(folder(&home).join("main-trigger-4.url"), "").unwrap();
    let daemon = home.serve();
    let (written, live) = tokens(&home, &daemon).await;
    assert_eq!((written.len(), written), (1, live));
}

#[tokio::test]
async fn a_kill_at_any_step_leaves_a_url_for_each_trigger_and_no_other() {
    const LAST: &str = "turn_terminal";
    for kill_at in ["call_started", "external_trigger_created", "external_trigger_revoked", LAST] {
        let rounds = json!([{"calls": [create("first"), create("second")]}, {"calls": [cancel("trigger-1")]}]);
        let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "over"}}));
        let daemon = home.serve();
        daemon.prompt("main", "begin").await;
        daemon.wait_for("main", kill_at).await;
        daemon.kill();
        let daemon = home.serve();
        assert_eq!(daemon.answer("main", "msg-1").await["text"], "over");
        let (written, live) = tokens(&home, &daemon).await;
        assert_eq!((written.len(), written), (1, live), "killed at {kill_at}");
    }
}
