//! A model of an agent's own.

use crate::ask::Ask;
use crate::daemon::{BORN, Home, of_kind};
use serde_json::json;

const MODEL: &str = "/control/agents/main/model";
const CLEAR: &str = "/control/agents/main/model/clear";

#[tokio::test]
async fn an_agent_asks_the_model_that_was_chosen_for_it_over_a_restart_and_until_it_is_cleared() {
    let config = "[providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"tiny\"]\n";
    let home = Home::new().configured(config);
    let daemon = home.serve();
    // A bare name is looked up among what the providers list.
    let chosen = daemon.post(MODEL, json!({"model": "tiny", "trust": "trusted_operator"})).await;
    let expected = json!({
        "source": "agent_override",
        "runtime_default_model": "builtin/runbook",
        "effective_model": "local/tiny",
        "override_model": "local/tiny",
        "fallback_active": false,
        "effective_fallback_models": ["builtin/runbook"],
    });
    assert_eq!(chosen, json!({"ok": true, "agent_id": "main", "model": expected}));
    daemon.post(MODEL, json!({"model": "local/tiny"})).await;
    assert_eq!(daemon.head("main").await, BORN + 1, "what is chosen already is not chosen again");

    assert!(daemon.stop().success());
    let daemon = home.serve();
    assert_eq!(daemon.status("main").await["model"], expected);
    assert_eq!(daemon.get("/agents/list").await[0]["model"], expected);
    let preview = daemon.post("/control/agents/main/debug-prompt", json!({"text": "x"})).await;
    assert_eq!(preview["model"], "local/tiny");
    let cleared = daemon.post(CLEAR, json!({})).await;
    assert_eq!(cleared["model"]["source"], "runtime_default");
    let message = daemon.prompt("main", "say: here").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "here");

    daemon.post(MODEL, json!({"model": "local/tiny"})).await;
    let message = daemon.prompt("main", "say: there").await;
    daemon.answer("main", &message).await;
    let events = daemon.events("main").await;
    let models: Vec<_> = of_kind(&events, "turn_started").iter().map(|turn| turn["policy"]["models"].clone()).collect();
    assert_eq!(models, [json!(["builtin/runbook"]), json!(["local/tiny", "builtin/runbook"])]);
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let choices = kinds.iter().filter(|kind| kind.starts_with("agent_model_override_")).count();
    assert_eq!(choices, 3);
}

#[tokio::test]
async fn a_model_that_nobody_answers_for_is_not_chosen() {
    let config = "[providers.one]\nmodels = [\"same\"]\n[providers.two]\nmodels = [\"same\"]\n";
    let daemon = Home::new().configured(config).serve();
    let ask = Ask::new(&daemon);
    for model in ["", "none", "nobody/none", "builtin/none", "same", &"x".repeat(300)] {
        let problem = ask.post(MODEL, json!({"model": model})).await.refused(422, "invalid_field");
        assert_eq!(problem["field"], "model", "{model}");
    }
    assert_eq!(daemon.head("main").await, BORN);
    // The body may be left out where there is nothing to say.
    ask.send("POST", CLEAR, |request| request).await.ok();
    assert_eq!(daemon.head("main").await, BORN);
    daemon.create("other").await;
    daemon.post("/control/agents/other/archive", json!({})).await;
    ask.post("/control/agents/other/model", json!({"model": "builtin/runbook"})).await.refused(410, "agent_archived");
    ask.post("/control/agents/nobody/model/clear", "{}").await.refused(404, "agent_not_found");
}
