//! `holon tail`, `holon transcript`: what was said.

use super::agent::AgentArg;
use super::{Failure, Globals, Outcome, print};
use crate::words::limit::PAGE_MAX;
use clap::Args;
use serde_json::{Value, json};

/// Characters of a call or its result on a line.
const GIST_CHARS_MAX: usize = 160;

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
    // That a run has begun is no answer: as many of these may stand between.
    let limit = if globals.json { args.limit } else { args.limit.saturating_mul(2).min(PAGE_MAX) };
    let told = said(globals, &args.agent, &format!("briefs?limit={limit}")).await?;
    let answers: Vec<&Value> = told.iter().filter(|brief| brief["kind"] != "ack").collect();
    shown(globals, &told, answers.into_iter().rev().take(args.limit).rev().map(brief))
}

pub(super) async fn transcript(globals: &Globals, args: &TranscriptArgs) -> Outcome {
    let told = said(globals, &args.agent, &format!("transcript?limit={}", args.limit)).await?;
    shown(globals, &told, told.iter().map(entry))
}

/// What the agent has at `path`, the oldest first.
async fn said(globals: &Globals, agent: &AgentArg, path: &str) -> Result<Vec<Value>, Failure> {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    let told = client.get(&format!("/agents/{id}/{path}")).await?;
    Ok(told.as_array().cloned().unwrap_or_default())
}

fn shown(globals: &Globals, told: &[Value], texts: impl Iterator<Item = String>) -> Outcome {
    if globals.json {
        print::json(&json!(told));
    } else {
        texts.for_each(|text| print::data(&text));
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
    let text = Some(print::text(&data["text"])).filter(|text| !text.is_empty());
    let text = text.or(data.get("result").map(gist)).unwrap_or_default();
    format!("{}{}{calls}", format!("{at}  {run}  {kind} {round}").trim_end(), print::below(&text))
}

fn call(call: &Value) -> String {
    // Of a command its line is what people look for.
    let command = &call["action"]["exec"]["spec"]["cmd"];
    let action =
        if command.is_null() { gist(&call["action"]) } else { print::cut(&print::text(command), GIST_CHARS_MAX) };
    print::below(&format!("-> {} {action}", print::text(&call["tool"])))
}

/// What is in a variant, without the members that say nothing.
fn gist(variant: &Value) -> String {
    let only = variant.as_object().filter(|members| members.len() == 1).and_then(|members| members.values().next());
    let mut inner = only.unwrap_or(variant).clone();
    if let Some(members) = inner.as_object_mut() {
        members.retain(|_, member| !member.is_null());
    }
    print::cut(&print::text(&inner), GIST_CHARS_MAX)
}
