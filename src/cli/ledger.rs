//! `holon ledger …`: asks the server when one runs on the home, and reads the home when none does.

use super::{Failure, Globals, Outcome, print};
use crate::client::Client;
use crate::ledger::Store;
use crate::ledger::blob::Blobs;
use crate::ledger::home::{Paths, open_read_only};
use crate::offline::verify::{self, AgentReport};
use crate::offline::{prompt, stats};
use crate::words::id::{AgentId, RunId};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Subcommand)]
pub(super) enum LedgerVerb {
    /// Prove every ledger whole, or name the agent and the event of the damage.
    Verify(OneAgent),
    /// What lies in the ledgers: events by kind, bytes, payloads.
    Stats(OneAgent),
    /// Where each ledger ends.
    Head(OneAgent),
    /// The prompt of a past model round, as the model got it, proven by its recorded hash.
    Prompt(OneRound),
}

#[derive(Args)]
pub(super) struct OneRound {
    /// The run, such as run-3.
    run: RunId,
    /// The round; the last one when not given.
    #[arg(long, value_name = "N")]
    round: Option<u32>,
    /// The agent; the default agent when not given.
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

#[derive(Args)]
pub(super) struct OneAgent {
    /// Only this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

/// Where the ledgers are.
enum Source {
    Server(Client),
    Home { store: Arc<dyn Store>, paths: Paths },
}

pub(super) async fn dispatch(globals: &Globals, verb: &LedgerVerb) -> Outcome {
    let source = source(globals).await?;
    match verb {
        LedgerVerb::Verify(one) => told_verified(globals, &verified(&source, one.agent.as_ref()).await?),
        LedgerVerb::Stats(one) => told_stats(globals, &counted(&source, one.agent.as_ref()).await?),
        LedgerVerb::Head(one) => told_heads(globals, &heads(&source, one.agent.as_ref()).await?),
        LedgerVerb::Prompt(one) => {
            let agent =
                one.agent.clone().map_or_else(|| globals.config()?.default_agent(None).map_err(Failure::from), Ok)?;
            told_prompt(globals, &read_back(&source, &agent, one).await?);
            Ok(())
        }
    }
}

async fn source(globals: &Globals) -> Result<Source, Failure> {
    let config = globals.config()?;
    let paths = config.paths();
    if globals.server.is_some() || Client::answers(&paths.socket()).await {
        return Ok(Source::Server(globals.client()?));
    }
    let store: Arc<dyn Store> = Arc::new(open_read_only(&paths.home)?);
    Ok(Source::Home { store, paths })
}

/// The answers about each agent, as the server gives them.
async fn asked(client: &Client, only: Option<&AgentId>, path: &str) -> Result<Vec<Value>, Failure> {
    let agents = match only {
        Some(agent) => vec![agent.to_string()],
        None => listed(client).await?,
    };
    let mut answers = Vec::new();
    for agent in agents {
        answers.push(client.get(&format!("/agents/{agent}/{path}")).await?);
    }
    Ok(answers)
}

/// Every agent that has a ledger.
async fn listed(client: &Client) -> Result<Vec<String>, Failure> {
    let ledgers = client.list("/ledgers").await?;
    Ok(ledgers.iter().map(|ledger| print::text(&ledger["agent_id"])).collect())
}

async fn verified(source: &Source, only: Option<&AgentId>) -> Result<Value, Failure> {
    let (agents, notes) = match source {
        Source::Server(client) => {
            let mut agents = asked(client, only, "ledger/verify").await?;
            if only.is_none() {
                agents.insert(0, client.get("/home/ledger/verify").await?);
            }
            (agents, Vec::new())
        }
        Source::Home { store, paths } => verified_here(store, paths, only)?,
    };
    let whole = agents.iter().all(|agent| agent["damage"].is_null());
    Ok(json!({"ok": whole, "agents": agents, "notes": notes}))
}

fn verified_here(
    store: &Arc<dyn Store>,
    paths: &Paths,
    only: Option<&AgentId>,
) -> Result<(Vec<Value>, Vec<String>), Failure> {
    let blobs = Blobs::new(store.clone(), paths.blobs());
    let bar = progress();
    let report = verify::verify(&**store, &blobs, only, &mut |progress| {
        bar.set_message(format!("{} ledgers, {} events", progress.agents, progress.events));
        bar.tick();
    });
    bar.finish_and_clear();
    let report = report.map_err(|error| unreadable(&error))?;
    if let Some(agent) = only.filter(|_| report.agents.is_empty()) {
        return Err(Failure::refused(format!("there is no agent {agent}"), "holon ledger head names the agents"));
    }
    Ok((report.agents.iter().map(report_of).collect(), report.notes))
}

fn report_of(report: &AgentReport) -> Value {
    let damage = report.damage.as_ref();
    json!({
        "ok": damage.is_none(),
        "agent_id": report.agent,
        "event_seq": report.events,
        "events": report.events,
        "hash": report.head,
        "damage": damage.map(|found| json!({"event_seq": found.seq, "reason": found.reason})),
        "notes": report.notes,
    })
}

/// A spinner on a terminal; nothing elsewhere.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::default_spinner());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn unreadable(error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("the ledgers cannot be read: {error}"), "restore the home from a backup")
}

fn told_verified(globals: &Globals, report: &Value) -> Outcome {
    let whole = report["ok"] == true;
    if globals.json {
        print::json(report);
        return if whole { Ok(()) } else { Err(Failure::NotWhole) };
    }
    let agents = report["agents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let row = |agent: &Value| {
        let result = if agent["damage"].is_null() { "whole".to_owned() } else { damage(&agent["damage"]) };
        vec![print::text(&agent["agent_id"]), print::text(&agent["events"]), result]
    };
    print::table(&["AGENT", "EVENTS", "RESULT"], &agents.iter().map(row).collect::<Vec<_>>());
    let notes = agents.iter().flat_map(|agent| agent["notes"].as_array().cloned().unwrap_or_default());
    notes.for_each(|note| print::note(&format!("note: {}", print::text(&note))));
    if whole { Ok(()) } else { Err(Failure::NotWhole) }
}

fn damage(damage: &Value) -> String {
    format!("damaged at event {}: {}", print::text(&damage["event_seq"]), print::text(&damage["reason"]))
}

async fn counted(source: &Source, only: Option<&AgentId>) -> Result<Value, Failure> {
    match source {
        Source::Server(client) => {
            let answers = asked(client, only, "ledger?stats=true").await?;
            Ok(summed(&answers.iter().map(|answer| answer["stats"].clone()).collect::<Vec<_>>()))
        }
        Source::Home { store, .. } => {
            let stats = stats::stats(&**store, only).map_err(|error| unreadable(&error))?;
            Ok(json!(stats))
        }
    }
}

/// The sum of several such answers, member by member.
fn summed(answers: &[Value]) -> Value {
    answers.iter().fold(Value::Null, add)
}

fn add(sum: Value, more: &Value) -> Value {
    match (sum, more) {
        (Value::Null, more) => more.clone(),
        (Value::Object(mut sum), Value::Object(more)) => {
            for (name, value) in more {
                let member = sum.remove(name).unwrap_or(Value::Null);
                sum.insert(name.clone(), add(member, value));
            }
            Value::Object(sum)
        }
        (sum, more) => json!(sum.as_u64().unwrap_or(0) + more.as_u64().unwrap_or(0)),
    }
}

fn told_stats(globals: &Globals, stats: &Value) -> Outcome {
    if globals.json {
        print::json(stats);
        return Ok(());
    }
    let row =
        |name: &str, count: &Value| vec![name.to_owned(), print::text(&count["count"]), print::text(&count["bytes"])];
    let mut rows: Vec<Vec<String>> = stats["kinds"]
        .as_object()
        .map(|kinds| kinds.iter().map(|(kind, count)| row(kind, count)).collect())
        .unwrap_or_default();
    rows.sort();
    rows.push(row("all events", &stats["events"]));
    rows.push(row("payloads", &stats["payloads"]));
    print::table(&["KIND", "COUNT", "BYTES"], &rows);
    Ok(())
}

async fn heads(source: &Source, only: Option<&AgentId>) -> Result<Vec<Value>, Failure> {
    match source {
        Source::Server(client) => asked(client, only, "ledger").await,
        Source::Home { store, .. } => {
            let heads = stats::heads(&**store, only).map_err(|error| unreadable(&error))?;
            let head = |(agent, head): &(AgentId, crate::ledger::Head)| json!({"agent_id": agent, "event_seq": head.seq, "hash": head.hash, "events": head.seq});
            Ok(heads.iter().map(head).collect())
        }
    }
}

fn told_heads(globals: &Globals, heads: &[Value]) -> Outcome {
    if globals.json {
        print::json(&json!(heads));
        return Ok(());
    }
    let row = |head: &Value| {
        vec![print::text(&head["agent_id"]), print::text(&head["event_seq"]), print::text(&head["hash"])]
    };
    print::table(&["AGENT", "EVENT", "HASH"], &heads.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

async fn read_back(source: &Source, agent: &AgentId, one: &OneRound) -> Result<Value, Failure> {
    match source {
        Source::Server(client) => {
            let round = one.round.map(|round| format!("&round={round}")).unwrap_or_default();
            Ok(client.get(&format!("/agents/{agent}/ledger/prompt?run={}{round}", one.run)).await?)
        }
        Source::Home { store, paths } => {
            let blobs = Blobs::new(store.clone(), paths.blobs());
            let prompt = prompt::prompt(&**store, &blobs, agent, one.run, one.round);
            let hint = "holon transcript names the runs; holon ledger verify tells whether the ledger is whole";
            Ok(json!(prompt.map_err(|error| Failure::refused(error.to_string(), hint))?))
        }
    }
}

/// Each section under a line that names it.
fn told_prompt(globals: &Globals, prompt: &Value) {
    if globals.json {
        print::json(prompt);
        return;
    }
    let sections = prompt["sections"].as_array().map(Vec::as_slice).unwrap_or_default();
    for section in sections {
        let (kind, hash) = (print::text(&section["kind"]), print::text(&section["hash"]));
        print::data(&format!("--- {kind} {hash:.12}"));
        print::data(print::text(&section["text"]).trim_end());
    }
    let (run, round) = (print::text(&prompt["run"]), print::text(&prompt["round"]));
    print::note(&format!("{run}, round {round}: request {}", print::text(&prompt["request"])));
}
