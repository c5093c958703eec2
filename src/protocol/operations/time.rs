//! Times as events carry them. The clock is elsewhere: a time comes in as text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A point in time as events write it: ISO 8601 in UTC, ending in `Z` (agent-spaces-protocol, "Event
/// Types": `timestamp`). Seconds and their fraction are optional.
///
/// # Examples
/// ```
/// use deaddrop::{clock::Timestamp, protocol::operations::UtcTime};
/// let time = UtcTime::parse("2025-01-15T10:30:00Z").unwrap();
/// assert_eq!(time.as_str(), "2025-01-15T10:30:00Z");
/// assert!(UtcTime::parse("2025-01-15T10:30Z").is_some());
/// assert_eq!(UtcTime::parse("2025-01-15T10:30:00+01:00"), None);
/// assert!(UtcTime::parse(&Timestamp::now().to_string()).is_some());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct UtcTime(String);

impl TryFrom<String> for UtcTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("'{text}' is not a time in UTC"))
    }
}

impl Default for UtcTime {
    /// The beginning of 1970, for a time outside the calendar of four-digit years.
    fn default() -> Self {
        Self("1970-01-01T00:00:00Z".to_owned())
    }
}

impl UtcTime {
    /// Parses a time such as `2025-01-15T10:30Z` or `2025-01-15T10:30:00.123Z`; None for anything
    /// else, such as days that no calendar has.
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let (time, fraction) = time.split_once('.').map_or((time, None), |(t, f)| (t, Some(f)));
        let [hour, minute, second] = match fraction {
            None if time.len() == 5 => numbers(&format!("{time}:00"), ':', [2, 2, 2])?,
            _ => numbers(time, ':', [2, 2, 2])?,
        };
        let is_fraction = |digits: &str| !digits.is_empty() && is_digits(digits);
        let exists = (1..=days).contains(&day) && hour < 24 && minute < 60 && second < 60;
        (exists && fraction.is_none_or(is_fraction)).then(|| Self(text.to_owned()))
    }

    /// Returns the time as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Three numbers of these lengths with a separator between them.
fn numbers(text: &str, separator: char, lengths: [usize; 3]) -> Option<[u32; 3]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let fits = parts.iter().zip(lengths).all(|(part, n)| part.len() == n && is_digits(part));
    let numbers: Vec<u32> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    numbers.try_into().ok().filter(|_| fits)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
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
            "2025-01-15T10:30Z",
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
            "2025-01-15T10Z",
            "2025-01-15T10:3Z",
            "2025-01-15T10:30.5Z",
            "2025-01-15T10:30:Z",
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
