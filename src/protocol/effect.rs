//! The effects of operations. They are written to the journal before they happen, so that a recovery can determine
//! whether they happened. Symbolic links in the paths are already resolved.
#![expect(missing_docs, reason = "the names say what most fields are")]

use serde::{Deserialize, Serialize};

use super::{Detail, RelPath};

/// An effect that is about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// A command is run. After a stop, it may have run partly or completely.
    Command,
    /// A file is written or deleted. The disk shows whether this happened.
    File(Box<FileEffect>),
    /// A file or a folder is moved. The disk shows whether this happened.
    Move(Box<MoveEffect>),
    /// A guest carries out the operation, once.
    Guest {
        /// The secret key under which the guest stores the result.
        key: String,
        /// The name of the guest's record of steps, if it has one. No other record contains this result.
        state: Option<String>,
    },
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEffect {
    pub path: RelPath,
    /// The name, in the same folder, under which the new content is written first.
    pub temporary: Option<String>,
    /// The content before the change; None if there is no file.
    pub before: Option<Digest>,
    /// The content after the change; None if the file is deleted.
    pub after: Option<Digest>,
    /// The outcome if the change succeeds.
    pub detail: Detail,
}

/// A move of a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveEffect {
    pub from: RelPath,
    pub to: RelPath,
    /// The inode number, which the move does not change.
    pub inode: u64,
    /// The digest of a file's content, because some file systems assign new inodes.
    pub digest: Option<Digest>,
    /// The outcome if the move succeeds.
    pub detail: Detail,
}

/// Facts about a move before it is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveFacts {
    /// The new path with symbolic links in it resolved; None if it is unknown.
    pub to: Option<RelPath>,
    /// The files below a folder, with relative paths and sizes in bytes. A folder with too many files is not moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(RelPath, u64)>,
}

/// The type of an entry that is not a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link, which is not followed.
    Link,
    /// Anything else: a FIFO, a socket or a device.
    Other,
}

/// The number and the total size of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number of files, links and other entries that are not folders.
    pub files: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Whether all entries were counted.
    pub is_whole: bool,
}

/// A folder that ignore rules leave out of the listing, with all its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The folder's path, with a `/` at the end.
    pub folder: String,
    /// The number and size of the files in the folder.
    pub count: Count,
}

/// Facts about a path before an operation is carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFacts {
    /// The path with links resolved; None if it cannot be resolved.
    pub real: Option<RelPath>,
    /// The size of the regular file at the path.
    pub size: Option<u64>,
    /// Whether the path, before or after resolving links, contains a protected name.
    pub protected: bool,
    /// The facts of a move; None for other operations.
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

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
