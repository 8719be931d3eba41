//! Floor 0: the words every other floor is written in.
//!
//! Ids, time arithmetic, hashes, bounded content, text of prompts and the limits. Nothing here knows what an agent does.

pub mod content;
pub mod hash;
pub mod id;
pub mod limit;
pub mod prompt_text;
mod readable;
pub mod time;
