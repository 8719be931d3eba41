//! The memory plane: working memory and episodes. Both are bounded; what they say is text or is named by its hash.

use super::{Illegal, Place};
use crate::events::memory::{EpisodeFinalized, MemoryEvent, WorkingMemoryUpdated};
use crate::words::content::Content;
use crate::words::id::{EpisodeId, EventSeq, RunId, WorkId};
use crate::words::limit::EPISODES_KEPT_MAX;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub entries: BTreeMap<String, Entry>,
    /// The id given last.
    pub last: EpisodeId,
    /// The episodes that prompts repeat, the oldest first; older ones are found through the store.
    pub episodes: VecDeque<Episode>,
}

/// A named note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: EventSeq,
    pub text: Content,
    /// The work it is bound to; none for all.
    pub work: Option<WorkId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    pub episode: EpisodeId,
    pub seq: EventSeq,
    pub first: RunId,
    pub last: RunId,
    pub digest: Content,
    pub work: Option<WorkId>,
}

impl Memory {
    pub(super) fn evolve(&mut self, event: &MemoryEvent, place: Place) -> Result<(), Illegal> {
        match event {
            MemoryEvent::Updated(event) => self.update(event, place),
            MemoryEvent::EpisodeFinalized(event) => self.finalize(event, place),
        }
    }

    fn update(&mut self, event: &WorkingMemoryUpdated, place: Place) -> Result<(), Illegal> {
        match &event.text {
            Some(text) => {
                let entry = Entry { seq: place.seq, text: text.clone(), work: event.work };
                self.entries.insert(event.entry.clone(), entry);
                Ok(())
            }
            None => self.entries.remove(&event.entry).map(drop).ok_or("no such note is kept"),
        }
    }

    fn finalize(&mut self, event: &EpisodeFinalized, place: Place) -> Result<(), Illegal> {
        if event.episode != self.last.next() {
            return Err("episode ids go up by one");
        }
        self.last = event.episode;
        if self.episodes.len() == EPISODES_KEPT_MAX {
            self.episodes.pop_front();
        }
        self.episodes.push_back(Episode {
            episode: event.episode,
            seq: place.seq,
            first: event.first,
            last: event.last,
            digest: event.digest.clone(),
            work: event.work,
        });
        Ok(())
    }
}
