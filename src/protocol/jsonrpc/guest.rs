//! The methods by which a host carries out a session's operations in a guest, beside the six of
//! bouvet-jsonrpc: those of a place (see [`crate::place::Place`]), each with a key where it has an
//! effect, so that nothing is done twice whoever goes away in the middle.
//!
//! | method | params | result |
//! |---|---|---|
//! | `about` | [`AboutAsked`] | [`About`] |
//! | `walk` | | [`Walked`] |
//! | `look` | [`LookAt`] | [`LookedAt`] |
//! | `read` | [`ReadOf`] | [`ContentsOf`] |
//! | `find` | [`FindAsked`] | [`FoundThere`] |
//! | `step` | [`StepAsked`] | [`State`] |
//! | `result` | [`ResultOf`] | [`State`] |
//! | `leave` | [`Key`] of a session | [`Written`](super::Written) |
//! | `interrupt` | [`Key`] | (a notification) |

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use super::Fault;
use crate::protocol::operations::Encoding;
use crate::protocol::{
    Content, Detail, Digest, Lines, MoveLook, Operation, Part, RelPath, Warning,
};

/// Which version of these methods this is. A guest of another one is not worked with.
pub const VERSION: u32 = 3;

/// How much is to be told of a guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AboutAsked {
    /// Its tools too, which takes a while.
    pub tools: bool,
}

/// What a guest is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// [`VERSION`] of the guest.
    pub version: u32,
    /// The program and its version.
    pub program: String,
    /// The operating system.
    pub system: String,
    /// The shell that commands are given to.
    pub shell: String,
    /// What confines commands there, in a line.
    pub sandbox: String,
    /// Whether commands reach the network, in words, where no policy says so.
    pub network: String,
    /// Whether commands are confined at all, so that a policy can keep the network from them.
    pub confined: bool,
    /// Whether protected names are kept from commands.
    pub guarded: bool,
    /// The names that only the person may write.
    pub protected: Vec<String>,
    /// Whether a policy of the guest's own keeps the network from commands, whatever is asked for.
    #[serde(default)]
    pub offline: bool,
    /// Tools with their versions, where they were asked for.
    pub tools: Vec<String>,
    /// The workspace's root there, for people.
    pub root: String,
    /// What its memory of steps is known by: another one knows nothing of what was begun before. Empty
    /// where there is none.
    #[serde(default)]
    pub state: String,
}

/// All files of the workspace that are not ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Walked {
    /// Sorted by path.
    pub files: Vec<WalkedFile>,
    /// Folders that could not be read, sorted.
    pub unreadable: Vec<String>,
    /// What the ignore rules there leave out.
    #[serde(default, skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

/// What is not among the files of a [`Walked`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// How many single files, and their size in bytes together.
    pub files: (u64, u64),
    /// Folders, sorted by path.
    pub folders: Vec<LeftOutFolder>,
}

impl LeftOut {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One of them: its path with a `/` at the end, how many files are in it, their size in bytes together,
/// and whether these are all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFolder(pub String, pub u64, pub u64, pub bool);

/// One of them: path, size in bytes, and `f` for a file, `l` for a link, `o` for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkedFile(pub String, pub u64, pub char);

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookAt {
    /// The operation that is about to be done; what it would write is left out.
    pub operation: Operation,
    /// Whether the digest of what stands there is wanted.
    #[serde(default)]
    pub standing: bool,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedAt {
    /// Whether the operation has a path that can be looked at; else only `place` is told.
    pub seen: bool,
    /// Where the path leads, links resolved.
    pub real: Option<RelPath>,
    /// The size of the regular file there.
    pub size: Option<u64>,
    /// Whether a protected name is in it.
    pub protected: bool,
    /// As [`crate::place::Place::place_of`].
    pub place: Option<RelPath>,
    /// As [`crate::place::Place::standing`], where that was wanted.
    pub standing: Option<Digest>,
    /// What a move would take with it, and where to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<MoveLook>,
}

/// What is to be looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindAsked {
    /// A list or a search.
    pub operation: Operation,
    /// Which files the host's policy lets be searched, beside the guest's own; all where there is
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Readable>,
    /// What `interrupt` ends it by, of the same form as the key of a step; without it, it goes on for
    /// as long as it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Which files a policy lets be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Readable {
    /// Whether any.
    pub enabled: bool,
    /// Patterns of paths, or of a component of them, that are out of reach.
    pub blocked: Vec<String>,
    /// Patterns of the only paths that are in reach; empty: all.
    pub allowed: Vec<String>,
    /// How large a file may be, in bytes.
    pub max_bytes: Option<u64>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundThere {
    /// What the operation came to.
    pub detail: Detail,
    /// What is told beside it.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Which file is to be read, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOf {
    /// Which.
    pub path: RelPath,
    /// At most so many bytes.
    pub limit: u64,
    /// Which of its lines; all where nothing is said. Of some, `limit` is the guest's own.
    #[serde(default, skip_serializing_if = "Part::is_whole")]
    pub part: Part,
}

/// What was read, or why it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContentsOf {
    /// This.
    File {
        /// Where it really stands.
        path: RelPath,
        /// The first bytes.
        bytes: Content,
        /// The size of the whole.
        size: u64,
        /// Which lines these are, where some were asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<Lines>,
    },
    /// Nothing.
    Failed(crate::protocol::Failure),
}

/// An operation to be carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAsked {
    /// What it is known by from now on: 1 to 64 letters, digits and `-`.
    pub key: String,
    /// What to do. Its timeout is what it gets.
    pub operation: Operation,
    /// The person approved of writes to protected names.
    #[serde(default)]
    pub protected: bool,
    /// The person approved of writes of git to the repository.
    #[serde(default)]
    pub repository: bool,
    /// Whether the command reaches the network; None for what the guest's settings say.
    #[serde(default)]
    pub network: Option<bool>,
    /// How many characters of a command's output are kept, both streams together.
    pub output_limit: usize,
    /// [`About::state`], as the host knows it: one that has another does nothing ([`Fault::OTHER`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Of which session of the host it is, named as a key is: its commands have a HOME and a `/tmp` of
    /// their own, kept from step to step; None for those that the guest's server has.
    #[serde(default)]
    pub own: Option<String>,
    /// Keys of earlier steps that are known to the host for good: the guest forgets them.
    #[serde(default)]
    pub settled: Vec<String>,
}

/// Of which step it is to be told what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOf {
    /// As in [`StepAsked`].
    pub key: String,
    /// As in [`StepAsked`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A step by its key; for `leave` a session, by [`StepAsked::own`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// As in [`StepAsked`].
    pub key: String,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "state")]
#[allow(clippy::large_enum_variant, reason = "there is one at a time, and most are the large one")]
pub enum State {
    /// It was never begun, or begun and nothing came of it: it may be asked for again.
    Unknown,
    /// It is being carried out.
    Running,
    /// It came to this.
    Done {
        /// What it came to.
        detail: Detail,
        /// What is told beside it.
        #[serde(default)]
        warnings: Vec<Warning>,
    },
}

impl ContentsOf {
    /// What a file's bytes are sent as: as they are where they are text.
    pub fn file(path: RelPath, bytes: Vec<u8>, size: u64, lines: Option<Lines>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => Content::Text(text),
            Err(e) => Content::Bytes(e.into_bytes()),
        };
        Self::File { path, bytes, size, lines }
    }
}

/// An operation without what it would write, which nobody needs who only looks.
#[must_use]
pub fn without_content(operation: &Operation) -> Operation {
    use crate::protocol::{Change, Reading};
    match operation {
        Operation::Create { path, existing, .. } => {
            Operation::Create { path: path.clone(), content: "".into(), existing: *existing }
        }
        Operation::Edit { path, .. } => {
            Operation::Edit { path: path.clone(), change: Change::First(Vec::new()) }
        }
        Operation::Read { path, .. } => {
            let reading = Reading::Now(Encoding::Utf8);
            Operation::Read { path: path.clone(), reading }
        }
        other => other.clone(),
    }
}
