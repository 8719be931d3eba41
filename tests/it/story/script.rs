//! What a story can tell an agent.
//!
//! | command | meaning |
//! |---|---|
//! | `prompt TEXT`, `next TEXT` | the operator says so; the second in a lane that waits for its turn |
//! | `channel NAME TEXT`, `webhook NAME TEXT` | so does somebody else |
//! | `send KIND ORIGIN` | a message of any kind from any origin |
//! | `drop MESSAGE REASON`, `wake REASON [from SOURCE]` | |
//! | `begin [NAME=VALUE ..]` | a turn begins, under a policy |
//! | `round`, `again` | the next round is requested; another attempt at it is begun |
//! | `answer TEXT [\| CALL ..]` | the model's answer; a call is `exec CMD`, `output TASK [ms]`, `sleep` or `TOOL JSON` |
//! | `fail KIND [retry_after_ms]`, `give-up CODE` | the attempt failed; the prompt could not be made |
//! | `run TASK`, `rerun TASK`, `supervise TASK`, `promote TASK`, `read TASK` | |
//! | `exit TASK (CODE\|signal-N\|lost) [OUTPUT]` | `LONG` stands for output that no event holds |
//! | `abort [RUN] [idle]`, `stop`, `start` | |
//! | `model [NAME]` | the model that its turns ask first, or the host's again |
//! | `clock +MS`, `clock -MS`, `boot` | time passes, or goes back; the runtime goes down and comes up |
//! | `owed`, `posture` | shows what is owed, or what the agent is doing |
//!
//! [`outside`] has more: the planes, and what the world around does. [`transport`] has what goes to the operator.
//!
//! `key NAME COMMAND` gives a command an idempotency key; `at N COMMAND` gives an outcome the attempt N.

use super::{outside, show, transport};
use crate::world::{World, call, create, policy};
use holon::context::request::RawCall;
use holon::decide::agent::AgentCommand;
use holon::decide::queue::QueueCommand;
use holon::decide::task::TaskCommand;
use holon::decide::turn::TurnCommand;
use holon::decide::waiting::{NewWake, WaitingCommand};
use holon::decide::{Command, Rejection, Request, RequestKey};
use holon::events::Cause;
use holon::events::agent::Answer;
use holon::events::queue::{Lane, MessageKind, Origin};
use holon::events::task::{Exit, Supervisor};
use holon::events::turn::{AbortMode, AttemptError, AttemptErrorKind, TurnPolicy};
use holon::fold::posture::posture;
use holon::words::hash::Hash;
use holon::words::id::{EventSeq, RunId, TaskId, TimerId};
use holon::words::limit::INLINE_BYTES_MAX;

/// Tells `line`, and says what came of it.
pub fn tell(world: &mut World, line: &str) -> Vec<String> {
    let (verb, rest) = split(line);
    match verb {
        "clock" => move_clock(world, rest),
        "boot" => {
            world.boot.0 += 1;
            Vec::new()
        }
        "owed" => world.owed().iter().map(|owed| show::owed(owed, world.at)).collect(),
        "posture" => vec![show::posture(&posture(&world.state))],
        _ => outside::between(world, verb, rest).unwrap_or_else(|| command(world, line)),
    }
}

fn command(world: &mut World, line: &str) -> Vec<String> {
    match split(line) {
        ("round", _) => recorded(world, World::prepare),
        ("key", rest) => {
            let (key, line) = split(rest);
            let key = RequestKey { key: key.into(), fingerprint: Hash::of(line.as_bytes()) };
            let request = Request { key: Some(key), ..Request::new(read(world, line), speaks(line)) };
            recorded(world, |world| world.ask(request))
        }
        _ => {
            let command = read(world, line);
            told(world, command)
        }
    }
}

/// Who names the key of a command.
fn speaks(line: &str) -> Cause {
    match split(line).0 {
        "channel" | "webhook" | "signed" | "unsigned" | "callback" => Cause::External,
        _ => Cause::Operator,
    }
}

/// Tells a command, and says what came of it.
pub fn told(world: &mut World, command: impl Into<Command>) -> Vec<String> {
    recorded(world, |world| world.tell(command))
}

fn recorded(world: &mut World, ask: impl FnOnce(&mut World) -> Result<Answer, Rejection>) -> Vec<String> {
    let before = (world.ledger.len(), world.children.len());
    let answer = ask(world);
    let events = &world.ledger[before.0..];
    match answer {
        Err(rejection) => vec![format!("! {rejection}")],
        Ok(answer) if events.is_empty() => vec![format!("= {}", show::answer(&answer))],
        Ok(_) if world.children.len() > before.1 => {
            let (child, born) = world.children.last_key_value().expect("one was born");
            let births = born.ledger.iter().map(|envelope| format!("{child}: {}", show::event(envelope)));
            events.iter().map(show::event).chain(births).collect()
        }
        Ok(_) => events.iter().map(show::event).collect(),
    }
}

fn move_clock(world: &mut World, by: &str) -> Vec<String> {
    world.at.0 += by.parse::<i64>().expect("milliseconds, with a sign");
    Vec::new()
}

pub fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}

/// Reads a command. An outcome is of the attempt under way unless `at` names another.
fn read(world: &mut World, line: &str) -> Command {
    match split(line) {
        ("at", rest) => {
            let (seq, line) = split(rest);
            read_at(world, line, Some(EventSeq(seq.parse().expect("an event_seq"))))
        }
        _ => read_at(world, line, None),
    }
}

fn read_at(world: &mut World, line: &str, attempt: Option<EventSeq>) -> Command {
    let (verb, rest) = split(line);
    match verb {
        "create" => create().into(),
        "start" => AgentCommand::Start.into(),
        "stop" => AgentCommand::Stop.into(),
        "abort" => abort(rest).into(),
        "model" => AgentCommand::ChooseModel { model: Some(rest.to_owned()).filter(|model| !model.is_empty()) }.into(),
        "prompt" | "next" | "channel" | "webhook" | "send" => message(world, verb, rest).into(),
        "drop" => {
            let (message, reason) = split(rest);
            QueueCommand::Drop { message: message.parse().expect("a message"), reason: reason.into() }.into()
        }
        "wake" => wake(rest).into(),
        "begin" => TurnCommand::Start { policy: policy_with(rest), guidance: Vec::new() }.into(),
        "again" => TurnCommand::Attempt { run: world.run(), boot: world.boot }.into(),
        "answer" => answer(world, rest, attempt).into(),
        "fail" => fail(world, rest, attempt).into(),
        "give-up" => {
            let (run, round) = (world.run(), world.turn().map_or(0, |turn| turn.round) + 1);
            TurnCommand::Fail { run, round, code: rest.into(), detail: "it cannot be made".into() }.into()
        }
        _ => {
            let operator = transport::read(world, verb, rest, attempt).map(Command::from);
            let known = operator.or_else(|| outside::read(world, verb, rest));
            known.unwrap_or_else(|| task(world, verb, rest, attempt).into())
        }
    }
}

fn abort(rest: &str) -> AgentCommand {
    let run = rest.split(' ').find_map(|word| word.parse::<RunId>().ok());
    let mode = if rest.ends_with("idle") { AbortMode::IdleAfterAbort } else { AbortMode::StopAfterAbort };
    AgentCommand::Abort { run, mode }
}

fn message(world: &mut World, verb: &str, rest: &str) -> QueueCommand {
    let (name, text) = split(rest);
    let mut message = match verb {
        "channel" => world.message(MessageKind::ChannelEvent, origin("channel", name), text),
        "webhook" => world.message(MessageKind::WebhookEvent, origin("webhook", name), text),
        "send" => world.message(MessageKind::from_name(name).expect("a kind"), origin(text, "test"), "text"),
        _ => world.message(MessageKind::OperatorPrompt, origin("operator", ""), rest),
    };
    message.lane = (verb == "next").then_some(Lane::Next);
    QueueCommand::Enqueue(message)
}

fn origin(kind: &str, name: &str) -> Origin {
    let name = name.to_owned();
    match kind {
        "operator" => Origin::Operator { actor_id: None },
        "channel" => Origin::Channel { channel_id: name, sender_id: None },
        "webhook" => Origin::Webhook { source: name, event_type: None },
        "callback" => Origin::Callback { descriptor_id: name, source: None },
        "system" => Origin::System { subsystem: name },
        "timer" => Origin::Timer { timer_id: TimerId(1) },
        "task" => Origin::Task { task: TaskId(1) },
        _ => panic!("{kind} is no origin"),
    }
}

fn wake(rest: &str) -> WaitingCommand {
    let (reason, source) = rest.split_once(" from ").map_or((rest, None), |(reason, source)| (reason, Some(source)));
    let (reason, source) = (reason.to_owned(), source.map(str::to_owned));
    WaitingCommand::Wake(NewWake {
        reason,
        source,
        correlation_id: None,
        causation_id: None,
        body: None,
        derived_from: None,
    })
}

fn policy_with(settings: &str) -> TurnPolicy {
    let mut policy = policy();
    for (name, value) in settings.split_whitespace().filter_map(|setting| setting.split_once('=')) {
        let number = || value.parse().expect("a number");
        match name {
            "models" => policy.models = value.split(',').map(str::to_owned).collect(),
            "rounds" => policy.rounds_max = number() as u32,
            "ms" => policy.turn_ms_max = number(),
            "tokens" => policy.tokens_per_turn_max = number(),
            "agent-tokens" => policy.tokens_per_agent_max = Some(number()),
            "context" => policy.context_tokens_max = number(),
            "attempts" => policy.attempts_per_model_max = number() as u32,
            _ => panic!("{name} is no setting"),
        }
    }
    policy
}

fn answer(world: &mut World, rest: &str, attempt: Option<EventSeq>) -> TurnCommand {
    let (text, calls) =
        rest.strip_prefix("| ").map_or_else(|| rest.split_once(" | ").unwrap_or((rest, "")), |calls| ("", calls));
    let calls = calls.split(" | ").filter(|call| !call.is_empty()).map(read_call).collect();
    let attempt = attempt.unwrap_or_else(|| world.attempt());
    TurnCommand::Record(world.answered(attempt, text, calls))
}

fn read_call(text: &str) -> RawCall {
    let (verb, rest) = split(text);
    match verb {
        "exec" => call("ExecCommand", &format!(r#"{{"cmd":"{rest}","yield_time_ms":1000}}"#)),
        "output" => {
            let (task, wait_ms) = split(rest);
            let wait_ms = wait_ms.parse().unwrap_or(0);
            call("TaskOutput", &format!(r#"{{"task_id":"{task}","timeout_ms":{wait_ms}}}"#))
        }
        "sleep" => call("Sleep", ""),
        _ => call(verb, rest),
    }
}

fn fail(world: &World, rest: &str, attempt: Option<EventSeq>) -> TurnCommand {
    let (kind, retry_after) = split(rest);
    let error = AttemptError {
        kind: AttemptErrorKind::from_name(kind).expect("a kind of error"),
        status: None,
        message: "it went wrong".into(),
        retry_after_ms: retry_after.parse().ok(),
    };
    TurnCommand::FailAttempt { run: world.run(), attempt: attempt.unwrap_or_else(|| world.attempt()), error }
}

fn task(world: &mut World, verb: &str, rest: &str, attempt: Option<EventSeq>) -> TaskCommand {
    let (id, rest) = split(rest);
    let task: TaskId = id.parse().expect("a task");
    let open = world.state.tasks.open.get(&task);
    let begun = attempt.or_else(|| open?.attempt.map(|attempt| attempt.seq));
    let attempt = begun.unwrap_or(EventSeq(999));
    let boot = world.boot;
    match verb {
        "run" => TaskCommand::Start { task, boot, replaces: None, signer: None },
        "rerun" => TaskCommand::Start { task, boot, replaces: begun, signer: None },
        "supervise" => {
            let supervisor = Supervisor { pid: 4711, start_time: 815, machine_boot: "boot-1".into() };
            TaskCommand::Supervise { task, attempt, supervisor }
        }
        "promote" => TaskCommand::Promote { task, attempt, shown: world.shown(rest) },
        "read" => {
            let (round, call) = show::next_call(world);
            TaskCommand::Read { run: world.run(), round, call, task, shown: world.shown(rest) }
        }
        "exit" => {
            let (how, text) = split(rest);
            let text = &text.replace("LONG", &"a line of output; ".repeat(INLINE_BYTES_MAX));
            TaskCommand::Exit { task, attempt, exit: exit(how), duration_ms: 20, output: world.output(text) }
        }
        _ => panic!("{verb} cannot be told"),
    }
}

fn exit(how: &str) -> Exit {
    match how.strip_prefix("signal-") {
        Some(number) => Exit::Signal(number.parse().expect("a signal")),
        None if how == "lost" => Exit::Lost,
        None => Exit::Code(how.parse().expect("an exit code")),
    }
}
