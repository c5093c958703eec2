//! The workspace: the one folder whose files replies may touch, and the ONLY toucher of them.
//!
//! Everything goes through one handle on its root, so that confinement does not depend on paths
//! staying what they were. deaddrop's own state is out of reach wherever it lies, also inside.

pub mod edit;
mod facts;
pub mod guard;
mod list;
mod locate;
mod missing;
mod names;
mod nearest;
pub mod overlay;
mod plan;
mod process;
pub mod protected;
pub mod walk;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, MetadataExt, OpenOptionsFollowExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use crate::error::{Error, Result};
use crate::protocol::{Change, Detail, Failure, Mistake, RelPath, Replacement, elision};
use edit::Unreplaced;
pub use facts::Look;
pub use list::Entry;
use locate::{Last, Spot, failed};
pub(crate) use locate::{already_exists, is_folder, not_found};
pub use plan::Plan;
use protected::Protected;
use walk::Walk;

/// How much of a file an outbox shows, in bytes.
pub const READ_LIMIT: u64 = 200_000;
/// How many bytes of files are given that are read in their place, in one turn.
pub const READ_ROOM: u64 = 1_000_000;
/// The largest file that an edit reads, in bytes.
pub const EDIT_LIMIT: u64 = 64 << 20;

/// How many bytes all edits of one operation may look at and move together: a second or two, in
/// which nobody can interrupt them.
const EDITS_LIMIT: u64 = 1 << 30;

/// A handle on the workspace's root.
#[derive(Debug)]
pub struct Workspace {
    root: Dir,
    /// The root's canonical path.
    path: PathBuf,
    /// deaddrop's own files and folders, where they lie inside the workspace.
    state: Vec<RelPath>,
    /// The same by device and inode, for those that exist.
    state_ids: Vec<(u64, u64)>,
    /// What only the person may write.
    protected: Protected,
}

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Where it really stands: links on the way are resolved.
    pub path: RelPath,
    /// Its bytes, or its first ones where it is longer than was asked for.
    pub bytes: Vec<u8>,
    /// The size of the whole file.
    pub size: u64,
}

impl Contents {
    /// The same, unless it is no text.
    pub fn text(self) -> Result<Self, Failure> {
        if self.bytes.contains(&0) {
            let Self { path, size, .. } = self;
            return Err(Failure::execution(format!("'{path}' is not text ({size} bytes)")));
        }
        Ok(self)
    }
}

impl Workspace {
    /// Opens the folder at `path`. `state` are the files and folders of deaddrop itself, which are
    /// never read, listed or written here; they may lie anywhere and need not exist. What has one
    /// of the `protected` names, at any depth, is read and listed, but never written.
    pub fn open(path: &Path, state: &[PathBuf], protected: &[String]) -> Result<Self> {
        let fail = |e| Error::io("open the workspace", path, e);
        let path = path.canonicalize().map_err(fail)?;
        let root = Dir::open_ambient_dir(&path, ambient_authority()).map_err(fail)?;
        let mut inside = Vec::new();
        let mut state_ids = Vec::new();
        // A place that is a link is state under its own name too: whoever removed the link could
        // put something else there.
        let named = state.iter().map(|place| by_name(place));
        for place in state.iter().map(|place| canonical(place)).chain(named) {
            if path.starts_with(&place) {
                return Err(Error::config(
                    place.display().to_string(),
                    format!(
                        "this folder is deaddrop's own state and cannot hold the workspace {}",
                        path.display()
                    ),
                ));
            }
            let Ok(below) = place.strip_prefix(&path) else { continue };
            // By identity also where no reply could spell the name.
            if let Ok(found) = root.symlink_metadata(below) {
                state_ids.push((found.dev(), found.ino()));
            }
            if let Some(Ok(below)) = below.to_str().map(RelPath::parse)
                && !inside.contains(&below)
            {
                inside.push(below);
            }
        }
        let protected = Protected::new(protected);
        Ok(Self { root, path, state: inside, state_ids, protected })
    }

    /// Whether the folder that is open is still the one under that path.
    pub fn is_current(&self) -> bool {
        let there = Dir::open_ambient_dir(&self.path, ambient_authority());
        match (there.and_then(|dir| dir.dir_metadata()), self.root.dir_metadata()) {
            (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
            _ => false,
        }
    }

    /// The names that only the person may write, as they wrote them.
    pub fn protected_names(&self) -> impl Iterator<Item = &str> {
        self.protected.names()
    }

    /// The root's canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a regular file, at most its first `limit` bytes. Never blocks.
    pub fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        let spot = self.locate(path, Last::Follow)?;
        regular(path, spot.found.as_ref().ok_or_else(|| self.missing(path))?)?;
        read_up_to(path, &spot, limit)
    }

    /// Reads a text for the LLM, at most its first [`READ_LIMIT`] bytes.
    pub fn read_text(&self, path: &RelPath) -> Result<Contents, Failure> {
        self.read(path, READ_LIMIT)?.text()
    }

    /// Lists every file that is not ignored.
    pub fn walk(&self) -> Result<Walk> {
        walk::walk(self)
    }
}

/// Fails where a line of the new content stands for others that the file would lose.
fn nothing_left_out(path: &RelPath, new: &[u8], old: &[u8]) -> Result<(), Failure> {
    let left_out = std::str::from_utf8(new).ok().and_then(|new| elision::left_out(new, old));
    let Some((line, text)) = left_out else { return Ok(()) };
    Err(Failure::execution(format!(
        "Line {line} of the new content, `{}`, stands for lines that '{path}' would lose; nothing was changed. Send all of the file, or EDIT_FILE the lines that change",
        crate::text::visible_line(text)
    ))
    .as_a(Mistake::LinesLeftOut))
}

/// What a change makes of a file's bytes, and how that is told. Pure.
pub fn changed(real: &RelPath, old: &[u8], change: &Change) -> Result<(Vec<u8>, Detail), Failure> {
    let (start, end, with) = match change {
        Change::Lines { start, end, with } => (start, end, with),
        Change::First(replacements) | Change::Once(replacements) => {
            let edits = replacements.len();
            return match edit::replace_first(old, replacements, EDITS_LIMIT) {
                Ok(bytes) => Ok((bytes, Detail::Replaced { path: real.clone(), edits })),
                Err(Unreplaced::NotFound { n, bytes }) => {
                    Err(not_in_it(real, replacements, n, &bytes))
                }
                Err(Unreplaced::TooMuch) => Err(Failure::execution(format!(
                    "{edits} edits are too many for '{real}' at once ({} bytes): send them in several operations, or the whole file anew",
                    old.len()
                ))),
            };
        }
    };
    match edit::replace_lines(old, *start, *end, with) {
        Ok(edited) => {
            if let Some((line, text)) = elision::left_out(with, old) {
                return Err(Failure::execution(format!(
                    "Line {line} of the new lines, `{}`, stands for lines that '{real}' would lose; nothing was changed. Send all of the lines from {start} to {end}, or a range for each change (where it is meant as it is, write it with RUN_COMMAND)",
                    crate::text::visible_line(text)
                ))
                .as_a(Mistake::LinesLeftOut));
            }
            let detail = Detail::Edited {
                path: real.clone(),
                lines: (*start, *end),
                inserted: edited.inserted,
                total: edited.total,
            };
            Ok((edited.bytes, detail))
        }
        Err(total) => Err(Failure::execution(format!(
            "Invalid line range {start}-{end}: '{real}' has {}",
            crate::text::count(total, "line")
        ))
        .as_a(Mistake::NoSuchLines)),
    }
}

/// Replacement `n` finds nothing to replace in `bytes`.
fn not_in_it(real: &RelPath, replacements: &[Replacement], n: usize, bytes: &[u8]) -> Failure {
    let which = match replacements.len() {
        1 => String::new(),
        all => format!("edit {} of {all}: ", n + 1),
    };
    let old = &replacements[n].old;
    let after = if n > 0 { ", as the edits before it left the file" } else { "" };
    Failure::execution(if old.is_empty() {
        format!("{which}oldContent is empty, so there is nothing to replace in '{real}'")
    } else {
        let nearest =
            nearest::nearest(bytes, old).map_or(String::new(), |told| format!("; {told}"));
        format!(
            "{which}oldContent not found in '{real}'{after}; nothing was changed. It must stand there to the letter, with its white space: {}{nearest}",
            nearest::quoted(old)
        )
    })
    .as_a(Mistake::TextNotFound)
}

/// Fails where a file of this size is too large to be edited.
fn editable(path: &RelPath, size: u64) -> Result<(), Failure> {
    if size <= EDIT_LIMIT {
        return Ok(());
    }
    Err(Failure::execution(format!(
        "'{path}' is {size} bytes long; files up to {EDIT_LIMIT} bytes can be edited"
    )))
}

fn regular<'a>(path: &RelPath, found: &'a Metadata) -> Result<&'a Metadata, Failure> {
    if found.is_file() {
        Ok(found)
    } else if found.is_dir() {
        Err(is_folder(path))
    } else {
        Err(Failure::rejected(format!("'{path}' is not a regular file")))
    }
}

fn read_up_to(path: &RelPath, spot: &Spot, limit: u64) -> Result<Contents, Failure> {
    let fail = |e: io::Error| failed("read", path, &e);
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    without_blocking(&mut options);
    let file = spot.folder.open_with(&spot.name, &options).map_err(fail)?;
    // What stands there now need not be what was looked at before.
    let size = regular(path, &file.metadata().map_err(fail)?)?.len();
    // A sparse file may claim more than there is memory.
    let expected = size.min(limit).min(1 << 20);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes).map_err(fail)?;
    let size = size.max(bytes.len() as u64);
    Ok(Contents { path: spot.real.clone(), bytes, size })
}

/// Opening a FIFO for reading would wait for a writer.
#[cfg(unix)]
fn without_blocking(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt;
    options.custom_flags(libc::O_NONBLOCK);
}

#[cfg(not(unix))]
fn without_blocking(_: &mut OpenOptions) {}

/// Makes the entries of a folder durable; its handle itself cannot be synced.
fn sync(folder: &Dir) -> io::Result<()> {
    if cfg!(unix) { folder.open(".")?.sync_all() } else { Ok(()) }
}

/// The canonical form of a path that may not exist: of its deepest ancestor that does, and the
/// rest as it is.
fn canonical(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

/// A path as it is named, in the canonical form of the folder that holds it.
fn by_name(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => canonical(path),
    }
}
