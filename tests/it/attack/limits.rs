//! Commands that multiply, take memory, or write files without end: each is ended within seconds and leaves nothing.
//!
//! By default a fork bomb doubles [`DOUBLINGS`] times and then rests, so that a limit that fails does not take the
//! machine down with it. `HOLON_TEST_ENDLESS_BOMBS=1 cargo test attack::limits -- --test-threads 1` lets them go on.

use crate::daemon::Home;
use crate::other_user::home_of_each_user;
use std::fs;
use std::time::{Duration, Instant};

/// 2,047 processes, where 100 are allowed.
const DOUBLINGS: u32 = 10;
const LIMITS: &str = "[commands]\nprocesses_max = 100\nmemory_bytes_max = 200000000\nfile_bytes_max = 1000000\n";

/// What the default agent is told of a command; as root and as an ordinary user.
async fn told(cmd: &str) -> Vec<String> {
    let mut told = Vec::new();
    for home in home_of_each_user() {
        let home = home.configured(LIMITS);
        let twice =
            "#!/bin/sh\n[ \"$1\" = 0 ] || for each in 1 2; do setsid \"$0\" $(($1 - 1)) & done; wait\nsleep 1000\n";
        fs::write(home.workspace().join("twice.sh"), twice).unwrap();
        fs::set_permissions(home.workspace().join("twice.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let daemon = home.serve();
        let began = Instant::now();
        let message = daemon.prompt("main", &format!("$ export {}; {cmd}", home.marker("bomb"))).await;
        told.push(daemon.answer("main", &message).await["text"].as_str().unwrap().to_owned());
        assert_eq!(left(&home), Vec::<String>::new());
        assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    }
    told
}

/// The processes that a home's bomb has left.
fn left(home: &Home) -> Vec<String> {
    let marker = home.marker("bomb");
    let is_marked = |pid: &String| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    };
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(is_marked).collect()
}

/// How often a bomb doubles; a number below zero is never counted down to zero.
fn doublings() -> String {
    let is_endless = std::env::var_os("HOLON_TEST_ENDLESS_BOMBS").is_some();
    if is_endless { "-1".to_owned() } else { DOUBLINGS.to_string() }
}

#[tokio::test]
async fn a_fork_bomb_ends_and_leaves_nothing() {
    let bomb = format!("b() {{ [ $1 = 0 ] || {{ b $(($1 - 1)) | b $(($1 - 1)) & }}; sleep 1000; }}; b {}", doublings());
    for told in told(&bomb).await {
        assert!(told.contains("it ran more than 100 processes at once"), "{told}");
    }
}

#[tokio::test]
async fn a_fork_bomb_that_leaves_its_session_ends_and_leaves_nothing() {
    for told in told(&format!("./twice.sh {}", doublings())).await {
        assert!(told.contains("it ran more than 100 processes at once"), "{told}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_much_memory_is_ended() {
    for told in told("head -c 4000000000 /dev/zero | tail").await {
        assert!(told.contains("its processes used more than 200000000 bytes of memory together"), "{told}");
    }
}

#[tokio::test]
async fn memory_that_processes_share_is_counted_once() {
    // Each of them has what the shell has read, and none a copy of its own.
    let share = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); for each in 1 2 3 4 5 6; do (sleep 2; :) & done; wait; echo shared";
    for told in told(share).await {
        assert!(told.contains("shared") && !told.contains("memory together"), "{told}");
    }
}

#[tokio::test]
async fn a_sparse_file_of_a_terabyte_is_refused() {
    for told in told("truncate -s 1T big; echo \"status $?\"; stat -c 'size %s' big").await {
        assert!(told.contains("size 0") && !told.contains("status 0"), "{told}");
    }
}
