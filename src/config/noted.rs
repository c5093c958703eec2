//! The file of base directories that the person has used, in their own folder.
//!
//! It is a file of fields, each a letter, a path in bytes and a NUL: `b` begins a base directory, `i`
//! is which folder it was, `w` a place where its replies write, `o` one of its own, `f` what one was for
//! (a letter), which folder that was, and its place.

use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::finding::MARKS;
use super::own::{make_folder, state_home};
use super::{FILE, FOLDER, real};
use crate::atomic;
use crate::error::{Error, Result};

/// The file of them, in the person's own folder.
const NOTED: &str = "bases";
/// Whoever writes it holds this one.
const LOCK: &str = "bases.lock";
/// So many are remembered; the one that was noted first is forgotten first.
pub(super) const MOST: usize = 1_000;
/// So many places are remembered of each where its replies write, or wrote, and so many folders that are
/// or were its own; the newest first.
const PLACES: usize = 32;
/// The file is smaller, or is not read.
const LIMIT: u64 = 16 << 20;

/// One that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) base: PathBuf,
    /// Which folder that was: another one may stand there later.
    pub(super) folder: String,
    /// Where its replies write: the workspace, and what its commands may change beside it.
    pub(super) written: Vec<PathBuf>,
    /// Its own files and folders.
    pub(super) own: Vec<PathBuf>,
    /// Which folders its inbox, outbox, sessions and approvals are, and were before, the newest first.
    pub(super) folders: Vec<Folder>,
}

/// A folder of deaddrop's own: a place, what it was for, and which folder stood there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Folder {
    role: u8,
    which: String,
    pub(super) place: PathBuf,
}

impl Folder {
    /// What the folder would be noted as that stands at a place; None where none is there. What it is for
    /// is told by a letter: replies in what were approvals are no approvals.
    pub(super) fn at(role: u8, place: &Path) -> Option<Self> {
        let which = folder_of(place);
        (!which.is_empty()).then(|| Self { role, which, place: real(place) })
    }

    /// Whether that folder is there still.
    pub(super) fn stands(&self) -> bool {
        folder_of(&self.place) == self.which
    }
}

impl Used {
    /// Whether all that the other says of the same base directory is noted with this.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.base == other.base
            && self.folder == other.folder
            && self.own == other.own
            && other.written.iter().all(|place| self.written.contains(place))
            && other.folders.iter().all(|folder| self.folders.contains(folder))
    }

    /// Takes over what was noted before and may still be true of something that is there.
    pub(super) fn remember(&mut self, before: &Self) {
        // A flag may have said before that they write elsewhere, and what they made is there still.
        let places = before.written.iter().filter(|place| !self.written.contains(place));
        let places: Vec<PathBuf> = places.cloned().collect();
        self.written.extend(places);
        self.written.truncate(PLACES);
        let folders = before.folders.iter().filter(|folder| !self.folders.contains(folder));
        let folders: Vec<Folder> = folders.cloned().collect();
        self.folders.extend(folders);
        self.folders.truncate(PLACES);
    }

    /// Whether it is a base directory still: what is gone keeps nothing anywhere, and a folder that it
    /// had can be anybody's by now.
    pub(super) fn lives(&self) -> bool {
        let has_begun = || {
            let marks = self.own.iter().flat_map(|place| MARKS.map(|mark| place.join(mark)));
            marks.into_iter().any(|mark| mark.is_file())
        };
        // A reply that could write in a folder that was its own would answer there.
        let stands = || self.folders.iter().any(Folder::stands);
        [FILE, FOLDER].iter().any(|name| is_there(&self.base.join(name)))
            || (self.base.is_dir() && (has_begun() || stands()))
    }

    /// Whether the folder that was used is still there, if with nothing in it.
    pub(super) fn stands(&self) -> bool {
        !self.folder.is_empty() && folder_of(&self.base) == self.folder
    }
}

/// Changes what is noted, alone, and writes it where it is another then. Returns whether it is.
pub(super) fn change(change: impl FnOnce(&mut Vec<Used>)) -> Result<bool> {
    let home = home()?;
    make_folder(&home).map_err(|e| Error::io("make the folder", &home, e))?;
    let lock = home.join(LOCK);
    let held = atomic::open_own(File::options().create(true).append(true), &lock);
    let held = held.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|e| Error::io("lock", &lock, e))?;
    let mut all = read()?;
    let before = all.clone();
    change(&mut all);
    let is_changed = all != before;
    if is_changed {
        atomic::write_private(&home.join(NOTED), &written(&all))?;
    }
    Ok(is_changed)
}

/// Of one that is gone nothing is kept from anybody.
pub(super) fn is_there(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok()
}

/// Which folder stands at a place: what no other has that is made there later, where the file system tells
/// when that was. Empty where none is there.
pub(super) fn folder_of(place: &Path) -> String {
    let found = fs::metadata(place).ok().filter(fs::Metadata::is_dir);
    let Some(found) = found else { return String::new() };
    let made =
        found.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
    let made = made.unwrap_or_default().as_nanos();
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    format!("{number}.{made}")
}

fn home() -> Result<PathBuf> {
    state_home().ok_or_else(|| {
        Error::usage("HOME does not say where it is noted which base directories there are; set HOME or XDG_STATE_HOME")
    })
}

/// Where it is.
///
/// # Errors
/// Nobody knows where.
pub(super) fn file() -> Result<PathBuf> {
    Ok(home()?.join(NOTED))
}

/// All that are noted, the oldest first; none before the first is, or where nobody knows where that would be.
///
/// # Errors
/// The file cannot be read, or is not as deaddrop writes it. Nothing is known then, so nothing is safe.
pub(super) fn read() -> Result<Vec<Used>> {
    look().map_err(unreadable)
}

/// The same; or why it cannot be read, for [`unreadable`].
pub(super) fn look() -> Result<Vec<Used>, String> {
    let Ok(path) = file() else { return Ok(Vec::new()) };
    let why = match atomic::read_own_within(&path, LIMIT) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(e) => e.to_string(),
        Ok(bytes) => match parsed(&bytes) {
            Some(all) => return Ok(all),
            None => "it is damaged".to_owned(),
        },
    };
    Err(why)
}

/// The list cannot be read.
pub(super) fn unreadable(why: impl Display) -> Error {
    let problem = format!(
        "deaddrop keeps its list of your base directories there, and cannot read it: {why}. Restore it, or move it away: deaddrop then begins a new one, and asks you about each base directory once more"
    );
    let path = file().unwrap_or_default();
    Error::config(path.display().to_string(), problem)
}

/// What a file of notes says; None where that is not what deaddrop writes.
fn parsed(bytes: &[u8]) -> Option<Vec<Used>> {
    let mut all: Vec<Used> = Vec::new();
    let fields = bytes.strip_suffix(b"\0")?;
    for field in fields.split(|byte| *byte == 0) {
        let (letter, path) = field.split_first()?;
        let path = of_bytes(path);
        match (letter, all.last_mut()) {
            (b'b', _) if path.is_absolute() => all.push(Used {
                base: path,
                folder: String::new(),
                written: Vec::new(),
                own: Vec::new(),
                folders: Vec::new(),
            }),
            (b'i', Some(last)) => last.folder = path.to_string_lossy().into_owned(),
            (b'w', Some(last)) => last.written.push(path),
            (b'o', Some(last)) => last.own.push(path),
            (b'f', Some(last)) => last.folders.push(folder(&field[1..])?),
            _ => return None,
        }
    }
    Some(all)
}

/// Its role, which one it is, a blank, and its place.
fn folder(field: &[u8]) -> Option<Folder> {
    let (role, rest) = field.split_first()?;
    let blank = memchr::memchr(b' ', rest)?;
    let which = String::from_utf8_lossy(&rest[..blank]).into_owned();
    Some(Folder { role: *role, which, place: of_bytes(&rest[blank + 1..]) })
}

fn written(all: &[Used]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |begin: &[u8], path: &Path| {
        bytes.extend_from_slice(begin);
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        bytes.push(0);
    };
    for used in all {
        field(b"b", &used.base);
        if !used.folder.is_empty() {
            field(b"i", used.folder.as_ref());
        }
        used.written.iter().for_each(|place| field(b"w", place));
        used.own.iter().for_each(|place| field(b"o", place));
        for Folder { role, which, place } in &used.folders {
            field(&[b"f", &[*role][..], which.as_bytes(), b" "].concat(), place);
        }
    }
    bytes
}

#[cfg(unix)]
fn of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn of_bytes(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let odd = of_bytes(b"/a b/\xff\n%41");
        let used = |base: &Path| Used {
            base: base.to_owned(),
            folder: "7.8".to_owned(),
            written: vec!["/w".into(), odd.clone()],
            own: vec![base.join("inbox"), base.join(FILE)],
            folders: vec![
                Folder { role: b'i', which: "1.2".to_owned(), place: odd.clone() },
                Folder { role: b's', which: "3.0".to_owned(), place: "/a".into() },
            ],
        };
        let all = [used(&odd), used("/home/me".as_ref())];
        assert_eq!(parsed(&written(&all)).unwrap(), all);
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let good = b"b/a\0w/a/w\0";
        assert_eq!(parsed(good).unwrap().len(), 1);
        assert!(
            (0..good.len()).all(|n| parsed(&good[..n]).is_none_or(|all| n == 4 && all.len() == 1))
        );
        for bad in [
            &b""[..],
            b"\0",
            b"o/before\0",
            b"brelative\0",
            b"b/a\0\0",
            b"b/a\0x/a\0",
            b"b/a\0fi\0",
        ] {
            assert!(parsed(bad).is_none(), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let Some(all) = parsed(&bytes) else { return Ok(()) };
            prop_assert_eq!(parsed(&written(&all)), Some(all));
        }
    }
}
