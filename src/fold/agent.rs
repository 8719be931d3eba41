//! The agent plane: identity and lifecycle.
//!
//! | from             | event   | to      |
//! |------------------|---------|---------|
//! | unborn           | Created | active  |
//! | active           | Paused  | paused  |
//! | active, paused   | Stopped | stopped |
//! | paused, stopped  | Started | active  |
//! | any but archived | ArchiveRequested | archiving |
//! | archiving        | Archived | archived; nothing follows |

use super::{Illegal, Place};
use crate::events::agent::{AgentCreated, AgentEvent, Ownership, Preset, Role, Visibility};
use crate::events::task::ChildLifecycle;
use crate::words::content::Content;
use crate::words::id::{AgentId, EventSeq, TaskId};
use crate::words::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Whether the scheduler may run the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    #[default]
    Unborn,
    Active,
    /// Withheld from the scheduler; messages queue.
    Paused,
    /// Withheld from the scheduler; messages are refused.
    Stopped,
    /// On its way to its end: what is open is being ended.
    Archiving,
    /// Sealed.
    Archived,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub lifecycle: Lifecycle,
    /// The event that the lifecycle rests on.
    pub lifecycle_seq: EventSeq,
    /// The event since which its children are to be what they are to be.
    pub children_seq: EventSeq,
    pub lifecycle_reason: String,
    pub created_at: Timestamp,
    pub role: Role,
    pub visibility: Visibility,
    pub ownership: Ownership,
    pub preset: Preset,
    pub lineage_parent: Option<AgentId>,
    pub supervisor: Option<AgentId>,
    pub supervising_task: Option<TaskId>,
    /// Children made so far, which number the next one's id.
    pub children: u64,
    /// The view of another agent's context that this one began with.
    pub inherited: Option<Inherited>,
    pub template: Option<String>,
    /// The model that the operator chose for it.
    pub model: Option<String>,
}

/// What an agent began with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inherited {
    pub seq: EventSeq,
    pub from: AgentId,
    pub view: Content,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            lifecycle: Lifecycle::Unborn,
            lifecycle_seq: EventSeq::ZERO,
            children_seq: EventSeq::ZERO,
            lifecycle_reason: String::new(),
            created_at: Timestamp::default(),
            role: Role::Named,
            visibility: Visibility::Public,
            ownership: Ownership::SelfOwned,
            preset: Preset::PublicNamed,
            lineage_parent: None,
            supervisor: None,
            supervising_task: None,
            children: 0,
            inherited: None,
            template: None,
            model: None,
        }
    }
}

impl Lifecycle {
    pub fn name(self) -> &'static str {
        match self {
            Self::Unborn => "unborn",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Archiving => "archiving",
            Self::Archived => "archived",
        }
    }
}

impl Lifecycle {
    /// Whether messages are taken in.
    pub fn admits(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }

    /// What the children of such an agent are to be: they follow their supervisor (semantics 1).
    pub fn of_children(self) -> ChildLifecycle {
        match self {
            Self::Unborn | Self::Active | Self::Paused => ChildLifecycle::Active,
            Self::Stopped => ChildLifecycle::Stopped,
            Self::Archiving | Self::Archived => ChildLifecycle::Archived,
        }
    }
}

impl Agent {
    /// Whether the agent works for another one, which it reports to.
    pub fn is_supervised(&self) -> bool {
        self.supervisor.is_some() && self.supervising_task.is_some()
    }

    pub(super) fn evolve(&mut self, event: &AgentEvent, id: &AgentId, place: Place) -> Result<(), Illegal> {
        match event {
            AgentEvent::Created(event) => self.create(event, id, place),
            AgentEvent::Started(_) => self.go(&[Lifecycle::Paused, Lifecycle::Stopped], Lifecycle::Active, "", place),
            AgentEvent::Paused(event) => self.go(&[Lifecycle::Active], Lifecycle::Paused, &event.reason, place),
            AgentEvent::Stopped(event) => {
                self.go(&[Lifecycle::Active, Lifecycle::Paused], Lifecycle::Stopped, &event.reason, place)
            }
            AgentEvent::Spawned(event) => {
                self.children += u64::from(event.preset == Preset::PrivateChild);
                Ok(())
            }
            AgentEvent::Inherited(event) => {
                let (from, view) = (event.from.clone(), event.view.clone());
                self.inherited = Some(Inherited { seq: place.seq, from, view });
                Ok(())
            }
            AgentEvent::ModelSet(event) => {
                self.model = Some(event.model.clone());
                Ok(())
            }
            AgentEvent::ModelCleared(_) => {
                self.model = None;
                Ok(())
            }
            AgentEvent::ArchiveRequested(event) => {
                let from = [Lifecycle::Active, Lifecycle::Paused, Lifecycle::Stopped];
                self.go(&from, Lifecycle::Archiving, &event.reason, place)
            }
            AgentEvent::Archived(_) => {
                let reason = self.lifecycle_reason.clone();
                self.go(&[Lifecycle::Archiving], Lifecycle::Archived, &reason, place)
            }
            AgentEvent::Reported(_) | AgentEvent::Delivered(_) => Err("the outbox is folded by itself"),
            AgentEvent::RequestAnswered(_) | AgentEvent::ErrandTaken(_) => {
                Err("receipts and errands are folded by themselves")
            }
        }
    }

    fn create(&mut self, event: &AgentCreated, id: &AgentId, place: Place) -> Result<(), Illegal> {
        if event.agent_id != *id {
            return Err("the ledger is another agent's");
        }
        *self = Self {
            lifecycle: Lifecycle::Active,
            lifecycle_seq: place.seq,
            children_seq: place.seq,
            lifecycle_reason: String::new(),
            created_at: place.at,
            role: event.role,
            visibility: event.visibility,
            ownership: event.ownership,
            preset: event.preset,
            lineage_parent: event.lineage_parent.clone(),
            supervisor: event.supervisor.clone(),
            supervising_task: event.supervising_task,
            children: 0,
            inherited: None,
            template: event.template.clone(),
            model: None,
        };
        Ok(())
    }

    fn go(&mut self, from: &[Lifecycle], to: Lifecycle, reason: &str, place: Place) -> Result<(), Illegal> {
        if !from.contains(&self.lifecycle) {
            return Err("the lifecycle does not allow it");
        }
        if to.of_children() != self.lifecycle.of_children() {
            self.children_seq = place.seq;
        }
        self.lifecycle = to;
        self.lifecycle_seq = place.seq;
        reason.clone_into(&mut self.lifecycle_reason);
        Ok(())
    }
}
