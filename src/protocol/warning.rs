//! Warnings that are reported beside an outcome. Their text may quote what a model sent, so nothing is concluded from
//! it: programs read the kind.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A warning beside the outcome of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Warning {
    /// The kind of warning.
    pub sort: WarningKind,
    /// The sentence.
    pub text: String,
}

/// What a [`Warning`] is about. Written as words such as `unknown-attribute`, which never change. docs/use.md lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum WarningKind {
    /// Written by a version that had no kinds of warnings.
    Reading,
    TagRepaired,
    BodyOnTagLine,
    UnknownAttribute,
    TextAfterTag,
    PathDecorated,
    PathBackslashes,
    PathPlaceholder,
    FenceTakenOff,
    NumbersTakenOff,
    NumbersKept,
    FenceKept,
    MarkersKept,
    SignsKept,
    IndentedBody,
    OwnClosingInBody,
    LooksLikeTag,
    StrayClosing,
    TagsInThoughts,
    TagsInElement,
    ReplyLineUnreadable,
    InventedResult,
    EscapedTags,
    StrangeCharacters,
    CitationMark,
    PageFurniture,
    EntitiesOnly,
    OtherDialect,
    EncodingIgnored,
    EndNotLast,
    More,
    Guard,
    Timeout,
    Asking,
    /// The end of the session does not count. Only `check` counts it so.
    Done,
    Loosely,
    Guest,
    Room,
    Search,
    StandIn,
}

impl Warning {
    /// A warning of that kind.
    pub fn new(sort: WarningKind, text: impl Into<String>) -> Self {
        Self { sort, text: text.into() }
    }
}

impl Deref for Warning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// A warning in files. One whose kind is not known is a text alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Sorted { sort: WarningKind, text: String },
}

impl From<Written> for Warning {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self::new(WarningKind::Reading, text),
            Written::Sorted { sort, text } => Self { sort, text },
        }
    }
}

impl From<Warning> for Written {
    fn from(Warning { sort, text }: Warning) -> Self {
        match sort {
            WarningKind::Reading => Self::Text(text),
            _ => Self::Sorted { sort, text },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_still_read() {
        for (json, sort) in [
            (r#""b""#, WarningKind::Reading),
            (r#"{"sort":"guard","text":"b"}"#, WarningKind::Guard),
            (r#"{"sort":"text-after-tag","text":"b"}"#, WarningKind::TextAfterTag),
        ] {
            let warning: Warning = serde_json::from_str(json).unwrap();
            assert_eq!(warning, Warning::new(sort, "b"));
            assert_eq!(serde_json::to_string(&warning).unwrap(), json);
        }
    }
}
