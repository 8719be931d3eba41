//! Ledgers made through the one door, by an agent whose world always answers in the same way.

use holon::decide::agent::{AgentCommand, NewAgent};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::task::TaskCommand;
use holon::decide::turn::{NewAnswer, NewRound, TurnCommand};
use holon::decide::{self, Command, Request, RequestKey, Staged};
use holon::events::agent::Role;
use holon::events::call::{Action, Call, ExecRequest};
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::task::{CommandOutput, CommandSpec, Exit};
use holon::events::turn::{AttemptError, AttemptErrorKind, Section, SectionKind, StopReason, TurnPolicy, Usage};
use holon::events::{Cause, codec};
use holon::fold::AgentState;
use holon::fold::row::{Rows, rows};
use holon::fold::turn::{Calls, Phase, Requested, Turn};
use holon::ledger::blob::Blobs;
use holon::ledger::reader::{self, ReadError};
use holon::ledger::{Append, Head, Part, Store, chain, checkpoint};
use holon::words::content::{Blob, Content};
use holon::words::hash::Hash;
use holon::words::id::{AgentId, Boot, EventSeq, TaskId};
use holon::words::time::Timestamp;

const BOOT: Boot = Boot(1);

/// Writes one agent's ledger, an append for each command.
pub(crate) struct Author {
    pub(crate) state: AgentState,
    pub(crate) head: Head,
    rows: Option<Rows>,
    /// Events between two checkpoints; none are made when this is zero.
    pub(crate) checkpoint_events: u64,
}

impl Author {
    /// Goes on where the ledger ends, or begins it.
    pub(crate) fn load(store: &dyn Store, agent: &AgentId) -> Self {
        Self::try_load(store, agent).expect("the ledger is whole")
    }

    pub(crate) fn try_load(store: &dyn Store, agent: &AgentId) -> Result<Self, ReadError> {
        let loaded = reader::load(store, agent)?;
        let (state, head) = loaded.unwrap_or_else(|| (AgentState::unborn(agent.clone()), chain::genesis(agent)));
        Ok(Self { state, head, rows: None, checkpoint_events: 100 })
    }

    /// The append of the next command.
    pub(crate) fn write(&mut self) -> Append {
        let (request, blobs) = next(&self.state);
        let mut staged = Staged::default();
        let at = self.state.last_at.max(Timestamp(1_800_000_000_000)).after_ms(60_000);
        let answer = decide::handle(&mut self.state, &request, at, &mut staged).expect("the core agrees with itself");
        answer.unwrap_or_else(|rejection| panic!("{request:?}: {rejection}"));
        Append { parts: vec![self.part(staged)], blobs }
    }

    fn part(&mut self, staged: Staged) -> Part {
        let linked = chain::extend(self.head, &staged.envelopes).expect("events keep their bounds");
        let rows = rows(&self.state, BOOT);
        let before = self.rows.replace(rows.clone());
        let part = Part {
            agent: self.state.agent_id.clone(),
            expected: self.head,
            records: linked.records,
            head: linked.head,
            anchors: linked.anchors,
            payloads: linked.payloads,
            list: (before.as_ref().map(|rows| &rows.list) != Some(&rows.list)).then(|| codec::to_bytes(&rows.list)),
            due: (before.as_ref().map(|rows| rows.due) != Some(rows.due)).then_some(rows.due),
            deadline: (before.as_ref().map(|rows| rows.deadline) != Some(rows.deadline)).then_some(rows.deadline),
            closed: staged.closed,
            tokens: Vec::new(),
            checkpoint: self.checkpoint(linked.head),
        };
        self.head = linked.head;
        part
    }

    fn checkpoint(&self, head: Head) -> Option<Vec<u8>> {
        let number = |seq: EventSeq| seq.0.checked_div(self.checkpoint_events);
        (number(head.seq) != number(self.head.seq)).then(|| checkpoint::encode(&self.state, head))
    }
}

/// An agent id known to be one.
pub(crate) fn id(text: &str) -> AgentId {
    AgentId::parse(text).expect("an agent id")
}

/// Writes ledgers of at least `events` events, an append of each agent in turn.
///
/// Large payloads become files of `blobs`; without it, rows like the others.
pub(crate) fn write_ledgers(store: &dyn Store, blobs: Option<&Blobs>, agents: &[&str], events: u64) {
    let mut authors: Vec<Author> = agents.iter().map(|agent| Author::load(store, &id(agent))).collect();
    while authors.iter().any(|author| author.head.seq.0 < events) {
        let mut batch: Vec<Append> = authors.iter_mut().map(Author::write).collect();
        for (append, blobs) in batch.iter_mut().filter_map(|append| Some((append, blobs?))) {
            append.blobs = blobs.keep_large(std::mem::take(&mut append.blobs)).expect("payloads are kept");
        }
        assert!(store.commit(&batch).iter().all(Result::is_ok), "the store takes every append");
    }
}

/// What happens next to an agent in this state, and the payloads that come with it.
fn next(state: &AgentState) -> (Request, Vec<Blob>) {
    let Some(turn) = state.turns.current.as_deref() else { return begin(state) };
    match &turn.phase {
        Phase::RoundOwed | Phase::Finished { .. } => request_round(turn),
        Phase::RoundRequested(requested) => answer_round(turn, requested),
        Phase::Calls(calls) => run_command(state, calls),
    }
}

fn request(command: impl Into<Command>) -> Request {
    Request::new(command, Cause::Runtime)
}

fn begin(state: &AgentState) -> (Request, Vec<Blob>) {
    if !state.is_born() {
        let new = NewAgent { agent_id: state.agent_id.clone(), role: Role::Named, template: None };
        return (request(AgentCommand::Create(new)), Vec::new());
    }
    if state.queue.first().is_some() {
        return (request(TurnCommand::Start { policy: policy(), guidance: Vec::new() }), Vec::new());
    }
    enqueue(state)
}

/// Every third message is long, every sixth too long for a row; every second request has a key.
fn enqueue(state: &AgentState) -> (Request, Vec<Blob>) {
    let number = state.queue.last.0 + 1;
    let lines = if number.is_multiple_of(6) { 8_000 } else { 250 * usize::from(number.is_multiple_of(3)) + 1 };
    let (body, blob) = Content::new(format!("{}: do it\n", state.agent_id).repeat(lines));
    let new = NewMessage {
        kind: MessageKind::OperatorPrompt,
        lane: None,
        origin: Origin::Operator { actor_id: Some("tester".into()) },
        surface: Surface::HttpControlPrompt,
        admission: Admission::ControlAuthenticated,
        body_type: BodyType::Text,
        body,
        metadata: None,
        correlation_id: Some(format!("case-{number}")),
        causation_id: None,
        provided_trust: None,
        reply_route: None,
        derived_from: None,
    };
    let mut request = Request::new(QueueCommand::Enqueue(new), Cause::Operator);
    if number.is_multiple_of(2) {
        let key = format!("key-{number}");
        request.key = Some(RequestKey { fingerprint: Hash::of(key.as_bytes()), key });
    }
    (request, blob.into_iter().collect())
}

fn policy() -> TurnPolicy {
    TurnPolicy {
        models: vec!["scripted/one".into(), "scripted/two".into()],
        rounds_max: 10,
        turn_ms_max: 24 * 60 * 60 * 1_000,
        output_tokens_per_round_max: 1_000,
        tokens_per_turn_max: 1_000_000,
        attempts_per_model_max: 2,
        retry_ms_first: 10,
        context_tokens_max: 150_000,
        tokens_per_agent_max: None,
    }
}

fn section(kind: SectionKind, text: String) -> (Section, Blob) {
    let blob = Blob::new(text.into_bytes());
    (Section { kind, hash: blob.hash, bytes: blob.bytes.len() as u64 }, blob)
}

fn request_round(turn: &Turn) -> (Request, Vec<Blob>) {
    let tools = Blob::new(b"[]".to_vec());
    let (kind, text) = match turn.round {
        0 => (SectionKind::Message, format!("{} is to be done", turn.message)),
        round => (SectionKind::ToolResult, format!("{} in round {round}: done", turn.run)),
    };
    let (section, blob) = section(kind, text);
    let round = NewRound {
        run: turn.run,
        round: turn.round + 1,
        boot: BOOT,
        keeps: u32::try_from(turn.sections.len()).expect("few sections"),
        added: vec![section],
        tools: tools.hash,
        request: Hash::of(turn.run.to_string().as_bytes()),
        interjections: Vec::new(),
    };
    (request(TurnCommand::Request(round)), vec![blob, tools])
}

/// The first model round asks for a command, the second ends the turn; every fourth turn's first attempt fails.
fn answer_round(turn: &Turn, requested: &Requested) -> (Request, Vec<Blob>) {
    let run = turn.run;
    let Some(attempt) = requested.attempt else {
        return (request(TurnCommand::Attempt { run, boot: BOOT }), Vec::new());
    };
    if turn.run.0.is_multiple_of(4) && turn.round == 1 && requested.failures == 0 {
        let error = AttemptError {
            kind: AttemptErrorKind::Server,
            status: Some(503),
            message: "try again".into(),
            retry_after_ms: None,
        };
        return (request(TurnCommand::FailAttempt { run, attempt: attempt.seq, error }), Vec::new());
    }
    let (answer, blob) = section(SectionKind::Assistant, format!("{run} round {}: an answer", turn.round));
    let calls = if turn.round == 1 { vec![call()] } else { Vec::new() };
    let new = NewAnswer {
        run,
        attempt: attempt.seq,
        text: Content::from("an answer"),
        answer,
        stop: if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse },
        calls,
        usage: Usage { input_tokens: Some(100), output_tokens: Some(10) },
    };
    (request(TurnCommand::Record(new)), vec![blob])
}

fn call() -> Call {
    let spec = CommandSpec { cmd: "make check".into(), workdir: None, shell: None, login: false, accepts_input: false };
    let exec = ExecRequest { spec, yield_ms: 10_000, shown_tokens: 1_000, reuse_running: false, summary: None };
    Call { id: "call-1".into(), tool: "ExecCommand".into(), action: Action::Exec(exec) }
}

fn run_command(state: &AgentState, calls: &Calls) -> (Request, Vec<Blob>) {
    let task = calls.task.expect("the command of the call is open");
    let Some(attempt) = state.tasks.open[&task].attempt else {
        return (request(TaskCommand::Start { task, boot: BOOT, replaces: None, signer: None }), Vec::new());
    };
    exit(task, attempt.seq)
}

fn exit(task: TaskId, attempt: EventSeq) -> (Request, Vec<Blob>) {
    let text = format!("{task} says hello\n").repeat(200 * (task.0 % 2) as usize + 1);
    let bytes = text.len() as u64;
    let (shown, blob) = Content::new(text);
    let output = CommandOutput { shown, bytes, cut: false, kept: None };
    let exit = TaskCommand::Exit { task, attempt, exit: Exit::Code(0), duration_ms: 5, output };
    (request(exit), blob.into_iter().collect())
}
