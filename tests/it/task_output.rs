//! Output of commands: read in pages and waited for, and never in memory whole.

use crate::daemon::{Daemon, Home, of_kind, peak_kib};
use serde_json::{Value, json};
use std::fs;
use std::future::Future;
use std::time::{Duration, Instant};

/// `HOLON_TEST_ALL` asks for as much as a command might really write.
fn large_bytes() -> u64 {
    if std::env::var_os("HOLON_TEST_ALL").is_some() { 1024 * 1024 * 1024 } else { 72 * 1024 * 1024 }
}

fn exec(arguments: Value) -> Value {
    json!({"tool": "ExecCommand", "arguments": arguments})
}

fn output(arguments: Value) -> Value {
    let mut call = json!({"tool": "TaskOutput", "arguments": arguments});
    call["arguments"]["task_id"] = json!("task-1");
    call
}

fn page(offset: u64, tokens: u32) -> Value {
    output(json!({"offset": offset, "max_output_tokens": tokens}))
}

/// The results of an agent's calls, in their order.
async fn results(daemon: &Daemon) -> Vec<Value> {
    let events = daemon.events("main").await;
    let entries = of_kind(&events, "turn_entry").into_iter();
    entries.filter_map(|payload| payload["entry"]["tool_result"].get("result").cloned()).collect()
}

/// What a page showed: its text, where the next one begins, how much there is, and where the task stood.
fn shown(result: &Value) -> (String, u64, u64, String) {
    let text = result["viewed"]["text"]["inline"].as_str().unwrap_or_else(|| panic!("a page: {result}"));
    let page: Value = serde_json::from_str(text).expect("JSON");
    let number = |name: &str| page[name].as_u64().expect("a number");
    let text = |name: &str| page[name].as_str().expect("a text").to_owned();
    assert_eq!(page["truncated"], number("next_offset") < number("output_bytes"));
    (text("output"), number("next_offset"), number("output_bytes"), text("status"))
}

#[tokio::test]
async fn output_is_read_in_pages_while_the_command_runs_and_after() {
    let pages = [page(0, 1), page(3, 1), page(5, 100), page(100, 1)];
    let rounds = json!([
        {"calls": [exec(json!({"cmd": "printf 'abcédef'; echo > begun; read go < go", "yield_time_ms": 0}))]},
        {"wait_for": "begun.seen", "calls": pages},
        {"wait_for": "ended.seen", "calls": pages},
    ]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "read"}}));
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "read").await;
    begun.next().await;
    fs::write(home.workspace().join("begun.seen"), "").unwrap();
    daemon.wait("main", 0, |event| event.data["payload"]["entry"]["tool_result"]["call"] == 3).await;
    gate.open();
    daemon.wait_for("main", "task_exited").await;
    fs::write(home.workspace().join("ended.seen"), "").unwrap();
    assert_eq!(daemon.answer("main", &message).await["text"], "read");
    let results = results(&daemon).await;
    for (pages, status) in [(&results[1..5], "running"), (&results[5..9], "completed")] {
        let pages: Vec<_> = pages.iter().map(shown).collect();
        let page = |text: &str, next: u64| (text.to_owned(), next, 8, status.to_owned());
        assert_eq!(pages, [page("abc", 3), page("éde", 7), page("def", 8), page("", 8)]);
    }
}

#[tokio::test]
async fn a_call_waits_for_the_end_as_long_as_it_says() {
    let rounds = json!([
        {"calls": [exec(json!({"cmd": "echo so far; echo > begun; read go < go; echo over", "yield_time_ms": 0}))]},
        {"wait_for": "seen", "calls": [output(json!({"block": false})), output(json!({"timeout_ms": 50}))]},
        {"calls": [output(json!({"timeout_ms": 600_000}))]},
    ]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "read"}}));
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "read").await;
    begun.next().await;
    fs::write(home.workspace().join("seen"), "").unwrap();
    daemon.wait("main", 0, |event| event.data["payload"]["entry"]["assistant"]["round"] == 3).await;
    gate.open();
    assert_eq!(daemon.answer("main", &message).await["text"], "read");
    let told = results(&daemon).await.into_iter().skip(1).map(|result| {
        let told = &result["task_output"];
        (told["status"].as_str().unwrap().to_owned(), told["output"]["text"]["inline"].as_str().unwrap().to_owned())
    });
    let running = ("running".to_owned(), "so far\n".to_owned());
    assert_eq!(told.collect::<Vec<_>>(), [running.clone(), running, ("completed".into(), "so far\nover\n".into())]);
}

#[tokio::test]
async fn a_command_that_runs_already_is_run_again_when_that_is_asked_for() {
    let cmd = "echo ran >> ran.txt; echo > begun; read go < go";
    let same = exec(json!({"cmd": cmd, "yield_time_ms": 0}));
    let again = exec(json!({"cmd": cmd, "yield_time_ms": 0, "duplicate_policy": "start_new"}));
    let elsewhere = exec(json!({"cmd": cmd, "yield_time_ms": 0, "shell": "/bin/bash"}));
    let rounds = json!([{"calls": [same]}, {"calls": [same, again, same, elsewhere]}]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "noted"}}));
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let message = daemon.prompt("main", "run").await;
    for _ in 0..3 {
        begun.next().await;
    }
    assert_eq!(daemon.answer("main", &message).await["text"], "noted");
    let results = results(&daemon).await;
    let begun: Vec<_> = [0, 2, 4].iter().map(|call| &results[*call]["promoted"]["task"]).collect();
    let reused: Vec<_> = [1, 3].iter().map(|call| &results[*call]["already_running"]["task"]).collect();
    assert_eq!(begun, ["task-1", "task-2", "task-3"]);
    assert_eq!(reused, ["task-1", "task-1"]);
    assert_eq!(home.written("ran.txt"), "ran\n".repeat(3));
    for _ in 0..3 {
        gate.open();
    }
    for message in ["msg-2", "msg-3", "msg-4"] {
        assert_eq!(daemon.settled("main", message).await, "processed");
    }
}

/// The supervisor of the only command.
fn supervisor(home: &Home) -> u32 {
    let runs: Vec<_> = fs::read_dir(home.path().join("run")).unwrap().map(|run| run.unwrap().path()).collect();
    let [run] = &runs[..] else { panic!("one command was to run: {runs:?}") };
    let claim: Value = serde_json::from_str(&fs::read_to_string(run.join("claim.json")).unwrap()).unwrap();
    u32::try_from(claim["record"]["begun"]["pid"].as_u64().unwrap()).unwrap()
}

/// Has another agent take messages until `over`; answers the longest time that one took to be durable.
async fn enqueued_meanwhile(daemon: &Daemon, over: impl Future<Output = ()>) -> Duration {
    let (mut longest, mut count) = (Duration::ZERO, 0);
    tokio::pin!(over);
    loop {
        let began = Instant::now();
        tokio::select! {
            biased;
            () = &mut over => break,
            _ = daemon.enqueue("other", "meanwhile") => {
                longest = longest.max(began.elapsed());
                count += 1;
            }
        }
    }
    eprintln!("{count} messages of another agent meanwhile, the slowest in {longest:?}");
    longest
}

/// With `HOLON_TEST_ALL=1 cargo test --test it output_of_any_size` the command writes 1 GiB.
#[tokio::test]
async fn output_of_any_size_passes_through_little_memory_and_is_kept_up_to_its_bound() {
    const MIB: u64 = 1024 * 1024;
    let pages = [page(0, 2), page(30 * MIB, 2), output(json!({"block": false, "max_output_tokens": 100}))];
    let cmd =
        format!("echo first; head -c {} /dev/zero | tr '\\0' x; echo last; echo > begun; read go < go", large_bytes());
    let rounds = json!([
        {"calls": [exec(json!({"cmd": cmd, "yield_time_ms": 0, "max_output_tokens": 100}))]},
        {"wait_for": "begun.seen", "calls": pages},
        {"wait_for": "ended.seen", "calls": pages},
    ]);
    let home = Home::new().scripted(&json!({"rounds": rounds, "default": {"text": "read"}}));
    let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
    let daemon = home.serve();
    let before_kib = peak_kib(daemon.id());
    daemon.create("other").await;
    // It would follow the script as well, and run the command a second time.
    daemon.post("/control/agents/other/model", json!({"model": "builtin/runbook"})).await;
    let message = daemon.prompt("main", "read").await;
    let longest = enqueued_meanwhile(&daemon, begun.next()).await;
    assert!(longest < Duration::from_secs(2), "another agent's commit took {longest:?}");
    assert!(peak_kib(supervisor(&home)) < 8 * 1024, "{} KiB", peak_kib(supervisor(&home)));
    fs::write(home.workspace().join("begun.seen"), "").unwrap();
    daemon.wait("main", 0, |event| event.data["payload"]["entry"]["tool_result"]["call"] == 2).await;
    gate.open();
    let exited = daemon.wait_for("main", "task_exited").await.data["payload"].clone();
    fs::write(home.workspace().join("ended.seen"), "").unwrap();
    assert_eq!(daemon.answer("main", &message).await["text"], "read");
    let grown_kib = peak_kib(daemon.id()) - before_kib;
    assert!(grown_kib < 24 * 1024, "the daemon grew by {grown_kib} KiB");

    let written = large_bytes() + "first\nlast\n".len() as u64;
    assert_eq!((&exited["output"]["bytes"], &exited["output"]["cut"]), (&json!(written), &json!(true)));
    let kept = exited["output"]["kept"]["bytes"].as_u64().expect("it is kept");
    assert!((64 * MIB..64 * MIB + 100).contains(&kept), "{kept}");
    for pages in results(&daemon).await[1..].chunks(3) {
        assert_eq!(shown(&pages[0]).0, "first\nxx");
        assert_eq!((shown(&pages[1]).0, shown(&pages[1]).1), ("x".repeat(8), 30 * MIB + 8));
        let text = pages[2]["task_output"]["output"]["text"]["inline"].as_str().expect("an excerpt");
        assert!(text.starts_with("first\nxxx") && text.ends_with("xxxlast\n") && text.contains("bytes left out]"));
    }
}
