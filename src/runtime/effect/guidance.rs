//! The guidance that a turn begins with: what AGENTS.md says in the home of holon, of the agent, and in its workspace;
//! and which skills it has.
//!
//! A file that is not there, is no regular file, or holds no text guides nobody. It is read anew for each turn and
//! recorded when it has changed (architecture 25).

use super::workspace::place;
use crate::decide::workspace::GuidanceFile;
use crate::events::workspace::GuidanceScope;
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::skill;
use crate::words::content::{Blob, Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, SkillName};
use crate::words::limit::GUIDANCE_BYTES_MAX;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "AGENTS.md";

/// The files that are to be read.
pub(in crate::runtime) struct Reading {
    agent: AgentId,
    files: Vec<(GuidanceScope, PathBuf)>,
    skills: Vec<SkillName>,
    skills_folder: PathBuf,
}

impl Reading {
    /// The most general first. An agent at home has no workspace beside it.
    pub(crate) fn of(shared: &Shared, state: &AgentState) -> Self {
        let user = shared.agents_folder.parent().unwrap_or(&shared.agents_folder);
        let home = shared.agents_folder.join(state.agent_id.as_str());
        let workspace = place(shared, state).root;
        let mut files = vec![(GuidanceScope::User, user.join(NAME)), (GuidanceScope::Agent, home.join(NAME))];
        if workspace != home {
            files.push((GuidanceScope::Workspace, workspace.join(NAME)));
        }
        let skills = state.workspaces.skills.keys().cloned().collect();
        let agent = state.agent_id.clone();
        Self { skills_folder: skill::folder(shared, &agent), agent, files, skills }
    }

    /// What the files say, and the payloads to be kept.
    pub(crate) async fn read(self, shared: &Arc<Shared>) -> (Vec<GuidanceFile>, Vec<Blob>) {
        let (blobs, agent) = (shared.blobs.clone(), self.agent.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let (files, contents): (Vec<_>, Vec<_>) =
                self.texts().into_iter().map(|(scope, text)| file(scope, text)).unzip();
            blobs.keep_large(contents.into_iter().flatten().collect()).map(|blobs| (files, blobs))
        });
        match reading.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => unread(&agent, &error),
            Err(error) => unread(&agent, &error),
        }
    }

    fn texts(self) -> Vec<(GuidanceScope, Option<String>)> {
        let skills = skill::list(&self.skills_folder, &self.skills);
        let files = self.files.into_iter().map(|(scope, path)| (scope, text(&path)));
        files.chain([(GuidanceScope::Skills, skills)]).collect()
    }
}

/// A turn goes on with the guidance that is recorded.
fn unread(agent: &AgentId, error: &dyn std::fmt::Display) -> (Vec<GuidanceFile>, Vec<Blob>) {
    tracing::error!(%agent, %error, "guidance cannot be read");
    (Vec::new(), Vec::new())
}

fn file(scope: GuidanceScope, text: Option<String>) -> (GuidanceFile, Option<Blob>) {
    let Some(text) = text else { return (GuidanceFile { scope, content: None, hash: None }, None) };
    let hash = Some(Hash::of(text.as_bytes()));
    let (content, blob) = Content::new(text);
    (GuidanceFile { scope, content: Some(content), hash }, blob)
}

/// The beginning of a text file, as far as guidance may go.
pub(in crate::runtime) fn text(path: &Path) -> Option<String> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(GUIDANCE_BYTES_MAX as u64 + 4).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let text = excerpt(&text, GUIDANCE_BYTES_MAX).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}
