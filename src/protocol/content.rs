//! What a file is to hold: text, or bytes that need not be any.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::operations::Encoding;

/// The content of a file. Written to the journal as a text, or as `{"base64": "…"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// As it was sent.
    Text(String),
    /// Whatever was sent in an encoding.
    Bytes(Vec<u8>),
}

impl Content {
    /// The bytes that the file is to have.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The same, moved out.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The same as text, for people; what is no UTF-8 becomes U+FFFD.
    pub fn to_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Kept<'a> {
    Text(Cow<'a, str>),
    Encoded { base64: String },
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => Kept::Text(Cow::Borrowed(text)),
            Self::Bytes(bytes) => {
                Kept::Encoded { base64: Encoding::Base64.encode(bytes).unwrap_or_default() }
            }
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Kept::deserialize(deserializer)? {
            Kept::Text(text) => Self::Text(text.into_owned()),
            Kept::Encoded { base64 } => {
                let bytes = Encoding::Base64.decode(&base64).map_err(de::Error::custom)?;
                Self::Bytes(bytes.into_owned())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_come_back_as_they_were() {
        for content in
            [Content::from("a\u{0}é"), Content::Bytes(vec![0, 255]), Content::Bytes(vec![])]
        {
            let kept = serde_json::to_string(&content).unwrap();
            assert_eq!(serde_json::from_str::<Content>(&kept).unwrap(), content, "{kept}");
        }
        assert_eq!(serde_json::to_string(&Content::from("x")).unwrap(), "\"x\"");
    }
}
