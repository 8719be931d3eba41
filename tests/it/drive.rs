//! A scripted outside: it does what is owed, one thing at a time, until nothing is.

use crate::story::tell;
use crate::world::World;
use holon::events::call::Action;
use holon::fold::owed::{Effect, Owed};
use holon::words::id::AgentId;

/// More steps than any of the tests' worlds can need; one that needs more is turning in circles.
const STEPS_MAX: usize = 5_000;

/// Does what is owed until nothing is, by the agent and by whoever was born of it. Each choice settles which effect is
/// next and how it goes; when they have run out, models answer, commands end well, and no timer goes on for ever.
pub fn to_rest(world: &mut World, choices: &[u8]) {
    let mut choices = choices.iter().copied();
    for _ in 0..STEPS_MAX {
        let choice = choices.next();
        if choice.is_none() {
            stop_intervals(world);
        }
        let owed = world.owed();
        if !owed.is_empty() {
            step(world, &owed, choice);
        } else if !children_step(world, choice) {
            return;
        }
    }
    panic!("the agent does not come to rest; it owes {:?}", world.owed());
}

/// What is owed by a child that owes anything; false when none does.
fn children_step(world: &mut World, choice: Option<u8>) -> bool {
    let children: Vec<AgentId> = world.children.keys().cloned().collect();
    for id in children {
        stop_intervals(world.child(&id));
        let owed = world.child(&id).owed();
        if owed.iter().any(|owed| matches!(owed.effect, Effect::Deliver { .. })) {
            tell(world, &format!("take {id}"));
            return true;
        }
        if !owed.is_empty() {
            let child = world.child(&id);
            step(child, &owed, choice);
            world.at = child.at;
            return true;
        }
    }
    false
}

fn stop_intervals(world: &mut World) {
    let timers = &world.state.waiting.timers;
    let endless: Vec<_> = timers.iter().filter(|(_, timer)| timer.interval_ms.is_some()).map(|(id, _)| *id).collect();
    for timer in endless {
        tell(world, &format!("cancel {timer}"));
    }
}

/// One thing that is owed is done. It must lead somewhere: what is owed, done and still owed would be done for ever.
fn step(world: &mut World, owed: &[Owed], choice: Option<u8>) {
    let earliest = owed.iter().map(|owed| owed.not_before).min().expect("something is owed");
    world.at = world.at.max(earliest);
    let due: Vec<Effect> = owed.iter().filter(|owed| owed.not_before <= world.at).map(|owed| owed.effect).collect();
    let effect = due[usize::from(choice.unwrap_or(0)) % due.len()];
    let line = outcome(world, effect, choice.map(|choice| choice / 16));
    let before = world.ledger.len();
    let told = tell(world, &line);
    assert!(world.ledger.len() > before, "{effect:?} is owed, but `{line}` leads to {told:?}");
}

fn outcome(world: &World, effect: Effect, choice: Option<u8>) -> String {
    match effect {
        Effect::StartTurn => "begin".into(),
        Effect::PrepareRound { .. } => "round".into(),
        Effect::BeginAttempt { .. } => "again".into(),
        Effect::CallModel { attempt, .. } => format!("at {attempt} {}", model(choice)),
        Effect::BeginCall { .. } => "call".into(),
        Effect::RunCall { .. } => brought(world, choice),
        Effect::StartTask { task } => format!("run {task}"),
        Effect::RunTask { task, attempt } => command(choice, &format!("{task}"), attempt.0),
        Effect::StopTask { task, attempt } => format!("at {attempt} exit {task} signal-15"),
        Effect::PromoteTask { task, .. } => format!("promote {task} so far"),
        Effect::ReadTask { task, .. } => format!("read {task} so far"),
        Effect::DeliverInput { task, .. } if world.state.tasks.open[&task].child().is_some() => format!("hand {task}"),
        Effect::DeliverInput { task, .. } => format!("delivered {task}"),
        Effect::DirectChild { task, .. } => format!("direct {task}"),
        Effect::SettleWorktree { task } => format!("settle {task} {}", ["retained", "removed", "left"][fate(choice)]),
        Effect::Deliver { .. } => panic!("an agent without a supervisor owes nobody"),
        Effect::BeginDelivery { binding, .. } => format!("submit {binding}"),
        Effect::SubmitDelivery { binding, attempt } => {
            format!("at {attempt} {} {binding} so", ["taken", "not-taken", "refused-by"][fate(choice)])
        }
        Effect::ContinueWork { work } => format!("continue {work}"),
        Effect::Recheck => "recheck".into(),
        Effect::EndWait { wait } => format!("due {wait}"),
        Effect::FireTimer { timer } => format!("fire {timer}"),
    }
}

fn fate(choice: Option<u8>) -> usize {
    usize::from(choice.unwrap_or(0)) % 3
}

/// What may not be there is refused, as the runtime refuses it.
fn brought(world: &World, choice: Option<u8>) -> String {
    let next = world.state.turns.calls().and_then(|(_, calls)| calls.next());
    match (next.map(|call| &call.action), choice) {
        (_, Some(0)) => "refused not_found".into(),
        (Some(Action::CreateTrigger { .. }), _) => format!("bring token-{}", world.ledger.len()),
        _ => "bring what it saw".into(),
    }
}

fn model(choice: Option<u8>) -> &'static str {
    match choice {
        Some(0) => "answer on it | exec make | exec make",
        Some(1) => "answer on it | exec serve | sleep",
        Some(2) => "answer reading | output task-1 500 | output task-2",
        Some(3) => "answer trying | Fly {} | exec make",
        Some(4) => "fail timeout",
        Some(5) => "fail rate_limited 1000",
        Some(6) => "fail authentication",
        Some(7) => "fail interrupted",
        Some(8) => r#"answer opening | CreateWorkItem {"objective":"ship it"} | exec serve"#,
        Some(9) => r#"answer helping | SpawnAgent {"preset":"private_child","initial_message":"look into it"}"#,
        Some(10) => r#"answer later | WaitFor {"wake":"external","reason":"the review"}"#,
        Some(11) => r#"answer soon | WaitFor {"wake":"timer","after_ms":5000,"reason":"a pause"}"#,
        Some(12) => r#"answer over | CompleteWorkItem {"work_item_id":"work-1"}"#,
        _ => "answer done",
    }
}

fn command(choice: Option<u8>, task: &str, attempt: u64) -> String {
    match choice {
        Some(0) => format!("at {attempt} exit {task} 1 bad"),
        Some(1) => format!("at {attempt} exit {task} lost"),
        Some(2) => format!("at {attempt} exit {task} signal-9"),
        Some(3) => format!("rerun {task}"),
        _ => format!("at {attempt} exit {task} 0 good"),
    }
}
