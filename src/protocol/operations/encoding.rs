//! File contents as JSON texts: as they are, or in base64 ("Content Encoding").

use std::borrow::Cow;

use base64::{DecodeError, Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

/// How a file's content stands in a message (agent-spaces-protocol, "Content Encoding").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// The text itself: the default.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// RFC 4648, the standard alphabet, with padding and without line breaks: for binary files.
    #[serde(rename = "base64")]
    Base64,
}

/// Why a text is not base64.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the content is not base64: {0}")]
pub struct BadBase64(String);

impl Encoding {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Base64 => "base64",
        }
    }

    /// The encoding of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Utf8, Self::Base64].into_iter().find(|encoding| encoding.name() == name)
    }

    /// The bytes that `content` stands for.
    ///
    /// # Errors
    /// What is not base64 to the letter, in that encoding: what was cut off or wrapped would else
    /// become a broken file.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::protocol::operations::Encoding;
    /// assert_eq!(&*Encoding::Base64.decode("AP8=").unwrap(), [0, 255]);
    /// assert_eq!(&*Encoding::Utf8.decode("AP8=").unwrap(), b"AP8=");
    /// assert!(Encoding::Base64.decode("AP8").is_err());
    /// ```
    pub fn decode(self, content: &str) -> Result<Cow<'_, [u8]>, BadBase64> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
            Self::Base64 => {
                STANDARD.decode(content).map(Cow::Owned).map_err(|e| BadBase64(in_words(&e)))
            }
        }
    }

    /// The text that stands for `bytes`; None where they are not UTF-8 and should be.
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
            Self::Base64 => Some(STANDARD.encode(bytes)),
        }
    }
}

fn in_words(error: &DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, b'=') => {
            format!("`=` stands at byte {}, before the end", at + 1)
        }
        DecodeError::InvalidByte(at, _) => {
            format!("byte {} is none of A-Z, a-z, 0-9, `+` and `/`", at + 1)
        }
        DecodeError::InvalidLength(length) => {
            format!("its length, {length}, is one that base64 never has")
        }
        DecodeError::InvalidLastSymbol(..) => "its last character holds bits too many".to_owned(),
        DecodeError::InvalidPadding => {
            "its end is not padded with `=` to a multiple of four characters".to_owned()
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
    fn what_is_not_base64_is_refused_in_words() {
        for (text, words) in [
            ("AP8", "padded"),
            ("AP8=\n", "byte 5 is none of"),
            ("AP 8", "byte 3 is none of"),
            ("A-_8", "byte 2 is none of"),
            ("é", "byte 1 is none of"),
            ("A=B=", "before the end"),
            ("A", "length"),
            ("AP9=", "bits too many"),
            ("not base64!!", "none of"),
        ] {
            let error = Encoding::Base64.decode(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
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
