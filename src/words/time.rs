//! Points in time and their arithmetic. Nothing here reads a clock.
//!
//! Time is recorded as it was read and may go back (architecture 4): order is the `event_seq`, never time,
//! and a difference that would be negative is zero.

use super::readable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        readable::serialize(&self.0, self, serializer)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        readable::deserialize(deserializer, |text| Self::parse(text).map(|at| at.0)).map(Self)
    }
}

impl Timestamp {
    /// Reads the form that [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(milliseconds) = text.strip_suffix("ms") {
            return milliseconds.parse().ok().map(Self);
        }
        text.parse().ok().map(|point: jiff::Timestamp| Self(point.as_millisecond()))
    }

    /// The point `milliseconds` later; at the end of time it stays there.
    #[must_use]
    pub fn after_ms(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add_unsigned(milliseconds))
    }

    /// Milliseconds from `earlier` to here; zero when the clock went back in between.
    #[must_use]
    pub fn since_ms(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// RFC 3339 in UTC with milliseconds: `2026-11-20T09:30:00.125Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(point) => write!(f, "{point:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_went_back_makes_no_negative_duration() {
        assert_eq!(Timestamp(5).since_ms(Timestamp(9)), 0);
        assert_eq!(Timestamp(i64::MAX).after_ms(1), Timestamp(i64::MAX));
    }

    #[test]
    fn time_is_shown_in_utc_with_milliseconds() {
        assert_eq!(Timestamp(1_795_167_000_125).to_string(), "2026-11-20T09:30:00.125Z");
    }
}
