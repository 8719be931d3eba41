//! Disks that fail, panic, run full, lose power or rot: what was acknowledged stays, and service resumes.

use crate::disk::{Disk, Fault, FaultKind, Step};
use crate::ledger_maker::{Author, id, write_ledgers};
use holon::fold::AgentState;
use holon::ledger::blob::Blobs;
use holon::ledger::home::{Home, HomeError, Paths, open_read_only};
use holon::ledger::reader::{self, LinkedEvent, ReadError};
use holon::ledger::redb::RedbStore;
use holon::ledger::{Append, AppendError, Head, Store, StoreError};
use holon::offline::stats::heads;
use holon::offline::verify::verify;
use holon::words::id::{AgentId, Boot, EventSeq};
use proptest::prelude::RngExt;
use proptest::test_runner::{RngAlgorithm, TestRng};
use redb::{Database, ReadableDatabase, TableDefinition};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

const AGENTS: [&str; 2] = ["alpha", "bravo"];
const BATCHES: usize = 10;

/// What a run was told.
#[derive(Debug, Default)]
struct Told {
    /// Every head that was acknowledged, and the disk's calls by then.
    acknowledged: Vec<(AgentId, Head, u64)>,
    errors: Vec<StoreError>,
    /// Whether the last batch was acknowledged.
    resumed: bool,
    /// The disk's calls before the first batch.
    opened: u64,
}

/// Commits batch after batch, folding anew before each as a loop does after a failure.
fn run(disk: &Disk, store: &RedbStore, batches: usize) -> Told {
    let mut told = Told { opened: disk.calls(), ..Told::default() };
    for batch in 0..batches {
        match appends(store, batch.is_multiple_of(3)) {
            Ok(appends) => told.commit(disk, store, &appends),
            Err(error) => told.failed(error),
        }
    }
    told
}

/// The next append of every agent; together they may be one, as a parent and its child are.
fn appends(store: &RedbStore, together: bool) -> Result<Vec<Append>, StoreError> {
    let written = AGENTS.map(|agent| match Author::try_load(store, &id(agent)) {
        Ok(mut author) => Ok(author.write()),
        Err(ReadError::Store(error)) => Err(error),
        Err(damaged) => panic!("{damaged}"),
    });
    let appends: Vec<Append> = written.into_iter().collect::<Result<_, _>>()?;
    if !together {
        return Ok(appends);
    }
    let mut one = Append::default();
    for append in appends {
        one.parts.extend(append.parts);
        one.blobs.extend(append.blobs);
    }
    Ok(vec![one])
}

impl Told {
    fn failed(&mut self, error: StoreError) {
        self.errors.push(error);
        self.resumed = false;
    }

    fn commit(&mut self, disk: &Disk, store: &RedbStore, appends: &[Append]) {
        for (append, outcome) in appends.iter().zip(store.commit(appends)) {
            match outcome {
                Ok(()) => {
                    let calls = disk.calls();
                    self.acknowledged.extend(append.parts.iter().map(|part| (part.agent.clone(), part.head, calls)));
                    self.resumed = true;
                }
                Err(AppendError::Store(error)) => self.failed(error),
                Err(conflict @ AppendError::Conflict { .. }) => panic!("nobody else writes: {conflict}"),
            }
        }
    }

    /// Everything acknowledged by `calls` is there, and every chain is whole.
    fn check(&self, store: RedbStore, calls: u64, case: &str) {
        let store = Arc::new(store);
        let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
        let report = verify(&*store, &blobs, None, &mut |_| {}).expect("agents can be named");
        assert!(report.is_whole(), "{case}: {report:?}");
        let noted = report.agents.iter().any(|agent| !agent.notes.is_empty());
        assert!(!noted && report.notes.is_empty(), "{case}: {report:?}");
        for (agent, links) in self.links_by(calls) {
            let events = reader::page(&*store, &agent, EventSeq::ZERO, usize::MAX).expect("whole");
            for head in links {
                let there = events.iter().any(|event| event.envelope.seq == head.seq && event.hash == head.hash);
                assert!(there, "{case}: event {} of {agent} was acknowledged and is lost", head.seq);
            }
        }
    }

    fn links_by(&self, calls: u64) -> BTreeMap<AgentId, Vec<Head>> {
        let mut links: BTreeMap<AgentId, Vec<Head>> = BTreeMap::new();
        for (agent, head, _) in self.acknowledged.iter().filter(|(_, _, by)| *by <= calls) {
            links.entry(agent.clone()).or_default().push(*head);
        }
        links
    }
}

/// `HOLON_TEST_ALL` asks for every case where otherwise each `stride`th is taken.
fn stride(stride: usize) -> usize {
    if std::env::var_os("HOLON_TEST_ALL").is_some() { 1 } else { stride }
}

/// A run without a fault: its disk, and what it was told.
fn undisturbed() -> (Disk, Told) {
    let disk = Disk::default();
    let store = disk.store();
    let told = run(&disk, &store, BATCHES);
    assert!(told.errors.is_empty() && told.resumed);
    drop(store);
    (disk, told)
}

/// One run with a fault at each call of the disk in turn.
fn faults_everywhere(kind: FaultKind, count: u64, step: usize, is_typed: impl Fn(&StoreError) -> bool) {
    let calls = undisturbed().0.calls();
    for first in (0..calls).step_by(step) {
        let case = format!("{kind:?} for {count} calls from {first} on");
        let disk = Disk::failing(Fault { kind, first, count });
        let (store, refused) = made_at_last(&disk);
        let mut told = run(&disk, &store, BATCHES);
        if let Some(error) = refused.as_ref().or(told.errors.first()) {
            assert!(is_typed(error), "{case}: {error:?}");
        }
        while disk.calls() < first + count {
            let more = run(&disk, &store, 1);
            told.acknowledged.extend(more.acknowledged);
        }
        let more = run(&disk, &store, 1);
        assert!(more.resumed, "{case}: the commit after the fault fails: {:?}", more.errors);
        told.acknowledged.extend(more.acknowledged);
        drop(store);
        told.check(disk.store(), u64::MAX, &case);
    }
}

/// Makes the file as often as it takes, from nothing each time, and tells why it was refused at first.
fn made_at_last(disk: &Disk) -> (RedbStore, Option<StoreError>) {
    let mut refused = None;
    loop {
        match RedbStore::with_opener(disk.opener()) {
            Ok(store) => return (store, refused),
            Err(error) => {
                refused = refused.or(Some(error));
                disk.wipe();
            }
        }
    }
}

#[test]
fn a_full_disk_is_told_as_such_and_what_was_acknowledged_stays() {
    faults_everywhere(FaultKind::NoSpace, 1, stride(3), |error| matches!(error, StoreError::NoSpace(_)));
}

#[test]
fn a_failing_disk_is_told_and_what_was_acknowledged_stays() {
    faults_everywhere(FaultKind::Io, 1, stride(5), |error| matches!(error, StoreError::Io(_)));
}

#[test]
fn a_panic_below_the_store_goes_no_further() {
    faults_everywhere(FaultKind::Panic, 1, stride(5), |error| matches!(error, StoreError::Panicked(_)));
}

#[test]
fn service_resumes_after_a_disk_that_was_full_for_long() {
    faults_everywhere(FaultKind::NoSpace, 60, stride(17), |error| matches!(error, StoreError::NoSpace(_)));
}

/// The disk, with ledgers on it, as a process finds it that has read nothing yet.
fn written() -> (Disk, Vec<(AgentId, Head)>) {
    let (disk, _) = undisturbed();
    let heads = heads(&disk.store(), None).expect("readable");
    (Disk::of(disk.image()), heads)
}

#[test]
fn reading_resumes_by_itself_when_the_store_could_not_be_opened_again() {
    let (disk, expected) = written();
    let store = disk.store();
    disk.fail(Fault { kind: FaultKind::Io, first: disk.calls(), count: 20 });
    assert!(store.commit(&[Append::default()])[0].is_err());
    // Nobody commits: an agent that folds its ledger anew reads first.
    let answers: Vec<_> = (0..100).map(|_| heads(&store, None)).collect();
    assert!(matches!(answers[0], Err(StoreError::Closed(_))), "{:?}", answers[0]);
    assert_eq!(answers[99], Ok(expected));
}

#[test]
fn reading_resumes_after_a_read_that_failed() {
    let (disk, expected) = written();
    let store = disk.store();
    disk.fail_reads(1);
    let answers: Vec<_> = (0..3).map(|_| heads(&store, None)).collect();
    assert!(matches!(answers[0], Err(StoreError::Io(_))), "{:?}", answers[0]);
    assert_eq!(answers[1..], [Ok(expected.clone()), Ok(expected)]);
}

/// Steps of a run that began with an empty store, and what was on the disk before them.
fn steps_of(disk: &Disk, opened: u64) -> (Vec<u8>, Vec<(u64, Step)>) {
    let mut image = Vec::new();
    let mut steps: Vec<(u64, Step)> = (1..).zip(disk.steps()).collect();
    let later = steps.split_off(usize::try_from(opened).expect("small"));
    steps.iter().for_each(|(_, step)| step.apply(&mut image));
    (image, later)
}

/// A store that opens whatever a crash left of it.
fn reopened(image: &[u8], case: &str) -> RedbStore {
    let store = RedbStore::with_opener(Disk::of(image.to_vec()).opener());
    store.unwrap_or_else(|error| panic!("{case}: {error}"))
}

#[test]
fn a_kill_after_any_call_of_the_disk_loses_nothing_acknowledged() {
    let (disk, told) = undisturbed();
    let (mut image, steps) = steps_of(&disk, told.opened);
    for (calls, step) in steps {
        step.apply(&mut image);
        let case = format!("killed after call {calls}");
        told.check(reopened(&image, &case), calls, &case);
    }
}

#[test]
fn a_power_cut_that_keeps_any_of_the_unsynced_writes_loses_nothing_acknowledged() {
    let (disk, told) = undisturbed();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut synced, steps) = steps_of(&disk, told.opened);
    let mut unsynced = Vec::new();
    for (calls, step) in steps {
        if !matches!(step, Step::Sync) {
            unsynced.push(step);
            continue;
        }
        for round in 0..3 {
            let mut image: Vec<u8> = synced.clone();
            let kept = unsynced.iter().filter(|step| matches!(step, Step::SetLen(_)) || random.random::<bool>());
            kept.for_each(|step| step.apply(&mut image));
            let case = format!("power cut {round} before the sync of call {calls}");
            told.check(reopened(&image, &case), calls - 1, &case);
        }
        unsynced.drain(..).for_each(|step| step.apply(&mut synced));
    }
}

#[test]
fn a_rotten_file_never_panics_out_of_the_store_nor_hands_out_what_was_not_written() {
    let disk = Disk::default();
    let store = disk.store();
    write_ledgers(&store, None, &AGENTS, 100);
    let truth = AGENTS.map(|agent| Truth::read(&store, &id(agent)));
    drop(store);
    let image = disk.image();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for _ in 0..1_500 / stride(10) {
        let mut rotten = image.clone();
        let flips: Vec<usize> = (0..random.random_range(1..20)).map(|_| random.random_range(0..image.len())).collect();
        for flip in &flips {
            rotten[*flip] ^= 1 << random.random_range(0..8);
        }
        let Ok(store) = RedbStore::with_opener(Disk::of(rotten).opener()) else { continue };
        truth.iter().for_each(|truth| truth.check(&store, &flips));
        drop(store.commit(&[Append::default()]));
        let store = Arc::new(store);
        let blobs = Blobs::new(store.clone(), PathBuf::from("/no/payload/files"));
        // That an answer comes is what matters here, whatever it is.
        drop(verify(&*store, &blobs, None, &mut |_| {}));
    }
}

/// What was written to one ledger.
struct Truth {
    agent: AgentId,
    events: Vec<LinkedEvent>,
    state: AgentState,
}

impl Truth {
    fn read(store: &dyn Store, agent: &AgentId) -> Self {
        let events = reader::page(store, agent, EventSeq::ZERO, usize::MAX).expect("whole");
        let (state, _) = reader::fold(store, agent).expect("whole");
        Self { agent: agent.clone(), events, state }
    }

    /// Every answer is a refusal or true. A ledger whose name is lost is not there.
    fn check(&self, store: &dyn Store, flips: &[usize]) {
        if let Ok(Some((state, _))) = reader::load(store, &self.agent) {
            assert_eq!(state, self.state, "flips at {flips:?}");
        }
        if let Ok(page) = reader::page(store, &self.agent, EventSeq::ZERO, usize::MAX) {
            assert_eq!(page, self.events[..page.len()], "flips at {flips:?}");
        }
    }
}

#[test]
fn a_file_that_does_not_open_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::open(folder.path()).expect("a new home");
    let contents = [b"this is no ledger".repeat(1_000), Vec::new(), b"redb\x1a\x0a\xa9\x0d\x0a".repeat(500)];
    for bytes in contents {
        std::fs::write(home.paths().ledger(), bytes).expect("writable");
        for error in [home.open_store().err(), open_read_only(folder.path()).err()] {
            let error = error.expect("it does not open");
            assert!(matches!(&error, HomeError::Ledger { .. }), "{error:?}");
            assert!(error.to_string().contains("ledger.redb"), "{error}");
            assert!(error.hint().starts_with("restore ledger.redb from a backup"), "{}", error.hint());
        }
    }
}

#[test]
fn a_home_is_used_by_one_holon_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Home::open(folder.path()).expect("a new home");
    let second = Home::open(folder.path()).err().expect("it is in use");
    assert!(matches!(second, HomeError::Locked { .. }), "{second:?}");
    drop(first);
    Home::open(folder.path()).expect("it is free again");
}

#[test]
fn each_boot_of_a_home_has_its_own_number() {
    let folder = tempfile::tempdir().expect("a folder");
    for boot in 1..4 {
        let home = Home::open(folder.path()).expect("a home");
        let (_, counted) = home.open_store().expect("a ledger");
        assert_eq!(counted, Boot(boot));
    }
}

#[test]
fn a_home_of_a_newer_format_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Paths::new(folder.path().to_owned()).ledger();
    let database = Database::create(&path).expect("a file");
    let transaction = database.begin_write().expect("writable");
    let numbers: TableDefinition<&str, u64> = TableDefinition::new("numbers");
    transaction.open_table(numbers).expect("a table").insert("format", 2).expect("writable");
    // A newer layout may use a name of ours for something else.
    let heads: TableDefinition<&str, &str> = TableDefinition::new("heads");
    transaction.open_table(heads).expect("a table");
    transaction.commit().expect("written");
    drop(database);

    let home = Home::open(folder.path()).expect("a home");
    for error in [home.open_store().err(), open_read_only(folder.path()).err()] {
        let error = error.expect("it is refused");
        assert!(matches!(error, HomeError::Newer { found: 2, .. }), "{error:?}");
        assert_eq!(error.hint(), "use the holon that wrote it, or a newer one");
    }
    let database = Database::open(&path).expect("the file opens");
    let tables = database.begin_read().expect("readable").list_tables().expect("readable").count();
    assert_eq!(tables, 2, "nothing was added");
}

#[test]
fn a_ledger_file_whose_making_was_cut_short_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = Paths::new(folder.path().to_owned()).ledger();
    let disk = Disk::default();
    drop(disk.store());
    let mut image = Vec::new();
    for step in disk.steps() {
        step.apply(&mut image);
        std::fs::write(path.with_extension("new"), &image).expect("writable");
        let home = Home::open(folder.path()).expect("a home");
        assert_eq!(home.open_store().expect("a ledger").1, Boot(1));
        std::fs::remove_file(&path).expect("removed");
    }
}
