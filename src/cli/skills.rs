//! `holon skills …`: what an agent has to read up on.

use super::agent::AgentArg;
use super::workspace::absolute;
use super::{Failure, Globals, Outcome, print};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::Path;

#[derive(Subcommand)]
pub(super) enum SkillsVerb {
    /// The skills that the agent has.
    List {
        #[command(flatten)]
        agent: AgentArg,
    },
    /// Give the agent a skill.
    Install(InstallArgs),
    /// Take a skill from the agent.
    Uninstall {
        /// The skill.
        name: String,
        #[command(flatten)]
        agent: AgentArg,
    },
}

#[derive(Args)]
pub(super) struct InstallArgs {
    /// A skill of the home, or the folder of one, with a slash or a dot in it.
    #[arg(value_name = "NAME_OR_PATH")]
    skill: String,
    /// One that holon brings along.
    #[arg(long)]
    builtin: bool,
    /// Copy the folder as it is now; it is linked otherwise.
    #[arg(long, conflicts_with = "builtin")]
    copy: bool,
    #[command(flatten)]
    agent: AgentArg,
}

pub(super) async fn dispatch(globals: &Globals, verb: &SkillsVerb) -> Outcome {
    match verb {
        SkillsVerb::List { agent } => list(globals, agent).await,
        SkillsVerb::Install(args) => {
            altered(globals, &args.agent, "install", &json!({"kind": args.kind()?}), "has the skill").await
        }
        SkillsVerb::Uninstall { name, agent } => {
            altered(globals, agent, "uninstall", &json!({"name": name}), "is without the skill").await
        }
    }
}

impl InstallArgs {
    fn kind(&self) -> Result<Value, Failure> {
        let mode = if self.copy { "copied" } else { "linked" };
        if self.builtin {
            return Ok(json!({"kind": "builtin", "name": self.skill}));
        }
        if !self.skill.contains(['/', '.']) {
            return Ok(json!({"kind": "named", "name": self.skill, "mode": mode}));
        }
        Ok(json!({"kind": "local", "path": absolute(Path::new(&self.skill))?, "mode": mode}))
    }
}

async fn altered(globals: &Globals, agent: &AgentArg, verb: &str, body: &Value, done: &str) -> Outcome {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    let answer = client.post(&format!("/control/agents/{id}/skills/{verb}"), body).await?;
    print::done(globals.json, &answer, &format!("{id} {done} {}", print::text(&answer["skill_name"])))
}

async fn list(globals: &Globals, agent: &AgentArg) -> Outcome {
    let client = globals.client()?;
    let id = agent.id(&client).await?;
    let answer = client.get(&format!("/agents/{id}/skills")).await?;
    if globals.json {
        print::json(&answer["skills"]);
        return Ok(());
    }
    let skills = answer["skills"].as_array().map(Vec::as_slice).unwrap_or_default();
    print::table(&["SKILL", "SOURCE", "MODE", "DESCRIPTION"], &skills.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn row(skill: &Value) -> Vec<String> {
    let about = if skill["warning"].is_null() { &skill["description"] } else { &skill["warning"] };
    let [name, source, mode] = ["name", "source", "install_mode"].map(|member| print::text(&skill[member]));
    vec![name, source, mode, print::cut(&print::text(about), DESCRIPTION_CHARS_MAX)]
}

/// What a line shows of a description.
const DESCRIPTION_CHARS_MAX: usize = 80;
