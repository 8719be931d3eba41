//! Who may ask, over which door.

use crate::ask::{Ask, parts, raw};
use crate::daemon::Home;
use crate::openapi::{Operation, operations};
use holon::client::{Address, Client, ClientError};
use serde_json::{Value, json};
use std::process::Stdio;

const TOKEN: &str = "correct-horse-battery";

fn guarded() -> Home {
    Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN)
}

/// Nothing is looked up before the token: not the agent, not the route, not the method, not the body.
const ODD: &[(&str, &str)] = &[
    ("POST", "/control/agents/main.c1/prompt"),
    ("GET", "/agents/nobody/status"),
    ("GET", "/agents/a%2Fb/status"),
    ("GET", "/no/such/route"),
    ("DELETE", "/agents/list"),
    ("GET", "/agents/main/events?limit=x"),
];

#[tokio::test]
async fn without_the_token_nothing_is_told_of_agents() {
    // Whoever fails too often is held off, so a daemon is asked a few of them.
    let documented = operations().into_iter().filter(Operation::is_guarded);
    let documented = documented.map(|operation| (operation.method.clone(), operation.path()));
    let odd = ODD.iter().map(|(method, path)| ((*method).to_owned(), (*path).to_owned()));
    let all: Vec<(String, String)> = documented.chain(odd).collect();
    for few in all.chunks(20) {
        let daemon = guarded().serve();
        let ask = Ask::new(&daemon);
        for (method, path) in few {
            let told = ask.send(method, path, |request| request.header("content-type", "text/plain").body("x")).await;
            let problem = told.refused(401, "unauthorized");
            assert_eq!(told.header("www-authenticate"), "Bearer", "{path}");
            assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("Bearer")), "{problem}");
        }
    }
}

#[tokio::test]
async fn only_the_whole_token_opens() {
    let daemon = guarded().serve();
    let ask = Ask::new(&daemon);
    let with =
        async |value: String| ask.send("GET", "/agents/list", |request| request.header("authorization", value)).await;
    let wrong = [
        format!("Bearer {TOKEN}x"),
        format!("Bearer {}", &TOKEN[1..]),
        format!("Bearer {}", TOKEN.to_uppercase()),
        format!("Basic {TOKEN}"),
        TOKEN.to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        String::new(),
    ];
    for value in wrong {
        with(value).await.refused(401, "unauthorized");
    }
    for right in [format!("Bearer {TOKEN}"), format!("bearer {TOKEN}"), format!("BEARER {TOKEN}")] {
        with(right).await.ok();
    }
}

#[tokio::test]
async fn some_routes_are_open_and_tell_no_paths() {
    let home = guarded();
    let daemon = home.serve();
    let ask = Ask::new(&daemon);
    for path in ["/", "/healthz", "/readyz"] {
        ask.get(path).await.ok();
    }
    let told = ask.get("/handshake").await;
    let handshake = told.ok();
    assert_eq!(handshake["auth"], json!({"mode": "bearer", "required": true}));
    assert!(!told.text.contains(home.path().to_str().unwrap()), "{}", told.text);
    assert!(!told.text.contains(home.workspace().to_str().unwrap()), "{}", told.text);

    let local = Home::new();
    let daemon = local.serve();
    let handshake = Ask::new(&daemon).get("/handshake").await.ok();
    assert_eq!(handshake["auth"], json!({"mode": "local", "required": false}));
    assert_eq!(handshake["runtime"]["home_dir"], json!(local.path()));
    assert_eq!(handshake["runtime"]["workspace_dir"], json!(local.workspace().canonicalize().unwrap()));
    let listen = format!("http://{}", handshake["runtime"]["listen"].as_str().unwrap());
    assert_eq!(listen, daemon.url);
    assert_eq!(handshake["runtime"]["advertise_url"], Value::Null);
}

#[tokio::test]
async fn the_token_is_told_nowhere() {
    let home = guarded();
    let daemon = home.serve();
    let ask = Ask::new(&daemon).with_token(TOKEN);
    let message = daemon.prompt("main", "$ env; cat /proc/$PPID/environ /proc/$PPID/cmdline").await;
    daemon.answer("main", &message).await;
    for path in [
        "/handshake",
        "/control/runtime/status",
        "/agents/main/state",
        "/agents/main/briefs",
        "/agents/main/transcript",
        "/agents/main/tasks",
        "/agents/main/events?projection=local_debug&limit=512",
    ] {
        let told = ask.get(path).await;
        told.ok();
        assert!(!told.text.contains(TOKEN), "{path}: {}", told.text);
    }
    assert_eq!(ask.get("/control/runtime/status").await.ok()["startup_surface"]["control_token_configured"], true);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_knowing_never_is() {
    let daemon = guarded().serve();
    let ask = Ask::new(&daemon);
    let (wrong, right) = (ask.with_token("guess"), ask.with_token(TOKEN));
    let mut refused = 0;
    for _ in 0..100 {
        let told = wrong.get("/agents/list").await;
        if told.status == 401 {
            assert_eq!(refused, 0, "who was told to wait is told so on");
        } else {
            let problem = told.refused(429, "too_many_failures");
            let seconds: u64 = told.header("retry-after").parse().expect("seconds");
            assert!((1..=60).contains(&seconds), "{problem}");
            refused += 1;
        }
        right.get("/agents/list").await.ok();
    }
    assert!((50..100).contains(&refused), "{refused} of 100 guesses were not looked at");
    ask.get("/healthz").await.ok();
}

#[tokio::test]
async fn the_socket_in_the_home_needs_no_token() {
    let home = guarded();
    let daemon = home.serve();
    let message = daemon.prompt("main", "say: in").await;
    let told = daemon.get(&format!("/agents/main/messages/{message}")).await;
    assert_eq!(told["admission_context"], "local_process");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(home.path().join("holon.sock")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600, "it is its owner's alone");

    let ask = Ask::new(&daemon).with_token(TOKEN);
    let sent = ask.post("/control/agents/main/prompt", json!({"text": "say: hi"})).await.ok();
    let told = daemon.get(&format!("/agents/main/messages/{}", sent["message_id"].as_str().unwrap())).await;
    assert_eq!(told["admission_context"], "control_authenticated");
    let sent = ask.post("/enqueue", "{}").await.ok();
    let told = daemon.get(&format!("/agents/main/messages/{}", sent["message_id"].as_str().unwrap())).await;
    assert_eq!(told["admission_context"], "public_unauthenticated");
}

#[tokio::test]
async fn beyond_this_machine_a_token_must_guard() {
    let home = Home::new();
    let mut open = home.holon(&["serve", "--listen", "0.0.0.0:0"]);
    let output = open.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no control token") && said.contains("hint: "), "{said}");
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn a_token_is_taken_from_a_file_or_from_the_config() {
    for by_file in [true, false] {
        let home = Home::new();
        std::fs::create_dir(home.path()).unwrap();
        let home = if by_file {
            let file = home.path().join("token");
            std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
            let argument = file.to_str().unwrap().to_owned();
            home.argument("--token-file").argument(&argument)
        } else {
            std::fs::write(home.path().join("config.toml"), format!("control_token = \"{TOKEN}\"\n")).unwrap();
            home
        };
        let daemon = home.serve();
        let ask = Ask::new(&daemon);
        ask.get("/agents/list").await.refused(401, "unauthorized");
        ask.with_token(TOKEN).get("/agents/list").await.ok();
    }
}

#[tokio::test]
async fn a_page_in_a_browser_does_not_reach_an_unguarded_daemon() {
    let daemon = Home::new().serve();
    let own = daemon.url.trim_start_matches("http://").to_owned();
    let port = own.rsplit(':').next().unwrap();
    let ask = async |host: &str, more: &str| {
        let request = format!("GET /agents/list HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        let answer = raw(&daemon, request.as_bytes());
        let (status, body) = parts(&answer);
        (status, serde_json::from_str::<Value>(body).unwrap()["code"].clone())
    };
    for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:80", ""] {
        assert_eq!(ask(host, "").await, (403, json!("foreign_host")), "{host}");
    }
    for origin in ["http://evil.example", "null", "https://127.0.0.1.evil.example", "file://"] {
        assert_eq!(ask(&own, &format!("Origin: {origin}\r\n")).await, (403, json!("foreign_origin")), "{origin}");
    }
    for host in [own.as_str(), &format!("localhost:{port}"), &format!("[::1]:{port}")] {
        assert_eq!(ask(host, &format!("Origin: http://{host}\r\n")).await, (200, Value::Null), "{host}");
    }
}

#[tokio::test]
async fn a_client_is_told_what_is_wrong_with_its_token() {
    let daemon = guarded().serve();
    let client = Client::new(Address::Url(daemon.url.clone()), Some("wrong".into())).unwrap();
    let Err(ClientError::Refused(problem)) = client.get("/agents/list").await else { panic!("not refused") };
    assert_eq!((problem.status, problem.code.as_str()), (401, "unauthorized"));
}
