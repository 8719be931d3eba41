//! The routes: whom they serve, what they answer, what they refuse.

use crate::ask::{Ask, parts, raw};
use crate::daemon::{Daemon, Home};
use serde_json::{Value, json};

/// What a route is, as the control-plane seed lists them.
struct Route {
    method: &'static str,
    path: &'static str,
    /// A body that the route takes.
    body: Value,
    /// Members of the answer that clients rely on; `[]` after a name stands for each entry.
    members: &'static [(&'static str, Kind)],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    True,
    Bool,
    Number,
    Text,
    Array,
    Object,
}
use Kind::{Array, Bool, Number, Object, Text, True};

const IDENTITY: &[(&str, Kind)] = &[
    ("agent_id", Text),
    ("kind", Text),
    ("visibility", Text),
    ("ownership", Text),
    ("profile_preset", Text),
    ("status", Text),
];
const TASK: &[(&str, Kind)] = &[
    ("[].id", Text),
    ("[].agent_id", Text),
    ("[].kind", Text),
    ("[].status", Text),
    ("[].created_at", Text),
    ("[].updated_at", Text),
];
const SUMMARY: &[(&str, Kind)] = &[
    ("identity.agent_id", Text),
    ("identity.kind", Text),
    ("identity.visibility", Text),
    ("identity.ownership", Text),
    ("identity.profile_preset", Text),
    ("identity.status", Text),
    ("identity.is_default_agent", Bool),
    ("agent.id", Text),
    ("agent.status", Text),
    ("agent.pending", Number),
    ("agent.compacted_message_count", Number),
    ("agent.total_message_count", Number),
    ("scheduling_posture.posture", Text),
    ("scheduling_posture.reason", Text),
    ("lifecycle.resume_required", Bool),
    ("lifecycle.accepts_external_messages", Bool),
    ("lifecycle.wake_requires_resume", Bool),
    ("model.source", Text),
    ("model.runtime_default_model", Text),
    ("model.effective_model", Text),
    ("model.fallback_active", Bool),
    ("token_usage.total.input_tokens", Number),
    ("token_usage.total.output_tokens", Number),
    ("token_usage.total.total_tokens", Number),
    ("token_usage.total_model_rounds", Number),
    ("closure.outcome", Text),
    ("closure.runtime_posture", Text),
    ("execution.profile.backend", Text),
    ("execution.profile.process_execution_exposed", Bool),
    ("execution.profile.allow_background_tasks", Bool),
    ("execution.profile.supports_managed_worktrees", Bool),
    ("execution.workspace_anchor", Text),
    ("execution.execution_root", Text),
    ("execution.cwd", Text),
    ("loaded_agents_md", Object),
    ("skills", Object),
    ("active_waiting_intents", Array),
    ("recent_brief_count", Number),
    ("recent_event_count", Number),
];
const STATE: &[(&str, Kind)] = &[
    ("agent.identity.agent_id", Text),
    ("agent.agent.id", Text),
    ("agent.model.effective_model", Text),
    ("agent.token_usage.total_model_rounds", Number),
    ("agent.closure.outcome", Text),
    ("agent.execution.cwd", Text),
    ("agent.loaded_agents_md", Object),
    ("agent.skills", Object),
    ("agent.active_waiting_intents", Array),
    ("session.pending_count", Number),
    ("tasks", Array),
    ("timers", Array),
    ("work_items", Array),
    ("waiting_intents", Array),
    ("external_triggers", Array),
    ("operator_notifications", Array),
    ("workspace", Object),
    ("execution", Object),
];
const ENTRY: &[(&str, Kind)] = &[
    ("[].identity.agent_id", Text),
    ("[].identity.kind", Text),
    ("[].identity.visibility", Text),
    ("[].identity.ownership", Text),
    ("[].identity.profile_preset", Text),
    ("[].identity.status", Text),
    ("[].identity.is_default_agent", Bool),
    ("[].status", Text),
    ("[].scheduling_posture.posture", Text),
    ("[].scheduling_posture.reason", Text),
    ("[].lifecycle.resume_required", Bool),
    ("[].lifecycle.accepts_external_messages", Bool),
    ("[].lifecycle.wake_requires_resume", Bool),
    ("[].pending", Number),
    ("[].model.source", Text),
    ("[].model.runtime_default_model", Text),
    ("[].model.effective_model", Text),
];
const PAGE: &[(&str, Kind)] = &[
    ("events", Array),
    ("events[].id", Text),
    ("events[].event_seq", Number),
    ("events[].ts", Text),
    ("events[].agent_id", Text),
    ("events[].type", Text),
    ("events[].schema_version", Number),
    ("events[].projection.name", Text),
    ("events[].projection.raw_payload_included", Bool),
    ("events[].projection.redactions", Array),
    ("events[].provenance", Object),
    ("events[].payload", Object),
    ("oldest_seq", Number),
    ("newest_seq", Number),
    ("has_older", Bool),
    ("has_newer", Bool),
    ("order", Text),
    ("limit", Number),
];
const RUNTIME: &[(&str, Kind)] = &[
    ("ok", True),
    ("healthy", True),
    ("pid", Number),
    ("home_dir", Text),
    ("socket_path", Text),
    ("http_addr", Text),
    ("started_at", Text),
    ("config_fingerprint", Text),
    ("activity.state", Text),
    ("startup_surface.control_token_configured", Bool),
    ("runtime_surface.model_default", Text),
];

const WORK: &[(&str, Kind)] = &[
    ("id", Text),
    ("agent_id", Text),
    ("objective", Text),
    ("state", Text),
    ("plan_status", Text),
    ("created_at", Text),
    ("updated_at", Text),
    ("revision", Number),
    ("todo_list", Array),
];
const TIMER: &[(&str, Kind)] = &[
    ("id", Text),
    ("agent_id", Text),
    ("created_at", Text),
    ("duration_ms", Number),
    ("repeat", Bool),
    ("status", Text),
    ("fire_count", Number),
    ("next_fire_at", Text),
];
const TRIGGER: &[(&str, Kind)] = &[
    ("external_trigger_id", Text),
    ("target_agent_id", Text),
    ("scope", Text),
    ("delivery_mode", Text),
    ("status", Text),
    ("delivery_count", Number),
    ("created_at", Text),
];

fn read(path: &'static str, members: &'static [(&'static str, Kind)]) -> Route {
    Route { method: "GET", path, body: Value::Null, members }
}

fn write(path: &'static str, body: Value, members: &'static [(&'static str, Kind)]) -> Route {
    Route { method: "POST", path, body, members }
}

/// Every route, in an order in which each succeeds on a home where `main` has run one command.
fn routes() -> Vec<Route> {
    const SENT: &[(&str, Kind)] = &[("ok", True), ("agent_id", Text), ("message_id", Text)];
    vec![
        read("/", &[("ok", True), ("default_agent", Text)]),
        read(
            "/handshake",
            &[
                ("ok", True),
                ("protocol.name", Text),
                ("protocol.version", Number),
                ("auth.mode", Text),
                ("auth.required", Bool),
                ("capabilities", Array),
                ("runtime.default_agent", Text),
                ("runtime.listen", Text),
            ],
        ),
        read("/healthz", &[("ok", True)]),
        read("/readyz", &[("ok", True)]),
        read("/agents/list", ENTRY),
        read("/agents/main/status", SUMMARY),
        read("/agents/main/state", STATE),
        read("/status", SUMMARY),
        read("/state", STATE),
        read("/briefs", &[("[].id", Text), ("[].agent_id", Text)]),
        read("/transcript", &[("[].id", Text), ("[].agent_id", Text)]),
        read("/worktree-summary", &[("agent_id", Text), ("summary", Text)]),
        read(
            "/agents/main/briefs",
            &[("[].id", Text), ("[].agent_id", Text), ("[].kind", Text), ("[].created_at", Text), ("[].text", Text)],
        ),
        read(
            "/agents/main/transcript",
            &[("[].id", Text), ("[].agent_id", Text), ("[].created_at", Text), ("[].kind", Text), ("[].data", Object)],
        ),
        read("/agents/main/tasks", TASK),
        read(
            "/agents/main/messages/msg-1",
            &[
                ("id", Text),
                ("agent_id", Text),
                ("created_at", Text),
                ("kind", Text),
                ("origin.kind", Text),
                ("trust", Text),
                ("authority_class", Text),
                ("priority", Text),
                ("body.type", Text),
                ("delivery_surface", Text),
                ("admission_context", Text),
                ("outcome", Text),
                ("run_id", Text),
                ("brief_ids", Array),
            ],
        ),
        read("/agents/main/events", PAGE),
        read("/ledgers", &[("[].agent_id", Text), ("[].event_seq", Number), ("[].hash", Text)]),
        read("/agents/main/ledger", &[("agent_id", Text), ("event_seq", Number), ("hash", Text), ("events", Number)]),
        read("/agents/main/ledger/verify", &[("ok", True), ("agent_id", Text), ("event_seq", Number), ("hash", Text)]),
        read("/control/runtime/status", RUNTIME),
        write("/agents/main/enqueue", json!({"text": "hello"}), SENT),
        write("/enqueue", json!({"text": "hello"}), SENT),
        write("/control/agents/other/create", json!({}), IDENTITY),
        write("/control/agents/main/prompt", json!({"text": "$ cat gate"}), SENT),
        write(
            "/control/agents/main/current-run/abort",
            json!({}),
            &[("ok", True), ("aborted", True), ("agent_id", Text), ("run_id", Text), ("mode", Text)],
        ),
        write("/control/agents/main/control", json!({"action": "start"}), &[("ok", True), ("agent_id", Text)]),
        write(
            "/control/agents/main/wake",
            json!({"reason": "look"}),
            &[("ok", True), ("agent_id", Text), ("disposition", Text)],
        ),
        write("/webhooks/generic/main", json!({"event": "ci-complete"}), SENT),
        write("/control/agents/main/work-items", json!({"objective": "Fix the build"}), WORK),
        write(
            "/control/agents/main/work-items/work-1/update",
            json!({"plan": "look first"}),
            &[("ok", True), ("agent_id", Text), ("work_item_id", Text)],
        ),
        write("/control/agents/main/work-items/work-1/pick", json!({}), &[("ok", True), ("work_item_id", Text)]),
        read("/agents/main/work-items", &[("[].id", Text), ("[].objective", Text), ("[].state", Text)]),
        read("/agents/main/work-items/work-1", WORK),
        write("/control/agents/main/work-items/work-1/complete", json!({}), &[("ok", True), ("work_item_id", Text)]),
        write("/control/agents/main/timers", json!({"duration_ms": 3_600_000, "summary": "reminder"}), TIMER),
        read("/agents/main/timers", &[("[].id", Text), ("[].next_fire_at", Text)]),
        read("/agents/main/timers/timer-1", TIMER),
        write("/control/agents/main/timers/timer-1/cancel", json!({}), &[("ok", True), ("timer_id", Text)]),
        write("/control/agents/main/external-triggers", json!({"label": "ci"}), TRIGGER),
        read("/agents/main/external-triggers", &[("[].external_trigger_id", Text), ("[].status", Text)]),
        read("/agents/main/external-triggers/trigger-1", TRIGGER),
        write(
            "/control/agents/main/external-triggers/trigger-1/revoke",
            json!({}),
            &[("ok", True), ("external_trigger_id", Text)],
        ),
        write(
            "/control/agents/main/workspace/attach",
            json!({"path": "/"}),
            &[("ok", True), ("agent_id", Text), ("workspace_id", Text), ("workspace_anchor", Text)],
        ),
        write("/control/agents/main/workspace/exit", json!({}), &[("ok", True), ("agent_id", Text)]),
        write(
            "/control/agents/main/workspace/detach",
            json!({"workspace_id": "ws-2"}),
            &[("ok", True), ("agent_id", Text), ("workspace_id", Text)],
        ),
        read("/agents", ENTRY),
        read("/agents/main/waits", &[]),
        read(
            "/agents/main/tasks/task-1",
            &[("id", Text), ("agent_id", Text), ("kind", Text), ("status", Text), ("created_at", Text)],
        ),
        read(
            "/agents/main/tasks/task-1/output",
            &[
                ("task_id", Text),
                ("output", Text),
                ("offset", Number),
                ("next_offset", Number),
                ("output_bytes", Number),
            ],
        ),
        read("/agents/main/diagnostics", &[("agent_id", Text), ("posture", Text), ("diagnostics", Array)]),
        read("/agents/main/worktree-summary", &[("agent_id", Text), ("summary", Text), ("worktrees", Array)]),
        write("/control/agents/other/archive", json!({}), &[("ok", True), ("agent_id", Text), ("lifecycle", Text)]),
        write(
            "/control/runtime/shutdown",
            Value::Null,
            &[("ok", True), ("pid", Number), ("home_dir", Text), ("shutdown_requested", True)],
        ),
    ]
}

/// Requires `path` in `value`, at every entry that it passes.
fn require(asked: &str, value: &Value, path: &str, kind: Kind) {
    if let Some((list, rest)) = path.split_once("[].") {
        let entries = if list.is_empty() { value } else { &value[list] };
        let entries = entries.as_array().unwrap_or_else(|| panic!("{asked}: {list} is no array: {value}"));
        assert!(!entries.is_empty(), "{asked}: {list} is empty, so it shows nothing");
        return entries.iter().for_each(|entry| require(asked, entry, rest, kind));
    }
    let member = path.split('.').fold(value, |value, name| &value[name]);
    let fits = match kind {
        True => *member == true,
        Bool => member.is_boolean(),
        Number => member.is_u64(),
        Text => member.is_string(),
        Array => member.is_array(),
        Object => member.is_object(),
    };
    assert!(fits, "{asked}: {path} is not {kind:?} but {member}");
}

/// A home whose default agent has run a command and is at rest.
async fn worked(home: &Home) -> Daemon {
    nix::unistd::mkfifo(&home.workspace().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let daemon = home.serve();
    let message = daemon.prompt("main", "$ echo worked").await;
    daemon.answer("main", &message).await;
    daemon
}

#[tokio::test]
async fn every_route_answers_with_the_members_that_clients_rely_on() {
    let home = Home::new();
    let daemon = worked(&home).await;
    let ask = Ask::new(&daemon);
    for route in routes() {
        let asked = format!("{} {}", route.method, route.path);
        if route.path.ends_with("/abort") {
            daemon
                .wait("main", 0, |event| event.kind == "task_started" && event.data["payload"]["task"] == "task-2")
                .await;
        }
        let told = match route.method {
            "GET" => ask.get(route.path).await,
            _ if route.body.is_null() => ask.send("POST", route.path, |request| request).await,
            _ => ask.post(route.path, &route.body).await,
        };
        let answer = told.ok();
        route.members.iter().for_each(|(path, kind)| require(&asked, &answer, path, *kind));
    }
    assert!(daemon.ended().success());
}

#[tokio::test]
async fn every_route_has_one_method_and_says_which() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let stream = read("/agents/main/events/stream", &[]);
    for route in routes().into_iter().chain([stream]) {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            if method == route.method {
                continue;
            }
            let told = ask.send(method, route.path, |request| request).await;
            told.refused(405, "method_not_allowed");
            let allowed: Vec<&str> = told.header("allow").split(',').map(str::trim).collect();
            let expected = if route.method == "GET" { vec!["GET", "HEAD"] } else { vec!["POST"] };
            assert_eq!(allowed, expected, "{method} {}", route.path);
        }
    }
}

#[tokio::test]
async fn a_head_request_answers_like_get_without_the_body() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for path in
        ["/", "/agents/list", "/agents/main/state", "/agents/main/events", "/agents/main/events/stream?after_seq=0"]
    {
        let told = ask.send("HEAD", path, |request| request).await;
        assert_eq!((told.status, told.text.as_str()), (200, ""), "{path}");
    }
    let told = ask.send("HEAD", "/agents/nobody/state", |request| request).await;
    assert_eq!((told.status, told.text.as_str()), (404, ""));
}

#[tokio::test]
async fn an_unknown_agent_is_404_on_every_route() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for route in routes().into_iter().filter(|route| route.path.contains("/main/")) {
        let path = route.path.replace("/main/", "/nobody/");
        let told = match route.method {
            "GET" => ask.get(&path).await,
            _ => ask.post(&path, &route.body).await,
        };
        told.refused(404, "agent_not_found");
    }
    ask.get("/agents/nobody/events/stream").await.refused(404, "agent_not_found");
    ask.get("/agents/main/messages/msg-99").await.refused(404, "message_not_found");
    ask.get("/agents/main/messages/99").await.refused(404, "message_not_found");
    ask.get("/nothing/here").await.refused(404, "route_not_found");
    ask.get("/agents/main").await.refused(404, "route_not_found");
    let agents = ask.get("/agents/list").await.ok();
    assert_eq!(agents.as_array().map(Vec::len), Some(1), "asking for an agent makes none");
}

#[tokio::test]
async fn an_id_that_is_none_is_malformed() {
    let daemon = Home::new().serve();
    let too_long = "a".repeat(65);
    for id in ["%20", "a%2Fb", "%2e%2e", "..", ".x", "a:b", "%C3%A4", "%00", "%zz", too_long.as_str()] {
        for (method, rest) in [
            ("GET", "agents/ID/status"),
            ("GET", "agents/ID/messages/msg-1"),
            ("GET", "agents/ID/events/stream"),
            ("POST", "agents/ID/enqueue"),
            ("POST", "control/agents/ID/create"),
        ] {
            // A client library would tidy the path up.
            let path = rest.replace("ID", id);
            let answer = raw(
                &daemon,
                format!("{method} /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes(),
            );
            let (status, body) = parts(&answer);
            let problem: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {answer}"));
            assert_eq!((status, &problem["code"]), (400, &json!("invalid_agent_id")), "{path}");
        }
    }
    let ask = Ask::new(&daemon);
    ask.get("/agents//status").await.refused(400, "invalid_agent_id");
    for path in ["/agents/main/messages/%FF", "/agents/%FF/messages/msg-1", "/agents/%FF/status"] {
        ask.get(path).await.refused(400, "invalid_path");
    }
    for id in ["a".repeat(49).as_str(), "main.c1"] {
        ask.post(&format!("/control/agents/{id}/create"), "{}").await.refused(400, "invalid_agent_id");
    }
}

#[tokio::test]
async fn a_query_that_a_route_does_not_know_is_malformed() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for route in routes().into_iter().filter(|route| route.method == "GET" && route.path.starts_with("/agents/")) {
        ask.get(&format!("{}?bogus=1", route.path)).await.refused(400, "invalid_query");
    }
    let numbers = ["-1", "1.5", "x", "", "18446744073709551616", "1e3", "%00"];
    for (path, names) in [
        ("/agents/list", &["limit"][..]),
        ("/agents/main/briefs", &["limit"]),
        ("/agents/main/tasks", &["limit"]),
        ("/agents", &["limit"]),
        ("/agents/main/work-items", &["limit"]),
        ("/agents/main/timers", &["limit"]),
        ("/agents/main/waits", &["limit"]),
        ("/agents/main/external-triggers", &["limit"]),
        ("/agents/main/transcript", &["limit"]),
        ("/agents/main/events", &["limit", "after_seq", "before_seq"]),
        ("/agents/main/events/stream", &["limit", "after_seq"]),
    ] {
        for name in names {
            for number in numbers {
                ask.get(&format!("{path}?{name}={number}")).await.refused(400, "invalid_query");
            }
            ask.get(&format!("{path}?{name}=1&{name}=2")).await.refused(400, "invalid_query");
        }
        if !path.ends_with("/stream") {
            for number in ["0", "1", "18446744073709551615"] {
                ask.get(&format!("{path}?limit={number}")).await.ok();
            }
        }
    }
    for query in ["order=up", "projection=all", "order=", "order=ASC"] {
        ask.get(&format!("/agents/main/events?{query}")).await.refused(400, "invalid_query");
    }
    ask.get("/agents/list?cursor=a%2Fb").await.refused(400, "invalid_cursor");
    for cursor in ["", "7", "open-", "ended-x", "open--1", "shut-3", "ended-18446744073709551616"] {
        ask.get(&format!("/agents/main/tasks?cursor={cursor}")).await.refused(400, "invalid_cursor");
    }
    for query in ["posture=busy", "posture=", "posture=Idle", "posture=idle&posture=idle"] {
        ask.get(&format!("/agents?{query}")).await.refused(400, "invalid_query");
    }
    for query in ["offset=-1", "limit_bytes=x", "limit=1"] {
        ask.get(&format!("/agents/main/tasks/task-1/output?{query}")).await.refused(400, "invalid_query");
    }
    ask.get("/agents/list?cursor=zzz").await.ok();
}

#[tokio::test]
async fn creating_an_agent_again_gives_its_record_and_stopping_refuses_its_messages() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    let first = ask.post("/control/agents/other/create", "{}").await.ok();
    let again = ask.post("/control/agents/other/create", json!({"trust": "trusted_operator"})).await.ok();
    assert_eq!(first, again);
    assert_eq!(ask.get("/agents/other/ledger").await.ok()["events"], 1);

    ask.post("/control/agents/other/control", json!({"action": "stop"})).await.ok();
    for (path, body) in [
        ("/agents/other/enqueue", json!({"text": "x"})),
        ("/control/agents/other/prompt", json!({"text": "x"})),
        ("/control/agents/other/wake", json!({"reason": "x"})),
    ] {
        let problem = ask.post(path, body).await.refused(409, "agent_stopped");
        assert!(problem["hint"].as_str().unwrap().contains("start"), "{problem}");
    }
    let status = ask.get("/agents/other/status").await.ok();
    assert_eq!(status["lifecycle"]["resume_required"], true);
    assert_eq!(status["lifecycle"]["resume_cli_hint"], "holon agent start other");
    ask.post("/control/agents/other/control", json!({"action": "start"})).await.ok();
    ask.post("/agents/other/enqueue", json!({"text": "x"})).await.ok();
}

#[tokio::test]
async fn an_abort_may_be_guarded_by_the_run_that_is_meant() {
    let home = Home::new();
    let daemon = worked(&home).await;
    let ask = Ask::new(&daemon);
    let path = "/control/agents/main/current-run/abort";
    daemon.prompt("main", "$ cat gate").await;
    daemon.wait("main", 0, |event| event.kind == "task_started" && event.data["payload"]["task"] == "task-2").await;
    for other in ["run-1", "run-77", "7b2c1f9e-run", ""] {
        let problem = ask.post(path, json!({"run_id": other})).await.refused(409, "stale_run_id");
        assert_eq!((&problem["requested_run_id"], &problem["current_run_id"]), (&json!(other), &json!("run-2")));
    }
    let aborted = ask.post(path, json!({"run_id": "run-2", "mode": "pause_after_abort"})).await.ok();
    assert_eq!((&aborted["run_id"], &aborted["mode"]), (&json!("run-2"), &json!("stop_after_abort")));
    ask.post(path, "{}").await.refused(409, "no_current_run");
}
