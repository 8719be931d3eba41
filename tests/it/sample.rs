//! One event of every kind, with every field filled.

use holon::events::agent::{
    AgentCreated, AgentPaused, AgentStarted, AgentStopped, Answer, Ownership, Preset, RequestAnswered, Role,
    Visibility, WakeDisposition,
};
use holon::events::operator::{BriefCreated, BriefKind};
use holon::events::queue::{
    Admission, BodyType, Lane, MessageEnqueued, MessageKind, MessageOutcome, MessageSettled, Origin, Subject, Surface,
    Trust,
};
use holon::events::task::{
    Caller, CommandOutput, CommandSpec, Exit, Kept, TaskCreateRequested, TaskExited, TaskPromoted, TaskStarted,
    TaskStatus, TaskStopRequested,
};
use holon::events::turn::{
    AbortMode, Action, AfterAttempt, AttemptError, AttemptErrorKind, Call, CallError, CurrentRunAborted, Entry,
    ExecRequest, RoundAttemptFailed, RoundAttempted, RoundRequested, Section, SectionKind, StopReason, TurnEntry,
    TurnOutcome, TurnPolicy, TurnStarted, TurnTerminal, Usage,
};
use holon::events::waiting::WakeRequested;
use holon::events::{Cause, Envelope, Event};
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, Boot, BriefId, EventSeq, MessageId, RunId, TaskId};
use holon::words::time::Timestamp;

/// The samples, each in a place and with a cause of its own.
pub fn envelopes() -> Vec<Envelope> {
    let causes = [
        Cause::Runtime,
        Cause::Operator,
        Cause::External,
        Cause::Run(RunId(5)),
        Cause::Task(TaskId(3)),
        Cause::Agent(agent("main.c1")),
    ];
    let events = [agent_events(), queue_events(), turn_events(), task_events(), other_events()].concat();
    let place = |(index, event): (usize, Event)| Envelope {
        // Positions and times of one to nine bytes.
        seq: EventSeq(1 << (index * 3 % 64)),
        at: Timestamp(1_795_167_000_125 - (1 << index)),
        cause: causes[index % causes.len()].clone(),
        event,
    };
    events.into_iter().enumerate().map(place).collect()
}

fn agent(text: &str) -> AgentId {
    AgentId::parse(text).expect("a sample's id is valid")
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn hash() -> Hash {
    Hash::of(b"sample")
}

fn stored() -> Content {
    Content::Stored { hash: hash(), bytes: 70_000, excerpt: "it begins".into() }
}

fn agent_events() -> Vec<Event> {
    let created = AgentCreated {
        agent_id: agent("main"),
        role: Role::Child,
        visibility: Visibility::Private,
        ownership: Ownership::ParentSupervised,
        preset: Preset::PrivateChild,
        lineage_parent: Some(agent("parent")),
        supervisor: Some(agent("supervisor")),
        template: text("reviewer"),
    };
    let answer = Answer::Woken { disposition: WakeDisposition::Coalesced, message: MessageId(300) };
    vec![
        created.into(),
        AgentStarted {}.into(),
        AgentStopped { reason: "operator".into() }.into(),
        AgentPaused { reason: "operator_aborted".into() }.into(),
        RequestAnswered { key: "key".into(), fingerprint: hash(), answer }.into(),
    ]
}

fn queue_events() -> Vec<Event> {
    let enqueued = MessageEnqueued {
        message: MessageId(7),
        lane: Lane::Normal,
        kind: MessageKind::ChannelEvent,
        origin: Origin::Channel { channel_id: "ops".into(), sender_id: text("ada") },
        trust: Trust::UntrustedExternal,
        surface: Surface::HttpPublicEnqueue,
        admission: Admission::PublicUnauthenticated,
        body_type: BodyType::Json,
        body: stored(),
        about: vec![Subject::Task(TaskId(3))],
        metadata: text("{}"),
        correlation_id: text("correlation"),
        causation_id: text("causation"),
        provided_trust: Some(Trust::TrustedOperator),
    };
    let outcome = MessageOutcome::Dropped("sent by mistake".into());
    vec![enqueued.into(), MessageSettled { message: MessageId(7), outcome }.into()]
}

fn policy() -> TurnPolicy {
    TurnPolicy {
        models: vec!["scripted/first".into(), "scripted/second".into()],
        rounds_max: 200,
        turn_ms_max: 86_400_000,
        output_tokens_per_round_max: 8_192,
        tokens_per_turn_max: 5_000_000,
        attempts_per_model_max: 3,
        retry_ms_first: 500,
    }
}

fn section(kind: SectionKind) -> Section {
    Section { kind, hash: hash(), bytes: 1_000 }
}

fn usage() -> Usage {
    Usage { input_tokens: Some(1_000), output_tokens: None }
}

fn turn_events() -> Vec<Event> {
    let run = RunId(5);
    let error = AttemptError {
        kind: AttemptErrorKind::RateLimited,
        status: Some(429),
        message: "slow down".into(),
        retry_after_ms: Some(2_000),
    };
    let requested = RoundRequested {
        run,
        round: 2,
        keeps: 3,
        added: vec![section(SectionKind::Assistant), section(SectionKind::ToolResult)],
        tools: hash(),
        request: hash(),
        interjections: vec![MessageId(8)],
    };
    let then = AfterAttempt::Again { model: 1, not_before: Timestamp(1_795_167_000_625) };
    let terminal =
        TurnTerminal { run, outcome: TurnOutcome::Failed, reason: text("rate_limited"), rounds: 2, usage: usage() };
    vec![
        TurnStarted { run, message: MessageId(7), policy: policy() }.into(),
        requested.into(),
        RoundAttempted { run, round: 2, boot: Boot(4), model: 1 }.into(),
        RoundAttemptFailed { run, attempt: EventSeq(9), error, then }.into(),
        TurnEntry { run, entry: said() }.into(),
        CurrentRunAborted { run, mode: AbortMode::IdleAfterAbort, reason: "operator_aborted".into() }.into(),
        terminal.into(),
    ]
}

fn said() -> Entry {
    let refused = CallError {
        kind: "invalid_tool_input".into(),
        field: text("cmd"),
        message: "cmd must not be empty".into(),
        hint: text("give the command line to run"),
    };
    let actions = [
        Action::Exec(exec()),
        Action::TaskOutput { task: TaskId(3), wait_ms: 500, shown_tokens: 8_000 },
        Action::Sleep { reason: text("nothing to do") },
        Action::Refused(refused),
    ];
    let call = |action| Call { id: "call-1".into(), tool: "ExecCommand".into(), action };
    Entry::Assistant {
        round: 2,
        attempt: EventSeq(9),
        model: "scripted/second".into(),
        text: Content::Inline("looking".into()),
        answer: section(SectionKind::Assistant),
        calls: actions.map(call).to_vec(),
        stop: StopReason::ToolUse,
        usage: usage(),
    }
}

fn exec() -> ExecRequest {
    let spec = CommandSpec {
        cmd: "ls".into(),
        workdir: text("src"),
        shell: text("/bin/bash"),
        login: true,
        accepts_input: false,
    };
    ExecRequest { spec, yield_ms: 10_000, shown_tokens: 8_000, reuse_running: true }
}

fn task_events() -> Vec<Event> {
    let task = TaskId(3);
    let kept = Some(Kept { hash: hash(), bytes: 70_000 });
    let output = CommandOutput { shown: stored(), bytes: 90_000, cut: true, kept };
    let caller = Some(Caller { run: RunId(5), round: 2, call: 1 });
    let (attempt, exit) = (Some(EventSeq(12)), Exit::Signal(15));
    vec![
        TaskCreateRequested { task, request: exec(), summary: "ls".into(), caller }.into(),
        TaskStarted { task, boot: Boot(4) }.into(),
        TaskPromoted { task }.into(),
        TaskStopRequested { task, reason: "agent_stopped".into() }.into(),
        TaskExited { task, attempt, status: TaskStatus::Interrupted, exit, output }.into(),
    ]
}

fn other_events() -> Vec<Event> {
    let woken = WakeRequested {
        reason: "build finished".into(),
        source: text("ci"),
        correlation_id: text("correlation"),
        causation_id: text("causation"),
        disposition: WakeDisposition::Woken,
        message: MessageId(9),
    };
    let brief = BriefCreated {
        brief: BriefId(2),
        kind: BriefKind::Failure,
        run: Some(RunId(5)),
        message: Some(MessageId(7)),
        text: Content::Inline("it went wrong".into()),
    };
    vec![woken.into(), brief.into()]
}
