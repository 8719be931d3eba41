//! The runtime floor: where what is owed becomes what happens.
//!
//! - [`host`]: which agents are awake here; start and shutdown in order
//! - [`agent_loop`]: one agent, one loop, one owner of its state
//! - `home`: the home's own ledger, and with it the named tokens
//! - [`handle`]: what the surfaces hold: submit a command, read a durable state, follow a ledger
//! - [`reconcile`]: owed minus running is started, running minus owed is stopped; the same at boot and in service
//! - [`effect`]: how each kind of effect happens: prompts, model calls, commands
//! - [`permit`], [`deadline`], [`feed`], [`source`], [`secret`]: places, times, followers, the clock, kept secrets
//! - [`caller`]: whether a caller on this machine is an agent's command
//! - `webhook`: what webhooks are signed with; [`meter`]: what the host counts
//! - [`outbound`]: clients of other servers; [`preview`]: prompts that nobody is sent
//! - `root`: the one door to files that an agent, a repository or a skill names
//! - [`skill`]: the folders of skills in an agent's home
//! - [`model`]: who answers model rounds; [`process`]: commands that outlive the daemon
//!
//! **Invariant:** effects start from durable state alone: a loop has one append under way, and reconciles after it.

mod agent_loop;
pub mod caller;
mod deadline;
pub mod effect;
pub mod feed;
pub mod handle;
pub mod home;
pub mod host;
mod mail;
pub mod meter;
pub mod model;
pub mod outbound;
pub mod permit;
pub mod preview;
#[allow(
    clippy::disallowed_methods,
    clippy::format_collect,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a supervisor is a process of its own: it waits by the monotonic clock and tells its log"
)]
pub mod process;
pub mod reconcile;
mod root;
pub mod secret;
pub mod settings;
pub mod skill;
pub mod source;
mod webhook;
