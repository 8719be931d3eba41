//! Bodies of older versions, and how each becomes today's (architecture 24).
//!
//! Every kind is at its first version. The first body that changes brings its old form and its function here.

use super::codec::CodecError;

/// The body of `tag` in today's form.
pub(super) fn lift(tag: u16, version: u8, today: u8, body: &[u8]) -> Result<&[u8], CodecError> {
    if version == today { Ok(body) } else { Err(CodecError::UnknownVersion { tag, version }) }
}
