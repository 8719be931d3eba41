//! Getting a child ready to be born: where it works, and what it inherits.

use super::outside::{Ended, refused};
use super::workspace::{place, resolve};
use super::{git, prompt};
use crate::context::fork;
use crate::decide::birth::{NewChild, child_id};
use crate::decide::call::CallEnd;
use crate::events::agent::Preset;
use crate::events::call::{CallError, CallResult, ContextMode, SpawnRequest};
use crate::events::task::WorkspaceMode;
use crate::events::workspace::Worktree;
use crate::fold::AgentState;
use crate::runtime::handle::Handle;
use crate::runtime::host::Shared;
use crate::words::content::{Blob, Content, excerpt};
use crate::words::id::AgentId;
use crate::words::limit::EXCERPT_BYTES_MAX;
use std::path::Path;
use std::sync::Arc;

/// Gets the child that `request` asks for ready, or says why it cannot be.
pub(super) async fn prepare(shared: &Arc<Shared>, state: &AgentState, request: &SpawnRequest) -> Ended {
    let ready = async {
        check_id(shared, request)?;
        let (execution_root, worktree) = workplace(shared, state, request).await?;
        let (view, blobs) = inherited(shared, state, request).await?;
        let child = NewChild { request: request.clone(), view, execution_root, worktree };
        Ok::<_, CallEnd>((CallEnd::Child(Box::new(child)), blobs))
    };
    ready.await.unwrap_or_else(|end| (end, Vec::new()))
}

/// An id is never reused.
fn check_id(shared: &Shared, request: &SpawnRequest) -> Result<(), CallEnd> {
    let Some(id) = &request.agent_id else { return Ok(()) };
    match shared.store.head(id) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(taken(id)),
        Err(error) => Err(refused("unavailable", &error.to_string())),
    }
}

/// The end of a birth under an id that somebody else has.
pub(in crate::runtime) fn taken(id: &AgentId) -> CallEnd {
    invalid("agent_exists", "agent_id", &format!("there is an agent {id} already"), None)
}

type Workplace = (Option<String>, Option<Worktree>);

async fn workplace(shared: &Shared, state: &AgentState, request: &SpawnRequest) -> Result<Workplace, CallEnd> {
    if request.preset == Preset::PublicNamed {
        return Ok((None, None));
    }
    let parent = place(shared, state).root;
    match request.mode {
        WorkspaceMode::Inherit => root("workspace_mode", &parent),
        WorkspaceMode::ExplicitRoot => {
            let named = request.workspace_root.as_deref().unwrap_or_default();
            root("workspace_root", &parent.join(named))
        }
        WorkspaceMode::Worktree => worktree(shared, state, &parent).await,
    }
}

fn root(field: &str, path: &Path) -> Result<Workplace, CallEnd> {
    let root = resolve(path).map_err(|reason| invalid("invalid_tool_input", field, &reason, None))?;
    Ok((Some(root.to_string_lossy().into_owned()), None))
}

/// A worktree of the repository that the parent works in, named after the child. An attempt that died left one that is
/// found again.
async fn worktree(shared: &Shared, state: &AgentState, parent: &Path) -> Result<Workplace, CallEnd> {
    let fault = |reason: &str, hint| invalid("invalid_tool_input", "workspace_mode", reason, hint);
    let child = child_id(state).ok_or_else(|| fault("the child's id would be too long", None))?;
    let folders = shared.home_folder().join("worktrees");
    std::fs::create_dir_all(&folders).map_err(|error| fault(&error.to_string(), None))?;
    let folder = folders.join(child.as_str());
    let made = git::create(shared.home_folder(), parent, &folder, child.as_str()).await;
    let worktree = made.map_err(|error| fault(&format!("a worktree cannot be made here: {error}"), error.hint()))?;
    Ok((Some(worktree.root.clone()), Some(worktree)))
}

async fn inherited(
    shared: &Arc<Shared>,
    state: &AgentState,
    request: &SpawnRequest,
) -> Result<(Option<Content>, Vec<Blob>), CallEnd> {
    if request.context == ContextMode::Fresh {
        return Ok((None, Vec::new()));
    }
    let handoff = match &request.initial_message {
        Some(message) => Handle { shared: shared.clone() }.text(message.clone()).await,
        None => Ok(String::new()),
    };
    let handoff = handoff.map_err(|error| refused("unavailable", &error.to_string()))?;
    let needs = fork::needs(state, &handoff);
    let contents = prompt::contents(&*shared.store, &shared.blobs, &state.agent_id, &needs);
    let view = fork::render(state, &contents, &handoff).map_err(|error| refused("context", &error.to_string()))?;
    let (view, blob) = Content::new(view);
    Ok((Some(view), blob.into_iter().collect()))
}

fn invalid(kind: &str, field: &str, message: &str, hint: Option<&str>) -> CallEnd {
    let (kind, field) = (kind.to_owned(), Some(field.to_owned()));
    let message = excerpt(message, EXCERPT_BYTES_MAX).to_owned();
    CallEnd::Result(CallResult::Refused(CallError { kind, field, message, hint: hint.map(str::to_owned) }))
}
