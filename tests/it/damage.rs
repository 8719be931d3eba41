//! Damage done to the file's rows is found before anybody is handed an event, and named by agent and event.
//!
//! Each case takes the image of a file with three ledgers, alters rows of one of them through the tables themselves,
//! and reads on as the runtime and the operator would.

use crate::disk::Disk;
use crate::ledger_maker::{Author, id, write_ledgers};
use holon::events::{Event, QueueEvent};
use holon::fold::AgentState;
use holon::ledger::blob::Blobs;
use holon::ledger::reader::{self, LinkedEvent};
use holon::ledger::redb::{RedbStore, table};
use holon::ledger::{Head, Store, chain, checkpoint};
use holon::offline::stats::{heads, stats};
use holon::offline::verify::{AgentReport, Found, Progress, Report, verify};
use holon::words::hash::Hash;
use holon::words::id::{AgentId, EventSeq};
use redb::{ReadableTable, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const VICTIM: &str = "bravo";
const AGENTS: [&str; 3] = ["alpha", "bravo", "charlie"];
const EVENTS: u64 = 260;

/// What was written, before anything is altered.
struct Pristine {
    image: Vec<u8>,
    truth: BTreeMap<AgentId, Truth>,
}

struct Truth {
    events: Vec<LinkedEvent>,
    state: AgentState,
    head: Head,
}

fn pristine() -> &'static Pristine {
    static PRISTINE: OnceLock<Pristine> = OnceLock::new();
    PRISTINE.get_or_init(|| {
        let disk = Disk::default();
        let store = disk.store();
        write_ledgers(&store, None, &AGENTS, EVENTS);
        let truth = AGENTS.map(|agent| (id(agent), truth(&store, &id(agent)))).into();
        drop(store);
        Pristine { image: disk.image(), truth }
    })
}

fn truth(store: &dyn Store, agent: &AgentId) -> Truth {
    let events = reader::page(store, agent, EventSeq::ZERO, usize::MAX).expect("whole");
    let (state, head) = reader::fold(store, agent).expect("whole");
    Truth { events, state, head }
}

fn victim() -> &'static Truth {
    &pristine().truth[&id(VICTIM)]
}

/// The seq of the victim's head.
fn last() -> u64 {
    victim().head.seq.0
}

/// Events up to the first that `event` shares its kept link with, and that link's.
fn stretch(event: u64) -> RangeInclusive<u64> {
    let first = (event - 1) / 64 * 64 + 1;
    first..=event
}

/// The rows of the victim, open for alteration.
struct Rows<'t> {
    transaction: &'t WriteTransaction,
}

impl Rows<'_> {
    fn number(&self, agent: &str) -> u32 {
        let table = self.transaction.open_table(table::AGENTS).expect("a table");
        table.get(agent).expect("readable").map(|number| number.value()).expect("the agent has a number")
    }

    fn key(&self, seq: u64) -> (u32, u64) {
        (self.number(VICTIM), seq)
    }

    /// The place of a record in the log.
    fn place(&self, agent: &str, seq: u64) -> u64 {
        let table = self.transaction.open_table(table::INDEX).expect("a table");
        let place = table.get((self.number(agent), seq)).expect("readable");
        place.map(|place| place.value()).expect("the record has a place")
    }

    fn set_place(&self, seq: u64, place: u64) {
        let mut table = self.transaction.open_table(table::INDEX).expect("a table");
        table.insert(self.key(seq), place).expect("writable");
    }

    fn drop_place(&self, seq: u64) {
        let mut table = self.transaction.open_table(table::INDEX).expect("a table");
        table.remove(self.key(seq)).expect("writable");
    }

    /// A row of the log: the agent's number, then the record.
    fn row(&self, agent: &str, seq: u64) -> Vec<u8> {
        let place = self.place(agent, seq);
        let table = self.transaction.open_table(table::LOG).expect("a table");
        table.get(place).expect("readable").map(|row| row.value().to_vec()).expect("the record is there")
    }

    fn set_row(&self, seq: u64, row: &[u8]) {
        let place = self.place(VICTIM, seq);
        let mut table = self.transaction.open_table(table::LOG).expect("a table");
        table.insert(place, row).expect("writable");
    }

    fn drop_row(&self, seq: u64) {
        let place = self.place(VICTIM, seq);
        let mut table = self.transaction.open_table(table::LOG).expect("a table");
        table.remove(place).expect("writable");
    }

    fn flip(&self, seq: u64, index: usize, mask: u8) {
        let mut row = self.row(VICTIM, seq);
        row[index] ^= mask;
        self.set_row(seq, &row);
    }

    fn set_head(&self, seq: u64, hash: Hash) {
        let mut table = self.transaction.open_table(table::HEADS).expect("a table");
        table.insert(self.number(VICTIM), (seq, hash.0)).expect("writable");
    }

    fn set_anchor(&self, seq: u64, hash: Option<Hash>) {
        let mut table = self.transaction.open_table(table::ANCHORS).expect("a table");
        match hash {
            Some(hash) => drop(table.insert(self.key(seq), hash.0).expect("writable")),
            None => drop(table.remove(self.key(seq)).expect("writable")),
        }
    }

    fn set_checkpoint(&self, bytes: &[u8]) {
        let mut table = self.transaction.open_table(table::CHECKPOINTS).expect("a table");
        table.insert(self.number(VICTIM), bytes).expect("writable");
    }
}

/// The file after `alter`, opened as the runtime opens it.
fn altered(alter: impl FnOnce(&Rows)) -> Arc<RedbStore> {
    let disk = Disk::of(pristine().image.clone());
    let database = disk.database().expect("the file opens");
    let transaction = database.begin_write().expect("writable");
    alter(&Rows { transaction: &transaction });
    transaction.commit().expect("written");
    drop(database);
    Arc::new(disk.store())
}

/// A verification of ledgers whose payloads are all rows.
fn verified(store: &Arc<RedbStore>, only: Option<&AgentId>) -> Report {
    let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
    verify(&**store, &blobs, only, &mut |_| {}).expect("agents can be named")
}

fn of<'r>(report: &'r Report, agent: &str) -> &'r AgentReport {
    report.agents.iter().find(|report| report.agent == id(agent)).expect("every agent is reported")
}

/// The victim's damage; every other agent is whole.
fn damage<'r>(report: &'r Report, case: &str) -> &'r Found {
    assert_eq!(report.agents.len(), AGENTS.len(), "{case}");
    for agent in AGENTS.iter().filter(|agent| **agent != VICTIM) {
        let others = of(report, agent);
        assert_eq!((&others.damage, others.events), (&None, pristine().truth[&id(agent)].head.seq.0), "{case}");
    }
    of(report, VICTIM).damage.as_ref().unwrap_or_else(|| panic!("{case}: no damage was found"))
}

/// The case is found and named, no reader hands out anything untrue, and every other agent is served.
fn found(case: &str, seqs: RangeInclusive<u64>, alter: impl FnOnce(&Rows)) -> String {
    let store = altered(alter);
    let reason = named(damage(&verified(&store, None), case), case, seqs);
    refused_or_true(&store, case);
    others_are_served(&*store, case);
    reason
}

/// The same for one of many cases, without asking after the other agents.
fn found_alone(case: &str, seqs: RangeInclusive<u64>, alter: impl FnOnce(&Rows)) {
    let store = altered(alter);
    let report = verified(&store, Some(&id(VICTIM)));
    named(of(&report, VICTIM).damage.as_ref().unwrap_or_else(|| panic!("{case}: no damage was found")), case, seqs);
    refused_or_true(&store, case);
}

fn named(Found { seq, reason }: &Found, case: &str, seqs: RangeInclusive<u64>) -> String {
    assert!(seqs.contains(&seq.0), "{case}: event {seq} is named and not one of {seqs:?}: {reason}");
    reason.clone()
}

/// No reader folds the ledger to its end, or hands out what was not written.
fn refused_or_true(store: &RedbStore, case: &str) {
    assert!(reader::fold(store, &id(VICTIM)).is_err(), "{case}: the ledger was folded to its end");
    nothing_untrue(store, case);
}

fn nothing_untrue(store: &RedbStore, case: &str) {
    let truth = victim();
    if let Ok(Some((state, head))) = reader::load(store, &id(VICTIM)) {
        assert_eq!((&state, head), (&truth.state, truth.head), "{case}: another state was handed out");
    }
    for after in (0..=last()).step_by(50) {
        let Ok(page) = reader::page(store, &id(VICTIM), EventSeq(after), 70) else { continue };
        let written = &truth.events[usize::try_from(after).expect("small")..];
        assert_eq!(page, written[..page.len()], "{case}: another event was handed out");
    }
}

fn others_are_served(store: &dyn Store, case: &str) {
    for (agent, truth) in pristine().truth.iter().filter(|(agent, _)| **agent != id(VICTIM)) {
        let (state, head) = reader::load(store, agent).expect("others are served").expect("others are there");
        assert_eq!((&state, head), (&truth.state, truth.head), "{case}");
    }
}

#[test]
fn ledgers_that_nobody_touched_are_whole_and_their_rows_agree() {
    let store = altered(|_| {});
    let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
    let mut told = Progress::default();
    let report = verify(&*store, &blobs, None, &mut |progress| told = progress).expect("agents can be named");
    assert!(report.is_whole());
    assert_eq!(report.notes, Vec::<String>::new());
    for (report, (agent, truth)) in report.agents.iter().zip(&pristine().truth) {
        let Head { seq, hash } = truth.head;
        let (damage, notes) = (None, Vec::new());
        assert_eq!(*report, AgentReport { agent: agent.clone(), events: seq.0, head: hash, damage, notes });
    }
    let events = pristine().truth.values().map(|truth| truth.head.seq.0).sum();
    assert_eq!(told, Progress { agents: 3, events });
}

#[test]
fn one_agent_is_verified_alone_and_an_unknown_one_is_not_made_up() {
    let store = altered(|rows| rows.drop_row(7));
    let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
    let agents = |agent: &str| verify(&*store, &blobs, Some(&id(agent)), &mut |_| {}).expect("readable").agents;
    assert_eq!(agents("alpha").iter().map(|agent| agent.damage.clone()).collect::<Vec<_>>(), [None]);
    assert_eq!(agents(VICTIM)[0].damage.as_ref().map(|found| found.seq), Some(EventSeq(7)));
    assert_eq!(agents("nobody"), []);
}

#[test]
fn a_byte_flipped_in_any_record_is_found() {
    for seq in 1..=last() {
        let bytes = altered_length(seq);
        // The agent's number, tag, version, event_seq, time, cause, and the body's beginning, middle and end.
        let classes = [0, 3, 4, 5, 6, 7, 8, 14, 18, bytes / 2, bytes - 1];
        let index = classes[usize::try_from(seq).expect("small") % classes.len()].min(bytes - 1);
        let mask = 1 << (seq % 8);
        let case = format!("byte {index} of event {seq} with {mask:#04x}");
        found_alone(&case, stretch(seq), |rows| rows.flip(seq, index, mask));
    }
}

#[test]
fn every_byte_of_a_record_counts() {
    for seq in [1, 65, last()] {
        for index in 0..altered_length(seq) {
            found_alone(&format!("byte {index} of event {seq}"), stretch(seq), |rows| rows.flip(seq, index, 0x10));
        }
    }
}

/// Bytes of a row of the log.
fn altered_length(seq: u64) -> usize {
    static LENGTHS: OnceLock<Vec<usize>> = OnceLock::new();
    let lengths = LENGTHS.get_or_init(|| {
        let mut lengths = Vec::new();
        altered(|rows| lengths = (1..=last()).map(|seq| rows.row(VICTIM, seq).len()).collect());
        lengths
    });
    lengths[usize::try_from(seq - 1).expect("small")]
}

#[test]
fn a_record_that_is_gone_is_missed() {
    for seq in [1, 2, 64, 65, 130, last() - 1, last()] {
        let exactly = seq..=seq;
        for reason in [
            found("its row is gone", exactly.clone(), |rows| rows.drop_row(seq)),
            found("its place is gone", exactly.clone(), |rows| rows.drop_place(seq)),
        ] {
            assert_eq!(reason, "the record is missing");
        }
    }
    found("all of them are gone", 1..=1, |rows| (1..=last()).for_each(|seq| rows.drop_place(seq)));
}

#[test]
fn a_record_taken_out_and_the_gap_closed_is_found() {
    found("the later ones move up", 100..=100, |rows| {
        for seq in 100..last() {
            rows.set_place(seq, rows.place(VICTIM, seq + 1));
        }
        rows.drop_place(last());
        rows.set_head(last() - 1, victim().head.hash);
    });
}

#[test]
fn records_that_were_swapped_or_repeated_are_found() {
    for (first, second) in [(1, 2), (63, 64), (64, 65), (100, 200), (last() - 1, last())] {
        let reason = found("their places are swapped", first..=first, |rows| {
            let (one, other) = (rows.place(VICTIM, first), rows.place(VICTIM, second));
            rows.set_place(first, other);
            rows.set_place(second, one);
        });
        assert_eq!(reason, format!("the record is that of event {second}"));
        found("their rows are swapped", first..=first, |rows| {
            let (one, other) = (rows.row(VICTIM, first), rows.row(VICTIM, second));
            rows.set_row(first, &other);
            rows.set_row(second, &one);
        });
        found("one stands for the other", second..=second, |rows| {
            rows.set_place(second, rows.place(VICTIM, first));
        });
    }
}

#[test]
fn records_after_the_head_are_found_before_an_append_would_replace_them() {
    let end = last();
    let reason = found("the last one is repeated", end + 1..=end + 1, |rows| {
        rows.set_place(end + 1, rows.place(VICTIM, end));
    });
    assert!(reason.starts_with("the head does not agree with the records"), "{reason}");
    for back in [1, 2, 70] {
        let before = victim().events[usize::try_from(end - back - 1).expect("small")].hash;
        found("the head moved back", end - back + 1..=end - back + 1, |rows| rows.set_head(end - back, before));
    }
}

#[test]
fn a_record_of_another_agent_is_found() {
    for seq in [1, 2, 64, 100, last()] {
        found("its place is another's", seq..=seq, |rows| rows.set_place(seq, rows.place("alpha", seq)));
        found("it was given this agent's number", stretch(seq), |rows| {
            let mut row = rows.row("alpha", seq);
            row[..4].copy_from_slice(&rows.number(VICTIM).to_le_bytes());
            // Agents that live alike write some records alike; those would be no damage.
            row.extend((row == rows.row(VICTIM, seq)).then_some(0));
            rows.set_row(seq, &row);
        });
    }
}

#[test]
fn a_ledger_of_another_agent_is_found_whole_as_it_is() {
    let store = altered(|rows| {
        let other = &pristine().truth[&id("alpha")];
        (1..=last()).for_each(|seq| rows.drop_place(seq));
        for event in &other.events {
            let seq = event.envelope.seq.0;
            let mut row = rows.row("alpha", seq);
            row[..4].copy_from_slice(&rows.number(VICTIM).to_le_bytes());
            let mut log = rows.transaction.open_table(table::LOG).expect("a table");
            let place = log.last().expect("readable").expect("records").0.value() + 1;
            log.insert(place, row.as_slice()).expect("writable");
            drop(log);
            rows.set_place(seq, place);
            rows.set_anchor(seq, seq.is_multiple_of(64).then_some(event.hash));
        }
        rows.set_head(other.head.seq.0, other.head.hash);
    });
    let report = verified(&store, None);
    let found = damage(&report, "another's ledger");
    assert!(found.seq == EventSeq(1) && found.reason.contains("the ledger is another agent's"), "{found:?}");
    assert!(reader::load(&*store, &id(VICTIM)).is_err());
}

#[test]
fn a_forged_head_is_found() {
    let end = last();
    let forged = Hash::of(b"forged");
    found("another link", stretch(end), |rows| rows.set_head(end, forged));
    found("an event more", end + 1..=end + 1, |rows| rows.set_head(end + 1, victim().head.hash));
    found("many events more", end + 1..=end + 200, |rows| rows.set_head(end + 1_000_000, forged));
    found("the most there can be", end + 1..=end + 200, |rows| rows.set_head(u64::MAX, forged));
    found("the head of another", 1..=end + 1, |rows| {
        let other = &pristine().truth[&id("alpha")];
        rows.set_head(other.head.seq.0, other.head.hash);
    });
    found("no event at all", 1..=1, |rows| rows.set_head(0, chain::genesis(&id(VICTIM)).hash));
}

#[test]
fn a_lost_head_is_damage_and_not_an_agent_that_never_was() {
    let reason = found("the head's row is gone", 1..=1, |rows| {
        let mut table = rows.transaction.open_table(table::HEADS).expect("a table");
        table.remove(rows.number(VICTIM)).expect("writable");
    });
    assert!(reason.contains("the head of agent bravo is missing"), "{reason}");
}

#[test]
fn an_append_to_a_ledger_without_its_head_fails_alone() {
    let mut victim = Author::load(&*altered(|_| {}), &id(VICTIM));
    let mut other = Author::load(&*altered(|_| {}), &id("alpha"));
    let store = altered(|rows| {
        let mut table = rows.transaction.open_table(table::HEADS).expect("a table");
        table.remove(rows.number(VICTIM)).expect("writable");
    });
    let outcomes = store.commit(&[victim.write(), other.write()]);
    assert!(outcomes[0].is_err() && outcomes[1].is_ok(), "{outcomes:?}");
}

#[test]
fn a_ledger_whose_name_is_lost_is_missed_in_the_list() {
    let store = altered(|rows| {
        let mut table = rows.transaction.open_table(table::AGENTS).expect("a table");
        table.remove(VICTIM).expect("writable");
    });
    let report = verified(&store, None);
    assert_eq!(damage(&report, "no name").reason, "the agent is listed, and its ledger is missing");
}

#[test]
fn a_link_that_is_kept_wrongly_is_told_from_records_that_are_wrong() {
    for (hash, reason) in [
        (Some(Hash::of(b"forged")), "the link kept at this event is not the chain's; every record is whole"),
        (None, "the link kept at this event is missing; every record is whole"),
    ] {
        for seq in [64, 128, 256] {
            let store = altered(|rows| rows.set_anchor(seq, hash));
            let report = verified(&store, None);
            let (seq, reason) = (EventSeq(seq), reason.to_owned());
            assert_eq!(*damage(&report, "a link"), Found { seq, reason });
            nothing_untrue(&store, "a link");
        }
    }
}

#[test]
fn a_link_kept_at_the_head_is_verified_too() {
    let disk = Disk::default();
    let store = Arc::new(disk.store());
    let mut author = Author::load(&*store, &id(VICTIM));
    while author.head.seq.0 != 64 {
        let mut append = author.write();
        let [part] = &mut append.parts[..] else { panic!("one ledger") };
        assert!(part.head.seq.0 <= 64, "an append of the author ends at event 64");
        if part.head.seq.0 == 64 {
            part.anchors[0].hash = Hash::of(b"forged");
        }
        assert_eq!(store.commit(&[append]), [Ok(())]);
    }
    let report = verified(&store, None);
    assert_eq!(report.agents[0].damage.as_ref().map(|found| found.seq), Some(EventSeq(64)));
}

#[test]
fn damage_that_only_the_chain_shows_is_named_as_the_stretch_it_lies_in() {
    let store = altered(|rows| {
        let row = rows.row(VICTIM, 100);
        rows.flip(100, row.len() - 1, 0x01);
    });
    let report = verified(&store, None);
    let found = damage(&report, "a byte of a text");
    assert!((65..=100).contains(&found.seq.0), "{found:?}");
    if found.seq.0 == 65 {
        assert!(found.reason.starts_with("the chain holds up to event 64 and not up to event 128"), "{found:?}");
    }
    let error = reader::fold(&*store, &id(VICTIM)).expect_err("damaged").to_string();
    assert!(error.starts_with("agent bravo is damaged at event "), "{error}");
}

#[test]
fn the_first_of_several_damages_is_named() {
    found("two flips", stretch(70), |rows| {
        rows.flip(70, 5, 0x40);
        rows.flip(200, 5, 0x40);
    });
    found("a flip before a gap", stretch(70), |rows| {
        rows.flip(70, 5, 0x40);
        rows.drop_row(71);
    });
}

#[test]
fn a_damaged_checkpoint_changes_no_answer() {
    let bytes = altered(|_| {}).checkpoint(&id(VICTIM)).expect("readable").expect("a checkpoint was made");
    for index in (0..bytes.len()).step_by(bytes.len() / 40) {
        let store = altered(|rows| {
            let mut bytes = bytes.clone();
            bytes[index] ^= 0x04;
            rows.set_checkpoint(&bytes);
        });
        let report = verified(&store, None);
        assert!(report.is_whole());
        assert_eq!(of(&report, VICTIM).notes.len(), 1, "byte {index}: {report:?}");
        answers_as_ever(&*store);
    }
}

fn answers_as_ever(store: &dyn Store) {
    let (state, head) = reader::load(store, &id(VICTIM)).expect("readable").expect("it is there");
    assert_eq!((&state, head), (&victim().state, victim().head));
    others_are_served(store, "a checkpoint");
}

#[test]
fn an_intact_checkpoint_that_does_not_fit_is_passed_over() {
    let checkpoint = |agent: &str| altered(|_| {}).checkpoint(&id(agent)).expect("readable").expect("made");
    let theirs = checkpoint("alpha");
    let (state, head) = checkpoint::decode(&checkpoint(VICTIM)).expect("intact");
    let elsewhere = checkpoint::encode(&state, Head { seq: head.seq, hash: Hash::of(b"another history") });
    let mut beyond = Author::load(&*altered(|_| {}), &id(VICTIM));
    for _ in 0..20 {
        beyond.write();
    }
    let beyond = checkpoint::encode(&beyond.state, beyond.head);
    for (bytes, note) in [
        (theirs, "the checkpoint is of agent alpha"),
        (elsewhere, "is of another history"),
        (beyond, "beyond the head"),
        (b"not a checkpoint".to_vec(), "damaged or of another fold"),
    ] {
        let store = altered(|rows| rows.set_checkpoint(&bytes));
        answers_as_ever(&*store);
        let report = verified(&store, None);
        assert!(report.is_whole());
        let notes = &of(&report, VICTIM).notes;
        assert!(notes.len() == 1 && notes[0].contains(note), "{notes:?}");
    }
}

#[test]
fn a_checkpoint_that_would_be_believed_and_is_wrong_is_damage() {
    let bytes = altered(|_| {}).checkpoint(&id(VICTIM)).expect("readable").expect("made");
    let (mut state, head) = checkpoint::decode(&bytes).expect("intact");
    state.agent.template = Some("forged".into());
    let store = altered(|rows| rows.set_checkpoint(&checkpoint::encode(&state, head)));
    let report = verified(&store, None);
    assert_eq!(damage(&report, "forged").seq, head.seq);
}

#[test]
fn forgetting_every_checkpoint_changes_no_answer() {
    let store = altered(|_| {});
    store.forget_checkpoints().expect("forgotten");
    assert_eq!(store.checkpoint(&id(VICTIM)), Ok(None));
    answers_as_ever(&*store);
    let report = verified(&store, None);
    assert!(report.is_whole() && report.agents.iter().all(|agent| agent.notes.is_empty()));
}

#[test]
fn rows_that_disagree_are_noted_and_are_no_damage() {
    let store = altered(|rows| {
        let mut list = rows.transaction.open_table(table::LIST).expect("a table");
        let row = list.get("alpha").expect("readable").expect("listed").value().to_vec();
        list.insert(VICTIM, &row[..row.len() - 1]).expect("writable");
        let mut due = rows.transaction.open_table(table::DUE).expect("a table");
        let number = rows.number(VICTIM);
        if due.remove(number).expect("writable").is_none() {
            due.insert(number, ()).expect("writable");
        }
        let mut records = rows.transaction.open_table(table::RECORDS).expect("a table");
        records.insert((number, 1, 1), (1, 1)).expect("writable");
    });
    let report = verified(&store, None);
    assert!(report.is_whole());
    let notes = &of(&report, VICTIM).notes;
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(of(&report, "alpha").notes.is_empty());
}

/// The first event that names a payload of which no other agent has the same, and that payload.
fn first_payload() -> (EventSeq, Hash) {
    let named = |event: &LinkedEvent| {
        let Event::Queue(QueueEvent::Enqueued(message)) = &event.envelope.event else { return None };
        Some((event.envelope.seq, message.body.stored()?))
    };
    victim().events.iter().find_map(named).expect("some event names a payload")
}

#[test]
fn a_damaged_or_missing_payload_is_named_with_the_event_that_names_it() {
    let (seq, hash) = first_payload();
    for (bytes, reason) in [
        (Some(b"flipped".as_slice()), format!("payload {hash} is damaged")),
        (None, format!("payload {hash} is not there")),
    ] {
        let store = altered(|rows| {
            let mut table = rows.transaction.open_table(table::BLOBS).expect("a table");
            match bytes {
                Some(bytes) => drop(table.insert(hash.0, bytes).expect("writable")),
                None => drop(table.remove(hash.0).expect("writable")),
            }
        });
        let report = verified(&store, None);
        assert_eq!(*damage(&report, "payload"), Found { seq, reason });
        assert_eq!(of(&report, VICTIM).events, last(), "the rest of the ledger is verified all the same");
        let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
        assert!(blobs.read(&hash).is_err());
    }
}

#[test]
fn a_damaged_payload_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Disk::default().store());
    let blobs = Blobs::new(store.clone(), folder.path().to_owned());
    write_ledgers(&*store, Some(&blobs), &[VICTIM], EVENTS);
    assert!(verify(&*store, &blobs, None, &mut |_| {}).expect("readable").is_whole());

    let file = files(folder.path()).into_iter().find(|file| file.metadata().expect("readable").len() > 70_000);
    let file = file.expect("a payload became a file");
    let mut bytes = std::fs::read(&file).expect("readable");
    bytes[70_000] ^= 1;
    std::fs::write(&file, &bytes).expect("writable");
    let report = verify(&*store, &blobs, None, &mut |_| {}).expect("readable");
    let found = report.agents[0].damage.as_ref().expect("damage");
    let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(found.reason, format!("payload {name} is damaged"));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn stats_count_every_event_and_heads_are_as_recorded() {
    let store = altered(|_| {});
    let all = stats(&*store, None).expect("readable");
    let events: u64 = pristine().truth.values().map(|truth| truth.head.seq.0).sum();
    assert_eq!((all.agents, all.events.count, all.unreadable.count), (3, events, 0));
    assert_eq!(all.kinds.values().map(|kind| kind.count).sum::<u64>(), events);
    assert_eq!(all.kinds.values().map(|kind| kind.bytes).sum::<u64>(), all.events.bytes);
    assert_eq!(all.kinds["agent_created"].count, 3);
    assert!(all.payloads.count > 0 && all.payloads.bytes > 0);

    let one = stats(&*store, Some(&id(VICTIM))).expect("readable");
    assert_eq!((one.agents, one.events.count), (1, last()));
    let expected: Vec<(AgentId, Head)> =
        pristine().truth.iter().map(|(agent, truth)| (agent.clone(), truth.head)).collect();
    assert_eq!(heads(&*store, None), Ok(expected));
    assert_eq!(heads(&*store, Some(&id(VICTIM))), Ok(vec![(id(VICTIM), victim().head)]));
    assert_eq!(heads(&*store, Some(&id("nobody"))), Ok(Vec::new()));
}

#[test]
fn a_page_after_the_head_is_empty() {
    let store = altered(|_| {});
    for after in [last(), last() + 1, last() + 1_000, u64::MAX] {
        assert_eq!(reader::page(&*store, &id(VICTIM), EventSeq(after), 100), Ok(Vec::new()));
        assert_eq!(reader::event(&*store, &id(VICTIM), EventSeq(after.max(last() + 1))), Ok(None));
    }
    assert_eq!(reader::page(&*store, &id("nobody"), EventSeq(1_000), usize::MAX), Ok(Vec::new()));
}
