//! What an agent may do: its preset's tool families (profile seed, First-Pass Presets).

use crate::events::agent::Preset;
use crate::events::call::Action;

/// A capability family of the profile seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Core,
    LocalEnvironment,
    AgentCreation,
    AuthorityExpansion,
    ExternalTrigger,
}

impl Family {
    pub const ALL: [Self; 5] =
        [Self::Core, Self::LocalEnvironment, Self::AgentCreation, Self::AuthorityExpansion, Self::ExternalTrigger];

    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::LocalEnvironment => "local_environment",
            Self::AgentCreation => "agent_creation",
            Self::AuthorityExpansion => "authority_expansion",
            Self::ExternalTrigger => "external_trigger",
        }
    }
}

/// Whether agents of this preset have the family.
pub fn grants(preset: Preset, family: Family) -> bool {
    match (preset, family) {
        (Preset::PublicNamed, _) => true,
        (Preset::PrivateChild, Family::Core | Family::LocalEnvironment | Family::ExternalTrigger) => true,
        (Preset::PrivateChild, Family::AgentCreation | Family::AuthorityExpansion) => false,
    }
}

/// The family that a call needs; none for one that is refused anyway.
pub fn needs(action: &Action) -> Option<Family> {
    Some(match action {
        Action::Exec(_)
        | Action::ReadFile { .. }
        | Action::SearchFiles { .. }
        | Action::ApplyPatch { .. }
        | Action::UseWorkspace { .. } => Family::LocalEnvironment,
        Action::Spawn(_) => Family::AgentCreation,
        Action::AttachWorkspace { .. } | Action::DetachWorkspace { .. } => Family::AuthorityExpansion,
        Action::CreateTrigger { .. } | Action::CancelTrigger { .. } => Family::ExternalTrigger,
        Action::TaskOutput { .. }
        | Action::TaskInput { .. }
        | Action::TaskStop { .. }
        | Action::Sleep { .. }
        | Action::WaitFor { .. }
        | Action::CreateTimer { .. }
        | Action::CancelTimer { .. }
        | Action::CreateWork { .. }
        | Action::UpdateWork { .. }
        | Action::PickWork { .. }
        | Action::CompleteWork { .. }
        | Action::UpdateMemory { .. }
        | Action::Enqueue { .. }
        | Action::Notify { .. }
        | Action::Look(_) => Family::Core,
        Action::Refused(_) => return None,
    })
}
