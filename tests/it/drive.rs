//! A scripted outside: it does what is owed, one thing at a time, until nothing is.

use crate::story::tell;
use crate::world::World;
use holon::fold::owed::{Effect, Owed};

/// More steps than any of the tests' worlds can need; one that needs more is turning in circles.
const STEPS_MAX: usize = 5_000;

/// Does what is owed until nothing is. Each choice settles which effect is next and how it goes; when they have run
/// out, models answer and commands end well.
pub fn to_rest(world: &mut World, choices: &[u8]) {
    let mut choices = choices.iter().copied();
    for _ in 0..STEPS_MAX {
        let owed = world.owed();
        if owed.is_empty() {
            return;
        }
        step(world, &owed, choices.next());
    }
    panic!("the agent does not come to rest; it owes {:?}", world.owed());
}

/// One thing that is owed is done. It must lead somewhere: what is owed, done and still owed would be done for ever.
fn step(world: &mut World, owed: &[Owed], choice: Option<u8>) {
    let earliest = owed.iter().map(|owed| owed.not_before).min().expect("something is owed");
    world.at = world.at.max(earliest);
    let due: Vec<Effect> = owed.iter().filter(|owed| owed.not_before <= world.at).map(|owed| owed.effect).collect();
    let effect = due[usize::from(choice.unwrap_or(0)) % due.len()];
    let line = outcome(effect, choice.map(|choice| choice / 16));
    let before = world.ledger.len();
    let told = tell(world, &line);
    assert!(world.ledger.len() > before, "{effect:?} is owed, but `{line}` leads to {told:?}");
}

fn outcome(effect: Effect, choice: Option<u8>) -> String {
    match effect {
        Effect::StartTurn => "begin".into(),
        Effect::PrepareRound { .. } => "round".into(),
        Effect::BeginAttempt { .. } => "again".into(),
        Effect::CallModel { attempt, .. } => format!("at {attempt} {}", model(choice)),
        Effect::StartTask { task } => format!("run {task}"),
        Effect::RunTask { task, attempt } => command(choice, &format!("{task}"), attempt.0),
        Effect::StopTask { task, attempt } => format!("at {attempt} exit {task} signal-15"),
        Effect::PromoteTask { task, .. } => format!("promote {task} so far"),
        Effect::ReadTask { task, .. } => format!("read {task} so far"),
        _ => panic!("{effect:?} is not done here yet"),
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
