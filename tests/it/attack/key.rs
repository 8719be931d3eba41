//! Idempotency keys of strangers beside those of the operator and of the runtime.

use crate::ask::Ask;
use crate::daemon::{Home, of_kind};
use serde_json::{Value, json};

const TOKEN: &str = "a token of some length";
const WEBHOOK: &str = "/webhooks/generic/main";
const PROMPT: &str = "/control/agents/main/prompt";

#[tokio::test]
async fn a_strangers_key_keeps_no_childs_notice_from_its_supervisor() {
    let daemon = Home::new().argument("--token").argument(TOKEN).serve();
    let stranger = Ask::new(&daemon);
    let mut last = String::new();
    for entry in 1..60 {
        let taken = stranger.post_as(&format!("notice main.c1:{entry}"), WEBHOOK, json!({"n": entry})).await.ok();
        taken["message_id"].as_str().unwrap().clone_into(&mut last);
    }
    // A prompt that joined a webhook's turn would be trusted no more than the webhook.
    daemon.answer("main", &last).await;
    daemon.prompt("main", "spawn: ask\n  wait operator").await;
    daemon.wait_for("main", "agent_spawned").await;
    daemon.wait_for("main.c1", "outbox_delivered").await;
    let events = daemon.events("main").await;
    let notices = of_kind(&events, "message_enqueued").into_iter().filter(|message| message["kind"] == "task_status");
    assert_eq!(notices.count(), 1, "what the child's ledger says was taken in is there");
}

#[tokio::test]
async fn a_strangers_key_is_none_of_the_operators() {
    let daemon = Home::new().argument("--token").argument(TOKEN).serve();
    let stranger = Ask::new(&daemon);
    let operator = stranger.with_token(TOKEN);
    let post = async |ask: &Ask, path: &str, body: Value| -> Value {
        ask.post_as("deploy-2026-11-21", path, body).await.ok()["message_id"].take()
    };
    let event = json!({"deploy": false});
    let webhook = post(&stranger, WEBHOOK, event.clone()).await;
    let prompt = post(&operator, PROMPT, json!({"text": "say: deployed"})).await;
    assert_ne!(webhook, prompt);
    assert_eq!(post(&stranger, WEBHOOK, event).await, webhook, "each has the answer of its own request");
    assert_eq!(post(&operator, PROMPT, json!({"text": "say: deployed"})).await, prompt);
    let reused = operator.post_as("deploy-2026-11-21", PROMPT, json!({"text": "say: undone"})).await;
    reused.refused(422, "idempotency_key_reused");
}
