//! What models do wrong. Programs read the kind of a mistake, as sentences may change.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::text::visible_line;

/// What is wrong with a tag or a body.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Problem {
    pub(in crate::protocol) sort: Mistake,
    /// A phrase that names the line or the tag.
    pub(in crate::protocol) phrase: String,
}

impl Problem {
    pub(in crate::protocol) fn new(sort: Mistake, phrase: impl Into<String>) -> Self {
        Self { sort, phrase: phrase.into() }
    }
}

/// The first characters of a text, for quoting it in a message.
pub(in crate::protocol) fn brief(text: &str) -> String {
    const LIMIT: usize = 100;
    let text = text.trim_end();
    if text.len() <= LIMIT {
        return visible_line(text).into_owned();
    }
    let cut = text.char_indices().nth(LIMIT).map(|(cut, _)| cut);
    let shown = visible_line(&text[..cut.unwrap_or(text.len())]);
    match cut {
        None => shown.into_owned(),
        Some(_) => format!("{shown}…"),
    }
}

/// A malformed block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invalid {
    /// What the block was meant to be.
    pub kind: Kind,
    /// The kind of mistake.
    #[serde(default)]
    pub sort: Mistake,
    /// Whether it was refused for safety rather than misunderstood.
    pub rejected: bool,
    /// The reason, with the line and the correct form.
    pub reason: String,
}

/// What a model did wrong, in a block or in what it asks for. Written as words such as `cut-off`, which never change.
/// docs/use.md lists them.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Mistake {
    /// Written by a version that had no kinds of mistakes.
    #[default]
    Other,
    NoCommand,
    NoText,
    CutOff,
    NotClosed,
    EndUnclear,
    OpeningMissing,
    ThoughtsUnopened,
    LooksLikeTag,
    ReplyLinesDiffer,
    ReplyLineLate,
    ReplyLineUnreadable,
    Outbox,
    TagUnreadable,
    AttributeTwice,
    UnknownAttribute,
    AttributeMissing,
    BodyAsAttribute,
    AttributeValue,
    LineNumber,
    PartRange,
    TextAfterTag,
    PartlyQuoted,
    PathRefused,
    OwnState,
    PathLink,
    PathPlaceholder,
    PathElsewhere,
    PathCitation,
    PathBackslashes,
    EmptyPattern,
    PatternUnclear,
    CommandUnclear,
    EmptyCommand,
    FenceUnclear,
    NumberedLines,
    Diff,
    ConflictMarkers,
    SearchPairs,
    PairsAndRange,
    PairsAsContent,
    MessageRefused,
    OperationMalformed,
    TooMany,
    FileNotFound,
    FileExists,
    FolderNotFile,
    NoSuchLines,
    TextNotFound,
    LinesLeftOut,
    StaleLines,
    TextNotOnce,
}

/// The stable name of a [`Mistake`] or a [`WarningKind`](super::WarningKind), as programs see it.
pub fn code(sort: impl Serialize) -> String {
    let value = serde_json::to_value(sort).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Failure;

    #[test]
    fn what_was_written_before_there_were_sorts_is_still_read() {
        let json = r#"{"kind":"run","rejected":false,"reason":"b"}"#;
        let read: Invalid = serde_json::from_str(json).unwrap();
        assert_eq!(read.sort, Mistake::Other);
        let json = r#"{"kind":"execution","reason":"b"}"#;
        assert_eq!(serde_json::from_str::<Failure>(json).unwrap(), Failure::execution("b"));
        assert_eq!(serde_json::to_string(&Failure::execution("b")).unwrap(), json);
        let failure = Failure::execution("b").as_a(Mistake::CutOff);
        let json = serde_json::to_string(&failure).unwrap();
        assert!(json.contains(r#""mistake":"cut-off""#), "{json}");
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure);
    }
}
