//! Mistakes in a reply, for which a block is refused, and warnings about an outcome. The texts may quote the reply and
//! may change. The codes, which programs read, never change. docs/scripting.md lists them.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::text::visible_line;

/// Declares an enum of codes. Each code is written as words, such as `cut-off`.
macro_rules! codes {
    ($(#[$about:meta])* $name:ident { $($(#[$attribute:meta])* $code:ident)* }) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum $name {
            $($(#[$attribute])* $code,)*
        }
    };
}

codes! {
    /// A mistake of the model in a block or an operation. Versions without codes wrote `Other`.
    #[derive(Default)]
    Mistake {
        #[default] Other
        NoCommand NoText CutOff NotClosed EndUnclear OpeningMissing ThoughtsUnopened LooksLikeTag
        ReplyLinesDiffer ReplyLineLate ReplyLineUnreadable Outbox TagUnreadable AttributeTwice
        UnknownAttribute AttributeMissing BodyAsAttribute AttributeValue LineNumber PartRange
        TextAfterTag PartlyQuoted PathRefused OwnState PathLink PathPlaceholder PathElsewhere
        PathCitation PathBackslashes EmptyPattern PatternUnclear CommandUnclear EmptyCommand
        FenceUnclear NumberedLines Diff ConflictMarkers SearchPairs PairsAndRange PairsAsContent
        MessageRefused OperationMalformed TooMany FileNotFound FileExists FolderNotFile NoSuchLines
        NoSuchSymbol SymbolNotOnce TextNotFound LinesLeftOut StaleLines TextNotOnce
    }
}

codes! {
    /// The subject of a [`Warning`]. Versions without codes wrote `Reading`. `Done` warns that a `[DONE]` had no effect;
    /// only `check` counts it.
    WarningKind {
        Reading
        TagRepaired BodyOnTagLine UnknownAttribute TextAfterTag PathDecorated PathBackslashes
        PathPlaceholder FenceTakenOff NumbersTakenOff NumbersKept FenceKept MarkersKept SignsKept
        IndentedBody OwnClosingInBody LooksLikeTag StrayClosing TagsInThoughts TagsInElement
        ReplyLineUnreadable InventedResult EscapedTags StrangeCharacters CitationMark PageFurniture
        EntitiesOnly OtherDialect EncodingIgnored EndNotLast More Guard Timeout Network Asking Done Loosely
        Guest Room Search StandIn
    }
}

/// The stable name of a [`Mistake`] or a [`WarningKind`], as programs read it.
pub fn code(kind: impl Serialize) -> String {
    let value = serde_json::to_value(kind).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// An error in a tag or a body.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Problem {
    pub(in crate::protocol) mistake: Mistake,
    /// A phrase that names the line or the tag.
    pub(in crate::protocol) phrase: String,
}

impl Problem {
    pub(in crate::protocol) fn new(mistake: Mistake, phrase: impl Into<String>) -> Self {
        Self { mistake, phrase: phrase.into() }
    }
}

/// A malformed block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invalid {
    /// The kind of operation that the block was probably meant to be.
    pub kind: Kind,
    /// The kind of mistake.
    #[serde(default, rename = "sort")]
    pub mistake: Mistake,
    /// Whether the block was refused for safety, rather than because it could not be understood.
    pub rejected: bool,
    /// Why the block is malformed, with the line and the correct form.
    pub reason: String,
}

/// A warning about an operation or its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WrittenWarning")]
pub struct Warning {
    /// The kind of warning.
    #[serde(rename = "sort")]
    pub kind: WarningKind,
    /// The text of the warning, as a sentence.
    pub text: String,
}

impl Warning {
    /// A warning of this kind.
    pub fn new(kind: WarningKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// A stored warning. Versions without codes stored only the text.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenWarning {
    Text(String),
    Coded { sort: WarningKind, text: String },
}

impl From<WrittenWarning> for Warning {
    fn from(written: WrittenWarning) -> Self {
        match written {
            WrittenWarning::Text(text) => Self::new(WarningKind::Reading, text),
            WrittenWarning::Coded { sort, text } => Self::new(sort, text),
        }
    }
}

/// The beginning of a text, on one line, to be quoted in a message.
pub(in crate::protocol) fn brief(text: &str) -> String {
    shortened(text.trim_end(), 100)
}

/// The first `limit` characters of a text, on one line and with invisible characters made visible.
pub(in crate::protocol) fn shortened(text: &str, limit: usize) -> String {
    let cut = if text.len() > limit { text.char_indices().nth(limit) } else { None };
    match cut {
        None => visible_line(text).into_owned(),
        Some((cut, _)) => format!("{}…", visible_line(&text[..cut])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Failure;

    #[test]
    fn what_was_written_before_there_were_sorts_is_still_read() {
        let json = r#"{"kind":"run","rejected":false,"reason":"b"}"#;
        let read: Invalid = serde_json::from_str(json).unwrap();
        assert_eq!(read.mistake, Mistake::Other);
        let json = r#"{"kind":"execution","reason":"b"}"#;
        assert_eq!(serde_json::from_str::<Failure>(json).unwrap(), Failure::execution("b"));
        assert_eq!(serde_json::to_string(&Failure::execution("b")).unwrap(), json);
        let failure = Failure::execution("b").as_a(Mistake::CutOff);
        let json = serde_json::to_string(&failure).unwrap();
        assert!(json.contains(r#""mistake":"cut-off""#), "{json}");
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure);
    }

    #[test]
    fn plain_texts_are_still_read() {
        let plain: Warning = serde_json::from_str(r#""b""#).unwrap();
        assert_eq!(plain, Warning::new(WarningKind::Reading, "b"));
        for (json, sort) in [
            (r#"{"sort":"reading","text":"b"}"#, WarningKind::Reading),
            (r#"{"sort":"guard","text":"b"}"#, WarningKind::Guard),
            (r#"{"sort":"text-after-tag","text":"b"}"#, WarningKind::TextAfterTag),
        ] {
            let warning: Warning = serde_json::from_str(json).unwrap();
            assert_eq!(warning, Warning::new(sort, "b"));
            assert_eq!(serde_json::to_string(&warning).unwrap(), json);
        }
    }
}
