//! What a call looks at: parts of the agent's state as JSON, for models.

use crate::events::call::View;
use crate::fold::AgentState;
use serde_json::{Value, json};

/// What `view` shows of the state; none when it has left the state, or never was in it.
pub fn render(state: &AgentState, view: &View) -> Option<Value> {
    match view {
        View::Agent => Some(json!({"agent_id": state.agent_id})),
        View::Tasks
        | View::Task(_)
        | View::WorkItems { .. }
        | View::WorkItem(_)
        | View::Timers
        | View::Memory { .. } => None,
    }
}
