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
use holon::words::id::AgentId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Once;

const UPDATE: &str = "UPDATE_FIXTURES";

const FIXTURES: &[&str] = &[
    "001-first-turn",
    "002-trouble",
    "003-long-work",
    "004-family",
    "005-operator",
    "006-signed-webhook",
    "007-model",
    "008-skills",
    "009-supervisor",
];

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
        pinned::write(&folder.join("commands.jsonl"), replay::to_lines(&world.steps.borrow()).as_bytes());
    }
    for (agent, records) in replay::run(&steps(folder)).expect("the commands can be run") {
        let state = replay::fold(&agent, &records).expect("the ledger folds");
        pinned::write(&of_agent(folder, &agent, "ledger.bin"), &replay::to_file(&records));
        pinned::write(&of_agent(folder, &agent, "state.json"), replay::to_json(&state).as_bytes());
    }
}

/// A file of a fixture. Those of agents that are born on the way bear their names.
fn of_agent(folder: &Path, agent: &AgentId, file: &str) -> PathBuf {
    if *agent == agent_id() { folder.join(file) } else { folder.join(format!("{agent}.{file}")) }
}

/// The agents whose ledgers a fixture holds, with their records.
fn ledgers(folder: &Path) -> Vec<(AgentId, Records)> {
    let ledger = |agent: AgentId| {
        let file = pinned::read(&of_agent(folder, &agent, "ledger.bin"));
        (agent, replay::from_file(&file).expect("the ledger is a row of records"))
    };
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let born = names.filter_map(|name| AgentId::parse(name.strip_suffix(".ledger.bin")?).ok());
    born.chain([agent_id()]).map(ledger).collect()
}

#[test]
fn each_fixture_holds_both_ways() {
    for name in FIXTURES {
        let folder = folder(name);
        let made = replay::run(&steps(&folder)).expect("the commands can be run");
        assert!(made == ledgers(&folder).into_iter().collect(), "{name}: the commands no longer give the ledgers");
        for (agent, records) in made {
            let state = replay::fold(&agent, &records).expect("the ledger folds");
            let text = pinned::read_text(&of_agent(&folder, &agent, "state.json"));
            assert!(replay::to_json(&state) == text, "{name}: the ledger of {agent} no longer folds to the state");
            assert_eq!(replay::from_json(&text).expect("the state reads back"), state, "{name}");
        }
    }
}

#[test]
fn the_fixtures_have_seen_every_kind_of_event() {
    let ledgers = FIXTURES.iter().flat_map(|name| ledgers(&folder(name)));
    let kind = |record: &[u8]| codec::decode(record).expect("a record").event.kind();
    let seen: BTreeSet<&str> = ledgers.flat_map(|(_, records)| records.iter().map(kind).collect::<Vec<_>>()).collect();
    // Fixtures are ledgers of agents.
    let planes = PLANES.iter().filter(|(plane, _)| *plane != "home");
    let kinds = planes.flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.kind));
    let missing: Vec<&str> = kinds.filter(|kind| !seen.contains(kind)).collect();
    assert!(missing.is_empty(), "no fixture holds {missing:?}");
}

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
        for (agent, records) in ledgers(&folder(name)) {
            // The story of the first begins when it is there.
            let unsaid = usize::from(agent == agent_id());
            let events = records.iter().skip(unsaid).map(|record| show(&codec::decode(record).expect("a record")));
            let events: Vec<String> = events.map(|line| line.trim_end().to_owned()).collect();
            assert_eq!(events, said_of(&agent, story(&readme).1), "{name}: {agent}");
        }
    }
}

/// The lines of a story that tell of an agent's events: a child's begin with its name.
fn said_of<'a>(agent: &AgentId, story: &'a str) -> Vec<&'a str> {
    let (named, mut is_looked_at) = (format!("{agent}: "), false);
    let mut said = Vec::new();
    for line in story.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            is_looked_at = matches!(command, "posture" | "owed");
        } else if let Some(line) = line.strip_prefix(&named) {
            said.push(line);
        } else if *agent == agent_id() && !is_looked_at && !line.starts_with("main.c") {
            said.push(line);
        }
    }
    said.into_iter().filter(|line| !line.starts_with(['!', '='])).collect()
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
