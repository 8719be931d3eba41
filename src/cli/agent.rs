//! `holon agent …`, `holon prompt`, `holon status`.

use super::{Globals, Outcome, print};
use crate::client::Client;
use crate::words::id::AgentId;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

#[derive(Args)]
pub(super) struct AgentArg {
    /// The agent; the default agent when not given.
    #[arg(long, value_name = "ID", value_parser = AgentId::parse)]
    agent: Option<AgentId>,
}

#[derive(Args)]
pub(super) struct PromptArgs {
    text: String,
    #[command(flatten)]
    agent: AgentArg,
}

#[derive(Subcommand)]
pub(super) enum AgentVerb {
    /// All agents, and what each is doing.
    List,
    /// Make an agent.
    Create {
        #[arg(value_parser = AgentId::chosen)]
        id: AgentId,
    },
    /// Let the scheduler run an agent.
    Start {
        #[arg(value_parser = AgentId::parse)]
        id: Option<AgentId>,
    },
    /// Abort the run, interrupt the commands, keep the queue.
    Stop {
        #[arg(value_parser = AgentId::parse)]
        id: Option<AgentId>,
    },
    /// Abort the run that is under way.
    Abort {
        #[arg(value_parser = AgentId::parse)]
        id: Option<AgentId>,
        /// Only if this is the run.
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Go on with the queue instead of pausing.
        #[arg(long)]
        idle: bool,
    },
}

pub(super) async fn dispatch(globals: &Globals, verb: &AgentVerb) -> Outcome {
    let client = globals.client()?;
    match verb {
        AgentVerb::List => list(globals, &client).await,
        AgentVerb::Create { id } => {
            let record = client.post(&format!("/control/agents/{id}/create"), &json!({})).await?;
            done(globals, &record, &format!("{id} is there"))
        }
        AgentVerb::Start { id } => control(globals, &client, id.as_ref(), "start").await,
        AgentVerb::Stop { id } => control(globals, &client, id.as_ref(), "stop").await,
        AgentVerb::Abort { id, run_id, idle } => {
            let id = named(&client, id.as_ref()).await?;
            let mode = if *idle { "idle_after_abort" } else { "stop_after_abort" };
            let mut body = json!({"mode": mode});
            if let Some(run) = run_id {
                body["run_id"] = json!(run);
            }
            let answer = client.post(&format!("/control/agents/{id}/current-run/abort"), &body).await?;
            let text = format!("{} of {id} is aborted", print::text(&answer["run_id"]));
            done(globals, &answer, &text)
        }
    }
}

async fn list(globals: &Globals, client: &Client) -> Outcome {
    let agents = client.list("/agents/list").await?;
    if globals.json {
        print::json(&Value::Array(agents));
        return Ok(());
    }
    let row = |agent: &Value| {
        vec![
            print::text(&agent["identity"]["agent_id"]),
            print::text(&agent["scheduling_posture"]["posture"]),
            print::text(&agent["scheduling_posture"]["reason"]),
            print::text(&agent["pending"]),
            print::text(&agent["current_run_id"]),
        ]
    };
    let rows: Vec<_> = agents.iter().map(row).collect();
    print::table(&["AGENT", "POSTURE", "REASON", "PENDING", "RUN"], &rows);
    Ok(())
}

async fn control(globals: &Globals, client: &Client, id: Option<&AgentId>, action: &str) -> Outcome {
    let id = named(client, id).await?;
    let answer = client.post(&format!("/control/agents/{id}/control"), &json!({"action": action})).await?;
    let word = if action == "start" { "started" } else { "stopped" };
    done(globals, &answer, &format!("{id} is {word}"))
}

pub(super) async fn prompt(globals: &Globals, args: &PromptArgs) -> Outcome {
    let client = globals.client()?;
    let id = named(&client, args.agent.agent.as_ref()).await?;
    let answer = client.post(&format!("/control/agents/{id}/prompt"), &json!({"text": args.text})).await?;
    let text = format!("{} of {id} waits", print::text(&answer["message_id"]));
    done(globals, &answer, &text)
}

pub(super) async fn status(globals: &Globals, args: &AgentArg) -> Outcome {
    let client = globals.client()?;
    let id = named(&client, args.agent.as_ref()).await?;
    let summary = client.get(&format!("/agents/{id}/status")).await?;
    if globals.json {
        print::json(&summary);
        return Ok(());
    }
    let posture = &summary["scheduling_posture"];
    let evidence: Vec<String> =
        posture["evidence"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(print::text).collect();
    let rows = [
        ("agent", id),
        ("posture", format!("{} ({})", print::text(&posture["posture"]), print::text(&posture["reason"]))),
        ("rests on events", evidence.join(", ")),
        ("run", print::text(&posture["run_id"])),
        ("messages waiting", print::text(&summary["agent"]["pending"])),
        ("tasks open", print::text(&summary["active_task_count"])),
        ("model", print::text(&summary["model"]["effective_model"])),
        ("events", print::text(&summary["recent_event_count"])),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        print::data(&format!("{name:<18}{value}"));
    }
    Ok(())
}

/// The agent that is meant.
pub(super) async fn named(client: &Client, id: Option<&AgentId>) -> Result<String, super::Failure> {
    match id {
        Some(id) => Ok(id.to_string()),
        None => Ok(print::text(&client.get("/").await?["default_agent"])),
    }
}

fn done(globals: &Globals, answer: &Value, text: &str) -> Outcome {
    if globals.json {
        print::json(answer);
    } else {
        print::data(text);
    }
    Ok(())
}
