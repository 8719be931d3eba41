//! Requests that nobody would send, sent.

use crate::ask::Ask;
use crate::daemon::Home;
use serde_json::{Value, json};

const SENDERS: u64 = 4;
const REQUESTS: usize = 500;

/// xorshift64*, so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.roll(choices.len())]
    }

    fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        let length = self.roll(length_max);
        (0..length).map(|_| self.roll(256) as u8).collect()
    }

    /// Text that a path or a query may hold, encoded where it must be.
    fn encoded(&mut self) -> String {
        self.bytes(12)
            .iter()
            .map(|byte| if byte.is_ascii_alphanumeric() { (*byte as char).to_string() } else { format!("%{byte:02X}") })
            .collect()
    }

    fn json(&mut self, depth: usize) -> Value {
        const NAMES: &[&str] = &[
            "text",
            "json",
            "body",
            "type",
            "value",
            "kind",
            "origin",
            "channel_id",
            "source",
            "priority",
            "trust",
            "metadata",
            "action",
            "mode",
            "run_id",
            "reason",
            "template",
            "title",
            "attachments",
            "objective",
            "plan",
            "todo_list",
            "status",
            "depends_on",
            "blocked_by",
            "recheck_after_ms",
            "result_summary",
            "duration_ms",
            "interval_ms",
            "summary",
            "label",
            "delivery_mode",
            "work_item_id",
            "path",
            "workspace_id",
        ];
        const WORDS: &[&str] = &[
            "text",
            "json",
            "brief",
            "channel",
            "webhook",
            "operator",
            "normal",
            "interject",
            "webhook_event",
            "channel_event",
            "start",
            "",
            "\u{0}",
            "\u{10FFFF}",
            "trusted_operator",
            "run-1",
            "work-1",
            "ws-1",
            "enqueue_message",
            "/",
            "in_progress",
        ];
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.roll(2) == 0),
            2 => json!(self.roll(usize::MAX) as i64 - (1 << 29)),
            3 => json!(f64::MAX / (1 + self.roll(9)) as f64),
            4 => json!(self.of(WORDS)),
            5 => (0..self.roll(4)).map(|_| self.json(depth - 1)).collect(),
            _ => (0..self.roll(5))
                .map(|_| (self.of(NAMES).to_owned(), self.json(depth - 1)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    fn path(&mut self) -> String {
        const PATHS: &[&str] = &[
            "/",
            "/handshake",
            "/agents/list",
            "/agents/ID/status",
            "/agents/ID/state",
            "/agents/ID/briefs",
            "/agents/ID/transcript",
            "/agents/ID/tasks",
            "/agents/ID/messages/MID",
            "/agents/ID/events",
            "/agents/ID/ledger",
            "/agents/ID/ledger/verify",
            "/agents/ID/enqueue",
            "/enqueue",
            "/control/agents/ID/create",
            "/control/agents/ID/prompt",
            "/control/agents/ID/control",
            "/control/agents/ID/current-run/abort",
            "/control/agents/ID/wake",
            "/control/runtime/status",
            "/agents",
            "/ledgers",
            "/agents/ID/diagnostics",
            "/agents/ID/worktree-summary",
            "/agents/ID/KIND",
            "/agents/ID/KIND/RID",
            "/agents/ID/tasks/RID/output",
            "/control/agents/ID/KIND",
            "/control/agents/ID/KIND/RID/VERB",
            "/control/agents/ID/messages/MID/drop",
            "/control/agents/ID/workspace/attach",
            "/control/agents/ID/workspace/exit",
            "/control/agents/ID/workspace/detach",
            "/control/agents/gone/archive",
            "/callbacks/wake/RID",
            "/callbacks/enqueue/RID",
            "/webhooks/generic/ID",
        ];
        const KINDS: &[&str] = &["work-items", "tasks", "timers", "waits", "external-triggers"];
        const VERBS: &[&str] = &["update", "pick", "complete", "input", "stop", "cancel", "revoke", "drop"];
        let id = if self.roll(4) == 0 { self.encoded() } else { self.of(&["main", "other", "x"]).to_owned() };
        let message = if self.roll(2) == 0 { self.encoded() } else { format!("msg-{}", self.roll(20)) };
        let record = if self.roll(3) == 0 {
            self.encoded()
        } else {
            format!("{}-{}", self.of(&["work", "task", "timer", "wait", "trigger"]), self.roll(5))
        };
        let path = self.of(PATHS).replace("MID", &message).replace("RID", &record).replace("ID", &id);
        let mut path = path.replace("KIND", self.of(KINDS)).replace("VERB", self.of(VERBS));
        for index in 0..self.roll(3) {
            let name = if self.roll(3) == 0 {
                self.encoded()
            } else {
                self.of(&[
                    "limit",
                    "after_seq",
                    "before_seq",
                    "order",
                    "projection",
                    "cursor",
                    "posture",
                    "offset",
                    "limit_bytes",
                ])
                .to_owned()
            };
            let value = if self.roll(2) == 0 {
                self.encoded()
            } else {
                self.of(&[
                    "0",
                    "1",
                    "7",
                    "asc",
                    "operator",
                    "local_debug",
                    "idle",
                    "open-2",
                    "ended-2",
                    "18446744073709551615",
                ])
                .to_owned()
            };
            path.push_str(&format!("{}{name}={value}", if index == 0 { '?' } else { '&' }));
        }
        path
    }
}

#[tokio::test]
async fn whatever_is_sent_is_answered_or_refused_in_the_one_shape() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let senders = (1..=SENDERS).map(|seed| {
        let ask = ask.clone();
        async move {
            let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            for _ in 0..REQUESTS {
                let path = dice.path();
                let method = dice.of(&["GET", "POST", "POST", "PUT"]);
                let body = if dice.roll(4) == 0 { dice.bytes(64) } else { dice.json(3).to_string().into_bytes() };
                let kind = dice.of(&["application/json", "application/json", "application/json", "text/plain"]);
                let key = dice.of(&["", "k1", "k2"]);
                let told = ask.send(method, &path, |request| {
                    let request = if key.is_empty() { request } else { request.header("Idempotency-Key", key) };
                    if method == "GET" { request } else { request.header("content-type", kind).body(body.clone()) }
                });
                let told = told.await;
                if told.status >= 400 {
                    let problem = told.problem();
                    assert!(
                        told.status < 500,
                        "seed {seed}: {method} {path} {}: {problem}",
                        String::from_utf8_lossy(&body)
                    );
                }
            }
        }
    });
    futures::future::join_all(senders).await;
    assert!(daemon.is_whole("main").await);
    assert_eq!(ask.get("/healthz").await.ok()["ok"], true);
}
