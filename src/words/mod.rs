//! Floor 0: the words every other floor is written in.
//!
//! Ids, time arithmetic, hashes, bounded content and the limits. Nothing here knows what an agent does.

pub mod content;
pub mod hash;
pub mod id;
pub mod limit;
mod readable;
pub mod time;
