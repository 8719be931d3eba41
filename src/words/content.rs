//! Text of any size: by value when it is small, by hash when it is not (architecture 23).

use super::hash::Hash;
use super::limit::{EXCERPT_BYTES_MAX, INLINE_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// Text that an event carries or names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The whole text.
    Inline(String),
    /// Text kept once in the store, under its hash.
    Stored {
        hash: Hash,
        /// The size of the stored text.
        bytes: u64,
        /// The beginning, at most [`EXCERPT_BYTES_MAX`] bytes.
        excerpt: String,
    },
}

/// A payload to be stored beside the events that name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub hash: Hash,
    pub bytes: Vec<u8>,
}

impl Blob {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { hash: Hash::of(&bytes), bytes }
    }
}

impl Content {
    /// Small text stays inline; longer text becomes a blob that must be stored with the event.
    pub fn new(text: String) -> (Self, Option<Blob>) {
        if text.len() <= INLINE_BYTES_MAX {
            return (Self::Inline(text), None);
        }
        let excerpt = excerpt(&text, EXCERPT_BYTES_MAX).to_owned();
        let blob = Blob::new(text.into_bytes());
        (Self::Stored { hash: blob.hash, bytes: blob.bytes.len() as u64, excerpt }, Some(blob))
    }

    /// The size of the whole text in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Stored { bytes, .. } => *bytes,
        }
    }

    /// The text as far as the event itself shows it.
    pub fn excerpt(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Stored { excerpt, .. } => excerpt,
        }
    }

    /// The hash under which the text is stored, if it is.
    pub fn stored(&self) -> Option<Hash> {
        match self {
            Self::Inline(_) => None,
            Self::Stored { hash, .. } => Some(*hash),
        }
    }
}

impl From<&str> for Content {
    /// For text known to be short.
    fn from(text: &str) -> Self {
        debug_assert!(text.len() <= INLINE_BYTES_MAX, "short by construction");
        Self::Inline(text.to_owned())
    }
}

/// The first `bytes_max` bytes of `text`, cut at a character.
pub fn excerpt(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_inline_and_long_text_is_stored_once() {
        let (content, blob) = Content::new("short".into());
        assert_eq!((content.excerpt(), blob), ("short", None));

        let long = "é".repeat(INLINE_BYTES_MAX);
        let (content, blob) = Content::new(long.clone());
        let blob = blob.expect("long text is stored");
        assert_eq!(content.bytes(), long.len() as u64);
        assert_eq!(content.stored(), Some(Hash::of(long.as_bytes())));
        assert_eq!(blob.bytes, long.as_bytes());
        assert!(content.excerpt().len() <= EXCERPT_BYTES_MAX);
    }
}
