//! Floor 6: what is done with ledgers without a runtime.

pub mod replay;
