//! Skills: folders with a SKILL.md in an agent's home, of which its turns are told.
//!
//! - [`about`]: what a SKILL.md says of itself
//! - [`place`]: making the folders, and removing them
//!
//! **Invariant:** a skill that is recorded has its folder: that is made before the record, and removed after it. A crash
//! between the two leaves a folder that no record names: nobody is told of it, and the next change to a skill of this
//! name replaces or removes it.

mod about;
mod place;

use super::effect::workspace::{self, Place, resolve};
use super::handle::{Handle, SubmitError, blocking};
use super::host::Shared;
use super::root::private::Private;
use super::root::{FileError, Root};
use crate::decide::workspace::WorkspaceCommand;
use crate::decide::{self, Attribution, Rejection};
use crate::events::workspace::{SkillMode, SkillSource};
use crate::fold::AgentState;
use crate::fold::agent::Lifecycle;
use crate::fold::workspace::Skill;
use crate::ledger::StoreError;
use crate::words::content::excerpt;
use crate::words::id::{AgentId, SkillName};
use crate::words::limit::GUIDANCE_BYTES_MAX;
use place::{Origin, PlaceError};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The skills that the program brings along.
pub const BUILTIN: &[(&str, &str)] = &[
    ("long-work", include_str!("../../guide/skills/long-work/SKILL.md")),
    ("runbook", include_str!("../../guide/skills/runbook/SKILL.md")),
];

/// What every skill begins with.
const FILE: &str = "SKILL.md";

/// A skill as a surface asks for it.
#[derive(Clone, Debug)]
pub enum NewSkill {
    Builtin {
        name: SkillName,
    },
    /// One of the home's.
    Named {
        name: SkillName,
        mode: SkillMode,
    },
    /// A folder that is there, by its resolved path; the skill has its name.
    Local {
        name: SkillName,
        folder: PathBuf,
        mode: SkillMode,
    },
}

/// A skill that an agent has.
#[derive(Debug)]
pub struct Installed {
    pub name: SkillName,
    pub skill: Skill,
    pub folder: PathBuf,
    /// Where the folder is a link to.
    pub link_target: Option<PathBuf>,
    /// What it is for, or why that is not known.
    pub description: Result<String, String>,
}

impl NewSkill {
    pub fn name(&self) -> &SkillName {
        match self {
            Self::Builtin { name } | Self::Named { name, .. } | Self::Local { name, .. } => name,
        }
    }

    /// What is to be recorded of what it is made from.
    fn command(&self, origin: &Origin) -> WorkspaceCommand {
        let source = match self {
            Self::Builtin { .. } => SkillSource::Builtin,
            Self::Named { .. } => SkillSource::Named,
            Self::Local { .. } => SkillSource::Local,
        };
        let (mode, folder) = match origin {
            Origin::Text(_) => (SkillMode::Copied, None),
            Origin::Folder(_, mode @ SkillMode::Copied) => (*mode, None),
            Origin::Folder(folder, mode @ SkillMode::Linked) => (*mode, Some(folder.to_string_lossy().into_owned())),
        };
        WorkspaceCommand::InstallSkill { name: self.name().clone(), source, mode, folder }
    }

    /// Where it is to be had, in this home.
    fn origin(&self, home: &Path) -> Result<Origin, Rejection> {
        match self {
            Self::Builtin { name } => {
                let text = BUILTIN.iter().find(|(known, _)| *known == name.as_str());
                let unknown = || Rejection::Unknown { what: "built-in skill", id: name.to_string() };
                text.map(|(_, text)| Origin::Text(text)).ok_or_else(unknown)
            }
            Self::Named { name, mode } => {
                let unknown = |_| Rejection::Unknown { what: "named skill", id: name.to_string() };
                let folder = resolve(&home.join(LIBRARY).join(name.as_str())).map_err(unknown)?;
                Ok(Origin::Folder(folder, *mode))
            }
            Self::Local { folder, mode, .. } => Ok(Origin::Folder(folder.clone(), *mode)),
        }
    }
}

impl Handle {
    /// Makes a skill an agent's own.
    pub async fn install_skill(&self, agent: &AgentId, new: NewSkill, by: Attribution) -> Result<(), SubmitError> {
        let (handle, agent) = (self.clone(), agent.clone());
        unhindered(async move {
            // Whose agent is not there hears of that first.
            handle.read(&agent, |_: &AgentState| ()).await?;
            let (name, home) = (new.name().clone(), handle.shared.home_folder().to_owned());
            let _one_at_a_time = handle.shared.skills.lock().await;
            let (origin, command) = blocking(move || {
                let origin = new.origin(&home)?;
                let command = new.command(&origin);
                Ok::<_, Rejection>((origin, command))
            })
            .await?;
            if handle.would_record(&agent, command.clone()).await? {
                let (shared, agent, name) = (handle.shared.clone(), agent.clone(), name.clone());
                blocking(move || place_new(&shared, &agent, &name, &origin)).await?;
            }
            handle.record(agent, name, command, by).await
        })
        .await
    }

    /// Takes a skill from an agent. What it was linked to stays.
    pub async fn uninstall_skill(&self, agent: &AgentId, name: SkillName, by: Attribution) -> Result<(), SubmitError> {
        let (handle, agent) = (self.clone(), agent.clone());
        unhindered(async move {
            let _one_at_a_time = handle.shared.skills.lock().await;
            let command = WorkspaceCommand::UninstallSkill { name: name.clone() };
            handle.record(agent, name, command, by).await
        })
        .await
    }

    /// The skills that an agent has, by name.
    pub async fn skills(&self, agent: &AgentId) -> Result<Vec<Installed>, SubmitError> {
        let skills = self.read(agent, |state| state.workspaces.skills.clone()).await?;
        let (skills_folder, private) = (folder(&self.shared, agent), private(&self.shared, agent));
        let look = move || {
            skills.into_iter().map(|(name, skill)| Installed::look(&skills_folder, &private, name, skill)).collect()
        };
        blocking(move || Ok::<_, StoreError>(look())).await
    }

    /// The folder that a skill of the agent has.
    pub fn skill_folder(&self, agent: &AgentId, name: &SkillName) -> PathBuf {
        folder(&self.shared, agent).join(name.as_str())
    }

    /// Whether the core takes the command as things stand: only then a folder is touched for it.
    async fn would_record(&self, agent: &AgentId, command: WorkspaceCommand) -> Result<bool, SubmitError> {
        let now = self.now();
        let would = move |state: &AgentState| {
            state.agent.lifecycle != Lifecycle::Archived && decide::decide(state, &command.into(), now).is_ok()
        };
        self.read(agent, would).await
    }

    /// Has the command recorded; whatever came of it, a folder stays only where a record names it.
    async fn record(
        &self,
        agent: AgentId,
        name: SkillName,
        command: WorkspaceCommand,
        by: Attribution,
    ) -> Result<(), SubmitError> {
        let request = by.request(command);
        let answer = self.submit(&agent, request, Vec::new()).await.map(drop);
        match self.tidy(&agent, name).await {
            // There is no such agent, as the answer says.
            Ok(()) | Err(SubmitError::Rejected(_)) => {}
            Err(error) => tracing::warn!(%agent, %error, "a skill's folder may stay; the next change tries again"),
        }
        answer
    }

    /// Removes a folder that no record names.
    async fn tidy(&self, agent: &AgentId, name: SkillName) -> Result<(), SubmitError> {
        let wanted = name.clone();
        if self.read(agent, move |state| state.workspaces.skills.contains_key(&wanted)).await? {
            return Ok(());
        }
        let (shared, agent) = (self.shared.clone(), agent.clone());
        blocking(move || place::remove(&agent_folder(&shared, &agent)?, &name)).await
    }
}

/// Whoever asked may go; what was begun comes to its end all the same.
async fn unhindered(act: impl Future<Output = Result<(), SubmitError>> + Send + 'static) -> Result<(), SubmitError> {
    tokio::spawn(act).await.unwrap_or_else(|error| Err(SubmitError::Unavailable(error.to_string())))
}

fn place_new(shared: &Shared, agent: &AgentId, name: &SkillName, origin: &Origin) -> Result<(), SubmitError> {
    Ok(place::place(&agent_folder(shared, agent)?, name, origin, &private(shared, agent))?)
}

/// The skills of the home, from which several agents may have one by its name.
pub(super) const LIBRARY: &str = "skills";

/// What may be read of the home as a skill of the agent.
fn private(shared: &Shared, agent: &AgentId) -> Private {
    Private::of_home(shared.home_folder(), [Path::new("agents").join(agent.as_str()), LIBRARY.into()])
}

/// The folder of an agent, for changes to its skills.
fn agent_folder(shared: &Shared, agent: &AgentId) -> Result<Root, PlaceError> {
    Ok(Root::open(&workspace::home(shared, agent), private(shared, agent))?)
}

/// Where an agent has its skills.
pub(super) fn folder(shared: &Shared, agent: &AgentId) -> PathBuf {
    shared.agents_folder.join(agent.as_str()).join(place::SKILLS)
}

/// The skills of an agent, and the folders that they are read from.
pub(super) fn folders(shared: &Shared, state: &AgentState) -> Vec<(SkillName, PathBuf)> {
    let skills_folder = folder(shared, &state.agent_id);
    let skills = state.workspaces.skills.iter();
    skills.map(|(name, skill)| (name.clone(), read_from(&skills_folder, name, skill))).collect()
}

/// The folder that a skill is read from. For a linked one it is the folder that the operator chose: the link in the
/// agent's own folder is for people, and for the agent to change.
fn read_from(skills_folder: &Path, name: &SkillName, skill: &Skill) -> PathBuf {
    skill.folder.as_ref().map_or_else(|| skills_folder.join(name.as_str()), PathBuf::from)
}

/// What a turn is told of skills: name, description and where to read on. None without any.
pub(super) fn list(skills_folder: &Path, skills: &[(SkillName, PathBuf)], private: &Private) -> Option<String> {
    let mut list = String::new();
    for (name, folder) in skills {
        if let Ok(description) = describe(folder, name, private) {
            let path = skills_folder.join(name.as_str()).join(FILE);
            writeln!(list, "- {name}: {description}\n  {}", path.display()).expect("a string takes all");
        }
    }
    (!list.is_empty()).then(|| excerpt(&list, GUIDANCE_BYTES_MAX).to_owned())
}

/// What the skill in a folder is for, or why that is not known.
fn describe(folder: &Path, name: &SkillName, private: &Private) -> Result<String, String> {
    match Root::open(folder, private.clone()) {
        Ok(root) => about::read(&root, name),
        Err(FileError::Missing) => Err(about::unread()),
        Err(error) => Err(format!("has a folder that {error}")),
    }
}

/// From where a file is read: from a skill's own folder, linked or not, where the path leads into one.
pub(super) fn reached(shared: &Shared, state: &AgentState, place: Place, path: String) -> (Place, String) {
    let skills_folder = folder(shared, &state.agent_id);
    let whole = place.root.join(&place.cwd).join(&path);
    let inside = whole.strip_prefix(&skills_folder).ok().and_then(|inside| {
        let name: SkillName = inside.components().next()?.as_os_str().to_str()?.parse().ok()?;
        let skill = state.workspaces.skills.get(&name)?;
        let file = inside.strip_prefix(name.as_str()).unwrap_or(inside);
        Some((read_from(&skills_folder, &name, skill), file))
    });
    match inside {
        Some((root, file)) => (Place { root, cwd: PathBuf::new() }, file.to_string_lossy().into_owned()),
        None => (place, path),
    }
}

impl Installed {
    fn look(skills_folder: &Path, private: &Private, name: SkillName, skill: Skill) -> Self {
        let description = describe(&read_from(skills_folder, &name, &skill), &name, private);
        let link_target = skill.folder.as_ref().map(PathBuf::from);
        Self { folder: skills_folder.join(name.as_str()), name, skill, link_target, description }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_skills_are_what_their_names_say() {
        for (name, text) in BUILTIN {
            assert!(about::description(text, &name.parse().unwrap()).is_ok(), "{name}");
        }
    }
}
