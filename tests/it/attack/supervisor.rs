//! A command that runs as the daemon's own user, unconfined, and writes into its own run folder.

use crate::daemon::{Home, PATIENCE, holon_by};
use crate::process::{NAME, Place, end, wait_until_gone};
use holon::events::task::{Exit, Supervisor};
use holon::runtime::process::{Execution, Found};
use rustix::process::Pid;
use std::fs;
use std::process::Command;

/// An end that no supervisor has recorded.
const FORGED: &str = r#"{"v":1,"record":{"end":{"code":0},"duration_ms":1,"output":{"bytes":6,"head_bytes":6,"tail_bytes":0},"survivors":0}}"#;

/// The end of a command that has done `attack` in its run folder and killed its supervisor.
async fn after(attack: &str) -> Place {
    let place = Place::new();
    let cmd = format!("cd {} || exit; {attack}; kill -9 $PPID; sleep 1000", place.folder().display());
    let running = place.launch(&place.spec(&cmd));
    assert_eq!(end(&running).await.exit, Exit::Lost, "{attack}");
    assert!(matches!(place.find(), Found::Lost(_)), "{attack}");
    assert_eq!(place.left(), [], "{attack}");
    place
}

#[tokio::test]
async fn an_exit_that_a_command_wrote_itself_is_not_its_exit() {
    after(&format!("echo '{FORGED}' > exit.json; echo FORGED > output")).await;
}

#[tokio::test]
async fn an_exit_record_that_is_huge_a_link_or_a_pipe_leaves_the_end_unknown() {
    for attack in ["truncate -s 200M exit.json", "ln -s /proc/self/environ exit.json", "mkfifo exit.json"] {
        after(attack).await;
    }
}

/// A command that does `attack` in its run folder and goes on, and who supervises it.
async fn claimed(attack: &str) -> (Place, Supervisor) {
    let mut place = Place::new();
    let cmd = format!("cd {} || exit; {attack}; echo > $SIGNS; sleep 1000", place.folder().display());
    let running = place.launch(&place.spec(&cmd));
    assert!(running.begun().await);
    place.sign().await;
    let supervisor = running.supervisor().clone();
    (place, supervisor)
}

#[tokio::test]
async fn a_claim_that_is_not_the_supervisors_is_not_adopted_and_the_supervisor_is_ended() {
    let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", victim.id())).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let of_victim = format!(
        r#"{{"v":1,"record":{{"begun":{{"pid":{},"start_time":{},"boot_id":"{}","attempt":41}}}}}}"#,
        victim.id(),
        stat.split(' ').nth(21).unwrap(),
        boot.trim()
    );
    for attack in [
        &format!("rm claim.json; echo '{of_victim}' > claim.json"),
        "rm claim.json; truncate -s 200M claim.json",
        "ln -sf /proc/self/environ claim.json",
        "rm claim.json; mkfifo claim.json",
    ] {
        let (place, supervisor) = claimed(attack).await;
        assert!(matches!(place.find(), Found::Lost(_)), "{attack}");
        wait_until_gone(Pid::from_raw(supervisor.pid).unwrap());
        assert_eq!(place.left(), [], "{attack}");
        place.processes().stop(&place.execution()).unwrap();
    }
    assert!(victim.try_wait().unwrap().is_none(), "the victim lives");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

#[tokio::test]
async fn a_supervisor_that_the_ledger_names_is_found_whatever_became_of_its_claim() {
    for attack in ["rm claim.json", "rm claim.json; mkfifo claim.json", "rm -r ../main-task-3-41"] {
        let (place, supervisor) = claimed(attack).await;
        let execution = Execution { supervisor: Some(supervisor), ..place.execution() };
        let Found::Running(running) = place.processes().find(&execution).unwrap() else { panic!("{attack}") };
        place.processes().stop(&execution).unwrap();
        tokio::time::timeout(PATIENCE, running.ended()).await.expect("in time").ok();
        assert_eq!(place.left(), [], "{attack}");
    }
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_can_be_ended_all_the_same() {
    let (place, supervisor) = claimed("kill -STOP $PPID").await;
    let execution = Execution { supervisor: Some(supervisor), ..place.execution() };
    let Found::Running(running) = place.processes().find(&execution).unwrap() else { panic!("not found") };
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Signal(15));
}

#[tokio::test]
async fn an_output_that_became_a_link_shows_nothing_of_its_target() {
    let place = Place::new();
    let secret = place.run_root().join("secret");
    fs::write(&secret, "precious").unwrap();
    let attack = format!("cd {}; ln -sf ../secret output; ln -sf ../secret tail", place.folder().display());
    let ended = end(&place.launch(&place.spec(&attack))).await;
    assert_eq!(ended.exit, Exit::Code(0));
    let shown = place.processes().output_so_far(NAME, 100).unwrap_err().to_string();
    assert!(shown.contains("symbolic link"), "{shown}");
    assert!(place.processes().output_file(NAME).is_err());
    assert_eq!(fs::read_to_string(secret).unwrap(), "precious");
}

#[tokio::test]
async fn input_is_not_written_through_a_link() {
    let mut place = Place::new();
    let victim = place.run_root().join("victim");
    fs::write(&victim, "precious").unwrap();
    let links = "ln -sf ../../victim input/text; ln -sf ../../victim input/end";
    let cmd = format!("cd {}; {links}; echo > $SIGNS; sleep 1000", place.folder().display());
    let running = place.launch(&holon::runtime::process::Spec { accepts_input: true, ..place.spec(&cmd) });
    place.sign().await;
    assert!(place.processes().give_input(NAME, 0, b"made by input").is_err());
    assert!(place.processes().end_input(NAME).is_err());
    assert_eq!(fs::read_to_string(victim).unwrap(), "precious");
    running.stop().unwrap();
    end(&running).await;
}

#[tokio::test]
async fn a_daemon_supervises_by_its_own_binary_after_it_was_replaced_and_removed() {
    let home = Home::new();
    let program = home.workspace().join("holon-of-this-release");
    fs::copy(env!("CARGO_BIN_EXE_holon"), &program).unwrap();
    let mut serve = holon_by(&program, &home.path(), &home.workspace());
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    let daemon = home.serve_by(serve);
    let runs = async |text: &str| {
        let message = daemon.prompt("main", &format!("$ echo {text}-$((1 + 1))")).await;
        let answer = daemon.answer("main", &message).await["text"].to_string();
        assert!(answer.contains(&format!("{text}-2")), "{answer}");
    };
    let other = home.workspace().join("another-release");
    fs::write(&other, "#!/bin/sh\nexit 1\n").unwrap();
    fs::rename(&other, &program).unwrap();
    runs("replaced").await;
    fs::remove_file(&program).unwrap();
    runs("removed").await;
}
