//! What a story can tell of the world around an agent, and of its planes.
//!
//! | command | meaning |
//! |---|---|
//! | `open OBJECTIVE`, `alter WORK JSON`, `pick WORK`, `complete WORK REPORT` | the operator tends work items |
//! | `continue WORK`, `recheck` | what the runtime does for work when its time has come |
//! | `timer MS [every MS] SUMMARY`, `cancel TIMER`, `fire TIMER` | |
//! | `cancel WAIT`, `due WAIT` | |
//! | `trigger MODE TOKEN LABEL`, `revoke TRIGGER`, `callback MODE TOKEN TEXT` | |
//! | `secret [keeps\|none]` | what webhooks are signed with is set, beside the one before; or cleared |
//! | `signed TEXT`, `unsigned TEXT` | a webhook comes |
//! | `attach PATH`, `leave`, `detach WORKSPACE`, `settle TASK FATE` | `FATE` is `retained`, `removed` or `left` |
//! | `install SKILL SOURCE MODE`, `uninstall SKILL` | a skill whose folder is there, or goes |
//! | `begin-guided TEXT` | a turn begins, and the agent's AGENTS.md says so |
//! | `call` | the call that is next is begun at the outside |
//! | `bring [DETAIL]` | it comes back with what such calls bring; `refused KIND` with a refusal |
//! | `command CMD` | the operator has a command run |
//! | `input TASK TEXT`, `delivered TASK`, `end TASK` | |
//! | `direct TASK`, `hand TASK` | a child is made what it is to be; the first input it is owed reaches it |
//! | `take CHILD` | what a child owes first is taken in |
//! | `bear CHILD` | the same, and the child does not come to hear of it |
//! | `of CHILD COMMAND` | the command is told to a child |

use super::script::split;
use super::show;
use crate::world::World;
use holon::decide::agent::AgentCommand;
use holon::decide::birth::{NewChild, child_id};
use holon::decide::call::CallEnd;
use holon::decide::errand::{Errand, Matter};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::task::TaskCommand;
use holon::decide::trigger::NewCallback;
use holon::decide::turn::TurnCommand;
use holon::decide::waiting::WaitingCommand;
use holon::decide::work::WorkCommand;
use holon::decide::workspace::{GuidanceFile, Resolved, WorkspaceCommand, WorktreeFate};
use holon::decide::{Command, Request};
use holon::events::Cause;
use holon::events::agent::ErrandOutcome;
use holon::events::call::{
    Action, CallError, CallResult, ContextMode, ExecRequest, FileChange, PatchedFile, SpawnRequest,
};
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::task::{CommandSpec, WorkspaceMode};
use holon::events::waiting::DeliveryMode;
use holon::events::work::WorkChange;
use holon::events::workspace::{
    GuidanceScope, Projection, SkillMode, SkillSource, WorkspaceName, Worktree, WorktreeSummary,
};
use holon::fold::outbox::Delivery;
use holon::fold::owed::Effect;
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, EventSeq, SkillName, TaskId, TimerId, WaitId};
use std::str::FromStr;

/// The command that `verb` stands for; none if it is of another table.
pub fn read(world: &mut World, verb: &str, rest: &str) -> Option<Command> {
    work(verb, rest)
        .map(Command::from)
        .or_else(|| waiting(world, verb, rest).map(Command::from))
        .or_else(|| workspace(verb, rest).map(Command::from))
        .or_else(|| turn(world, verb, rest).map(Command::from))
        .or_else(|| task(world, verb, rest).map(Command::from))
        .or_else(|| webhook(world, verb, rest).map(Command::from))
        .or_else(|| (verb == "archive").then(|| AgentCommand::Archive.into()))
}

fn id<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no id"))
}

fn work(verb: &str, rest: &str) -> Option<WorkCommand> {
    let (first, second) = split(rest);
    Some(match verb {
        "open" => WorkCommand::Create { change: change(&format!("{{\"objective\": {rest:?}}}")) },
        "alter" => WorkCommand::Update { work: id(first), change: change(second) },
        "pick" => WorkCommand::Pick { work: id(first) },
        "complete" => {
            let report = (!second.is_empty()).then(|| Content::from(second));
            WorkCommand::Complete { work: id(first), report }
        }
        "continue" => WorkCommand::Continue { work: id(first) },
        "recheck" => WorkCommand::Recheck,
        _ => return None,
    })
}

/// What is altered, by the names of the event's fields; those that are absent stay.
fn change(text: &str) -> WorkChange {
    let change: WorkChange = serde_json::from_str(text).expect("a change");
    let (given, read) = (serde_json::from_str(text), serde_json::to_value(&change));
    let (given, read): (serde_json::Value, _) = (given.expect("JSON"), read.expect("JSON"));
    for name in given.as_object().expect("an object").keys() {
        assert!(read.get(name).is_some(), "{name} is no field of a change");
    }
    change
}

fn waiting(world: &mut World, verb: &str, rest: &str) -> Option<WaitingCommand> {
    let (first, second) = split(rest);
    Some(match verb {
        "timer" => timer(first, second),
        "cancel" if first.starts_with("timer") => WaitingCommand::CancelTimer { timer: id(first) },
        "cancel" => WaitingCommand::CancelWait { wait: id::<WaitId>(first) },
        "fire" => WaitingCommand::FireTimer { timer: id::<TimerId>(first) },
        "due" => WaitingCommand::EndWait { wait: id::<WaitId>(first) },
        "trigger" => {
            let (token, label) = split(second);
            let (mode, token_hash) = (mode(first), Hash::of(token.as_bytes()));
            WaitingCommand::CreateTrigger { mode, label: label.into(), work: world.state.works.focus, token_hash }
        }
        "revoke" => WaitingCommand::RevokeTrigger { trigger: id(first) },
        "secret" if first == "none" => WaitingCommand::ClearWebhookSecret,
        "secret" => {
            let (keeps_previous, secret) = (first == "keeps", format!("webhook/{}", world.ledger.len()));
            WaitingCommand::SetWebhookSecret { secret, keeps_previous }
        }
        "callback" => {
            let (token, text) = split(second);
            let (token_hash, body) = (Hash::of(token.as_bytes()), world.content(text));
            WaitingCommand::Callback(NewCallback { token_hash, mode: mode(first), body_type: BodyType::Text, body })
        }
        _ => return None,
    })
}

fn webhook(world: &mut World, verb: &str, rest: &str) -> Option<QueueCommand> {
    let admission = match verb {
        "signed" => Admission::WebhookSigned,
        "unsigned" => Admission::PublicUnauthenticated,
        _ => return None,
    };
    let origin = Origin::Webhook { source: "generic_webhook".into(), event_type: None };
    let message = world.message(MessageKind::WebhookEvent, origin, rest);
    Some(QueueCommand::Enqueue(NewMessage { surface: Surface::HttpWebhook, admission, ..message }))
}

fn timer(duration: &str, rest: &str) -> WaitingCommand {
    let every = rest.strip_prefix("every ").map(split);
    let (interval_ms, summary) = every.map_or((None, rest), |(interval, summary)| (interval.parse().ok(), summary));
    let summary = (!summary.is_empty()).then(|| summary.to_owned());
    WaitingCommand::CreateTimer { duration_ms: id(duration), interval_ms, summary }
}

fn mode(name: &str) -> DeliveryMode {
    DeliveryMode::from_name(name).expect("a delivery mode")
}

fn workspace(verb: &str, rest: &str) -> Option<WorkspaceCommand> {
    let (first, second) = split(rest);
    Some(match verb {
        "attach" => WorkspaceCommand::Attach { anchor: rest.into(), projection: Projection::CanonicalRoot },
        "leave" => WorkspaceCommand::Exit,
        "detach" => WorkspaceCommand::Detach { workspace: id(first) },
        "install" => install(id(first), second),
        "uninstall" => WorkspaceCommand::UninstallSkill { name: id(first) },
        "settle" => WorkspaceCommand::SettleWorktree { task: id(first), fate: fate(second) },
        _ => return None,
    })
}

fn install(name: SkillName, rest: &str) -> WorkspaceCommand {
    let (source, mode) = split(rest);
    let source = SkillSource::from_name(source).expect("a source");
    WorkspaceCommand::InstallSkill { name, source, mode: SkillMode::from_name(mode).expect("a mode"), folder: None }
}

fn fate(name: &str) -> WorktreeFate {
    match name {
        "removed" => WorktreeFate::Removed,
        "left" => WorktreeFate::Left("git does not answer".into()),
        _ => WorktreeFate::Retained(WorktreeSummary {
            head_commit: "def".into(),
            commits: 1,
            changed: Vec::new(),
            changed_total: 0,
            insertions: 3,
            deletions: 1,
        }),
    }
}

fn turn(world: &mut World, verb: &str, rest: &str) -> Option<TurnCommand> {
    let (run, boot, (round, call)) = (world.run(), world.boot, show::next_call(world));
    let attempt = world.state.turns.calls().and_then(|(_, calls)| calls.attempt);
    let attempt = attempt.map_or(EventSeq(999), |attempt| attempt.seq);
    let end = match verb {
        "call" => return Some(TurnCommand::BeginCall { run, round, call, boot }),
        "begin-guided" => {
            let (content, hash) = (Some(world.content(rest)), Some(Hash::of(rest.as_bytes())));
            let guidance = vec![GuidanceFile { scope: GuidanceScope::Agent, content, hash, refused: None }];
            return Some(TurnCommand::Start { policy: crate::world::policy(), guidance });
        }
        "bring" => brought(world, rest),
        "refused" => {
            let error = CallError { kind: rest.into(), field: None, message: "it cannot be".into(), hint: None };
            CallEnd::Result(CallResult::Refused(error))
        }
        _ => return None,
    };
    Some(TurnCommand::EndCall { run, attempt, end })
}

/// What the outside brings back for the call that is next.
fn brought(world: &mut World, detail: &str) -> CallEnd {
    let next = world.state.turns.calls().and_then(|(_, calls)| calls.next().map(|call| call.action.clone()));
    let enters = |anchor: &str| Resolved::Attach { anchor: anchor.into(), projection: Projection::CanonicalRoot };
    match next {
        Some(Action::Spawn(request)) => CallEnd::Child(Box::new(child(world, request))),
        Some(Action::CreateTrigger { .. }) => {
            CallEnd::Trigger { token_hash: Hash::of(detail.as_bytes()), file: format!("triggers/{detail}") }
        }
        Some(Action::AttachWorkspace { path }) => CallEnd::Workspace(enters(&path)),
        Some(Action::UseWorkspace { workspace, cwd }) => {
            let attached = match &workspace {
                WorkspaceName::Attached(id) => world.state.workspaces.attached.get(id),
                WorkspaceName::AgentHome => None,
            };
            let execution_root = attached.map(|attached| attached.anchor.clone());
            let (projection, cwd) = (Projection::CanonicalRoot, cwd.unwrap_or_default());
            CallEnd::Workspace(Resolved::Use { workspace, execution_root, projection, cwd })
        }
        Some(Action::ApplyPatch { .. }) => {
            let file = PatchedFile { path: "a.txt".into(), change: FileChange::Modified, added: 1, removed: 1 };
            CallEnd::Result(CallResult::Patched { files: vec![file] })
        }
        _ => CallEnd::Result(CallResult::Viewed(world.shown(detail))),
    }
}

fn child(world: &mut World, request: SpawnRequest) -> NewChild {
    let id = child_id(&world.state).expect("ids have room");
    let root = format!("/work/{id}");
    let worktree = (request.mode == WorkspaceMode::Worktree).then(|| Worktree {
        repository: "/work".into(),
        root: root.clone(),
        branch: format!("holon/{id}"),
        base_commit: "abc".into(),
    });
    let view = (request.context == ContextMode::Fork).then(|| world.content("what the parent knows"));
    let execution_root = worktree.as_ref().map(|_| root).or_else(|| request.workspace_root.clone());
    NewChild { request, view, execution_root, worktree }
}

fn task(world: &mut World, verb: &str, rest: &str) -> Option<TaskCommand> {
    let (first, text) = split(rest);
    Some(match verb {
        "input" => TaskCommand::Input { task: id(first), text: world.content(text) },
        "delivered" => {
            let task: TaskId = id(first);
            let open = world.state.tasks.open.get(&task);
            let entry = open.and_then(|open| open.inputs.keys().next().copied()).unwrap_or(EventSeq(999));
            TaskCommand::InputDelivered { task, entry, outcome: ErrandOutcome::Taken }
        }
        "command" => {
            let spec = CommandSpec { cmd: rest.into(), workdir: None, shell: None, login: false, accepts_input: false };
            let (yield_ms, shown_tokens, reuse_running) = (0, 8_000, false);
            let request = ExecRequest { spec, yield_ms, shown_tokens, reuse_running, summary: None };
            TaskCommand::Create(request)
        }
        "end" => TaskCommand::Stop { task: id(first), reason: "operator".into() },
        _ => return None,
    })
}

/// What concerns an agent and its child; none for all else. What came of it at the child stands behind its id.
pub fn between(world: &mut World, verb: &str, rest: &str) -> Option<Vec<String>> {
    Some(match verb {
        "of" => {
            let (child, line) = split(rest);
            named(child, super::tell(world.child(&agent(child)), line))
        }
        "direct" => direct(world, id(rest)),
        "hand" => hand(world, id(rest)),
        "bear" => bear(world, &agent(rest)).map_or_else(|told| told, |(_, told)| told),
        "take" => take(world, &agent(rest)),
        _ => return None,
    })
}

fn agent(text: &str) -> AgentId {
    AgentId::parse(text).expect("an agent's id")
}

fn named(child: &str, lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{child}: {line}")).collect()
}

/// A child is made what it is to be, and the agent hears of it.
fn direct(world: &mut World, task: TaskId) -> Vec<String> {
    let directed = world.owed().iter().find_map(|owed| match owed.effect {
        Effect::DirectChild { task: of, lifecycle, entry } if of == task => Some((lifecycle, entry)),
        _ => None,
    });
    let Some((lifecycle, entry)) = directed else { return vec![format!("! {task} is owed no direction")] };
    let Some(child) = world.state.tasks.open.get(&task).and_then(|open| open.child()).map(|child| child.agent.clone())
    else {
        return vec![format!("! {task} supervises nobody")];
    };
    let errand = Errand { from: world.state.agent_id.clone(), entry, what: Matter::Direction(lifecycle) };
    let mut told = named(child.as_str(), super::script::told(world.child(&child), AgentCommand::Take(errand)));
    told.extend(super::script::told(world, TaskCommand::ChildDirected { task, lifecycle, entry }));
    told
}

/// The first input that is owed to a child is enqueued there, and the agent hears of it.
fn hand(world: &mut World, task: TaskId) -> Vec<String> {
    let open = world.state.tasks.open.get(&task);
    let owed = open.and_then(|open| Some((open.child()?.agent.clone(), open.inputs.first_key_value()?)));
    let Some((child, (entry, input))) = owed else { return vec![format!("! {task} is owed no input")] };
    let (entry, text, derived_from) = (*entry, input.text.clone(), input.derived.clone());
    let errand = Errand { from: world.state.agent_id.clone(), entry, what: Matter::Input { task, text, derived_from } };
    let mut told = named(child.as_str(), super::script::told(world.child(&child), AgentCommand::Take(errand)));
    let outcome = ErrandOutcome::Taken;
    told.extend(super::script::told(world, TaskCommand::InputDelivered { task, entry, outcome }));
    told
}

/// What the child owes first is told its supervisor, which the child does not hear of.
fn bear(world: &mut World, child: &AgentId) -> Result<(EventSeq, Vec<String>), Vec<String>> {
    let owing = &world.child(child).state;
    let (task, first) = (owing.agent.supervising_task, owing.outbox.owed.first_key_value());
    let (Some(task), Some((entry, delivery))) = (task, first) else {
        return Err(vec![format!("! {child} owes nothing")]);
    };
    let entry = *entry;
    let what = match delivery.clone() {
        Delivery::Report { status, report, usage, derived_from } => {
            Matter::Report { task, status, report, usage, derived_from }
        }
        Delivery::Notice { text, derived_from } => Matter::Notice { task, text, derived_from },
    };
    let errand = Errand { from: child.clone(), entry, what };
    Ok((entry, super::script::told(world, AgentCommand::Take(errand))))
}

/// What the child owes first is taken in, and the child hears of it.
fn take(world: &mut World, child: &AgentId) -> Vec<String> {
    let (entry, mut told) = match bear(world, child) {
        Ok(borne) => borne,
        Err(told) => return told,
    };
    let wanted =
        if told.iter().any(|line| line.starts_with('!')) { ErrandOutcome::NotWanted } else { ErrandOutcome::Taken };
    let delivered = Request::new(AgentCommand::Delivered { entry, outcome: wanted }, Cause::Runtime);
    let before = world.child(child).ledger.len();
    world.child(child).ask(delivered).expect("a child hears of its deliveries");
    let heard = world.child(child).ledger[before..].iter().map(show::event).collect();
    told.extend(named(child.as_str(), heard));
    told
}
