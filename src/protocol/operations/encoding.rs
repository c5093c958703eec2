//! File contents and times as JSON strings.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::EVENTS_SCHEMA;

/// The form of times, as in the schema.
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(EVENTS_SCHEMA).expect("a schema is JSON");
    let pattern = schema["definitions"]["Timestamp"]["pattern"].as_str();
    Regex::new(pattern.unwrap_or_default()).expect("a valid pattern")
});

/// The standard alphabet of RFC 4648. Padding is written, and optional when reading.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a file's content is encoded in a message (agent-spaces-protocol, "Content Encoding").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// The text itself, which is the default.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Base64 with the standard alphabet, for binary files.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// Decodes `content`. The specification only says `base64`, so the output of common encoders is accepted: lines may
    /// be wrapped, and padding may be omitted.
    ///
    /// # Errors
    /// `content` is not valid in this encoding.
    pub fn decode(self, content: &str) -> Result<Cow<'_, [u8]>, DecodeError> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
            Self::Base64 => {
                let is_digit = |byte: &u8| !matches!(byte, b'\r' | b'\n');
                let digits: Vec<u8> = content.bytes().filter(is_digit).collect();
                BASE64.decode(digits).map(Cow::Owned)
            }
        }
    }

    /// Encodes `bytes`. None if this encoding is UTF-8 and `bytes` are not.
    pub fn encode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Base64 => Some(BASE64.encode(bytes)),
        }
    }
}

/// A point in time in the form that events use: ISO 8601 in UTC, ending in `Z` (agent-spaces-protocol, "Event Types":
/// `timestamp`). Seconds and their fraction are optional.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UtcTime(String);

impl Default for UtcTime {
    /// The beginning of 1970. This stands for a time whose year does not have four digits.
    fn default() -> Self {
        Self("1970-01-01T00:00:00Z".to_owned())
    }
}

impl UtcTime {
    /// Parses a time such as `2025-01-15T10:30Z` or `2025-01-15T10:30:00.123Z`. None for anything else, including dates
    /// that do not exist.
    pub fn parse(text: &str) -> Option<Self> {
        TIME.is_match(text).then(|| Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::operations::parse_operations_message;

    #[test]
    fn bytes_survive_both_ways() {
        let all: Vec<u8> = (0..=255).collect();
        let text = Encoding::Base64.encode(&all).unwrap();
        assert_eq!(Encoding::Base64.decode(&text).unwrap(), all);
        assert_eq!(&*Encoding::Base64.decode("").unwrap(), b"");
        assert_eq!(&*Encoding::Utf8.decode("a\u{fffd}").unwrap(), "a\u{fffd}".as_bytes());
    }

    #[test]
    fn lines_may_be_wrapped_and_padding_left_out() {
        for text in ["AP8=", "AP8", "AP8=\n", "AP\r\n8=", "\nAP\n8\n=\n", "AP8\n"] {
            assert_eq!(&*Encoding::Base64.decode(text).unwrap(), [0, 255], "{text:?}");
        }
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in [
            "A-_8",
            "é",
            "AP 8",
            "\tAP8=",
            "AP8\u{a0}",
            "AP\u{b}8",
            "A=B=",
            "AP8==",
            "AP8=A",
            "A",
            "AAAAA",
            "AP9=",
            "AP9",
            "not base64!!",
        ] {
            assert!(Encoding::Base64.decode(text).is_err(), "{text:?}");
            let operation = serde_json::json!({"type": "createFile", "path": "a", "content": text, "encoding": "base64"});
            let message = serde_json::json!({"protocolVersion": "1.0", "operations": [operation]});
            let told = parse_operations_message(&message.to_string()).unwrap_err().to_string();
            assert!(told.contains("the content is not base64: "), "{text:?}: {told}");
        }
    }

    #[test]
    fn encodings_have_the_names_of_the_specification() {
        for (encoding, name) in [(Encoding::Utf8, "utf-8"), (Encoding::Base64, "base64")] {
            assert_eq!(serde_json::to_value(encoding).unwrap(), name);
        }
        assert!(serde_json::from_str::<Encoding>("\"utf8\"").is_err());
    }

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
            assert_eq!(UtcTime::parse(text).unwrap().0, text);
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
