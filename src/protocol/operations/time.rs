//! Times as events carry them. The clock is elsewhere: a time comes in as text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time as the events write it: ISO 8601 in UTC, ending in `Z`, to the second or finer
/// (agent-spaces-protocol, "Event Types": `timestamp`).
///
/// # Examples
/// ```
/// use deaddrop::{clock::Timestamp, protocol::operations::UtcTime};
/// let time = UtcTime::parse("2025-01-15T10:30:00Z").unwrap();
/// assert_eq!(time.as_str(), "2025-01-15T10:30:00Z");
/// assert_eq!(UtcTime::parse("2025-01-15T10:30:00+01:00"), None);
/// assert!(UtcTime::parse(&Timestamp::now().to_string()).is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct UtcTime(String);

impl TryFrom<String> for UtcTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("'{text}' is no time in UTC"))
    }
}

impl Default for UtcTime {
    /// The beginning of 1970, for a time that no calendar of four digits has.
    fn default() -> Self {
        Self("1970-01-01T00:00:00Z".to_owned())
    }
}

impl UtcTime {
    /// Takes a time such as `2025-01-15T10:30:00Z` or `2025-01-15T10:30:00.123Z`; None for all
    /// else, days that no calendar has among it.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_suffix('Z')?;
        let (whole, fraction) = rest.split_at_checked(19)?;
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let fraction_fits = fraction.is_empty() || fraction.strip_prefix('.').is_some_and(digits);
        let shaped = whole.bytes().zip(*b"0000-00-00T00:00:00").all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => byte == form,
        });
        if !shaped || !fraction_fits {
            return None;
        }
        let number = |from: usize, to: usize| whole[from..to].parse::<u32>().unwrap_or(u32::MAX);
        let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let exists = (1..=days).contains(&day)
            && number(11, 13) < 24
            && number(14, 16) < 60
            && number(17, 19) < 60;
        exists.then(|| Self(text.to_owned()))
    }

    /// The time as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_utc_are_taken_as_they_are() {
        for text in [
            "2025-01-15T10:30:00Z",
            "2025-01-15T10:30:02.123Z",
            "2024-02-29T23:59:59Z",
            "2000-02-29T00:00:00Z",
            "2025-12-31T00:00:00Z",
        ] {
            assert_eq!(UtcTime::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn all_else_is_no_time() {
        for text in [
            "",
            "Z",
            "yesterday",
            "2025-01-15",
            "2025-01-15T10:30:00",
            "2025-01-15T10:30:00z",
            "2025-01-15t10:30:00Z",
            "2025-01-15 10:30:00Z",
            "2025-01-15T10:30:00+00:00",
            "2025-01-15T10:30:00.Z",
            "2025-01-15T10:30:00,5Z",
            "2025-01-15T10:30:00.5xZ",
            "2025-1-15T10:30:00Z",
            "+025-01-15T10:30:00Z",
            "2025-00-15T10:30:00Z",
            "2025-13-15T10:30:00Z",
            "2025-01-00T10:30:00Z",
            "2025-04-31T10:30:00Z",
            "2025-02-29T10:30:00Z",
            "1900-02-29T10:30:00Z",
            "2025-01-15T24:00:00Z",
            "2025-01-15T10:60:00Z",
            "2025-01-15T10:30:60Z",
            "２025-01-15T10:30:00Z",
            "2025-01-15T10:30:0éZ",
        ] {
            assert_eq!(UtcTime::parse(text), None, "{text}");
        }
    }
}
