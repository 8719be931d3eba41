//! The main job, end to end: real work, a crash in the middle, and a history that is whole.

use crate::daemon::Home;

#[tokio::test]
async fn a_command_outlives_a_kill_and_runs_once() {
    let home = Home::new();
    let daemon = home.serve();
    let fifo = home.workspace().join("go");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let message = daemon.prompt("main", "$ echo ran >> ran.txt; cat go; echo after\nsay: done").await;
    let started = daemon.wait("main", 0, |event| event.kind == "task_started").await;
    let seen = daemon.events("main").await;
    daemon.kill();

    let daemon = home.serve();
    std::fs::write(&fifo, "through the pipe\n").unwrap();
    let answer = daemon.answer("main", &message).await;
    assert_eq!(answer["kind"], "result");
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("through the pipe") && text.contains("after"), "{text}");
    assert_eq!(std::fs::read_to_string(home.workspace().join("ran.txt")).unwrap(), "ran\n");

    let events = daemon.events("main").await;
    assert_eq!(events[..seen.len()], seen[..], "history does not change");
    assert!(seen.len() as u64 >= started.seq);
    assert_eq!(events.iter().filter(|event| event["type"] == "task_started").count(), 1);
    assert!(daemon.is_whole("main").await);
}
