//! Pages in a browser, proxies and guesses: who reaches the listener without being its operator.

use crate::ask::{Ask, parts, raw};
use crate::daemon::{Daemon, Home};
use reqwest::Method;
use serde_json::{Value, json};

const TOKEN: &str = "a token of the operator's own";

/// Sends a request as no client library would; answers its status and code.
fn send(daemon: &Daemon, request: &str) -> (u16, String) {
    let answer = raw(daemon, request.as_bytes());
    let (status, body) = parts(&answer);
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

fn request(line: &str, headers: &[String]) -> String {
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    format!("{line} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n")
}

fn own(daemon: &Daemon) -> &str {
    daemon.url.trim_start_matches("http://")
}

fn refused(code: &str) -> (u16, String) {
    (403, code.to_owned())
}

/// What a page can send without asking first: neither a body nor a content type.
const BARE: &[&str] = &[
    "POST /control/runtime/shutdown",
    "POST /control/agents/main/archive",
    "POST /control/agents/made-by-a-page/create",
    "POST /enqueue",
    "POST /agents/main/enqueue",
    "POST /webhooks/generic/main",
];

#[tokio::test]
async fn a_page_of_another_port_scheme_or_host_does_not_reach_a_local_daemon() {
    let daemon = Home::new().serve();
    let own = own(&daemon).to_owned();
    let port = own.rsplit(':').next().expect("a port");
    let origins = [
        "http://localhost:3000".to_owned(),
        "http://127.0.0.1".to_owned(),
        format!("https://{own}"),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.2:{port}"),
        format!("http://[::1].evil.example:{port}"),
        format!("http://{own}.evil.example"),
        format!("http://{own}@evil.example"),
        format!("http://{own}/"),
        own.clone(),
        "null".to_owned(),
        "file://".to_owned(),
        String::new(),
    ];
    for line in BARE.iter().chain(&["GET /agents/list", "GET /agents/main/events/stream"]) {
        for origin in &origins {
            let sent = request(line, &[format!("Host: {own}"), format!("Origin: {origin}")]);
            assert_eq!(send(&daemon, &sent), refused("foreign_origin"), "{line} from {origin:?}");
        }
        let twice = [format!("Host: {own}"), format!("Origin: http://{own}"), "Origin: http://evil.example".into()];
        assert_eq!(send(&daemon, &request(line, &twice)), refused("foreign_origin"), "{line} with two origins");
    }
    let ask = Ask::new(&daemon);
    assert_eq!(ask.get("/agents/list").await.ok().as_array().map(Vec::len), Some(1), "nothing was created");
    assert_eq!(daemon.head("main").await, crate::daemon::BORN, "nothing was recorded");
}

#[tokio::test]
async fn a_host_is_this_machines_own_to_the_last_character() {
    let daemon = Home::new().serve();
    let hosts = [
        "[::1].evil.example",
        "[::1]evil",
        "[::1",
        "::1",
        "[::1]:80:80",
        "[127.0.0.1]",
        "localhost:evil",
        "localhost:evil.example",
        "localhost:+80",
        "localhost:",
        "localhost:65536",
        "localhost.",
        "user@localhost",
        "127.0.0.1.evil.example",
        "2130706433",
        "127.1",
        "0.0.0.0",
        "",
    ];
    for host in hosts {
        let sent = request("GET /agents/list", &[format!("Host: {host}")]);
        let (status, code) = send(&daemon, &sent);
        // The HTTP library refuses some of them itself.
        assert!((status, code.as_str()) == (403, "foreign_host") || status == 400, "{host:?}: {status} {code}");
    }
    let two = request("GET /agents/list", &["Host: localhost".into(), "Host: evil.example".into()]);
    assert!(matches!(send(&daemon, &two).0, 400 | 403), "two hosts");
    let whole = request("GET http://evil.example/agents/list", &["Host: localhost".into()]);
    assert_eq!(send(&daemon, &whole), refused("foreign_host"));
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1:65535", "127.8.8.8", "[::1]", "[::1]:7878"] {
        assert_eq!(send(&daemon, &request("GET /agents/list", &[format!("Host: {host}")])).0, 200, "{host}");
    }
}

#[tokio::test]
async fn what_a_browser_sends_alters_nothing_without_json_or_our_header() {
    for token in [None, Some(TOKEN)] {
        let home = Home::new();
        let home = token.map_or_else(Home::new, |token| home.environment("HOLON_CONTROL_TOKEN", token));
        let daemon = home.serve();
        let base = [format!("Host: {}", own(&daemon)), format!("Authorization: Bearer {}", token.unwrap_or("none"))];
        let with = |line: &str, more: &[&str]| {
            let headers: Vec<String> = base.iter().cloned().chain(more.iter().map(|header| (*header).into())).collect();
            send(&daemon, &request(line, &headers))
        };
        let (line, origin) = ("POST /control/agents/other/create", format!("Origin: http://{}", own(&daemon)));
        let not_json = (415, "unsupported_media_type".to_owned());
        assert_eq!(with(line, &[&origin]), not_json);
        assert_eq!(with(line, &["Sec-Fetch-Site: same-origin"]), not_json);
        assert_eq!(with(line, &["Sec-Fetch-Mode: cors", "Content-Type: text/plain"]), not_json);
        for site in ["cross-site", "same-site", "none", "anything"] {
            let site = format!("Sec-Fetch-Site: {site}");
            assert_eq!(with(line, &[&site, "Holon-Request: 1"]), refused("foreign_origin"), "{site}");
        }
        let foreign = [origin.replace(own(&daemon), "localhost:3000"), "Content-Type: application/json".into()];
        assert_eq!(with(line, &[&foreign[0], &foreign[1]]), refused("foreign_origin"));
        assert_eq!(daemon.get("/agents/list").await.as_array().map(Vec::len), Some(1), "nothing was created");

        assert_eq!(with(line, &[&origin, "Sec-Fetch-Site: same-origin", "Holon-Request: 1"]).0, 200);
        assert_eq!(with(line, &[&origin, "Content-Type: application/json"]).0, 200);
        assert_eq!(with("POST /control/agents/third/create", &[]).0, 200, "no browser is a caller like any other");
    }
}

#[tokio::test]
async fn a_page_of_another_site_reads_nothing_of_a_local_daemon() {
    let daemon = Home::new().serve();
    let host = format!("Host: {}", own(&daemon));
    for site in ["cross-site", "same-site", "anything"] {
        let from = |line: &str| send(&daemon, &request(line, &[host.clone(), format!("Sec-Fetch-Site: {site}")]));
        for path in ["/agents/list", "/agents/main/events/stream", "/metrics", "/openapi.json", "/nothing"] {
            assert_eq!(from(&format!("GET {path}")), refused("foreign_origin"), "{site} {path}");
        }
        for path in ["/", "/handshake", "/healthz", "/readyz"] {
            assert_eq!(from(&format!("GET {path}")).0, 200, "{site} {path}");
        }
        assert_eq!(from("POST /webhooks/generic/main"), refused("foreign_origin"), "{site}");
    }
    for site in ["same-origin", "none"] {
        let sent = request("GET /agents/list", &[host.clone(), format!("Sec-Fetch-Site: {site}")]);
        assert_eq!(send(&daemon, &sent).0, 200, "{site}");
    }
}

#[tokio::test]
async fn what_a_proxy_passes_on_is_refused_where_no_token_guards() {
    const FORWARDED: &[&str] =
        &["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"];
    let daemon = Home::new().serve();
    let guarded = Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN).serve();
    for name in FORWARDED {
        for path in ["/agents/main/status", "/healthz"] {
            let told = Ask::new(&daemon).send("GET", path, |request| request.header(*name, "10.0.0.1")).await;
            let problem = told.refused(403, "forwarded_request");
            assert!(problem["hint"].as_str().is_some_and(|hint| hint.contains("token")), "{problem}");
        }
        let ask = Ask::new(&guarded).with_token(TOKEN);
        ask.send("GET", "/agents/main/status", |request| request.header(*name, "10.0.0.1")).await.ok();
    }
}

#[tokio::test]
async fn what_a_proxy_passes_on_to_the_socket_is_refused_in_every_mode() {
    for home in [Home::new(), Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN)] {
        let _daemon = home.serve();
        let http = reqwest::Client::builder().unix_socket(home.path().join("holon.sock")).build().expect("a client");
        let ask = |name: &'static str| http.get("http://localhost/agents/list").header(name, "x").send();
        assert_eq!(ask("x-forwarded-for").await.expect("told").status(), 403);
        assert_eq!(ask("accept").await.expect("told").status(), 200);
    }
}

#[tokio::test]
async fn no_answer_is_guessed_to_be_of_another_type() {
    let daemon = Home::new().serve();
    let ask = Ask::new(&daemon);
    for path in
        ["/", "/agents/list", "/metrics", "/openapi.json", "/nothing", "/agents/main/events/stream?limit=1&after_seq=0"]
    {
        let told = ask.request(Method::GET, path).send().await.expect("told");
        assert_eq!(
            told.headers().get("x-content-type-options").map(|value| value.as_bytes()),
            Some(&b"nosniff"[..]),
            "{path}"
        );
    }
    assert_eq!(ask.send("DELETE", "/", |request| request).await.header("x-content-type-options"), "nosniff");
}

#[tokio::test]
async fn urls_that_are_given_out_begin_as_the_operator_says() {
    let token = ("HOLON_CONTROL_TOKEN", TOKEN);
    let home =
        Home::new().configured("public_base_url = \"https://holon.example/agents/\"").environment(token.0, token.1);
    let daemon = home.serve();
    let created = daemon.post("/control/agents/main/external-triggers", json!({"label": "ci"})).await;
    let url = created["trigger_url"].as_str().expect("a url");
    assert!(url.starts_with("https://holon.example/agents/callbacks/"), "{url}");
    let handshake = Ask::new(&daemon).get("/handshake").await.ok();
    assert_eq!(handshake["runtime"]["advertise_url"], "https://holon.example/agents");
    let shown = String::from_utf8(home.run(&["config", "show"]).stdout).expect("text");
    assert!(shown.contains("public_base_url") && shown.contains("https://holon.example/agents"), "{shown}");

    // Behind that proxy, a page of its own origin is the operator's.
    let host = format!("Host: {}", own(&daemon));
    let with = |origin: &str| {
        let headers = [host.clone(), format!("Authorization: Bearer {TOKEN}"), format!("Origin: {origin}")];
        send(&daemon, &request("GET /agents/list", &headers))
    };
    assert_eq!(with("https://holon.example").0, 200);
    assert_eq!(with("http://holon.example"), refused("foreign_origin"));

    for wrong in [
        "ftp://holon.example",
        "holon.example",
        "https://user:secret@holon.example",
        "https://holon.example/?a=b",
        "https://holon.example/#a",
    ] {
        let home = Home::new().configured(&format!("public_base_url = \"{wrong}\""));
        let refused = home.run(&["serve", "--listen", "127.0.0.1:0"]);
        let said = String::from_utf8(refused.stderr).expect("text");
        assert_eq!(refused.status.code(), Some(2), "{wrong}: {said}");
        assert!(said.contains("public_base_url") && said.contains("hint: ") && !said.contains("secret"), "{said}");
    }
}

#[tokio::test]
async fn wrong_tokens_are_logged_once_and_counted_and_the_right_one_is_taken_all_the_same() {
    let home = Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN);
    let daemon = home.serve();
    let (wrong, right) = (Ask::new(&daemon).with_token("a guess that is wrong"), Ask::new(&daemon).with_token(TOKEN));
    let mut held_off = 0;
    for _ in 0..50 {
        let told = wrong.get("/agents/list").await;
        held_off += u64::from(told.status == 429);
        assert!(matches!(told.status, 401 | 429), "{}", told.status);
    }
    let metrics = right.get("/metrics").await.text;
    let count = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok());
        line.unwrap_or_else(|| panic!("{name} is not counted: {metrics}"))
    };
    assert_eq!(count("holon_authentication_failures_total"), 50);
    assert_eq!(count("holon_authentication_refusals_total"), held_off);
    let log = home.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("127.0.0.1")).collect();
    assert_eq!(lines.len(), 1, "one line for each peer and window: {log}");
    assert!(!log.contains("a guess that is wrong") && !log.contains(TOKEN), "{log}");
}
