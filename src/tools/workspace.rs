//! Tools of the workspace plane: files inside the execution root, and which folder that is.

use super::{Tool, invalid, read, schema_of, text};
use crate::decide::profile::Family;
use crate::events::call::{Action, CallError};
use crate::events::workspace::WorkspaceName;
use crate::words::content::Blob;
use crate::words::limit::{
    FILE_LINES_DEFAULT, FILE_LINES_MAX, PATH_BYTES_MAX, SEARCH_MATCHES_DEFAULT, SEARCH_MATCHES_MAX,
};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "ReadFile",
        family: Family::LocalEnvironment,
        description: "Read lines of a text file inside the execution root.",
        mutates: false,
        schema: schema_of::<ReadFile>,
        read: |arguments, _| read::<ReadFile>(arguments)?.action(),
    },
    Tool {
        name: "SearchFiles",
        family: Family::LocalEnvironment,
        description: "Search text files inside the execution root for a regular expression. Ignored files are left out.",
        mutates: false,
        schema: schema_of::<SearchFiles>,
        read: |arguments, _| read::<SearchFiles>(arguments)?.action(),
    },
    Tool {
        name: "ApplyPatch",
        family: Family::LocalEnvironment,
        description: "Change files inside the execution root by a unified diff. All of it applies, or nothing.",
        mutates: true,
        schema: schema_of::<ApplyPatch>,
        read: |arguments, blobs| read::<ApplyPatch>(arguments)?.action(blobs),
    },
    Tool {
        name: "UseWorkspace",
        family: Family::LocalEnvironment,
        description: "Work in another attached workspace, or in agent_home, from the next call on.",
        mutates: true,
        schema: schema_of::<UseWorkspace>,
        read: |arguments, _| read::<UseWorkspace>(arguments)?.action(),
    },
    Tool {
        name: "AttachWorkspace",
        family: Family::AuthorityExpansion,
        description: "Attach a folder of this machine, and work there.",
        mutates: true,
        schema: schema_of::<AttachWorkspace>,
        read: |arguments, _| read::<AttachWorkspace>(arguments)?.action(),
    },
    Tool {
        name: "DetachWorkspace",
        family: Family::AuthorityExpansion,
        description: "Detach a workspace that is not the active one.",
        mutates: true,
        schema: schema_of::<DetachWorkspace>,
        read: |arguments, _| read::<DetachWorkspace>(arguments)?.action(),
    },
];

/// Arguments of ReadFile.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// Relative to the working folder, or absolute inside the execution root or a skill that is installed.
    path: String,
    /// The first line to read, from 1.
    first_line: Option<u64>,
    /// The most lines to read.
    max_lines: Option<u32>,
}

/// Arguments of SearchFiles.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    /// A regular expression.
    pattern: String,
    /// The file or folder to search; the working folder when absent.
    path: Option<String>,
    /// Only files whose path matches, such as `*.rs`.
    glob: Option<String>,
    /// The most matches to show.
    max_matches: Option<u32>,
}

/// Arguments of ApplyPatch.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatch {
    /// A unified diff; paths are relative to the working folder.
    patch: String,
}

/// Arguments of UseWorkspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UseWorkspace {
    /// The workspace, such as ws-2, or agent_home.
    workspace_id: String,
    /// Where commands begin, relative to its root.
    cwd: Option<String>,
}

/// Arguments of AttachWorkspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttachWorkspace {
    /// A folder that exists.
    path: String,
}

/// Arguments of DetachWorkspace.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DetachWorkspace {
    /// The workspace, such as ws-2.
    workspace_id: String,
}

impl ReadFile {
    fn action(self) -> Result<Action, CallError> {
        let first_line = self.first_line.unwrap_or(1);
        if first_line == 0 {
            return Err(invalid("first_line", "is 0", "lines are counted from 1"));
        }
        let lines_max = self.max_lines.unwrap_or(FILE_LINES_DEFAULT).clamp(1, FILE_LINES_MAX);
        Ok(Action::ReadFile { path: path("path", self.path)?, first_line, lines_max })
    }
}

impl SearchFiles {
    fn action(self) -> Result<Action, CallError> {
        if self.pattern.is_empty() {
            return Err(invalid("pattern", "must not be empty", "give a regular expression"));
        }
        Ok(Action::SearchFiles {
            pattern: path("pattern", self.pattern)?,
            path: self.path.map(|text| path("path", text)).transpose()?,
            glob: self.glob.map(|text| path("glob", text)).transpose()?,
            matches_max: self.max_matches.unwrap_or(SEARCH_MATCHES_DEFAULT).clamp(1, SEARCH_MATCHES_MAX),
        })
    }
}

impl ApplyPatch {
    fn action(self, blobs: &mut Vec<Blob>) -> Result<Action, CallError> {
        if self.patch.trim().is_empty() {
            return Err(invalid("patch", "must not be empty", "give a unified diff"));
        }
        Ok(Action::ApplyPatch { patch: text("patch", self.patch, blobs)? })
    }
}

impl UseWorkspace {
    fn action(self) -> Result<Action, CallError> {
        let workspace = match self.workspace_id.as_str() {
            "agent_home" => WorkspaceName::AgentHome,
            id => WorkspaceName::Attached(id.parse().map_err(|_| not_a_workspace())?),
        };
        Ok(Action::UseWorkspace { workspace, cwd: self.cwd.map(|text| path("cwd", text)).transpose()? })
    }
}

impl AttachWorkspace {
    fn action(self) -> Result<Action, CallError> {
        if self.path.trim().is_empty() {
            return Err(invalid("path", "must not be empty", "give the path of a folder"));
        }
        Ok(Action::AttachWorkspace { path: path("path", self.path)? })
    }
}

impl DetachWorkspace {
    fn action(self) -> Result<Action, CallError> {
        Ok(Action::DetachWorkspace { workspace: self.workspace_id.parse().map_err(|_| not_a_workspace())? })
    }
}

fn not_a_workspace() -> CallError {
    invalid("workspace_id", "is not a workspace id", "AgentGet lists the attached workspaces; they look like ws-2")
}

/// A text that is handed to the system: bounded, and without a zero byte.
fn path(field: &str, text: String) -> Result<String, CallError> {
    if text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(invalid(field, "is too long or holds a zero byte", "give a shorter one"));
    }
    Ok(text)
}
