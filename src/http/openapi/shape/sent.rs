//! Bodies that clients send.

use super::{Members, Shape};

/// Recorded wherever it is given.
const TRUST: (&str, &str) = ("trust?", "?TrustLevel");

const fn sent(name: &'static str, about: &'static str, members: Members) -> Shape {
    Shape { name, about, members, is_sent: true }
}

pub(super) const SHAPES: &[Shape] = &[
    sent("Nothing", "No members.", &[]),
    sent("Trust", "Says whom the caller speaks for; recorded, and never elevates.", &[TRUST]),
    sent("Prompt", "An operator's prompt.", &[("text", "text")]),
    sent("DebugPrompt", "A prompt that is only shown.", &[("text", "text"), TRUST]),
    sent(
        "Enqueue",
        "A message of a public caller. `body` wins over `text`, and `text` over `json`. Trust is not the caller's to name.",
        &[
            ("kind?", "?MessageKind"),
            ("priority?", "?Priority"),
            ("trust?", "?TrustLevel"),
            ("authority_class?", "any"),
            ("body?", "?MessageBody"),
            ("text?", "?text"),
            ("json?", "any"),
            ("metadata?", "any"),
            ("correlation_id?", "?text"),
            ("causation_id?", "?text"),
            ("origin?", "?Origin"),
        ],
    ),
    sent(
        "Wake",
        "Why the agent is woken.",
        &[("reason", "text"), ("source?", "?text"), ("correlation_id?", "?text"), ("causation_id?", "?text")],
    ),
    sent("Drop", "Why a message is put aside.", &[("reason?", "?text"), TRUST]),
    sent(
        "DropMany",
        "Which of the messages that wait are put aside, and why: all, where neither sender nor time is named.",
        &[
            ("from?", "?external|webhook|callback|channel|operator|timer|task|system"),
            ("before?", "?time"),
            ("reason?", "?text"),
            TRUST,
        ],
    ),
    sent(
        "NewToken",
        "A token to be made. One without a lifetime does not expire.",
        &[("name", "text"), ("scopes", "[ScopeName]"), ("lifetime_ms?", "?count"), TRUST],
    ),
    sent("Create", "An agent to be created.", &[("template?", "?text"), TRUST]),
    sent("Control", "What is to become of the agent.", &[("action", "start|stop"), TRUST]),
    sent(
        "Abort",
        "Which run is aborted, whichever runs when none is named, and what follows. `pause_after_abort` is an older name.",
        &[("run_id?", "?text"), ("mode?", "?stop_after_abort|pause_after_abort|idle_after_abort"), TRUST],
    ),
    sent(
        "ModelChoice",
        "A model as `provider/model`, or by its bare name where one provider lists it.",
        &[("model", "model"), TRUST],
    ),
    sent("NewWorkItem", "A work item to be created.", &[("objective", "text"), TRUST]),
    sent(
        "WorkItemChange",
        "What is altered; an empty `blocked_by` clears the blocker.",
        &[
            ("objective?", "?text"),
            ("plan?", "?text"),
            ("todo_list?", "?[Todo]"),
            ("plan_status?", "?PlanStatus"),
            ("acceptance?", "?text"),
            ("constraint?", "?bool"),
            ("depends_on?", "?[work]"),
            ("delivery_target?", "?text"),
            ("parent_work_item_id?", "?work"),
            ("blocked_by?", "?text"),
            ("recheck_after_ms?", "?count"),
            TRUST,
        ],
    ),
    sent("Completion", "How a work item ended.", &[("result_summary?", "?text"), TRUST]),
    sent(
        "NewTask",
        "A command to be run. There is no terminal, and nothing waits for it to yield.",
        &[
            ("summary", "text"),
            ("cmd", "text"),
            ("workdir?", "?text"),
            ("shell?", "?text"),
            ("login?", "bool"),
            ("accepts_input?", "bool"),
            ("max_output_tokens?", "?count"),
            ("yield_time_ms?", "?count"),
            ("tty?", "bool"),
            TRUST,
        ],
    ),
    sent("TaskInput", "Text for a task's standard input.", &[("text", "text"), TRUST]),
    sent(
        "NewTimer",
        "A timer to be set.",
        &[("duration_ms", "count"), ("interval_ms?", "?count"), ("summary?", "?text"), TRUST],
    ),
    sent(
        "NewTrigger",
        "An external trigger to be made. A hint is `wake_hint`.",
        &[
            ("label", "text"),
            ("delivery_mode?", "?wake_hint|enqueue_message|wake_only|wake|enqueue"),
            ("work_item_id?", "?work"),
            TRUST,
        ],
    ),
    sent(
        "NewBinding",
        "A transport by which the operator is reached, and speaks. What is not in `capabilities` is given.",
        &[
            ("binding_id?", "?text"),
            ("transport", "text"),
            ("operator_actor_id", "text"),
            ("default_route_id", "text"),
            ("target_agent_id?", "?text"),
            ("delivery_callback_url", "url"),
            ("delivery_auth?", "?DeliveryAuth"),
            ("capabilities?", "{bool}"),
            ("provider?", "?text"),
            ("provider_identity_ref?", "?text"),
            ("metadata?", "any"),
            TRUST,
        ],
    ),
    sent(
        "DeliveryAuth",
        "How deliveries are authorized. `kind` and `bearer_token` are older names.",
        &[
            ("type?", "bearer|none"),
            ("kind?", "bearer|none"),
            ("token?", "?text"),
            ("bearer_token?", "?text"),
            ("key_id?", "?text"),
        ],
    ),
    sent(
        "Ingress",
        "What an operator says through a transport; the answer goes to its default route, if no other is named.",
        &[
            ("text", "text"),
            ("actor_id", "text"),
            ("binding_id", "text"),
            ("reply_route_id?", "?text"),
            ("provider?", "?text"),
            ("upstream_provider?", "?text"),
            ("provider_message_ref?", "?text"),
            ("correlation_id?", "?text"),
            ("causation_id?", "?text"),
            ("metadata?", "any"),
        ],
    ),
    sent(
        "WebhookSecret",
        "What becomes of the secret. One is drawn where none is given; after a rotation the one before holds for a day.",
        &[("action", "set|rotate|clear"), ("secret?", "?text"), TRUST],
    ),
    sent("Attach", "A folder of the server's machine.", &[("path", "path"), TRUST]),
    sent("NewSkill", "A skill to be installed.", &[("kind", "SkillKind"), TRUST]),
    sent(
        "SkillKind",
        "Where the skill comes from: `builtin` and `named` take a `name`, `local` a `path`, `remote` a `package`, which \
         nothing here fetches. Linked is the default; what is built in is copied.",
        &[
            ("kind", "builtin|named|local|remote"),
            ("name?", "text"),
            ("path?", "path"),
            ("mode?", "?SkillMode"),
            ("package?", "text"),
            ("skill?", "?text"),
        ],
    ),
    sent("SkillToGo", "A skill that the agent has.", &[("name", "text"), TRUST]),
    sent("Detach", "A workspace to be detached.", &[("workspace_id", "text"), TRUST]),
];
