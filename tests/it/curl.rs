//! The examples of the control-plane seed, as they are written there.

use crate::ask::{Ask, Told};
use crate::daemon::{Daemon, Home};

const TOKEN: &str = "correct-horse-battery";

const EXAMPLES: &str = r#"
# Check server health
curl http://127.0.0.1:9101/handshake

# List agents
curl http://127.0.0.1:9101/agents/list

# Get agent state
curl http://127.0.0.1:9101/agents/main/state

# Send a prompt (control token required)
curl -X POST http://127.0.0.1:9101/control/agents/main/prompt \
  -H "Authorization: Bearer $HOLON_CONTROL_TOKEN" \
  -H "Content-Type: application/json" \
  -d '{"text": "Run cargo check"}'

# Enqueue via webhook (public)
curl -X POST http://127.0.0.1:9101/webhooks/generic/main \
  -H "Content-Type: application/json" \
  -d '{"event": "ci-complete", "status": "success"}'

# Stream agent events
curl -N http://127.0.0.1:9101/agents/main/events/stream
"#;

/// What a line tells curl to send.
#[derive(Debug, Default)]
struct Example {
    post: bool,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// The words of a line, as the shell reads them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ' ') => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            (_, letter) => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn example(line: &str) -> Example {
    let mut example = Example::default();
    let mut words = words(&line.replace("$HOLON_CONTROL_TOKEN", TOKEN)).into_iter().skip(1);
    while let Some(word) = words.next() {
        let mut next = || words.next().expect("a value");
        match word.as_str() {
            "-X" => example.post = next() == "POST",
            "-H" => {
                let header = next();
                let (name, value) = header.split_once(": ").expect("a header");
                example.headers.push((name.to_owned(), value.to_owned()));
            }
            "-d" => example.body = next(),
            "-N" => {}
            url => url.strip_prefix("http://127.0.0.1:9101").expect("the seed's server").clone_into(&mut example.path),
        }
    }
    example
}

fn examples() -> Vec<Example> {
    let joined = EXAMPLES.replace("\\\n", " ");
    let found: Vec<Example> = joined.lines().filter(|line| line.starts_with("curl ")).map(example).collect();
    assert_eq!(found.len(), 6);
    found
}

/// Sends it; a stream is followed to its first event.
async fn send(daemon: &Daemon, example: &Example, authorized: bool) -> Told {
    let mut ask = Ask::new(daemon);
    if authorized && !example.headers.iter().any(|(name, _)| name == "Authorization") {
        ask = ask.with_token(TOKEN);
    }
    let ended = if example.path.ends_with("/stream") { "?after_seq=0&limit=1" } else { "" };
    let method = if example.post { "POST" } else { "GET" };
    let dress = |mut request: reqwest::RequestBuilder| {
        for (name, value) in &example.headers {
            request = request.header(name, value);
        }
        request.body(example.body.clone())
    };
    ask.send(method, &format!("{}{ended}", example.path), dress).await
}

#[tokio::test]
async fn the_examples_work_in_both_modes() {
    for home in [Home::new(), Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN)] {
        let daemon = home.serve();
        for example in examples() {
            let told = send(&daemon, &example, true).await;
            assert_eq!(told.status, 200, "{example:?}: {}", told.text);
        }
    }
}

#[tokio::test]
async fn in_bearer_mode_what_the_examples_read_asks_for_the_token() {
    let daemon = Home::new().environment("HOLON_CONTROL_TOKEN", TOKEN).serve();
    for example in examples() {
        let told = send(&daemon, &example, false).await;
        if example.path.starts_with("/agents/") {
            told.refused(401, "unauthorized");
        } else {
            assert_eq!(told.status, 200, "{example:?}: {}", told.text);
        }
    }
}
