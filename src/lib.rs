//! holon
pub mod context;
pub mod events;
pub mod runtime;
pub mod words;
