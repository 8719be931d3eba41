//! What an operator is shown of a run, and what is kept from the operator's view.

use crate::ask::Ask;
use crate::daemon::Home;
use crate::sample;
use futures::StreamExt;
use holon::events::{PLANES, schema};
use holon::wire::event::{Projection, render};
use holon::words::hash::Hash;
use holon::words::id::AgentId;
use serde_json::{Value, json};

const PROMPT: &str = "marker-prompt-5f1";
const COMMAND: &str = "marker-command-8c2";
const OUTPUT: &str = "marker-output-b37";
const ANSWER: &str = "marker-answer-d90";
const METADATA: &str = "marker-metadata-e44";
const HINT: &str = "marker-hint-0a6";
const REMINDER: &str = "marker-reminder-77f";

/// Runs a turn that carries all markers; answers the recorded events.
async fn told(daemon: &crate::daemon::Daemon) -> Vec<Value> {
    let ask = Ask::new(daemon);
    ask.post("/enqueue", json!({"text": PROMPT, "metadata": {"secret": METADATA}})).await.ok();
    // The output is put together by the command, so that the command itself does not show it.
    let (first, second) = OUTPUT.split_at(7);
    let text = format!("$ : {COMMAND}; printf %s {first}; echo {second}; cat /no/{COMMAND}\n# {PROMPT}");
    let failing = daemon.prompt("main", &text).await;
    daemon.answer("main", &failing).await;
    let saying = daemon.prompt("main", &format!("$ true\nsay: {ANSWER}")).await;
    daemon.answer("main", &saying).await;
    ask.post("/control/agents/main/timers", json!({"duration_ms": 3_600_000, "summary": REMINDER})).await.ok();
    let trigger = ask.post("/control/agents/main/external-triggers", json!({"label": "ci"})).await.ok();
    let url = trigger["trigger_url"].as_str().expect("a url").trim_start_matches(&ask.base).to_owned();
    ask.post(&url, json!({"hint": HINT})).await.ok();
    ask.post("/control/agents/main/control", json!({"action": "stop"})).await.ok();
    daemon.events("main").await
}

fn names(event: &Value) -> Vec<&str> {
    let redactions = event["projection"]["redactions"].as_array().expect("a list");
    redactions.iter().map(|name| name.as_str().expect("a name")).collect()
}

#[tokio::test]
async fn the_operators_view_leaves_out_what_was_said_and_done_and_says_so() {
    let home = Home::new();
    let daemon = home.serve();
    let raw = told(&daemon).await;
    let text = serde_json::to_string(&raw).unwrap();
    for marker in [PROMPT, COMMAND, OUTPUT, ANSWER, METADATA, HINT, REMINDER] {
        assert!(text.contains(marker), "the record has {marker}, or this test shows nothing");
    }
    let page = daemon.get("/agents/main/events?limit=512&order=asc").await;
    let page = page["events"].as_array().expect("events").clone();
    let stream = daemon.client.stream(&format!("/agents/main/events/stream?after_seq=0&limit={}", raw.len())).await;
    let stream: Vec<Value> = stream.expect("a stream").map(|event| event.expect("an event").data).collect().await;
    assert_eq!(page, stream, "a page and a stream show the same");

    let workspace = home.workspace();
    let private = [PROMPT, COMMAND, OUTPUT, ANSWER, METADATA, HINT, REMINDER, workspace.to_str().unwrap()];
    for (event, recorded) in page.iter().zip(&raw) {
        for name in ["id", "event_seq", "ts", "agent_id", "type", "schema_version"] {
            assert_eq!(event[name], recorded[name], "every event appears, in its place");
        }
        assert_eq!(event["projection"]["name"], "operator");
        assert_eq!(event["projection"]["raw_payload_included"], false);
        for name in ["hash", "prev_hash", "cause"] {
            assert_eq!(event.get(name), None, "{event}");
        }
        if event["type"] == "brief_created" {
            assert!(event["payload"]["text"].is_string() && event["payload"]["id"].is_string(), "{event}");
            continue;
        }
        for marker in private {
            assert!(!event.to_string().contains(marker), "{marker} is shown: {event}");
        }
    }
    let briefs: Vec<&str> = page.iter().filter_map(|event| event["payload"]["text"].as_str()).collect();
    assert!(briefs.iter().any(|text| text.contains(ANSWER)), "an answer is the operator's: {briefs:?}");
    for (kind, left_out) in [
        ("message_enqueued", "body"),
        ("message_enqueued", "metadata"),
        ("round_requested", "added"),
        ("task_create_requested", "request"),
        ("task_create_requested", "summary"),
        ("task_exited", "output"),
    ] {
        let events = page.iter().filter(|event| event["type"] == kind);
        assert!(events.clone().count() > 0, "there are {kind}");
        events.for_each(|event| assert!(names(event).contains(&left_out), "{event}"));
    }
    let entries = |kind: &str| page.iter().find(|event| event["payload"]["kind"] == kind).expect("such an entry");
    assert_eq!(names(entries("assistant_round")), ["text", "answer", "calls"]);
    assert_eq!(names(entries("tool_result")), ["result"]);
    assert!(names(entries("incoming_message")).is_empty());
}

#[tokio::test]
async fn the_raw_view_is_the_record_with_its_links_and_its_cause() {
    let daemon = Home::new().serve();
    let raw = told(&daemon).await;
    let mut previous = raw[0]["prev_hash"].clone();
    for (index, event) in raw.iter().enumerate() {
        assert_eq!(event["event_seq"], index + 1);
        assert_eq!(event["id"], format!("main:{}", index + 1));
        assert_eq!(event["prev_hash"], previous);
        assert_eq!(event["hash"].as_str().map(str::len), Some(64), "{event}");
        assert!(!event["cause"].is_null(), "{event}");
        assert_eq!(event["projection"], json!({"name": "local_debug", "raw_payload_included": true, "redactions": []}));
        previous = event["hash"].clone();
    }
    let head = daemon.get("/agents/main/ledger").await;
    assert_eq!((&head["hash"], &head["event_seq"]), (&previous, &json!(raw.len())));
    let verified = daemon.get("/agents/main/ledger/verify").await;
    assert_eq!((&verified["ok"], &verified["hash"]), (&json!(true), &previous));
}

#[tokio::test]
async fn a_long_brief_is_told_by_its_beginning_and_is_whole_among_the_briefs() {
    let daemon = Home::new().serve();
    let long = "long answer ".repeat(400);
    let message = daemon.prompt("main", &format!("say: {long}")).await;
    let brief = daemon.answer("main", &message).await;
    assert_eq!(brief["text"].as_str().map(str::trim), Some(long.trim()));
    let page = daemon.get("/agents/main/events").await;
    let events = page["events"].as_array().unwrap();
    let event = events.iter().find(|event| event["payload"]["id"] == brief["id"]).expect("its event");
    assert_eq!(names(event), ["text"]);
    assert!(long.starts_with(event["payload"]["text"].as_str().unwrap()));
    assert_eq!(event["payload"]["text_bytes"], brief["text_bytes"]);
}

#[tokio::test]
async fn a_failing_models_words_are_kept_from_the_operators_events() {
    let home = Home::new().argument("--model").argument("openai/none");
    let daemon = home.serve();
    let message = daemon.prompt("main", PROMPT).await;
    let brief = daemon.answer("main", &message).await;
    assert_eq!(brief["kind"], "failure");
    assert!(brief["text"].as_str().unwrap().contains("hint: "), "{brief}");
    let page = daemon.get("/agents/main/events").await;
    let events = page["events"].as_array().unwrap();
    let failed = events.iter().find(|event| event["type"] == "round_attempt_failed").expect("it failed");
    assert_eq!(failed["payload"]["error"], json!({"kind": "not_configured", "status": null, "retry_after_ms": null}));
    assert_eq!(names(failed), ["error.message"]);
}

/// Texts that the operator may read, by the kind and the member of the event. All others are kept from the operator.
const TEXTS: &[(&str, &[&str])] = &[
    ("agent_created", &["template"]),
    ("agent_stopped", &["reason"]),
    ("agent_paused", &["reason"]),
    ("agent_archive_requested", &["reason"]),
    ("agent_model_override_set", &["model"]),
    ("message_enqueued", &["origin", "correlation_id", "causation_id", "reply_route"]),
    ("message_settled", &["outcome"]),
    ("turn_started", &["policy"]),
    // Its kind and its status.
    ("round_attempt_failed", &["error"]),
    ("current_run_aborted", &["reason"]),
    ("turn_terminal", &["reason"]),
    ("task_stop_requested", &["reason"]),
    // Not why it did not start.
    ("task_exited", &["exit"]),
    // By its beginning.
    ("work_item_completed", &["report"]),
    ("work_item_held", &["reason"]),
    ("wait_created", &["wake", "reason", "recoverability"]),
    ("wait_cancelled", &["reason"]),
    ("timer_cancelled", &["reason"]),
    ("external_trigger_created", &["label"]),
    ("external_trigger_revoked", &["reason"]),
    ("webhook_secret_cleared", &["reason"]),
    ("wake_requested", &["reason", "source", "correlation_id", "causation_id"]),
    ("guidance_read", &["refused"]),
    ("working_memory_updated", &["entry"]),
    ("brief_created", &["text"]),
    ("operator_notification_requested", &["text"]),
    ("operator_transport_binding_revoked", &["reason"]),
    ("operator_delivery_submitted", &["route_id"]),
    ("operator_delivery_completed", &["transport_delivery_id"]),
    ("operator_delivery_failed", &["summary"]),
    ("operator_delivery_abandoned", &["route_id", "reason"]),
    ("runtime_booted", &["release"]),
    ("runtime_shut_down", &["reason"]),
];

/// Whether a value of this shape may hold a text that somebody wrote.
fn holds_text(shape: &str) -> bool {
    let names = shape.split(|c: char| !c.is_alphanumeric()).filter(|name| name.starts_with(char::is_uppercase));
    names.into_iter().any(|name| {
        let parts = schema::SHAPES.iter().find(|shape| shape.name == name).map_or(&[][..], |shape| shape.parts);
        matches!(name, "String" | "Content") || parts.iter().any(|part| holds_text(&part.shape_text()))
    })
}

#[test]
fn of_all_texts_that_events_hold_the_operator_is_shown_the_listed_ones_alone() {
    let samples = sample::envelopes();
    let mut shown_texts = 0;
    for row in PLANES.iter().flat_map(|(_, kinds)| kinds.iter()) {
        let listed = TEXTS.iter().find(|(kind, _)| *kind == row.kind).map_or(&[][..], |(_, listed)| listed);
        let texts = row.fields.iter().filter(|field| holds_text(&field.shape_text())).map(|field| field.name);
        let texts: Vec<&str> = texts.collect();
        assert!(listed.iter().all(|name| texts.contains(name)), "{}: {listed:?} of {texts:?}", row.kind);
        for envelope in samples.iter().filter(|envelope| envelope.event.kind() == row.kind) {
            let (agent, link) = (AgentId::parse("main").unwrap(), Hash([7; 32]));
            let shown = render(&agent, envelope, link, link, Projection::Operator);
            let shown: Value = serde_json::from_str(&shown).unwrap();
            for name in texts.iter().filter(|name| !shown["payload"][**name].is_null()) {
                assert!(listed.contains(name), "{}.{name} is shown: {}", row.kind, shown["payload"]);
                shown_texts += 1;
            }
            let told = names(&shown);
            for name in texts.iter().filter(|name| !listed.contains(name) && row.kind != "turn_entry") {
                assert!(told.contains(name), "{}.{name} is left out without a word: {told:?}", row.kind);
            }
        }
    }
    assert!(shown_texts > 20, "{shown_texts}");
}
