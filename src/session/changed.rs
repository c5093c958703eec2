//! What a turn changed in the workspace, as far as a session tells of it; the record of all of it is kept
//! beside (see `workspace::checkpoint`).

use serde::{Deserialize, Serialize};

use crate::blobs::BlobId;
use crate::text::count;

/// So many changed files are named.
pub const NAMED: usize = 40;
/// So many in one sentence.
const SHORT: usize = 6;

/// What a turn changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// Where all of it is recorded: a record for each part of a turn that stopped to ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<BlobId>,
    /// How many files and links were changed.
    pub files: usize,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<FileChange>,
    /// How many of them commands changed.
    #[serde(default)]
    pub by_commands: usize,
    /// What changed of folders that no changed file tells of.
    #[serde(default, skip_serializing_if = "Several::is_none")]
    pub folders: Several,
    /// What cannot be taken back, and why.
    #[serde(default, skip_serializing_if = "Several::is_none")]
    pub unrestorable: Several,
    /// What changed beside them that rules leave out, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// The ignore rules that the rest of a turn goes by that stopped to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<BlobId>,
    /// Why it is not known, and cannot be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
    /// What was taken back, or done again, where that is what the turn was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<Back>>,
}

/// So many things, the first of them in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Several {
    /// How many.
    pub count: usize,
    /// The first of them, a phrase each.
    pub named: Vec<String>,
}

impl Several {
    /// One more.
    pub fn add(&mut self, phrase: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(phrase());
        }
    }

    fn is_none(&self) -> bool {
        self.count == 0
    }
}

/// What changed while commands of a turn ran and is not kept, since rules such as .gitignore leave it out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ignored {
    /// How many files, and folders as a whole.
    pub places: usize,
    /// The first of them, for people; a folder has a `/` at the end. What is lost comes first, and what tools
    /// make last.
    pub named: Vec<String>,
    /// Whether all of them are what tools make, such as `target/`: nobody means those who takes a turn
    /// back.
    pub only_products: bool,
    /// What of it was there before and is lost, or may be: deleted or written over. Nothing that tools make.
    #[serde(default, skip_serializing_if = "Several::is_none")]
    pub lost: Several,
    /// How much that tools make is gone. What they made anew is not counted: a build does that each time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub products_lost: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Ignored {
    /// All of both, where parts of a turn had some each.
    #[must_use]
    pub fn and(mut self, later: Self) -> Self {
        let known = self.named.len();
        self.places += later.places;
        for name in later.named {
            if self.named[..known].contains(&name) {
                self.places -= 1;
            } else if self.only_products && !later.only_products {
                self.named.insert(0, name);
            } else {
                self.named.push(name);
            }
        }
        self.named.truncate(NAMED);
        self.only_products &= later.only_products;
        let known = self.lost.named.clone();
        self.lost.count += later.lost.count;
        for phrase in later.lost.named {
            if known.contains(&phrase) {
                self.lost.count -= 1;
            } else if self.lost.named.len() < NAMED {
                self.lost.named.push(phrase);
            }
        }
        self.products_lost += later.products_lost;
        self
    }

    /// `deleted .env, x.log and 3 more (ignored), 2 ignored build products`: what of it is lost, or may be;
    /// None where nothing is.
    pub fn lost_told(&self) -> Option<String> {
        let named: Vec<&str> = self.lost.named.iter().take(SHORT).map(String::as_str).collect();
        let more = match self.lost.count.saturating_sub(named.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let lost = (self.lost.count > 0).then(|| format!("{}{more} (ignored)", named.join(", ")));
        let products = self.products_lost;
        let products = (products > 0).then(|| count(products, "ignored build product"));
        let told: Vec<String> = lost.into_iter().chain(products).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Whether who takes the turn back should know of it: a build alone is nothing to tell.
    pub fn matters(&self) -> bool {
        !self.only_products || self.products_lost > 0
    }

    /// `x.log, data/ and 3 more`.
    pub fn told(&self) -> String {
        let told: Vec<&str> = self.named.iter().take(SHORT).map(String::as_str).collect();
        let more = match self.places.saturating_sub(told.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}{more}", told.join(", "))
    }
}

/// How one file was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Which, for people.
    pub path: String,
    /// How.
    pub how: How,
    /// How many lines were added and removed, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(usize, usize)>,
    /// Whether a command did it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
}

/// How a file can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It was not there before.
    New,
    /// It is another.
    Changed,
    /// Its permissions are others.
    Mode,
    /// It is not there any more.
    Deleted,
    /// It cannot be read since.
    Unreadable,
}

impl FileChange {
    /// `new src/a.py`, `src/a.py`, `deleted src/a.py`.
    pub fn told(&self) -> String {
        let before = match self.how {
            How::New => "new ",
            How::Deleted => "deleted ",
            How::Changed | How::Mode | How::Unreadable => "",
        };
        let after = match self.how {
            How::Mode => " (permissions)",
            How::Unreadable => " (cannot be read since)",
            _ => "",
        };
        format!("{before}{}{after}", self.path)
    }

    /// The same with the lines that were added and removed: `src/a.py (+3 −1)`.
    pub fn told_with_lines(&self) -> String {
        let told = self.told();
        match (self.how, self.lines) {
            (How::New, Some((added, _))) => format!("{told} (+{added})"),
            (How::Deleted, Some((_, removed))) => format!("{told} (−{removed})"),
            (How::Changed, Some((added, removed))) => format!("{told} (+{added} −{removed})"),
            _ => told,
        }
    }
}

/// What was taken back, or done again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Back {
    /// The turns that were taken back, or are no more: by the outboxes that they answered.
    pub turns: Vec<u32>,
    /// The undo that was undone, if that is what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redid: Option<u32>,
    /// What is not as it was, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<(String, String)>,
    /// What these turns changed that rules leave out, and that is as they left it; as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<Ignored>,
    /// Files that are not as the turns left them which stand again, or not as they were before those that
    /// are undone: what somebody had changed, and was put aside, is there again.
    #[serde(default, skip_serializing_if = "Several::is_none")]
    pub others: Several,
}

impl Back {
    /// What is not as it was, a sentence each.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let left = self.left.iter().map(|(path, why)| format!("'{path}' is left as it is: {why}"));
        let ignored = self.ignored.iter().filter(|ignored| ignored.matters());
        let ignored = ignored.map(|ignored| format!("{LEFT_ASIDE}: {}", ignored.told()));
        let than = match self.redid {
            Some(_) => "as what was undone had left it",
            None => "as it was before what is undone",
        };
        let more = match self.others.count - self.others.named.len() {
            0 => None,
            n => Some(format!("{n} more files are not so, either")),
        };
        let others = self.others.named.iter();
        let others = others
            .map(move |path| format!("'{path}' is not {than}: what had changed it since is there"));
        left.chain(others).chain(more).chain(ignored)
    }

    /// How many places are not as they are said to be again.
    pub fn missing(&self) -> usize {
        self.left.len() + self.others.count
    }
}

/// Said of what rules leave out, before its names.
const LEFT_ASIDE: &str =
    "what rules such as .gitignore leave out is not kept, and stays as the turn left it";
