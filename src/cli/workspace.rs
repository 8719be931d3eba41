//! `holon workspace …`: where an agent works.

use super::agent::AgentArg;
use super::{Failure, Globals, Outcome, print};
use crate::words::id::WorkspaceId;
use clap::Subcommand;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub(super) enum WorkspaceVerb {
    /// The folders that the agent may work in.
    List {
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Attach a folder, and work there.
    Attach {
        /// The folder.
        path: PathBuf,
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Go back to the agent's home.
    Exit {
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Let the agent work in a folder no more.
    Detach {
        /// Such as ws-2.
        id: WorkspaceId,
        #[command(flatten)]
        agent: AgentArg,
    },
}

pub(super) async fn dispatch(globals: &Globals, verb: &WorkspaceVerb) -> Outcome {
    match verb {
        WorkspaceVerb::List { agent } => list(globals, agent).await,
        WorkspaceVerb::Attach { path, agent } => {
            let answer = asked(globals, agent, "attach", &json!({"path": absolute(path)?})).await?;
            let [agent, anchor] = ["agent_id", "workspace_anchor"].map(|name| print::text(&answer[name]));
            let text = format!("{agent} works in {} at {anchor}", print::text(&answer["workspace_id"]));
            print::done(globals.json, &answer, &text)
        }
        WorkspaceVerb::Exit { agent } => {
            let answer = asked(globals, agent, "exit", &json!({})).await?;
            print::done(globals.json, &answer, &format!("{} is at home", print::text(&answer["agent_id"])))
        }
        WorkspaceVerb::Detach { id, agent } => {
            let answer = asked(globals, agent, "detach", &json!({"workspace_id": id})).await?;
            print::done(globals.json, &answer, &format!("{id} is detached"))
        }
    }
}

async fn asked(globals: &Globals, agent: &AgentArg, verb: &str, body: &Value) -> Result<Value, Failure> {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    Ok(client.post(&format!("/control/agents/{id}/workspace/{verb}"), body).await?)
}

/// A path is meant from where holon was called, not from where the server runs.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

async fn list(globals: &Globals, agent: &AgentArg) -> Outcome {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    let execution = client.get(&format!("/agents/{id}/status")).await?["execution"].take();
    if globals.json {
        print::json(&execution);
        return Ok(());
    }
    let active = &execution["workspace_id"];
    let row = |id: &Value, path: &Value| {
        let mark = if id == active { "active" } else { "" };
        vec![print::text(id), mark.to_owned(), print::text(path)]
    };
    let attached = execution["attached_workspaces"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut rows: Vec<_> = attached.iter().map(|pair| row(&pair[0], &pair[1])).collect();
    if active == "agent_home" {
        rows.push(row(active, &execution["execution_root"]));
    }
    print::table(&["WORKSPACE", "", "FOLDER"], &rows);
    Ok(())
}
