//! Context.
pub mod request;
