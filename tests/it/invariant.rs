//! What holds across planes: each sentence can be false, and is then the one that is named.

use crate::story::tell;
use crate::world::World;
use holon::events::operator::NotificationRequested;
use holon::events::workspace::Worktree;
use holon::fold::agent::Lifecycle;
use holon::fold::invariant::check;
use holon::fold::operator::Notice;
use holon::fold::turn::Phase;
use holon::fold::waiting::WebhookSecret;
use holon::fold::{AgentState, task};
use holon::words::content::Content;
use holon::words::id::{EventSeq, MessageId, NoticeId, RunId, TaskId, TimerId, TriggerId, WaitId, WorkId};

/// An agent in the middle of everything: work that waits, a timer, a trigger, a call under way, a task in the
/// background, messages waiting.
fn busy() -> AgentState {
    let mut world = World::new();
    let story = [
        "key k prompt build; begin; round; answer building | exec make | exec make test; run task-1; promote task-1",
        "run task-2; channel ops look; wake look; attach /work; timer 5000 tea; trigger wake token ci; open ship it",
    ];
    story.iter().flat_map(|lines| lines.split("; ")).for_each(|line| drop(tell(&mut world, line)));
    world.state
}

/// An agent between turns, whose work waits for the world.
fn waiting() -> AgentState {
    let mut world = World::new();
    let wait = r#"answer | CreateWorkItem {"objective":"ship"} | WaitFor {"wake":"external","reason":"the build"}"#;
    ["prompt build", "begin", "round", wait].iter().for_each(|line| drop(tell(&mut world, line)));
    world.state
}

fn task(state: &mut AgentState, id: u64) -> &mut task::Task {
    state.tasks.open.get_mut(&TaskId(id)).expect("the task is open")
}

/// A change, and the sentence that is then false.
type Case = (fn(&mut AgentState), &'static str);

const CASES: &[Case] = &[
    (|state| state.agent.lifecycle = Lifecycle::Unborn, "an agent exists from its first event on"),
    (|state| state.agent.lifecycle_seq = EventSeq(999), "the lifecycle rests on an event that was recorded"),
    (
        |state| drop(state.queue.waiting.remove(&MessageId(2))),
        "each waiting message is in the lane it names, and in no other",
    ),
    (|state| state.queue.body_bytes += 1, "the bytes of the waiting bodies add up"),
    (|state| state.queue.last = MessageId(1), "waiting messages are of the ids given, in the order of their events"),
    (|state| state.agent.lifecycle = Lifecycle::Paused, "only an active agent has a turn"),
    (|state| state.turns.last = RunId(7), "the running turn is the one begun last"),
    (
        |state| {
            let turn = state.turns.current.as_mut().expect("a turn runs");
            turn.message = MessageId(2);
        },
        "the turn's message has left the queue",
    ),
    (
        |state| {
            let turn = state.turns.current.as_mut().expect("a turn runs");
            turn.started = EventSeq(1);
        },
        "what a turn rests on was recorded before",
    ),
    (
        |state| {
            let turn = state.turns.current.as_mut().expect("a turn runs");
            turn.phase = Phase::Finished { text: Content::from("") };
        },
        "a turn that has ended is gone",
    ),
    (|state| drop(state.tasks.open.remove(&TaskId(2))), "the command that a call waits for is open and knows the call"),
    (|state| state.tasks.last = TaskId(1), "open tasks are bounded and of the ids given"),
    (|state| task(state, 1).boots = 0, "what a task rests on was recorded before"),
    (|state| task(state, 1).promoted = false, "a task in the foreground has its call, or is to be ended"),
    (|state| state.works.focus = Some(WorkId(2)), "open work is bounded and of the ids given, and the focus is open"),
    (|state| state.waiting.last_timer = TimerId(0), "timers are bounded and of the ids given"),
    (
        |state| {
            let trigger = state.waiting.triggers[&TriggerId(1)].clone();
            state.waiting.triggers.insert(TriggerId(2), trigger);
            state.waiting.last_trigger = TriggerId(2);
        },
        "triggers are bounded, of the ids given, and each has a token of its own",
    ),
    (
        |state| {
            let (set, set_at) = (EventSeq(999), state.last_at);
            state.waiting.webhook = Some(WebhookSecret { set, set_at, secret: "webhook/1".into(), previous: None });
        },
        "a webhook's secret was set before, and after the one it follows",
    ),
    (|state| state.workspaces.attached.clear(), "the active workspace is attached"),
    (
        |state| {
            let worktree =
                Worktree { repository: "/r".into(), root: "/w".into(), branch: "b".into(), base_commit: "c".into() };
            state.workspaces.worktrees.insert(TaskId(9), worktree);
        },
        "a worktree was made for a task",
    ),
    (
        |state| {
            let requested = NotificationRequested { notice: NoticeId(1), text: Content::from("x"), work: None };
            let notice = Notice { seq: EventSeq(1), at: state.last_at, requested };
            state.briefs.notices = std::iter::repeat_n(notice, 11).collect();
        },
        "the notices that are shown are bounded",
    ),
    (|state| state.outbox.report = Some(EventSeq(3)), "only a supervised agent owes its supervisor"),
];

const CASES_WAITING: &[Case] = &[
    (
        |state| {
            let wait = state.waiting.waits[&WaitId(1)].clone();
            state.waiting.waits.insert(WaitId(2), wait);
            state.waiting.last_wait = WaitId(2);
        },
        "each owner has one active wait",
    ),
    (
        |state| {
            state.works.open.clear();
            state.works.focus = None;
        },
        "waits are bounded and of the ids given, and their work is open",
    ),
    (
        |state| {
            state.agent.lifecycle = Lifecycle::Archived;
            state.waiting.waits.clear();
            let stray = holon::fold::outbox::Delivery::Notice { text: Content::from("x"), derived_from: None };
            state.agent.supervisor = Some(state.agent_id.clone());
            state.agent.supervising_task = Some(TaskId(1));
            state.outbox.owed.insert(EventSeq(1), stray);
        },
        "an agent that has ended has nothing open",
    ),
];

#[test]
fn a_state_that_makes_sense_passes() {
    assert_eq!(check(&busy()), Ok(()));
    assert_eq!(check(&waiting()), Ok(()));
}

#[test]
fn a_state_that_contradicts_itself_is_told_how() {
    let cases = CASES.iter().map(|case| (busy(), case)).chain(CASES_WAITING.iter().map(|case| (waiting(), case)));
    for (mut state, (change, rule)) in cases {
        change(&mut state);
        let broken = check(&state).expect_err(rule);
        assert_eq!(broken.rule, *rule);
        assert!(broken.to_string().starts_with("agent main at event "), "{broken}");
    }
}
