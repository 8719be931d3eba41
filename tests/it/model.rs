//! The providers behind a network, against a server that behaves and misbehaves as the services do.

use crate::model_server::{Answer, Ending, ModelServer, Reply};
use holon::context::request::{AssistantPart, ModelAnswer, ModelRequest, Part, RawCall, ToolResultPart, ToolSchema};
use holon::events::turn::{AttemptError, AttemptErrorKind, StopReason, Usage};
use holon::runtime::model::Provider;
use holon::runtime::model::remote::{Protocol, ProviderConfig, Remote};
use insta::assert_snapshot;
use secrecy::SecretString;
use serde_json::json;

const KEY: &str = "sk-a-key-nobody-may-see";
/// Both protocols, and the frames of an answer of one text after which it is still under way.
const BOTH: [Protocol; 2] = [Protocol::Anthropic, Protocol::OpenAi];
const SOME_FRAMES: usize = 4;

fn config(server: &ModelServer, protocol: Protocol) -> ProviderConfig {
    let base_url = match protocol {
        Protocol::Anthropic | Protocol::Ollama => server.url(),
        Protocol::OpenAi => format!("{}/v1", server.url()),
        Protocol::Gemini => format!("{}/v1beta", server.url()),
    };
    ProviderConfig {
        name: "tested".to_owned(),
        protocol,
        base_url: Some(base_url),
        api_key: Some(SecretString::from(KEY)),
        bearer: false,
        models: Vec::new(),
        timeout_ms: 20_000,
    }
}

fn request(parts: Vec<Part>) -> ModelRequest {
    ModelRequest { model: "the-model".to_owned(), parts, tools: Vec::new(), output_tokens_max: 512, rounds_before: 0 }
}

fn hello() -> ModelRequest {
    request(vec![Part::System("You are an agent.".to_owned()), Part::User("hello".to_owned())])
}

async fn ask(config: ProviderConfig, request: &ModelRequest) -> Result<ModelAnswer, AttemptError> {
    Remote::new(config).expect("a client").complete(request).await
}

async fn answered(server: &ModelServer, protocol: Protocol, reply: Reply) -> Result<ModelAnswer, AttemptError> {
    server.reply(reply);
    ask(config(server, protocol), &hello()).await
}

async fn refused(protocol: Protocol, reply: Reply) -> AttemptError {
    let server = ModelServer::start();
    let error = answered(&server, protocol, reply).await.expect_err("a failure");
    assert!(error.message.len() <= 500 && !error.message.contains(KEY), "{}", error.message);
    server.wait_for_requests(1);
    assert_eq!(server.received().len(), 1, "a provider makes one attempt");
    error
}

fn call(id: &str, tool: &str, arguments: &str) -> RawCall {
    RawCall { id: id.to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() }
}

/// A turn in the middle of its work, with two earlier rounds.
fn conversation() -> ModelRequest {
    let result = |id: &str, text: &str| {
        Part::ToolResult(ToolResultPart { call_id: id.to_owned(), tool: "Exec".to_owned(), text: text.to_owned() })
    };
    let said = |text: &str, calls: Vec<RawCall>| Part::Assistant(AssistantPart { text: text.to_owned(), calls });
    let schema = r#"{"type":"object","required":["cmd"],"properties":{"cmd":{"type":"string"},"a":{"type":"null"}}}"#;
    let tool = ToolSchema {
        name: "Exec".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: schema.to_owned(),
    };
    let parts = vec![
        Part::System("You are an agent.".to_owned()),
        Part::System("These are the rules.".to_owned()),
        Part::User("earlier".to_owned()),
        said("Done.", vec![]),
        Part::User("now".to_owned()),
        said("I look.", vec![call("c1", "Exec", r#"{"z":1,"cmd":"ls"}"#), call("c2", "Exec", r#"{"cmd":"cut of"#)]),
        result("c1", r#"{"status":"success"}"#),
        result("c2", r#"{"status":"error"}"#),
        said(" ", vec![]),
        Part::User("and also this".to_owned()),
    ];
    ModelRequest { tools: vec![tool], ..request(parts) }
}

async fn asked(protocol: Protocol, request: &ModelRequest) -> String {
    let server = ModelServer::start();
    server.reply(Answer::text("yes").whole());
    ask(config(&server, protocol), request).await.expect("an answer");
    let received = server.received().remove(0);
    let names = ["x-api-key", "authorization", "anthropic-version", "content-type"];
    let header = |name: &str| received.headers.get(name).map(|value| format!("{name}: {value}\n"));
    let headers: String = names.iter().filter_map(|name| header(name)).collect();
    format!("POST {}\n{headers}\n{}", received.path, serde_json::to_string_pretty(&received.body).expect("JSON"))
}

#[tokio::test]
async fn anthropic_is_asked_in_its_own_terms() {
    assert_snapshot!(asked(Protocol::Anthropic, &conversation()).await);
}

#[tokio::test]
async fn openai_is_asked_in_its_own_terms() {
    assert_snapshot!(asked(Protocol::OpenAi, &conversation()).await);
}

#[tokio::test]
async fn an_answer_is_its_text_its_calls_and_their_cost() {
    for protocol in BOTH {
        let server = ModelServer::start();
        let arguments = r#"{"z": 1.0, "cmd":"echo ü", "a":[ ]}"#;
        let answer = Answer::text("Grüße, 世界.").call("c1", "Exec", arguments).call("c2", "Sleep", "");
        let got = answered(&server, protocol, answer.whole()).await.expect("an answer");
        let calls = vec![call("c1", "Exec", arguments), call("c2", "Sleep", "{}")];
        let expected = ModelAnswer {
            said: AssistantPart { text: "Grüße, 世界.".to_owned(), calls },
            stop: StopReason::ToolUse,
            usage: Usage { input_tokens: Some(25), output_tokens: Some(7) },
        };
        assert_eq!(got, expected, "{protocol:?}");
        assert_eq!(server.purchases(), 1);
    }
}

#[tokio::test]
async fn a_plain_text_ends_the_turn() {
    for protocol in BOTH {
        let server = ModelServer::start();
        let got = answered(&server, protocol, Answer::text("bye").whole()).await.expect("an answer");
        assert_eq!((got.said.text.as_str(), got.stop), ("bye", StopReason::EndTurn), "{protocol:?}");
        let empty = answered(&server, protocol, Answer::text("").whole()).await.expect("an answer");
        assert_eq!((empty.said, empty.stop), (AssistantPart::default(), StopReason::EndTurn), "{protocol:?}");
        let other = answered(&server, protocol, Answer::text("no").stopped("refusal").whole()).await;
        let expected = if protocol == Protocol::Anthropic { StopReason::Other } else { StopReason::EndTurn };
        assert_eq!(other.expect("an answer").stop, expected);
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_told_as_it_came() {
    for protocol in BOTH {
        for cut in [r#"{"cmd":"rm -r /tmp/x"#, ""] {
            let server = ModelServer::start();
            let answer = Answer::text("I act.").call("c1", "Exec", "").call("c2", "Exec", cut).stopped("max_tokens");
            let got = answered(&server, protocol, answer.whole()).await.expect("an answer");
            assert_eq!(got.stop, StopReason::MaxTokens, "{protocol:?}");
            assert_eq!(got.said.calls, [call("c1", "Exec", "{}"), call("c2", "Exec", cut)], "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_request_has_the_kind_of_its_status() {
    use AttemptErrorKind as Kind;
    let cases = [
        (500, "upstream broke", Kind::Server),
        (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Kind::Server),
        (401, r#"{"error":{"message":"bad key sk-a-key-nobody-may-see"}}"#, Kind::Authentication),
        (403, "{}", Kind::Authentication),
        (400, r#"{"error":{"message":"messages: too few"}}"#, Kind::InvalidRequest),
        (400, r#"{"error":{"message":"prompt is too long: 2 tokens > 1 maximum"}}"#, Kind::ContextLength),
        (404, r#"{"error":{"message":"no such model"}}"#, Kind::InvalidRequest),
        (422, "{}", Kind::InvalidRequest),
        (307, "", Kind::InvalidRequest),
    ];
    for protocol in BOTH {
        for (status, body, kind) in cases {
            let reply = Reply::status(status, body).header("location", "http://127.0.0.1:1/elsewhere");
            let error = refused(protocol, reply).await;
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{protocol:?} {}", error.message);
            assert_eq!(error.retry_after_ms, None);
        }
    }
}

#[tokio::test]
async fn a_limit_says_when_to_come_back() {
    for protocol in BOTH {
        let reply = Reply::status(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "3");
        let error = refused(protocol, reply).await;
        let expected = AttemptError {
            kind: AttemptErrorKind::RateLimited,
            status: Some(429),
            message: "HTTP 429: slow down".to_owned(),
            retry_after_ms: Some(3_000),
        };
        assert_eq!(error, expected, "{protocol:?}");
        let reply = Reply::status(503, "later")
            .header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
            .header("retry-after", "Sun, 06 Nov 1994 08:49:39 GMT");
        assert_eq!(refused(protocol, reply).await.retry_after_ms, Some(2_000), "{protocol:?}");
    }
}

#[tokio::test]
async fn the_key_is_in_no_message() {
    for protocol in BOTH {
        let long = "é".repeat(230);
        let error = refused(protocol, Reply::status(400, &format!("{long} Bearer {KEY} {long}"))).await;
        assert!(error.message.contains("Bearer [key]") && !error.message.contains("sk-a"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_is_no_answer() {
    for protocol in BOTH {
        for frames in [0, SOME_FRAMES, 6] {
            let reply = Answer::text("half of it").call("c1", "Exec", "{}").ending(Ending::Broken(frames));
            let error = refused(protocol, reply).await;
            assert_eq!((error.kind, error.status), (AttemptErrorKind::Connection, None), "{protocol:?} {frames}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_in_order_but_early_is_no_answer() {
    for (protocol, frames) in [(Protocol::Anthropic, 8), (Protocol::OpenAi, 6)] {
        for frames in [1, SOME_FRAMES, frames - 1] {
            let error = refused(protocol, Answer::text("all of it").ending(Ending::Short(frames))).await;
            assert_eq!(error.kind, AttemptErrorKind::Connection, "{protocol:?} {frames} {}", error.message);
        }
    }
}

#[tokio::test]
async fn an_error_within_a_stream_has_the_kind_of_its_name() {
    use AttemptErrorKind as Kind;
    let anthropic = |name: &str| json!({"type": "error", "error": {"type": name, "message": "it says"}});
    let openai = |code: &str| json!({"error": {"message": "it says", "type": "server_error", "code": code}});
    let cases = [
        (Protocol::Anthropic, anthropic("overloaded_error"), Kind::Server),
        (Protocol::Anthropic, anthropic("rate_limit_error"), Kind::RateLimited),
        (Protocol::OpenAi, openai("internal"), Kind::Server),
        (Protocol::OpenAi, openai("rate_limit_exceeded"), Kind::RateLimited),
        (Protocol::OpenAi, openai("context_length_exceeded"), Kind::ContextLength),
    ];
    for (protocol, event, kind) in cases {
        let error = refused(protocol, Answer::text("half of it").ending(Ending::Error(SOME_FRAMES, event))).await;
        assert_eq!((error.kind, error.message.as_str()), (kind, "in the middle of the answer: it says"));
    }
}

#[tokio::test]
async fn silence_is_a_timeout() {
    for protocol in BOTH {
        for reply in [Reply::Hang, Answer::text("half of it").ending(Ending::Silent(SOME_FRAMES))] {
            let server = ModelServer::start();
            server.reply(reply);
            let config = ProviderConfig { timeout_ms: 100, ..config(&server, protocol) };
            let error = ask(config, &hello()).await.expect_err("a timeout");
            assert_eq!(error.kind, AttemptErrorKind::Timeout, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn nobody_there_is_a_connection_failure() {
    let server = ModelServer::start();
    let config = config(&server, Protocol::Anthropic);
    drop(server);
    let error = ask(config, &hello()).await.expect_err("a failure");
    assert_eq!(error.kind, AttemptErrorKind::Connection);
    assert!(error.message.contains("refused"), "{}", error.message);
}

#[tokio::test]
async fn a_server_without_tls_is_a_connection_failure_for_https() {
    let server = ModelServer::start();
    let base_url = Some(server.url().replace("http:", "https:"));
    let config = ProviderConfig { base_url, ..config(&server, Protocol::Anthropic) };
    assert_eq!(ask(config, &hello()).await.expect_err("a failure").kind, AttemptErrorKind::Connection);
    assert_eq!(server.received().len(), 0);
}

#[tokio::test]
async fn what_is_not_the_protocol_is_an_invalid_answer() {
    let page = Reply::status(200, "<html>Welcome</html>").header("content-type", "text/html");
    let answer = Reply::status(200, r#"{"content":[{"type":"text","text":"not streamed"}]}"#);
    let broken = Reply::status(200, "event: message_start\ndata: {\"half\": \n\n");
    let all = [Protocol::Anthropic, Protocol::OpenAi, Protocol::Gemini, Protocol::Ollama];
    let events = &all[..3];
    for (reply, protocols) in [(page, &all[..]), (broken, &all[..]), (answer, events)] {
        for protocol in protocols {
            let error = refused(*protocol, reply.clone()).await;
            assert_eq!(error.kind, AttemptErrorKind::InvalidAnswer, "{protocol:?} {}", error.message);
        }
    }
}

#[tokio::test]
async fn calls_that_share_an_id_are_not_merged_in_silence() {
    for protocol in BOTH {
        let answer = Answer::text("").call("same", "Exec", r#"{"a":1}"#).call("same", "Exec", r#"{"b":2}"#);
        assert_eq!(refused(protocol, answer.whole()).await.kind, AttemptErrorKind::InvalidAnswer);
    }
}

#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let text = "x".repeat(5 * 1024 * 1024);
    for protocol in BOTH {
        let error = refused(protocol, Answer::text(&text).whole()).await;
        assert_eq!(error.kind, AttemptErrorKind::InvalidAnswer);
        assert!(error.message.contains("longer than"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_model_name_is_taken_as_it_is() {
    for protocol in BOTH {
        let server = ModelServer::start();
        server.reply(Answer::text("yes").whole());
        let request = ModelRequest { model: "qwen-max".to_owned(), ..hello() };
        ask(config(&server, protocol), &request).await.expect("an answer");
        let body = &server.received()[0].body;
        assert_eq!(body["model"], "qwen-max", "{protocol:?}");
        assert_eq!(body.get("reasoning_effort").or(body.get("thinking")).or(body.get("output_config")), None);
    }
}

#[tokio::test]
async fn a_key_may_be_a_bearer_token_or_missing() {
    for (key, bearer, expected) in [(true, true, Some(format!("Bearer {KEY}"))), (false, false, None)] {
        for protocol in BOTH {
            let server = ModelServer::start();
            server.reply(Answer::text("yes").whole());
            let api_key = key.then(|| SecretString::from(KEY));
            ask(ProviderConfig { bearer, api_key, ..config(&server, protocol) }, &hello()).await.expect("an answer");
            let headers = &server.received()[0].headers;
            assert_eq!(headers.get("authorization"), expected.as_ref(), "{protocol:?}");
            assert_eq!(headers.get("x-api-key"), None, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn gemini_answers_and_cuts() {
    let server = ModelServer::start();
    let part = |part: &str, end: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}{end}}}],\
                 \"usageMetadata\":{{\"promptTokenCount\":9,\"candidatesTokenCount\":4}}}}\n\n"
        )
    };
    let text = part(r#"{"text":"I look."}"#, "");
    let exec = |end| part(r#"{"functionCall":{"name":"Exec","args":{"z":1,"cmd":"ls"}}}"#, end);
    let stream = |body: String| Reply::status(200, &body);
    let whole = stream(format!("{text}{}{}", exec(""), exec(r#","finishReason":"STOP""#)));
    let got = answered(&server, Protocol::Gemini, whole).await.expect("an answer");
    let arguments = r#"{"z":1,"cmd":"ls"}"#;
    assert_eq!(got.said.calls, [call("call#Exec#0", "Exec", arguments), call("call#Exec#1", "Exec", arguments)]);
    assert_eq!((got.said.text.as_str(), got.stop), ("I look.", StopReason::ToolUse));
    assert_eq!(got.usage, Usage { input_tokens: Some(9), output_tokens: Some(4) });
    let received = server.received().remove(0);
    assert_eq!(received.path, "/v1beta/models/the-model:streamGenerateContent?alt=sse");
    assert_eq!(received.headers.get("x-goog-api-key").map(String::as_str), Some(KEY));
    let cut = answered(&server, Protocol::Gemini, stream(format!("{text}{}", exec("")))).await;
    assert_eq!(cut.expect_err("a cut").kind, AttemptErrorKind::Connection);
}

#[tokio::test]
async fn ollama_answers_and_cuts() {
    let server = ModelServer::start();
    let text = r#"{"message":{"role":"assistant","content":"I look."},"done":false}"#;
    let exec = r#"{"message":{"tool_calls":[{"id":"c1","function":{"name":"Exec","arguments":{"z":1,"a":2}}}]}}"#;
    let end = r#"{"message":{},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":4}"#;
    let whole = Reply::status(200, &format!("{text}\n{exec}\n{end}\n"));
    let got = answered(&server, Protocol::Ollama, whole).await.expect("an answer");
    assert_eq!(got.said.calls, [call("c1", "Exec", r#"{"z":1,"a":2}"#)]);
    assert_eq!((got.said.text.as_str(), got.stop), ("I look.", StopReason::ToolUse));
    assert_eq!(got.usage, Usage { input_tokens: Some(9), output_tokens: Some(4) });
    assert_eq!(server.received()[0].path, "/api/chat");
    let cut = answered(&server, Protocol::Ollama, Reply::status(200, &format!("{text}\n{exec}\n"))).await;
    assert_eq!(cut.expect_err("a cut").kind, AttemptErrorKind::Connection);
    let failed = Reply::status(200, &format!("{text}\n{{\"error\":\"the runner has stopped\"}}\n"));
    let failed = answered(&server, Protocol::Ollama, failed).await.expect_err("a failure");
    assert_eq!(failed.kind, AttemptErrorKind::Server);
    assert!(failed.message.ends_with("the runner has stopped"), "{}", failed.message);
}

#[tokio::test]
async fn several_results_reach_ollama_one_by_one() {
    let server = ModelServer::start();
    let end = r#"{"message":{"content":"yes"},"done":true,"done_reason":"stop"}"#;
    server.reply(Reply::status(200, end));
    ask(config(&server, Protocol::Ollama), &conversation()).await.expect("an answer");
    let body = server.received().remove(0).body;
    let messages = body["messages"].as_array().expect("messages");
    let results = messages.iter().filter(|message| message["role"] == "tool").map(|message| &message["content"]);
    assert_eq!(results.collect::<Vec<_>>(), [r#"{"status":"success"}"#, r#"{"status":"error"}"#]);
}
