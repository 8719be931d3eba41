//! The routes that the control-plane seed and the wire page promise: each is there, for whom, with what answer, and
//! refuses alike.

use crate::ask::{Ask, Told};
use crate::daemon::{Daemon, Home};
use crate::openapi::{Operation, operations};
use serde_json::{Value, json};

/// Method, path, `open` or `guarded`, and the shape of a success. A list is in brackets, a text has its media type.
const TABLE: &str = "
    GET  /                                                       open     Root
    GET  /handshake                                              open     Handshake
    GET  /healthz                                                open     Ok
    GET  /readyz                                                 open     Ok
    GET  /openapi.json                                           guarded  object
    GET  /metrics                                                guarded  text/plain
    GET  /models                                                 guarded  Models
    GET  /schema/events                                          guarded  Catalogue
    GET  /events/stream                                          guarded  text/event-stream
    GET  /agents                                                 guarded  [AgentEntry]
    GET  /agents/list                                            guarded  [AgentEntry]
    GET  /status                                                 guarded  Summary
    GET  /state                                                  guarded  State
    GET  /briefs                                                 guarded  [Brief]
    GET  /transcript                                             guarded  [Entry]
    GET  /worktree-summary                                       guarded  Worktrees
    GET  /agents/{id}/status                                     guarded  Summary
    GET  /agents/{id}/state                                      guarded  State
    GET  /agents/{id}/briefs                                     guarded  [Brief]
    GET  /agents/{id}/transcript                                 guarded  [Entry]
    GET  /agents/{id}/worktree-summary                           guarded  Worktrees
    GET  /agents/{id}/skills                                     guarded  Skills
    GET  /agents/{id}/diagnostics                                guarded  Diagnostics
    GET  /agents/{id}/messages/{rid}                             guarded  Message
    GET  /agents/{id}/events                                     guarded  EventPage
    GET  /agents/{id}/events/stream                              guarded  text/event-stream
    GET  /agents/{id}/work-items                                 guarded  [WorkItem]
    GET  /agents/{id}/work-items/{rid}                           guarded  WorkItem
    GET  /agents/{id}/tasks                                      guarded  [Task]
    GET  /agents/{id}/tasks/{rid}                                guarded  Task
    GET  /agents/{id}/tasks/{rid}/output                         guarded  TaskOutput
    GET  /agents/{id}/timers                                     guarded  [Timer]
    GET  /agents/{id}/timers/{rid}                               guarded  Timer
    GET  /agents/{id}/waits                                      guarded  [Wait]
    GET  /agents/{id}/waits/{rid}                                guarded  Wait
    GET  /agents/{id}/external-triggers                          guarded  [Trigger]
    GET  /agents/{id}/external-triggers/{rid}                    guarded  Trigger
    GET  /agents/{id}/operator-bindings                          guarded  [Binding]
    GET  /agents/{id}/operator-bindings/{rid}                    guarded  Binding
    GET  /agents/{id}/operator-notifications                     guarded  [Notice]
    GET  /agents/{id}/operator-notifications/{rid}               guarded  Notice
    GET  /ledgers                                                guarded  [Head]
    GET  /agents/{id}/ledger                                     guarded  Ledger
    GET  /agents/{id}/ledger/verify                              guarded  Verification
    GET  /agents/{id}/ledger/prompt                              guarded  PastPrompt
    POST /enqueue                                                guarded  Sent
    POST /agents/{id}/enqueue                                    guarded  Sent
    POST /webhooks/generic/{id}                                  open     Sent
    POST /callbacks/wake/{token}                                 open     Delivered
    POST /callbacks/enqueue/{token}                              open     Delivered
    POST /control/agents/{id}/prompt                             guarded  Sent
    POST /control/agents/{id}/debug-prompt                       guarded  Preview
    POST /control/agents/{id}/wake                               guarded  Woken
    POST /control/agents/{id}/messages/{rid}/drop                guarded  Sent
    POST /control/agents/{id}/messages/drop                      guarded  DroppedMany
    POST /control/agents/{id}/create                             guarded  Identity
    POST /control/agents/{id}/control                            guarded  Controlled
    POST /control/agents/{id}/archive                            guarded  Archived
    POST /control/agents/{id}/current-run/abort                  guarded  Aborted
    POST /control/agents/{id}/model                              guarded  ModelChosen
    POST /control/agents/{id}/model/clear                        guarded  ModelChosen
    POST /control/agents/{id}/work-items                         guarded  WorkItem
    POST /control/agents/{id}/work-items/{rid}/update            guarded  WorkItemDone
    POST /control/agents/{id}/work-items/{rid}/pick              guarded  WorkItemDone
    POST /control/agents/{id}/work-items/{rid}/complete          guarded  WorkItemDone
    POST /control/agents/{id}/tasks                              guarded  Task
    POST /control/agents/{id}/tasks/{rid}/input                  guarded  TaskDone
    POST /control/agents/{id}/tasks/{rid}/stop                   guarded  TaskDone
    POST /control/agents/{id}/timers                             guarded  Timer
    POST /control/agents/{id}/timers/{rid}/cancel                guarded  TimerDone
    POST /control/agents/{id}/waits/{rid}/cancel                 guarded  WaitDone
    POST /control/agents/{id}/external-triggers                  guarded  Trigger
    POST /control/agents/{id}/external-triggers/{rid}/revoke     guarded  TriggerDone
    POST /control/agents/{id}/operator-bindings                  guarded  Bound
    POST /control/agents/{id}/operator-bindings/{rid}/revoke     guarded  Binding
    POST /control/agents/{id}/operator-ingress                   guarded  Sent
    POST /control/agents/{id}/webhook-secret                     guarded  WebhookSecretDone
    POST /control/agents/{id}/workspace/attach                   guarded  WorkspaceAttached
    POST /control/agents/{id}/workspace/exit                     guarded  Done
    POST /control/agents/{id}/workspace/detach                   guarded  WorkspaceDone
    POST /control/agents/{id}/skills/install                     guarded  SkillDone
    POST /control/agents/{id}/skills/uninstall                   guarded  SkillDone
    GET  /control/runtime/status                                 guarded  RuntimeStatus
    GET  /control/runtime/readiness                              guarded  Readiness
    POST /control/runtime/shutdown                               guarded  ShuttingDown
";

fn line(operation: &Operation) -> String {
    let guarded = if operation.is_guarded() { "guarded" } else { "open" };
    format!("{} {} {guarded} {}", operation.method, operation.template, answer(operation))
}

fn answer(operation: &Operation) -> String {
    let content = operation.told["responses"]["200"]["content"].as_object().expect("content");
    let (media_type, told) = content.iter().next().expect("one media type");
    let schema = &told["schema"];
    let name = |schema: &Value| schema["$ref"].as_str().map(|path| path.rsplit('/').next().unwrap().to_owned());
    match (media_type.as_str(), name(schema), name(&schema["items"])) {
        ("application/json", Some(shape), _) => shape,
        ("application/json", None, Some(shape)) => format!("[{shape}]"),
        ("application/json", None, None) => schema["type"].as_str().expect("a type").to_owned(),
        (text, ..) => text.to_owned(),
    }
}

#[test]
fn every_promised_route_is_there_for_whom_and_with_the_answer_that_was_promised() {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut promised: Vec<String> = TABLE.lines().map(words).filter(|line| !line.is_empty()).collect();
    let mut documented: Vec<String> = operations().iter().map(line).collect();
    promised.sort();
    documented.sort();
    assert_eq!(documented, promised);
}

/// Asks an operation of another agent, with its example.
async fn ask_of(daemon: &Daemon, operation: &Operation, agent: &str) -> Told {
    let path = operation.path().replacen("/main", &format!("/{agent}"), 1);
    let query = operation.parameters("query").filter(|parameter| parameter["required"] == true);
    let query: Vec<String> = query.map(|told| format!("{}={}", text(&told["name"]), text(&told["example"]))).collect();
    let ask = Ask::new(daemon);
    match operation.body() {
        Some((_, example)) => ask.post(&path, example).await,
        None => ask.get(&format!("{path}?{}", query.join("&"))).await,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn of_an_agent() -> Vec<Operation> {
    let of_one = |operation: &Operation| operation.template.contains("/{id}/") || operation.template.ends_with("/{id}");
    operations().into_iter().filter(of_one).collect()
}

#[tokio::test]
async fn an_agent_that_is_not_there_is_told_alike_everywhere() {
    let daemon = Home::new().serve();
    for operation in of_an_agent().iter().filter(|operation| !operation.template.ends_with("/create")) {
        ask_of(&daemon, operation, "nobody").await.refused(404, "agent_not_found");
    }
    assert_eq!(daemon.get("/ledgers").await.as_array().map(Vec::len), Some(1), "asking for an agent makes none");
}

#[tokio::test]
async fn a_private_agent_is_its_parents_to_alter_and_anybodys_to_read() {
    let home = Home::new();
    let (gate, mut signs) = (home.gate("gate"), home.signs("signs"));
    let daemon = home.serve();
    daemon.prompt("main", "spawn: $ echo > signs; read go < gate").await;
    signs.next().await;
    for operation in of_an_agent().iter().filter(|operation| !operation.template.ends_with("/stream")) {
        let told = ask_of(&daemon, operation, "main.c1").await;
        match operation.method.as_str() {
            "GET" if operation.template.contains("{rid}") && told.status != 200 => {
                assert_eq!(told.status, 404, "{}", operation.template);
            }
            "GET" => assert_eq!(told.status, 200, "{}: {}", operation.template, told.text),
            _ if operation.template.ends_with("/create") => drop(told.refused(400, "invalid_agent_id")),
            _ => drop(told.refused(403, "agent_private")),
        }
    }
    gate.open();
}

#[tokio::test]
async fn an_agent_that_has_ended_is_read_and_not_altered() {
    let daemon = Home::new().serve();
    daemon.create("gone").await;
    let archived = daemon.post("/control/agents/gone/archive", json!({})).await;
    assert_eq!(archived["lifecycle"], "archived");
    let before = daemon.head("gone").await;
    for operation in of_an_agent().iter().filter(|operation| !operation.template.ends_with("/stream")) {
        let told = ask_of(&daemon, operation, "gone").await;
        match operation.method.as_str() {
            "GET" if operation.template.contains("{rid}") || operation.template.ends_with("/prompt") => {
                assert_eq!(told.status, 404, "{}", operation.template);
            }
            "GET" => assert_eq!(told.status, 200, "{}: {}", operation.template, told.text),
            _ if operation.template.ends_with("/archive") => drop(told.ok()),
            _ => drop(told.refused(410, "agent_archived")),
        }
    }
    assert_eq!(daemon.head("gone").await, before);
}
