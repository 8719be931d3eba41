//! Answers that say what was done.

use super::{Shape, told};

pub(super) const SHAPES: &[Shape] = &[
    told("Done", "It is done.", &[("ok", "yes"), ("agent_id", "agent")]),
    told("Sent", "The message that is meant.", &[("ok", "yes"), ("agent_id", "agent"), ("message_id", "message")]),
    told(
        "DroppedMany",
        "How many messages were put aside, and how many like them still wait.",
        &[("ok", "yes"), ("agent_id", "agent"), ("dropped", "count"), ("left", "count")],
    ),
    told(
        "Woken",
        "What came of it. A tick is a message only where it woke the agent.",
        &[("ok", "yes"), ("agent_id", "agent"), ("disposition", "WakeDisposition"), ("message_id", "?message")],
    ),
    told(
        "Delivered",
        "What came of a callback.",
        &[
            ("ok", "yes"),
            ("agent_id", "agent"),
            ("delivery_mode", "wake_hint|enqueue_message"),
            ("disposition", "woken|coalesced|ignored|enqueued"),
            ("message_id", "?message"),
        ],
    ),
    told(
        "TokenMade",
        "A token and its secret, which is told this once. Every request over TCP needs a token from then on.",
        &[
            ("ok", "yes"),
            ("name", "text"),
            ("scopes", "[ScopeName]"),
            ("created_at", "?time"),
            ("expires_at", "?time"),
            ("status", "valid|expired|configured"),
            ("token", "secret"),
            ("auth", "AuthMode"),
        ],
    ),
    told("TokenRevoked", "What opens nothing any more.", &[("ok", "yes"), ("name", "text")]),
    told("Controlled", "What was asked for.", &[("ok", "yes"), ("agent_id", "agent"), ("action", "start|stop")]),
    told(
        "Archived",
        "How far the agent is with its end.",
        &[("ok", "yes"), ("agent_id", "agent"), ("lifecycle", "archiving|archived")],
    ),
    told(
        "ModelChosen",
        "Which model the agent asks.",
        &[("ok", "yes"), ("agent_id", "agent"), ("model", "AgentModel")],
    ),
    told(
        "Aborted",
        "The run that was aborted.",
        &[("ok", "yes"), ("aborted", "yes"), ("agent_id", "agent"), ("run_id", "run"), ("mode", "AbortMode")],
    ),
    told("WorkItemDone", "The work item.", &[("ok", "yes"), ("agent_id", "agent"), ("work_item_id", "work")]),
    told("TaskDone", "The task.", &[("ok", "yes"), ("agent_id", "agent"), ("task_id", "task")]),
    told("TimerDone", "The timer.", &[("ok", "yes"), ("agent_id", "agent"), ("timer_id", "timer")]),
    told("WaitDone", "The wait.", &[("ok", "yes"), ("agent_id", "agent"), ("wait_id", "wait")]),
    told("TriggerDone", "The trigger.", &[("ok", "yes"), ("agent_id", "agent"), ("external_trigger_id", "trigger")]),
    told("Bound", "The binding.", &[("ok", "yes"), ("agent_id", "agent"), ("binding", "Binding")]),
    told(
        "WebhookSecretDone",
        "What became of the secret. One that was drawn is told here and nowhere else.",
        &[("ok", "yes"), ("agent_id", "agent"), ("action", "set|rotate|clear"), ("secret", "?text")],
    ),
    told("WorkspaceDone", "The workspace.", &[("ok", "yes"), ("agent_id", "agent"), ("workspace_id", "workspace")]),
    told(
        "WorkspaceAttached",
        "The workspace, and its folder.",
        &[("ok", "yes"), ("agent_id", "agent"), ("workspace_id", "workspace"), ("workspace_anchor", "path")],
    ),
    told("SkillDone", "The skill.", &[("ok", "yes"), ("agent_id", "agent"), ("skill_name", "text")]),
    told(
        "Preview",
        "A prompt that nobody was sent.",
        &[("ok", "yes"), ("agent_id", "agent"), ("model", "model"), ("sections", "[PreviewSection]"), ("dump", "text")],
    ),
    told("PreviewSection", "A part of it.", &[("kind", "SectionKind"), ("bytes", "count")]),
];
