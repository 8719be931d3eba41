//! What each tool refuses, and the kind and field by which it says so: a model acts on them.

use crate::story::tell;
use crate::world::{World, call};
use holon::decide::profile::grants;
use holon::events::agent::Preset;
use holon::events::call::{Action, CallError, CallResult};
use holon::events::turn::{Entry, StopReason, TurnEvent};
use holon::events::{Envelope, Event};
use holon::tools::{self, Tool};
use holon::words::limit::{CALL_TEXT_BYTES_MAX, MEMORY_ENTRY_BYTES_MAX, NOTE_BYTES_MAX};
use serde_json::{Map, Value, json};

const INVALID: &str = "invalid_tool_input";

/// A tool, the least that it takes, and what it refuses beyond what its schema says: arguments, and the field they
/// fail by, or the code when it is no field's fault. `NOTE`, `PAGE` and `TEXT` stand for texts that are too long for a
/// short text, a note of the memory, and any text.
struct Row {
    tool: &'static str,
    takes: &'static str,
    refuses: &'static [(&'static str, &'static str)],
}

const ROWS: &[Row] = &[
    Row {
        tool: "ExecCommand",
        takes: r#"{"cmd":"ls"}"#,
        refuses: &[
            (r#"{"cmd":"  "}"#, "cmd"),
            (r#"{"cmd":"a\u0000b"}"#, "cmd"),
            (r#"{"cmd":"TEXT"}"#, "cmd"),
            (r#"{"cmd":"ls","workdir":"\u0000"}"#, "workdir"),
            (r#"{"cmd":"ls","shell":"TEXT"}"#, "shell"),
            (r#"{"cmd":"ls","duplicate_policy":"never"}"#, "duplicate_policy"),
            (r#"{"cmd":"ls","yield_time_ms":-1}"#, "yield_time_ms"),
        ],
    },
    Row {
        tool: "TaskOutput",
        takes: r#"{"task_id":"task-1"}"#,
        refuses: &[
            (r#"{"task_id":"7"}"#, "task_id"),
            (r#"{"task_id":"work-1"}"#, "task_id"),
            (r#"{"task_id":"task-9"}"#, "not_found"),
        ],
    },
    Row { tool: "TaskList", takes: "{}", refuses: &[] },
    Row { tool: "TaskStatus", takes: r#"{"task_id":"task-1"}"#, refuses: &[(r#"{"task_id":"first"}"#, "task_id")] },
    Row {
        tool: "TaskInput",
        takes: r#"{"task_id":"task-2","text":"yes"}"#,
        refuses: &[
            (r#"{"task_id":"x","text":"yes"}"#, "task_id"),
            (r#"{"task_id":"task-1","text":"yes"}"#, "task_id"),
            (r#"{"task_id":"task-2","text":""}"#, "text"),
            (r#"{"task_id":"task-2","text":"TEXT"}"#, "text"),
            (r#"{"task_id":"task-3","text":"yes"}"#, "has_ended"),
            (r#"{"task_id":"task-9","text":"yes"}"#, "not_found"),
        ],
    },
    Row {
        tool: "TaskStop",
        takes: r#"{"task_id":"task-1"}"#,
        refuses: &[
            (r#"{"task_id":""}"#, "task_id"),
            (r#"{"task_id":"task-3"}"#, "has_ended"),
            (r#"{"task_id":"task-9"}"#, "not_found"),
        ],
    },
    Row {
        tool: "CreateWorkItem",
        takes: r#"{"objective":"ship"}"#,
        refuses: &[
            (r#"{"objective":" "}"#, "objective"),
            (r#"{"objective":"NOTE"}"#, "objective"),
            (r#"{"objective":"a","plan":"TEXT"}"#, "plan"),
            (r#"{"objective":"a","plan_status":"done"}"#, "plan_status"),
            (r#"{"objective":"a","acceptance":"TEXT"}"#, "acceptance"),
            (r#"{"objective":"a","delivery_target":"NOTE"}"#, "delivery_target"),
            (r#"{"objective":"a","depends_on":["7"]}"#, "depends_on"),
            (r#"{"objective":"a","depends_on":["work-9"]}"#, "depends_on"),
            (r#"{"objective":"a","parent_work_item_id":"x"}"#, "parent_work_item_id"),
            (r#"{"objective":"a","parent_work_item_id":"work-9"}"#, "parent_work_item_id"),
            (r#"{"objective":"a","todo_list":[{"text":" ","status":"pending"}]}"#, "todo_list"),
            (r#"{"objective":"a","todo_list":[{"text":"b","status":"soon"}]}"#, "todo_list"),
            (r#"{"objective":"a","todo_list":[{"text":"b"}]}"#, "status"),
        ],
    },
    Row {
        tool: "UpdateWorkItem",
        takes: r#"{"work_item_id":"work-1"}"#,
        refuses: &[
            (r#"{"work_item_id":"1"}"#, "work_item_id"),
            (r#"{"work_item_id":"work-2"}"#, "has_ended"),
            (r#"{"work_item_id":"work-9"}"#, "not_found"),
            (r#"{"work_item_id":"work-1","objective":""}"#, "objective"),
            (r#"{"work_item_id":"work-1","plan":"TEXT"}"#, "plan"),
            (r#"{"work_item_id":"work-1","blocker":" "}"#, "blocker"),
            (r#"{"work_item_id":"work-1","blocker":"NOTE"}"#, "blocker"),
            (r#"{"work_item_id":"work-1","blocker":"key","clear_blocker":true}"#, "clear_blocker"),
            (r#"{"work_item_id":"work-1","blocker":"key","recheck_after_ms":0}"#, "recheck_after_ms"),
            (r#"{"work_item_id":"work-1","recheck_after_ms":9000}"#, "recheck_after_ms"),
            (r#"{"work_item_id":"work-1","depends_on":["work-1"]}"#, "depends_on"),
            (r#"{"work_item_id":"work-1","parent_work_item_id":"work-1"}"#, "parent_work_item_id"),
        ],
    },
    Row {
        tool: "PickWorkItem",
        takes: r#"{"work_item_id":"work-1"}"#,
        refuses: &[
            (r#"{"work_item_id":"x"}"#, "work_item_id"),
            (r#"{"work_item_id":"work-2"}"#, "has_ended"),
            (r#"{"work_item_id":"work-9"}"#, "not_found"),
        ],
    },
    Row { tool: "ListWorkItems", takes: "{}", refuses: &[] },
    Row {
        tool: "GetWorkItem",
        takes: r#"{"work_item_id":"work-1"}"#,
        refuses: &[(r#"{"work_item_id":"task-1"}"#, "work_item_id")],
    },
    Row {
        tool: "CompleteWorkItem",
        takes: r#"{"work_item_id":"work-1"}"#,
        refuses: &[
            (r#"{"work_item_id":"x"}"#, "work_item_id"),
            (r#"{"work_item_id":"work-9"}"#, "not_found"),
            (r#"{"work_item_id":"work-1","result_summary":"TEXT"}"#, "result_summary"),
        ],
    },
    Row { tool: "Sleep", takes: "{}", refuses: &[] },
    Row {
        tool: "WaitFor",
        takes: r#"{"reason":"which","wake":"operator_input"}"#,
        refuses: &[
            (r#"{"reason":" ","wake":"operator_input"}"#, "reason"),
            (r#"{"reason":"NOTE","wake":"operator_input"}"#, "reason"),
            (r#"{"reason":"a","wake":"never"}"#, "wake"),
            (r#"{"reason":"a","wake":"timer"}"#, "after_ms"),
            (r#"{"reason":"a","wake":"timer","after_ms":0}"#, "after_ms"),
            (r#"{"reason":"a","wake":"operator_input","after_ms":5}"#, "after_ms"),
            (r#"{"reason":"a","wake":"task_result"}"#, "resource"),
            (r#"{"reason":"a","wake":"task_result","resource":"work-1"}"#, "resource"),
            (r#"{"reason":"a","wake":"task_result","resource":"task-9"}"#, "resource"),
            (r#"{"reason":"a","wake":"external","resource":"NOTE"}"#, "resource"),
            (r#"{"reason":"a","wake":"external","recheck_after_ms":0}"#, "recheck_after_ms"),
            (r#"{"reason":"a","wake":"external","no_fallback_reason":"NOTE"}"#, "no_fallback_reason"),
            (r#"{"reason":"a","wake":"external","recheck_after_ms":9,"no_fallback_reason":"b"}"#, "no_fallback_reason"),
            (r#"{"reason":"a","wake":"operator_input","no_fallback_reason":"b"}"#, "no_fallback_reason"),
            (r#"{"reason":"a","wake":"external","work_item_id":"x"}"#, "work_item_id"),
            (r#"{"reason":"a","wake":"external","work_item_id":"work-2"}"#, "work_item_id"),
        ],
    },
    Row {
        tool: "CreateTimer",
        takes: r#"{"duration_ms":5000}"#,
        refuses: &[
            (r#"{"duration_ms":0}"#, "duration_ms"),
            (r#"{"duration_ms":-1}"#, "duration_ms"),
            (r#"{"duration_ms":9999999999999}"#, "duration_ms"),
            (r#"{"duration_ms":5000,"interval_ms":10}"#, "interval_ms"),
            (r#"{"duration_ms":5000,"summary":"NOTE"}"#, "summary"),
        ],
    },
    Row { tool: "ListTimers", takes: "{}", refuses: &[] },
    Row {
        tool: "CancelTimer",
        takes: r#"{"timer_id":"timer-2"}"#,
        refuses: &[
            (r#"{"timer_id":"x"}"#, "timer_id"),
            (r#"{"timer_id":"timer-1"}"#, "has_ended"),
            (r#"{"timer_id":"timer-9"}"#, "not_found"),
        ],
    },
    Row {
        tool: "CreateExternalTrigger",
        takes: r#"{"mode":"wake","label":"ci"}"#,
        refuses: &[
            (r#"{"mode":"shout","label":"ci"}"#, "mode"),
            (r#"{"mode":"wake","label":" "}"#, "label"),
            (r#"{"mode":"wake","label":"NOTE"}"#, "label"),
            (r#"{"mode":"wake","label":"ci","work_item_id":"x"}"#, "work_item_id"),
            (r#"{"mode":"wake","label":"ci","work_item_id":"work-2"}"#, "work_item_id"),
        ],
    },
    Row {
        tool: "CancelExternalTrigger",
        takes: r#"{"external_trigger_id":"trigger-2"}"#,
        refuses: &[
            (r#"{"external_trigger_id":"x"}"#, "external_trigger_id"),
            (r#"{"external_trigger_id":"trigger-1"}"#, "has_ended"),
            (r#"{"external_trigger_id":"trigger-9"}"#, "not_found"),
        ],
    },
    Row {
        tool: "SpawnAgent",
        takes: r#"{"initial_message":"help"}"#,
        refuses: &[
            ("{}", "initial_message"),
            (r#"{"initial_message":" "}"#, "initial_message"),
            (r#"{"initial_message":"TEXT"}"#, "initial_message"),
            (r#"{"initial_message":"a","preset":"twin"}"#, "preset"),
            (r#"{"initial_message":"a","context":"all"}"#, "context"),
            (r#"{"initial_message":"a","template":"clerk"}"#, "template"),
            (r#"{"initial_message":"a","agent_id":"b"}"#, "agent_id"),
            (r#"{"preset":"public_named"}"#, "agent_id"),
            (r#"{"preset":"public_named","agent_id":".hidden"}"#, "agent_id"),
            (r#"{"preset":"public_named","agent_id":"main.c1"}"#, "agent_id"),
            (r#"{"preset":"public_named","agent_id":"NOTE"}"#, "agent_id"),
            (r#"{"preset":"public_named","agent_id":"b","workspace_mode":"worktree"}"#, "workspace_mode"),
            (r#"{"initial_message":"a","workspace_mode":"none"}"#, "workspace_mode"),
            (r#"{"initial_message":"a","workspace_mode":"explicit_root"}"#, "workspace_root"),
            (r#"{"initial_message":"a","workspace_root":"/work"}"#, "workspace_root"),
            (r#"{"initial_message":"a","workspace_mode":"explicit_root","workspace_root":"\u0000"}"#, "workspace_root"),
        ],
    },
    Row { tool: "AgentGet", takes: "{}", refuses: &[] },
    Row {
        tool: "Enqueue",
        takes: r#"{"text":"later"}"#,
        refuses: &[(r#"{"text":" "}"#, "text"), (r#"{"text":"TEXT"}"#, "text")],
    },
    Row {
        tool: "NotifyOperator",
        takes: r#"{"message":"so far"}"#,
        refuses: &[(r#"{"message":""}"#, "message"), (r#"{"message":"TEXT"}"#, "message")],
    },
    Row {
        tool: "MemoryUpdate",
        takes: r#"{"entry":"colour","text":"red"}"#,
        refuses: &[
            (r#"{"entry":" ","text":"red"}"#, "entry"),
            (r#"{"entry":"two\nlines","text":"red"}"#, "entry"),
            (r#"{"entry":"NOTE","text":"red"}"#, "entry"),
            (r#"{"entry":"colour","text":"PAGE"}"#, "text"),
            (r#"{"entry":"colour","text":"TEXT"}"#, "text"),
            (r#"{"entry":"colour","text":"red","work_item_id":"x"}"#, "work_item_id"),
            (r#"{"entry":"colour","text":"red","work_item_id":"work-2"}"#, "work_item_id"),
            (r#"{"entry":"of which there is none"}"#, "not_found"),
        ],
    },
    Row { tool: "MemoryGet", takes: "{}", refuses: &[(r#"{"entry":" "}"#, "entry")] },
    Row {
        tool: "ReadFile",
        takes: r#"{"path":"a.txt"}"#,
        refuses: &[
            (r#"{"path":"\u0000"}"#, "path"),
            (r#"{"path":"TEXT"}"#, "path"),
            (r#"{"path":"a.txt","first_line":0}"#, "first_line"),
            (r#"{"path":"a.txt","max_lines":-1}"#, "max_lines"),
        ],
    },
    Row {
        tool: "SearchFiles",
        takes: r#"{"pattern":"todo"}"#,
        refuses: &[
            (r#"{"pattern":""}"#, "pattern"),
            (r#"{"pattern":"TEXT"}"#, "pattern"),
            (r#"{"pattern":"a","path":"\u0000"}"#, "path"),
            (r#"{"pattern":"a","glob":"\u0000"}"#, "glob"),
        ],
    },
    Row {
        tool: "ApplyPatch",
        takes: r#"{"patch":"--- a"}"#,
        refuses: &[(r#"{"patch":"\n"}"#, "patch"), (r#"{"patch":"TEXT"}"#, "patch")],
    },
    Row {
        tool: "UseWorkspace",
        takes: r#"{"workspace_id":"agent_home"}"#,
        refuses: &[
            (r#"{"workspace_id":"x"}"#, "workspace_id"),
            (r#"{"workspace_id":"agent_home","cwd":"\u0000"}"#, "cwd"),
            (r#"{"workspace_id":"ws-9"}"#, "not_found"),
        ],
    },
    Row {
        tool: "AttachWorkspace",
        takes: r#"{"path":"/work"}"#,
        refuses: &[(r#"{"path":" "}"#, "path"), (r#"{"path":"\u0000"}"#, "path"), (r#"{"path":"TEXT"}"#, "path")],
    },
    Row {
        tool: "DetachWorkspace",
        takes: r#"{"workspace_id":"ws-1"}"#,
        refuses: &[
            (r#"{"workspace_id":"agent_home"}"#, "workspace_id"),
            (r#"{"workspace_id":"ws-2"}"#, "workspace_id"),
            (r#"{"workspace_id":"ws-9"}"#, "not_found"),
        ],
    },
];

/// An agent in a turn, with one of everything that is open, and one of everything that has ended.
const BEFORE: &[&str] = &[
    "attach /other",
    "attach /work",
    "prompt go",
    "begin",
    "round",
    r#"answer | CreateWorkItem {"objective":"ship"} | CreateWorkItem {"objective":"mow","focus":false} | CompleteWorkItem {"work_item_id":"work-2"} | CreateTimer {"duration_ms":5000} | CancelTimer {"timer_id":"timer-1"} | CreateTimer {"duration_ms":5000} | CreateExternalTrigger {"mode":"wake","label":"ci"} | CreateExternalTrigger {"mode":"wake","label":"ci"} | CancelExternalTrigger {"external_trigger_id":"trigger-1"} | exec serve | SpawnAgent {"initial_message":"help"} | exec make"#,
    "call",
    "bring one",
    "call",
    "bring two",
    "run task-1",
    "promote task-1",
    "call",
    "bring",
    "run task-3",
    "exit task-3 0 made",
    "round",
];

fn before() -> World {
    let mut world = World::new();
    for line in BEFORE {
        let told = tell(&mut world, line);
        assert!(told.iter().all(|told| !told.starts_with('!') && !told.contains("refused")), "{line}: {told:?}");
    }
    world
}

/// The refusal that the last call came to; none if it came to something else, or to nothing yet.
fn refusal(world: &World) -> Option<CallError> {
    match &world.ledger.last()?.event {
        Event::Turn(TurnEvent::Entry(entry)) => match &entry.entry {
            Entry::ToolResult { result: CallResult::Refused(error), .. } => Some(error.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn filled(arguments: &str) -> String {
    let long = |bytes_max: usize| "x".repeat(bytes_max + 1);
    let page = long(MEMORY_ENTRY_BYTES_MAX);
    arguments.replace("NOTE", &long(NOTE_BYTES_MAX)).replace("PAGE", &page).replace("TEXT", &long(CALL_TEXT_BYTES_MAX))
}

/// The call as it is read, before anything is decided on it.
fn read(tool: &str, arguments: &str) -> Action {
    tools::read_calls(&[call(tool, arguments)], StopReason::ToolUse).0.remove(0).action
}

fn refused(tool: &str, arguments: &str) -> (String, Option<String>) {
    match read(tool, arguments) {
        Action::Refused(error) => (error.kind, error.field),
        action => panic!("{tool} {arguments} is read as {action:?}"),
    }
}

fn field(name: &str) -> (String, Option<String>) {
    (INVALID.to_owned(), Some(name.to_owned()))
}

fn catalogue() -> impl Iterator<Item = &'static Tool> {
    tools::PLANES.iter().flat_map(|tools| tools.iter())
}

#[test]
fn a_tool_that_there_is_not_is_refused() {
    assert_eq!(refused("Fly", "{}"), ("unknown_tool".into(), None));
}

#[test]
fn every_tool_has_its_row() {
    let tools: Vec<&str> = catalogue().map(|tool| tool.name).collect();
    let rows: Vec<&str> = ROWS.iter().map(|row| row.tool).collect();
    assert_eq!(rows, tools);
}

/// What a schema says: nothing is missing, nothing is unknown, and all is of its type.
#[test]
fn what_does_not_fit_the_schema_is_refused_by_its_field() {
    for (row, schema) in ROWS.iter().zip(tools::schemas(Preset::PublicNamed)) {
        let (tool, takes): (&str, Map<String, Value>) = (row.tool, serde_json::from_str(row.takes).expect("an object"));
        assert!(!matches!(read(tool, row.takes), Action::Refused(_)), "{tool} takes {}", row.takes);
        let with = |name: &str, value: Value| {
            let mut arguments = takes.clone();
            arguments.insert(name.to_owned(), value);
            Value::Object(arguments).to_string()
        };
        assert_eq!(refused(tool, &with("colour", json!("red"))), field("colour"));
        let schema: Value = serde_json::from_str(&schema.parameters).expect("JSON");
        for name in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
            let odd = with(name, json!({"`odd`": [1]}));
            assert_eq!(refused(tool, &odd), field(name), "{tool} {odd}");
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let mut arguments = takes.clone();
            arguments.remove(name).expect("what is required is among the least");
            assert_eq!(refused(tool, &Value::Object(arguments).to_string()), field(name));
        }
        for arguments in ["{", "[]", "null", "\"ls\"", "7"] {
            assert_eq!(refused(tool, arguments), (INVALID.to_owned(), None), "{tool} {arguments}");
        }
    }
}

#[test]
fn what_a_tool_refuses_is_recorded_by_kind_and_field_and_the_turn_goes_on() {
    for row in ROWS {
        for (arguments, fault) in row.refuses {
            let mut world = before();
            tell(&mut world, &format!("answer trying | {} {}", row.tool, filled(arguments)));
            if refusal(&world).is_none() {
                tell(&mut world, "call");
                tell(&mut world, "bring three");
            }
            let Some(error) = refusal(&world) else { panic!("{} {arguments} is not refused", row.tool) };
            let is_code = matches!(*fault, "not_found" | "has_ended");
            let expected = if is_code { ((*fault).to_owned(), None) } else { field(fault) };
            assert_eq!((error.kind.clone(), error.field.clone()), expected, "{} {arguments}: {error:?}", row.tool);
            let told = tell(&mut world, "round");
            assert!(told[0].starts_with("round 3"), "{} {arguments}: {told:?}", row.tool);
        }
    }
}

#[test]
fn a_private_child_is_refused_what_its_preset_does_not_grant_and_its_turn_goes_on() {
    let withheld: Vec<&Row> = catalogue()
        .filter(|tool| !grants(Preset::PrivateChild, tool.family))
        .filter_map(|tool| ROWS.iter().find(|row| row.tool == tool.name))
        .collect();
    let names: Vec<&str> = withheld.iter().map(|row| row.tool).collect();
    assert_eq!(names, ["SpawnAgent", "AttachWorkspace", "DetachWorkspace"]);
    let seen = tools::schemas(Preset::PrivateChild);
    assert!(seen.iter().all(|tool| !names.contains(&tool.name.as_str())), "it is not told of them either");

    let mut world = before();
    let child = world.children.keys().next().expect("one was born").clone();
    let child = world.child(&child);
    ["begin", "round"].iter().for_each(|line| drop(tell(child, line)));
    for (round, row) in (2..).zip(withheld) {
        let before = child.ledger.len();
        tell(child, &format!("answer trying | {} {}", row.tool, row.takes));
        assert_eq!(refusal(child).map(|error| error.kind).as_deref(), Some("not_granted"), "{}", row.tool);
        let kinds: Vec<&str> = child.ledger[before..].iter().map(|envelope: &Envelope| envelope.event.kind()).collect();
        assert_eq!(kinds, ["turn_entry", "turn_entry"], "{} changes nothing", row.tool);
        assert!(tell(child, "round")[0].starts_with(&format!("round {round}")));
    }
    assert!(tell(child, "answer then by hand").iter().any(|told| told.starts_with("run-1 completed")));
}
