//! What files held that hold secrets by their nature, and hold no longer: what a command showed of them
//! is secret all the same.

use serde::{Deserialize, Serialize};

use crate::protocol::RelPath;
use crate::workspace::Contents;

/// A file as it was before a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Where it stood.
    pub path: RelPath,
    /// Its whole text, with U+FFFD for what is none in UTF-8.
    pub text: String,
}

impl Held {
    /// That of a file which was read whole.
    pub fn of(file: &Contents) -> Self {
        let text = String::from_utf8_lossy(&file.bytes).into_owned();
        Self { path: file.path.clone(), text }
    }

    /// The file as it would have been read.
    pub fn contents(&self) -> Contents {
        let (bytes, size) = (self.text.clone().into_bytes(), self.text.len() as u64);
        Contents { path: self.path.clone(), bytes, size, lines: None }
    }
}
