//! Words that are short in the ledger and readable everywhere else.

use serde::de::{DeserializeOwned, Error as _, Unexpected};
use serde::{Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Display;

/// Writes `raw` where machines read, and the text of `word` where people do.
pub(super) fn serialize<S: Serializer>(
    raw: &impl Serialize,
    word: &impl Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if serializer.is_human_readable() { serializer.collect_str(word) } else { raw.serialize(serializer) }
}

/// Reads what [`serialize`] wrote.
pub(super) fn deserialize<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, D::Error> {
    if !deserializer.is_human_readable() {
        return T::deserialize(deserializer);
    }
    let text = <Cow<'_, str> as serde::Deserialize>::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &"a well-formed one"))
}
