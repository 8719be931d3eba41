//! Floor 3: commands to events.
//!
//! [`handle`] is the one door: it decides, numbers, folds and stages, and nothing reaches the ledger that the fold
//! has not accepted first (architecture 2). Everything here is a function of the state, the command and one reading
//! of the clock.

pub mod agent;
mod binding;
pub mod birth;
pub mod call;
mod episode;
pub mod errand;
pub mod home;
pub mod memory;
pub mod operator;
mod outside;
pub mod policy;
pub mod profile;
pub mod queue;
pub mod schedule;
mod speaker;
pub mod task;
mod timer;
pub mod trigger;
pub mod turn;
pub mod waiting;
mod webhook;
pub mod work;
pub mod workspace;

use crate::events::agent::{Answer, RequestAnswered, Speaker};
use crate::events::{Cause, Envelope, Event};
use crate::fold::agent::Lifecycle;
use crate::fold::row::{RecordRow, TokenRow, closes, token, worthless};
use crate::fold::{AgentState, IllegalEvent};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, RunId, SkillName, TokenName};
use crate::words::limit::{EVENTS_PER_COMMAND_MAX, REQUEST_KEY_BYTES_MAX};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A request to decide, plane by plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Agent(agent::AgentCommand),
    Queue(queue::QueueCommand),
    Turn(turn::TurnCommand),
    Work(work::WorkCommand),
    Task(task::TaskCommand),
    Waiting(waiting::WaitingCommand),
    Workspace(workspace::WorkspaceCommand),
    Operator(operator::OperatorCommand),
}

/// A command with what came along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub command: Command,
    pub cause: Cause,
    /// The caller's name for the request, if it gave one.
    pub key: Option<RequestKey>,
}

/// A caller's name for a request: the same key and fingerprint get the same answer, and nothing happens twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestKey {
    pub key: String,
    /// Of the route and the body as they were sent.
    pub fingerprint: Hash,
}

/// Where a request comes from: all that a surface knows of it beside the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    pub cause: Cause,
    /// The caller's name for the request, if it gave one.
    pub key: Option<RequestKey>,
}

impl Attribution {
    /// The request for `command`.
    pub fn request(self, command: impl Into<Command>) -> Request {
        Request { command: command.into(), cause: self.cause, key: self.key }
    }
}

impl Request {
    pub fn new(command: impl Into<Command>, cause: Cause) -> Self {
        Self { command: command.into(), cause, key: None }
    }
}

/// The core's reasoned no. Nothing is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("there is no such agent")]
    UnknownAgent,
    #[error("an agent of this id exists and is another one")]
    AgentExists,
    #[error("the agent has ended; its ledger is sealed")]
    AgentArchived,
    #[error("the agent is stopped; start it first")]
    AgentStopped,
    #[error("the agent is private: only its parent sends it messages")]
    AgentPrivate,
    #[error("run {requested} is not the one that runs")]
    StaleRun { requested: RunId, current: RunId },
    #[error("no run is under way")]
    NoCurrentRun,
    #[error("there is no {what} {id}")]
    Unknown { what: &'static str, id: String },
    #[error("{what} {id} has ended")]
    Ended { what: &'static str, id: String },
    #[error("there are {max} {what} already, which is the most there may be")]
    TooMany { what: &'static str, max: usize },
    #[error("the capability is not valid")]
    NoCapability,
    #[error("the binding does not speak for this: {reason}")]
    NotBound { reason: &'static str },
    #[error("the webhook is not signed with the agent's secret")]
    Unsigned,
    #[error("the token {name} exists")]
    TokenExists { name: TokenName },
    #[error("the skill {name} is installed already")]
    SkillInstalled { name: SkillName },
    #[error("the message is not waiting")]
    MessageNotWaiting,
    #[error("messages of kind {kind} do not come from such an origin")]
    KindOriginMismatch { kind: &'static str },
    #[error("{field} {reason}")]
    Invalid { field: &'static str, reason: String },
    #[error("the queue is full: {waiting} messages wait")]
    QueueFull { waiting: usize },
    #[error("public callers have sent as much today as the agent takes in a day")]
    DayFull { seconds_left: u64 },
    #[error("the idempotency key was used for another request")]
    KeyReused,
    #[error("the result comes from an attempt that was replaced or has ended")]
    StaleAttempt,
    #[error("there is nothing to do")]
    NothingToDo,
}

impl Rejection {
    /// The stable code, which clients and models act on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownAgent => "agent_not_found",
            Self::AgentExists => "agent_exists",
            Self::AgentArchived => "agent_archived",
            Self::AgentStopped => "agent_stopped",
            Self::AgentPrivate => "agent_private",
            Self::StaleRun { .. } => "stale_run_id",
            Self::NoCurrentRun => "no_current_run",
            Self::Unknown { .. } => "not_found",
            Self::Ended { .. } => "has_ended",
            Self::TooMany { .. } => "too_many",
            Self::NoCapability => "invalid_callback",
            Self::NotBound { .. } => "binding_mismatch",
            Self::Unsigned => "invalid_signature",
            Self::TokenExists { .. } => "token_exists",
            Self::SkillInstalled { .. } => "skill_already_installed",
            Self::MessageNotWaiting => "message_not_waiting",
            Self::KindOriginMismatch { .. } => "kind_origin_mismatch",
            Self::Invalid { .. } => "invalid_field",
            Self::QueueFull { .. } => "queue_full",
            Self::DayFull { .. } => "daily_limit",
            Self::KeyReused => "idempotency_key_reused",
            Self::StaleAttempt => "stale_attempt",
            Self::NothingToDo => "nothing_to_do",
        }
    }

    /// What to do about it, where there is something.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most rejections say all there is to say in their text")]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::AgentStopped => {
                Some("start it: holon agent start ID, or POST /control/agents/ID/control {\"action\":\"start\"}")
            }
            Self::StaleRun { .. } => Some("read the agent's current_run_id and try again with it, or without run_id"),
            Self::UnknownAgent => Some("holon agent list, or GET /agents/list, names the agents"),
            Self::QueueFull { .. } => Some("wait until the agent has worked off some of its messages"),
            Self::DayFull { .. } => Some("send it tomorrow (UTC), or let the operator prompt the agent"),
            Self::NoCurrentRun => Some("holon status --agent ID tells what the agent is doing"),
            Self::AgentExists => Some("choose another id, or use the agent that is there"),
            Self::KeyReused => Some("use another Idempotency-Key for another request"),
            Self::SkillInstalled { .. } => Some("uninstall it first: holon skills uninstall NAME"),
            Self::TooMany { .. } => Some("end some that are no longer needed"),
            _ => None,
        }
    }
}

/// What a command leads to.
#[derive(Debug, Default)]
pub struct Decision {
    pub own: Vec<Event>,
    /// Agents that are born with it, each with its first events.
    pub births: Vec<(AgentId, Vec<Event>)>,
    pub answer: Option<Answer>,
}

impl Decision {
    fn of(own: Vec<Event>) -> Self {
        Self { own, ..Self::default() }
    }

    fn answering(own: Vec<Event>, answer: Answer) -> Self {
        Self { own, answer: Some(answer), ..Self::default() }
    }
}

/// Events that the fold has accepted and the ledger has not yet.
#[derive(Debug, Default)]
pub struct Staged {
    pub envelopes: Vec<Envelope>,
    /// Records that these events close.
    pub closed: Vec<RecordRow>,
    /// Capabilities that they make live, or worthless.
    pub tokens: Vec<TokenRow>,
    /// The names of secrets that nothing names after them.
    pub secrets: Vec<String>,
    /// Agents that are born with them.
    pub births: Vec<Born>,
}

/// An agent that is born, and its first events.
#[derive(Debug)]
pub struct Born {
    pub state: AgentState,
    pub staged: Staged,
}

/// Decides a command, folds what it leads to into `state`, and stages it.
///
/// The inner error is a refusal: nothing was folded. The outer one means that the core contradicts itself: the
/// state is spoilt and must be dropped.
pub fn handle(
    state: &mut AgentState,
    request: &Request,
    at: Timestamp,
    staged: &mut Staged,
) -> Result<Result<Answer, Rejection>, IllegalEvent> {
    let named = match named(state, request, at) {
        Ok(Named::Before(answer)) => return Ok(Ok(answer)),
        Ok(Named::Here(key, speaker)) => Some((key, speaker)),
        Ok(Named::Not) => None,
        Err(rejection) => return Ok(Err(rejection)),
    };
    if comes_too_late(state, request) {
        return Ok(Err(Rejection::AgentArchived));
    }
    let decision = match outside::admits(state, request, at).and_then(|()| decide(state, &request.command, at)) {
        Ok(decision) => decision,
        Err(rejection) => return Ok(Err(rejection)),
    };
    let writes = named.is_some() || !decision.own.is_empty();
    if writes && state.agent.lifecycle == Lifecycle::Archived {
        return Ok(Err(Rejection::AgentArchived));
    }
    let answer = decision.answer.unwrap_or(Answer::Done);
    let mut door = Door { state, cause: &request.cause, at, staged };
    door.pass(decision.own)?;
    door.bear(decision.births)?;
    // What follows by itself may seal the ledger.
    if let Some((RequestKey { key, fingerprint }, speaker)) = named {
        door.pass(vec![RequestAnswered { key, fingerprint, answer: answer.clone(), speaker }.into()])?;
    }
    door.follow_up()?;
    Ok(Ok(answer))
}

/// Whatever else may stand in the way of it, an agent that has ended takes nothing from its operator. Its end is not
/// told to whoever holds a capability.
fn comes_too_late(state: &AgentState, request: &Request) -> bool {
    let is_heard = matches!(
        request.command,
        Command::Agent(agent::AgentCommand::Archive) | Command::Waiting(waiting::WaitingCommand::Callback(_))
    );
    request.cause.is_operator() && !is_heard && state.agent.lifecycle == Lifecycle::Archived
}

/// A refusal, or the events to be recorded.
pub fn decide(state: &AgentState, command: &Command, at: Timestamp) -> Result<Decision, Rejection> {
    let creates = matches!(command, Command::Agent(agent::AgentCommand::Create(_)));
    if !creates && !state.is_born() {
        return Err(Rejection::UnknownAgent);
    }
    match command {
        Command::Agent(command) => agent::decide(state, command),
        Command::Queue(command) => queue::decide(state, command),
        Command::Turn(command) => turn::decide(state, command, at),
        Command::Work(command) => work::decide(state, command, at),
        Command::Task(command) => task::decide(state, command),
        Command::Waiting(command) => waiting::decide(state, command, at),
        Command::Workspace(command) => workspace::decide(state, command),
        Command::Operator(command) => operator::decide(state, command),
    }
}

/// What a request is called.
enum Named {
    Not,
    /// It was answered before under that name.
    Before(Answer),
    Here(RequestKey, Speaker),
}

fn named(state: &AgentState, request: &Request, at: Timestamp) -> Result<Named, Rejection> {
    let Some(key) = &request.key else { return Ok(Named::Not) };
    if key.key.is_empty() || key.key.len() > REQUEST_KEY_BYTES_MAX {
        let reason = format!("has 1 to {REQUEST_KEY_BYTES_MAX} characters");
        return Err(Rejection::Invalid { field: "Idempotency-Key", reason });
    }
    let speaker = speaker::of(state, request)?;
    match state.receipts.find(&speaker, &key.key, at) {
        Some(receipt) if receipt.fingerprint == key.fingerprint => Ok(Named::Before(receipt.answer.clone())),
        Some(_) => Err(Rejection::KeyReused),
        None => Ok(Named::Here(key.clone(), speaker)),
    }
}

/// Numbers events, folds them and stages them.
struct Door<'a> {
    state: &'a mut AgentState,
    cause: &'a Cause,
    at: Timestamp,
    staged: &'a mut Staged,
}

impl Door<'_> {
    fn pass(&mut self, events: Vec<Event>) -> Result<(), IllegalEvent> {
        for event in events {
            let envelope = Envelope { seq: self.state.head.next(), at: self.at, cause: self.cause.clone(), event };
            self.staged.closed.extend(closes(self.state, &envelope));
            self.staged.tokens.extend(token(self.state, &envelope));
            self.staged.secrets.extend(worthless(self.state, &envelope));
            self.state.evolve(&envelope)?;
            self.staged.envelopes.push(envelope);
        }
        Ok(())
    }

    /// Each birth goes through a door of its own, into the same append.
    fn bear(&mut self, births: Vec<(AgentId, Vec<Event>)>) -> Result<(), IllegalEvent> {
        for (agent, events) in births {
            let (mut state, mut staged) = (AgentState::unborn(agent), Staged::default());
            let mut door = Door { state: &mut state, cause: self.cause, at: self.at, staged: &mut staged };
            door.pass(events)?;
            self.staged.births.push(Born { state, staged });
        }
        Ok(())
    }

    /// What the state itself leads to, without anybody asking: until it leads to nothing.
    fn follow_up(&mut self) -> Result<(), IllegalEvent> {
        for _ in 0..EVENTS_PER_COMMAND_MAX {
            let events = schedule::next(self.state);
            if events.is_empty() {
                return Ok(());
            }
            self.pass(events)?;
        }
        panic!("the scheduler comes to rest: agent {} at event {}", self.state.agent_id, self.state.head);
    }
}

macro_rules! commands {
    ($($plane:ident($command:ty),)*) => {$(
        impl From<$command> for Command {
            fn from(command: $command) -> Self {
                Self::$plane(command)
            }
        }
    )*};
}

commands! {
    Agent(agent::AgentCommand),
    Queue(queue::QueueCommand),
    Turn(turn::TurnCommand),
    Work(work::WorkCommand),
    Task(task::TaskCommand),
    Waiting(waiting::WaitingCommand),
    Workspace(workspace::WorkspaceCommand),
    Operator(operator::OperatorCommand),
}
