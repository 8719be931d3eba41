//! The runtime.
pub mod model;
pub mod process;
