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
    GET  /openapi.json                                           read     object
    GET  /metrics                                                read     text/plain
    GET  /models                                                 read     Models
    GET  /schema/events                                          read     Catalogue
    GET  /events/stream                                          read     text/event-stream
    GET  /agents                                                 read     [AgentEntry]
    GET  /agents/list                                            read     [AgentEntry]
    GET  /status                                                 read     Summary
    GET  /state                                                  read     State
    GET  /briefs                                                 read     [Brief]
    GET  /transcript                                             read     [Entry]
    GET  /worktree-summary                                       read     Worktrees
    GET  /agents/{id}/status                                     read     Summary
    GET  /agents/{id}/state                                      read     State
    GET  /agents/{id}/briefs                                     read     [Brief]
    GET  /agents/{id}/transcript                                 read     [Entry]
    GET  /agents/{id}/worktree-summary                           read     Worktrees
    GET  /agents/{id}/skills                                     read     Skills
    GET  /agents/{id}/diagnostics                                read     Diagnostics
    GET  /agents/{id}/messages/{rid}                             read     Message
    GET  /agents/{id}/events                                     read     EventPage
    GET  /agents/{id}/events/stream                              read     text/event-stream
    GET  /agents/{id}/work-items                                 read     [WorkItem]
    GET  /agents/{id}/work-items/{rid}                           read     WorkItem
    GET  /agents/{id}/tasks                                      read     [Task]
    GET  /agents/{id}/tasks/{rid}                                read     Task
    GET  /agents/{id}/tasks/{rid}/output                         read     TaskOutput
    GET  /agents/{id}/timers                                     read     [Timer]
    GET  /agents/{id}/timers/{rid}                               read     Timer
    GET  /agents/{id}/waits                                      read     [Wait]
    GET  /agents/{id}/waits/{rid}                                read     Wait
    GET  /agents/{id}/external-triggers                          read     [Trigger]
    GET  /agents/{id}/external-triggers/{rid}                    read     Trigger
    GET  /agents/{id}/operator-bindings                          read     [Binding]
    GET  /agents/{id}/operator-bindings/{rid}                    read     Binding
    GET  /agents/{id}/operator-notifications                     read     [Notice]
    GET  /agents/{id}/operator-notifications/{rid}               read     Notice
    GET  /ledgers                                                read     [Head]
    GET  /agents/{id}/ledger                                     read     Ledger
    GET  /agents/{id}/ledger/verify                              read     Verification
    GET  /agents/{id}/ledger/prompt                              operate  PastPrompt
    POST /enqueue                                                ingress  Sent
    POST /agents/{id}/enqueue                                    ingress  Sent
    POST /webhooks/generic/{id}                                  open     Sent
    POST /callbacks/wake/{token}                                 open     Delivered
    POST /callbacks/enqueue/{token}                              open     Delivered
    POST /control/agents/{id}/prompt                             operate  Sent
    POST /control/agents/{id}/debug-prompt                       operate  Preview
    POST /control/agents/{id}/wake                               operate  Woken
    POST /control/agents/{id}/messages/{rid}/drop                operate  Sent
    POST /control/agents/{id}/messages/drop                      operate  DroppedMany
    POST /control/agents/{id}/create                             operate  Identity
    POST /control/agents/{id}/control                            operate  Controlled
    POST /control/agents/{id}/archive                            operate  Archived
    POST /control/agents/{id}/current-run/abort                  operate  Aborted
    POST /control/agents/{id}/model                              operate  ModelChosen
    POST /control/agents/{id}/model/clear                        operate  ModelChosen
    POST /control/agents/{id}/work-items                         operate  WorkItem
    POST /control/agents/{id}/work-items/{rid}/update            operate  WorkItemDone
    POST /control/agents/{id}/work-items/{rid}/pick              operate  WorkItemDone
    POST /control/agents/{id}/work-items/{rid}/complete          operate  WorkItemDone
    POST /control/agents/{id}/tasks                              operate  Task
    POST /control/agents/{id}/tasks/{rid}/input                  operate  TaskDone
    POST /control/agents/{id}/tasks/{rid}/stop                   operate  TaskDone
    POST /control/agents/{id}/timers                             operate  Timer
    POST /control/agents/{id}/timers/{rid}/cancel                operate  TimerDone
    POST /control/agents/{id}/waits/{rid}/cancel                 operate  WaitDone
    POST /control/agents/{id}/external-triggers                  operate  Trigger
    POST /control/agents/{id}/external-triggers/{rid}/revoke     operate  TriggerDone
    POST /control/agents/{id}/operator-bindings                  operate  Bound
    POST /control/agents/{id}/operator-bindings/{rid}/revoke     operate  Binding
    POST /control/agents/{id}/operator-ingress                   ingress  Sent
    POST /control/agents/{id}/webhook-secret                     admin    WebhookSecretDone
    POST /control/agents/{id}/workspace/attach                   operate  WorkspaceAttached
    POST /control/agents/{id}/workspace/exit                     operate  Done
    POST /control/agents/{id}/workspace/detach                   operate  WorkspaceDone
    POST /control/agents/{id}/skills/install                     operate  SkillDone
    POST /control/agents/{id}/skills/uninstall                   operate  SkillDone
    GET  /control/runtime/status                                 read     RuntimeStatus
    GET  /control/runtime/readiness                              read     Readiness
    POST /control/runtime/shutdown                               admin    ShuttingDown
    GET  /home/events                                            operate  EventPage
    GET  /home/events/stream                                     operate  text/event-stream
    GET  /home/ledger                                            read     Ledger
    GET  /home/ledger/verify                                     read     Verification
    GET  /control/tokens                                         admin    [Token]
    POST /control/tokens                                         admin    TokenMade
    POST /control/tokens/{rid}/revoke                            admin    TokenRevoked
";

fn line(operation: &Operation) -> String {
    // Every route that asks for a token says which scope it must have.
    let scope = if operation.is_guarded() { operation.scope().expect("a scope") } else { "open" };
    format!("{} {} {scope} {}", operation.method, operation.template, answer(operation))
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
