//! What is told beside an outcome, and where it comes from: its text may quote a path of an LLM's,
//! so nothing is to be concluded from that.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A sentence that is told beside what an operation came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Warning {
    /// Where it comes from.
    pub sort: WarningSort,
    /// The sentence.
    pub text: String,
}

/// Where a [`Warning`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WarningSort {
    /// Something was repaired in reading the operation.
    Reading,
    /// A command did something to protected names.
    Guard,
    /// A command got less time than it asked for.
    Timeout,
    /// The person would be asked first.
    Asking,
    /// The end of the session does not count.
    Done,
    /// A text was found that did not stand there to the letter.
    Loosely,
    /// The connection to a guest broke.
    Guest,
    /// Something is left out, since a message has room for so much.
    Room,
    /// Not all was looked at that was to be listed or searched.
    Search,
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

/// How it stands in files: what is of reading as its text alone, as all did once.
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
        ] {
            let warning: Warning = serde_json::from_str(json).unwrap();
            assert_eq!(warning, Warning::new(sort, "b"));
            assert_eq!(serde_json::to_string(&warning).unwrap(), json);
        }
    }
}
