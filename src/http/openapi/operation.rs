//! The table of routes, and what each takes and answers.

use crate::events::home::Scope;
use axum::http::Method;

/// A route under one method.
pub(super) struct Operation {
    pub method: &'static str,
    pub path: &'static str,
    pub summary: &'static str,
    /// Names and kinds; a name that ends with `?` may be left out.
    pub query: &'static [(&'static str, &'static str)],
    pub takes: Takes,
    pub answer: Answer,
    pub access: Access,
}

/// Who may use a route in bearer mode.
///
/// `read` is for what agents are and do; `operate` is for their control, and for their raw records; `ingress` sends
/// messages in. `admin` is for what concerns the host or outlives a token: tokens, secrets of webhooks, shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Access {
    /// Whoever asks: it tells nothing of agents, or what it needs instead of a token is its own.
    Open,
    /// Whoever has a token with this scope.
    Scope(Scope),
    /// Whoever has a token: there is no such route, or it does not take this method.
    Anyone,
}

/// Who may send a request: `template` is the route's path, where there is such a route.
pub(in crate::http) fn access(method: &Method, template: Option<&str>, path: &str) -> Access {
    let Some(template) = template else {
        // What is near a capability's URL is answered as a capability that was never given out.
        let is_near = path.starts_with("/callbacks/") || path.starts_with("/webhooks/");
        return if is_near { Access::Open } else { Access::Anyone };
    };
    let method = if method == Method::HEAD { "get" } else { method.as_str() };
    let rows = || OPERATIONS.iter().filter(|operation| operation.path == template);
    let row = rows().find(|operation| operation.method.eq_ignore_ascii_case(method));
    let row = row.or_else(|| rows().find(|operation| operation.is_open()));
    row.map_or(Access::Anyone, |operation| operation.access)
}

pub(super) enum Takes {
    Nothing,
    /// The kind of a body, and one that the route takes.
    Json(&'static str, &'static str),
    AnyJson(&'static str),
    JsonOrText,
}

pub(super) enum Answer {
    Json(&'static str),
    /// A list that a link leads on from.
    Page(&'static str),
    /// A media type, and the beginning of such a text.
    Text(&'static str, &'static str),
}

const fn read(path: &'static str, answer: &'static str, summary: &'static str) -> Operation {
    let (takes, answer, access) = (Takes::Nothing, Answer::Json(answer), Access::Scope(Scope::Read));
    Operation { method: "get", path, summary, query: &[], takes, answer, access }
}

/// Takes a body of a kind, such as the one shown.
const fn write(
    path: &'static str,
    (body, example): (&'static str, &'static str),
    answer: &'static str,
    summary: &'static str,
) -> Operation {
    let (takes, answer, access) = (Takes::Json(body, example), Answer::Json(answer), Access::Scope(Scope::Operate));
    Operation { method: "post", path, summary, query: &[], takes, answer, access }
}

const fn page(path: &'static str, answer: &'static str, summary: &'static str) -> Operation {
    Operation { answer: Answer::Page(answer), ..read(path, answer, summary).asking(PAGE) }
}

const fn stream(path: &'static str, summary: &'static str) -> Operation {
    Operation { answer: Answer::Text("text/event-stream", FRAME), ..read(path, "Event", summary).asking(STREAM) }
}

type Query = &'static [(&'static str, &'static str)];

const LIMIT: Query = &[("limit?", "count")];
const PAGE: Query = &[("limit?", "count"), ("cursor?", "cursor")];
/// Lists of agents go on after one of them.
const AGENTS: Query = &[("limit?", "count"), ("cursor?", "agent")];
const EVENTS: Query = &[
    ("before_seq?", "count"),
    ("after_seq?", "count"),
    ("limit?", "count"),
    ("order?", "asc|desc"),
    ("projection?", "operator|local_debug"),
];
const STREAM: Query = &[("after_seq?", "count"), ("limit?", "count"), ("projection?", "operator|local_debug")];

const FRAME: &str = "id: 7\nevent: turn_started\ndata: {\"id\":\"main:7\",\"event_seq\":7}\n\n";
const SERIES: &str = "# TYPE holon_commits_total counter\nholon_commits_total 7\n";

/// A body that need not say anything.
const TRUST: (&str, &str) = ("Trust", "{}");

pub(super) const OPERATIONS: &[Operation] = &[
    read("/", "Root", "The default agent.").open(),
    read("/handshake", "Handshake", "Who answers here, and how to ask.").open(),
    read("/healthz", "Ok", "The server runs.").open(),
    read("/readyz", "Ok", "The ledger can be read.").open(),
    read("/openapi.json", "object", "This document."),
    read("/models", "Models", "The models known by name, and whether each can be asked."),
    read("/schema/events", "Catalogue", "Every kind of event that a ledger may hold."),
    Operation { answer: Answer::Text("text/plain", SERIES), ..read("/metrics", "text", "Metrics for Prometheus.") },
    stream("/events/stream", "What all public agents do, in the order of their commits."),
    // Agents.
    page("/agents", "[AgentEntry]", "Public agents, by their posture if one is named.").asking(&[
        ("limit?", "count"),
        ("cursor?", "agent"),
        ("posture?", "PostureName"),
    ]),
    page("/agents/list", "[AgentEntry]", "Public agents.").asking(AGENTS),
    read("/status", "Summary", "The default agent's summary."),
    read("/state", "State", "The default agent's state."),
    read("/briefs", "[Brief]", "The default agent's newest briefs.").asking(LIMIT),
    read("/transcript", "[Entry]", "The default agent's transcript.").asking(LIMIT),
    read("/worktree-summary", "Worktrees", "The default agent's worktrees."),
    read("/agents/{id}/status", "Summary", "What the agent is and does."),
    read("/agents/{id}/state", "State", "The agent with all that is open."),
    read("/agents/{id}/diagnostics", "Diagnostics", "What looks wrong with what the agent waits for."),
    read("/agents/{id}/briefs", "[Brief]", "The newest briefs, the oldest of them first.").asking(LIMIT),
    read("/agents/{id}/transcript", "[Entry]", "The turn that runs, or the one that ended last.").asking(LIMIT),
    read("/agents/{id}/worktree-summary", "Worktrees", "Worktrees of the agent's tasks."),
    read("/agents/{id}/skills", "Skills", "The skills that the agent has."),
    read("/agents/{id}/messages/{rid}", "Message", "A message, and what became of it."),
    read("/agents/{id}/events", "EventPage", "A page of the agent's events.").asking(EVENTS),
    stream("/agents/{id}/events/stream", "The agent's events as they are recorded."),
    // Records.
    page("/agents/{id}/work-items", "[WorkItem]", "Work items: open ones, then completed ones."),
    read("/agents/{id}/work-items/{rid}", "WorkItem", "A work item in full."),
    page("/agents/{id}/tasks", "[Task]", "Tasks: open ones, then those that have ended."),
    read("/agents/{id}/tasks/{rid}", "Task", "A task."),
    read("/agents/{id}/tasks/{rid}/output", "TaskOutput", "A piece of what a task has written.")
        .asking(&[("offset?", "count"), ("limit_bytes?", "count")]),
    page("/agents/{id}/timers", "[Timer]", "Timers: set ones, then those that have ended."),
    read("/agents/{id}/timers/{rid}", "Timer", "A timer."),
    page("/agents/{id}/waits", "[Wait]", "Waits: open ones, then those that are over."),
    read("/agents/{id}/waits/{rid}", "Wait", "A wait."),
    page("/agents/{id}/external-triggers", "[Trigger]", "External triggers: active ones, then revoked ones."),
    read("/agents/{id}/external-triggers/{rid}", "Trigger", "An external trigger; its URL is not told again."),
    page("/agents/{id}/operator-bindings", "[Binding]", "Operator bindings: open ones, then revoked ones."),
    read("/agents/{id}/operator-bindings/{rid}", "Binding", "An operator binding; what it keeps secret is not told."),
    page("/agents/{id}/operator-notifications", "[Notice]", "What the agent wanted known, the newest first."),
    read("/agents/{id}/operator-notifications/{rid}", "Notice", "Something that the agent wanted known."),
    // The ledger.
    page("/ledgers", "[Head]", "Where every ledger ends, those of private agents included.").asking(AGENTS),
    read("/agents/{id}/ledger", "Ledger", "Where the ledger ends, and on demand what lies in it.")
        .asking(&[("stats?", "bool")]),
    read("/agents/{id}/ledger/verify", "Verification", "Whether the ledger is whole; damage is an answer here."),
    read("/agents/{id}/ledger/prompt", "PastPrompt", "The prompt of a past round, as the model got it.")
        .asking(&[("run", "run"), ("round?", "count")])
        .needing(Scope::Operate),
    // Messages in.
    write("/enqueue", ENQUEUE, "Sent", "Enqueues a message of a public caller to the default agent.")
        .needing(Scope::Ingress),
    write("/agents/{id}/enqueue", ENQUEUE, "Sent", "Enqueues a message of a public caller.").needing(Scope::Ingress),
    Operation {
        takes: Takes::AnyJson(r#"{"event": "ci-complete", "status": "success"}"#),
        ..write("/webhooks/generic/{id}", TRUST, "Sent", "Enqueues any JSON as an event of a webhook.").open()
    },
    Operation {
        takes: Takes::JsonOrText,
        ..write("/callbacks/wake/{token}", TRUST, "Delivered", "Wakes the agent that gave out this URL.").open()
    },
    Operation {
        takes: Takes::JsonOrText,
        ..write(
            "/callbacks/enqueue/{token}",
            TRUST,
            "Delivered",
            "Sends a message to the agent that gave out this URL.",
        )
        .open()
    },
    write(
        "/control/agents/{id}/prompt",
        ("Prompt", r#"{"text": "What is the current status?"}"#),
        "Sent",
        "Sends an operator's prompt.",
    ),
    write(
        "/control/agents/{id}/debug-prompt",
        ("DebugPrompt", r#"{"text": "debug instruction", "trust": "trusted_operator"}"#),
        "Preview",
        "What the agent would be sent for this prompt; nothing is recorded.",
    ),
    write(
        "/control/agents/{id}/wake",
        ("Wake", r#"{"reason": "manual-wake", "source": "operator"}"#),
        "Woken",
        "Wakes the agent.",
    ),
    write(
        "/control/agents/{id}/messages/{rid}/drop",
        ("Drop", r#"{"reason": "outdated"}"#),
        "Sent",
        "Puts aside a message that waits.",
    ),
    write(
        "/control/agents/{id}/messages/drop",
        ("DropMany", r#"{"from": "external", "reason": "a flood"}"#),
        "DroppedMany",
        "Puts aside messages that wait, the oldest first; what is left is for the next request.",
    ),
    // Agents under control.
    write(
        "/control/agents/{id}/create",
        ("Create", r#"{"template": null, "trust": "trusted_operator"}"#),
        "Identity",
        "Creates an agent; the same request again answers the same record.",
    ),
    write(
        "/control/agents/{id}/control",
        ("Control", r#"{"action": "stop", "trust": "trusted_operator"}"#),
        "Controlled",
        "Starts or stops the agent.",
    ),
    write("/control/agents/{id}/archive", TRUST, "Archived", "Ends the agent for good; its ledger stays readable."),
    write(
        "/control/agents/{id}/current-run/abort",
        ("Abort", r#"{"mode": "stop_after_abort"}"#),
        "Aborted",
        "Aborts the run under way.",
    ),
    write(
        "/control/agents/{id}/model",
        ("ModelChoice", r#"{"model": "builtin/runbook"}"#),
        "ModelChosen",
        "Chooses the model that the agent asks first, from its next turn on.",
    ),
    write("/control/agents/{id}/model/clear", TRUST, "ModelChosen", "Returns to the models of the host."),
    // Records under control.
    write(
        "/control/agents/{id}/work-items",
        ("NewWorkItem", r#"{"objective": "Fix the build", "trust": "trusted_operator"}"#),
        "WorkItem",
        "Creates a work item.",
    ),
    write(
        "/control/agents/{id}/work-items/{rid}/update",
        ("WorkItemChange", r#"{"plan": "Look at the log first.", "plan_status": "ready"}"#),
        "WorkItemDone",
        "Alters a work item; what is left out stays.",
    ),
    write("/control/agents/{id}/work-items/{rid}/pick", TRUST, "WorkItemDone", "Makes a work item the current one."),
    write(
        "/control/agents/{id}/work-items/{rid}/complete",
        ("Completion", r#"{"result_summary": "The build is green."}"#),
        "WorkItemDone",
        "Completes a work item.",
    ),
    write(
        "/control/agents/{id}/tasks",
        (
            "NewTask",
            r#"{"summary": "Build project", "cmd": "cargo build", "workdir": null, "shell": null, "login": false}"#,
        ),
        "Task",
        "Has a command run beside the turns.",
    ),
    write(
        "/control/agents/{id}/tasks/{rid}/input",
        ("TaskInput", r#"{"text": "yes\n"}"#),
        "TaskDone",
        "Writes to a task that accepts input.",
    ),
    write("/control/agents/{id}/tasks/{rid}/stop", TRUST, "TaskDone", "Stops a task."),
    write(
        "/control/agents/{id}/timers",
        (
            "NewTimer",
            r#"{"duration_ms": 60000, "interval_ms": null, "summary": "reminder", "trust": "trusted_operator"}"#,
        ),
        "Timer",
        "Sets a timer, which brings the agent a tick.",
    ),
    write("/control/agents/{id}/timers/{rid}/cancel", TRUST, "TimerDone", "Cancels a timer."),
    write("/control/agents/{id}/waits/{rid}/cancel", TRUST, "WaitDone", "Cancels a wait."),
    write(
        "/control/agents/{id}/external-triggers",
        ("NewTrigger", r#"{"label": "ci", "delivery_mode": "wake_hint"}"#),
        "Trigger",
        "Makes a URL through which the outside reaches the agent. It is told here and nowhere else.",
    ),
    write("/control/agents/{id}/external-triggers/{rid}/revoke", TRUST, "TriggerDone", "Revokes an external trigger."),
    write(
        "/control/agents/{id}/operator-bindings",
        ("NewBinding", BINDING),
        "Bound",
        "Binds the operator to a transport, on new terms where the name is known.",
    ),
    write("/control/agents/{id}/operator-bindings/{rid}/revoke", TRUST, "Binding", "Revokes an operator binding."),
    write(
        "/control/agents/{id}/operator-ingress",
        (
            "Ingress",
            r#"{"text": "operator message", "actor_id": "operator-1", "binding_id": "my-binding",
                "reply_route_id": "route-1", "provider": "chat", "correlation_id": "corr-123"}"#,
        ),
        "Sent",
        "Sends what an operator says through a transport.",
    )
    .needing(Scope::Ingress),
    write(
        "/control/agents/{id}/webhook-secret",
        ("WebhookSecret", r#"{"action": "rotate"}"#),
        "WebhookSecretDone",
        "Sets, rotates or clears the secret that signs the agent's webhooks.",
    )
    .needing(Scope::Admin),
    write(
        "/control/agents/{id}/workspace/attach",
        ("Attach", r#"{"path": "/tmp"}"#),
        "WorkspaceAttached",
        "Attaches a folder, and works there.",
    ),
    write("/control/agents/{id}/workspace/exit", TRUST, "Done", "Returns to the agent's home."),
    write(
        "/control/agents/{id}/workspace/detach",
        ("Detach", r#"{"workspace_id": "ws-1", "trust": "trusted_operator"}"#),
        "WorkspaceDone",
        "Detaches a workspace that is not the active one.",
    ),
    write(
        "/control/agents/{id}/skills/install",
        ("NewSkill", r#"{"kind": {"kind": "builtin", "name": "long-work"}}"#),
        "SkillDone",
        "Gives the agent a skill, of which it is told from its next turn on.",
    ),
    write(
        "/control/agents/{id}/skills/uninstall",
        ("SkillToGo", r#"{"name": "long-work"}"#),
        "SkillDone",
        "Takes a skill from the agent; what it was linked to stays.",
    ),
    // The runtime.
    read("/control/runtime/status", "RuntimeStatus", "How the runtime is."),
    read("/control/runtime/readiness", "Readiness", "The same without what changes while it runs."),
    write("/control/runtime/shutdown", ("Nothing", "{}"), "ShuttingDown", "Ends the server in peace.")
        .needing(Scope::Admin),
    // The home.
    read("/home/events", "EventPage", "A page of the home's own events: boots, shutdowns, settings, tokens.")
        .asking(EVENTS)
        .needing(Scope::Operate),
    stream("/home/events/stream", "The home's own events as they are recorded.").needing(Scope::Operate),
    read("/home/ledger", "Ledger", "Where the home's own ledger ends."),
    read("/home/ledger/verify", "Verification", "Whether the home's own ledger is whole."),
    read("/control/tokens", "[Token]", "The tokens that there are, without their secrets.").needing(Scope::Admin),
    write("/control/tokens", NEW_TOKEN, "TokenMade", "Makes a named token. Its secret is told here and nowhere else.")
        .needing(Scope::Admin),
    write("/control/tokens/{rid}/revoke", TRUST, "TokenRevoked", "Revokes a named token at once.")
        .needing(Scope::Admin),
];

const NEW_TOKEN: (&str, &str) = ("NewToken", r#"{"name": "ci", "scopes": ["read"], "lifetime_ms": 86400000}"#);

const ENQUEUE: (&str, &str) = (
    "Enqueue",
    r#"{"kind": "channel_event", "priority": "normal", "text": "plain text body",
        "origin": {"kind": "channel", "channel_id": "slack-general", "sender_id": "U123"},
        "correlation_id": "optional-correlation"}"#,
);

const BINDING: &str = r#"{"binding_id": "my-binding", "transport": "http-callback", "operator_actor_id": "operator-1",
    "default_route_id": "default", "delivery_callback_url": "https://example.com/callback",
    "delivery_auth": {"type": "bearer", "token": "secret"}, "capabilities": {"send_prompt": true}, "provider": "chat",
    "provider_identity_ref": "user-123", "metadata": {}}"#;

impl Operation {
    const fn asking(self, query: Query) -> Self {
        Self { query, ..self }
    }

    const fn open(self) -> Self {
        Self { access: Access::Open, ..self }
    }

    const fn needing(self, scope: Scope) -> Self {
        Self { access: Access::Scope(scope), ..self }
    }

    /// Whether it is answered without the token in either mode.
    pub(super) fn is_open(&self) -> bool {
        self.access == Access::Open
    }

    /// Whether senders sign it, once the agent has a secret.
    pub(super) fn is_signed(&self) -> bool {
        self.path.starts_with("/webhooks/")
    }

    /// What it is about, from its path.
    pub(super) fn subject(&self) -> &'static str {
        let plain = |word: &&str| !word.is_empty() && !word.starts_with('{') && !matches!(*word, "control" | "agents");
        match self.path.split('/').find(plain) {
            Some(word) if self.path.contains("{id}") || matches!(word, "runtime" | "tokens" | "home") => word,
            Some("callbacks" | "enqueue") => "messages",
            Some(_) | None if self.path.starts_with("/agents") => "agents",
            Some(_) | None => "server",
        }
    }

    /// Whether the ledger is asked, which may be out of reach.
    pub(super) fn reads_the_ledger(&self) -> bool {
        !matches!(self.path, "/" | "/handshake" | "/healthz" | "/models" | "/openapi.json" | "/schema/events")
            && !self.path.starts_with("/control/runtime/")
    }

    /// The header that it heeds, if any.
    pub(super) fn header(&self) -> Option<(&'static str, &'static str)> {
        if matches!(self.answer, Answer::Text("text/event-stream", _)) {
            Some(("Last-Event-ID?", "count"))
        } else if self.method == "post" && !self.takes_no_key() {
            Some(("Idempotency-Key?", "key"))
        } else {
            None
        }
    }

    /// What records nothing, and what a token's name makes the same request.
    fn takes_no_key(&self) -> bool {
        let of_the_host = self.path.starts_with("/control/runtime/") || self.path.starts_with("/control/tokens");
        of_the_host || self.path.ends_with("/debug-prompt")
    }
}
