//! The runtime.
pub mod model;
