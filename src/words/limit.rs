//! Every bound of the project, in one place, tied together where one rests on another.
//!
//! Sources are named as `semantics N` or `wire` for the design pages and by RFC where we chose.

/// An agent id as a caller may choose it (semantics 1).
pub const AGENT_ID_CHOSEN_BYTES_MAX: usize = 48;
/// Any agent id, those of children included (semantics 1).
pub const AGENT_ID_BYTES_MAX: usize = 64;

/// One message body (semantics 2).
pub const MESSAGE_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Messages waiting in one agent's queue (semantics 2).
pub const QUEUE_MESSAGES_MAX: usize = 10_000;
/// Bytes of the bodies waiting in one agent's queue (semantics 2).
pub const QUEUE_BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Of these, what only the operator and the runtime may fill, so that nobody else locks them out (semantics 2).
pub const QUEUE_MESSAGES_RESERVED: usize = 1_000;
pub const QUEUE_BODY_BYTES_RESERVED: u64 = 16 * 1024 * 1024;
/// Reasons that one wake tick gathers before further wakes are refused, and how many of them are the operator's.
pub const WAKE_REASONS_MAX: usize = 1_000;
pub const WAKE_REASONS_RESERVED: usize = 100;
/// The reason or the source of a wake.
pub const WAKE_TEXT_BYTES_MAX: usize = 4 * 1024;
/// Correlation ids, actor ids and other names that a caller sends.
pub const NAME_BYTES_MAX: usize = 256;
/// Metadata of a message, as JSON text.
pub const METADATA_BYTES_MAX: usize = 16 * 1024;

/// Text up to this size stays inside its event; longer text is stored once, by hash (architecture 23).
pub const INLINE_BYTES_MAX: usize = 2 * 1024;
/// Characters of a stored text that its event repeats, for people and lists.
pub const EXCERPT_BYTES_MAX: usize = 256;
/// A stored payload up to this size rides in the transaction; above it is a file (architecture 23).
pub const BLOB_IN_TRANSACTION_BYTES_MAX: usize = 64 * 1024;

/// One encoded event. Checked when writing and when reading.
pub const EVENT_BYTES_MAX: usize = 256 * 1024;
/// Events that one command may lead to.
pub const EVENTS_PER_COMMAND_MAX: usize = 1_024;
/// Messages that one command may put aside.
pub const DROPS_PER_COMMAND_MAX: usize = 1_000;
/// Appends that the writer puts into one transaction.
pub const APPENDS_PER_COMMIT_MAX: usize = 1_024;
/// Bytes of records and payloads after which the writer closes a transaction's batch.
pub const COMMIT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Submissions that one agent's loop takes at once.
pub const SUBMISSIONS_PER_BATCH_MAX: usize = 256;
/// Submissions that may wait in one agent's inbox, and how many of them are not for public callers.
pub const INBOX_SUBMISSIONS_MAX: usize = 16_384;
pub const INBOX_SUBMISSIONS_RESERVED: usize = 1_024;

/// Every so many events the link of the chain is kept, so that reading from the middle is verified from there.
pub const ANCHOR_EVENTS: u64 = 64;
/// Events after which an awake agent's state is written as a checkpoint.
pub const CHECKPOINT_EVENTS: u64 = 256;

/// How long a receipt answers a repeated idempotency key, in event time (architecture 7).
pub const RECEIPT_AGE_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Receipts of the operator that an agent keeps (architecture 7).
pub const RECEIPTS_OF_OPERATOR_MAX: usize = 10_000;
/// Receipts of any other speaker: a busy source's requests of a day, and no more than a part of what all have.
pub const RECEIPTS_OF_SPEAKER_MAX: usize = 2_000;
/// Receipts of all speakers but the operator together, which bounds the state whatever sources are made up.
pub const RECEIPTS_OF_OTHERS_MAX: usize = 10_000;
/// An idempotency key.
pub const REQUEST_KEY_BYTES_MAX: usize = 255;

/// Model rounds of one turn (semantics 3).
pub const ROUNDS_PER_TURN_MAX: u32 = 200;
/// Wall time of one turn (semantics 3): a day.
pub const TURN_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// The shortest control token: 16 random bytes cannot be guessed however fast a peer asks, and shorter words can.
pub const CONTROL_TOKEN_BYTES_MIN: usize = 16;
/// The longest: it comes in a header of each request.
pub const CONTROL_TOKEN_BYTES_MAX: usize = 1_024;

/// Output tokens asked for in one model round.
pub const OUTPUT_TOKENS_PER_ROUND_MAX: u32 = 8_192;
/// Tokens, input and output together, that one turn may use.
pub const TOKENS_PER_TURN_MAX: u64 = 5_000_000;
/// Tool calls that one model round may ask for.
pub const CALLS_PER_ROUND_MAX: usize = 64;
/// Prompts that join one model round; further ones join the rounds after it.
pub const INTERJECTIONS_PER_ROUND_MAX: usize = 64;
/// What all calls of one model round ask for, together.
pub const CALLS_PER_ROUND_BYTES_MAX: usize = 3 * COMMAND_BYTES_MAX + 8 * 1024;
/// A tool call's id or name, as a model gives it.
pub const CALL_NAME_BYTES_MAX: usize = 128;
/// A command line, as a model or an operator gives it.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// A model's answer, its tool arguments included.
pub const MODEL_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Models tried for one round: the chosen one and its fallbacks.
pub const MODELS_PER_TURN_MAX: usize = 8;
/// Attempts with one model before the next of the chain is tried (semantics 3).
pub const ATTEMPTS_PER_MODEL_MAX: u32 = 3;
/// Boots that may begin one step without a result before it is given up (architecture 10).
pub const BOOTS_PER_STEP_MAX: u32 = 3;
/// First wait between two attempts with a model; it doubles each time.
pub const RETRY_MS_FIRST: u64 = 500;
/// Longest wait between two attempts, a provider's Retry-After included.
pub const RETRY_MS_MAX: u64 = 5 * 60 * 1_000;
/// Turns of the past that the prompt repeats word for word, once an episode holds them.
pub const RECENT_KEPT_MAX: usize = 8;
/// The most of them, with those that no episode holds yet.
pub const RECENT_TURNS_MAX: usize = RECENT_KEPT_MAX + EPISODE_TURNS_MAX;
/// Tokens that a prompt may hold before older rounds give way to a recap.
pub const CONTEXT_TOKENS_MAX: u64 = 150_000;
/// Bytes of the conversation that a prompt may hold before the turn fails `context_exhausted`.
pub const PROMPT_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Open work items of one agent.
pub const WORK_OPEN_MAX: usize = 256;
/// An objective, a blocker, a delivery target, a todo, a wait's reason: short texts that the state holds.
pub const NOTE_BYTES_MAX: usize = 2 * 1024;
/// Todos of one work item.
pub const TODOS_MAX: usize = 64;
/// One todo.
pub const TODO_BYTES_MAX: usize = 512;
/// Items that one item may depend on.
pub const DEPENDENCIES_MAX: usize = 32;
/// A longer text that a tool call hands in: a plan, a report, a note, a child's first message.
pub const CALL_TEXT_BYTES_MAX: usize = 256 * 1024;
/// When a blocker is looked at again if nobody said when (semantics 4).
pub const RECHECK_MS_DEFAULT: u64 = 60 * 60 * 1_000;
/// Shortest and longest time that a wait, a recheck or a timer may be given: a second, and ten years.
pub const WAIT_MS_MIN: u64 = 1;
pub const WAIT_MS_MAX: u64 = 10 * 365 * 24 * 60 * 60 * 1_000;
/// Shortest interval of a timer.
pub const TIMER_INTERVAL_MS_MIN: u64 = 1_000;
/// Wait before runnable work is continued a second time; it doubles each time.
pub const CONTINUATION_MS_FIRST: u64 = 5_000;
/// Longest wait before it is continued again.
pub const CONTINUATION_MS_MAX: u64 = 10 * 60 * 1_000;
/// Continuations for which nothing was done before the item is held (semantics 4).
pub const CONTINUATIONS_MAX: u32 = 3;

/// Timers and triggers set, and waits open, of one agent.
pub const TIMERS_MAX: usize = 256;
pub const TRIGGERS_MAX: usize = 64;
/// The file with the two URLs of a trigger.
pub const TRIGGER_FILE_BYTES_MAX: u64 = 3 * URL_BYTES_MAX as u64;
pub const WAITS_MAX: usize = 512;
/// How long webhooks may be signed with the secret that another one took the place of.
pub const WEBHOOK_SECRET_OVERLAP_MS: u64 = 24 * 60 * 60 * 1_000;
/// Workspaces attached to one agent.
pub const WORKSPACES_MAX: usize = 64;
/// A path, as the ledger holds it.
pub const PATH_BYTES_MAX: usize = 4 * 1024;
/// How long one git command may take.
pub const GIT_MS_MAX: u64 = 60_000;
/// What one git command may print: some 100,000 paths.
pub const GIT_OUTPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Worktrees of one repository among which one is looked for.
pub const WORKTREES_LOOKED_AT_MAX: usize = 10_000;
/// Changed files that a worktree's summary names.
pub const CHANGED_FILES_MAX: usize = 200;
/// A file that a call reads, searches or patches.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Text that one call shows of files.
pub const FILE_SHOWN_BYTES_MAX: usize = 256 * 1024;
/// Files that one search looks into, and how long it may take.
pub const SEARCH_FILES_MAX: usize = 200_000;
pub const SEARCH_MS_MAX: u64 = 20_000;
/// A .gitignore that a search goes by; a longer one is not heard.
pub const IGNORE_FILE_BYTES_MAX: u64 = 256 * 1024;
/// Files that one patch may change.
pub const PATCH_FILES_MAX: usize = 256;
/// Lines of a file that a call reads when it does not say, and at most.
pub const FILE_LINES_DEFAULT: u32 = 2_000;
pub const FILE_LINES_MAX: u32 = 20_000;
/// Matches that a search shows when it is not told, and at most.
pub const SEARCH_MATCHES_DEFAULT: u32 = 200;
pub const SEARCH_MATCHES_MAX: u32 = 2_000;
/// One guidance file.
pub const GUIDANCE_BYTES_MAX: usize = 64 * 1024;
/// Skills installed for one agent.
pub const SKILLS_MAX: usize = 32;
/// Named tokens of a home: each request is compared with all of them.
pub const TOKENS_MAX: usize = 256;
/// Settings that a start records.
pub const SETTINGS_MAX: usize = 256;
/// A token's name: records repeat it in every event that its holder leads to.
pub const TOKEN_NAME_BYTES_MAX: usize = 64;
/// A skill's name, and what is told of what it is for.
pub const SKILL_NAME_BYTES_MAX: usize = 64;
pub const SKILL_DESCRIPTION_BYTES_MAX: usize = 1_024;
/// Files and folders of a skill that is copied, how deep they lie, and their bytes together.
pub const SKILL_FILES_MAX: usize = 256;
pub const SKILL_DEPTH_MAX: usize = 8;
pub const SKILL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Notes of the working memory, and one note.
pub const MEMORY_ENTRIES_MAX: usize = 64;
pub const MEMORY_ENTRY_BYTES_MAX: usize = 8 * 1024;
/// Of all notes together, which every prompt shows.
pub const MEMORY_BYTES_MAX: usize = 64 * 1024;
/// Episodes that prompts repeat.
pub const EPISODES_KEPT_MAX: usize = 8;
/// Turns after which an episode is closed in any case (semantics 9).
pub const EPISODE_TURNS_MAX: usize = 12;
/// What an episode's digest says of one message or answer.
pub const DIGEST_LINE_BYTES_MAX: usize = 200;

/// Notices that the state still names; all are found through the store.
pub const NOTICES_KEPT_MAX: usize = 10;
/// What a list says of a notice.
pub const NOTICE_SUMMARY_CHARS_MAX: usize = 160;

/// Deliveries that one agent owes at once.
pub const OUTBOX_MAX: usize = 256;
/// Operator bindings of one agent.
pub const BINDINGS_MAX: usize = 16;
/// Named capabilities of a binding.
pub const CAPABILITIES_MAX: usize = 32;
/// Deliveries that wait for one binding; beyond them the oldest is abandoned.
pub const DELIVERIES_OWED_MAX: usize = 1_024;
/// Routes to which one turn's answer goes back.
pub const REPLY_ROUTES_MAX: usize = 64;
/// First and longest wait before a delivery is attempted again; the first doubles each time.
pub const DELIVERY_RETRY_MS_FIRST: u64 = 500;
pub const DELIVERY_RETRY_MS_MAX: u64 = 10 * 60 * 1_000;
/// Attempts that fail in a row before the binding is reported as failing.
pub const DELIVERY_FAILURES_MAX: u32 = 3;
/// How long one attempt may take.
pub const DELIVERY_MS_MAX: u64 = 5_000;
/// How long a transport that has taken a delivery may take to say what it calls it.
pub const DELIVERY_NAME_MS_MAX: u64 = 1_000;
/// What is read of a transport's answer.
pub const DELIVERY_ANSWER_BYTES_MAX: usize = 16 * 1024;
/// A callback URL.
pub const URL_BYTES_MAX: usize = 4 * 1024;
/// Children that one agent supervises at once.
pub const CHILDREN_OPEN_MAX: usize = 256;
/// The recap that stands for earlier rounds of a turn.
pub const RECAP_BYTES_MAX: usize = 64 * 1024;
/// What a child inherits of its parent's context.
pub const INHERITED_BYTES_MAX: usize = 64 * 1024;
/// A task's label, as a child's first message gives it (semantics 1).
pub const TASK_LABEL_CHARS_MAX: usize = 120;

/// One input for a task, and inputs that wait for delivery.
pub const TASK_INPUT_BYTES_MAX: u64 = 64 * 1024;
pub const TASK_INPUTS_MAX: usize = 64;

/// Open tasks of one agent.
pub const TASKS_OPEN_MAX: usize = 256;
/// Ended tasks that the state still names; older ones are found through the store.
pub const TASKS_ENDED_KEPT_MAX: usize = 16;
/// Time a command may take before its tool call answers with a task handle (semantics 5).
pub const YIELD_MS_DEFAULT: u64 = 10_000;
/// Longest such time a caller may ask for.
pub const YIELD_MS_MAX: u64 = 10 * 60 * 1_000;
/// How long TaskOutput blocks when it is not told.
pub const TASK_OUTPUT_BLOCK_MS_DEFAULT: u64 = 30_000;
/// Longest block that TaskOutput accepts.
pub const TASK_OUTPUT_BLOCK_MS_MAX: u64 = 10 * 60 * 1_000;
/// Output of a command that is shown to a model, in tokens, when it does not say.
pub const SHOWN_TOKENS_DEFAULT: u32 = 8_000;
/// Most output of a command that a model may ask to be shown.
pub const SHOWN_TOKENS_MAX: u32 = 64_000;
/// Bytes reckoned for one token where a size must be guessed.
pub const BYTES_PER_TOKEN: u64 = 4;
/// Output of a command kept on disk, head and tail together (semantics 5).
pub const COMMAND_OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The record of what a supervisor is to run: a command line, paths and an environment, as JSON that may escape each
/// byte in six.
pub const RUN_SPEC_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A record that a supervisor writes: a few numbers, and at most one reason.
pub const RUN_RECORD_BYTES_MAX: u64 = 64 * 1024;
/// Processes that a command and all that it starts may have at once: far beyond what a parallel build of a large machine
/// needs, and few enough that a supervisor ends a fork bomb within seconds.
pub const COMMAND_PROCESSES_MAX: u64 = 1_024;
/// Threads for each of them, on the average, before the kernel refuses an ordinary user another one.
pub const COMMAND_THREADS_PER_PROCESS: u64 = 4;
/// Memory of a command's tree, of a hundred parts of the machine's: it leaves room for the runtime and its user.
pub const COMMAND_MEMORY_PERCENT_MAX: u64 = 75;
/// One file that a command writes. A sparse file of a terabyte fills no disk, and yet breaks what copies it.
pub const COMMAND_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// Time between SIGTERM and SIGKILL (semantics 5).
pub const STOP_GRACE_MS: u64 = 5_000;

/// Turns, model calls and commands that a host runs at once (semantics 3).
pub const HOST_TURNS_MAX: usize = 64;
/// Model calls a host has under way at once.
pub const HOST_MODEL_CALLS_MAX: usize = 32;
/// Commands a host begins and waits for at once.
pub const HOST_COMMANDS_MAX: usize = 32;
/// Commands that go on in the background of a host; what comes beyond them keeps the place in which it began.
pub const HOST_BACKGROUND_COMMANDS_MAX: usize = 256;
/// Commands that one agent may have in the background: servers and watchers that it forgets must not be endless.
pub const BACKGROUND_COMMANDS_MAX: usize = 32;
/// How long an agent with nothing to do stays loaded.
pub const LINGER_MS: u64 = 5_000;

/// Connections that one listener serves at once, fewer where few files may be open; one more is told to come again
/// (wire, slow clients).
pub const CONNECTIONS_MAX: usize = SUBSCRIBERS_MAX + 2_048;
/// Connections beyond that which are told so at once; those beyond these are just closed.
pub const CONNECTIONS_REFUSED_MAX: usize = 64;
/// The head of a request, and how long it may take to arrive, or to begin on a connection that was kept.
pub const REQUEST_HEAD_BYTES_MAX: usize = 64 * 1024;
pub const REQUEST_HEAD_MS_MAX: u64 = 15_000;
/// How long a client may take nothing of what it is sent before its connection is closed, streams included: a
/// subscriber that comes back resumes by its cursor. What the kernel holds for it comes before that.
pub const WRITE_MS_MAX: u64 = 30_000;
/// A request body (wire).
pub const REQUEST_BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// What the request bodies under way hold together; what comes beyond it is told to come again.
pub const REQUEST_BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The body of a callback (control-plane seed).
pub const CALLBACK_BODY_BYTES_MAX: usize = 256 * 1024;
/// Secrets that a home keeps.
pub const SECRETS_MAX: usize = 10_000;
/// How long a request body may take to arrive (wire, slow clients).
pub const REQUEST_BODY_MS_MAX: u64 = 30_000;
/// List entries that a filter looks at before it answers what it found so far.
pub const AGENTS_LOOKED_AT_MAX: usize = 10_000;
/// Bytes of a task's output when the caller does not say, and at most: what a model is shown.
pub const OUTPUT_PAGE_BYTES_DEFAULT: u64 = SHOWN_TOKENS_DEFAULT as u64 * BYTES_PER_TOKEN;
pub const OUTPUT_PAGE_BYTES_MAX: u64 = SHOWN_TOKENS_MAX as u64 * BYTES_PER_TOKEN;
/// Entries of a page when the caller does not say, and at most (wire).
pub const PAGE_DEFAULT: usize = 50;
/// Entries of a page of agents when the caller does not say.
pub const AGENTS_PAGE_DEFAULT: usize = 1_000;
/// Most entries of a page.
pub const PAGE_MAX: usize = 1_000;
/// Events of a page when the caller does not say (seed, event log).
pub const EVENTS_PAGE_DEFAULT: usize = 128;
/// Most events of a page (wire).
pub const EVENTS_PAGE_MAX: usize = 512;
/// Events that a stream renders at once.
pub const STREAM_CHUNK_EVENTS: usize = 256;
/// Subscribers of all streams together, fewer where there are fewer places for connections.
pub const SUBSCRIBERS_MAX: usize = 8_192;
/// Silence on a stream before a heartbeat comment (wire).
pub const HEARTBEAT_MS: u64 = 15_000;
/// A secret that signs webhooks.
pub const WEBHOOK_SECRET_BYTES_MIN: usize = 24;
pub const WEBHOOK_SECRET_BYTES_MAX: usize = 128;
/// Requests a minute that prove nothing, from one peer; ten seconds of them may come at once. A person or a service
/// that reports what happens stays far below; a flood is a nuisance and no more.
pub const INGRESS_PER_MINUTE_OF_PEER: u32 = 1_200;
/// Requests a minute from outside for one agent: each is a turn, which takes longer than this in any case.
pub const INGRESS_PER_MINUTE_OF_AGENT: u32 = 3_000;
/// The highest rate that the configuration may name, which holds nobody to anything.
pub const INGRESS_PER_MINUTE_MAX: u32 = 6_000_000;
/// Bytes of bodies that one agent takes from public callers in a day: the ledger keeps them for ever.
pub const OUTSIDE_BYTES_PER_DAY_MAX: u64 = 256 * 1024 * 1024;
/// Processes of local peers that are looked for at once: a look reads much of /proc while a command runs.
pub const PEER_LOOKUPS_AT_ONCE: usize = 4;
/// How far from now a webhook may say it was signed (wire, Servers).
pub const SIGNATURE_AGE_MS_MAX: u64 = 5 * 60 * 1_000;
/// Failed authentications per peer and minute before the next is answered 429; the right token always opens.
pub const AUTH_FAILURES_PER_MINUTE_MAX: u32 = 30;

const _: () = assert!(AGENT_ID_CHOSEN_BYTES_MAX < AGENT_ID_BYTES_MAX);
const _: () = assert!(DROPS_PER_COMMAND_MAX < EVENTS_PER_COMMAND_MAX);
const _: () = assert!(QUEUE_BODY_BYTES_RESERVED > MESSAGE_BODY_BYTES_MAX as u64);
const _: () = assert!(INLINE_BYTES_MAX < BLOB_IN_TRANSACTION_BYTES_MAX);
const _: () = assert!(COMMAND_BYTES_MAX + METADATA_BYTES_MAX + INLINE_BYTES_MAX < EVENT_BYTES_MAX);
const _: () = assert!(
    CALLS_PER_ROUND_BYTES_MAX + CALLS_PER_ROUND_MAX * 2 * (CALL_NAME_BYTES_MAX + EXCERPT_BYTES_MAX) < EVENT_BYTES_MAX
);
const _: () = assert!(SKILLS_MAX * (SKILL_NAME_BYTES_MAX + SKILL_DESCRIPTION_BYTES_MAX) < GUIDANCE_BYTES_MAX);
const _: () = assert!(MESSAGE_BODY_BYTES_MAX < REQUEST_BODY_BYTES_MAX);
const _: () = assert!(REQUEST_BODY_BYTES_MAX < REQUEST_BODIES_BYTES_MAX);
const _: () = assert!(CALLBACK_BODY_BYTES_MAX < MESSAGE_BODY_BYTES_MAX);
const _: () = assert!(EVENTS_PAGE_MAX as u64 >= ANCHOR_EVENTS);
const _: () = assert!(SETTINGS_MAX * 2 * EXCERPT_BYTES_MAX < EVENT_BYTES_MAX);
