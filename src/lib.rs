//! holon
pub mod cli;
pub mod client;
pub mod context;
pub mod decide;
pub mod events;
pub mod fold;
pub mod http;
pub mod ledger;
pub mod runtime;
pub mod tools;
pub mod wire;
pub mod words;
