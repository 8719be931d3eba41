//! Tools of the agent plane: children, the agent itself, and whom it tells.

use super::waiting::Nothing;
use super::{Tool, error, invalid, read, schema_of, text};
use crate::decide::profile::Family;
use crate::events::agent::Preset;
use crate::events::call::{Action, CallError, ContextMode, SpawnRequest, View};
use crate::events::task::WorkspaceMode;
use crate::words::content::Blob;
use crate::words::id::AgentId;
use crate::words::limit::PATH_BYTES_MAX;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "SpawnAgent",
        family: Family::AgentCreation,
        description: "Make another agent. A private_child works for you, reports to you when it is done, and is \
                      followed by its task handle; a public_named one stands for itself.",
        mutates: true,
        schema: schema_of::<SpawnAgent>,
        read: |arguments, blobs| read::<SpawnAgent>(arguments)?.action(blobs),
    },
    Tool {
        name: "AgentGet",
        family: Family::Core,
        description: "Show what this agent is, does, works on and waits for.",
        mutates: false,
        schema: schema_of::<Nothing>,
        read: |arguments, _| read::<Nothing>(arguments).map(|Nothing {}| Action::Look(View::Agent)),
    },
    Tool {
        name: "Enqueue",
        family: Family::Core,
        description: "Send yourself a message, which a later turn takes up.",
        mutates: true,
        schema: schema_of::<Enqueue>,
        read: |arguments, blobs| {
            let Enqueue { text: body } = read(arguments)?;
            Ok(Action::Enqueue { text: text("text", filled("text", body)?, blobs)? })
        },
    },
    Tool {
        name: "NotifyOperator",
        family: Family::Core,
        description: "Tell the operator something now; a private child tells its supervisor.",
        mutates: true,
        schema: schema_of::<NotifyOperator>,
        read: |arguments, blobs| {
            let NotifyOperator { message } = read(arguments)?;
            Ok(Action::Notify { text: text("message", filled("message", message)?, blobs)? })
        },
    },
];

/// Arguments of SpawnAgent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SpawnAgent {
    /// private_child when absent.
    preset: Option<PresetName>,
    /// What the agent is told first. Required for a private_child.
    initial_message: Option<String>,
    /// The name of a public_named agent.
    agent_id: Option<String>,
    /// Whether it begins with a view of your context. fresh when absent.
    context: Option<ContextName>,
    /// Where it works. inherit when absent.
    workspace_mode: Option<ModeName>,
    /// For explicit_root: a folder that exists.
    workspace_root: Option<String>,
    /// Not there yet: leave it out.
    template: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PresetName {
    PrivateChild,
    PublicNamed,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ContextName {
    Fresh,
    Fork,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ModeName {
    Inherit,
    Worktree,
    ExplicitRoot,
}

/// Arguments of Enqueue.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Enqueue {
    text: String,
}

/// Arguments of NotifyOperator.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NotifyOperator {
    message: String,
}

impl SpawnAgent {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        if self.template.is_some() {
            return Err(invalid("template", "is not supported yet", "leave it out"));
        }
        let is_public = self.preset == Some(PresetName::PublicNamed);
        let agent_id = self.named(is_public)?;
        let mode = self.mode(is_public)?;
        let initial_message = self.initial_message.filter(|message| !message.trim().is_empty());
        if initial_message.is_none() && !is_public {
            let hint = "say what the child is to do, under which constraints, and what it should report";
            return Err(invalid("initial_message", "is required for a private_child and must not be blank", hint));
        }
        Ok(Action::Spawn(SpawnRequest {
            preset: if is_public { Preset::PublicNamed } else { Preset::PrivateChild },
            initial_message: initial_message.map(|message| text("initial_message", message, blobs)).transpose()?,
            agent_id,
            context: match self.context {
                Some(ContextName::Fork) => ContextMode::Fork,
                Some(ContextName::Fresh) | None => ContextMode::Fresh,
            },
            mode,
            workspace_root: self.workspace_root,
        }))
    }

    fn named(&self, is_public: bool) -> Result<Option<AgentId>, CallError> {
        match (&self.agent_id, is_public) {
            (None, false) => Ok(None),
            (Some(_), false) => {
                Err(invalid("agent_id", "is for public_named alone", "a private child is named for you"))
            }
            (None, true) => Err(invalid("agent_id", "is required for public_named", "choose a name for it")),
            (Some(id), true) => AgentId::chosen(id).map(Some).map_err(|fault| {
                error("invalid_tool_input", Some("agent_id"), &fault.to_string(), "choose another name")
            }),
        }
    }

    fn mode(&self, is_public: bool) -> Result<WorkspaceMode, CallError> {
        let mode = self.workspace_mode.unwrap_or(ModeName::Inherit);
        if is_public && mode != ModeName::Inherit {
            return Err(invalid("workspace_mode", "must be inherit for public_named", "leave it out"));
        }
        match (mode, &self.workspace_root) {
            (ModeName::ExplicitRoot, None) => {
                Err(invalid("workspace_root", "is required for explicit_root", "name a folder that exists"))
            }
            (ModeName::Inherit | ModeName::Worktree, Some(_)) => {
                Err(invalid("workspace_root", "is for explicit_root alone", "leave it out"))
            }
            (ModeName::ExplicitRoot, Some(root)) if root.len() > PATH_BYTES_MAX || root.contains('\0') => {
                Err(invalid("workspace_root", "is too long or holds a zero byte", "name a folder that exists"))
            }
            (ModeName::Inherit, None) => Ok(WorkspaceMode::Inherit),
            (ModeName::Worktree, None) => Ok(WorkspaceMode::Worktree),
            (ModeName::ExplicitRoot, Some(_)) => Ok(WorkspaceMode::ExplicitRoot),
        }
    }
}

fn filled(field: &str, text: String) -> Result<String, CallError> {
    if text.trim().is_empty() {
        return Err(invalid(field, "must not be empty", "write what is to be said"));
    }
    Ok(text)
}
