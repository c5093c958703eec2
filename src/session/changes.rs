//! Summaries of what a turn changed in the workspace, for reports. The complete changes are in the checkpoint records
//! (see `workspace::checkpoint`).

use serde::{Deserialize, Serialize};

use crate::blobs::BlobId;
use crate::text::{count, first_of};

/// The most changes that are listed individually.
pub const NAMED: usize = 40;
/// The most names in one sentence.
const SHORT: usize = 6;

/// A summary of what a turn changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnChanges {
    /// The checkpoint records. A turn that stops to ask has one for each part.
    pub records: Vec<BlobId>,
    /// The number of changed files and links.
    pub files: usize,
    /// The first changes, up to [`NAMED`].
    pub named: Vec<FileChange>,
    /// How many of the files were changed by commands.
    pub by_commands: usize,
    /// Changes of folders without a changed file.
    pub folders: CountedNames,
    /// What cannot be undone, and why.
    pub unrestorable: CountedNames,
    /// Changes of ignored files, if known.
    pub ignored: Option<Ignored>,
    /// The ignore rules for the second part of a turn that stopped to ask.
    pub rules: Option<BlobId>,
    /// Why the changes are unknown and cannot be undone.
    pub not_kept: Option<String>,
    /// What the turn restored, if it is an undo or a redo.
    pub back: Option<Box<Reversal>>,
}

/// A number of items, and the names of the first ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedNames {
    /// The number of items.
    pub count: usize,
    /// The first items, as a phrase each.
    pub named: Vec<String>,
}

impl CountedNames {
    /// Adds an item.
    pub fn add(&mut self, phrase: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(phrase());
        }
    }

    /// Adds the items of another list. An item named in both lists counts once.
    fn merge(&mut self, mut others: Self) {
        let named = others.named.len();
        others.named.retain(|name| !self.named.contains(name));
        self.count += others.count - (named - others.named.len());
        self.named.append(&mut others.named);
        self.named.truncate(NAMED);
    }
}

/// Changes of ignored files while commands ran; their contents are not stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ignored {
    /// The number of changed files and whole folders.
    pub places: usize,
    /// The first of these, for display: lost files first, build products last. Folders end with a `/`.
    pub named: Vec<String>,
    /// Whether all of these are build products such as `target/`, which nobody wants to undo.
    pub only_products: bool,
    /// Earlier files that were or may have been deleted or overwritten, without build products.
    pub lost: CountedNames,
    /// The number of deleted build products. Changed ones are not counted, since every build changes them.
    pub products_lost: usize,
}

impl Ignored {
    /// The combined changes of two parts of a turn. Build products are named last.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        if self.only_products && !later.only_products {
            return later.and(self);
        }
        let mut places = CountedNames { count: self.places, named: self.named };
        places.merge(CountedNames { count: later.places, named: later.named });
        let mut lost = self.lost;
        lost.merge(later.lost);
        Self {
            places: places.count,
            named: places.named,
            only_products: self.only_products && later.only_products,
            lost,
            products_lost: self.products_lost + later.products_lost,
        }
    }

    /// Describes files that are or may be lost: `deleted .env, x.log and 3 more (ignored)`, `2 ignored build products`.
    pub fn describe_lost(&self) -> impl Iterator<Item = String> {
        let Self { lost, products_lost: products, .. } = self;
        let files = || format!("{} (ignored)", first_of(&lost.named, SHORT, lost.count));
        let files = (lost.count > 0).then(files);
        files.into_iter().chain((*products > 0).then(|| count(*products, "ignored build product")))
    }

    /// Whether an undo should mention these changes. Rebuilt build products alone do not matter.
    pub fn matters(&self) -> bool {
        !self.only_products || self.products_lost > 0
    }

    /// `x.log, data/ and 3 more`.
    pub fn describe(&self) -> String {
        first_of(&self.named, SHORT, self.places)
    }
}

/// How one file was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The file's path, for display.
    pub path: String,
    /// Its earlier path, if it was moved.
    pub from: Option<String>,
    /// The kind of change.
    pub how: ChangeKind,
    /// The numbers of added and removed lines, if known.
    pub lines: Option<(usize, usize)>,
    /// Whether a command changed it.
    #[serde(default)]
    pub by_command: bool,
}

/// The kinds of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeKind {
    /// The file is new.
    New,
    /// The contents, the type or a link's target changed.
    Changed,
    /// Only the permissions changed.
    Mode,
    /// The file was moved without a change.
    Moved,
    /// The file is gone.
    Deleted,
    /// The file can no longer be read.
    Unreadable,
}

impl FileChange {
    /// `new src/a.py`, `src/a.py`, `moved a.py -> src/a.py`, `deleted src/a.py`.
    pub fn describe(&self) -> String {
        let path = &self.path;
        match self.how {
            ChangeKind::New => format!("new {path}"),
            ChangeKind::Deleted => format!("deleted {path}"),
            ChangeKind::Moved => format!("moved {} -> {path}", self.from.as_deref().unwrap_or("?")),
            ChangeKind::Changed => path.clone(),
            ChangeKind::Mode => format!("{path} (permissions)"),
            ChangeKind::Unreadable => format!("{path} (can no longer be read)"),
        }
    }

    /// Like [`Self::describe`], with the numbers of added and removed lines: `src/a.py (+3 −1)`.
    pub fn describe_with_lines(&self) -> String {
        let lines = self.lines.and_then(|(added, removed)| match self.how {
            ChangeKind::New => Some(format!(" (+{added})")),
            ChangeKind::Deleted => Some(format!(" (−{removed})")),
            ChangeKind::Changed => Some(format!(" (+{added} −{removed})")),
            ChangeKind::Moved | ChangeKind::Mode | ChangeKind::Unreadable => None,
        });
        self.describe() + &lines.unwrap_or_default()
    }
}

/// What an undo or a redo did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reversal {
    /// The turns that were undone or redone, by the number of the outbox that each answered.
    pub turns: Vec<u32>,
    /// The undo that a redo reversed.
    pub redid: Option<u32>,
    /// The places that could not be restored, and why.
    pub left: Vec<(String, String)>,
    /// Changes of ignored files in these turns, which stay.
    pub ignored: Option<Ignored>,
    /// Restored files that still contain a later change by somebody else.
    pub others: CountedNames,
}

impl Reversal {
    /// Describes what was not restored, one sentence each.
    pub fn describe_unrestored(&self) -> impl Iterator<Item = String> {
        let left = self.left.iter().map(|(path, why)| format!("'{path}' is left as it is: {why}"));
        let others = self.others.named.iter();
        let others = others.map(|path| format!("'{path}' still contains a later change"));
        let more = self.others.count.saturating_sub(self.others.named.len());
        let contain = if more == 1 { "contains a later change" } else { "contain later changes" };
        let more = (more > 0).then(|| format!("{} still {contain}", count(more, "more file")));
        let ignored = self.ignored.iter().filter(|ignored| ignored.matters()).map(|ignored| {
            format!(
                "ignored files are not restored, since deaddrop does not record them: {}",
                ignored.describe()
            )
        });
        left.chain(others).chain(more).chain(ignored)
    }
}
