//! What a child inherits by a fork: a bounded view of what its parent works on, the same from the same, stable parts
//! first (control-plane seed, Fork Context Derivation).

use crate::story::tell;
use crate::world::World;
use holon::words::limit::{INHERITED_BYTES_MAX, MEMORY_BYTES_MAX, MEMORY_ENTRIES_MAX, WORK_OPEN_MAX};

/// A world in which `story` has happened; its lines are parted by `; `.
fn after(story: &str) -> World {
    let mut world = World::new();
    live(&mut world, story);
    world
}

fn live(world: &mut World, story: &str) {
    for line in story.split(';').map(str::trim) {
        let told = tell(world, line);
        assert!(told.iter().all(|told| !told.starts_with('!') && !told.contains("refused")), "{line}: {told:?}");
    }
}

/// A parent whose work is to ship, with a plan, and other work that does not concern it.
const SHIPPING: &str = r#"prompt plan it; begin; round;
    answer | CreateWorkItem {"objective":"mow the lawn","plan":"in rows"} | CreateWorkItem {"objective":"ship it","plan":"first the tests","delivery_target":"the shop"};
    round; answer planned"#;

/// More work, told as a call within a turn; what it is made of stands in the arguments.
fn with_work(arguments: &str) -> World {
    let mut world = after(SHIPPING);
    live(
        &mut world,
        &format!(
            "drop msg-2 later; prompt more; begin; round; answer | CreateWorkItem {arguments}; round; answer noted"
        ),
    );
    world
}

#[test]
fn the_same_state_and_handoff_make_the_same_bytes() {
    let world = after(SHIPPING);
    assert_eq!(world.fork("help"), world.fork("help"));
    assert_eq!(world.fork("help"), after(SHIPPING).fork("help"));
}

#[test]
fn the_active_work_is_there_in_full_and_other_work_is_not() {
    let view = after(SHIPPING).fork("help");
    for part in
        ["work-2 active work", "objective:\n> ship it", "> first the tests", "delivery target:\n> the shop", "plan it"]
    {
        assert!(view.contains(part), "{part} is in\n{view}");
    }
    for part in ["work-1", "mow", "in rows"] {
        assert!(!view.contains(part), "{part} is not in\n{view}");
    }
}

#[test]
fn waits_callbacks_and_notes_of_the_active_work_come_along_and_those_of_other_work_do_not() {
    let world = after(
        r#"prompt go; begin; round;
        answer | CreateWorkItem {"objective":"mow"} | CreateWorkItem {"objective":"ship"} | MemoryUpdate {"entry":"shop","text":"opens at nine","work_item_id":"work-2"} | MemoryUpdate {"entry":"lawn","text":"is wet","work_item_id":"work-1"} | MemoryUpdate {"entry":"all","text":"be kind"} | CreateExternalTrigger {"mode":"wake","label":"shop bell","work_item_id":"work-2"} | CreateExternalTrigger {"mode":"wake","label":"rain gauge","work_item_id":"work-1"};
        call; bring one; call; bring two; round;
        answer | WaitFor {"wake":"external","reason":"the rain","work_item_id":"work-1"} | WaitFor {"wake":"external","reason":"the bell"}"#,
    );
    let view = world.fork("help");
    for part in ["opens at nine", "be kind", "waits: wait-2:\n> the bell", "callback: trigger-1 \"shop bell\""] {
        assert!(view.contains(part), "{part} is in\n{view}");
    }
    for part in ["is wet", "the rain", "rain gauge"] {
        assert!(!view.contains(part), "{part} is not in\n{view}");
    }
}

#[test]
fn other_work_that_the_handoff_names_comes_in_by_its_whole_id() {
    let world = after(SHIPPING);
    for handoff in ["look at work-1 too", "work-1", "(work-1)", "first work-1, then rest"] {
        assert!(world.fork(handoff).contains("objective:\n> mow the lawn"), "{handoff}");
    }
    for handoff in ["work-11", "rework-1", "work-1x", "work-1-a", "work_1", "work"] {
        assert!(!world.fork(handoff).contains("mow"), "{handoff}");
    }
}

#[test]
fn other_work_that_is_a_constraint_comes_in() {
    let view = with_work(r#"{"objective":"spend nothing","constraint":true,"focus":false}"#).fork("help");
    assert!(view.contains("objective:\n> spend nothing") && view.contains("other work must respect this"), "{view}");
    assert!(!view.contains("mow"), "{view}");
}

#[test]
fn other_work_that_blocks_the_active_item_comes_in() {
    let mut world = with_work(r#"{"objective":"find a box","focus":false}"#);
    assert!(!world.fork("help").contains("find a box"));
    live(&mut world, r#"alter work-2 {"depends_on":["work-3"]}"#);
    let view = world.fork("help");
    assert!(view.contains("objective:\n> find a box") && !view.contains("mow"), "{view}");
}

#[test]
fn other_work_for_the_same_target_comes_in() {
    let view = with_work(r#"{"objective":"print labels","delivery_target":"the shop","focus":false}"#).fork("help");
    assert!(view.contains("objective:\n> print labels") && !view.contains("mow"), "{view}");
    let view = with_work(r#"{"objective":"print labels","delivery_target":"the market","focus":false}"#).fork("help");
    assert!(!view.contains("print labels"), "{view}");
}

#[test]
fn the_chain_of_parents_comes_in() {
    let view = with_work(r#"{"objective":"a part of it","parent_work_item_id":"work-2","focus":false}"#).fork("help");
    assert!(view.contains("objective:\n> a part of it") && !view.contains("mow"), "{view}");
}

#[test]
fn turns_that_do_not_touch_the_work_leave_the_beginning_as_it_was() {
    let mut world = after(SHIPPING);
    let before = world.fork("help");
    for turn in 0..5 {
        let message = world.state.queue.last.next();
        live(&mut world, &format!("channel ops news {turn}; drop {message} unread"));
        live(&mut world, "timer 5000 tea");
        assert_eq!(world.fork("help"), before, "what is no turn leaves it as it was");
    }
    live(&mut world, "pick work-1; drop msg-2 later; prompt the lawn; begin; round; answer mown; pick work-2");
    assert_eq!(world.fork("help"), before, "turns on other work leave it as it was");
    live(&mut world, "prompt the box; begin; round; answer packed");
    let (stable, _) = before.split_once("run-1 was asked").expect("the tail of turns is there");
    let view = world.fork("help");
    assert!(view.starts_with(stable) && view.contains("packed"), "{view}");
}

#[test]
fn without_active_work_the_recent_turns_stand_in_and_it_says_so() {
    let view = after("prompt one; begin; round; answer yes; prompt two; begin; round; answer no").fork("help");
    for part in ["no work in focus; its recent turns follow", "> one", "> yes", "> two", "> no"] {
        assert!(view.contains(part), "{part} is in\n{view}");
    }
    let named = after("open mow; drop msg-1 later; prompt one; begin; round; answer yes").fork("look at work-1");
    assert!(named.contains("no work in focus") && named.contains("objective:\n> mow"), "{named}");
}

#[test]
fn the_tail_is_the_last_three_turns_on_the_work_and_episodes_stand_for_those_before() {
    let mut world = after(SHIPPING);
    for turn in 1..=4 {
        live(&mut world, &format!("prompt turn {turn}; begin; round; answer did {turn}"));
    }
    live(
        &mut world,
        r#"prompt and rest; begin; round; answer so be it | WaitFor {"wake":"external","reason":"the bell"}"#,
    );
    let view = world.fork("help");
    for (turn, is_there) in [(1, false), (2, false), (3, true), (4, true)] {
        assert_eq!(view.contains(&format!("and answered:\n> did {turn}\n")), is_there, "{turn}: {view}");
    }
    assert!(
        view.contains("[episode-1: 6 earlier turns, on work-2") && view.contains("completed:\n> did 1\n"),
        "{view}"
    );
}

#[test]
fn its_size_is_bounded_whatever_the_parents_history() {
    let long = "x".repeat(100_000);
    let mut world = after(SHIPPING);
    live(
        &mut world,
        &format!("drop msg-2 later; alter work-2 {{\"acceptance\":{{\"inline\":\"{}\"}}}}", &long[..2_000]),
    );
    live(
        &mut world,
        &format!(r#"prompt {long}; begin; round; answer | UpdateWorkItem {{"work_item_id":"work-2","plan":"{long}"}}"#),
    );
    live(&mut world, "round; answer so be it");
    for entry in 0..MEMORY_ENTRIES_MAX {
        live(
            &mut world,
            &format!(
                r#"prompt note; begin; round; answer | MemoryUpdate {{"entry":"note {entry}","text":"{}"}}"#,
                &long[..MEMORY_BYTES_MAX / MEMORY_ENTRIES_MAX]
            ),
        );
        live(&mut world, "round; answer noted");
    }
    let objective = &long[..2_000];
    while world.state.works.open.len() < WORK_OPEN_MAX {
        let item = format!(r#" | CreateWorkItem {{"objective":"{objective}","constraint":true,"focus":false}}"#);
        let items = item.repeat(32.min(WORK_OPEN_MAX - world.state.works.open.len()));
        live(&mut world, &format!("prompt more; begin; round; answer{items}; round; answer opened"));
    }
    live(&mut world, &format!("prompt {long}; begin; round; answer the last word {long}"));
    let view = world.fork("help");
    assert!(view.len() <= INHERITED_BYTES_MAX, "it has {} bytes", view.len());
    for part in ["objective:\n> ship it", "constraint: other work", "note 0", "[episode-", "was asked", "the last word"]
    {
        assert!(view.contains(part), "{part} found its place in {} bytes", view.len());
    }
    assert!(view.matches("(cut; it has ").count() >= 3, "what was cut says so");
}
