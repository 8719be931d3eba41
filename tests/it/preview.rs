//! Models by name, and what an agent would send to one.

use crate::ask::Ask;
use crate::daemon::{Home, of_kind};
use serde_json::{Value, json};

const DEBUG: &str = "/control/agents/main/debug-prompt";

#[tokio::test]
async fn a_preview_is_what_the_prompt_leads_to_and_records_nothing() {
    let home = Home::new();
    std::fs::write(home.workspace().join("AGENTS.md"), "Always whistle.").unwrap();
    let daemon = home.serve();
    let first = daemon.prompt("main", "$ echo earlier").await;
    daemon.answer("main", &first).await;
    let before = daemon.head("main").await;
    let told = daemon.post(DEBUG, json!({"text": "say: hello"})).await;
    assert_eq!(daemon.head("main").await, before, "nothing is recorded");
    assert_eq!(
        (&told["ok"], &told["agent_id"], &told["model"]),
        (&json!(true), &json!("main"), &json!("builtin/runbook"))
    );
    let dump = told["dump"].as_str().expect("a text");
    for part in ["Always whistle.", "$ echo earlier", "say: hello"] {
        assert!(dump.contains(part), "{part} is not in {dump}");
    }

    let message = daemon.prompt("main", "say: hello").await;
    daemon.answer("main", &message).await;
    let events = daemon.events("main").await;
    let round = of_kind(&events, "round_requested").pop().expect("a round").clone();
    let shown = |section: &Value| (section["kind"].clone(), section["bytes"].clone());
    let previewed: Vec<_> = told["sections"].as_array().unwrap().iter().map(shown).collect();
    let lower = |kind: &Value| kind.as_str().unwrap().to_lowercase().replace('_', "");
    let kinds = |sections: &[(Value, Value)]| sections.iter().map(|(kind, _)| lower(kind)).collect::<Vec<_>>();
    let sent: Vec<_> = round["added"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(kinds(&previewed), kinds(&sent), "the parts are those of the real prompt");
}

#[tokio::test]
async fn a_preview_serves_stopped_and_busy_agents_and_wakes_none() {
    let home = Home::new();
    let gate = home.gate("gate");
    let mut signs = home.signs("signs");
    let daemon = home.serve();
    daemon.create("other").await;
    daemon.control("other", "stop").await;
    let told = daemon.post("/control/agents/other/debug-prompt", json!({"text": "look"})).await;
    assert!(told["dump"].as_str().unwrap().contains("look"));
    assert_eq!(daemon.head("other").await, 2);

    let message = daemon.prompt("main", "$ echo > signs; read go < gate").await;
    signs.next().await;
    let told = daemon.post(DEBUG, json!({"text": "join in", "trust": "trusted_operator"})).await;
    assert!(told["dump"].as_str().unwrap().contains("join in"));
    gate.open();
    daemon.answer("main", &message).await;

    let long = "x".repeat(100_000);
    let told = daemon.post(DEBUG, json!({"text": long})).await;
    assert!(told["dump"].as_str().unwrap().contains(&long), "a stored text is whole");
    let ask = Ask::new(&daemon);
    ask.post("/control/agents/nobody/debug-prompt", json!({"text": "x"})).await.refused(404, "agent_not_found");
    ask.post(DEBUG, json!({})).await.refused(422, "invalid_field");
    daemon.post("/control/agents/other/archive", json!({})).await;
    ask.post("/control/agents/other/debug-prompt", json!({"text": "x"})).await.refused(410, "agent_archived");
}

#[tokio::test]
async fn models_are_listed_with_whether_they_can_be_asked() {
    let config = "[providers.openai]\nmodels = [\"gpt-5\"]\n[providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"tiny\"]\n";
    let daemon = Home::new().configured(config).serve();
    let told = daemon.get("/models").await;
    let ids: Vec<&str> =
        told["available_models"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["builtin/runbook", "local/tiny", "openai/gpt-5"]);
    let expected = json!({"builtin/runbook": true, "local/tiny": true, "openai/gpt-5": false});
    assert_eq!(told["model_availability"], expected);
}
