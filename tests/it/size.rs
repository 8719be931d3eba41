//! What a turn costs the ledger (semantics 11): an earlier implementation wrote 39 KB a turn.

use crate::story::tell;
use crate::world::World;

const TURN_BYTES_MAX: usize = 5_000;

/// Bytes that a turn with one command adds to the ledger. Its texts have five words each.
fn turn_bytes(world: &mut World, turn: u64) -> usize {
    let before = world.bytes().len();
    let command = format!("answer i look at the files | exec ls -l src/{turn}");
    let task = world.state.tasks.last.next();
    for line in ["prompt which files are there then", "begin", "round", &command] {
        tell(world, line);
    }
    tell(world, &format!("run {task}"));
    tell(world, &format!("exit {task} 0 a b c d e"));
    tell(world, "round");
    tell(world, "answer there are five of them");
    assert!(world.turn().is_none(), "the turn has ended");
    world.bytes().len() - before
}

#[test]
fn a_turn_with_one_command_adds_less_than_five_kilobytes_however_long_the_past_is() {
    let mut world = World::new();
    let turns: Vec<usize> = (0..240).map(|turn| turn_bytes(&mut world, turn)).collect();
    assert!(turns.iter().all(|bytes| *bytes < TURN_BYTES_MAX), "{turns:?}");
    let most = |turns: &[usize]| turns.iter().max().copied().unwrap_or_default();
    assert!(most(&turns[200..]) < most(&turns[120..160]) + 50, "it grows no further once the past is at its bound");
}

#[test]
fn the_state_is_bounded_by_what_is_open() {
    let mut world = World::new();
    let state_bytes = |world: &World| holon::events::codec::to_bytes(&world.state).len();
    let mut after_turns = |turns: std::ops::Range<u64>| {
        turns.for_each(|turn| assert!(turn_bytes(&mut world, turn) > 0));
        state_bytes(&world)
    };
    let (early, late) = (after_turns(0..120), after_turns(120..240));
    assert!(late < early + 100, "{early} bytes became {late}");
}
