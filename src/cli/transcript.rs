//! `holon tail`, `holon transcript`: what was said.

use super::agent::AgentArg;
use super::{Globals, Outcome, print};
use clap::Args;
use serde_json::Value;

/// Characters that a call has on its line.
const ACTION_CHARS_MAX: usize = 160;

#[derive(Args)]
pub(super) struct TailArgs {
    /// The newest answers, as many as this.
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Args)]
pub(super) struct TranscriptArgs {
    /// The newest entries, as many as this.
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    agent: AgentArg,
}

pub(super) async fn tail(globals: &Globals, args: &TailArgs) -> Outcome {
    said(globals, &args.agent, &format!("briefs?limit={}", args.limit), brief).await
}

pub(super) async fn transcript(globals: &Globals, args: &TranscriptArgs) -> Outcome {
    said(globals, &args.agent, &format!("transcript?limit={}", args.limit), entry).await
}

/// What the agent has at `path`, the oldest first, each under a line of its own.
async fn said(globals: &Globals, agent: &AgentArg, path: &str, shown: fn(&Value) -> String) -> Outcome {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    let told = client.get(&format!("/agents/{id}/{path}")).await?;
    if globals.json {
        print::json(&told);
    } else {
        told.as_array().into_iter().flatten().for_each(|one| print::data(&shown(one)));
    }
    Ok(())
}

fn brief(brief: &Value) -> String {
    let [at, run, kind] = ["created_at", "run_id", "kind"].map(|name| print::text(&brief[name]));
    format!("{at}  {run}  {kind}{}", print::below(&print::text(&brief["text"])))
}

fn entry(entry: &Value) -> String {
    let [at, run, kind, round] = ["created_at", "run_id", "kind", "round"].map(|name| print::text(&entry[name]));
    let data = &entry["data"];
    let calls: String = data["calls"].as_array().into_iter().flatten().map(call).collect();
    let heading = format!("{at}  {run}  {kind} {round}").trim_end().to_owned();
    format!("{heading}{}{calls}", print::below(&print::text(&data["text"])))
}

fn call(call: &Value) -> String {
    // Of a command its line is what people look for.
    let command = &call["action"]["exec"]["spec"]["cmd"];
    let action = if command.is_null() { &call["action"] } else { command };
    print::below(&format!("-> {} {}", print::text(&call["tool"]), print::cut(&print::text(action), ACTION_CHARS_MAX)))
}
