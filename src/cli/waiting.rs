//! `holon timer …`, `holon wait …`, `holon trigger …`: what an agent is called by.

use super::agent::{AgentArg, ListArgs};
use super::{Globals, Outcome, print};
use crate::words::id::{TimerId, TriggerId, WaitId, WorkId};
use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Display;

/// Characters of a text that a row has room for.
const TEXT_CHARS_MAX: usize = 50;

#[derive(Subcommand)]
pub(super) enum TimerVerb {
    /// What is set, then what has fired or was cancelled.
    List(ListArgs),
    /// One timer in full.
    Show {
        /// Such as timer-1.
        id: TimerId,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Have a message brought to the agent.
    Create {
        /// From now.
        #[arg(long, value_name = "MS")]
        after_ms: u64,
        /// And again and again from then on.
        #[arg(long, value_name = "MS")]
        every_ms: Option<u64>,
        /// What the message says.
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Cancel a timer.
    Cancel {
        /// Such as timer-1.
        id: TimerId,
        #[command(flatten)]
        agent: AgentArg,
    },
}

#[derive(Subcommand)]
pub(super) enum WaitVerb {
    /// What is waited for, then what is over.
    List(ListArgs),
    /// One wait in full.
    Show {
        /// Such as wait-1.
        id: WaitId,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Let the work go on without what it waits for.
    Cancel {
        /// Such as wait-1.
        id: WaitId,
        #[command(flatten)]
        agent: AgentArg,
    },
}

#[derive(Subcommand)]
pub(super) enum TriggerVerb {
    /// What works, then what was revoked. URLs are not shown.
    List(ListArgs),
    /// One trigger in full, without its URL.
    Show {
        /// Such as trigger-1.
        id: TriggerId,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Make a URL by which the outside reaches the agent. It is shown this once.
    Create {
        /// What people call it.
        label: String,
        /// What a call brings: a hint, or a message with what was sent.
        #[arg(long, value_enum, default_value_t = Mode::Wake)]
        mode: Mode,
        /// The work that a call is about.
        #[arg(long, value_name = "WORK")]
        work: Option<WorkId>,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Make a URL worthless.
    Revoke {
        /// Such as trigger-1.
        id: TriggerId,
        #[command(flatten)]
        agent: AgentArg,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Mode {
    Wake,
    Enqueue,
}

pub(super) async fn timer(globals: &Globals, verb: &TimerVerb) -> Outcome {
    match verb {
        TimerVerb::List(args) => list_timers(globals, args).await,
        TimerVerb::Show { id, agent } => show(globals, agent, "timers", id).await,
        TimerVerb::Create { after_ms, every_ms, summary, agent } => {
            let body = json!({"duration_ms": after_ms, "interval_ms": every_ms, "summary": summary});
            let client = globals.client()?;
            let made = client.post(&format!("/control/agents/{}/timers", agent.id(&client).await?), &body).await?;
            let text = format!("{} fires at {}", print::text(&made["id"]), print::text(&made["next_fire_at"]));
            print::done(globals.json, &made, &text)
        }
        TimerVerb::Cancel { id, agent } => end(globals, agent, &format!("timers/{id}/cancel"), id, "cancelled").await,
    }
}

pub(super) async fn wait(globals: &Globals, verb: &WaitVerb) -> Outcome {
    match verb {
        WaitVerb::List(args) => list_waits(globals, args).await,
        WaitVerb::Show { id, agent } => show(globals, agent, "waits", id).await,
        WaitVerb::Cancel { id, agent } => end(globals, agent, &format!("waits/{id}/cancel"), id, "cancelled").await,
    }
}

pub(super) async fn trigger(globals: &Globals, verb: &TriggerVerb) -> Outcome {
    match verb {
        TriggerVerb::List(args) => list_triggers(globals, args).await,
        TriggerVerb::Show { id, agent } => show(globals, agent, "external-triggers", id).await,
        TriggerVerb::Create { label, mode, work, agent } => {
            let mode = match mode {
                Mode::Wake => "wake_hint",
                Mode::Enqueue => "enqueue_message",
            };
            let body = json!({"label": label, "delivery_mode": mode, "work_item_id": work});
            let client = globals.client()?;
            let path = format!("/control/agents/{}/external-triggers", agent.id(&client).await?);
            let made = client.post(&path, &body).await?;
            print::note(&format!("{} is made; its URL is shown this once", print::text(&made["id"])));
            print::done(globals.json, &made, &print::text(&made["trigger_url"]))
        }
        TriggerVerb::Revoke { id, agent } => {
            end(globals, agent, &format!("external-triggers/{id}/revoke"), id, "revoked").await
        }
    }
}

pub(super) async fn show(globals: &Globals, agent: &AgentArg, path: &str, id: &impl Display) -> Outcome {
    let client = globals.client()?;
    let agent = agent.id(&client).await?;
    print::record(globals.json, &client.get(&format!("/agents/{agent}/{path}/{id}")).await?)
}

pub(super) async fn end(globals: &Globals, agent: &AgentArg, path: &str, id: &impl Display, word: &str) -> Outcome {
    let client = globals.client()?;
    let agent = agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{agent}/{path}"), &json!({})).await?;
    print::done(globals.json, &answer, &format!("{id} of {agent} is {word}"))
}

async fn list_timers(globals: &Globals, args: &ListArgs) -> Outcome {
    let timers = args.page(&globals.client()?, "timers").await?;
    let row = |timer: &Value| {
        vec![
            print::text(&timer["id"]),
            print::text(&timer["status"]),
            print::text(&timer["next_fire_at"]),
            print::text(&timer["interval_ms"]),
            print::cut(&print::text(&timer["summary"]), TEXT_CHARS_MAX),
        ]
    };
    print::list(globals.json, timers, &["TIMER", "STATUS", "FIRES", "EVERY MS", "SUMMARY"], row)
}

async fn list_waits(globals: &Globals, args: &ListArgs) -> Outcome {
    let waits = args.page(&globals.client()?, "waits").await?;
    let row = |wait: &Value| {
        vec![
            print::text(&wait["id"]),
            print::text(&wait["kind"]),
            print::text(&wait["status"]),
            print::text(&wait["owner"]),
            print::text(&wait["due"]),
            print::cut(&print::text(&wait["reason"]), TEXT_CHARS_MAX),
        ]
    };
    print::list(globals.json, waits, &["WAIT", "FOR", "STATUS", "OWNER", "DUE", "REASON"], row)
}

async fn list_triggers(globals: &Globals, args: &ListArgs) -> Outcome {
    let triggers = args.page(&globals.client()?, "external-triggers").await?;
    let row = |trigger: &Value| {
        vec![
            print::text(&trigger["id"]),
            print::text(&trigger["delivery_mode"]),
            print::text(&trigger["status"]),
            print::text(&trigger["delivery_count"]),
            print::cut(&print::text(&trigger["label"]), TEXT_CHARS_MAX),
        ]
    };
    print::list(globals.json, triggers, &["TRIGGER", "MODE", "STATUS", "CALLS", "LABEL"], row)
}
