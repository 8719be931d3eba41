//! Ledgers to measure on, written by the path that agents use: decided, folded, linked.

use holon::decide::agent::{AgentCommand, NewAgent};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::turn::TurnCommand;
use holon::decide::{Command, Request, Staged, handle};
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::turn::AbortMode;
use holon::events::{Cause, codec};
use holon::fold::AgentState;
use holon::fold::row::{Rows, rows};
use holon::ledger::chain::{self, Linked};
use holon::ledger::{Append, Head, Part, Store, checkpoint};
use holon::runtime::settings::Settings;
use holon::words::content::Content;
use holon::words::id::{AgentId, Boot, EventSeq};
use holon::words::limit::CHECKPOINT_EVENTS;
use holon::words::time::Timestamp;

/// The text that each event of a workload carries.
pub const PAYLOAD_BYTES: usize = 256;

/// Events of one append when a history is written.
const HISTORY_EVENTS_PER_APPEND: usize = 4_096;

const AT: Timestamp = Timestamp(1_795_167_000_000);

/// An agent as its loop has it: the state, the head, and the rows written last.
pub struct Author {
    pub state: AgentState,
    pub head: Head,
    rows: Option<Rows>,
    staged: Staged,
}

impl Author {
    /// An agent that is created with its next append.
    pub fn new(name: &str) -> Self {
        let id = AgentId::parse(name).expect("a plain name");
        let head = chain::genesis(&id);
        let mut this = Self { state: AgentState::unborn(id.clone()), head, rows: None, staged: Staged::default() };
        let role = if name == "main" { holon::events::agent::Role::Default } else { holon::events::agent::Role::Named };
        this.decide(AgentCommand::Create(NewAgent { agent_id: id, role, template: None }));
        this
    }

    /// An agent that is paused: it takes messages in and does nothing about them.
    pub fn paused(name: &str) -> Self {
        let mut this = Self::new(name);
        this.enqueue();
        let policy = Settings::new(this.id(), ".".into(), vec!["builtin/runbook".into()]).policy(None);
        this.decide(TurnCommand::Start { policy, guidance: Vec::new() });
        this.decide(AgentCommand::Abort { run: None, mode: AbortMode::StopAfterAbort });
        this
    }

    pub fn id(&self) -> AgentId {
        self.state.agent_id.clone()
    }

    pub fn decide(&mut self, command: impl Into<Command>) {
        let request = Request::new(command, Cause::External);
        let answer = handle(&mut self.state, &request, AT, &mut self.staged).expect("the core agrees with itself");
        answer.expect("the workload is legal");
    }

    pub fn enqueue(&mut self) {
        self.decide(QueueCommand::Enqueue(message(payload(self.state.head))));
    }

    /// One event with a payload: a message is taken in, or the oldest one is put aside.
    pub fn step(&mut self) {
        match self.state.queue.first().map(|(message, _)| message) {
            Some(message) => self.decide(QueueCommand::Drop { message, reason: payload(self.state.head) }),
            None => self.enqueue(),
        }
    }

    /// What was decided since the last append, as an agent's loop would hand it in.
    pub fn append(&mut self) -> Append {
        let staged = std::mem::take(&mut self.staged);
        let Linked { records, anchors, payloads, head } =
            chain::extend(self.head, &staged.envelopes).expect("events within their bounds");
        let rows = rows(&self.state, Boot(1));
        let before = self.rows.as_ref();
        let is_checkpoint_due = self.head.seq.0 / CHECKPOINT_EVENTS != head.seq.0 / CHECKPOINT_EVENTS;
        let part = Part {
            agent: self.id(),
            expected: self.head,
            records,
            head,
            anchors,
            payloads,
            list: (before.map(|rows| &rows.list) != Some(&rows.list)).then(|| codec::to_bytes(&rows.list)),
            due: (before.map(|rows| rows.due) != Some(rows.due)).then_some(rows.due),
            deadline: (before.map(|rows| rows.deadline) != Some(rows.deadline)).then_some(rows.deadline),
            closed: staged.closed,
            tokens: Vec::new(),
            checkpoint: is_checkpoint_due.then(|| checkpoint::encode(&self.state, head)),
        };
        (self.head, self.rows) = (head, Some(rows));
        Append { parts: vec![part], blobs: Vec::new() }
    }

    /// Writes steps until the ledger has `events` events.
    pub fn write_history(&mut self, store: &dyn Store, events: u64) {
        while self.head.seq.0 < events {
            let missing = (events - self.state.head.0).min(HISTORY_EVENTS_PER_APPEND as u64);
            (0..missing).for_each(|_| self.step());
            commit(store, &[self.append()]);
        }
    }
}

/// Commits appends that cannot conflict.
pub fn commit(store: &dyn Store, batch: &[Append]) {
    for outcome in store.commit(batch) {
        outcome.expect("nobody else writes");
    }
}

/// Creates agents, many in a commit.
pub fn write_agents(store: &dyn Store, authors: &mut [Author]) {
    for some in authors.chunks_mut(1_024) {
        let batch: Vec<Append> = some.iter_mut().map(Author::append).collect();
        commit(store, &batch);
    }
}

/// The request of a message with `text`.
pub fn message(text: String) -> NewMessage {
    NewMessage {
        kind: MessageKind::WebhookEvent,
        lane: None,
        origin: Origin::Webhook { source: "http".into(), event_type: None },
        surface: Surface::HttpPublicEnqueue,
        admission: Admission::PublicUnauthenticated,
        body_type: BodyType::Text,
        body: Content::new(text).0,
        metadata: None,
        correlation_id: None,
        causation_id: None,
        provided_trust: None,
        derived_from: None,
        reply_route: None,
    }
}

/// A text of [`PAYLOAD_BYTES`], another one at each place.
pub fn payload(seq: EventSeq) -> String {
    let mut text = "x".repeat(PAYLOAD_BYTES);
    let place = seq.0.to_string();
    text.replace_range(..place.len(), &place);
    text
}
