//! One event of every kind, with every field filled.

use holon::events::actor::{ActorPeer, ControlSurface};
use holon::events::agent::{
    AgentArchiveRequested, AgentArchived, AgentCreated, AgentModelCleared, AgentModelSet, AgentPaused, AgentSpawned,
    AgentStarted, AgentStopped, Answer, ContextInherited, DelegationReported, ErrandKind, ErrandOutcome, ErrandTaken,
    OutboxDelivered, Ownership, Preset, RequestAnswered, Role, Speaker, Visibility, WakeDisposition,
};
use holon::events::call::{Action, Call, CallError, ExecRequest};
use holon::events::home::{
    RuntimeBooted, RuntimeShutDown, Scope, SettingValue, SettingsChanged, TokenCreated, TokenRevoked,
};
use holon::events::memory::{EpisodeBoundary, EpisodeFinalized, WorkingMemoryUpdated};
use holon::events::operator::{
    BindingRevoked, BindingTerms, BindingUpserted, BriefCreated, BriefKind, DeliveryAbandoned, DeliveryCompleted,
    DeliveryFailed, DeliverySubmitted, NotificationRequested, ReplyRoute,
};
use holon::events::queue::{
    Admission, Author, BodyType, DerivedFrom, Lane, MessageEnqueued, MessageKind, MessageOutcome, MessageSettled,
    Origin, Subject, Surface, Trust,
};
use holon::events::task::{
    Caller, ChildDirected, ChildLifecycle, CommandOutput, CommandSpec, Exit, Kept, Supervisor, TaskChildSpawned,
    TaskCreateRequested, TaskExited, TaskInputDelivered, TaskInputRequested, TaskPromoted, TaskStarted, TaskStatus,
    TaskStopRequested, TaskSupervised, WorkspaceMode,
};
use holon::events::turn::{
    AbortMode, AfterAttempt, AttemptError, AttemptErrorKind, CallStarted, CurrentRunAborted, Entry, RoundAttemptFailed,
    RoundAttempted, RoundRequested, Section, SectionKind, StopReason, TurnEntry, TurnOutcome, TurnPolicy, TurnStarted,
    TurnTerminal, Usage, UsageTotal,
};
use holon::events::waiting::{
    CallbackDelivered, DeliveryMode, Recoverability, TimerCancelled, TimerCreated, TimerFired, TriggerCreated,
    TriggerRevoked, WaitCancelled, WaitConsumed, WaitCreated, WaitExpired, WaitOwner, WaitSuperseded, WaitTrigger,
    WaitTriggered, WakeOn, WakeRequested, WebhookSecretCleared, WebhookSecretSet,
};
use holon::events::work::{
    BlockerChange, PlanStatus, Todo, TodoStatus, WorkChange, WorkItemCompleted, WorkItemContinued, WorkItemCreated,
    WorkItemHeld, WorkItemPicked, WorkItemRechecked, WorkItemUpdated,
};
use holon::events::workspace::{
    ChangedFile, GuidanceRead, GuidanceScope, Projection, SkillInstalled, SkillMode, SkillSource, SkillUninstalled,
    WorkspaceAttached, WorkspaceDetached, WorkspaceEntered, WorkspaceExited, WorkspaceName, Worktree, WorktreeCreated,
    WorktreeLeft, WorktreeRemoved, WorktreeRetained, WorktreeSummary,
};
use holon::events::{Actor, Cause, Envelope, Event, HomeEvent};
use holon::words::content::Content;
use holon::words::hash::Hash;
use holon::words::id::{
    AgentId, BindingId, Boot, BriefId, EpisodeId, EventSeq, MessageId, NoticeId, RunId, SkillName, TaskId, TimerId,
    TriggerId, WaitId, WorkId, WorkspaceId,
};
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
    let events = [
        agent_events(),
        queue_events(),
        turn_events(),
        task_events(),
        work_events(),
        waiting_events(),
        workspace_events(),
        memory_events(),
        binding_events(),
        other_events(),
        home_events(),
    ]
    .concat();
    let place = |(index, event): (usize, Event)| Envelope {
        // Positions and times of one to nine bytes.
        seq: EventSeq(1 << (index * 3 % 64)),
        at: Timestamp(1_795_167_000_125 - (1 << (index % 63))),
        cause: if matches!(event, Event::Home(HomeEvent::TokenCreated(_) | HomeEvent::TokenRevoked(_))) {
            Cause::Control(actor(index))
        } else {
            causes[index % causes.len()].clone()
        },
        event,
    };
    events.into_iter().enumerate().map(place).collect()
}

/// One for each kind of peer, in turn.
fn actor(index: usize) -> Actor {
    let peers = [
        ActorPeer::Local { uid: 1_000, pid: 4_321, program: text("curl") },
        ActorPeer::Address("127.0.0.1:50123".into()),
        ActorPeer::AgentProcess(agent("main")),
        ActorPeer::Unknown,
    ];
    Actor {
        token: Some("ci".parse().expect("a name")),
        surface: ControlSurface::Socket,
        peer: peers[index % peers.len()].clone(),
        provided_trust: Some(Trust::UntrustedExternal),
    }
}

fn home_events() -> Vec<Event> {
    let name = || "ci".parse().expect("a name");
    let setting = SettingValue { name: "model".into(), value: "builtin/runbook".into() };
    vec![
        RuntimeBooted { boot: Boot(2), release: "0.1.0".into() }.into(),
        RuntimeShutDown { reason: "SIGTERM".into() }.into(),
        SettingsChanged { settings: vec![setting] }.into(),
        TokenCreated {
            name: name(),
            scopes: vec![Scope::Read, Scope::Ingress],
            token_hash: hash(),
            expires_at: Some(Timestamp(1_795_167_000_125)),
        }
        .into(),
        TokenRevoked { name: name() }.into(),
    ]
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

fn cost() -> UsageTotal {
    UsageTotal { input_tokens: 1_000, output_tokens: 50, rounds_unknown: 1 }
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
        supervising_task: Some(TaskId(3)),
        template: text("reviewer"),
    };
    let answer = Answer::Woken { disposition: WakeDisposition::Coalesced, message: MessageId(300) };
    let speaker = Speaker::Webhook { source: "generic_webhook".into(), signed: true };
    vec![
        created.into(),
        AgentStarted {}.into(),
        AgentStopped { reason: "operator".into() }.into(),
        AgentPaused { reason: "operator_aborted".into() }.into(),
        AgentSpawned { child: agent("main.c1"), preset: Preset::PrivateChild, task: Some(TaskId(3)) }.into(),
        ContextInherited { from: agent("main"), head: EventSeq(9), view: stored() }.into(),
        DelegationReported { status: TaskStatus::Completed, run: Some(RunId(5)), report: stored(), usage: cost() }
            .into(),
        OutboxDelivered { entry: EventSeq(12), outcome: ErrandOutcome::NotWanted }.into(),
        AgentArchiveRequested { reason: "delegation_ended".into() }.into(),
        AgentArchived {}.into(),
        RequestAnswered { key: "key".into(), fingerprint: hash(), answer, speaker }.into(),
        ErrandTaken { from: agent("main.c1"), errand: ErrandKind::Direction, entry: EventSeq(12) }.into(),
    ]
}

fn reply_route() -> ReplyRoute {
    ReplyRoute { binding: BindingId(2), route_id: "thread-7".into(), correlation_id: text("correlation") }
}

fn derived() -> Option<DerivedFrom> {
    Some(DerivedFrom { trust: Trust::UntrustedExternal, agent: Some(agent("main")), message: Some(MessageId(7)) })
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
        reply_route: Some(reply_route()),
        derived_from: derived(),
        author: Author::Runtime,
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
        context_tokens_max: 150_000,
        tokens_per_agent_max: None,
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
        TurnStarted { run, message: MessageId(7), policy: policy(), work: Some(WorkId(2)) }.into(),
        requested.into(),
        RoundAttempted { run, round: 2, boot: Boot(4), model: 1 }.into(),
        RoundAttemptFailed { run, attempt: EventSeq(9), error, then }.into(),
        CallStarted { run, round: 2, call: 1, boot: Boot(4) }.into(),
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
        Action::TaskOutput { task: TaskId(3), offset: Some(64), wait_ms: 500, shown_tokens: 8_000 },
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
    ExecRequest { spec, yield_ms: 10_000, shown_tokens: 8_000, reuse_running: true, summary: None }
}

fn task_events() -> Vec<Event> {
    let task = TaskId(3);
    let kept = Some(Kept { hash: hash(), bytes: 70_000 });
    let output = CommandOutput { shown: stored(), bytes: 90_000, cut: true, kept };
    let caller = Some(Caller { run: RunId(5), round: 2, call: 1 });
    let (attempt, exit) = (Some(EventSeq(12)), Exit::Signal(15));
    vec![
        TaskCreateRequested {
            task,
            request: exec(),
            summary: "ls".into(),
            caller,
            work: Some(WorkId(2)),
            derived_from: derived(),
        }
        .into(),
        TaskChildSpawned {
            task,
            child: agent("main.c1"),
            summary: "look".into(),
            mode: WorkspaceMode::Worktree,
            work: Some(WorkId(2)),
            derived_from: derived(),
        }
        .into(),
        TaskInputRequested { task, text: stored(), offset: 64, derived_from: derived() }.into(),
        TaskInputDelivered { task, entry: EventSeq(20), outcome: ErrandOutcome::Taken }.into(),
        ChildDirected { task, lifecycle: ChildLifecycle::Stopped, entry: EventSeq(13) }.into(),
        TaskStarted { task, boot: Boot(4), signer: Some(Hash([7; 32])) }.into(),
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
        body: Some(stored()),
        disposition: WakeDisposition::Woken,
        message: MessageId(9),
        derived_from: derived(),
    };
    let brief = BriefCreated {
        work: Some(WorkId(2)),
        brief: BriefId(2),
        kind: BriefKind::Failure,
        run: Some(RunId(5)),
        message: Some(MessageId(7)),
        text: Content::Inline("it went wrong".into()),
    };
    let notice = NotificationRequested { notice: NoticeId(1), text: stored(), work: Some(WorkId(2)) };
    let model = AgentModelSet { model: "builtin/runbook".into() };
    let supervisor = Supervisor { pid: 4711, start_time: 815, machine_boot: "7c9e6679".into() };
    let supervised = TaskSupervised { task: TaskId(3), attempt: EventSeq(12), supervisor };
    vec![woken.into(), brief.into(), notice.into(), model.into(), AgentModelCleared {}.into(), supervised.into()]
}

fn binding_events() -> Vec<Event> {
    let (binding, entry, attempt, route_id) = (BindingId(2), EventSeq(9), EventSeq(12), String::from("thread-7"));
    let terms = BindingTerms {
        name: "phone".into(),
        transport: "http-callback".into(),
        operator_actor_id: "ada".into(),
        default_route_id: "default".into(),
        callback_origin: "https://example.com".into(),
        is_authorized: true,
        secret: "binding/main/17".into(),
        capabilities: [("send_prompt".to_owned(), true)].into(),
        provider: text("chat"),
        provider_identity_ref: text("ada#1"),
        metadata: text("{}"),
    };
    let completed = DeliveryCompleted { binding, attempt, transport_delivery_id: text("d-1") };
    let failed = DeliveryFailed { binding, attempt, summary: "HTTP 503".into(), retry_after_ms: 500 };
    vec![
        BindingUpserted { binding, terms }.into(),
        BindingRevoked { binding, reason: "operator".into() }.into(),
        DeliverySubmitted { binding, entry, route_id: route_id.clone(), boot: Boot(4) }.into(),
        completed.into(),
        failed.into(),
        DeliveryAbandoned { binding, entry, route_id, reason: "HTTP 413".into() }.into(),
    ]
}

fn change() -> WorkChange {
    WorkChange {
        objective: text("ship it"),
        plan: Some(stored()),
        todos: Some(vec![Todo { text: "build".into(), status: TodoStatus::InProgress }]),
        plan_status: Some(PlanStatus::Ready),
        acceptance: Some(Content::Inline("tests pass".into())),
        blocker: Some(BlockerChange::Set { text: "no key".into(), recheck_after_ms: 3_600_000 }),
        is_constraint: Some(true),
        depends_on: Some(vec![WorkId(1)]),
        delivery_target: text("repository"),
        parent: Some(WorkId(1)),
    }
}

fn work_events() -> Vec<Event> {
    let (work, cleared) = (WorkId(2), WorkChange { blocker: Some(BlockerChange::Clear), ..change() });
    vec![
        WorkItemCreated { work, change: change(), derived_from: derived() }.into(),
        WorkItemUpdated { work, change: cleared, derived_from: None }.into(),
        WorkItemPicked { work }.into(),
        WorkItemCompleted { work, report: stored(), todos_unfinished: 1 }.into(),
        WorkItemContinued { work }.into(),
        WorkItemHeld { work, reason: "no_progress".into() }.into(),
        WorkItemRechecked { work: vec![work] }.into(),
    ]
}

fn waiting_events() -> Vec<Event> {
    let (wait, timer, trigger, work) = (WaitId(4), TimerId(5), TriggerId(6), Some(WorkId(2)));
    let created = WaitCreated {
        wait,
        owner: WaitOwner::Work(WorkId(2)),
        wake: WakeOn::External { resource: text("ci") },
        reason: "the build".into(),
        recheck_after_ms: Some(3_600_000),
        recoverability: Some(Recoverability::ExplicitNoFallback("nobody answers".into())),
        derived_from: derived(),
    };
    let timer_created = TimerCreated {
        timer,
        duration_ms: 10_000,
        interval_ms: Some(60_000),
        summary: text("look"),
        work,
        derived_from: derived(),
    };
    let (mode, token_hash) = (DeliveryMode::Enqueue, hash());
    vec![
        created.into(),
        WaitTriggered { wait, by: WaitTrigger::Message(MessageId(7)) }.into(),
        WaitConsumed { wait, run: RunId(5) }.into(),
        WaitCancelled { wait, reason: "work_completed".into() }.into(),
        WaitSuperseded { wait, by: WaitId(9) }.into(),
        WaitExpired { wait }.into(),
        timer_created.into(),
        TimerFired { timer, message: MessageId(7) }.into(),
        TimerCancelled { timer, reason: "operator".into() }.into(),
        TriggerCreated { trigger, mode, token_hash, label: "ci".into(), work }.into(),
        TriggerRevoked { trigger, reason: "operator".into() }.into(),
        CallbackDelivered { trigger, message: MessageId(7) }.into(),
        WebhookSecretSet { secret: "webhook/main/17".into(), previous: Some(EventSeq(4)), previous_ms: 60_000 }.into(),
        WebhookSecretCleared { reason: "operator".into() }.into(),
    ]
}

fn workspace_events() -> Vec<Event> {
    let (workspace, task) = (WorkspaceId(1), TaskId(3));
    let worktree = Worktree {
        repository: "/srv/repository".into(),
        root: "/srv/worktree".into(),
        branch: "holon/main.c1".into(),
        base_commit: "c0ffee".into(),
    };
    let changed = vec![ChangedFile { path: "README.md".into(), status: "modified".into() }];
    let (head_commit, changed_total) = ("c0ffee".into(), 1);
    let summary = WorktreeSummary { head_commit, commits: 1, changed, changed_total, insertions: 3, deletions: 1 };
    let entered = WorkspaceEntered {
        workspace: WorkspaceName::Attached(workspace),
        execution_root: text("/srv/repository"),
        projection: Projection::GitWorktreeRoot,
        cwd: "src".into(),
    };
    vec![
        WorkspaceAttached { workspace, anchor: "/srv/repository".into() }.into(),
        entered.into(),
        WorkspaceExited { workspace: WorkspaceName::Attached(workspace) }.into(),
        WorkspaceDetached { workspace }.into(),
        WorktreeCreated { task, worktree: worktree.clone() }.into(),
        WorktreeRetained { task, worktree: worktree.clone(), summary }.into(),
        WorktreeRemoved { task, worktree: worktree.clone() }.into(),
        WorktreeLeft { task, worktree, reason: "it is locked".into() }.into(),
        GuidanceRead {
            scope: GuidanceScope::Workspace,
            content: Some(stored()),
            hash: Some(hash()),
            refused: text("is a symlink"),
        }
        .into(),
        SkillInstalled {
            name: skill(),
            source: SkillSource::Local,
            mode: SkillMode::Linked,
            folder: text("/skills/mend"),
        }
        .into(),
        SkillUninstalled { name: skill() }.into(),
    ]
}

fn skill() -> SkillName {
    "long-work".parse().expect("a sample's name is valid")
}

fn memory_events() -> Vec<Event> {
    let (first, last, work) = (RunId(1), RunId(5), Some(WorkId(2)));
    let boundary = EpisodeBoundary::WorkChanged;
    vec![
        WorkingMemoryUpdated { entry: "style".into(), text: Some(stored()), work }.into(),
        EpisodeFinalized { episode: EpisodeId(1), first, last, digest: stored(), work, boundary }.into(),
    ]
}
