//! `holon agent …`, `holon prompt`, `holon status`.

use super::model::{ModelArgs, model};
use super::webhook::{SecretArgs, secret};
use super::{Failure, Globals, Outcome, actor, print};
use crate::client::Client;
use crate::words::id::AgentId;
use crate::words::limit::PAGE_DEFAULT;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

#[derive(Args)]
pub(super) struct AgentArg {
    /// The agent; the default agent when not given.
    #[arg(long, value_name = "ID", value_parser = AgentId::parse)]
    agent: Option<AgentId>,
}

/// How much of a list is shown.
#[derive(Args)]
pub(super) struct ListArgs {
    /// The newest ones, as many as this.
    #[arg(long, default_value_t = PAGE_DEFAULT, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    agent: AgentArg,
}

impl AgentArg {
    /// The agent that is meant.
    pub(super) async fn id(&self, client: &Client) -> Result<String, Failure> {
        named(client, self.agent.as_ref()).await
    }
}

impl OneAgent {
    async fn id(&self, client: &Client) -> Result<String, Failure> {
        named(client, self.id.as_ref()).await
    }
}

impl ListArgs {
    /// The first page of what the agent has at `path`.
    pub(super) async fn page(&self, client: &Client, path: &str) -> Result<Vec<Value>, Failure> {
        let id = self.agent.id(client).await?;
        let page = client.get(&format!("/agents/{id}/{path}?limit={}", self.limit)).await?;
        Ok(page.as_array().cloned().unwrap_or_default())
    }
}

#[derive(Args)]
pub(super) struct PromptArgs {
    /// What the agent is asked.
    pub(super) text: String,
    #[command(flatten)]
    pub(super) agent: AgentArg,
}

#[derive(Args)]
pub(super) struct OneAgent {
    /// The agent; the default agent when not given.
    #[arg(value_parser = AgentId::parse)]
    id: Option<AgentId>,
}

#[derive(Subcommand)]
pub(super) enum AgentVerb {
    /// All agents, and what each is doing.
    List,
    /// Make an agent.
    Create {
        /// How it is called: letters, digits, dots, - and _.
        #[arg(value_parser = AgentId::chosen)]
        id: AgentId,
    },
    /// What an agent is doing, and why.
    Status(OneAgent),
    /// The model that an agent asks: choose one, or see which there are.
    Model(ModelArgs),
    /// What webhooks must be signed with.
    WebhookSecret(SecretArgs),
    /// Let the scheduler run an agent.
    Start(OneAgent),
    /// Abort the run, interrupt the commands, keep the queue.
    Stop(OneAgent),
    /// End an agent for good: what is open is ended, what it did can still be read.
    Archive {
        /// The agent.
        #[arg(value_parser = AgentId::parse)]
        id: AgentId,
    },
    /// Put aside messages that wait, such as a flood of webhooks. Each can still be read.
    DropMessages(DropArgs),
    /// Abort the run that is under way.
    Abort {
        #[command(flatten)]
        agent: OneAgent,
        /// Only if this is the run.
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Go on with the queue instead of pausing.
        #[arg(long)]
        idle: bool,
    },
}

#[derive(Args)]
#[group(id = "which", required = true, multiple = true, args = ["all", "from", "before"])]
pub(super) struct DropArgs {
    #[command(flatten)]
    agent: OneAgent,
    /// Whatever waits.
    #[arg(long, conflicts_with_all = ["from", "before"])]
    all: bool,
    /// Only what was sent by: external (webhook, callback and channel), webhook, callback, channel, operator, timer, task, system.
    #[arg(long, value_name = "SENDER")]
    from: Option<String>,
    /// Only what was taken in before this time, such as 2026-11-21T12:00:00Z.
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Why; it stands with each of them.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn dispatch(globals: &Globals, verb: &AgentVerb) -> Outcome {
    let client = globals.client()?;
    match verb {
        AgentVerb::List => list(globals, &client).await,
        AgentVerb::Create { id } => {
            let record = client.post(&format!("/control/agents/{id}/create"), &json!({})).await?;
            print::done(globals.json, &record, &format!("{id} is there"))
        }
        AgentVerb::Status(agent) => told(globals, &client, &agent.id(&client).await?).await,
        AgentVerb::Model(args) => model(globals, args).await,
        AgentVerb::WebhookSecret(args) => secret(globals, args).await,
        AgentVerb::Start(agent) => control(globals, &client, agent, "start").await,
        AgentVerb::Stop(agent) => control(globals, &client, agent, "stop").await,
        AgentVerb::Archive { id } => {
            let answer = client.post(&format!("/control/agents/{id}/archive"), &json!({})).await?;
            let text = format!("{id} is {}", print::text(&answer["lifecycle"]));
            print::done(globals.json, &answer, &text)
        }
        AgentVerb::DropMessages(args) => drop_messages(globals, &client, args).await,
        AgentVerb::Abort { agent, run_id, idle } => {
            let id = agent.id(&client).await?;
            let mode = if *idle { "idle_after_abort" } else { "stop_after_abort" };
            let mut body = json!({"mode": mode});
            if let Some(run) = run_id {
                body["run_id"] = json!(run);
            }
            let answer = client.post(&format!("/control/agents/{id}/current-run/abort"), &body).await?;
            let text = format!("{} of {id} is aborted", print::text(&answer["run_id"]));
            print::done(globals.json, &answer, &text)
        }
    }
}

async fn list(globals: &Globals, client: &Client) -> Outcome {
    let agents = client.list("/agents/list").await?;
    let row = |agent: &Value| {
        vec![
            print::text(&agent["identity"]["agent_id"]),
            print::text(&agent["scheduling_posture"]["posture"]),
            print::text(&agent["scheduling_posture"]["reason"]),
            print::text(&agent["pending"]),
            print::text(&agent["current_run_id"]),
        ]
    };
    print::list(globals.json, agents, &["AGENT", "POSTURE", "REASON", "PENDING", "RUN"], row)
}

async fn control(globals: &Globals, client: &Client, agent: &OneAgent, action: &str) -> Outcome {
    let id = agent.id(client).await?;
    let answer = client.post(&format!("/control/agents/{id}/control"), &json!({"action": action})).await?;
    let word = if action == "start" { "started" } else { "stopped" };
    print::done(globals.json, &answer, &format!("{id} is {word}"))
}

pub(super) async fn prompt(globals: &Globals, args: &PromptArgs) -> Outcome {
    let client = globals.client()?;
    let id = args.agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{id}/prompt"), &json!({"text": args.text})).await?;
    let text = format!("{} of {id} waits", print::text(&answer["message_id"]));
    print::done(globals.json, &answer, &text)
}

pub(super) async fn status(globals: &Globals, args: &AgentArg) -> Outcome {
    let client = globals.client()?;
    told(globals, &client, &args.id(&client).await?).await
}

async fn told(globals: &Globals, client: &Client, id: &str) -> Outcome {
    let summary = client.get(&format!("/agents/{id}/status")).await?;
    if globals.json {
        print::json(&summary);
        return Ok(());
    }
    let posture = &summary["scheduling_posture"];
    let evidence: Vec<String> =
        posture["evidence"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(print::text).collect();
    let by = |what: &str| actor::of_change(&summary["controlled_by"][what]).unwrap_or_default();
    let rows = [
        ("agent", id.to_owned()),
        ("posture", format!("{} ({})", print::text(&posture["posture"]), print::text(&posture["reason"]))),
        ("rests on events", evidence.join(", ")),
        ("run", print::text(&posture["run_id"])),
        ("waits for a place", waits(&summary["waiting_for_permit"])),
        ("messages waiting", print::text(&summary["agent"]["pending"])),
        ("tasks open", print::text(&summary["active_task_count"])),
        ("model", print::text(&summary["model"]["effective_model"])),
        ("events", print::text(&summary["recent_event_count"])),
        ("last prompt by", by("prompt")),
        ("lifecycle set by", by("lifecycle")),
        ("model chosen by", by("model")),
        ("last abort by", by("abort")),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        print::data(&format!("{name:<18}{value}"));
    }
    Ok(())
}

/// A request puts aside a bounded number: they follow each other until nothing is left.
async fn drop_messages(globals: &Globals, client: &Client, args: &DropArgs) -> Outcome {
    let id = args.agent.id(client).await?;
    let body = json!({"from": args.from, "before": args.before, "reason": args.reason});
    let mut dropped = 0;
    loop {
        let mut answer = client.post(&format!("/control/agents/{id}/messages/drop"), &body).await?;
        dropped += answer["dropped"].as_u64().unwrap_or(0);
        if answer["left"] == 0 || answer["dropped"] == 0 {
            answer["dropped"] = json!(dropped);
            return print::done(globals.json, &answer, &format!("{dropped} messages of {id} were put aside"));
        }
    }
}

/// What it has no place for yet, among what the server does at once.
fn waits(permits: &Value) -> String {
    let permits = permits.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |permit: &Value| format!("{} since {}", print::text(&permit["kind"]), print::text(&permit["since"]));
    permits.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The agent that is meant.
pub(super) async fn named(client: &Client, id: Option<&AgentId>) -> Result<String, Failure> {
    match id {
        Some(id) => Ok(id.to_string()),
        None => Ok(print::text(&client.get("/").await?["default_agent"])),
    }
}
