//! The command line, used as a person or a script would.

use crate::daemon::{Daemon, Home};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

/// What a verb printed, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The data of a verb that did what it was asked, and had nothing else to say.
    #[track_caller]
    pub fn data(&self) -> &str {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{self:?}");
        &self.out
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(self.data()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A refusal: its code, nothing on stdout, an error and a hint on stderr.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert!(lines.first().is_some_and(|line| line.starts_with("error: ")), "{self:?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("hint: ") || code == 2), "{self:?}");
        assert!(words.iter().all(|word| self.err.contains(word)), "{words:?}: {self:?}");
    }
}

pub fn say(home: &Home, arguments: &[&str]) -> Said {
    let output = home.holon(arguments).output().expect("holon runs");
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

fn start(home: &Home, arguments: &[&str]) -> Child {
    home.holon(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("holon starts")
}

/// Waits for what a daemon is asked beside the verbs.
pub fn wait<T>(asked: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(asked)
}

fn events(daemon: &Daemon, agent: &str) -> u64 {
    wait(daemon.get(&format!("/agents/{agent}/ledger")))["event_seq"].as_u64().expect("a seq")
}

#[test]
fn agents_are_made_listed_stopped_and_started() {
    let home = Home::new();
    let _daemon = home.serve();
    assert_eq!(say(&home, &["agent", "create", "reviewer"]).data(), "reviewer is there\n");
    assert_eq!(say(&home, &["agent", "stop", "reviewer"]).data(), "reviewer is stopped\n");
    let list = say(&home, &["agent", "list"]);
    let lines: Vec<&str> = list.data().lines().collect();
    assert_eq!(
        lines,
        [
            "AGENT     POSTURE   REASON        PENDING  RUN",
            "main      idle      nothing_open  0",
            "reviewer  archived  stopped       0",
        ]
    );
    say(&home, &["prompt", "--agent", "reviewer", "hello"]).refused(1, &["stopped", "holon agent start"]);
    assert_eq!(say(&home, &["agent", "start", "reviewer"]).data(), "reviewer is started\n");
    assert_eq!(say(&home, &["agent", "stop"]).data(), "main is stopped\n", "the default agent is meant");

    let list = say(&home, &["--json", "agent", "list"]).json();
    assert_eq!(list[1]["identity"]["agent_id"], "reviewer");
    let created = say(&home, &["agent", "create", "other", "--json"]).json();
    assert_eq!(created["agent_id"], "other");
    let stopped = say(&home, &["agent", "stop", "other", "--json"]).json();
    assert_eq!(stopped, json!({"ok": true, "agent_id": "other", "action": "stop"}));
}

#[test]
fn every_agent_is_listed_however_many_there_are() {
    let home = Home::new();
    let daemon = home.serve();
    wait(async {
        let creations = (0..1_050).map(|number| {
            let daemon = &daemon;
            async move { daemon.post(&format!("/control/agents/a-{number:04}/create"), json!({})).await }
        });
        futures::future::join_all(creations).await;
    });
    let list = say(&home, &["agent", "list"]);
    let names: Vec<&str> = list.data().lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.len(), 1_051);
    assert!(names.is_sorted());
    assert_eq!(say(&home, &["agent", "list", "--json"]).json().as_array().map(Vec::len), Some(1_051));
}

#[test]
fn a_prompt_is_left_and_a_run_is_waited_for() {
    let home = Home::new();
    let daemon = home.serve();
    assert_eq!(say(&home, &["prompt", "say: later"]).data(), "msg-1 of main waits\n");
    // A prompt that comes during a run joins it.
    wait(daemon.answer("main", "msg-1"));
    assert_eq!(say(&home, &["run", "say: hello"]).data(), "hello\n");
    say(&home, &["run", "--model", "local/other", "x"])
        .refused(1, &["--model is not for a server that runs", "--home"]);
    let ran = say(&home, &["run", "--json", "$ echo ran"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told: Value = serde_json::from_str(&ran.out).expect("only JSON on stdout");
    for name in ["agent_id", "message_id", "run_id"] {
        assert!(told[name].is_string(), "{told}");
    }
    assert_eq!((&told["outcome"], &told["brief"]["kind"]), (&json!("processed"), &json!("result")));
    assert!(told["brief"]["text"].as_str().unwrap().contains("ran"), "{told}");
    assert!(ran.err.contains("round 1: "), "progress is no data: {ran:?}");

    std::fs::write(home.workspace().join("job.txt"), "say: from a file\n").unwrap();
    assert_eq!(say(&home, &["run", "job.txt"]).data(), "from a file\n");
    let mut child = home.holon(&["run", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"say: from a pipe\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"from a pipe\n"[..]));

    let prompted = say(&home, &["prompt", "--json", "say: x"]).json();
    assert_eq!((&prompted["ok"], &prompted["agent_id"]), (&json!(true), &json!("main")));
    assert_eq!(daemon.stop().code(), Some(0), "told to stop, it stops in peace");
}

#[test]
fn a_run_without_a_daemon_starts_the_runtime_for_itself() {
    let home = Home::new();
    assert_eq!(say(&home, &["run", "say: alone"]).data(), "alone\n");
    assert!(!home.path().join("holon.sock").exists(), "nothing is left running");
    let daemon = home.serve();
    assert!(events(&daemon, "main") > 5, "what it did is on the record");
}

#[test]
fn a_run_that_fails_says_why_and_exits_with_one() {
    let home = Home::new().argument("--model").argument("openai/none");
    let _daemon = home.serve();
    let run = say(&home, &["run", "hello"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("run-1 failed") && run.out.contains("hint: "), "the brief is the answer: {run:?}");
    let told = say(&home, &["run", "--json", "hello"]);
    assert_eq!(told.code, Some(1));
    let told: Value = serde_json::from_str(&told.out).expect("JSON");
    assert_eq!(told["brief"]["kind"], "failure");
}

#[test]
fn a_status_says_what_an_agent_does_and_what_that_rests_on() {
    let home = Home::new();
    nix::unistd::mkfifo(&home.workspace().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let daemon = home.serve();
    let at_rest = say(&home, &["status"]);
    assert_eq!(
        at_rest.data(),
        "agent             main\n\
        posture           idle (nothing_open)\n\
        messages waiting  0\n\
        tasks open        0\n\
        model             builtin/runbook\n\
        events            3\n"
    );
    wait(async {
        daemon.prompt("main", "$ cat gate").await;
        daemon.wait("main", 0, |event| event.kind == "task_started").await;
    });
    let busy = say(&home, &["status", "--agent", "main"]);
    for line in [
        "posture           active_turn (turn_running)",
        "rests on events   ",
        "run               run-1",
        "tasks open        1",
    ] {
        assert!(busy.data().contains(line), "{line}: {busy:?}");
    }
    let list = say(&home, &["agent", "list"]);
    assert_eq!(list.data().lines().nth(1), Some("main   active_turn  turn_running  0        run-1"));
    say(&home, &["agent", "abort", "--run-id", "run-9"]).refused(1, &["run-9", "run_id"]);
    assert_eq!(say(&home, &["agent", "abort", "--idle"]).data(), "run-1 of main is aborted\n");
    say(&home, &["agent", "abort"]).refused(1, &["no run is under way"]);
    assert_eq!(say(&home, &["status", "--json"]).json()["identity"]["agent_id"], "main");
}

#[test]
fn events_are_shown_from_anywhere_and_as_many_as_asked_for() {
    let home = Home::new();
    let daemon = home.serve();
    wait(async {
        for number in 0..700 {
            let action = if number % 2 == 0 { "stop" } else { "start" };
            daemon.post("/control/agents/main/control", json!({"action": action})).await;
        }
    });
    let seqs = |arguments: &[&str]| -> Vec<u64> {
        let said = say(&home, &[&["events"], arguments].concat());
        said.data().lines().map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect()
    };
    assert_eq!(seqs(&["--limit", "3"]), [701, 702, 703], "the last ones, in order");
    assert_eq!(seqs(&[]), (576..=703).collect::<Vec<_>>());
    assert_eq!(seqs(&["--limit", "600"]), (104..=703).collect::<Vec<_>>());
    assert_eq!(seqs(&["--limit", "9999"]), (1..=703).collect::<Vec<_>>());
    assert_eq!(seqs(&["--after", "0"]), (1..=703).collect::<Vec<_>>());
    assert_eq!(seqs(&["--after", "10", "--limit", "2"]), [11, 12]);
    assert_eq!(seqs(&["--after", "703"]), [0; 0]);
    assert_eq!(seqs(&["--limit", "0"]), [0; 0]);
    say(&home, &["events", "--after", "704"]).refused(1, &["703"]);

    let raw = say(&home, &["events", "--json", "--projection", "local_debug", "--limit", "2"]);
    let lines: Vec<Value> =
        raw.data().lines().map(|line| serde_json::from_str(line).expect("one event a line")).collect();
    assert_eq!(lines[1]["prev_hash"], lines[0]["hash"]);
    let first = say(&home, &["events", "--after", "0", "--limit", "1"]);
    assert!(first.data().starts_with("     1  20") && first.data().contains("  agent_created          {"), "{first:?}");
}

#[test]
fn following_goes_on_until_the_limit_or_the_servers_end() {
    let home = Home::new();
    let daemon = home.serve();
    let mut follower = start(&home, &["events", "--follow", "--after", "2", "--limit", "2"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("workspace_entered"));
    assert_eq!(say(&home, &["agent", "stop"]).code, Some(0));
    assert!(lines.next().unwrap().unwrap().contains("agent_stopped"), "as it is recorded");
    assert!(lines.next().is_none());
    assert_eq!(follower.wait().unwrap().code(), Some(0));

    let mut follower = start(&home, &["events", "-f", "--after", "3"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("agent_stopped"));
    assert!(daemon.stop().success());
    assert_eq!(follower.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("after event 4") && said.contains("hint: go on with --after 4"), "{said}");
}

#[test]
fn a_reader_that_has_enough_ends_the_verb_quietly() {
    let home = Home::new();
    let _daemon = home.serve();
    let mut follower = start(&home, &["events", "--follow", "--after", "0"]);
    let mut first = [0; 1];
    let mut out = follower.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    assert_eq!(say(&home, &["agent", "stop"]).code, Some(0));
    assert_eq!(follower.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    follower.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn without_a_server_every_verb_says_how_to_reach_one() {
    let home = Home::new();
    for arguments in [
        &["status"][..],
        &["prompt", "x"],
        &["events"],
        &["events", "--follow"],
        &["agent", "list"],
        &["agent", "create", "a"],
        &["agent", "start"],
        &["agent", "stop"],
        &["agent", "abort"],
        &["agent", "archive", "a"],
        &["work", "list"],
        &["work", "create", "x"],
        &["task", "list"],
        &["task", "stop", "task-1"],
        &["timer", "create", "--after-ms", "1"],
        &["wait", "list"],
        &["trigger", "create", "x"],
        &["workspace", "list"],
        &["--json", "status"],
    ] {
        say(&home, arguments).refused(3, &["cannot reach holon at", "holon serve"]);
    }
    // Nobody listens on a port that was just free.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    say(&home, &["--server", &format!("http://{free}"), "status"]).refused(3, &["cannot reach", &free.to_string()]);
    say(&home, &["--server", "no url", "status"]).refused(2, &["--server is not a URL"]);
    std::fs::create_dir_all(home.path()).unwrap();
    std::os::unix::net::UnixListener::bind(home.path().join("holon.sock")).unwrap();
    say(&home, &["status"]).refused(3, &["holon serve"]);
}

const RIGHT: &str = "the-right-control-token";
const WRONG: &str = "the-wrong-control-token";

#[test]
fn a_wrong_token_is_a_refusal_that_says_what_to_do() {
    let home = Home::new().environment("HOLON_CONTROL_TOKEN", RIGHT);
    let daemon = home.serve();
    let elsewhere = Home::new();
    let file = |token: &str| {
        let path = elsewhere.workspace().join(token);
        std::fs::write(&path, format!("{token}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file(RIGHT), file(WRONG));
    let verbs: [&[&str]; 3] = [&["status"], &["prompt", "x"], &["events", "--follow"]];
    for arguments in verbs {
        let with = |token: &[&str]| say(&elsewhere, &[&["--server", daemon.url.as_str()], token, arguments].concat());
        // The default agent is no secret; what it does is.
        with(&[]).refused(1, &["token is missing or wrong", "HOLON_CONTROL_TOKEN"]);
        with(&["--token-file", &wrong]).refused(1, &["token is missing or wrong", "--token-file"]);
        if arguments.len() < 2 || arguments[0] == "prompt" {
            assert_eq!(with(&["--token-file", &right]).code, Some(0));
            assert_eq!(with(&["--token", RIGHT]).code, Some(0));
        }
    }
    say(&elsewhere, &["--server", &daemon.url, "--token-file", "/no/such/file", "status"])
        .refused(2, &["/no/such/file"]);
}

#[test]
fn a_token_comes_by_flag_else_environment_and_by_one_flag_only() {
    let right = Home::new().environment("HOLON_CONTROL_TOKEN", RIGHT);
    let daemon = right.serve();
    let file = |home: &Home, token: &str| {
        let path = home.workspace().join(token);
        std::fs::write(&path, token).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let wrong = Home::new().environment("HOLON_CONTROL_TOKEN", WRONG);
    let wrong_file = Home::new();
    let named = file(&wrong_file, WRONG);
    let wrong_file = wrong_file.environment("HOLON_TOKEN_FILE", &named);
    let ask = |home: &Home, flags: &[&str]| say(home, &[&["--server", &daemon.url, "status"], flags].concat());
    let path = file(&right, RIGHT);
    for home in [&wrong, &wrong_file] {
        ask(home, &[]).refused(1, &["token is missing or wrong"]);
        for flags in [["--token-file", &path], ["--token", RIGHT]] {
            assert_eq!(ask(home, &flags).code, Some(0), "{flags:?}");
        }
        let both = ask(home, &["--token", RIGHT, "--token-file", &path]);
        assert!(both.code == Some(2) && both.err.contains("--token and --token-file"), "{both:?}");
    }
    let both = right.environment("HOLON_TOKEN_FILE", &named);
    assert_eq!(ask(&both, &[]).code, Some(0), "a variable that holds the token is heard first");
    let shown = say(&both, &["config", "show", "--token-file", &path]);
    assert!(
        shown.data().lines().any(|line| line.starts_with("control_token ") && line.ends_with(" flag")),
        "{shown:?}"
    );
}

#[test]
fn a_mistake_in_the_command_line_is_told_before_anything_is_asked() {
    let home = Home::new();
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["prompt"],
        &["agent", "create"],
        &["agent", "create", "a/b"],
        &["agent", "create", "main.c1"],
        &["agent", "create", "../../healthz"],
        &["agent", "stop", "a b"],
        &["agent", "archive"],
        &["work", "show", "task-1"],
        &["work", "create"],
        &["work", "update", "work-1", "--recheck-after-ms", "5"],
        &["task", "stop", "1"],
        &["task", "output", "task-1", "--offset", "-1"],
        &["timer", "create"],
        &["timer", "create", "--after-ms", "soon"],
        &["wait", "cancel", "wait-0"],
        &["trigger", "create", "x", "--mode", "fax"],
        &["workspace", "detach", "agent_home"],
        &["status", "--agent", "x?y"],
        &["events", "--after", "-1"],
        &["events", "--limit", "many"],
        &["events", "--projection", "all"],
        &["run", "--agent", "", "x"],
        &["serve", "--frob"],
    ] {
        let said = say(&home, arguments);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{arguments:?}: {said:?}");
        assert!(said.err.contains("Usage") || said.err.contains("--help"), "{arguments:?}: {said:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["agent", "--help"], &["help", "run"]] {
        assert_eq!(say(&home, arguments).code, Some(0), "{arguments:?}");
    }
    assert!(!home.path().exists(), "nothing was made");
}

#[test]
fn unknown_agents_are_refused_with_a_way_to_find_the_known_ones() {
    let home = Home::new();
    let _daemon = home.serve();
    for arguments in [
        &["status", "--agent", "nobody"][..],
        &["prompt", "--agent", "nobody", "x"],
        &["run", "--agent", "nobody", "x"],
        &["events", "--agent", "nobody"],
        &["events", "--follow", "--agent", "nobody"],
        &["agent", "start", "nobody"],
        &["agent", "abort", "nobody"],
        &["agent", "archive", "nobody"],
        &["work", "list", "--agent", "nobody"],
        &["task", "show", "task-1", "--agent", "nobody"],
        &["timer", "create", "--after-ms", "5", "--agent", "nobody"],
        &["workspace", "exit", "--agent", "nobody"],
    ] {
        say(&home, arguments).refused(1, &["there is no such agent", "agents"]);
    }
}

#[test]
fn a_home_is_served_once_and_an_address_too() {
    let home = Home::new();
    let daemon = home.serve();
    say(&home, &["serve", "--listen", "127.0.0.1:0"]).refused(1, &["in use by another holon", "holon status"]);
    let other = Home::new();
    let address = daemon.url.trim_start_matches("http://");
    say(&other, &["serve", "--listen", address]).refused(1, &["cannot listen on", "--listen"]);
    say(&other, &["serve", "--listen", "nonsense"]).refused(1, &["cannot listen on nonsense", "--listen"]);
    say(&other, &["serve", "--workspace", "/no/such/folder"]).refused(2, &["/no/such/folder"]);
    say(&other, &["serve", "--default-agent", "a b"]).refused(2, &["default agent"]);
    let config = other.path().join("config.toml");
    std::fs::write(&config, "modle = \"x\"\n").unwrap();
    std::fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    say(&other, &["serve"]).refused(2, &["config.toml", "modle"]);
    say(&other, &["status"]).refused(2, &["config.toml", "modle"]);
}

#[test]
fn a_server_that_is_ready_says_where_in_one_line() {
    let home = Home::new();
    let mut child = start(&home, &["--json", "serve", "--listen", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(told["ok"], true);
    assert_eq!(told["socket"], json!(home.path().join("holon.sock")));
    assert!(told["listen"].as_str().unwrap().starts_with("127.0.0.1:"), "{told}");
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "interrupted, it stops in peace");
}
