//! What an operation is about to do, as the journal notes it beforehand: enough to tell after a
//! crash whether it was done.

use serde::{Deserialize, Serialize};

use super::{Detail, RelPath};

/// What is about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// A command runs. It may have run in part, or as a whole, once this is noted.
    Command,
    /// A file becomes another, or goes. What is on disk tells whether it has.
    File(Box<FileEffect>),
    /// A file or a folder gets another name. What stands at both tells whether it has.
    Move(Box<MoveEffect>),
    /// A guest is asked to carry it out, once, under this key. The guest tells what it came to.
    Guest {
        /// Known to nobody else.
        key: String,
        /// What the guest's memory of steps is known by: another one knows nothing of this. None where
        /// the guest did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<String>,
    },
}

/// How a file is about to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileEffect {
    /// Where it really stands, links resolved.
    pub path: RelPath,
    /// The name, in the same folder, under which the new content is written first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// What stands there before; None where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// What will stand there; None where nothing will.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
    /// What will have come of the operation.
    pub detail: Detail,
}

/// How something is about to be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveEffect {
    /// Where it really stands, links on the way resolved.
    pub from: RelPath,
    /// Where it will stand.
    pub to: RelPath,
    /// Its number on its file system, which it keeps.
    pub inode: u64,
    /// What identifies its content where it is no folder: some file systems number files anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// What will have come of the operation.
    pub detail: Detail,
}

/// What a move would take with it, and where to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveLook {
    /// Where it would stand, links on the way resolved; None where that cannot be told.
    pub to: Option<RelPath>,
    /// What lies below a folder, by the rest of the paths, with sizes in bytes. A folder of more than
    /// can be told is not moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(RelPath, u64)>,
}

/// What identifies the content of a file: 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of a file's bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex()[..32].to_owned())
    }

    /// The digest of a link, which is its target and no content.
    pub fn of_link(target: &[u8]) -> Self {
        Self(blake3::keyed_hash(&[1; 32], target).to_hex()[..32].to_owned())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
