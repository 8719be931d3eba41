//! Memory plane: what the agent keeps beside its transcript (semantics 9).

use crate::words::content::Content;
use crate::words::id::{EpisodeId, RunId, WorkId};

shape! {
    /// What ended an episode.
    pub enum EpisodeBoundary { WorkChanged, WaitBegan, Rejoined, TurnsReached, }
}
names!(EpisodeBoundary {
    WorkChanged = "work_changed",
    WaitBegan = "wait_began",
    Rejoined = "rejoined",
    TurnsReached = "turns_reached",
});

plane! {
    /// Facts about memory.
    MemoryEvent {
        /// A named note was written over, or removed when it has no text.
        0x0901 working_memory_updated 1 since "0.1.0" => Updated(WorkingMemoryUpdated) {
            entry: String,
            text: Option<Content>,
            /// The work it is bound to; none for all.
            work: Option<WorkId>,
        }
        /// A stretch of turns was summed up.
        0x0902 episode_memory_finalized 1 since "0.1.0" => EpisodeFinalized(EpisodeFinalized) {
            episode: EpisodeId,
            first: RunId,
            last: RunId,
            digest: Content,
            work: Option<WorkId>,
            boundary: EpisodeBoundary,
        }
    }
}
