//! What an operation is about to do, written to the journal beforehand, so that a recovery can tell whether it was
//! done. Paths are those after symbolic links were resolved.
#![expect(missing_docs, reason = "the names say what most fields are")]

use serde::{Deserialize, Serialize};

use super::{Detail, RelPath};

/// What is about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// A command runs. It may have run in part, or as a whole.
    Command,
    /// A file is written or deleted. The disk shows whether it was.
    File(Box<FileEffect>),
    /// A file or a folder is moved. The disk shows whether it was.
    Move(Box<MoveEffect>),
    /// A guest is asked to execute it, once.
    Guest {
        /// The secret key under which the guest knows the result.
        key: String,
        /// The id of the guest's memory of steps, if it gave one. Another memory has no results of this one.
        state: Option<String>,
    },
}

/// How a file is about to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEffect {
    pub path: RelPath,
    /// The name in the same folder to which the new content is written first.
    pub temporary: Option<String>,
    /// The content before; None if there is no file.
    pub before: Option<Digest>,
    /// The content after; None if it is deleted.
    pub after: Option<Digest>,
    /// The outcome if it succeeds.
    pub detail: Detail,
}

/// How a file or a folder is about to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveEffect {
    pub from: RelPath,
    pub to: RelPath,
    /// Its inode number, which it keeps.
    pub inode: u64,
    /// The content of a file: some file systems number files anew.
    pub digest: Option<Digest>,
    /// The outcome if it succeeds.
    pub detail: Detail,
}

/// What a move would affect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveFacts {
    /// The new path, after symbolic links on the way were resolved; None if it is unknown.
    pub to: Option<RelPath>,
    /// The files below a folder, with paths relative to it and sizes in bytes. A folder with too many is not moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(RelPath, u64)>,
}

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
pub struct PathFacts {
    /// Where it leads, links resolved; None where that cannot be told, or is out of reach.
    pub real: Option<RelPath>,
    /// The size of the regular file that stands there.
    pub size: Option<u64>,
    /// Whether the path, as it was asked for or as it really is, has a protected name in it.
    pub protected: bool,
    /// What a move would take with it, and where to; None of other operations.
    pub moved: Option<Box<MoveFacts>>,
}

/// Identifies the content of a file: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of a file's bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex()[..32].to_owned())
    }

    /// The digest of a symbolic link, from its target.
    pub fn of_link(target: &[u8]) -> Self {
        Self(blake3::keyed_hash(&[1; 32], target).to_hex()[..32].to_owned())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
