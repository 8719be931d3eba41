//! Model services that fail, as a turn meets them: retries, back-off, fallbacks, and restarts in between.

use crate::daemon::{Daemon, Home, of_kind};
use crate::model_server::{Answer, Ending, ModelServer, Reply};
use holon::client::StreamedEvent;
use serde_json::{Value, json};

/// A first choice that speaks Anthropic, and a second that speaks `OpenAI`.
struct Services {
    first: ModelServer,
    second: ModelServer,
}

impl Services {
    fn start() -> Self {
        Self { first: ModelServer::start(), second: ModelServer::start() }
    }

    fn home(&self) -> Home {
        Home::new().configured(&format!(
            "model = \"anthropic/first\"\nfallbacks = [\"other/second\"]\n\
             [providers.anthropic]\nbase_url = \"{}\"\napi_key = \"one\"\n\
             [providers.other]\nprotocol = \"openai\"\nbase_url = \"{}/v1\"\napi_key = \"two\"\n",
            self.first.url(),
            self.second.url(),
        ))
    }

    /// Requests so far, to each.
    fn asked(&self) -> (usize, usize) {
        (self.first.received().len(), self.second.received().len())
    }
}

fn overloaded() -> Reply {
    Reply::status(500, r#"{"error": {"type": "api_error", "message": "out of order"}}"#)
}

fn limited(seconds: &str) -> Reply {
    Reply::status(429, r#"{"error": {"type": "rate_limit_error", "message": "slow down"}}"#)
        .header("retry-after", seconds)
}

/// The failed attempts, and when each was to be followed by the next.
fn failures(events: &[Value]) -> Vec<&Value> {
    of_kind(events, "round_attempt_failed")
}

fn models(events: &[Value]) -> Vec<u64> {
    of_kind(events, "round_attempted").iter().map(|payload| payload["model"].as_u64().unwrap()).collect()
}

/// Whether each attempt waited as the failure before it says.
fn kept_waiting(events: &[Value]) -> bool {
    let mut not_before = String::new();
    events.iter().all(|event| {
        let again = &event["payload"]["then"]["again"]["not_before"];
        if let Some(at) = again.as_str() {
            at.clone_into(&mut not_before);
        }
        event["type"] != "round_attempted" || event["ts"].as_str().unwrap() >= not_before.as_str()
    })
}

/// The time between a failure and its next attempt, as recorded.
fn wait_ms(event: &Value) -> i64 {
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    time(&event["payload"]["then"]["again"]["not_before"]) - time(&event["ts"])
}

async fn failed_attempt(daemon: &Daemon) -> StreamedEvent {
    daemon.wait_for("main", "round_attempt_failed").await
}

#[tokio::test]
async fn a_limit_is_waited_out_as_the_service_asks() {
    let services = Services::start();
    services.first.reply(limited("2"));
    services.first.reply(Answer::text("at last").whole());
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "at last");
    let events = daemon.events("main").await;
    let failed = events.iter().find(|event| event["type"] == "round_attempt_failed").unwrap();
    assert_eq!(
        (&failed["payload"]["error"]["kind"], &failed["payload"]["error"]["status"]),
        (&json!("rate_limited"), &json!(429))
    );
    assert!(wait_ms(failed) >= 2_000, "{failed}");
    assert!(kept_waiting(&events));
    assert_eq!(services.asked(), (2, 0));
}

#[tokio::test]
async fn a_service_that_stays_out_of_order_is_replaced_by_its_fallback() {
    let services = Services::start();
    services.first.otherwise(|_| overloaded());
    services.second.reply(Answer::text("from the second").whole());
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "from the second");
    let events = daemon.events("main").await;
    assert_eq!(models(&events), [0, 0, 0, 1]);
    assert!(kept_waiting(&events));
    let said = of_kind(&events, "turn_entry").into_iter().find(|entry| entry["entry"]["assistant"].is_object());
    assert_eq!(said.unwrap()["entry"]["assistant"]["model"], "other/second");
    assert_eq!(services.asked(), (3, 1));
}

#[tokio::test]
async fn a_turn_that_no_model_answers_fails_once_and_for_all() {
    let services = Services::start();
    services.first.otherwise(|_| overloaded());
    services.second.otherwise(|_| overloaded());
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    let failure = daemon.answer("main", &message).await;
    let text = failure["text"].as_str().unwrap();
    assert_eq!(failure["kind"], "failure");
    for part in ["anthropic/first", "other/second", "HTTP 500", "out of order", "hint: "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let events = daemon.events("main").await;
    assert_eq!(models(&events), [0, 0, 0, 1, 1, 1]);
    assert_eq!(of_kind(&events, "turn_terminal")[0]["outcome"], "failed");
    daemon.kill();

    let daemon = home.serve();
    services.first.otherwise(|_| Answer::text("in order again").whole());
    let next = daemon.prompt("main", "and now?").await;
    assert_eq!(daemon.answer("main", &next).await["text"], "in order again");
    assert_eq!(services.asked(), (4, 3), "the failed turn did not run again");
    assert_eq!(of_kind(&daemon.events("main").await, "turn_started").len(), 2);
}

#[tokio::test]
async fn a_stream_that_was_cut_is_asked_for_again() {
    let services = Services::start();
    services.first.reply(Answer::text("half of it").ending(Ending::Broken(4)));
    services.first.reply(Answer::text("all of it").whole());
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    assert_eq!(daemon.answer("main", &message).await["text"], "all of it");
    let events = daemon.events("main").await;
    assert_eq!(failures(&events).len(), 1);
    assert_eq!(failures(&events)[0]["error"]["kind"], "connection");
}

#[tokio::test]
async fn a_refused_key_fails_the_turn_at_once() {
    let services = Services::start();
    services
        .first
        .reply(Reply::status(401, r#"{"error": {"type": "authentication_error", "message": "who are you"}}"#));
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    let failure = daemon.answer("main", &message).await;
    let text = failure["text"].as_str().unwrap();
    assert!(text.contains("HTTP 401") && text.contains("hint: check the provider's key"), "{text}");
    assert_eq!(services.asked(), (1, 0));
}

#[tokio::test]
async fn a_back_off_goes_on_over_a_kill() {
    let services = Services::start();
    services.first.reply(limited("3"));
    services.first.reply(Answer::text("at last").whole());
    let home = services.home();
    let daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    let failed = failed_attempt(&daemon).await;
    assert!(wait_ms(&failed.data) >= 3_000);
    daemon.kill();
    let daemon = home.serve();
    assert_eq!(daemon.answer("main", &message).await["text"], "at last");
    let events = daemon.events("main").await;
    assert!(kept_waiting(&events), "the wait was not cut short");
    assert_eq!((failures(&events).len(), models(&events).len()), (1, 2), "it was not counted anew");
    assert_eq!(services.asked(), (2, 0));
}

#[tokio::test]
async fn an_orderly_stop_costs_a_call_and_is_no_failure_of_the_model() {
    let services = Services::start();
    // All are there from the beginning: a daemon that comes back asks before it says that it is ready.
    (0..4).for_each(|_| services.first.reply(Reply::Hang));
    services.first.reply(Answer::text("at last").whole());
    let home = services.home();
    let mut daemon = home.serve();
    let message = daemon.prompt("main", "hello").await;
    for stop in 1..=4 {
        services.first.wait_for_requests(stop);
        assert!(daemon.stop().success());
        daemon = home.serve();
    }
    assert_eq!(daemon.answer("main", &message).await["text"], "at last");
    let events = daemon.events("main").await;
    assert!(failures(&events).iter().all(|failure| failure["error"]["kind"] == "interrupted"));
    assert_eq!((failures(&events).len(), services.asked()), (4, (5, 0)));
    assert!(daemon.is_whole("main").await);
}
