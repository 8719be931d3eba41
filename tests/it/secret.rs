//! The control token and the providers' keys: where they must never be found.

use crate::daemon::Home;
use crate::model_server::{Answer, ModelServer, Reply};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const SECRETS: [(&str, &str); 3] = [
    ("HOLON_CONTROL_TOKEN", "token-nobody-may-find"),
    ("ANTHROPIC_API_KEY", "first-key-nobody-may-find"),
    ("OPENAI_API_KEY", "second-key-nobody-may-find"),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

fn holds_a_secret(bytes: &[u8]) -> bool {
    let needle = b"nobody-may-find";
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[tokio::test]
async fn no_command_no_file_and_no_log_holds_a_secret() {
    let server = ModelServer::start();
    let run = json!({"cmd": "env; tr '\\0' '\\n' < /proc/$PPID/environ; echo > begun; read go < go"});
    server.reply(Reply::status(500, r#"{"error": {"type": "api_error", "message": "again"}}"#));
    server.reply(Answer::text("").call("call", "ExecCommand", &run.to_string()).whole());
    server.reply(Answer::text("answered").whole());
    let home = Home::new()
        .environment("HOLON_LOG", "debug")
        .environment("HOLON_MODEL", "anthropic/model")
        .environment("ANTHROPIC_BASE_URL", &server.url());
    let home = SECRETS.into_iter().fold(home, |home, (name, secret)| home.environment(name, secret));
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "show me everything").await;
    begun.next().await;
    daemon.kill();
    check_files(&home);

    let daemon = home.serve();
    gate.open();
    assert_eq!(daemon.answer("main", &message).await["text"], "answered");
    let events = daemon.events("main").await;
    let shown = serde_json::to_string(&events).unwrap();
    assert!(shown.contains("HOLON_AGENT_ID=main"), "the command ran: {shown}");
    assert!(!holds_a_secret(shown.as_bytes()));
    let asked = server.received();
    assert_eq!(asked[1].headers["x-api-key"], SECRETS[1].1, "the key was used");
    assert!(asked.iter().all(|request| !holds_a_secret(request.body.to_string().as_bytes())));
    for path in ["/control/runtime/status", "/agents/main/state", "/", "/handshake"] {
        assert!(!holds_a_secret(daemon.get(path).await.to_string().as_bytes()), "{path}");
    }
    assert!(daemon.stop().success());
    check_files(&home);
    assert!(home.log().len() > 1_000, "the log says something");
    assert!(!holds_a_secret(home.log().as_bytes()));
}

fn check_files(home: &Home) {
    let mut found = Vec::new();
    files(&home.path(), &mut found);
    assert!(found.iter().any(|path| path.ends_with("ledger.redb")));
    for path in found {
        assert!(!holds_a_secret(&fs::read(&path).unwrap()), "{}", path.display());
    }
}

#[tokio::test]
async fn a_runbook_sees_neither_the_token_nor_a_key() {
    let home = Home::new();
    let home = SECRETS.into_iter().fold(home, |home, (name, secret)| home.environment(name, secret));
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ env").await;
    let answer = daemon.answer("main", &message).await.to_string();
    assert!(answer.contains("PATH="), "{answer}");
    for (name, secret) in SECRETS {
        assert!(!answer.contains(name) && !answer.contains(secret), "{answer}");
    }
}
