//! What is told beside an outcome, and of what sort it is: its text may quote a path of an LLM's, so
//! nothing is to be concluded from that.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A sentence that is told beside what an operation came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Warning {
    /// Of what sort it is.
    pub sort: WarningSort,
    /// The sentence.
    pub text: String,
}

/// What a [`Warning`] is about. As JSON these are words such as `unknown-attribute`, which stay what
/// they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningSort {
    /// Something was repaired in reading the operation; what, was not written down.
    Reading,
    /// A tag was read in spite of what stands around it or in it.
    TagRepaired,
    /// The body begins on the line of its tag.
    BodyOnTagLine,
    /// An attribute is none of the command's.
    UnknownAttribute,
    /// What stands after a tag was ignored.
    TextAfterTag,
    /// A path in marks, in quotes or as a link.
    PathDecorated,
    /// A path with `\` between folders.
    PathBackslashes,
    /// A path that may stand for one that is to be put in.
    PathPlaceholder,
    /// A fence around a body was taken off.
    FenceTakenOff,
    /// Line numbers before the lines of a body were taken off.
    NumbersTakenOff,
    /// What may be line numbers was kept.
    NumbersKept,
    /// What may be a fence around a body was kept.
    FenceKept,
    /// Lines of a body that may be those of an edit by search were kept.
    MarkersKept,
    /// What may be the signs of a diff before the lines of a body was kept.
    SignsKept,
    /// A body that is indented as its tag is was kept as it is.
    IndentedBody,
    /// A line of a body begins with what would close it alone.
    OwnClosingInBody,
    /// A line that looks like a tag was read as words.
    LooksLikeTag,
    /// A closing tag closes nothing.
    StrayClosing,
    /// Tags stand within thoughts.
    TagsInThoughts,
    /// Tags stand within an element whose own tags are alone on their lines.
    TagsInElement,
    /// The line that says which outbox the reply answers cannot be read.
    ReplyLineUnreadable,
    /// A result that only an outbox tells.
    InventedResult,
    /// Most tags came with escaped characters, so bodies may hold such too.
    EscapedTags,
    /// A body or a path holds characters that a chat window puts in.
    StrangeCharacters,
    /// A body holds a mark where the chat cites something.
    CitationMark,
    /// A body holds a label or a button of the chat page.
    PageFurniture,
    /// A body holds HTML entities and none of the characters.
    EntitiesOnly,
    /// What stands in the other dialect was not carried out.
    OtherDialect,
    /// An encoding was ignored.
    EncodingIgnored,
    /// What would end the session is not the last operation.
    EndNotLast,
    /// There were more warnings than are told.
    More,
    /// A command did something to protected names.
    Guard,
    /// A command got less time than it asked for.
    Timeout,
    /// The person would be asked first.
    Asking,
    /// The end of the session does not count. Only `check` counts it so, and earlier versions did.
    Done,
    /// A text was found that did not stand there to the letter.
    Loosely,
    /// The connection to a guest broke.
    Guest,
    /// Something is left out, since a message has room for so much.
    Room,
    /// Not all was looked at that was to be listed or searched.
    Search,
    /// A new file holds what an outbox shows in the place of a secret.
    StandIn,
}

impl Warning {
    /// A sentence of that sort.
    pub fn new(sort: WarningSort, text: impl Into<String>) -> Self {
        Self { sort, text: text.into() }
    }
}

impl Deref for Warning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// How it stands in files: where the sort is not known as its text alone, as all did once.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Sorted { sort: WarningSort, text: String },
}

impl From<Written> for Warning {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self::new(WarningSort::Reading, text),
            Written::Sorted { sort, text } => Self { sort, text },
        }
    }
}

impl From<Warning> for Written {
    fn from(Warning { sort, text }: Warning) -> Self {
        match sort {
            WarningSort::Reading => Self::Text(text),
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
            (r#""b""#, WarningSort::Reading),
            (r#"{"sort":"guard","text":"b"}"#, WarningSort::Guard),
            (r#"{"sort":"text-after-tag","text":"b"}"#, WarningSort::TextAfterTag),
        ] {
            let warning: Warning = serde_json::from_str(json).unwrap();
            assert_eq!(warning, Warning::new(sort, "b"));
            assert_eq!(serde_json::to_string(&warning).unwrap(), json);
        }
    }
}
