//! File contents as JSON strings: as they are, or in base64 ("Content Encoding").

use std::borrow::Cow;

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};

/// The standard alphabet of RFC 4648. It writes padding, and reads with or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a file's content is encoded in a message (agent-spaces-protocol, "Content Encoding").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// The text itself: the default.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Base64 of the standard alphabet, for binary files.
    #[serde(rename = "base64")]
    Base64,
}

/// Why a text is not base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the content is not base64: {}", .0.to_string().trim_end_matches('.'))]
pub struct BadBase64(DecodeError);

impl Encoding {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Base64 => "base64",
        }
    }

    /// Returns the encoding of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Utf8, Self::Base64].into_iter().find(|encoding| encoding.name() == name)
    }

    /// Decodes `content`. The specification says no more than `base64`, so what its usual writers
    /// produce is accepted: lines may be wrapped, and padding may be left out.
    ///
    /// # Errors
    /// `content` is not in that encoding.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::protocol::operations::Encoding;
    /// assert_eq!(&*Encoding::Base64.decode("AP8=").unwrap(), [0, 255]);
    /// assert_eq!(&*Encoding::Base64.decode("AP\n8").unwrap(), [0, 255]);
    /// assert_eq!(&*Encoding::Utf8.decode("AP8=").unwrap(), b"AP8=");
    /// assert!(Encoding::Base64.decode("AP_8").is_err());
    /// ```
    pub fn decode(self, content: &str) -> Result<Cow<'_, [u8]>, BadBase64> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
            Self::Base64 => {
                let digits: Vec<u8> =
                    content.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
                BASE64.decode(digits).map(Cow::Owned).map_err(BadBase64)
            }
        }
    }

    /// Encodes `bytes`; None if they are not UTF-8 and should be.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::protocol::operations::Encoding;
    /// assert_eq!(Encoding::Base64.encode(&[0, 255]).as_deref(), Some("AP8="));
    /// assert_eq!(Encoding::Utf8.encode("é".as_bytes()).as_deref(), Some("é"));
    /// assert_eq!(Encoding::Utf8.encode(&[0, 255]), None);
    /// ```
    pub fn encode(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Base64 => Some(BASE64.encode(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let error = Encoding::Base64.decode(text).unwrap_err().to_string();
            assert!(error.starts_with("the content is not base64: "), "{text:?}: {error}");
        }
    }

    #[test]
    fn encodings_have_the_names_of_the_specification() {
        for encoding in [Encoding::Utf8, Encoding::Base64] {
            assert_eq!(serde_json::to_value(encoding).unwrap(), encoding.name());
            assert_eq!(Encoding::named(encoding.name()), Some(encoding));
        }
        assert_eq!(Encoding::named("utf8"), None);
    }
}
