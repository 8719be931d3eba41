//! `holon run`: one prompt, one answer, one exit code.

use super::agent::named;
use super::serve::{self, RuntimeArgs};
use super::{Failure, Globals, Outcome, print};
use crate::client::{Address, Client, StreamedEvent};
use crate::words::id::AgentId;
use clap::Args;
use futures::{Stream, StreamExt};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

#[derive(Args)]
pub(super) struct RunArgs {
    /// The prompt: a text, the name of a file that holds it, or - for standard input.
    prompt: String,
    /// The agent to ask; the default agent when not given.
    #[arg(long, value_name = "ID", value_parser = AgentId::parse)]
    agent: Option<AgentId>,
    #[command(flatten)]
    runtime: RuntimeArgs,
}

/// What came of the prompt.
struct Answer {
    message: Value,
    brief: Value,
}

pub(super) async fn run(globals: &Globals, args: &RunArgs) -> Outcome {
    serve::log(args.runtime.log_format.unwrap_or_default());
    let text = prompt(&args.prompt)?;
    if globals.server.is_none() {
        globals.close_home()?;
    }
    let config = globals.config()?;
    let socket = config.paths().socket();
    if globals.server.is_some() || Client::answers(&socket).await {
        if globals.environment.is_by_flag("HOLON_MODEL", args.runtime.model.as_deref()) {
            let hint = "start the server with it, or use another --home";
            return Err(Failure::refused("--model is not for a server that runs", hint));
        }
        let client = globals.client()?;
        return told(globals, ask(&client, args.agent.as_ref(), &text).await?);
    }
    let running = serve::start(globals, &args.runtime, None).await?;
    let client = Client::new(Address::Socket(running.app.place.socket.clone()), None)?;
    let answer = ask(&client, args.agent.as_ref(), &text).await;
    running.stop("the run has ended").await?;
    told(globals, answer?)
}

fn prompt(argument: &str) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::Usage(format!("{argument}: {error}"));
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(unreadable)?;
        return Ok(text);
    }
    // A prompt may be longer than a name can be; then it is no file's.
    if Path::new(argument).is_file() {
        return std::fs::read_to_string(argument).map_err(unreadable);
    }
    Ok(argument.to_owned())
}

async fn ask(client: &Client, agent: Option<&AgentId>, text: &str) -> Result<Answer, Failure> {
    let agent = named(client, agent).await?;
    let head = client.get(&format!("/agents/{agent}/ledger")).await?["event_seq"].clone();
    let sent = client.post(&format!("/control/agents/{agent}/prompt"), &json!({"text": text})).await?;
    let message = print::text(&sent["message_id"]);
    let mut events = client.stream(&format!("/agents/{agent}/events/stream?after_seq={head}")).await?;
    wait(&mut events, &message).await?;
    let told = client.get(&format!("/agents/{agent}/messages/{message}")).await?;
    let briefs = client.get(&format!("/agents/{agent}/briefs?limit=1000")).await?;
    Ok(Answer { brief: answer_of(&told, &briefs), message: told })
}

/// The last brief of the run that took the message up, acknowledgements aside.
fn answer_of(message: &Value, briefs: &Value) -> Value {
    let of_run = |brief: &&Value| brief["run_id"] == message["run_id"] && brief["kind"] != "ack";
    let briefs = briefs.as_array().map(Vec::as_slice).unwrap_or_default();
    briefs.iter().rev().find(of_run).cloned().unwrap_or(Value::Null)
}

/// Waits until the message is settled and the run that it went into has ended.
async fn wait(
    events: &mut (impl Stream<Item = Result<StreamedEvent, crate::client::ClientError>> + Unpin),
    message: &str,
) -> Outcome {
    let mut run: Option<Value> = None;
    while let Some(event) = events.next().await {
        let event = event?;
        let payload = &event.data["payload"];
        progress(&event.kind, payload);
        if event.kind == "message_settled" && payload["message"] == message {
            let outcome = &payload["outcome"];
            let named = ["processed", "aborted", "interjected"].iter().find_map(|name| outcome.get(*name));
            match named {
                Some(named) => run = Some(named.clone()),
                None => return Ok(()),
            }
        }
        if event.kind == "turn_terminal" && run.as_ref() == Some(&payload["run"]) {
            return Ok(());
        }
    }
    Err(Failure::refused("the server ended before the answer came", "the work goes on when it starts again"))
}

/// A line for a person who waits.
fn progress(kind: &str, payload: &Value) {
    if kind == "turn_entry" && payload["kind"] == "assistant_round" {
        let tools = payload["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<String> = tools.iter().map(print::text).collect();
        if !names.is_empty() {
            print::note(&format!("round {}: {}", payload["round"], names.join(", ")));
        }
    }
    if kind == "task_promoted" {
        print::note(&format!("{} goes on in the background", print::text(&payload["task"])));
    }
}

fn told(globals: &Globals, answer: Answer) -> Outcome {
    let Answer { message, brief } = answer;
    if globals.json {
        print::json(&json!({
            "agent_id": message["agent_id"],
            "message_id": message["id"],
            "run_id": message["run_id"],
            "outcome": message["outcome"],
            "brief": brief,
        }));
    } else if brief.is_null() {
        print::note(&format!("{} {}", print::text(&message["outcome"]), print::text(&message["outcome_detail"])));
    } else {
        print::data(&print::text(&brief["text"]));
    }
    if brief["kind"] == "result" { Ok(()) } else { Err(Failure::RunFailed) }
}
