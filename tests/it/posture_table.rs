//! Posture as a table: what each value rests on, which of two comes first, and what Sleep leaves behind (state seed,
//! Derived AgentSchedulingPosture and Sleep semantics).

use crate::story::{check, tell};
use crate::world::World;
use holon::fold::AgentState;
use holon::fold::agent::Lifecycle;
use holon::fold::posture::{PostureKind, WorkScheduling, posture, work_standing};
use holon::words::id::EventSeq;

/// What brings a value about.
struct Condition {
    kind: PostureKind,
    reason: &'static str,
    /// Told in turn; `WORK` and `TASK` stand for the next ids, `TICK` for the message enqueued last.
    lines: &'static [&'static str],
    /// The kind of the event that the answer rests on.
    rests_on: &'static str,
    holds: fn(&AgentState) -> bool,
}

/// The seed's values in its order of precedence. `Idle` is no condition: it is the absence of all others.
const CONDITIONS: [Condition; 9] = [
    Condition {
        kind: PostureKind::Archived,
        reason: "stopped",
        lines: &["stop"],
        rests_on: "agent_stopped",
        holds: |state| state.agent.lifecycle == Lifecycle::Stopped,
    },
    Condition {
        kind: PostureKind::ActiveTurn,
        reason: "turn_running",
        lines: &["send system_tick system", "begin"],
        rests_on: "turn_started",
        holds: |state| state.turns.current.is_some(),
    },
    Condition {
        kind: PostureKind::HasQueuedInput,
        reason: "message_waiting",
        lines: &["send system_tick system"],
        rests_on: "message_enqueued",
        holds: |state| state.queue.first().is_some(),
    },
    Condition {
        kind: PostureKind::HasRunnableWork,
        reason: "work_open",
        lines: &["open to be gone on with", "drop TICK put aside"],
        rests_on: "work_item_created",
        holds: |state| has_work(state, WorkScheduling::Runnable),
    },
    Condition {
        kind: PostureKind::WaitingForTask,
        reason: "task",
        lines: &[
            "send system_tick system",
            "begin",
            "round",
            r#"answer | CreateWorkItem {"objective":"build"} | exec make TASK"#,
            "run TASK",
            "promote TASK",
            "round",
            r#"answer | WaitFor {"wake":"task_result","resource":"TASK","reason":"the build"}"#,
        ],
        rests_on: "wait_created",
        holds: |state| has_work(state, WorkScheduling::WaitingTask),
    },
    Condition {
        kind: PostureKind::WaitingForExternal,
        reason: "external",
        lines: &[
            "send system_tick system",
            "begin",
            "round",
            r#"answer | CreateWorkItem {"objective":"merge"} | WaitFor {"wake":"external","reason":"the review"}"#,
        ],
        rests_on: "wait_created",
        holds: |state| has_work(state, WorkScheduling::WaitingExternal),
    },
    Condition {
        kind: PostureKind::WaitingForOperator,
        reason: "operator",
        lines: &[
            "send system_tick system",
            "begin",
            "round",
            r#"answer | CreateWorkItem {"objective":"paint"} | WaitFor {"wake":"operator_input","reason":"which"}"#,
        ],
        rests_on: "wait_created",
        holds: |state| has_work(state, WorkScheduling::WaitingOperator),
    },
    Condition {
        kind: PostureKind::Blocked,
        reason: "blocker",
        lines: &[
            "open to be unlocked",
            "drop TICK put aside",
            r#"alter WORK {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}"#,
        ],
        rests_on: "work_item_updated",
        holds: |state| has_work(state, WorkScheduling::Blocked),
    },
    Condition { kind: PostureKind::Idle, reason: "nothing_open", lines: &[], rests_on: "", holds: |_| true },
];

fn has_work(state: &AgentState, scheduling: WorkScheduling) -> bool {
    state.works.open.iter().any(|(id, item)| work_standing(state, *id, item).scheduling == scheduling)
}

/// Brings the condition about, and says which event it rests on.
fn bring_about(world: &mut World, condition: &Condition) -> Vec<EventSeq> {
    let (work, task) = (world.state.works.last.next().to_string(), world.state.tasks.last.next().to_string());
    for line in condition.lines {
        let tick = world.state.queue.last.to_string();
        let line = line.replace("WORK", &work).replace("TASK", &task).replace("TICK", &tick);
        let told = tell(world, &line);
        assert!(told.iter().all(|line| !line.starts_with('!') && !line.contains("refused")), "{line}: {told:?}");
    }
    let rests_on = world.ledger.iter().rfind(|envelope| envelope.event.kind() == condition.rests_on);
    rests_on.map(|envelope| envelope.seq).into_iter().collect()
}

fn answers(world: &World, condition: &Condition, evidence: &[EventSeq], beside: PostureKind) {
    let answer = posture(&world.state);
    let (kind, reason) = (condition.kind, condition.reason);
    assert_eq!((answer.kind, answer.reason), (kind, reason), "beside {beside:?}");
    assert_eq!(answer.evidence, evidence, "{kind:?} beside {beside:?}");
}

#[test]
fn each_value_has_its_reason_and_the_event_it_rests_on() {
    for condition in &CONDITIONS {
        let mut world = World::new();
        let evidence = bring_about(&mut world, condition);
        assert!((condition.holds)(&world.state), "{:?}", condition.kind);
        answers(&world, condition, &evidence, condition.kind);
    }
}

#[test]
fn of_two_that_hold_the_one_of_higher_precedence_is_the_answer() {
    let mut pairs = 0;
    for (rank, higher) in CONDITIONS.iter().enumerate() {
        for lower in &CONDITIONS[rank + 1..] {
            pairs += 1;
            let mut world = World::new();
            bring_about(&mut world, lower);
            if (higher.kind, lower.kind) == (PostureKind::Archived, PostureKind::ActiveTurn) {
                // Whatever takes an agent from the scheduler ends its turn, so no command leads there.
                world.state.agent.lifecycle = Lifecycle::Stopped;
                assert_eq!(posture(&world.state).kind, PostureKind::Archived);
                continue;
            }
            let evidence = bring_about(&mut world, higher);
            let pair = (higher.kind, lower.kind);
            assert!((higher.holds)(&world.state) && (lower.holds)(&world.state), "both of {pair:?} hold");
            answers(&world, higher, &evidence, lower.kind);
        }
    }
    assert_eq!(pairs, 36);
}

/// What a state came from, and the posture that follows, with its flags.
const REASONS: &[(&str, &str)] = &[
    ("", "idle nothing_open []"),
    ("prompt hello; begin; round; answer hello", "idle nothing_open [11]"),
    ("stop", "archived stopped [2]"),
    ("prompt hello; begin; abort", "archived paused [10]"),
    ("prompt build; begin; round; answer | exec make; run task-1; archive", "archived archiving [16], tasks active"),
    ("archive", "archived archived [3]"),
    ("next second; channel ops look; prompt first", "has_queued_input message_waiting [4]"),
    ("channel ops look; next second", "has_queued_input message_waiting [3]"),
    (
        "prompt build; begin; round; answer | exec make; run task-1; promote task-1; round; answer it builds",
        "idle nothing_open [18], tasks active",
    ),
    ("timer 5000 tea; timer 6000 every 7000 beat", "idle nothing_open [], timers 2"),
    ("open one; drop msg-1 no; open two; drop msg-2 no", "has_runnable_work work_open [2, 6]"),
    (
        r#"prompt go; begin; round; answer | WaitFor {"wake":"timer","after_ms":5000,"reason":"a pause"}"#,
        "waiting_for_external timer [9]",
    ),
    (
        r#"prompt go; begin; round; answer | WaitFor {"wake":"external","reason":"the review"}"#,
        "waiting_for_external external [9], a weak wait",
    ),
    (
        r#"prompt go; begin; round; answer | WaitFor {"wake":"external","reason":"x","no_fallback_reason":"they call"}"#,
        "waiting_for_external external [9], a weak wait",
    ),
    (
        r#"prompt go; begin; round; answer | WaitFor {"wake":"external","reason":"x","recheck_after_ms":9000}"#,
        "waiting_for_external external [9]",
    ),
    (
        r#"prompt go; begin; round; answer | WaitFor {"wake":"operator_input","reason":"which"}"#,
        "waiting_for_operator operator [9]",
    ),
    (
        r#"prompt go; begin; round; answer | exec make; run task-1; promote task-1; round;
        answer | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"}"#,
        "waiting_for_task task [16], tasks active",
    ),
    // The operator is asked before anything else is waited for, and a wait says more than a blocker.
    (
        r#"prompt go; begin; round;
        answer | CreateWorkItem {"objective":"merge"} | WaitFor {"wake":"external","reason":"the review"};
        alter work-1 {"plan_status":"needs_input"}"#,
        "waiting_for_operator needs_input [18], a weak wait",
    ),
    (
        r#"prompt go; begin; round;
        answer | CreateWorkItem {"objective":"merge"} | WaitFor {"wake":"external","reason":"the review"};
        alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}"#,
        "waiting_for_external external [12], a weak wait",
    ),
    (
        "open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked;
        clock +10000; continue work-1; begin; round; answer looked",
        "blocked no_progress [33]",
    ),
    (
        r#"open ship it; begin; round; answer looked; clock +5000; continue work-1; begin; round; answer looked;
        clock +10000; continue work-1; begin; round; answer looked;
        alter work-1 {"blocker":{"set":{"text":"the key","recheck_after_ms":60000}}}"#,
        "blocked blocker [34]",
    ),
];

#[test]
fn every_reason_follows_from_what_was_recorded() {
    for (given, expected) in REASONS {
        let mut world = World::new();
        given.split(';').map(str::trim).filter(|line| !line.is_empty()).for_each(|line| drop(tell(&mut world, line)));
        assert_eq!(tell(&mut world, "posture"), [*expected], "after {given}");
    }
}

#[test]
fn an_answer_names_eight_events_at_most() {
    let mut world = World::new();
    for number in 1..=20 {
        tell(&mut world, &format!("open item {number}"));
        tell(&mut world, &format!("drop msg-{number} put aside"));
    }
    let answer = posture(&world.state);
    assert_eq!((answer.kind, answer.evidence.len()), (PostureKind::HasRunnableWork, 8));
}

#[test]
fn sleep_with_a_message_in_the_queue_goes_on_with_that() {
    check(
        "
        given prompt hello; begin; round; next and then this
        > answer | sleep
        said 1:  (1 calls)
        result 1/0 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        has_queued_input message_waiting [8]
        > owed
        StartTurn
        ",
    );
}

#[test]
fn sleep_with_runnable_work_is_continued_at_once_and_then_with_back_off() {
    check(
        r#"
        given prompt hello; begin; round
        > answer | CreateWorkItem {"objective":"build"} | sleep
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=build
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        result 1/1 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        work_item_continued work=work-1
        msg-2 enqueued normal system_tick trusted_system: work-1 can go on. Its objective:
        > posture
        has_queued_input message_waiting [17]
        > owed
        StartTurn
        > begin
        run-2 begun on msg-2
        incoming msg-2
        > round
        round 1 keeps 0 adds contract earlier_message earlier_answer work message
        round 1 attempt 21 boot 1 model 0
        > answer | sleep
        said 1:  (1 calls)
        result 1/0 slept
        brief-3 result msg-2: (The turn ended without text.)
        msg-2 settled processed run-2
        run-2 completed after 1 rounds
        > posture
        has_runnable_work work_open [9]
        > owed
        ContinueWork { work: WorkId(1) } in 5000 ms
        "#,
    );
}

#[test]
fn sleep_while_a_task_is_waited_for_rests_until_it_ends() {
    check(
        r#"
        given prompt hello; begin; round; answer | CreateWorkItem {"objective":"build"} | exec make; run task-1; promote task-1; round
        > answer | WaitFor {"wake":"task_result","resource":"task-1","reason":"the build"} | sleep
        said 2:  (2 calls)
        wait_created wait=wait-1 owner.work=work-1 wake.task_result=task-1 reason="the build"
        result 2/0 waiting.wait=wait-1
        result 2/1 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        episode-1 holds run-1 to run-1: wait_began
        > posture
        waiting_for_task task [19], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(13) }
        > exit task-1 0 built
        task-1 completed, code 0
        wait_triggered wait=wait-1 by.task=task-1
        msg-2 enqueued next task_result trusted_system: task-1 completed, exit code 0
        > posture
        has_queued_input message_waiting [28]
        "#,
    );
}

#[test]
fn sleep_while_the_outside_is_waited_for_rests_until_it_calls_or_the_time_to_look() {
    check(
        r#"
        given prompt hello; begin; round
        > answer | CreateWorkItem {"objective":"merge"} | WaitFor {"wake":"external","reason":"the review"} | sleep
        said 1:  (3 calls)
        work_item_created work=work-1 change.objective=merge
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        wait_created wait=wait-1 owner.work=work-1 reason="the review" recheck_after_ms=3600000 recoverability=weak
        result 1/1 waiting.wait=wait-1
        result 1/2 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        episode-1 holds run-1 to run-1: wait_began
        > posture
        waiting_for_external external [12], a weak wait
        > owed
        EndWait { wait: WaitId(1) } in 3600000 ms
        "#,
    );
}

#[test]
fn sleep_until_a_time_rests_until_then() {
    check(
        r#"
        given prompt hello; begin; round
        > answer | CreateWorkItem {"objective":"merge"} | WaitFor {"wake":"timer","after_ms":5000,"reason":"a pause"} | sleep
        said 1:  (3 calls)
        work_item_created work=work-1 change.objective=merge
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        wait_created wait=wait-1 owner.work=work-1 wake.timer.after_ms=5000 reason="a pause"
        result 1/1 waiting.wait=wait-1
        result 1/2 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        episode-1 holds run-1 to run-1: wait_began
        > posture
        waiting_for_external timer [12]
        > owed
        EndWait { wait: WaitId(1) } in 5000 ms
        "#,
    );
}

#[test]
fn sleep_with_work_that_needs_input_waits_for_the_operator() {
    check(
        r#"
        given prompt hello; begin; round
        > answer | CreateWorkItem {"objective":"paint","plan_status":"needs_input"} | sleep
        said 1:  (2 calls)
        work_item_created work=work-1 change.objective=paint change.plan_status=needs_input
        work_item_picked work=work-1
        result 1/0 work_written.work=work-1 work_written.revision=1
        result 1/1 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        waiting_for_operator needs_input [9]
        > owed
        "#,
    );
}

#[test]
fn sleep_with_nothing_open_is_idle() {
    check(
        "
        given prompt hello; begin; round
        > answer | sleep
        said 1:  (1 calls)
        result 1/0 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 1 rounds
        > posture
        idle nothing_open [12]
        > owed
        ",
    );
}

#[test]
fn sleep_beside_a_task_that_nobody_waits_for_is_idle_with_a_task() {
    check(
        "
        given prompt hello; begin; round; answer serving | exec serve; run task-1; promote task-1; round
        > answer | sleep
        said 2:  (1 calls)
        result 2/0 slept
        brief-2 result msg-1: (The turn ended without text.)
        msg-1 settled processed run-1
        run-1 completed after 2 rounds
        > posture
        idle nothing_open [19], tasks active
        > owed
        RunTask { task: TaskId(1), attempt: EventSeq(10) }
        ",
    );
}
