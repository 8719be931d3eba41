//! Commands that never begin, as the core decides of them: nobody waits for one that cannot come.

use holon::decide::agent::{AgentCommand, NewAgent};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::task::TaskCommand;
use holon::decide::turn::{NewAnswer, NewRound, TurnCommand};
use holon::decide::{Command, Rejection, Request, Staged, handle};
use holon::events::agent::Role;
use holon::events::call::{Action, Call, CallResult, ExecRequest};
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::task::{CommandSpec, Exit, TaskStatus};
use holon::events::turn::{AbortMode, Entry, Section, SectionKind, StopReason, TurnEntry, Usage};
use holon::events::{Cause, Event, TaskEvent, TurnEvent};
use holon::fold::AgentState;
use holon::fold::owed::{Effect, owed};
use holon::fold::turn::Phase;
use holon::runtime::settings::Settings;
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, Boot, EventSeq, RunId, TaskId};
use holon::words::time::Timestamp;

const RUN: RunId = RunId(1);
const TASK: TaskId = TaskId(1);

/// An agent whose turn has asked for one command.
struct Agent(AgentState);

impl Agent {
    fn asking() -> Self {
        let id = AgentId::parse("main").unwrap();
        let mut agent = Self(AgentState::unborn(id.clone()));
        agent.told(AgentCommand::Create(NewAgent { agent_id: id.clone(), role: Role::Default, template: None }));
        agent.told(QueueCommand::Enqueue(NewMessage {
            kind: MessageKind::OperatorPrompt,
            lane: None,
            origin: Origin::Operator { actor_id: None },
            surface: Surface::CliPrompt,
            admission: Admission::LocalProcess,
            body_type: BodyType::Text,
            body: Content::from("run it"),
            metadata: None,
            correlation_id: None,
            causation_id: None,
            provided_trust: None,
            reply_route: None,
            derived_from: None,
        }));
        let policy = Settings::new(id, "/".into(), vec!["a/model".into()]).policy(None);
        agent.told(TurnCommand::Start { policy, guidance: Vec::new() });
        let hash = Hash::of(b"anything");
        let round = NewRound {
            run: RUN,
            round: 1,
            boot: Boot(1),
            keeps: 0,
            added: Vec::new(),
            tools: hash,
            request: hash,
            interjections: Vec::new(),
        };
        agent.told(TurnCommand::Request(round));
        let spec = CommandSpec { cmd: "true".into(), workdir: None, shell: None, login: false, accepts_input: false };
        let request = ExecRequest { spec, yield_ms: 1, shown_tokens: 1, reuse_running: false, summary: None };
        agent.told(TurnCommand::Record(NewAnswer {
            run: RUN,
            attempt: agent.0.head,
            text: Content::from(""),
            answer: Section { kind: SectionKind::Assistant, hash, bytes: 1 },
            calls: vec![Call { id: "call".into(), tool: "ExecCommand".into(), action: Action::Exec(request) }],
            stop: StopReason::ToolUse,
            usage: Usage { input_tokens: None, output_tokens: None },
        }));
        assert!(agent.owes(Effect::StartTask { task: TASK }));
        agent
    }

    fn told(&mut self, command: impl Into<Command>) -> Vec<Event> {
        self.try_told(command).expect("a decision")
    }

    fn try_told(&mut self, command: impl Into<Command>) -> Result<Vec<Event>, Rejection> {
        let mut staged = Staged::default();
        let request = Request::new(command, Cause::Operator);
        handle(&mut self.0, &request, Timestamp(7), &mut staged).expect("a legal decision")?;
        Ok(staged.envelopes.into_iter().map(|envelope| envelope.event).collect())
    }

    fn start(&mut self, boot: u64, replaces: Option<EventSeq>) -> Vec<Event> {
        self.told(TaskCommand::Start { task: TASK, boot: Boot(boot), replaces, signer: None })
    }

    fn owes(&self, effect: Effect) -> bool {
        owed(&self.0, Boot(1)).iter().any(|owed| owed.effect == effect)
    }

    /// The attempt that is under way.
    fn attempt(&self) -> Option<EventSeq> {
        self.0.tasks.open.get(&TASK)?.attempt.map(|attempt| attempt.seq)
    }
}

fn exit(events: &[Event]) -> (TaskStatus, Exit) {
    let mut exits = events.iter().filter_map(|event| match event {
        Event::Task(TaskEvent::Exited(exited)) => Some((exited.status, exited.exit.clone())),
        _ => None,
    });
    let exit = exits.next().expect("an exit");
    assert_eq!(exits.next(), None, "it ends once");
    exit
}

#[test]
fn a_command_that_is_stopped_before_it_began_never_begins() {
    let abort = AgentCommand::Abort { run: None, mode: AbortMode::StopAfterAbort };
    for (stop, status) in [(abort, TaskStatus::Cancelled), (AgentCommand::Stop, TaskStatus::Interrupted)] {
        let mut agent = Agent::asking();
        let (ended, how) = exit(&agent.told(stop));
        assert_eq!(ended, status);
        assert!(matches!(how, Exit::NotStarted(_)), "{how:?}");
        assert!(agent.0.tasks.open.is_empty() && agent.0.queue.waiting.is_empty());
        let late = agent.try_told(TaskCommand::Start { task: TASK, boot: Boot(1), replaces: None, signer: None });
        assert_eq!(late, Err(Rejection::StaleAttempt));
    }
}

#[test]
fn a_command_that_is_stopped_and_did_not_begin_is_not_begun_again() {
    let mut agent = Agent::asking();
    agent.start(1, None);
    agent.told(AgentCommand::Abort { run: None, mode: AbortMode::IdleAfterAbort });
    let attempt = agent.attempt();
    let (ended, how) = exit(&agent.start(2, attempt));
    assert_eq!(ended, TaskStatus::Cancelled);
    assert!(matches!(how, Exit::NotStarted(_)), "{how:?}");
}

#[test]
fn a_command_that_no_boot_could_begin_answers_its_call() {
    let mut agent = Agent::asking();
    for boot in 1..=3 {
        let attempt = agent.attempt();
        agent.start(boot, attempt);
    }
    let attempt = agent.attempt();
    let events = agent.start(4, attempt);
    assert_eq!(exit(&events), (TaskStatus::Failed, Exit::NotStarted("attempts_exhausted".into())));
    let answered = events.iter().any(|event| {
        let Event::Turn(TurnEvent::Entry(TurnEntry { entry: Entry::ToolResult { result, .. }, .. })) = event else {
            return false;
        };
        matches!(result, CallResult::Exited { exit: Exit::NotStarted(_), .. })
    });
    assert!(answered, "{events:?}");
    assert_eq!(agent.0.turns.current.as_ref().map(|turn| &turn.phase), Some(&Phase::RoundOwed));
}
