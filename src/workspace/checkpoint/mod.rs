//! What the workspace was like before a turn and after it, so that the turn can be shown and taken
//! back: beneath the workspace's handle, following no link.
//!
//! - Contents are kept as blobs, under their digests; of regular files up to a size, and while there is
//!   room. What is not kept is known by its number and times, and named as not restorable.
//! - What rules leave out is not looked at, by the rules from before the turn; what is called `.git`
//!   never is, nor is deaddrop's own state. A file that an operation itself changed is kept whatever
//!   the rules say.
//! - An unchanged file (number, size, times) is not read again: the index remembers it from the last
//!   look. Where its `changed` time is one that nobody can set (`clocks`), and not so young that the file
//!   could change once more within it: else it is.
//! - Times, owners and extended attributes are not kept.
//! - Of what rules leave out, small files are kept that are neither build products nor secret (`ignored`): only
//!   so that a deletion can be taken back.
//! - What was ignored before the turn and has another name since is left alone.
//!
//! | module | what it does |
//! |---|---|
//! | `index` | remembers what was seen, so that an unchanged file is not read again |
//! | `look` | compares the workspace with it; `hidden` is what could not be seen, `tracked` what git tracks although ignored, `clocks` says whether times can be trusted |
//! | `recorder` | looks around the operations of a turn; `hands` tells the changes of commands from those of operations, `rules` are the ignore rules from before the turn, `aside` is what they leave out, `noted` what a turn that is taken up again needs |
//! | `merge`, `apply` | undo and redo: what is to change, and changing it |
//! | `compose`, `standing` | several changes as one; whether something stands as recorded |
//! | `room` | what is kept, and what goes when there is too much |

mod apply;
mod aside;
mod clocks;
mod compose;
mod hands;
mod hidden;
mod ignored;
mod index;
mod look;
#[cfg(all(test, target_os = "linux"))]
mod lossless;
mod merge;
mod noted;
mod numbers;
#[cfg(all(test, target_os = "linux"))]
mod parts;
mod places;
#[cfg(all(test, target_os = "linux"))]
mod property;
mod recorder;
mod room;
mod rules;
mod standing;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod tracked;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::names;
use crate::blobs::{BlobId, Blobs};
use crate::error::Result;
use crate::protocol::RelPath;
use crate::text::visible_line;
pub use apply::Restored;
pub use aside::{LeftAside, Loss};
pub use compose::{composed, reversed};
pub use ignored::IgnoredLimits;
use index::Index;
pub use index::Mark;
pub use merge::{Plan, moved, unrestorable};
pub use noted::{Noted, Recorded};
pub use numbers::Identity;
pub use recorder::Recorder;
pub use room::{Needs, Turns};
pub use rules::KeptRules;

/// What stands somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// A regular file.
    File {
        /// Its content.
        blob: BlobId,
        /// Its permissions, as `chmod` has them, without set-user-ID and set-group-ID bits: no undo gives
        /// a file such a bit.
        mode: u32,
        /// Its size in bytes.
        size: u64,
    },
    /// A symbolic link.
    Link {
        /// What it leads to, as it says; escaped.
        target: String,
    },
    /// A folder.
    Folder {
        /// Its permissions, as `chmod` has them.
        mode: u32,
    },
    /// Something that is not kept.
    Unkept {
        /// Why.
        why: Why,
        /// What tells whether it is still the same.
        is: Identity,
    },
}

impl What {
    /// The content of a file that is kept.
    pub fn blob(&self) -> Option<&BlobId> {
        match self {
            Self::File { blob, .. } => Some(blob),
            _ => None,
        }
    }

    /// Its permissions, as `chmod` has them, where they are known.
    pub fn mode(&self) -> Option<u32> {
        match self {
            Self::File { mode, .. } | Self::Folder { mode } => Some(*mode),
            Self::Link { .. } | Self::Unkept { .. } => None,
        }
    }

    /// Why it is not kept, if that is so.
    pub fn unkept(&self) -> Option<Why> {
        match self {
            Self::Unkept { why, .. } => Some(*why),
            _ => None,
        }
    }

    /// Whether nothing is known of it, or of its content, since it could not be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unkept { why: Why::Unreadable, .. })
    }

    /// Whether it is not kept.
    fn is_unkept(&self) -> bool {
        self.unkept().is_some()
    }
}

/// Why something is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// The file is larger than `checkpoint_file_bytes`.
    Large,
    /// There was no room for it within `checkpoint_max_bytes`.
    Room,
    /// It is neither a file nor a link nor a folder.
    Other,
    /// It could not be read.
    Unreadable,
    /// It is the `.git` of a repository.
    Repository,
}

impl Why {
    /// A phrase for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Large => "larger than checkpoint_file_bytes",
            Self::Room => "no room within checkpoint_max_bytes",
            Self::Other => "neither a file nor a link",
            Self::Unreadable => "it could not be read",
            Self::Repository => "what git keeps of a repository",
        }
    }
}

/// How something in the workspace changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Where, from the root, which is empty itself; names that are not UTF-8 are escaped.
    pub path: String,
    /// What stood there; None where nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<What>,
    /// What stands there since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<What>,
    /// Whether somebody else changed it in between, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// Whether a command of the turn changed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// Whether rules leave it out: it is put back only where nothing stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignored: bool,
}

impl Change {
    /// What stood there, and what does.
    pub fn of(path: String, before: Option<What>, after: Option<What>) -> Self {
        Self { path, before, after, mixed: false, by_command: false, ignored: false }
    }

    /// The contents of both sides, as far as they are kept.
    pub fn blobs(&self) -> impl Iterator<Item = &BlobId> {
        [&self.before, &self.after].into_iter().flatten().filter_map(What::blob)
    }

    /// Where it is, as operations name it; None where they cannot.
    pub fn place(&self) -> Option<RelPath> {
        RelPath::parse(names::unescaped(&self.path).to_str()?).ok()
    }

    /// Its path for people.
    pub fn shown(&self) -> String {
        if self.path.is_empty() {
            return ".".to_owned();
        }
        visible_line(&names::shown(&self.path)).into_owned()
    }
}

fn is_folder(what: Option<&What>) -> bool {
    matches!(what, Some(What::Folder { .. }))
}

/// That of these changes, in the order of their paths, which is of this one.
fn change_at<'a>(changes: &'a [Change], path: &str) -> Option<&'a Change> {
    let found = changes.binary_search_by(|change| change.path.as_str().cmp(path));
    found.ok().map(|n| &changes[n])
}

/// What is kept of the workspace of one project.
#[derive(Debug)]
pub struct Store {
    /// The contents.
    pub blobs: Blobs,
    index: Index,
    folder: PathBuf,
    /// The largest file that is kept, in bytes.
    file_limit: u64,
    ignored_limits: IgnoredLimits,
    /// How many bytes are kept in all.
    limit: u64,
    /// How many there are; None where nobody has counted.
    size: Option<u64>,
    /// How many there were when it was last looked which of them are needed.
    swept: u64,
    /// The turns that are recorded, where they may go for a new one.
    turns: Option<Box<dyn Turns>>,
    /// What the turn needs that is carried out, beside what the index knows.
    held: BTreeSet<BlobId>,
    /// For so many bytes there was no room in this turn, whatever had gone.
    lacks: Option<u64>,
}

impl Store {
    /// What is kept in this folder, which is made when there is something.
    pub fn new(folder: &Path, file_limit: u64, ignored_limits: IgnoredLimits, limit: u64) -> Self {
        Self {
            blobs: Blobs::new(folder.to_owned()),
            index: Index::new(folder.join("index")),
            folder: folder.to_owned(),
            file_limit,
            ignored_limits,
            limit,
            size: None,
            swept: 0,
            turns: None,
            held: BTreeSet::new(),
            lacks: None,
        }
    }

    /// Adds the record of a turn, whatever room there is. It is on disk after the next
    /// [`Store::settle`].
    pub fn record(&mut self, changes: &[Change]) -> Result<BlobId> {
        self.note(changes)
    }

    /// Adds what a turn needs of its own, in the same way.
    ///
    /// # Panics
    /// Never: strings and numbers always become JSON.
    pub fn note(&mut self, noted: &(impl Serialize + ?Sized)) -> Result<BlobId> {
        let text = serde_json::to_vec(noted).expect("strings and numbers become JSON");
        let (id, more) = self.blobs.add(&text)?;
        self.size = Some(self.size() + more);
        Ok(id)
    }

    /// The record of a turn; None where it is gone.
    pub fn recorded(&self, id: &BlobId) -> Result<Option<Vec<Change>>> {
        let bytes = self.blobs.read(id)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// All that these records say, as one list; None where one of them is gone.
    pub fn composed(&self, records: &[BlobId]) -> Result<Option<Vec<Change>>> {
        let parts: Option<Vec<_>> =
            records.iter().map(|record| self.recorded(record).transpose()).collect();
        Ok(parts
            .map(|parts| parts.into_iter().collect::<Result<Vec<_>>>())
            .transpose()?
            .map(composed))
    }

    /// Brings all that was added to disk.
    pub fn settle(&mut self) -> Result<()> {
        let settled = self.blobs.settle();
        if settled.is_err() {
            self.forget();
        }
        settled
    }

    /// Takes back what was added and is not on disk.
    fn forget(&mut self) {
        self.blobs.forget();
        self.index.unload();
        (self.size, _) = (None, std::fs::remove_file(self.folder.join("size")));
    }

    /// Clears away what an interrupted write left. Only for whoever may write here.
    pub fn clear(&self) {
        self.blobs.sweep();
        let _ = crate::atomic::sweep(&self.folder);
    }
}
