//! Agent plane: the agent's identity and lifecycle, and the requests it has answered.

use super::turn::UsageTotal;
use crate::events::task::TaskStatus;
use crate::words::content::Content;
use crate::words::hash::Hash;
use crate::words::id::{
    AgentId, BindingId, EventSeq, MessageId, NoticeId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId, WorkspaceId,
};

shape! {
    /// Whether the agent belongs to the operator-visible surface (profile seed, Visibility).
    pub enum Visibility { Public, Private, }
}
names!(Visibility { Public = "public", Private = "private", });

shape! {
    /// Who owns the agent's lifecycle (profile seed, Ownership).
    pub enum Ownership { SelfOwned, ParentSupervised, }
}
names!(Ownership { SelfOwned = "self_owned", ParentSupervised = "parent_supervised", });

shape! {
    /// The named capability package (profile seed, Public Preset Names).
    pub enum Preset { PublicNamed, PrivateChild, }
}
names!(Preset { PublicNamed = "public_named", PrivateChild = "private_child", });

shape! {
    /// What the host is for this agent.
    pub enum Role {
        /// The agent that the default-agent routes mean.
        Default,
        /// An agent somebody named.
        Named,
        /// An agent another agent made.
        Child,
    }
}
names!(Role { Default = "default", Named = "named", Child = "child", });

shape! {
    /// What a wake came to (wire, Differences to settle).
    pub enum WakeDisposition {
        /// A tick of its own was enqueued.
        Woken,
        /// Added to a tick that was waiting.
        Coalesced,
        /// That tick names the same reason and source.
        Ignored,
    }
}
names!(WakeDisposition { Woken = "woken", Coalesced = "coalesced", Ignored = "ignored", });

shape! {
    /// What a command answers its caller. Kept for as long as its idempotency key is.
    pub enum Answer {
        /// Done; there is nothing to name.
        Done,
        /// The message that was taken in.
        Message(MessageId),
        /// The run that was aborted.
        Aborted(RunId),
        /// What became of a wake, and the tick that carries it.
        Woken { disposition: WakeDisposition, message: MessageId, },
        Work(WorkId),
        Wait(WaitId),
        Timer(TimerId),
        Trigger(TriggerId),
        Task(TaskId),
        Workspace(WorkspaceId),
        Notice(NoticeId),
        Binding(BindingId),
        /// The event that set a secret, which the home keeps under its number.
        WebhookSecret(EventSeq),
        /// Messages that were put aside, and those like them that still wait.
        Dropped { dropped: u64, left: u64, },
    }
}

shape! {
    /// Who names an idempotency key: each has a space of keys of its own, which no other can fill or take from.
    pub enum Speaker {
        /// The control plane.
        Operator,
        /// A source of webhooks. What it signs is apart from what anybody may send under its name.
        Webhook { source: String, signed: bool, },
        Channel { channel_id: String, },
        /// Whoever holds a capability.
        Capability { trigger: TriggerId, },
        /// The operator of a transport, by the name of its binding.
        Binding { name: String, },
        Agent { agent: AgentId, },
    }
}

shape! {
    /// What one agent owes another: its errands of each kind are taken in the order of their entries.
    #[derive(PartialOrd, Ord)]
    pub enum ErrandKind {
        /// Words: a notice, a report, input.
        Message,
        /// What a child is to be.
        Direction,
    }
}
names!(ErrandKind { Message = "message", Direction = "direction", });

shape! {
    /// How an errand ended for the agent that owed it.
    pub enum ErrandOutcome {
        /// It was taken in.
        Taken,
        /// Who it was for has ended, or does not know of it.
        NotWanted,
    }
}
names!(ErrandOutcome { Taken = "taken", NotWanted = "not_wanted", });

plane! {
    /// Facts about the agent itself.
    AgentEvent {
        /// The agent exists. The first event of every ledger.
        0x0101 agent_created 1 since "0.1.0" => Created(AgentCreated) {
            agent_id: AgentId,
            role: Role,
            visibility: Visibility,
            ownership: Ownership,
            preset: Preset,
            /// Who created it; never changes.
            lineage_parent: Option<AgentId>,
            /// Who controls it.
            supervisor: Option<AgentId>,
            /// The supervisor's handle of it.
            supervising_task: Option<TaskId>,
            /// The guidance it was made from.
            template: Option<String>,
        }
        /// The scheduler may run the agent.
        0x0102 agent_started 1 since "0.1.0" => Started(AgentStarted) {}
        /// The scheduler may not run the agent, and it takes no messages, until it is started.
        0x0103 agent_stopped 1 since "0.1.0" => Stopped(AgentStopped) {
            reason: String,
        }
        /// The scheduler may not run the agent until it is started; messages queue.
        0x0104 agent_paused 1 since "0.1.0" => Paused(AgentPaused) {
            reason: String,
        }
        /// The agent made another one.
        0x0105 agent_spawned 1 since "0.1.0" => Spawned(AgentSpawned) {
            child: AgentId,
            preset: Preset,
            /// The handle by which it is supervised.
            task: Option<TaskId>,
        }
        /// The agent began with a view of another one's context (control-plane seed, Fork Context Derivation).
        0x0106 context_inherited 1 since "0.1.0" => Inherited(ContextInherited) {
            from: AgentId,
            /// The event that the other one had come to.
            head: EventSeq,
            view: Content,
        }
        /// The delegation has its result; it is owed to the supervisor.
        0x0107 delegation_reported 1 since "0.1.0" => Reported(DelegationReported) {
            status: TaskStatus,
            run: Option<RunId>,
            report: Content,
            /// What it cost, its own children included.
            usage: UsageTotal,
        }
        /// What the event `entry` owes to another agent was taken in there, or is not wanted any more.
        0x0108 outbox_delivered 1 since "0.1.0" => Delivered(OutboxDelivered) {
            entry: EventSeq,
            outcome: ErrandOutcome,
        }
        /// The agent is to end: it runs no more, and what is open is brought to its end.
        0x0109 agent_archive_requested 1 since "0.1.0" => ArchiveRequested(AgentArchiveRequested) {
            reason: String,
        }
        /// The agent has ended. Nothing follows.
        0x010A agent_archived 1 since "0.1.0" => Archived(AgentArchived) {}
        /// From its next turn on the agent asks this model first.
        0x010B agent_model_override_set 1 since "0.1.0" => ModelSet(AgentModelSet) {
            model: String,
        }
        /// From its next turn on the agent asks the host's models.
        0x010C agent_model_override_cleared 1 since "0.1.0" => ModelCleared(AgentModelCleared) {}
        /// A request that named an idempotency key was answered.
        0x0110 request_answered 1 since "0.1.0" => RequestAnswered(RequestAnswered) {
            key: String,
            /// Of the request as it was sent: same key and other fingerprint is a mistake of the caller.
            fingerprint: Hash,
            answer: Answer,
            /// Whose key it is.
            speaker: Speaker,
        }
        /// What another agent's event `entry` owes was taken in: what it led to stands in the same commit.
        0x0111 errand_taken 1 since "0.1.0" => ErrandTaken(ErrandTaken) {
            from: AgentId,
            errand: ErrandKind,
            entry: EventSeq,
        }
    }
}
