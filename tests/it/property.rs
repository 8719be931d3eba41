//! What holds whatever an agent is told, in any order, by whomever.
//!
//! Cases are stories in the words of [`crate::story`], so a failure can be read. [`World`] checks after every line
//! that the planes agree and that a refusal changed nothing. `PROPTEST_CASES=10000` looks further.

use crate::drive;
use crate::sample;
use crate::story::tell;
use crate::world::{World, agent_id};
use holon::events::queue::QueueEvent;
use holon::events::{Envelope, Event, codec};
use holon::fold::agent::Lifecycle;
use holon::fold::owed::owed;
use holon::fold::posture::posture;
use holon::fold::{AgentState, invariant};
use holon::offline::replay;
use holon::words::id::{Boot, EventSeq, MessageId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

const CASES_DEFAULT: u32 = 64;

fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let chosen = std::env::var_os("PROPTEST_CASES").is_some();
    if chosen { config } else { ProptestConfig { cases: CASES_DEFAULT, ..config } }
}

/// A line that a world may be told. Ids and attempts are often wrong.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => message(),
        6 => Just("begin".to_owned()),
        6 => Just("round".to_owned()),
        6 => outcome_of_model(),
        6 => outcome_of_task(),
        4 => call(),
        4 => plane(),
        3 => transport(),
        3 => between(),
        3 => lifecycle(),
        3 => time(),
        2 => (0..3u8, message()).prop_map(|(key, message)| format!("key k{key} {message}")),
        2 => (0..60u64, outcome_of_model()).prop_map(|(seq, line)| format!("at {seq} {line}")),
        2 => (0..60u64, outcome_of_task()).prop_map(|(seq, line)| format!("at {seq} {line}")),
    ]
}

fn message() -> impl Strategy<Value = String> {
    let drop = (1..9u64).prop_map(|message| format!("drop msg-{message} unwanted"));
    let wake = (0..3u8).prop_map(|reason| format!("wake reason {reason}"));
    let fixed = ["prompt hello", "prompt and this", "next later", "channel ops look", "send timer_tick system"];
    prop_oneof![5 => prop::sample::select(fixed.to_vec()).prop_map(str::to_owned), 1 => drop, 2 => wake]
}

fn outcome_of_model() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "answer done",
        "answer on it | exec make",
        "answer on it | exec make | exec make | sleep",
        "answer | sleep",
        "answer reading | output task-1 500",
        "answer reading | output task-2 | Fly {}",
        "fail timeout",
        "fail server 100",
        "fail authentication",
        "fail interrupted",
        "again",
        "give-up context_exhausted",
    ])
    .prop_map(str::to_owned)
}

fn outcome_of_task() -> impl Strategy<Value = String> {
    let verbs = [
        "run TASK",
        "run TASK",
        "rerun TASK",
        "promote TASK so far",
        "read TASK so far",
        "exit TASK 0 good",
        "exit TASK 1 bad",
        "exit TASK lost",
        "exit TASK signal-15",
    ];
    (prop::sample::select(verbs.to_vec()), 1..4u64)
        .prop_map(|(line, task)| line.replace("TASK", &format!("task-{task}")))
}

/// A model's answer that uses the planes' tools.
fn call() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        r#"answer | CreateWorkItem {"objective":"ship it"} | CreateWorkItem {"objective":"and this","focus":false}"#,
        r#"answer | UpdateWorkItem {"work_item_id":"work-1","blocker":"the review","recheck_after_ms":2000}"#,
        r#"answer | UpdateWorkItem {"work_item_id":"work-1","clear_blocker":true} | PickWorkItem {"work_item_id":"work-2"}"#,
        r#"answer all done | CompleteWorkItem {"work_item_id":"work-1"}"#,
        r#"answer | WaitFor {"wake":"external","reason":"the build"}"#,
        r#"answer | WaitFor {"wake":"operator_input","reason":"which"}"#,
        r#"answer | exec make | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"}"#,
        r#"answer | WaitFor {"wake":"timer","after_ms":3000,"reason":"a pause"}"#,
        r#"answer | CreateTimer {"duration_ms":2000,"interval_ms":2000,"summary":"look"} | CreateTimer {"duration_ms":1000}"#,
        r#"answer | CreateExternalTrigger {"mode":"wake","label":"ci"} | CancelTimer {"timer_id":"timer-1"}"#,
        r#"answer | SpawnAgent {"preset":"private_child","initial_message":"help","workspace_mode":"worktree"}"#,
        r#"answer | SpawnAgent {"preset":"private_child","initial_message":"help","context":"fork"} | TaskStop {"task_id":"task-1"}"#,
        r#"answer | MemoryUpdate {"entry":"plan","text":"as told"} | NotifyOperator {"message":"so far so good"}"#,
        r#"answer | TaskInput {"task_id":"task-1","text":"yes"} | Enqueue {"text":"and later this"}"#,
        r#"answer | ReadFile {"path":"a.txt"} | ApplyPatch {"patch":"--- a
+++ a
@@ -1 +1 @@
-a
+b
"} | AgentGet {}"#,
        r#"answer | AttachWorkspace {"path":"/work"} | UseWorkspace {"workspace_id":"agent_home"} | DetachWorkspace {"workspace_id":"ws-1"}"#,
        "call",
        "call",
        "bring something",
        "bring something",
        "refused not_found",
    ])
    .prop_map(str::to_owned)
}

/// What the operator and the runtime do in the planes.
fn plane() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "open more work",
        "pick work-2",
        "complete work-1 as wanted",
        "continue work-1",
        "recheck",
        "timer 1500 every 1000 beat",
        "cancel timer-1",
        "fire timer-1",
        "fire timer-2",
        "due wait-1",
        "cancel wait-1",
        "trigger enqueue secret reviews",
        "callback enqueue secret it is green",
        "callback wake other who knows",
        "revoke trigger-1",
        "secret",
        "secret keeps",
        "secret none",
        "unsigned pushed",
        "signed pushed",
        "attach /work/other",
        "leave",
        "detach ws-1",
        "settle task-1 retained",
        "install long-work builtin copied",
        "install mend named linked",
        "uninstall long-work",
        "command make clean",
        "input task-1 yes",
        "delivered task-1",
        "end task-1",
    ])
    .prop_map(str::to_owned)
}

/// What goes between the agent and its operator.
fn transport() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "bind phone",
        "bind desk route=lobby",
        "bind -",
        "unbind phone",
        "unbind opbind-2",
        "say phone ada thread-1 and then?",
        "say phone ada - hello",
        "say desk ada - hello",
        "say desk eve - let me in",
        "submit opbind-1",
        "submit opbind-2",
        "taken opbind-1 d-1",
        "taken opbind-2",
        "not-taken opbind-1 HTTP 503",
        "refused-by opbind-2 HTTP 413",
    ])
    .prop_map(str::to_owned)
}

/// What passes between an agent and the child it may have.
fn between() -> impl Strategy<Value = String> {
    let child =
        ["begin", "round", "answer found it", "answer | NotifyOperator {\"message\":\"half\"}", "boot", "prompt no"];
    let told = prop::sample::select(child.to_vec()).prop_map(|line| format!("of main.c1 {line}"));
    let step = prop::sample::select(vec!["take main.c1", "direct task-1", "direct task-2"]).prop_map(str::to_owned);
    prop_oneof![3 => told, 2 => step]
}

fn lifecycle() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["abort", "abort idle", "abort run-1", "stop", "start", "start", "start", "create"])
        .prop_map(str::to_owned)
}

fn time() -> impl Strategy<Value = String> {
    let jump = (-200_000_000..200_000_000i64).prop_map(|by| format!("clock {by:+}"));
    prop_oneof![3 => Just("boot".to_owned()), 1 => jump, 2 => (0..5_000i64).prop_map(|by| format!("clock +{by}"))]
}

fn told(lines: &[String]) -> World {
    let mut world = World::new();
    for line in lines {
        if is_sensible(&world, line) {
            tell(&mut world, line);
        }
    }
    world
}

/// What concerns a child is told where there is one.
fn is_sensible(world: &World, line: &str) -> bool {
    !line.contains("main.c1") || !world.children.is_empty()
}

/// The state as a reader of the ledger's bytes finds it.
fn refolded(world: &World) -> AgentState {
    let mut state = AgentState::unborn(world.state.agent_id.clone());
    for envelope in &world.ledger {
        let mut bytes = Vec::new();
        codec::encode(envelope, &mut bytes).expect("events are within their bounds");
        let read = codec::decode(&bytes).expect("what was written can be read");
        assert_eq!(read, *envelope);
        state.evolve(&read).expect("what was accepted is accepted again");
    }
    state
}

/// How often each message that was taken in has been settled.
fn outcomes(world: &World) -> BTreeMap<MessageId, usize> {
    let mut outcomes = BTreeMap::new();
    for envelope in &world.ledger {
        match &envelope.event {
            Event::Queue(QueueEvent::Enqueued(event)) => drop(outcomes.insert(event.message, 0)),
            Event::Queue(QueueEvent::Settled(event)) => *outcomes.entry(event.message).or_default() += 1,
            _ => {}
        }
    }
    outcomes
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_ledger_folds_to_the_state_it_was_written_from(lines in vec(line(), 0..80)) {
        let world = told(&lines);
        prop_assert_eq!(refolded(&world), world.state);
    }

    #[test]
    fn the_same_commands_make_the_same_bytes(lines in vec(line(), 0..80)) {
        let (one, other) = (told(&lines), told(&lines));
        prop_assert_eq!(one.bytes(), other.bytes());
        let ledgers = replay::run(&one.steps.borrow()).expect("what was told can be told again");
        prop_assert_eq!(ledgers.len(), 1 + one.children.len());
        for world in one.children.values().chain([&one]) {
            let records = &ledgers[&world.state.agent_id];
            prop_assert_eq!(records.iter().flatten().copied().collect::<Vec<u8>>(), world.bytes());
        }
    }

    #[test]
    fn a_ledger_whose_events_were_moved_about_folds_or_is_refused_and_never_panics(
        lines in vec(line(), 20..60),
        changes in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4),
    ) {
        let mut ledger = told(&lines).ledger;
        let strangers = sample::envelopes();
        for (place, other) in changes {
            let place = place.index(ledger.len());
            let stranger = match other.index(3) {
                0 => other.get(&strangers).clone(),
                1 => other.get(&ledger).clone(),
                _ => ledger.remove(place),
            };
            ledger.insert(other.index(ledger.len() + 1), stranger);
        }
        let mut state = AgentState::unborn(agent_id());
        for (index, envelope) in ledger.into_iter().enumerate() {
            let envelope = Envelope { seq: EventSeq(index as u64 + 1), ..envelope };
            if state.evolve(&envelope).is_err() {
                break;
            }
            // What the fold let pass is shown and acted on, sense or none.
            drop((posture(&state), owed(&state, Boot(9)), invariant::check(&state)));
        }
    }

    #[test]
    fn when_the_outside_has_done_its_part_nothing_is_owed_and_every_message_has_its_one_outcome(
        lines in vec(line(), 0..60),
        choices in vec(any::<u8>(), 0..60),
        calm in vec(message(), 0..6),
    ) {
        let mut world = told(&lines);
        tell(&mut world, "start");
        calm.iter().for_each(|line| drop(tell(&mut world, line)));
        drive::to_rest(&mut world, &choices);
        let open = &world.state.tasks.open;
        let family = || world.children.values().chain([&world]).flat_map(|world| &world.ledger);
        let told = || family().map(crate::story::show).collect::<Vec<_>>().join("\n");
        prop_assert!(world.turn().is_none() && open.is_empty(), "{open:?} stays open after\n{}", told());
        for world in world.children.values().chain([&world]) {
            prop_assert!(world.owed().is_empty(), "{} still owes {:?}", world.state.agent_id, world.owed());
            for (message, outcomes) in outcomes(world) {
                prop_assert_eq!(outcomes, 1, "{} has its one outcome", message);
            }
            prop_assert_eq!(refolded(world), world.state.clone());
        }
        for child in world.children.values() {
            let lifecycle = child.state.agent.lifecycle;
            prop_assert_eq!(lifecycle, Lifecycle::Archived, "{} has ended", child.state.agent_id);
        }
    }
}
