//! Turn plane: a turn as a state machine, each step an event (architecture 9).

use crate::events::call::{Call, CallResult};
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{Boot, EventSeq, MessageId, RunId, WorkId};
use crate::words::time::Timestamp;

shape! {
    /// The settings a turn runs under, recorded because they alter decisions.
    pub struct TurnPolicy {
        /// `provider/model`, the chosen one first, then its fallbacks.
        models: Vec<String>,
        rounds_max: u32,
        turn_ms_max: u64,
        output_tokens_per_round_max: u32,
        tokens_per_turn_max: u64,
        attempts_per_model_max: u32,
        retry_ms_first: u64,
        /// Tokens that a prompt may hold before older rounds give way to a recap.
        context_tokens_max: u64,
        /// Tokens, input and output together, that the agent may use in all its turns.
        tokens_per_agent_max: Option<u64>,
    }
}

shape! {
    /// What a part of a prompt is, which also says in whose voice it is given.
    pub enum SectionKind {
        /// Who the agent is and what the runtime promises; first, for it never changes.
        Contract,
        /// What an AGENTS.md says.
        Guidance,
        /// The view of a parent's context that the agent began with.
        Inherited,
        /// The digest of an episode.
        Episode,
        /// The agent's working memory.
        Memory,
        /// The work in focus, and what else is open.
        Work,
        /// What earlier rounds of the turn came to, in their place.
        Recap,
        /// A message of an earlier turn.
        EarlierMessage,
        /// The answer of an earlier turn.
        EarlierAnswer,
        /// The message this turn is spent on.
        Message,
        /// A prompt that came while the turn ran.
        Interjection,
        /// What the model said in an earlier round.
        Assistant,
        /// What a tool call came to.
        ToolResult,
    }
}
names!(SectionKind {
    Contract = "contract",
    Guidance = "guidance",
    Inherited = "inherited",
    Episode = "episode",
    Memory = "memory",
    Work = "work",
    Recap = "recap",
    EarlierMessage = "earlier_message",
    EarlierAnswer = "earlier_answer",
    Message = "message",
    Interjection = "interjection",
    Assistant = "assistant",
    ToolResult = "tool_result",
});

shape! {
    /// One part of a prompt: its bytes are in the store, under the hash.
    pub struct Section {
        kind: SectionKind,
        hash: Hash,
        bytes: u64,
    }
}

shape! {
    /// Why a model stopped.
    pub enum StopReason { EndTurn, ToolUse, MaxTokens, Other, }
}
names!(StopReason { EndTurn = "end_turn", ToolUse = "tool_use", MaxTokens = "max_tokens", Other = "other", });

shape! {
    /// Tokens as the provider counted them; none where it did not say.
    pub struct Usage {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
    }
}

shape! {
    /// Tokens as far as providers counted them.
    pub struct UsageTotal {
        input_tokens: u64,
        output_tokens: u64,
        /// Rounds of which the provider did not say.
        rounds_unknown: u64,
    }
}

impl Copy for UsageTotal {}

#[expect(clippy::derivable_impls, reason = "shapes derive no defaults; a count is one of the few that has one")]
impl Default for UsageTotal {
    fn default() -> Self {
        Self { input_tokens: 0, output_tokens: 0, rounds_unknown: 0 }
    }
}

impl UsageTotal {
    /// Adds a round's.
    pub fn add(&mut self, usage: &Usage) {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        self.include(&Self {
            input_tokens: count(usage.input_tokens),
            output_tokens: count(usage.output_tokens),
            rounds_unknown: u64::from(usage.input_tokens.is_none() || usage.output_tokens.is_none()),
        });
    }

    /// Adds another total. A provider's word may be any number.
    pub fn include(&mut self, other: &Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.rounds_unknown = self.rounds_unknown.saturating_add(other.rounds_unknown);
    }

    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

shape! {
    /// What kind of failure a model call had, which decides whether it is tried again.
    pub enum AttemptErrorKind {
        Timeout,
        Connection,
        RateLimited,
        Server,
        Authentication,
        InvalidRequest,
        ContextLength,
        InvalidAnswer,
        NotConfigured,
        /// The runtime was shut down meanwhile; it says nothing of the model.
        Interrupted,
    }
}
names!(AttemptErrorKind {
    Timeout = "timeout",
    Connection = "connection",
    RateLimited = "rate_limited",
    Server = "server",
    Authentication = "authentication",
    InvalidRequest = "invalid_request",
    ContextLength = "context_length",
    InvalidAnswer = "invalid_answer",
    NotConfigured = "not_configured",
    Interrupted = "interrupted",
});

shape! {
    /// A model call that failed.
    pub struct AttemptError {
        kind: AttemptErrorKind,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        message: String,
        /// What the provider asked for by Retry-After.
        retry_after_ms: Option<u64>,
    }
}

shape! {
    /// What follows a failed attempt.
    pub enum AfterAttempt {
        /// The model at this place of the policy is called again, not before this time.
        Again { model: u32, not_before: Timestamp, },
        /// The turn fails.
        GiveUp,
    }
}

shape! {
    /// An entry of a turn's transcript.
    pub enum Entry {
        /// The message the turn is spent on.
        Incoming { message: MessageId, },
        /// A model round. `answer` is its prompt section: the text and the calls as the model gave them.
        Assistant {
            round: u32,
            attempt: EventSeq,
            model: String,
            text: Content,
            answer: Section,
            calls: Vec<Call>,
            stop: StopReason,
            usage: Usage,
        },
        /// A tool call's result; `call` counts from 0 within the round.
        ToolResult { round: u32, call: u32, result: CallResult, },
        /// A prompt that the round before it took in.
        Interjection { message: MessageId, },
    }
}

shape! {
    /// How a turn ended.
    pub enum TurnOutcome { Completed, Failed, Aborted, Interrupted, }
}
names!(TurnOutcome {
    Completed = "completed",
    Failed = "failed",
    Aborted = "aborted",
    Interrupted = "interrupted",
});

shape! {
    /// What becomes of the agent after an abort (semantics 1).
    pub enum AbortMode {
        /// It is withheld from the scheduler until it is started.
        StopAfterAbort,
        /// It goes on with its queue.
        IdleAfterAbort,
        /// The whole agent was stopped.
        Stop,
    }
}
names!(AbortMode { StopAfterAbort = "stop_after_abort", IdleAfterAbort = "idle_after_abort", Stop = "stop", });

plane! {
    /// Facts about turns.
    TurnEvent {
        /// A message left the queue for a turn.
        0x0301 turn_started 1 since "0.1.0" => Started(TurnStarted) {
            run: RunId,
            message: MessageId,
            policy: TurnPolicy,
            /// The work in focus, as the message names it or the agent had it.
            work: Option<WorkId>,
        }
        /// A model round is owed, with exactly this prompt (architecture 25).
        0x0302 round_requested 1 since "0.1.0" => RoundRequested(RoundRequested) {
            run: RunId,
            /// From 1 within the turn.
            round: u32,
            /// Sections taken over from the round before, from the first; the rest of them is dropped.
            keeps: u32,
            /// Sections that follow those.
            added: Vec<Section>,
            /// Of the tools' schemas, kept in the store.
            tools: Hash,
            /// Of the provider-neutral request.
            request: Hash,
            /// Prompts that came during the turn and are part of this round.
            interjections: Vec<MessageId>,
        }
        /// A model call was begun; its `event_seq` is the attempt's name.
        0x0303 round_attempted 1 since "0.1.0" => RoundAttempted(RoundAttempted) {
            run: RunId,
            round: u32,
            boot: Boot,
            /// The model's place in the turn's policy, from 0.
            model: u32,
        }
        /// A model call failed.
        0x0304 round_attempt_failed 1 since "0.1.0" => RoundAttemptFailed(RoundAttemptFailed) {
            run: RunId,
            attempt: EventSeq,
            error: AttemptError,
            then: AfterAttempt,
        }
        /// A tool call that needs the outside is about to be made; its `event_seq` is the attempt's name.
        0x0308 call_started 1 since "0.1.0" => CallStarted(CallStarted) {
            run: RunId,
            round: u32,
            /// From 0 within the round.
            call: u32,
            boot: Boot,
        }
        /// The transcript grew by an entry.
        0x0305 turn_entry 1 since "0.1.0" => Entry(TurnEntry) {
            run: RunId,
            entry: Entry,
        }
        /// An operator cut the run short.
        0x0306 current_run_aborted 1 since "0.1.0" => Aborted(CurrentRunAborted) {
            run: RunId,
            mode: AbortMode,
            reason: String,
        }
        /// The turn has ended.
        0x0307 turn_terminal 1 since "0.1.0" => Terminal(TurnTerminal) {
            run: RunId,
            outcome: TurnOutcome,
            /// A stable code when it did not complete.
            reason: Option<String>,
            rounds: u32,
            usage: Usage,
        }
    }
}
