//! `replay-fixtures/`: the commands give the ledger byte for byte, and the ledger folds to the state.
//!
//! A fixture's commands are its source: they are written once, from the story in its README, and never again.
//! `UPDATE_FIXTURES=1 cargo test replay` makes the other files anew from them; see `replay-fixtures/README.md`.

use crate::pinned;
use crate::story::{show, transcript};
use crate::world::{World, agent_id};
use holon::events::{Event, PLANES, codec};
use holon::fold::AgentState;
use holon::ledger::Records;
use holon::offline::replay::{self, ReplayError, Step};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Once;

const UPDATE: &str = "UPDATE_FIXTURES";

const FIXTURES: &[&str] = &["001-first-turn", "002-trouble"];

/// What marks the story in a fixture's README.
const FENCE: &str = "```text\n";

fn folder(name: &str) -> PathBuf {
    static UPDATED: Once = Once::new();
    let folder = |name: &str| pinned::path("replay-fixtures").join(name);
    UPDATED.call_once(|| {
        if pinned::is_writing(UPDATE) {
            FIXTURES.iter().for_each(|name| update(&folder(name)));
        }
    });
    folder(name)
}

/// A README before, within and after its story.
fn story(readme: &str) -> (&str, &str, &str) {
    let (before, rest) = readme.split_once(FENCE).expect("the README has a story");
    let (story, after) = rest.split_once("```").expect("the story ends");
    (before, story, after)
}

fn steps(folder: &Path) -> Vec<Step> {
    replay::parse(&pinned::read_text(&folder.join("commands.jsonl"))).expect("the commands can be read")
}

fn records(folder: &Path) -> Records {
    replay::from_file(&pinned::read(&folder.join("ledger.bin"))).expect("the ledger is a row of records")
}

/// Writes the commands of a fixture that has none, then what follows from its commands.
fn update(folder: &Path) {
    if !folder.join("commands.jsonl").exists() {
        let readme = pinned::read_text(&folder.join("README.md"));
        let (before, lines, after) = story(&readme);
        let mut world = World::new();
        let told = transcript(&mut world, lines);
        pinned::write(&folder.join("README.md"), [before, FENCE, &told, "```", after].concat().as_bytes());
        pinned::write(&folder.join("commands.jsonl"), replay::to_lines(&world.steps).as_bytes());
    }
    let records = replay::run(&steps(folder)).expect("the commands can be run");
    let state = replay::fold(&agent_id(), &records).expect("the ledger folds");
    pinned::write(&folder.join("ledger.bin"), &replay::to_file(&records));
    pinned::write(&folder.join("state.json"), replay::to_json(&state).as_bytes());
}

#[test]
fn each_fixture_holds_both_ways() {
    for name in FIXTURES {
        let folder = folder(name);
        let made = replay::run(&steps(&folder)).expect("the commands can be run");
        assert!(made == records(&folder), "{name}: the commands no longer give the ledger");
        let state = replay::fold(&agent_id(), &made).expect("the ledger folds");
        let text = pinned::read_text(&folder.join("state.json"));
        assert!(replay::to_json(&state) == text, "{name}: the ledger no longer folds to the state");
        assert_eq!(replay::from_json(&text).expect("the state reads back"), state, "{name}");
    }
}

#[test]
fn the_fixtures_have_seen_every_kind_of_event() {
    let fixtures = FIXTURES.iter().map(|name| records(&folder(name)));
    let kind = |record: &[u8]| codec::decode(record).expect("a record").event.kind();
    let seen: BTreeSet<&str> = fixtures.flat_map(|records| records.iter().map(kind).collect::<Vec<_>>()).collect();
    let kinds = PLANES.iter().flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.kind));
    let unseen: Vec<&str> = kinds.filter(|kind| !seen.contains(kind)).collect();
    let missing: Vec<_> = unseen.iter().filter(|kind| !AWAITED.contains(kind)).collect();
    assert!(missing.is_empty(), "no fixture holds {missing:?}");
    let come: Vec<_> = AWAITED.iter().filter(|kind| !unseen.contains(kind)).collect();
    assert!(come.is_empty(), "{come:?} are awaited no longer");
}

/// Kinds that no fixture holds yet.
const AWAITED: &[&str] = &[
    "agent_spawned",
    "context_inherited",
    "delegation_reported",
    "outbox_delivered",
    "agent_archive_requested",
    "agent_archived",
    "call_started",
    "work_item_created",
    "work_item_updated",
    "work_item_picked",
    "work_item_completed",
    "work_item_continued",
    "work_item_held",
    "work_item_recheck_consumed",
    "task_child_spawned",
    "task_input_requested",
    "task_input_delivered",
    "child_directed",
    "wait_created",
    "wait_triggered",
    "wait_consumed",
    "wait_cancelled",
    "wait_superseded",
    "wait_expired",
    "timer_created",
    "timer_fired",
    "timer_cancelled",
    "external_trigger_created",
    "external_trigger_revoked",
    "callback_delivered",
    "workspace_attached",
    "workspace_entered",
    "workspace_exited",
    "workspace_detached",
    "worktree_created_for_task",
    "worktree_retained_for_review",
    "worktree_auto_cleaned_up",
    "worktree_auto_cleanup_failed",
    "guidance_read",
    "operator_notification_requested",
    "working_memory_updated",
];

#[test]
fn every_fixture_is_listed() {
    let listed: BTreeSet<String> = FIXTURES.iter().map(|name| (*name).to_owned()).collect();
    let folders = std::fs::read_dir(pinned::path("replay-fixtures")).expect("the folder is there");
    let found = folders.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir());
    let name = |path: PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(found.map(name).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn the_story_of_a_fixture_is_what_its_ledger_says() {
    for name in FIXTURES {
        let readme = pinned::read_text(&folder(name).join("README.md"));
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}");
        let events = records(&folder(name));
        let events = events.iter().skip(1).map(|record| show(&codec::decode(record).expect("a record")));
        let is_event = |line: &&str| !line.starts_with(['>', '!', '=']);
        let said: Vec<&str> = story(&readme).1.lines().filter(is_event).collect();
        assert_eq!(events.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>(), said, "{name}");
    }
}

#[test]
fn a_ledger_that_is_cut_or_changed_is_refused_with_its_place() {
    let bytes = pinned::read(&folder("001-first-turn").join("ledger.bin"));
    assert!(matches!(replay::from_file(&bytes[..bytes.len() - 1]), Err(ReplayError::Cut(_))));
    assert!(matches!(replay::from_file(&[9, 0, 0]), Err(ReplayError::Cut(0))));

    let whole: Vec<Vec<u8>> = records(&folder("001-first-turn")).iter().map(<[u8]>::to_vec).collect();
    let fold = |kept: &[Vec<u8>]| {
        let mut records = Records::default();
        kept.iter().for_each(|record| records.push(record));
        replay::fold(&agent_id(), &records)
    };
    let mut missing = whole.clone();
    missing.remove(4);
    let Err(ReplayError::Illegal(illegal)) = fold(&missing) else { panic!("a missing record is noticed") };
    assert_eq!((illegal.seq.0, illegal.reason), (6, "its event_seq does not follow"));

    let mut unreadable = whole;
    unreadable[2].push(0);
    assert!(matches!(fold(&unreadable), Err(ReplayError::Unreadable { record: 3, .. })));
}

#[test]
fn a_ledger_that_ends_within_a_command_makes_no_sense() {
    let whole = records(&folder("001-first-turn"));
    let settled = |record: &[u8]| matches!(codec::decode(record).expect("a record").event, Event::Queue(_));
    let end = whole.len() - whole.iter().collect::<Vec<_>>().iter().rev().position(|record| settled(record)).unwrap();
    let mut records = Records::default();
    whole.iter().take(end).for_each(|record| records.push(record));
    let Err(ReplayError::Contradictory(broken)) = replay::fold(&agent_id(), &records) else { panic!("it is noticed") };
    assert_eq!(broken.rule, "a turn that has ended is gone");
}

#[test]
fn commands_that_cannot_be_read_are_named_by_their_line() {
    let lines = pinned::read_text(&folder("001-first-turn").join("commands.jsonl"));
    let cut = &lines[..lines.len() - 5];
    let last = lines.lines().count();
    assert!(matches!(replay::parse(cut), Err(ReplayError::Line { line, .. }) if line == last));
    let steps = replay::parse(&lines).expect("the commands can be read");
    assert!(matches!(replay::run(&steps[1..]), Err(ReplayError::NoCreation)));
    assert_eq!(replay::to_lines(&steps), lines);
}

#[test]
fn a_state_is_not_taken_for_another_agents() {
    let other = holon::words::id::AgentId::parse("other").expect("an id");
    let folded = replay::fold(&other, &records(&folder("001-first-turn")));
    assert!(matches!(folded, Err(ReplayError::Illegal(_))));
    assert!(!AgentState::unborn(other).is_born());
}
