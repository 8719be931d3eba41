//! A command of an agent asks the daemon that runs it, as if it were the operator.

use crate::ask::Ask;
use crate::daemon::{Daemon, Home, of_kind};
use crate::other_user::{act_as_other_user, home_of_each_user, is_root};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// How a command may start whoever asks, so that it looks like nobody's. `ASK` stands for the one who asks, who writes
/// the status that it is answered with to the pipe `asked`.
const DISGUISES: &[(&str, &str)] = &[
    ("as itself", "ASK > asked &"),
    ("in a session of its own", "setsid ASK > asked &"),
    ("as an orphan that forgot its environment", "(setsid env -i PATH=\"$PATH\" ASK > asked < /dev/null &) &"),
    ("in a user namespace", "if unshare -Ur true; then unshare -Ur ASK > asked & else ASK > asked & fi"),
    ("after its parents", "sh -c '(ASK; true) > asked & exit' & wait $!"),
];

/// Requests that the operator, a reader, and anybody may make.
fn requests(daemon: &Daemon, home: &Home) -> Vec<String> {
    let (url, socket) = (&daemon.url, home.path().join("holon.sock"));
    let json = "-H content-type:application/json -d";
    vec![
        format!("-X POST {url}/control/agents/made-by-a-command/create"),
        format!("{json} '{{\"text\":\"$ true\"}}' {url}/control/agents/main/prompt"),
        format!("{json} '{{}}' {url}/webhooks/generic/main"),
        format!("{json} '{{}}' {url}/enqueue"),
        format!("-X POST {url}/callbacks/wake/cb_0"),
        format!("{url}/agents/main/state"),
        format!("{url}/healthz"),
        format!("-X POST --unix-socket {} http://localhost/control/agents/main/wake", socket.display()),
    ]
}

/// The steps of a runbook that makes each request in each disguise, and tells in files how it was answered.
fn steps(requests: &[String]) -> String {
    let mut script = String::new();
    let mut number = 0;
    for request in requests {
        for (_, disguise) in DISGUISES {
            let ask = format!("curl -s --max-time 50 -o answer-{number} -w '%{{http_code}}\\n' {request}");
            // A disguise that is quoted itself takes it from a file.
            script += &format!("printf '%s' \"exec {}\" > ask-{number}\n", ask.replace('"', "\\\""));
            // A pipe of its own, which nobody before has open any more.
            script += &format!("mkfifo asked-{number}\n");
            script +=
                &disguise.replace("ASK", &format!("sh ask-{number}")).replace("> asked", &format!("> asked-{number}"));
            script += &format!("\nread status < asked-{number}; echo \"$status\" > status-{number}\n");
            number += 1;
        }
    }
    script
}

async fn run_script(home: &Home, daemon: &Daemon, script: &str) {
    fs::write(home.workspace().join("script"), script).expect("a script");
    let message = daemon.prompt("main", "$ sh ./script; touch over").await;
    assert_eq!(daemon.settled("main", &message).await, "processed");
    assert!(home.workspace().join("over").exists(), "{}", home.log());
}

/// Nothing came of it but the operator's own prompts.
async fn check_untouched(daemon: &Daemon, prompts: usize) {
    assert_eq!(daemon.get("/agents/list").await.as_array().map(Vec::len), Some(1), "no agent was created");
    let events = daemon.events("main").await;
    let came =
        events.iter().filter(|event| matches!(event["type"].as_str(), Some("message_enqueued" | "wake_requested")));
    assert_eq!(came.count(), prompts, "{events:#?}");
}

#[tokio::test]
async fn whatever_a_command_starts_is_refused_wherever_it_asks() {
    for home in home_of_each_user() {
        let daemon = home.serve();
        let requests = requests(&daemon, &home);
        run_script(&home, &daemon, &steps(&requests)).await;
        for number in 0..requests.len() * DISGUISES.len() {
            let (request, disguise) = (&requests[number / DISGUISES.len()], DISGUISES[number % DISGUISES.len()].0);
            let status = home.written(&format!("status-{number}"));
            // Whoever is confined may not reach the socket at all.
            let is_unreachable = request.contains("--unix-socket") && status == "000\n";
            assert!(status == "403\n" || is_unreachable, "{disguise}: {request}: {status:?}");
            if !is_unreachable {
                let problem: Value = serde_json::from_str(&home.written(&format!("answer-{number}"))).expect("JSON");
                assert_eq!(problem["code"], "agent_process", "{disguise}: {request}");
                assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("agents_may_control")), "{problem}");
            }
        }
        check_untouched(&daemon, 1).await;
    }
}

#[tokio::test]
async fn a_command_that_goes_before_it_is_looked_for_is_refused_as_well() {
    for home in home_of_each_user() {
        let daemon = home.serve();
        let address = daemon.url.trim_start_matches("http://").replace(':', "/");
        let body = r#"{"text":"say: done by a command"}"#;
        let request = format!(
            "POST /control/agents/main/prompt HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\n\
             Content-Length: {}\\r\\n\\r\\n{}",
            body.len(),
            body.replace('"', "\\\"")
        );
        let script = format!("for number in $(seq 50); do bash -c 'printf \"{request}\" > /dev/tcp/{address}'; done");
        run_script(&home, &daemon, &script).await;
        check_untouched(&daemon, 1).await;
    }
}

#[tokio::test]
async fn the_operator_is_served_while_commands_run() {
    for home in home_of_each_user() {
        let (gate, mut begun) = (home.gate("go"), home.signs("begun"));
        let daemon = home.serve();
        let message = daemon.prompt("main", "$ echo > begun; read go < go").await;
        begun.next().await;
        for _ in 0..5 {
            // Each has a connection of its own.
            Ask::new(&daemon).get("/agents/main/status").await.ok();
            Ask::new(&daemon).post("/enqueue", json!({"text": "x"})).await.ok();
        }
        assert!(home.run(&["status"]).status.success(), "through the socket");
        assert!(home.run(&["--server", &daemon.url, "status"]).status.success(), "through the listener");
        gate.open();
        daemon.answer("main", &message).await;
    }
}

#[tokio::test]
async fn a_command_is_known_again_by_a_daemon_that_did_not_start_it() {
    for home in home_of_each_user() {
        let (gate, mut begun, mut asked) = (home.gate("go"), home.signs("begun"), home.signs("done"));
        let daemon = home.serve();
        let message = daemon
            .prompt(
                "main",
                "$ echo > begun; read url < go; curl -s -o answer $url/agents/main/status; echo > done; read go < go",
            )
            .await;
        begun.next().await;
        daemon.kill();
        let daemon = home.serve();
        fs::write(home.workspace().join("go"), format!("{}\n", daemon.url)).expect("room in the pipe");
        asked.next().await;
        let problem: Value = serde_json::from_str(&home.written("answer")).expect("JSON");
        assert_eq!(problem["code"], "agent_process", "{problem}");
        gate.open();
        daemon.answer("main", &message).await;
    }
}

#[tokio::test]
async fn another_user_of_the_machine_is_not_the_operator_of_a_local_daemon() {
    // Whoever is not root has nobody else to be.
    if !is_root() {
        return;
    }
    let daemon = Home::new().serve();
    let asked = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-s"]).args(arguments);
        act_as_other_user(&mut command);
        String::from_utf8(command.output().expect("curl runs").stdout).expect("text")
    };
    for path in ["/agents/main/status", "/healthz", "/control/runtime/status"] {
        let problem: Value = serde_json::from_str(&asked(&[&format!("{}{path}", daemon.url)])).expect("JSON");
        assert_eq!(problem["code"], "foreign_user", "{path}: {problem}");
        assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("token")), "{problem}");
    }
    let prompt = format!("{}/control/agents/main/prompt", daemon.url);
    let problem = asked(&["-H", "content-type: application/json", "-d", r#"{"text":"$ id"}"#, &prompt]);
    assert!(problem.contains("foreign_user"), "{problem}");
    assert_eq!(daemon.head("main").await, crate::daemon::BORN, "nothing was recorded");

    let theirs = Home::new().of_other_user().serve();
    Ask::new(&theirs).get("/agents/main/status").await.ok();
    let token = "a token of the operator's own";
    let guarded = Home::new().environment("HOLON_CONTROL_TOKEN", token).serve();
    let bearer = format!("authorization: Bearer {token}");
    let told = asked(&["-H", &bearer, &format!("{}/agents/main/status", guarded.url)]);
    assert!(!told.contains("foreign_user") && told.contains("main"), "a token opens to every user: {told}");
}

#[tokio::test]
async fn where_agents_may_control_what_a_command_does_is_recorded_as_that_agents_and_trusted_like_a_strangers_word() {
    let home = Home::new().configured("agents_may_control = true");
    let daemon = home.serve();
    let url = &daemon.url;
    let json = "-H content-type:application/json";
    let script = format!(
        "set -e\ncurl -sf -X POST {url}/control/agents/other/create > created\n\
         curl -sf {json} -d '{{\"text\":\"$ touch obeyed\"}}' {url}/control/agents/other/prompt > prompted\n"
    );
    run_script(&home, &daemon, &script).await;
    let prompted: Value = serde_json::from_str(&home.written("prompted")).expect("JSON");
    daemon.settled("other", prompted["message_id"].as_str().expect("a message")).await;
    let events = daemon.events("other").await;
    for kind in ["agent_created", "message_enqueued"] {
        let event = events.iter().find(|event| event["type"] == kind).expect("it is recorded");
        assert_eq!(event["provenance"]["actor"]["peer"], json!({"agent_process": "main"}), "{event}");
    }
    let said = of_kind(&events, "message_enqueued")[0];
    assert_eq!((&said["kind"], &said["trust"]), (&json!("channel_event"), &json!("untrusted_external")));
    assert!(of_kind(&events, "task_started").is_empty(), "a command's word runs nothing");
}
