//! The wire floor: JSON shapes, and how the core's values become them. Nothing here decides or waits.
//!
//! The contract is the control-plane seed; required members and their types follow the shapes that its clients read.

pub mod actor;
pub mod agent;
pub mod binding;
pub mod catalogue;
pub mod diagnostic;
pub mod event;
pub mod message;
mod open;
pub mod problem;
pub mod record;
pub mod token;
pub mod waiting;
pub mod work;
pub mod worktree;
