//! The home's own ledger: boots, shutdowns, settings and tokens, chained and verified as any other.

use crate::cli::say;
use crate::daemon::{Home, of_kind};
use crate::quarantine::Damage;
use serde_json::{Value, json};

fn kinds(events: &Value) -> Vec<&str> {
    let events = events["events"].as_array().expect("events");
    events.iter().map(|event| event["type"].as_str().expect("a kind")).collect()
}

#[tokio::test]
async fn boots_shutdowns_and_changed_settings_are_recorded() {
    let home = Home::new();
    assert!(home.serve().stop().success());
    home.serve().kill();
    let model = ["serve", "--listen", "127.0.0.1:0", "--model", "anthropic/other"];
    let daemon = home.serve_by(home.holon(&model));
    let events = daemon.get("/home/events?order=asc&projection=local_debug").await;
    let expected = [
        "runtime_booted",
        "settings_changed",
        "runtime_shut_down",
        "runtime_booted",
        "runtime_booted",
        "settings_changed",
    ];
    assert_eq!(kinds(&events), expected, "a boot that a boot follows was killed");
    let events = events["events"].as_array().expect("events").clone();
    assert_eq!(of_kind(&events, "runtime_shut_down")[0]["reason"], "SIGTERM");
    let boots: Vec<&Value> = of_kind(&events, "runtime_booted").iter().map(|payload| &payload["boot"]).collect();
    assert_eq!(boots, [1, 2, 3]);
    let settings = of_kind(&events, "settings_changed")[1]["settings"].as_array().expect("settings").clone();
    assert!(settings.contains(&json!({"name": "model", "value": "anthropic/other"})), "{settings:?}");
    assert_eq!(daemon.get("/home/ledger").await["event_seq"], 6);
    assert_eq!(daemon.get("/home/ledger/verify").await["ok"], true);
}

#[tokio::test]
async fn the_home_is_no_agent() {
    let daemon = Home::new().serve();
    for list in ["/agents", "/agents/list", "/ledgers"] {
        let list = daemon.get(list).await;
        assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    }
    for path in ["/agents/.home/status", "/agents/.home/events", "/agents/.home/ledger"] {
        assert_eq!(daemon.problem(path).await.code, "invalid_agent_id", "{path}");
    }
    let create = daemon.refusal("/control/agents/.home/create", json!({})).await;
    assert_eq!(create.code, "invalid_agent_id");
    let mut all = daemon.client.stream("/events/stream?after_seq=0&limit=3").await.expect("a stream");
    let mut agents = Vec::new();
    while let Some(event) = futures::StreamExt::next(&mut all).await {
        agents.push(event.expect("an event").data["agent_id"].clone());
    }
    assert_eq!(agents, ["main", "main", "main"], "what the home records is told by its own stream");
}

#[tokio::test]
async fn events_of_the_home_are_read_and_followed_by_the_command_line() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.post("/control/tokens", json!({"name": "ci", "scopes": ["read"]})).await;
    let told = say(&home, &["events", "--home"]).data().to_owned();
    assert!(told.contains("runtime_booted") && told.contains("token_created"), "{told}");
    let line = told.lines().find(|line| line.contains("token_created")).expect("the token");
    assert!(line.contains("[the socket]") && !line.contains("token_hash"), "{line}");
    let one = say(&home, &["--json", "events", "--home", "--after", "0", "--limit", "1"]);
    assert_eq!(one.json()["agent_id"], ".home");
    // A folder after it is the home that is meant, as everywhere.
    let folder = home.path().display().to_string();
    let told = say(&home, &["events", "--home", &folder]).data().to_owned();
    assert!(told.contains("agent_created"), "{told}");
    say(&home, &["events", "--home", "--agent", "main"]).refused(2, &["cannot be used together"]);
}

#[tokio::test]
async fn the_ledger_of_the_home_is_verified_and_damage_in_it_is_named() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.post("/control/tokens", json!({"name": "ci", "scopes": ["admin"]})).await;
    let told = say(&home, &["--json", "ledger", "verify"]).json();
    assert_eq!((&told["agents"][0]["agent_id"], &told["ok"]), (&json!(".home"), &json!(true)));
    daemon.kill();
    // A server that was killed leaves a file that the next one mends.
    assert!(home.serve().stop().success());
    let told = say(&home, &["--json", "ledger", "verify"]).json();
    assert_eq!((&told["agents"][0]["agent_id"], &told["agents"][0]["damage"]), (&json!(".home"), &Value::Null));

    Damage::Flipped(3).inflict(&home, ".home");
    let told = say(&home, &["ledger", "verify"]);
    assert_eq!(told.code, Some(4), "{told:?}");
    let row = told.out.lines().find(|line| line.starts_with(".home")).expect("the home");
    assert!(row.contains("damaged at event 3"), "{row}");
    assert!(told.out.lines().any(|line| line.starts_with("main") && line.contains("whole")), "{told:?}");
}

#[tokio::test]
async fn a_home_whose_ledger_is_damaged_serves_its_agents_and_opens_to_nobody() {
    let home = Home::new();
    let daemon = home.serve();
    let made = daemon.post("/control/tokens", json!({"name": "ci", "scopes": ["admin"]})).await;
    assert!(daemon.stop().success());
    Damage::Flipped(3).inflict(&home, ".home");
    let daemon = home.serve();
    daemon.status("main").await;
    let ask = crate::ask::Ask::new(&daemon);
    ask.get("/agents/main/status").await.refused(401, "unauthorized");
    ask.with_token(made["token"].as_str().expect("a secret"))
        .get("/agents/main/status")
        .await
        .refused(401, "unauthorized");
    assert_eq!(daemon.get("/home/ledger/verify").await["ok"], false);
    let told = daemon.get("/control/runtime/status").await;
    assert_eq!(told["quarantined"][0]["agent_id"], ".home");
    let refused = daemon.refusal("/control/tokens", json!({"name": "new", "scopes": ["read"]})).await;
    assert_eq!((refused.status, refused.code.as_str()), (503, "agent_quarantined"));
    assert!(daemon.stop().success());
}
