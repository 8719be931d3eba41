//! The guidance that a turn begins with: what AGENTS.md says in the home of holon, of the agent, and in its workspace;
//! and which skills it has.
//!
//! A file that is not there or holds no text guides nobody. One that is not simply a file of its folder is not read:
//! the ledger and the log say why. Guidance is read anew for each turn and recorded when it has changed (architecture
//! 25).

use super::workspace::place;
use crate::decide::workspace::GuidanceFile;
use crate::events::workspace::GuidanceScope;
use crate::fold::AgentState;
use crate::runtime::host::Shared;
use crate::runtime::root::private::Private;
use crate::runtime::root::{FileError, Root};
use crate::runtime::skill;
use crate::words::content::{Blob, Content, excerpt};
use crate::words::hash::Hash;
use crate::words::id::{AgentId, SkillName};
use crate::words::limit::{EXCERPT_BYTES_MAX, GUIDANCE_BYTES_MAX};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "AGENTS.md";

/// The files that are to be read.
pub(in crate::runtime) struct Reading {
    agent: AgentId,
    files: Vec<Source>,
    skills: Vec<(SkillName, PathBuf)>,
    skills_folder: PathBuf,
    skills_private: Private,
    /// Why files were not read the last time, which the log has told.
    told: Vec<(GuidanceScope, String)>,
}

/// A folder with an AGENTS.md, maybe.
struct Source {
    scope: GuidanceScope,
    folder: PathBuf,
    private: Private,
}

/// What was read of a scope, or why it was not.
type Read = Result<Option<String>, FileError>;

impl Reading {
    /// The most general first. An agent at home has no workspace beside it.
    pub(crate) fn of(shared: &Shared, state: &AgentState) -> Self {
        let home = shared.agents_folder.join(state.agent_id.as_str());
        let workspace = place(shared, state).root;
        let own = Private::of_agent(shared.home_folder(), state);
        let user = Private::of_home(shared.home_folder(), [NAME.into()]);
        let source = |scope, folder: &Path, private| Source { scope, folder: folder.to_owned(), private };
        let mut files = vec![
            source(GuidanceScope::User, shared.home_folder(), user),
            source(GuidanceScope::Agent, &home, own.clone()),
        ];
        if workspace != home {
            files.push(source(GuidanceScope::Workspace, &workspace, own.clone()));
        }
        let (skills_folder, skills) = (skill::folder(shared, &state.agent_id), skill::folders(shared, state));
        let skills_private = own.with(skill::LIBRARY);
        let told = |source: &Source| Some((source.scope, state.workspaces.refused(source.scope)?.to_owned()));
        let told = files.iter().filter_map(told).collect();
        Self { agent: state.agent_id.clone(), files, skills, skills_folder, skills_private, told }
    }

    /// What the files say, and the payloads to be kept.
    pub(crate) async fn read(self, shared: &Arc<Shared>) -> (Vec<GuidanceFile>, Vec<Blob>) {
        let (blobs, agent) = (shared.blobs.clone(), self.agent.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let (files, contents): (Vec<_>, Vec<_>) =
                self.texts().into_iter().map(|(scope, text)| file(scope, text)).unzip();
            self.tell_refused(&files);
            blobs.keep_large(contents.into_iter().flatten().collect()).map(|blobs| (files, blobs))
        });
        match reading.await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => unread(&agent, &error),
            Err(error) => unread(&agent, &error),
        }
    }

    fn texts(&self) -> Vec<(GuidanceScope, Read)> {
        let skills = skill::list(&self.skills_folder, &self.skills, &self.skills_private);
        let files = self.files.iter().map(|source| (source.scope, source.read()));
        files.chain([(GuidanceScope::Skills, Ok(skills))]).collect()
    }

    /// The operator is told once of what is refused.
    fn tell_refused(&self, files: &[GuidanceFile]) {
        for file in files {
            let is_told = |reason: &str| self.told.iter().any(|(scope, told)| *scope == file.scope && told == reason);
            if let Some(reason) = file.refused.as_deref().filter(|reason| !is_told(reason)) {
                tracing::warn!(agent = %self.agent, scope = file.scope.name(), "guidance is not read: {reason}");
            }
        }
    }
}

impl Source {
    fn read(&self) -> Read {
        match Root::open(&self.folder, self.private.clone()).and_then(|root| text(&root, Path::new(NAME))) {
            Err(FileError::Missing) => Ok(None),
            read => read,
        }
    }
}

/// A turn goes on with the guidance that is recorded.
fn unread(agent: &AgentId, error: &dyn std::fmt::Display) -> (Vec<GuidanceFile>, Vec<Blob>) {
    tracing::error!(%agent, %error, "guidance cannot be read");
    (Vec::new(), Vec::new())
}

fn file(scope: GuidanceScope, read: Read) -> (GuidanceFile, Option<Blob>) {
    let none = GuidanceFile { scope, content: None, hash: None, refused: None };
    match read {
        Ok(None) => (none, None),
        Ok(Some(text)) => {
            let hash = Some(Hash::of(text.as_bytes()));
            let (content, blob) = Content::new(text);
            (GuidanceFile { content: Some(content), hash, ..none }, blob)
        }
        Err(error) => {
            let reason = excerpt(&format!("{NAME} {error}"), EXCERPT_BYTES_MAX).to_owned();
            (GuidanceFile { refused: Some(reason), ..none }, None)
        }
    }
}

/// The beginning of a text file that has no other name, as far as guidance may go; none when it is empty.
pub(in crate::runtime) fn text(root: &Root, path: &Path) -> Read {
    let bytes = root.read_alone(path, GUIDANCE_BYTES_MAX + 4)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = excerpt(&text, GUIDANCE_BYTES_MAX).trim_end();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}
