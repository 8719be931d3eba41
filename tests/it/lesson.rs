//! What happened to earlier implementations, and the test that keeps it from happening here (semantics 11).

use crate::daemon::{BORN, Home, of_kind, outcomes};
use crate::story::check;
use holon::client::ClientError;
use std::collections::BTreeSet;
use std::time::Duration;

/// A failure of the past, and the tests that hold what must hold instead.
type Lesson = (&'static str, &'static [&'static str]);

const LESSONS: &[Lesson] = &[
    (
        "kill -9 after a tool ran re-ran the shell command",
        &[
            "walk::a_turn_goes_on_from_every_recorded_step",
            "crash::a_runbook_that_is_killed_over_and_over_runs_each_step_once",
        ],
    ),
    (
        "a failed turn's message ran again at the next restart",
        &[
            "provider::a_turn_that_no_model_answers_fails_once_and_for_all",
            "story::turn::a_failed_turns_message_never_runs_again",
        ],
    ),
    (
        "an acknowledged interjection was lost by a crash",
        &["interjection::a_kill_before_during_or_after_its_round_loses_no_interjection"],
    ),
    (
        "one damaged record stopped the whole daemon",
        &["quarantine::a_damaged_agent_is_set_apart_and_the_others_are_served"],
    ),
    (
        "a timer of an unloaded agent did not fire until someone read it",
        &["lesson::a_timer_of_an_agent_that_nobody_reads_fires_on_time_after_a_restart"],
    ),
    (
        "an active timer made webhooks vanish without a turn",
        &["lesson::messages_come_to_their_turns_while_a_timer_beats"],
    ),
    (
        "asleep for ever with runnable work",
        &[
            "lesson::runnable_work_is_continued_until_it_is_held_for_all_to_see",
            "property::when_the_outside_has_done_its_part_nothing_is_owed_and_every_message_has_its_one_outcome",
        ],
    ),
    (
        "a stream fell out of its replay window and closed silently",
        &["stream::a_stream_is_the_ledger_from_wherever_it_starts"],
    ),
    (
        "a second process wrote the same ledger: duplicate seqs",
        &["quarantine::a_second_server_on_a_home_is_refused", "store::a_conflict_fails_its_append_alone"],
    ),
    ("stopping a parent orphaned its child", &["lesson::a_stop_goes_down_to_the_children_and_a_start_as_well"]),
    (
        "a finished child's history was deleted",
        &["lesson::a_child_that_has_ended_stays_readable", "replay::each_fixture_holds_both_ways"],
    ),
    (
        "two state snapshots in each event: 39 KB a turn",
        &["size::a_turn_with_one_command_adds_less_than_five_kilobytes_however_long_the_past_is"],
    ),
    ("attaching a missing path succeeded", &["lesson::a_path_that_is_not_there_is_not_attached"]),
    (
        "CLI exit code 0 on errors",
        &[
            "cli::without_a_server_every_verb_says_how_to_reach_one",
            "cli::a_run_that_fails_says_why_and_exits_with_one",
        ],
    ),
    ("running flags survived a restart", &["lesson::what_ran_before_a_kill_is_not_said_to_run_after_it"]),
    ("N-1 of N results dropped", &["lesson::children_that_finish_together_are_all_heard"]),
    (
        "re-dispatch spin, tick storms",
        &[
            "lesson::runnable_work_is_continued_until_it_is_held_for_all_to_see",
            "lesson::a_timer_whose_tick_waits_adds_none",
        ],
    ),
    (
        "a poison message blocked or killed the loop",
        &["crash::a_step_that_ends_the_process_is_given_up_after_three_boots"],
    ),
    ("reads started runtimes", &["host::reads_of_a_sleeping_agent_wake_nobody"]),
    (
        "unbounded output, 4 to 28 GB databases",
        &["process::output_beyond_its_bound_keeps_head_and_tail_in_little_memory"],
    ),
    (
        "a command printed the daemon's token and keys into the history",
        &["secret::a_runbook_sees_neither_the_token_nor_a_key"],
    ),
    ("everything due started at once", &["posture::more_agents_than_places_all_finish"]),
];

#[test]
fn every_lesson_has_its_tests() {
    let sources = ["tests/it", "tests/it/story"].into_iter().flat_map(|folder| {
        std::fs::read_dir(crate::pinned::path(folder))
            .expect("the tests are there")
            .map(|file| file.expect("a file").path())
    });
    let text = |path: &std::path::PathBuf| std::fs::read_to_string(path).expect("text");
    let files = sources.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let tests: BTreeSet<(String, String)> = files
        .flat_map(|path| {
            let module = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let functions = text(&path);
            let names = functions.lines().filter_map(|line| line.split_once("fn ")?.1.split_once('('));
            names.map(|(name, _)| (module.clone(), name.to_owned())).collect::<Vec<_>>()
        })
        .collect();
    for (failure, names) in LESSONS {
        for name in *names {
            let parts: Vec<&str> = name.split("::").collect();
            let [.., module, function] = parts[..] else { panic!("{name} names a module and a function") };
            assert!(tests.contains(&(module.to_owned(), function.to_owned())), "{failure}: there is no {name}");
        }
    }
}

#[tokio::test]
async fn a_timer_of_an_agent_that_nobody_reads_fires_on_time_after_a_restart() {
    let home = Home::new();
    let mut signs = home.signs("signs");
    let daemon = home.serve();
    let mark = home.workspace().join("signs").display().to_string();
    daemon.prompt("main", &format!("timer 2s: $ echo > {mark}")).await;
    daemon.wait_for("main", "turn_terminal").await;
    daemon.kill();
    let daemon = home.serve();
    signs.next().await;
    let events = daemon.events("main").await;
    let at = |kind: &str| {
        let event = events.iter().find(|event| event["type"] == kind).expect("it happened");
        jiff(event["ts"].as_str().expect("a time"))
    };
    let late = at("timer_fired") - at("timer_created") - Duration::from_secs(2);
    assert!(late < Duration::from_secs(1), "{late:?} late");
}

/// The time of day, in a test that does not run over midnight for long.
fn jiff(timestamp: &str) -> Duration {
    let time = &timestamp[11..23];
    let number = |range: std::ops::Range<usize>| time[range].parse::<u64>().expect("digits");
    Duration::from_millis(((number(0..2) * 60 + number(3..5)) * 60 + number(6..8)) * 1_000 + number(9..12))
}

#[tokio::test]
async fn messages_come_to_their_turns_while_a_timer_beats() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.prompt("main", "timer 1s: look around").await;
    daemon.wait_for("main", "timer_created").await;
    let mut sent = Vec::new();
    for number in 0..5 {
        sent.push(daemon.enqueue("main", &format!("news {number}")).await);
    }
    for message in &sent {
        assert_eq!(daemon.settled("main", message).await, "processed");
    }
    daemon.wait_for("main", "timer_fired").await;
    let ended = outcomes(&daemon.events("main").await);
    assert!(ended.iter().all(|(_, outcome)| outcome == "processed"), "{ended:?}");
}

#[test]
fn runnable_work_is_continued_until_it_is_held_for_all_to_see() {
    let world = check(
        r#"
        given prompt go; begin; round
        given answer | CreateWorkItem {"objective":"ship it"}; round; answer later
        > posture
        has_queued_input message_waiting [19]
        given begin; round; answer later
        > owed
        ContinueWork { work: WorkId(1) } in 5000 ms
        given clock +5000; continue work-1; begin; round; answer later
        > owed
        ContinueWork { work: WorkId(1) } in 10000 ms
        given clock +10000; continue work-1; begin; round; answer later
        > owed
        > posture
        blocked no_progress [48]
        "#,
    );
    assert_eq!(world.owed(), [], "a held item spins no more");
}

#[test]
fn a_timer_whose_tick_waits_adds_none() {
    check(
        "
        given timer 1000 every 1000 look; clock +1000; fire timer-1
        > clock +50000
        > fire timer-1
        ! there is nothing to do
        given begin; round; answer seen
        > owed
        FireTimer { timer: TimerId(1) }
        > fire timer-1
        timer_fired timer=timer-1 message=msg-2
        msg-2 enqueued next timer_tick trusted_system: look
        ",
    );
}

#[tokio::test]
async fn a_stop_goes_down_to_the_children_and_a_start_as_well() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.prompt("main", "spawn: wait long\n    $ sleep 1000\nwait task").await;
    daemon.wait_for("main", "agent_spawned").await;
    daemon.wait_for("main.c1", "task_started").await;
    daemon.wait_for("main", "wait_created").await;
    daemon.control("main", "stop").await;
    daemon.wait_for("main.c1", "agent_stopped").await;
    daemon.wait_for("main.c1", "task_exited").await;
    daemon.control("main", "start").await;
    daemon.wait_for("main.c1", "agent_started").await;
    // It goes on, and its handle has lived to hear of its end.
    let reported = daemon.wait_for("main", "task_exited").await;
    assert_eq!(reported.data["payload"]["status"], "completed");
    assert_eq!(of_kind(&daemon.events("main.c1").await, "turn_started").len(), 2);
}

#[tokio::test]
async fn a_child_that_has_ended_stays_readable() {
    let home = Home::new();
    let daemon = home.serve();
    daemon.prompt("main", "spawn: say hello\n    say: hello\nwait task").await;
    daemon.wait_for("main", "agent_spawned").await;
    daemon.wait_for("main.c1", "agent_archived").await;
    assert!(daemon.stop().success());
    let daemon = home.serve();
    assert_eq!(of_kind(&daemon.events("main.c1").await, "delegation_reported").len(), 1);
    assert!(daemon.is_whole("main.c1").await);
}

#[tokio::test]
async fn what_ran_before_a_kill_is_not_said_to_run_after_it() {
    let home = Home::new();
    let daemon = home.serve();
    let prompt = daemon.prompt("main", "$ sleep 1000").await;
    daemon.wait_for("main", "task_started").await;
    daemon.control("main", "stop").await;
    daemon.kill();
    let daemon = home.serve();
    daemon.wait_for("main", "task_exited").await;
    assert_eq!(daemon.settled("main", &prompt).await, "aborted");
    let status = daemon.status("main").await;
    assert_eq!(
        (&status["active_task_count"], &status["agent"]["current_run_id"]),
        (&0.into(), &serde_json::Value::Null)
    );
}

#[tokio::test]
async fn a_path_that_is_not_there_is_not_attached() {
    let daemon = Home::new().serve();
    let body = serde_json::json!({"path": "/there/is/no/such/folder"});
    let refused = daemon.client.post("/control/agents/main/workspace/attach", &body).await;
    assert!(matches!(refused, Err(ClientError::Refused(problem)) if problem.status == 400));
    assert_eq!(daemon.head("main").await, BORN, "nothing was recorded");
}

#[tokio::test]
async fn children_that_finish_together_are_all_heard() {
    let home = Home::new();
    let daemon = home.serve();
    let spawn = |number| format!("spawn: child {number}\n    say: report {number}\n");
    daemon.prompt("main", &(0..8).map(spawn).collect::<String>()).await;
    let mut heard = 0;
    let last = |event: &holon::client::StreamedEvent| {
        heard += usize::from(event.kind == "task_exited");
        heard == 8
    };
    daemon.wait("main", 0, last).await;
    let events = daemon.events("main").await;
    let results = of_kind(&events, "message_enqueued").into_iter().filter(|message| message["kind"] == "task_result");
    assert_eq!(results.count(), 8);
}
