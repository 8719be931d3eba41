//! What a host is told when it starts.

use crate::events::home::SettingValue;
use crate::events::turn::TurnPolicy;
use crate::runtime::process::{CommandEnvironment, TreeLimits};
use crate::words::id::AgentId;
use crate::words::limit;
use std::path::PathBuf;

/// The settings of a host. Those that alter decisions are recorded with every turn.
#[derive(Clone, Debug)]
pub struct Settings {
    pub default_agent: AgentId,
    /// The folder that the default agent works in.
    pub workspace: PathBuf,
    /// `provider/model`, the chosen one first, then its fallbacks.
    pub models: Vec<String>,
    pub turns_max: usize,
    pub model_calls_max: usize,
    pub commands_max: usize,
    pub rounds_per_turn_max: u32,
    pub retry_ms_first: u64,
    /// How long an agent with nothing to do stays loaded.
    pub linger_ms: u64,
    pub command_environment: CommandEnvironment,
    /// What a command and all that it starts may use together.
    pub tree_limits: TreeLimits,
    /// What capability URLs begin with, such as `http://127.0.0.1:7878`.
    pub callback_base_url: String,
    /// What the home's ledger records of the settings, without secrets.
    pub recorded: Vec<SettingValue>,
}

impl Settings {
    pub fn new(default_agent: AgentId, workspace: PathBuf, models: Vec<String>) -> Self {
        Self {
            default_agent,
            workspace,
            models,
            turns_max: limit::HOST_TURNS_MAX,
            model_calls_max: limit::HOST_MODEL_CALLS_MAX,
            commands_max: limit::HOST_COMMANDS_MAX,
            rounds_per_turn_max: limit::ROUNDS_PER_TURN_MAX,
            retry_ms_first: limit::RETRY_MS_FIRST,
            linger_ms: limit::LINGER_MS,
            command_environment: CommandEnvironment::default(),
            tree_limits: TreeLimits::default(),
            callback_base_url: String::new(),
            recorded: Vec::new(),
        }
    }

    /// The settings as a turn of an agent records them: the model chosen for it first, the host's as its fallbacks.
    pub fn policy(&self, chosen: Option<&String>) -> TurnPolicy {
        let fallbacks = self.models.iter().filter(|model| Some(*model) != chosen);
        TurnPolicy {
            models: chosen.into_iter().chain(fallbacks).take(limit::MODELS_PER_TURN_MAX).cloned().collect(),
            rounds_max: self.rounds_per_turn_max,
            turn_ms_max: limit::TURN_MS_MAX,
            output_tokens_per_round_max: limit::OUTPUT_TOKENS_PER_ROUND_MAX,
            tokens_per_turn_max: limit::TOKENS_PER_TURN_MAX,
            attempts_per_model_max: limit::ATTEMPTS_PER_MODEL_MAX,
            retry_ms_first: self.retry_ms_first,
            context_tokens_max: limit::CONTEXT_TOKENS_MAX,
            tokens_per_agent_max: None,
        }
    }
}
