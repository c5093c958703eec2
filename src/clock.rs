//! Times as the protocols write them (RFC 3339, UTC, seconds). Only this module uses chrono.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time, to the second, always written as `2025-01-15T10:30:00Z`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// The current time of this machine's clock.
    pub fn now() -> Self {
        Self(Utc::now().trunc_subsecs(0))
    }

    /// The time this many seconds later; None if it is out of range.
    pub fn after(self, seconds: i64) -> Option<Self> {
        self.0.checked_add_signed(TimeDelta::try_seconds(seconds)?).map(Self)
    }

    /// The seconds since the beginning of 1970 in UTC.
    pub fn seconds(self) -> i64 {
        self.0.timestamp()
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        Self(DateTime::<Utc>::from(time).trunc_subsecs(0))
    }
}

/// A file time in nanoseconds since 1970. Times after the year 2262 become the greatest value.
pub fn nanos(seconds: i64, nanos: impl Into<i64>) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos.into())
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}

impl FromStr for Timestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        DateTime::parse_from_rfc3339(text)
            .map(|t| Self(t.with_timezone(&Utc).trunc_subsecs(0)))
            .map_err(|e| {
                format!("'{text}' is not an RFC 3339 time such as 2025-01-15T10:30:00Z: {e}")
            })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_in_utc() {
        let time: Timestamp = "2025-01-15T11:30:00.9+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2025-01-15T10:30:00Z");
        assert!("yesterday".parse::<Timestamp>().unwrap_err().contains("RFC 3339"));
    }
}
