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
    /// Its whole text.
    pub text: String,
}

impl Held {
    /// That of a file which was read whole; None where it is no text.
    pub fn of(file: &Contents) -> Option<Self> {
        let text = std::str::from_utf8(&file.bytes).ok()?.to_owned();
        Some(Self { path: file.path.clone(), text })
    }

    /// The file as it would have been read.
    pub fn contents(&self) -> Contents {
        let (bytes, size) = (self.text.clone().into_bytes(), self.text.len() as u64);
        Contents { path: self.path.clone(), bytes, size, lines: None }
    }
}
