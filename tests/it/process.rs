//! Executions with real processes. What a test waits for says so itself: through a pipe, or by ending.

use crate::daemon::peak_kib;
use holon::events::task::Exit;
use holon::runtime::process::{Ended, Execution, Found, InputError, Processes, RunKey, Running, Spec, TreeLimits};
use holon::words::id::EventSeq;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getsid, kill_process, pidfd_open};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

const HOLON: &str = env!("CARGO_BIN_EXE_holon");
pub const NAME: &str = "main-task-3-41";
/// Longer than any test should take, and still an end.
const PATIENCE: Duration = Duration::from_secs(60);
const HOUR_MS: u64 = 60 * 60 * 1000;

/// A run root, and a pipe (`$SIGNS`) through which a command says how far it is.
pub struct Place {
    root: tempfile::TempDir,
    signs: pipe::Receiver,
    /// Bytes of all input that was given.
    given_bytes: Cell<u64>,
    key: RunKey,
}

impl Place {
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("run")).unwrap();
        let path = root.path().join("signs");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let signs = pipe::OpenOptions::new().read_write(true).open_receiver(path).unwrap();
        let run_root = root.path().join("run");
        let key = Processes::new(&run_root, Some(Path::new(HOLON))).unwrap().key(NAME);
        key.give(fs::File::create(root.path().join("key")).unwrap()).unwrap();
        Self { root, signs, given_bytes: Cell::new(0), key }
    }

    pub fn processes(&self) -> Processes {
        Processes::new(&self.run_root(), Some(Path::new(HOLON))).unwrap()
    }

    pub fn run_root(&self) -> PathBuf {
        self.root.path().join("run")
    }

    pub fn folder(&self) -> PathBuf {
        self.run_root().join(NAME)
    }

    /// Unlike any other place's, so that it marks this place's processes.
    fn agent(&self) -> String {
        self.root.path().file_name().unwrap().to_str().unwrap().to_owned()
    }

    pub fn spec(&self, cmd: &str) -> Spec {
        let signs = self.root.path().join("signs").to_str().unwrap().to_owned();
        let path = std::env::var("PATH").unwrap();
        let variables = [("HOLON_AGENT_ID", self.agent()), ("SIGNS", signs), ("PATH", path)];
        Spec {
            attempt: EventSeq(41),
            cmd: cmd.to_owned(),
            shell: None,
            login: false,
            workdir: self.root.path().to_owned(),
            environment: variables.map(|(name, value)| (name.to_owned(), value)).into(),
            accepts_input: false,
            output_bytes_max: 1024 * 1024,
            grace_ms: HOUR_MS,
            limits: TreeLimits::default(),
        }
    }

    fn give(&self, bytes: &[u8]) {
        let offset = self.given_bytes.replace(self.given_bytes.get() + bytes.len() as u64);
        self.processes().give_input(NAME, offset, bytes).unwrap();
    }

    pub fn launch(&self, spec: &Spec) -> Running {
        self.processes().launch(NAME, spec, &self.key).unwrap()
    }

    /// The execution as the ledger knows it before its supervisor is recorded.
    pub fn execution(&self) -> Execution {
        Execution { name: NAME.to_owned(), signer: Some(self.key.signer()), supervisor: None }
    }

    /// What another daemon finds.
    pub fn find(&self) -> Found {
        self.processes().find(&self.execution()).unwrap()
    }

    /// `holon supervise` as a daemon that died meanwhile has started it.
    fn supervise(&self) -> Command {
        let mut command = Command::new(HOLON);
        command.arg("supervise").arg(self.folder()).stdin(fs::File::open(self.root.path().join("key")).unwrap());
        command
    }

    async fn run(&self, cmd: &str) -> Ended {
        end(&self.launch(&self.spec(cmd))).await
    }

    /// Waits until the command has written one byte to `$SIGNS`.
    pub async fn sign(&mut self) {
        in_time(self.signs.read_u8()).await.unwrap();
    }

    fn claim(&self) -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(self.folder().join("claim.json")).unwrap()).unwrap()
    }

    fn supervisor(&self) -> Pid {
        let pid = self.claim()["record"]["begun"]["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    fn output(&self) -> String {
        fs::read_to_string(self.folder().join("output")).unwrap()
    }

    /// The processes that this place's commands have left.
    pub fn left(&self) -> Vec<Pid> {
        let marker = format!("HOLON_AGENT_ID={}", self.agent());
        let marked = |pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
        };
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        pids.filter(marked).filter_map(Pid::from_raw).collect()
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

pub async fn end(running: &Running) -> Ended {
    in_time(running.ended()).await.unwrap()
}

pub fn wait_until_gone(pid: Pid) {
    if let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) {
        let mut watched = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut watched, PollTimeout::try_from(PATIENCE).unwrap()), Ok(1));
    }
}

fn found_running(found: Found) -> Running {
    let Found::Running(running) = found else { panic!("{found:?}") };
    running
}

fn found_ended(found: Found) -> Ended {
    let Found::Ended(ended) = found else { panic!("{found:?}") };
    ended
}

#[tokio::test]
async fn the_exit_code_and_the_output_in_its_order_are_kept() {
    let place = Place::new();
    let ended = place.run("echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!((&ended.exit, ended.output_bytes, ended.cut), (&Exit::Code(3), 14, false));
    assert_eq!(ended.output, place.folder().join("output"));
    assert_eq!(place.output(), "one\ntwo\nthree\n");
    assert_eq!((ended.survivors, ended.duration_ms.is_some()), (0, true));
}

#[tokio::test]
async fn a_signal_is_recorded_as_such() {
    assert_eq!(Place::new().run("kill -9 $$").await.exit, Exit::Signal(9));
    assert_eq!(Place::new().run("kill -40 $$").await.exit, Exit::Signal(40));
}

#[tokio::test]
async fn the_chosen_shell_reads_the_command() {
    let place = Place::new();
    let shell = Some("/bin/bash".to_owned());
    let mut spec = Spec { shell, login: true, ..place.spec("shopt -q login_shell && echo $0") };
    spec.environment.insert("HOME".to_owned(), place.root.path().to_str().unwrap().to_owned());
    let ended = end(&place.launch(&spec)).await;
    assert_eq!((ended.exit, place.output().as_str()), (Exit::Code(0), "/bin/bash\n"));
}

#[tokio::test]
async fn output_beyond_its_bound_keeps_head_and_tail_in_little_memory() {
    let mut place = Place::new();
    let cmd = "echo first; head -c 10485760 /dev/zero | tr '\\0' x; echo last; echo > $SIGNS; read line";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    let supervisor = place.supervisor().as_raw_nonzero().get().cast_unsigned();
    assert!(peak_kib(supervisor) < 8 * 1024, "{} KiB", peak_kib(supervisor));
    place.give(b"\n");
    let ended = end(&running).await;
    assert_eq!((ended.output_bytes, ended.cut), (10 * 1024 * 1024 + 11, true));
    let output = place.output();
    assert!(output.starts_with("first\nxxx") && output.ends_with("xxx\nlast\n") || output.ends_with("xxxlast\n"));
    assert!(output.contains("\n[9437195 bytes left out]\n"));
    assert_eq!(output.len(), 1024 * 1024 + "\n[9437195 bytes left out]\n".len());
    let shown = place.processes().output_so_far(NAME, 100).unwrap();
    assert!(shown.cut && shown.text.len() <= 100 && shown.text.starts_with("first\n"), "{shown:?}");
    assert_eq!(shown.bytes, ended.output_bytes);
}

#[tokio::test]
async fn a_disk_that_refuses_stops_the_output_and_not_the_command() {
    let place = Place::new();
    let program = place.root.path().join("holon-on-a-full-disk");
    // Another process writes it: a script that we had open could not be run while a sibling test is forking.
    let write = "printf '#!/bin/sh\nulimit -f 64\nexec %s \"$@\" 2>/dev/full\n' $0 > $1 && chmod +x $1";
    assert!(Command::new("/bin/sh").args(["-c", write, HOLON]).arg(&program).status().unwrap().success());
    let processes = Processes::new(&place.run_root(), Some(&program)).unwrap();
    let running = processes.launch(NAME, &place.spec("head -c 1000000 /dev/zero; exit 6"), &place.key).unwrap();
    let ended = end(&running).await;
    assert_eq!((ended.exit, ended.output_bytes, ended.cut), (Exit::Code(6), 1_000_000, true));
    assert_eq!(processes.output_so_far(NAME, 100).unwrap().bytes, 1_000_000);
}

#[tokio::test]
async fn output_is_shown_while_the_command_runs() {
    let mut place = Place::new();
    // More than the pipe holds: when the last of it is in the pipe, the first of it is in the file.
    let cmd = "echo started; head -c 200000 /dev/zero | tr '\\0' x; echo > $SIGNS; read line";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    let shown = place.processes().output_so_far(NAME, 100).unwrap();
    assert!(shown.text.starts_with("started\nxxx") && shown.cut && shown.bytes > 100_000, "{shown:?}");
    place.give(b"\n");
    end(&running).await;
    assert_eq!(place.processes().output_so_far(NAME, 100).unwrap().bytes, 200_008);
}

#[tokio::test]
async fn a_stop_asks_first() {
    let mut place = Place::new();
    let cmd = "trap 'echo asked; exit 7' TERM; echo > $SIGNS; read line";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Code(7));
    assert_eq!(place.output(), "asked\n");
    running.stop().unwrap();
}

#[tokio::test]
async fn a_command_that_does_not_listen_is_killed_after_the_grace() {
    let mut place = Place::new();
    let deaf = place.spec("trap '' TERM; echo > $SIGNS; while :; do sleep 1000; done");
    let running = place.launch(&Spec { grace_ms: 50, ..deaf });
    place.sign().await;
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Signal(9));
    assert_eq!(place.left(), []);
}

#[tokio::test]
async fn a_second_stop_kills_at_once() {
    let mut place = Place::new();
    let cmd = "trap 'echo > $SIGNS' TERM; echo > $SIGNS; while :; do read line; done";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    running.stop().unwrap();
    place.sign().await;
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Signal(9));
    assert_eq!(place.left(), []);
}

#[tokio::test]
async fn no_descendant_outlives_the_command() {
    let place = Place::new();
    let cmd = "setsid sh -c 'setsid sleep 1000 & trap \"\" TERM; (trap \"\" TERM; sleep 1000) & echo > $SIGNS; wait' &
        read line < $SIGNS; echo done";
    let ended = end(&place.launch(&Spec { grace_ms: 50, ..place.spec(cmd) })).await;
    assert_eq!((&ended.exit, ended.survivors), (&Exit::Code(0), 0));
    assert_eq!(place.output(), "done\n");
    assert_eq!(place.left(), []);
}

#[tokio::test]
async fn the_next_daemon_finds_what_runs_and_learns_its_end() {
    let mut place = Place::new();
    let cmd = "echo > $SIGNS; read first; echo > $SIGNS; read second; echo $first-$second; exit 5";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    place.give(b"one\n");
    place.sign().await;
    std::mem::forget(running);

    let again = found_running(place.find());
    place.give(b"two\n");
    let ended = end(&again).await;
    assert_eq!((&ended.exit, place.output().as_str()), (&Exit::Code(5), "one-two\n"));
    assert!(matches!(place.processes().give_input(NAME, 8, b"three\n"), Err(InputError::Ended)));
    assert_eq!(end(&again).await, ended);
    assert_eq!(found_ended(place.find()), ended);
}

#[tokio::test]
async fn a_launcher_that_is_killed_leaves_the_command_running() {
    let mut place = Place::new();
    let spec = Spec { accepts_input: true, ..place.spec("echo > $SIGNS; read line; exit 8") };
    let prepare = Processes::new(&place.run_root(), Some(Path::new("/bin/true"))).unwrap();
    drop(prepare.launch(NAME, &spec, &place.key).unwrap());
    let launch_and_die = "\"$0\" supervise \"$1\" < \"$2\" & kill -9 $$";
    let mut launcher = Command::new("/bin/sh");
    launcher.args(["-c", launch_and_die, HOLON]).arg(place.folder()).arg(place.root.path().join("key"));
    let launcher = launcher.status().unwrap();
    assert!(!launcher.success());
    place.sign().await;
    let running = found_running(place.find());
    place.give(b"\n");
    assert_eq!(end(&running).await.exit, Exit::Code(8));
}

#[tokio::test]
async fn an_adopted_command_can_be_stopped() {
    let mut place = Place::new();
    drop(place.launch(&place.spec("echo > $SIGNS; sleep 1000")));
    place.sign().await;
    let running = found_running(place.find());
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Signal(15));
}

#[tokio::test]
async fn a_hang_up_and_an_interrupt_do_nothing() {
    let mut place = Place::new();
    let running = place.launch(&Spec { accepts_input: true, ..place.spec("echo > $SIGNS; read line; exit 4") });
    place.sign().await;
    kill_process(place.supervisor(), Signal::HUP).unwrap();
    kill_process(place.supervisor(), Signal::INT).unwrap();
    place.give(b"\n");
    assert_eq!(end(&running).await.exit, Exit::Code(4));
}

#[tokio::test]
async fn a_killed_supervisor_takes_its_command_along_and_the_end_is_unknown() {
    let mut place = Place::new();
    let running = place.launch(&place.spec("echo some; sleep 1000 & echo > $SIGNS; sleep 1001; echo more"));
    place.sign().await;
    let left = place.left();
    assert!(left.len() >= 2, "{left:?}");
    kill_process(place.supervisor(), Signal::KILL).unwrap();
    let ended = end(&running).await;
    assert_eq!((&ended.exit, ended.duration_ms), (&Exit::Lost, None));
    let Found::Lost(again) = place.find() else { panic!("not lost") };
    assert_eq!(again, ended);
    left.into_iter().for_each(wait_until_gone);
    assert_eq!(place.left(), []);
}

#[tokio::test]
async fn a_run_that_was_given_up_cannot_begin_later() {
    let place = Place::new();
    let late = Processes::new(&place.run_root(), Some(Path::new("/bin/true"))).unwrap();
    let running = late.launch(NAME, &place.spec("echo ran"), &place.key).unwrap();
    assert!(matches!(place.find(), Found::NeverBegan));
    let status = place.supervise().status().unwrap();
    assert!(status.success());
    assert!(!place.folder().join("output").exists() && !place.folder().join("exit.json").exists());
    assert!(matches!(place.find(), Found::NeverBegan));
    assert!(matches!(end(&running).await.exit, Exit::NotStarted(_)));
}

#[tokio::test]
async fn a_run_is_executed_once() {
    let place = Place::new();
    let ended = place.run("echo ran").await;
    assert!(place.supervise().status().unwrap().success());
    assert_eq!(found_ended(place.find()), ended);
    assert_eq!(place.output(), "ran\n");
    assert!(place.processes().launch(NAME, &place.spec("echo again"), &place.key).is_err());
}

#[tokio::test]
async fn a_supervisor_that_fails_says_why() {
    let place = Place::new();
    let failing = Processes::new(&place.run_root(), Some(Path::new("/bin/cat"))).unwrap();
    let running = failing.launch(NAME, &place.spec("echo ran"), &place.key).unwrap();
    let Exit::NotStarted(reason) = end(&running).await.exit else { panic!("started") };
    assert!(reason.contains("supervise"), "{reason}");
}

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let place = Place::new();
    let environment = [("PATH", "/usr/bin:/bin"), ("HOLON_AGENT_ID", "main")];
    let environment: BTreeMap<_, _> = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    end(&place.launch(&Spec { environment, ..place.spec("cat /proc/$$/environ; :") })).await;
    assert_eq!(place.output(), "HOLON_AGENT_ID=main\0PATH=/usr/bin:/bin\0");
}

#[tokio::test]
async fn nothing_but_its_three_streams_is_open() {
    let place = Place::new();
    place.run("for each in /proc/$$/fd/*; do echo ${each##*/}; done").await;
    // The fourth is the folder that the shell lists.
    assert_eq!(place.output(), "0\n1\n2\n3\n");
}

#[tokio::test]
async fn a_supervisor_has_nothing_of_the_daemon() {
    let mut place = Place::new();
    let running = place.launch(&Spec { accepts_input: true, ..place.spec("echo > $SIGNS; read line") });
    place.sign().await;
    let supervisor = place.supervisor();
    assert_eq!(fs::read(format!("/proc/{}/environ", supervisor.as_raw_nonzero())).unwrap(), b"");
    assert_eq!(getsid(Some(supervisor)).unwrap(), supervisor);
    place.give(b"\n");
    end(&running).await;
}

#[tokio::test]
async fn a_command_that_is_not_started_says_why() {
    let reason = async |change: fn(&mut Spec)| {
        let place = Place::new();
        let mut spec = place.spec("echo ran");
        change(&mut spec);
        let ended = end(&place.launch(&spec)).await;
        assert_eq!(found_ended(place.find()), ended);
        let Exit::NotStarted(reason) = ended.exit else { panic!("{ended:?}") };
        reason
    };
    let relative = reason(|spec| spec.workdir = PathBuf::from("here")).await;
    assert_eq!(relative, "the working folder here is not an absolute path");
    let missing = reason(|spec| spec.workdir = PathBuf::from("/not/there")).await;
    assert!(missing.starts_with("the working folder /not/there: No such file"), "{missing}");
    let shell = reason(|spec| spec.shell = Some("/not/a/shell".to_owned())).await;
    assert!(shell.starts_with("the shell /not/a/shell: No such file"), "{shell}");
}

#[tokio::test]
async fn input_is_refused_unless_the_command_accepts_it() {
    let mut place = Place::new();
    let running = place.launch(&place.spec("read line; echo \"got ${line:-nothing}\"; echo > $SIGNS; sleep 0.2"));
    place.sign().await;
    assert!(matches!(place.processes().give_input(NAME, 0, b"x"), Err(InputError::NotAccepted)));
    end(&running).await;
    assert_eq!(place.output(), "got nothing\n");
}

#[tokio::test]
async fn input_that_nobody_reads_holds_nothing_up() {
    let mut place = Place::new();
    let running = place.launch(&Spec { accepts_input: true, ..place.spec("echo > $SIGNS; sleep 1000") });
    place.sign().await;
    place.give(&[b'x'; 1024 * 1024]);
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Signal(15));
}

#[tokio::test]
async fn input_reaches_the_command_once_and_in_its_order_whoever_gives_it() {
    let mut place = Place::new();
    let spec = place.spec("echo > $SIGNS; cat; echo over");
    let running = place.launch(&Spec { accepts_input: true, output_bytes_max: 2 * 1024 * 1024, ..spec });
    place.sign().await;
    place.give(b"one\n");
    std::mem::forget(running);
    let again = found_running(place.find());
    let processes = place.processes();
    // A daemon that died in the middle of a piece, and the next, which gives it again.
    processes.give_input(NAME, 4, b"tw").unwrap();
    processes.give_input(NAME, 4, b"two\n").unwrap();
    let long = "x".repeat(1024 * 1024);
    processes.give_input(NAME, 8, long.as_bytes()).unwrap();
    processes.end_input(NAME).unwrap();
    assert_eq!(end(&again).await.exit, Exit::Code(0));
    assert_eq!(place.output(), format!("one\ntwo\n{long}over\n"));
}

#[tokio::test]
async fn input_ends_when_the_command_is_to_end() {
    let mut place = Place::new();
    let cmd = "trap '' TERM; echo > $SIGNS; while read line; do :; done; echo no more";
    let running = place.launch(&Spec { accepts_input: true, ..place.spec(cmd) });
    place.sign().await;
    running.stop().unwrap();
    assert_eq!(end(&running).await.exit, Exit::Code(0));
    assert_eq!(place.output(), "no more\n");
}

#[tokio::test]
async fn a_run_that_has_not_begun_is_given_nothing() {
    let place = Place::new();
    let processes = place.processes();
    assert!(matches!(processes.give_input(NAME, 0, b"x"), Err(InputError::NotBegun)));
    let late = Processes::new(&place.run_root(), Some(Path::new("/bin/true"))).unwrap();
    drop(late.launch(NAME, &Spec { accepts_input: true, ..place.spec("cat") }, &place.key).unwrap());
    assert!(matches!(processes.give_input(NAME, 0, b"x"), Err(InputError::NotBegun)));
    assert!(matches!(place.find(), Found::NeverBegan));
    assert!(matches!(processes.end_input(NAME), Err(InputError::NotBegun)));
}

#[tokio::test]
async fn run_folders_are_listed_until_they_are_removed() {
    let place = Place::new();
    let processes = place.processes();
    let unknown = Execution { name: "main-task-1-1".into(), ..place.execution() };
    assert!(matches!(processes.find(&unknown).unwrap(), Found::NeverBegan));
    end(&processes.launch("main-task-1-2", &place.spec("true"), &place.key).unwrap()).await;
    end(&processes.launch("main-task-1-1", &place.spec("true"), &place.key).unwrap()).await;
    assert_eq!(processes.names().unwrap(), ["main-task-1-1", "main-task-1-2"]);
    processes.remove("main-task-1-1").unwrap();
    processes.remove("main-task-1-1").unwrap();
    assert_eq!(processes.names().unwrap(), ["main-task-1-2"]);
    assert_eq!(processes.output_so_far("main-task-1-1", 100).unwrap().bytes, 0);
}

#[tokio::test]
async fn a_command_that_is_stopped_before_its_launch_is_not_launched() {
    let place = Place::new();
    place.processes().stop(&place.execution()).unwrap();
    assert!(place.processes().launch(NAME, &place.spec("echo > $SIGNS"), &place.key).is_err());
    assert!(matches!(place.processes().find(&place.execution()), Ok(Found::NeverBegan)));
    place.processes().stop(&place.execution()).unwrap();
    place.processes().remove(NAME).unwrap();
}
