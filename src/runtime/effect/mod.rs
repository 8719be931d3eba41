//! How each kind of effect happens. An effect ends in a command that says what came of it.
//!
//! - [`prompt`]: reads what a prompt is made of
//! - [`call`]: one model call
//! - [`command`]: one managed command, launched or found again
//! - [`delivery`]: what a binding is to carry
//! - [`guidance`]: the AGENTS.md files that a turn begins with
//! - [`outside`]: one tool call that needs the outside
//! - [`spawn`]: a child that is to be born
//! - [`workspace`]: where an agent works

pub(super) mod call;
pub(super) mod command;
pub(crate) mod delivery;
pub(super) mod family;
mod file;
mod git;
pub(super) mod guidance;
pub(super) mod input;
pub(super) mod output;
pub(super) mod outside;
pub(super) mod prompt;
mod record;
mod search;
pub(super) mod spawn;
pub(super) mod trigger;
pub(super) mod workspace;
pub(super) mod worktree;
