//! The offline floor: what can be asked of ledgers without a runtime.
//!
//! [`verify`] proves every ledger or says where it is damaged; [`stats`] counts what lies in them; [`prompt`] reads the
//! prompt of a past round back; [`replay`] runs recorded commands again and folds recorded ledgers.
//!
//! **Invariant:** nothing here writes, and nothing here needs an agent to be awake.

pub mod prompt;
pub mod replay;
pub mod stats;
pub mod verify;
