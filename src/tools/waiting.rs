//! Tools of the waiting plane: yielding, waiting, timers and triggers.

use super::{Tool, read, schema_of};
use crate::decide::profile::Family;
use crate::events::call::Action;
use crate::words::content::excerpt;
use crate::words::limit::EXCERPT_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "Sleep",
    family: Family::Core,
    description: "End this turn. The agent is woken by whatever comes next.",
    mutates: false,
    schema: schema_of::<Sleep>,
    read: |arguments, _| Ok(read::<Sleep>(arguments)?.action()),
}];

/// Arguments of Sleep.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sleep {
    /// Why, for people.
    reason: Option<String>,
}

impl Sleep {
    fn action(self) -> Action {
        Action::Sleep { reason: self.reason.map(|reason| excerpt(&reason, EXCERPT_BYTES_MAX).to_owned()) }
    }
}
