//! What models do wrong: sorts that programs count by, since sentences may change.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::text::visible_line;

/// What is wrong with a tag or a body, before it is told.
#[derive(Debug, Clone)]
pub(in crate::protocol) struct Problem {
    pub(in crate::protocol) sort: Mistake,
    /// A phrase that goes on with a line or a tag.
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
    let cut = text.char_indices().nth(LIMIT).map(|(cut, _)| cut);
    let shown = visible_line(&text[..cut.unwrap_or(text.len())]);
    match cut {
        None => shown.into_owned(),
        Some(_) => format!("{shown}…"),
    }
}

/// A malformed block: what it was meant to be and what is wrong with it, in words that let the LLM
/// send it right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Invalid {
    /// What the block was meant to be.
    pub kind: Kind,
    /// What sort of mistake that is.
    #[serde(default)]
    pub sort: Mistake,
    /// Whether it was refused for safety rather than misunderstood.
    pub rejected: bool,
    /// The reason, with the line and the correct form.
    pub reason: String,
}

/// What sort of mistake it is, of a block itself or of what it asks for as things stand. As JSON
/// these are words such as `cut-off`, which stay what they are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    /// Not known: it was written down before there were sorts.
    #[default]
    Other,
    /// The reply holds no command at all.
    NoCommand,
    /// It is no text.
    NoText,
    /// The end is missing, and nothing after it could be read: the reply was cut off, perhaps.
    CutOff,
    /// A block opens again before it was closed.
    NotClosed,
    /// Where a block ends is not clear.
    EndUnclear,
    /// A closing tag without its opening tag.
    OpeningMissing,
    /// `</think>` without its beginning, after blocks.
    ThoughtsUnopened,
    /// A line that looks like a tag and is none: by another name, in other brackets, or struck out.
    LooksLikeTag,
    /// Two lines say that the reply answers different outboxes.
    ReplyLinesDiffer,
    /// The line that says which outbox the reply answers stands behind a command.
    ReplyLineLate,
    /// The line that says which outbox the reply answers cannot be read.
    ReplyLineUnreadable,
    /// The outbox, or the whole page of the chat.
    Outbox,
    /// A tag that cannot be read.
    TagUnreadable,
    /// An attribute stands there twice.
    AttributeTwice,
    /// An attribute that what ends the session does not know.
    UnknownAttribute,
    /// An attribute is missing.
    AttributeMissing,
    /// An attribute holds what belongs into the body.
    BodyAsAttribute,
    /// An attribute holds none of the words that it can.
    AttributeValue,
    /// What is to be a line's number is none.
    LineNumber,
    /// The first line of a part of a file is behind the last.
    PartRange,
    /// Behind an opening tag stands what could close it, or open it again.
    TextAfterTag,
    /// The lines of a quoted block are not all quoted.
    PartlyQuoted,
    /// A path that leads out of the workspace, or names no file.
    PathRefused,
    /// A path into deaddrop's own state.
    OwnState,
    /// A path that is a link to something else.
    PathLink,
    /// A placeholder instead of a path.
    PathPlaceholder,
    /// An address, or a path in somebody's home.
    PathElsewhere,
    /// A path with a mark where the chat cites something.
    PathCitation,
    /// A path whose `\` may be escapes or stand between folders.
    PathBackslashes,
    /// A search without a pattern.
    EmptyPattern,
    /// A pattern whose characters came escaped.
    PatternUnclear,
    /// A command whose characters came escaped.
    CommandUnclear,
    /// A command without text.
    EmptyCommand,
    /// What of a fence is meant is not clear.
    FenceUnclear,
    /// Line numbers before the lines of a body, not as they can be taken off.
    NumberedLines,
    /// A diff as the content of a file.
    Diff,
    /// Conflict markers in an edit.
    ConflictMarkers,
    /// Pairs of texts to search for and to put in their place that are not in order.
    SearchPairs,
    /// Such pairs as well as a range of lines.
    PairsAndRange,
    /// Such pairs as the content of a file.
    PairsAsContent,
    /// An operations message that is refused as a whole.
    MessageRefused,
    /// An operation that is not as it should be.
    OperationMalformed,
    /// Operations that are more than are read of one message.
    TooMany,
    /// There is no file of that name.
    FileNotFound,
    /// There is a file of that name already.
    FileExists,
    /// What is to be a file is a folder.
    FolderNotFile,
    /// The file has no such lines.
    NoSuchLines,
    /// What is to be replaced does not stand in the file.
    TextNotFound,
    /// A line stands for others that would be lost.
    LinesLeftOut,
    /// An edit by line numbers of a file that has changed since it was shown.
    StaleLines,
    /// A text to be replaced stands in a file more than once.
    TextNotOnce,
}

/// The stable name of a [`Mistake`] or a [`WarningSort`](super::WarningSort), as programs see it.
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
