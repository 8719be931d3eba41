//! Tool calls that need the outside: one attempt each, and what it brings back.
//!
//! **Invariant:** what is made here leaves no trace but its end: an attempt that dies is made again by the next boot,
//! or is told to be of unknown effect where that could harm (architecture 11).

use super::file::{self, Files};
use super::workspace::{Place, home, place, resolve};
use super::{output, record, search, spawn, trigger};
use crate::decide::Request;
use crate::decide::call::CallEnd;
use crate::decide::turn::TurnCommand;
use crate::decide::workspace::Resolved;
use crate::events::Cause;
use crate::events::call::{Action, CallError, CallResult, Shown, View};
use crate::events::workspace::{Projection, WorkspaceName};
use crate::fold::AgentState;
use crate::runtime::handle::Handle;
use crate::runtime::host::Shared;
use crate::runtime::mail::What;
use crate::runtime::root::private::Private;
use crate::runtime::skill;
use crate::tools;
use crate::words::content::{Blob, Content};
use crate::words::hash::Hash;
use crate::words::id::{EventSeq, RunId};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A call that is to be made, as the state describes it.
pub(in crate::runtime) struct OutsideCall {
    run: RunId,
    attempt: EventSeq,
    action: Action,
    /// The state that the call sees: durable, as it was when the call began.
    state: Box<AgentState>,
}

/// How a call ended, and the payloads that its end names.
pub(super) type Ended = (CallEnd, Vec<Blob>);

impl OutsideCall {
    pub(crate) fn of(state: &AgentState, run: RunId, attempt: EventSeq, action: Action) -> Self {
        Self { run, attempt, action, state: Box::new(state.clone()) }
    }

    /// Makes the call and says what came of it.
    pub(crate) async fn make(self, shared: Arc<Shared>) -> What {
        let (run, attempt) = (self.run, self.attempt);
        let (end, blobs) = self.act(&shared).await;
        let keeper = shared.blobs.clone();
        let kept = tokio::task::spawn_blocking(move || keeper.keep_large(blobs)).await;
        let (end, blobs) = match kept {
            Ok(Ok(blobs)) => (end, blobs),
            Ok(Err(error)) => (refused("not_kept", &error.to_string()), Vec::new()),
            Err(error) => (refused("not_kept", &error.to_string()), Vec::new()),
        };
        What::Command { request: Request::new(TurnCommand::EndCall { run, attempt, end }, Cause::Run(run)), blobs }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other calls are decided without the outside")]
    async fn act(self, shared: &Arc<Shared>) -> Ended {
        let place = place(shared, &self.state);
        let private = Private::of_agent(shared.home_folder(), &self.state);
        match self.action {
            Action::Look(ref view) => self.look(shared, view),
            Action::TaskOutput { task, offset, shown_tokens, .. } => {
                let handle = Handle { shared: shared.clone() };
                output::page(&handle, &self.state, task, offset.unwrap_or(0), shown_tokens).await
            }
            Action::ReadFile { path, first_line, lines_max } => {
                let (place, path) = skill::reached(shared, &self.state, place, path);
                let private = private.with(skill::LIBRARY);
                let read = move || file::read(&Files::open(&place, private)?, &path, first_line, lines_max);
                in_files(move || read().map(|shown| viewed(shown.to_string()))).await
            }
            Action::SearchFiles { pattern, path, glob, matches_max } => {
                let search = move || {
                    let files = Files::open(&place, private)?;
                    search::search(&files, &pattern, path.as_deref(), glob.as_deref(), matches_max)
                };
                in_files(move || search().map(|shown| viewed(shown.to_string()))).await
            }
            Action::ApplyPatch { patch } => apply(shared, place, private, patch).await,
            Action::UseWorkspace { workspace, cwd } => use_workspace(shared, &self.state, workspace, cwd.as_deref()),
            Action::AttachWorkspace { path } => attach(&place, &path),
            Action::CreateTrigger { .. } => trigger::create(shared, &self.state),
            Action::Spawn(request) => spawn::prepare(shared, &self.state, &request).await,
            _ => (refused("not_available", "this runtime cannot make the call"), Vec::new()),
        }
    }

    /// A part of the state, as JSON, or of what has left it.
    fn look(&self, shared: &Arc<Shared>, view: &View) -> Ended {
        if let Some(value) = tools::view::render(&self.state, view) {
            return viewed(tools::view::with_texts(value, &texts(shared, &self.state, view)).to_string());
        }
        match record::find(shared, &self.state, view) {
            Some(value) => viewed(value.to_string()),
            None => (refused("not_found", "there is nothing of that name"), Vec::new()),
        }
    }
}

/// The stored texts that a view shows whole.
fn texts(shared: &Shared, state: &AgentState, view: &View) -> BTreeMap<Hash, String> {
    let hashes = tools::view::hashes(state, view);
    let read = |hash: Hash| Some((hash, String::from_utf8(shared.blobs.read(&hash).ok()?).ok()?));
    hashes.into_iter().filter_map(read).collect()
}

/// Work on files, where it may block.
async fn in_files(act: impl FnOnce() -> Result<Ended, CallError> + Send + 'static) -> Ended {
    match tokio::task::spawn_blocking(act).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => (CallEnd::Result(CallResult::Refused(error)), Vec::new()),
        Err(error) => (refused("failed", &error.to_string()), Vec::new()),
    }
}

async fn apply(shared: &Arc<Shared>, place: Place, private: Private, patch: Content) -> Ended {
    match (Handle { shared: shared.clone() }).text(patch).await {
        Ok(patch) => {
            let patched = move || file::apply(&Files::open(&place, private)?, &patch);
            in_files(move || patched().map(|files| (CallEnd::Result(CallResult::Patched { files }), Vec::new()))).await
        }
        Err(error) => (refused("unavailable", &error.to_string()), Vec::new()),
    }
}

fn use_workspace(shared: &Shared, state: &AgentState, workspace: WorkspaceName, cwd: Option<&str>) -> Ended {
    let (root, execution_root) = match &workspace {
        WorkspaceName::AgentHome => (home(shared, &state.agent_id), None),
        WorkspaceName::Attached(id) => match state.workspaces.attached.get(id) {
            Some(attached) => (PathBuf::from(&attached.anchor), Some(attached.anchor.clone())),
            None => return (refused("not_found", &format!("there is no workspace {id}")), Vec::new()),
        },
    };
    let place = Place { root: root.clone(), cwd: PathBuf::new() };
    match place.folder(cwd) {
        Ok(folder) => {
            let root = root.canonicalize().unwrap_or(root);
            let cwd = folder.strip_prefix(&root).unwrap_or(Path::new("")).to_string_lossy().into_owned();
            let projection = Projection::CanonicalRoot;
            (CallEnd::Workspace(Resolved::Use { workspace, execution_root, projection, cwd }), Vec::new())
        }
        Err(reason) => (refused("invalid_tool_input", &reason), Vec::new()),
    }
}

fn attach(place: &Place, path: &str) -> Ended {
    match resolve(&place.root.join(&place.cwd).join(path)) {
        Ok(root) => {
            let (anchor, projection) = (root.to_string_lossy().into_owned(), Projection::CanonicalRoot);
            (CallEnd::Workspace(Resolved::Attach { anchor, projection }), Vec::new())
        }
        Err(reason) => (refused("invalid_tool_input", &reason), Vec::new()),
    }
}

/// A text that the call is shown whole.
pub(super) fn viewed(text: String) -> Ended {
    let bytes = text.len() as u64;
    let (text, blob) = Content::new(text);
    (CallEnd::Result(CallResult::Viewed(Shown { text, bytes, cut: false })), blob.into_iter().collect())
}

/// A refusal by the outside.
pub(super) fn refused(kind: &str, message: &str) -> CallEnd {
    let (kind, message) = (kind.to_owned(), message.to_owned());
    CallEnd::Result(CallResult::Refused(CallError { kind, field: None, message, hint: None }))
}
