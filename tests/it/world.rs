//! One agent in a world of memory: the one door, a ledger, payloads, and a clock that the test moves. An agent that it
//! bears has a world of its own in there.
//!
//! Every command that goes through [`World::tell`] is checked: a refusal changes nothing, the state makes sense
//! afterwards, and no record is closed twice.

use holon::context::request::{AssistantPart, RawCall};
use holon::context::{self, Contents, Needs, Prompt, PromptError, fork};
use holon::decide::agent::{AgentCommand, NewAgent};
use holon::decide::queue::{NewMessage, QueueCommand};
use holon::decide::turn::{NewAnswer, NewRound, TurnCommand};
use holon::decide::{Born, Command, Rejection, Request, Staged, handle};
use holon::events::agent::{Answer, Role};
use holon::events::call::Shown;
use holon::events::queue::{Admission, BodyType, MessageKind, Origin, Surface};
use holon::events::task::CommandOutput;
use holon::events::turn::{Section, SectionKind, StopReason, TurnPolicy, Usage};
use holon::events::{Cause, Envelope, codec};
use holon::fold::owed::{Owed, owed};
use holon::fold::row::RecordKind;
use holon::fold::turn::{Phase, Requested, Turn};
use holon::fold::{AgentState, invariant};
use holon::offline::replay::Step;
use holon::tools;
use holon::words::content::{Blob, Content};
use holon::words::hash::Hash;
use holon::words::id::{AgentId, Boot, EventSeq, RunId};
use holon::words::limit;
use holon::words::time::Timestamp;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// When every world begins: 2026-11-20T09:30:00Z.
pub const BEGINNING: Timestamp = Timestamp(1_795_167_000_000);

pub struct World {
    pub state: AgentState,
    pub ledger: Vec<Envelope>,
    pub blobs: BTreeMap<Hash, Vec<u8>>,
    pub at: Timestamp,
    pub boot: Boot,
    /// Everything that was told to the family, refused or not.
    pub steps: Rc<RefCell<Vec<Step>>>,
    /// None for the first of the family.
    name: Option<AgentId>,
    pub children: BTreeMap<AgentId, World>,
    closed: BTreeSet<(RecordKind, u64)>,
}

impl World {
    /// A world in which nothing has happened.
    pub fn empty() -> Self {
        Self {
            state: AgentState::unborn(agent_id()),
            ledger: Vec::new(),
            blobs: BTreeMap::new(),
            at: BEGINNING,
            boot: Boot(1),
            steps: Rc::default(),
            name: None,
            children: BTreeMap::new(),
            closed: BTreeSet::new(),
        }
    }

    /// The world of an agent that was born in this one.
    fn bear(&mut self, born: Born) {
        if let Err(broken) = invariant::check(&born.state) {
            panic!("{broken}\nat its birth");
        }
        let (ledger, name) = (born.staged.envelopes, Some(born.state.agent_id.clone()));
        let (blobs, steps) = (self.blobs.clone(), self.steps.clone());
        let child = Self { state: born.state, ledger, blobs, steps, name, ..Self::empty() };
        let before = self.children.insert(child.state.agent_id.clone(), child);
        assert!(before.is_none(), "an agent is born once");
    }

    /// A child's world, at the time and under the boot of this one.
    pub fn child(&mut self, agent: &AgentId) -> &mut Self {
        let (at, boot, blobs) = (self.at, self.boot, self.blobs.clone());
        let child = self.children.get_mut(agent).expect("the child was born here");
        (child.at, child.boot) = (at, boot);
        child.blobs.extend(blobs);
        child
    }

    /// A world in which the agent `main` exists.
    pub fn new() -> Self {
        let mut world = Self::empty();
        world.tell(create()).expect("an agent can be created");
        world
    }

    /// Tells the agent a command; `Ok` is its answer.
    pub fn tell(&mut self, command: impl Into<Command>) -> Result<Answer, Rejection> {
        self.ask(Request::new(command, Cause::Operator))
    }

    pub fn ask(&mut self, request: Request) -> Result<Answer, Rejection> {
        let before = self.state.clone();
        let mut staged = Staged::default();
        let answer = handle(&mut self.state, &request, self.at, &mut staged).expect("the core agrees with itself");
        if answer.is_err() {
            assert_eq!(self.state, before, "a refusal changes nothing");
            assert!(staged.envelopes.is_empty(), "a refusal stages nothing");
        }
        if let Err(broken) = invariant::check(&self.state) {
            panic!("{broken}\nafter {request:?}");
        }
        for row in &staged.closed {
            assert!(self.closed.insert((row.kind, row.number)), "{row:?} is closed once");
            assert!(row.first <= row.last, "{row:?} begins before it ends");
        }
        self.ledger.extend(staged.envelopes);
        staged.births.into_iter().for_each(|born| self.bear(born));
        self.steps.borrow_mut().push(Step { at: self.at, agent: self.name.clone(), request });
        answer
    }

    pub fn turn(&self) -> Option<&Turn> {
        self.state.turns.current.as_deref()
    }

    pub fn requested(&self) -> Option<&Requested> {
        match &self.turn()?.phase {
            Phase::RoundRequested(requested) => Some(requested),
            Phase::RoundOwed | Phase::Calls(_) | Phase::Finished { .. } => None,
        }
    }

    /// The run under way; one that never was when none is.
    pub fn run(&self) -> RunId {
        self.turn().map_or(RunId(999), |turn| turn.run)
    }

    /// The attempt at a model round under way; one that never was when none is.
    pub fn attempt(&self) -> EventSeq {
        self.requested().and_then(|requested| requested.attempt).map_or(EventSeq(999), |attempt| attempt.seq)
    }

    pub fn owed(&self) -> Vec<Owed> {
        owed(&self.state, self.boot)
    }

    /// What the next prompt needs, read from the ledger and the payloads.
    pub fn contents(&self) -> Contents {
        self.read(context::needs(&self.state))
    }

    fn read(&self, asked: Needs) -> Contents {
        let mut contents = Contents { asked: asked.clone(), ..Contents::default() };
        for hash in &asked.hashes {
            contents.blobs.insert(*hash, self.blobs[hash].clone());
        }
        for seq in asked.events {
            let envelope = self.ledger[seq.0 as usize - 1].clone();
            if let Some(hash) = context::names(&envelope.event) {
                contents.blobs.insert(hash, self.blobs[&hash].clone());
            }
            contents.events.insert(seq, envelope);
        }
        contents
    }

    /// The view that a child of the agent would inherit with this handoff.
    pub fn fork(&self, handoff: &str) -> String {
        let contents = self.read(fork::needs(&self.state, handoff));
        fork::render(&self.state, &contents, handoff).expect("all it needs was read")
    }

    pub fn render(&self) -> Result<Prompt, PromptError> {
        context::render(&self.state, self.turn().expect("a turn runs"), &self.contents())
    }

    /// Builds the prompt of the round that is owed and asks for it.
    pub fn prepare(&mut self) -> Result<Answer, Rejection> {
        let Some(turn) = self.turn() else { return Err(Rejection::NothingToDo) };
        let (run, round) = (turn.run, turn.round + 1);
        let prompt = match self.render() {
            Ok(prompt) => prompt,
            Err(error) => {
                let (code, detail) = ("context_exhausted".into(), error.to_string());
                return self.ask_as_run(TurnCommand::Fail { run, round, code, detail });
            }
        };
        self.keep(prompt.blobs);
        let boot = self.boot;
        let (keeps, added, tools, request) = (prompt.keeps, prompt.added, prompt.tools, prompt.request);
        let interjections = prompt.interjections;
        let new = NewRound { run, round, boot, keeps, added, tools, request, interjections };
        self.ask_as_run(TurnCommand::Request(new))
    }

    fn ask_as_run(&mut self, command: TurnCommand) -> Result<Answer, Rejection> {
        let cause = Cause::Run(self.run());
        self.ask(Request::new(command, cause))
    }

    /// A model's answer, as the runtime hands it in.
    pub fn answered(&mut self, attempt: EventSeq, text: &str, calls: Vec<RawCall>) -> NewAnswer {
        let stop = if calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
        let (read, blobs) = tools::read_calls(&calls, stop);
        self.keep(blobs);
        let said = Blob::new(serde_json::to_vec(&AssistantPart { text: text.into(), calls }).expect("JSON"));
        let answer = Section { kind: SectionKind::Assistant, hash: said.hash, bytes: said.bytes.len() as u64 };
        self.keep(vec![said]);
        let text = self.content(text);
        let usage = Usage { input_tokens: Some(10), output_tokens: Some(5) };
        NewAnswer { run: self.run(), attempt, text, answer, calls: read, stop, usage }
    }

    /// What a command wrote.
    pub fn output(&mut self, text: &str) -> CommandOutput {
        CommandOutput { shown: self.content(text), bytes: text.len() as u64, cut: false, kept: None }
    }

    /// Output as a call is shown it.
    pub fn shown(&mut self, text: &str) -> Shown {
        Shown { text: self.content(text), bytes: text.len() as u64, cut: false }
    }

    /// Text as an event carries it; what is long is kept here.
    pub fn content(&mut self, text: &str) -> Content {
        let (content, blob) = Content::new(text.to_owned());
        self.keep(blob.into_iter().collect());
        content
    }

    pub fn keep(&mut self, blobs: Vec<Blob>) {
        self.blobs.extend(blobs.into_iter().map(|blob| (blob.hash, blob.bytes)));
    }

    /// The ledger's bytes, record after record.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for envelope in &self.ledger {
            codec::encode(envelope, &mut bytes).expect("events are within their bounds");
        }
        bytes
    }

    /// Does what the runtime does with an operator's prompt.
    pub fn prompt(&mut self, text: &str) -> Result<Answer, Rejection> {
        let message = self.message(MessageKind::OperatorPrompt, Origin::Operator { actor_id: None }, text);
        self.tell(QueueCommand::Enqueue(message))
    }

    pub fn message(&mut self, kind: MessageKind, origin: Origin, text: &str) -> NewMessage {
        NewMessage {
            kind,
            lane: None,
            origin,
            surface: Surface::HttpControlPrompt,
            admission: Admission::ControlAuthenticated,
            body_type: BodyType::Text,
            body: self.content(text),
            metadata: None,
            correlation_id: None,
            causation_id: None,
            provided_trust: None,
            reply_route: None,
            derived_from: None,
        }
    }
}

pub fn agent_id() -> AgentId {
    AgentId::parse("main").expect("main is an id")
}

pub fn create() -> AgentCommand {
    AgentCommand::Create(NewAgent { agent_id: agent_id(), role: Role::Default, template: None })
}

/// The settings a turn runs under unless a test says otherwise: one model and its fallback.
pub fn policy() -> TurnPolicy {
    TurnPolicy {
        models: vec!["scripted/first".into(), "scripted/second".into()],
        rounds_max: limit::ROUNDS_PER_TURN_MAX,
        turn_ms_max: limit::TURN_MS_MAX,
        output_tokens_per_round_max: limit::OUTPUT_TOKENS_PER_ROUND_MAX,
        tokens_per_turn_max: limit::TOKENS_PER_TURN_MAX,
        attempts_per_model_max: limit::ATTEMPTS_PER_MODEL_MAX,
        retry_ms_first: limit::RETRY_MS_FIRST,
        context_tokens_max: 150_000,
        tokens_per_agent_max: None,
    }
}

pub fn call(tool: &str, arguments: &str) -> RawCall {
    RawCall { id: format!("call-{tool}"), tool: tool.into(), arguments: arguments.into() }
}
