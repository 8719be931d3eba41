//! Tools of the waiting plane: yielding, waiting, timers and triggers.

use super::work::work;
use super::{Tool, invalid, read, schema_of};
use crate::decide::profile::Family;
use crate::events::call::{Action, CallError, View, WaitFor as Awaited};
use crate::events::waiting::DeliveryMode;
use crate::words::content::excerpt;
use crate::words::limit::EXCERPT_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "Sleep",
        family: Family::Core,
        description: "End this turn. The agent is woken by whatever comes next.",
        mutates: false,
        schema: schema_of::<Sleep>,
        read: |arguments, _| Ok(read::<Sleep>(arguments)?.action()),
    },
    Tool {
        name: "WaitFor",
        family: Family::Core,
        description: "End this turn and record what the work waits for: the operator, a task's result, news from \
                      outside, or a time. A new wait of the same work item takes the place of the old one.",
        mutates: true,
        schema: schema_of::<WaitFor>,
        read: |arguments, _| read::<WaitFor>(arguments)?.action(),
    },
    Tool {
        name: "CreateTimer",
        family: Family::Core,
        description: "Have a message brought to you after duration_ms, and every interval_ms from then on if given.",
        mutates: true,
        schema: schema_of::<CreateTimer>,
        read: |arguments, _| {
            let CreateTimer { duration_ms, interval_ms, summary } = read(arguments)?;
            Ok(Action::CreateTimer { duration_ms, interval_ms, summary })
        },
    },
    Tool {
        name: "ListTimers",
        family: Family::Core,
        description: "List the timers that are set.",
        mutates: false,
        schema: schema_of::<Nothing>,
        read: |arguments, _| read::<Nothing>(arguments).map(|Nothing {}| Action::Look(View::Timers)),
    },
    Tool {
        name: "CancelTimer",
        family: Family::Core,
        description: "Cancel a timer.",
        mutates: true,
        schema: schema_of::<CancelTimer>,
        read: |arguments, _| {
            let CancelTimer { timer_id } = read(arguments)?;
            let timer = timer_id.parse().map_err(|_| invalid("timer_id", "is not a timer's id", "as in timer-1"))?;
            Ok(Action::CancelTimer { timer })
        },
    },
    Tool {
        name: "CreateExternalTrigger",
        family: Family::ExternalTrigger,
        description: "Make a URL by which the outside world reaches you: wake brings a hint, enqueue brings the body. \
                      The answer names a file that holds the URL; commands may read it, nobody should print it.",
        mutates: true,
        schema: schema_of::<CreateTrigger>,
        read: |arguments, _| read::<CreateTrigger>(arguments)?.action(),
    },
    Tool {
        name: "CancelExternalTrigger",
        family: Family::ExternalTrigger,
        description: "Make such a URL worthless.",
        mutates: true,
        schema: schema_of::<CancelTrigger>,
        read: |arguments, _| {
            let CancelTrigger { external_trigger_id: id } = read(arguments)?;
            let form = || invalid("external_trigger_id", "is not a trigger's id", "as in trigger-1");
            Ok(Action::CancelTrigger { trigger: id.parse().map_err(|_| form())? })
        },
    },
];

/// Arguments of a tool that takes none.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Arguments of Sleep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sleep {
    /// Why, for people.
    reason: Option<String>,
}

/// Arguments of WaitFor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitFor {
    /// What is waited for, for people.
    reason: String,
    wake: Wake,
    /// The work that waits, such as work-2; the one in focus when absent.
    work_item_id: Option<String>,
    /// For task_result the task, such as task-3; for external what it is about.
    resource: Option<String>,
    /// For timer: how long, in milliseconds.
    after_ms: Option<u64>,
    /// When to look by yourself if nothing comes, in milliseconds.
    recheck_after_ms: Option<u64>,
    /// For external: why looking by yourself would not help.
    no_fallback_reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Wake {
    OperatorInput,
    TaskResult,
    External,
    Timer,
}

/// Arguments of CreateTimer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateTimer {
    duration_ms: u64,
    /// Every so many milliseconds from then on.
    interval_ms: Option<u64>,
    /// What the message says.
    summary: Option<String>,
}

/// Arguments of CancelTimer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelTimer {
    timer_id: String,
}

/// Arguments of CreateExternalTrigger.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateTrigger {
    mode: Mode,
    /// What it is for, for people.
    label: String,
    /// The work that it concerns, such as work-2.
    work_item_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Wake,
    Enqueue,
}

/// Arguments of CancelExternalTrigger.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelTrigger {
    external_trigger_id: String,
}

impl Sleep {
    fn action(self) -> Action {
        Action::Sleep { reason: self.reason.map(|reason| excerpt(&reason, EXCERPT_BYTES_MAX).to_owned()) }
    }
}

impl WaitFor {
    fn action(self) -> Result<Action, CallError> {
        let wake = self.awaited()?;
        if self.after_ms.is_some() && self.wake != Wake::Timer {
            return Err(invalid("after_ms", "is for timer alone", "use recheck_after_ms to look by yourself"));
        }
        if self.no_fallback_reason.is_some() && (self.wake != Wake::External || self.recheck_after_ms.is_some()) {
            let hint = "give it for an external wait without recheck_after_ms";
            return Err(invalid("no_fallback_reason", "does not fit", hint));
        }
        Ok(Action::WaitFor {
            wake,
            reason: self.reason,
            work: self.work_item_id.map(|id| work("work_item_id", &id)).transpose()?,
            recheck_after_ms: self.recheck_after_ms,
            no_fallback_reason: self.no_fallback_reason,
        })
    }

    fn awaited(&self) -> Result<Awaited, CallError> {
        let resource = self.resource.clone();
        match self.wake {
            Wake::OperatorInput => Ok(Awaited::OperatorInput),
            Wake::External => Ok(Awaited::External { resource }),
            Wake::TaskResult => {
                let task = resource.and_then(|task| task.parse().ok());
                task.map(Awaited::TaskResult).ok_or_else(|| invalid("resource", "is not a task's id", "as in task-3"))
            }
            Wake::Timer => {
                let after_ms = self.after_ms.map(|after_ms| Awaited::Timer { after_ms });
                after_ms.ok_or_else(|| invalid("after_ms", "is missing", "say how long, in milliseconds"))
            }
        }
    }
}

impl CreateTrigger {
    fn action(self) -> Result<Action, CallError> {
        let mode = match self.mode {
            Mode::Wake => DeliveryMode::Wake,
            Mode::Enqueue => DeliveryMode::Enqueue,
        };
        let work = self.work_item_id.map(|id| work("work_item_id", &id)).transpose()?;
        Ok(Action::CreateTrigger { mode, label: self.label, work })
    }
}
