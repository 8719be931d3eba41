//! Every store answers alike: random appends against the memory store and the redb store, compared step by step.

use crate::disk::Disk;
use crate::ledger_maker::id;
use holon::fold::row::{RecordKind, RecordRow, TokenRow};
use holon::ledger::memory::MemoryStore;
use holon::ledger::redb::RedbStore;
use holon::ledger::{Append, AppendError, Head, Part, Records, Store, chain};
use holon::words::content::Blob;
use holon::words::hash::Hash;
use holon::words::id::{AgentId, EventSeq};
use holon::words::time::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;

const AGENTS: [&str; 4] = ["delta", "alpha", "charlie", "bravo"];
const KINDS: [RecordKind; 4] = [RecordKind::Message, RecordKind::Task, RecordKind::Wait, RecordKind::Episode];
/// Capabilities that appends make live or worthless.
const TOKENS: u8 = 4;

/// Which head an append names.
#[derive(Clone, Copy, Debug)]
enum Expected {
    Right,
    /// As if an event fewer were recorded.
    Older,
    /// The right seq with another chain's link.
    Forged,
    /// As if nothing were recorded.
    Genesis,
}

#[derive(Clone, Debug)]
struct PlannedPart {
    expected: Expected,
    records: Vec<Vec<u8>>,
    anchored: bool,
    list: Option<Vec<u8>>,
    due: Option<bool>,
    deadline: Option<Option<i64>>,
    closed: Vec<(usize, u64)>,
    checkpoint: Option<Vec<u8>>,
    /// Texts of payloads that the records name; some of them are rows.
    payloads: Vec<Vec<u8>>,
    /// Tokens, and whether they are live from here on.
    tokens: Vec<(u8, bool)>,
}

#[derive(Clone, Debug)]
struct PlannedAppend {
    parts: BTreeMap<usize, PlannedPart>,
    blobs: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<PlannedAppend>),
    Reopen,
    ForgetCheckpoints,
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

/// So few that a payload is named, and comes as a row, more than once.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    vec(0..3_u8, 0..2)
}

fn expected() -> impl Strategy<Value = Expected> {
    prop_oneof![
        12 => Just(Expected::Right),
        1 => Just(Expected::Older),
        1 => Just(Expected::Forged),
        1 => Just(Expected::Genesis),
    ]
}

fn part() -> impl Strategy<Value = PlannedPart> {
    let deadline = proptest::option::of(proptest::option::of(-3_i64..5));
    let rows = (proptest::option::of(bytes()), proptest::option::of(any::<bool>()), deadline);
    let closed = vec((0..KINDS.len(), 1_u64..8), 0..3);
    let records = vec(bytes(), 1..5);
    let named = (vec(payload(), 0..3), vec((0..TOKENS, any::<bool>()), 0..3));
    let strategy = (expected(), records, any::<bool>(), rows, closed, proptest::option::of(bytes()), named);
    strategy.prop_map(|(expected, records, anchored, (list, due, deadline), closed, checkpoint, named)| {
        let (payloads, tokens) = named;
        PlannedPart { expected, records, anchored, list, due, deadline, closed, checkpoint, payloads, tokens }
    })
}

fn append() -> impl Strategy<Value = PlannedAppend> {
    let parts = btree_map(0..AGENTS.len(), part(), 1..4);
    let blobs = vec(prop_oneof![bytes(), payload()], 0..2);
    (parts, blobs).prop_map(|(parts, blobs)| PlannedAppend { parts, blobs })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => vec(append(), 1..5).prop_map(Step::Commit),
        1 => Just(Step::Reopen),
        1 => Just(Step::ForgetCheckpoints),
    ];
    vec(step, 1..25)
}

/// The two stores, and what both must know.
struct Pair {
    memory: MemoryStore,
    disk: Disk,
    redb: Option<RedbStore>,
    /// The heads that appends are planned with; a batch moves them as it goes.
    heads: BTreeMap<AgentId, Vec<Head>>,
    blobs: Vec<Hash>,
}

impl Pair {
    fn new() -> Self {
        let disk = Disk::default();
        let redb = Some(disk.store());
        Self { memory: MemoryStore::default(), disk, redb, heads: BTreeMap::new(), blobs: Vec::new() }
    }

    fn redb(&self) -> &RedbStore {
        self.redb.as_ref().expect("the store is open between steps")
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Commit(batch) => self.commit(batch),
            Step::Reopen => {
                self.redb = None;
                self.redb = Some(self.disk.store());
            }
            Step::ForgetCheckpoints => {
                self.memory.forget_checkpoints().expect("memory forgets");
                self.redb().forget_checkpoints().expect("redb forgets");
            }
        }
    }

    fn commit(&mut self, batch: &[PlannedAppend]) {
        let mut promised = Vec::new();
        let mut appends = Vec::new();
        for planned in batch {
            let (append, succeeds) = self.plan(planned);
            promised.push(succeeds);
            appends.push(append);
        }
        let outcomes = self.memory.commit(&appends);
        assert_eq!(outcomes, self.redb().commit(&appends));
        let succeeded: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
        assert_eq!(succeeded, promised, "an append fails alone, and only for its own head");
        let conflicts = outcomes.iter().all(|outcome| matches!(outcome, Ok(()) | Err(AppendError::Conflict { .. })));
        assert!(conflicts, "nothing but a conflict refuses an append");
    }

    /// The append, and whether it meets the heads that will be there when its turn comes.
    fn plan(&mut self, planned: &PlannedAppend) -> (Append, bool) {
        let parts: Vec<(Part, bool)> =
            planned.parts.iter().map(|(agent, part)| self.plan_part(&id(AGENTS[*agent]), part)).collect();
        let succeeds = parts.iter().all(|(_, right)| *right);
        let parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let blobs: Vec<Blob> = planned.blobs.iter().cloned().map(Blob::new).collect();
        self.blobs.extend(blobs.iter().map(|blob| blob.hash));
        self.blobs.extend(parts.iter().flat_map(|part| &part.payloads));
        if succeeds {
            for part in &parts {
                self.heads.entry(part.agent.clone()).or_default().push(part.head);
            }
        }
        (Append { parts, blobs }, succeeds)
    }

    fn plan_part(&self, agent: &AgentId, planned: &PlannedPart) -> (Part, bool) {
        let genesis = chain::genesis(agent);
        let past = self.heads.get(agent).map_or(&[][..], Vec::as_slice);
        let head = past.last().copied().unwrap_or(genesis);
        let expected = match planned.expected {
            Expected::Right => head,
            Expected::Older => past.iter().rev().nth(1).copied().unwrap_or(genesis),
            Expected::Forged => Head { seq: head.seq, hash: Hash::of(b"another chain") },
            Expected::Genesis => genesis,
        };
        (build(agent, expected, planned), expected == head)
    }

    fn compare(&self) {
        for agent in AGENTS.map(id).iter().chain([&id("nobody")]) {
            self.compare_agent(agent);
        }
        for hash in self.blobs.iter().chain([&Hash::of(b"no such blob")]) {
            assert_eq!(self.memory.blob(hash), self.redb().blob(hash));
            assert_eq!(self.memory.names_file(hash), self.redb().names_file(hash));
        }
        for token in 0..TOKENS {
            assert_eq!(self.memory.token(&hash(token)), self.redb().token(&hash(token)));
        }
        for after in [None, Some(id("alpha")), Some(id("beta")), Some(id("zulu"))] {
            for limit in [0, 1, 2, usize::MAX] {
                assert_eq!(self.memory.agents(after.as_ref(), limit), self.redb().agents(after.as_ref(), limit));
                assert_eq!(self.memory.list(after.as_ref(), limit), self.redb().list(after.as_ref(), limit));
            }
        }
        assert_eq!(self.memory.due(), self.redb().due());
        assert_eq!(self.memory.deadlines(), self.redb().deadlines());
        let end = self.memory.log_end().expect("memory answers");
        assert_eq!(self.redb().log_end(), Ok(end));
        for (after, limit) in [(0, usize::MAX), (0, 0), (end / 2, 3), (end, 1), (u64::MAX, 1)] {
            assert_eq!(self.memory.log(after, limit), self.redb().log(after, limit));
        }
    }

    fn compare_agent(&self, agent: &AgentId) {
        let head = self.memory.head(agent);
        assert_eq!(head, self.redb().head(agent));
        let end = head.expect("memory answers").map_or(0, |head| head.seq.0);
        for (after, until) in
            [(0, end), (0, u64::MAX), (1, 2), (end / 2, end + 3), (end, end + 1), (3, 1), (end + 9, end)]
        {
            let (after, until) = (EventSeq(after), EventSeq(until));
            let records = self.memory.records(agent, after, until);
            assert_eq!(records, self.redb().records(agent, after, until), "records after {after} until {until}");
        }
        for seq in (0..=end + 1).map(EventSeq) {
            assert_eq!(self.memory.anchor(agent, seq), self.redb().anchor(agent, seq));
        }
        assert_eq!(self.memory.checkpoint(agent), self.redb().checkpoint(agent));
        KINDS.iter().for_each(|kind| self.compare_closed(agent, *kind));
    }

    fn compare_closed(&self, agent: &AgentId, kind: RecordKind) {
        for number in 0..9 {
            assert_eq!(self.memory.record(agent, kind, number), self.redb().record(agent, kind, number));
        }
        for (before, limit) in [(0, 9), (4, 0), (4, 2), (u64::MAX, usize::MAX)] {
            let rows = self.memory.records_closed(agent, kind, before, limit);
            assert_eq!(rows, self.redb().records_closed(agent, kind, before, limit));
        }
    }
}

fn hash(token: u8) -> Hash {
    Hash::of(&[token])
}

fn build(agent: &AgentId, expected: Head, planned: &PlannedPart) -> Part {
    let mut records = Records::default();
    let mut head = expected;
    let mut anchors = Vec::new();
    for record in &planned.records {
        records.push(record);
        head = chain::link(head, record);
        anchors.extend(planned.anchored.then_some(head));
    }
    let closed = planned.closed.iter().map(|(kind, number)| RecordRow {
        kind: KINDS[*kind],
        number: *number,
        first: expected.seq.next(),
        last: head.seq,
    });
    Part {
        agent: agent.clone(),
        expected,
        records,
        head,
        anchors,
        list: planned.list.clone(),
        due: planned.due,
        deadline: planned.deadline.map(|deadline| deadline.map(Timestamp)),
        closed: closed.collect(),
        tokens: planned
            .tokens
            .iter()
            .map(|(token, is_live)| TokenRow { token_hash: hash(*token), is_live: *is_live })
            .collect(),
        checkpoint: planned.checkpoint.clone(),
        payloads: planned.payloads.iter().map(|text| Hash::of(text)).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn memory_and_redb_answer_alike_whatever_is_appended(steps in steps()) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.take(step);
            pair.compare();
        }
    }
}

/// `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

/// A part with one record and nothing else.
fn plain(agent: &str, expected: Head) -> Part {
    let planned = PlannedPart {
        expected: Expected::Right,
        records: vec![b"record".to_vec()],
        anchored: true,
        list: Some(b"listed".to_vec()),
        due: Some(true),
        deadline: Some(Some(7)),
        closed: vec![(0, 1)],
        checkpoint: Some(b"saved".to_vec()),
        payloads: vec![b"elsewhere".to_vec()],
        tokens: vec![(0, true)],
    };
    build(&id(agent), expected, &planned)
}

fn genesis(agent: &str) -> Head {
    chain::genesis(&id(agent))
}

fn each_store(test: impl Fn(&dyn Store)) {
    test(&MemoryStore::default());
    test(&Disk::default().store());
}

#[test]
fn a_conflict_fails_its_append_alone() {
    each_store(|store| {
        let stale = Head { seq: EventSeq(3), hash: Hash::of(b"stale") };
        let parts = [plain("alpha", genesis("alpha")), plain("bravo", stale), plain("charlie", genesis("charlie"))];
        let outcomes = store.commit(&parts.map(|part| Append { parts: vec![part], blobs: Vec::new() }));
        let conflict = AppendError::Conflict { agent: id("bravo"), expected: EventSeq(3), found: EventSeq::ZERO };
        assert_eq!(outcomes, [Ok(()), Err(conflict), Ok(())]);
        assert_eq!(store.agents(None, 9), Ok(vec![id("alpha"), id("charlie")]));
    });
}

#[test]
fn an_append_of_several_ledgers_writes_all_of_them_or_nothing() {
    each_store(|store| {
        let stale = Head { seq: EventSeq(1), hash: Hash::of(b"stale") };
        let parts = vec![plain("alpha", genesis("alpha")), plain("bravo", stale)];
        let blob = Blob::new(b"payload".to_vec());
        let hash = blob.hash;
        let outcomes = store.commit(&[Append { parts, blobs: vec![blob.clone()] }]);
        assert!(matches!(outcomes[..], [Err(AppendError::Conflict { .. })]));
        assert_eq!(store.agents(None, 9), Ok(Vec::new()));
        assert_eq!(store.list(None, 9), Ok(Vec::new()));
        assert_eq!((store.due(), store.deadlines()), (Ok(Vec::new()), Ok(Vec::new())));
        assert_eq!(store.blob(&hash), Ok(None));

        let parts = vec![plain("alpha", genesis("alpha")), plain("bravo", genesis("bravo"))];
        assert_eq!(store.commit(&[Append { parts, blobs: vec![blob] }]), [Ok(())]);
        assert_eq!(store.due(), Ok(vec![id("alpha"), id("bravo")]));
        assert_eq!(store.blob(&hash), Ok(Some(b"payload".to_vec())));
    });
}

#[test]
fn appends_of_one_batch_follow_each_other_in_one_ledger() {
    each_store(|store| {
        let first = plain("alpha", genesis("alpha"));
        let second = plain("alpha", first.head);
        let late = plain("alpha", first.head);
        let head = second.head;
        let batch = [first, second, late].map(|part| Append { parts: vec![part], blobs: Vec::new() });
        let outcomes = store.commit(&batch);
        assert!(matches!(outcomes[..], [Ok(()), Ok(()), Err(AppendError::Conflict { .. })]));
        assert_eq!(store.head(&id("alpha")), Ok(Some(head)));
    });
}
