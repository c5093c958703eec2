//! What is told of files without a look into them, here or by a guest.

use serde::{Deserialize, Serialize};

use super::{MoveLook, RelPath};

/// What an entry of a listing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link, not followed.
    Link,
    /// Neither: a FIFO, a socket, a device.
    Other,
}

/// How many files there are, and how large they are together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many files, links and the like.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Whether these are all; else there may be more.
    pub is_whole: bool,
}

/// A folder that rules leave out of the listing, with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path, with a `/` at the end.
    pub folder: String,
    /// What is in it.
    pub count: Count,
}

/// What can be told of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// Where it leads, links resolved; None where that cannot be told, or is out of reach.
    pub real: Option<RelPath>,
    /// The size of the regular file that stands there.
    pub size: Option<u64>,
    /// Whether the path, as it was asked for or as it really is, has a protected name in it.
    pub protected: bool,
    /// What a move would take with it, and where to; None of other operations.
    pub moved: Option<Box<MoveLook>>,
}

impl Count {
    /// Nothing, and that is all.
    pub const NONE: Self = Self { files: 0, bytes: 0, is_whole: true };
    /// Nobody has counted.
    pub const UNKNOWN: Self = Self { files: 0, bytes: 0, is_whole: false };

    /// One more file.
    pub fn file(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.is_whole &= other.is_whole;
    }
}

impl Default for Count {
    fn default() -> Self {
        Self::NONE
    }
}
