//! What holds across planes whenever a command has been folded to its end.
//!
//! The planes check what may follow what; this checks that together they still make sense. Tests ask it after every
//! command; audit and replay ask it of the ledgers they read. Between the events of one command it may not hold.

use super::AgentState;
use super::agent::Lifecycle;
use super::binding::Binding;
use super::outbox::Outbox;
use super::queue::rank;
use super::task::Task;
use super::turn::{Calls, Phase, Requested, Turn};
use super::waiting::Wait;
use crate::events::agent::Visibility;
use crate::events::queue::MessageKind;
use crate::events::task::Caller;
use crate::events::workspace::WorkspaceName;
use crate::words::id::{AgentId, EventSeq, TaskId};
use crate::words::limit::{
    BINDINGS_MAX, BOOTS_PER_STEP_MAX, DELIVERIES_OWED_MAX, EPISODES_KEPT_MAX, MEMORY_ENTRIES_MAX, NOTICES_KEPT_MAX,
    RECENT_TURNS_MAX, SKILLS_MAX, TASKS_ENDED_KEPT_MAX, TASKS_OPEN_MAX, TIMERS_MAX, TRIGGERS_MAX, WAITS_MAX,
    WAKE_REASONS_MAX, WORK_OPEN_MAX,
};

/// A state that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("agent {agent} at event {head}: it does not hold that {rule}")]
pub struct Broken {
    pub agent: AgentId,
    pub head: EventSeq,
    /// The sentence that is not true.
    pub rule: &'static str,
}

/// A sentence about states, and whether it is true of one.
type Rule = (&'static str, fn(&AgentState) -> bool);

const RULES: &[Rule] = &[
    ("an agent exists from its first event on", |state| {
        (state.agent.lifecycle == Lifecycle::Unborn) == (state.head == EventSeq::ZERO)
    }),
    ("the lifecycle rests on an event that was recorded", |state| state.agent.lifecycle_seq <= state.head),
    ("each waiting message is in the lane it names, and in no other", lanes_agree),
    ("the bytes of the waiting bodies add up", |state| {
        state.queue.body_bytes == state.queue.waiting.values().map(|queued| queued.body_bytes).sum::<u64>()
    }),
    ("waiting messages are of the ids given, in the order of their events", messages_are_ordered),
    ("only ticks carry wakes, and a bounded number of them", wakes_are_carried),
    ("only an active agent has a turn", |state| turn(state).is_none() || state.agent.lifecycle == Lifecycle::Active),
    ("the turn's message has left the queue", |state| {
        turn(state).is_none_or(|turn| !state.queue.waiting.contains_key(&turn.message))
    }),
    ("the running turn is the one begun last", |state| turn(state).is_none_or(|turn| turn.run == state.turns.last)),
    ("what a turn rests on was recorded before", |state| turn(state).is_none_or(|turn| turn_is_past(turn, state.head))),
    ("a turn that has ended is gone", |state| turn(state).is_none_or(|turn| is_open(state, turn))),
    ("a round is begun by a bounded number of boots", |state| requested(state).is_none_or(boots_are_bounded)),
    ("while calls are under way one of them has no result", |state| {
        calls(state).is_none_or(|(_, calls)| calls.next().is_some())
    }),
    ("the command that a call waits for is open and knows the call", caller_is_known),
    ("the turns that prompts repeat are bounded", |state| state.turns.recent.len() <= RECENT_TURNS_MAX),
    ("open tasks are bounded and of the ids given", |state| {
        state.tasks.open.len() <= TASKS_OPEN_MAX && state.tasks.open.keys().all(|id| *id <= state.tasks.last)
    }),
    ("what a task rests on was recorded before", |state| {
        state.tasks.open.values().all(|task| task_is_past(task, state.head))
    }),
    ("a task in the foreground has its call, or is to be ended", |state| {
        state.tasks.open.iter().all(|(id, task)| has_its_call(state, *id, task))
    }),
    ("a task in the background has begun", |state| {
        state.tasks.open.values().all(|task| !task.promoted || task.attempt.is_some())
    }),
    ("ended tasks are bounded, and not open", ended_tasks_have_ended),
    ("receipts are bounded, and each has its place in the order", |state| state.receipts.agree()),
    ("errands come from the supervisor and from open children", senders_are_known),
    ("open work is bounded and of the ids given, and the focus is open", work_is_open),
    ("each owner has one active wait", owners_wait_once),
    ("waits are bounded and of the ids given, and their work is open", waits_are_open),
    ("timers are bounded and of the ids given", |state| {
        let timers = &state.waiting.timers;
        timers.len() <= TIMERS_MAX && timers.keys().all(|id| *id <= state.waiting.last_timer)
    }),
    ("triggers are bounded, of the ids given, and each has a token of its own", triggers_are_apart),
    ("a webhook's secret was set before, and after the one it follows", |state| {
        state.waiting.webhook.as_ref().is_none_or(|secret| {
            secret.set <= state.head && secret.previous.as_ref().is_none_or(|previous| previous.set < secret.set)
        })
    }),
    ("the active workspace is attached", |state| match &state.workspaces.active.workspace {
        WorkspaceName::AgentHome => true,
        WorkspaceName::Attached(id) => state.workspaces.attached.contains_key(id),
    }),
    ("a worktree was made for a task", |state| state.workspaces.worktrees.keys().all(|id| *id <= state.tasks.last)),
    ("skills are bounded, and were installed before", |state| {
        let skills = &state.workspaces.skills;
        skills.len() <= SKILLS_MAX && skills.values().all(|skill| skill.seq <= state.head)
    }),
    ("only a public agent has skills", |state| {
        state.agent.visibility == Visibility::Public || state.workspaces.skills.is_empty()
    }),
    ("notes and episodes are bounded", |state| {
        state.memory.entries.len() <= MEMORY_ENTRIES_MAX && state.memory.episodes.len() <= EPISODES_KEPT_MAX
    }),
    ("the notices that are shown are bounded", |state| state.briefs.notices.len() <= NOTICES_KEPT_MAX),
    ("only a supervised agent owes its supervisor", |state| {
        state.agent.is_supervised() || state.outbox == Outbox::default()
    }),
    ("bindings are bounded, of the ids given, and each has a name of its own", bindings_are_apart),
    ("what a binding owes is bounded, and was recorded before", |state| {
        state.bindings.open.values().all(|binding| deliveries_are_past(binding, state.head))
    }),
    ("only a public agent has bindings", |state| {
        state.agent.visibility == Visibility::Public || state.bindings.open.is_empty()
    }),
    ("an agent that has ended has nothing open", |state| {
        state.agent.lifecycle != Lifecycle::Archived || has_nothing_open(state)
    }),
];

/// Whether the state makes sense; the first sentence that is not true of it.
pub fn check(state: &AgentState) -> Result<(), Broken> {
    match RULES.iter().find(|(_, holds)| !holds(state)) {
        Some((rule, _)) => Err(Broken { agent: state.agent_id.clone(), head: state.head, rule }),
        None => Ok(()),
    }
}

fn turn(state: &AgentState) -> Option<&Turn> {
    state.turns.current.as_deref()
}

fn requested(state: &AgentState) -> Option<&Requested> {
    match &turn(state)?.phase {
        Phase::RoundRequested(requested) => Some(requested),
        Phase::RoundOwed | Phase::Calls(_) | Phase::Finished { .. } => None,
    }
}

fn calls(state: &AgentState) -> Option<(&Turn, &Calls)> {
    state.turns.calls()
}

fn lanes_agree(state: &AgentState) -> bool {
    let queue = &state.queue;
    let listed: usize = queue.lanes.iter().map(std::collections::BTreeSet::len).sum();
    listed == queue.waiting.len()
        && queue.waiting.iter().all(|(id, queued)| queue.lanes[rank(queued.lane)].contains(id))
}

fn messages_are_ordered(state: &AgentState) -> bool {
    let seqs: Vec<EventSeq> = state.queue.waiting.values().map(|queued| queued.seq).collect();
    seqs.is_sorted_by(|one, next| one < next)
        && seqs.last().is_none_or(|last| *last <= state.head)
        && state.queue.waiting.keys().all(|id| *id <= state.queue.last)
}

fn wakes_are_carried(state: &AgentState) -> bool {
    state.queue.waiting.values().all(|queued| {
        queued.wakes.is_empty() || (queued.kind == MessageKind::SystemTick && queued.wakes.len() <= WAKE_REASONS_MAX)
    })
}

fn turn_is_past(turn: &Turn, head: EventSeq) -> bool {
    let step = match &turn.phase {
        Phase::RoundRequested(requested) => requested.attempt.map_or(requested.since, |attempt| attempt.seq),
        Phase::RoundOwed | Phase::Calls(_) | Phase::Finished { .. } => turn.started,
    };
    turn.queued.seq < turn.started && turn.started <= step && step <= head
}

/// The scheduler ends a turn in the commit that leads to its end.
fn is_open(state: &AgentState, turn: &Turn) -> bool {
    let kept_open_by_a_prompt = || state.queue.interjections().next().is_some();
    match &turn.phase {
        Phase::Finished { .. } => !turn.message_settled && kept_open_by_a_prompt(),
        Phase::RoundRequested(requested) => !turn.message_settled && requested.given_up.is_none(),
        Phase::RoundOwed | Phase::Calls(_) => !turn.message_settled,
    }
}

fn boots_are_bounded(requested: &Requested) -> bool {
    requested.boots <= BOOTS_PER_STEP_MAX && (requested.boots > 0) == requested.attempt.is_some()
}

fn caller_is_known(state: &AgentState) -> bool {
    let Some((turn, calls)) = calls(state) else { return true };
    let caller = Caller { run: turn.run, round: calls.round, call: calls.done };
    calls.task.is_none_or(|id| {
        state.tasks.open.get(&id).is_some_and(|task| task.in_foreground() && task.caller.as_ref() == Some(&caller))
    })
}

fn task_is_past(task: &Task, head: EventSeq) -> bool {
    let begun = task.attempt.map_or(task.requested, |attempt| attempt.seq);
    task.requested <= begun
        && begun <= head
        && task.boots <= BOOTS_PER_STEP_MAX
        && (task.boots > 0) == task.attempt.is_some()
}

fn has_its_call(state: &AgentState, id: TaskId, task: &Task) -> bool {
    let waits = || calls(state).is_some_and(|(_, calls)| calls.task == Some(id));
    !task.in_foreground() || task.stopping.is_some() || waits()
}

fn ended_tasks_have_ended(state: &AgentState) -> bool {
    let tasks = &state.tasks;
    tasks.ended.len() <= TASKS_ENDED_KEPT_MAX
        && tasks.ended.iter().all(|ended| !tasks.open.contains_key(&ended.task) && ended.seq <= state.head)
}

fn work_is_open(state: &AgentState) -> bool {
    let works = &state.works;
    works.open.len() <= WORK_OPEN_MAX
        && works.open.keys().all(|id| *id <= works.last)
        && works.focus.is_none_or(|focus| works.open.contains_key(&focus))
}

fn owners_wait_once(state: &AgentState) -> bool {
    let owners: Vec<_> = state.waiting.active().map(|(_, wait)| &wait.owner).collect();
    owners.iter().enumerate().all(|(index, owner)| !owners[..index].contains(owner))
}

fn waits_are_open(state: &AgentState) -> bool {
    let waiting = &state.waiting;
    waiting.waits.len() <= WAITS_MAX
        && waiting.waits.keys().all(|id| *id <= waiting.last_wait)
        && waiting.waits.values().filter_map(Wait::work).all(|work| state.works.open.contains_key(&work))
}

fn triggers_are_apart(state: &AgentState) -> bool {
    let triggers = &state.waiting.triggers;
    let tokens: std::collections::BTreeSet<_> = triggers.values().map(|trigger| trigger.token_hash).collect();
    tokens.len() == triggers.len()
        && triggers.len() <= TRIGGERS_MAX
        && triggers.keys().all(|id| *id <= state.waiting.last_trigger)
}

fn bindings_are_apart(state: &AgentState) -> bool {
    let bindings = &state.bindings;
    let names: std::collections::BTreeSet<_> = bindings.open.values().map(|binding| &binding.terms.name).collect();
    names.len() == bindings.open.len()
        && bindings.open.len() <= BINDINGS_MAX
        && bindings.open.keys().all(|id| *id <= bindings.last)
}

fn deliveries_are_past(binding: &Binding, head: EventSeq) -> bool {
    let entries: Vec<EventSeq> = binding.owed.iter().map(|delivery| delivery.entry).collect();
    entries.len() <= DELIVERIES_OWED_MAX
        && entries.is_sorted()
        && entries.last().is_none_or(|last| *last <= head)
        && binding.attempt.is_none_or(|attempt| attempt.seq <= head && !entries.is_empty())
}

fn has_nothing_open(state: &AgentState) -> bool {
    turn(state).is_none()
        && state.queue.waiting.is_empty()
        && state.tasks.open.is_empty()
        && state.outbox.owed.is_empty()
        && state.waiting.triggers.is_empty()
        && state.bindings.open.is_empty()
        && state.workspaces.worktrees.is_empty()
}

/// The supervisor, and the children whose delegation goes on.
fn senders_are_known(state: &AgentState) -> bool {
    let children: Vec<&AgentId> = state.tasks.open.values().filter_map(|task| Some(&task.child()?.agent)).collect();
    state.errands.senders().all(|from| state.agent.supervisor.as_ref() == Some(from) || children.contains(&from))
}
