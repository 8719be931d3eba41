//! Commands that outlive the daemon. Linux only.

mod environment;

pub use environment::{AGENT_ID_VARIABLE, command_environment, of_the_daemon};
