//! Files of a folder that others write into: which names count, how they are opened, and which is
//! which.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{HELD, SIZE_LIMIT, UNCLOSED_WAIT};
use crate::atomic;
use crate::error::{Error, Result};
use crate::session::record::FileId;

/// The file in `folder` that is this one, whatever its name.
pub(super) fn find(folder: &Path, file: FileId) -> Option<PathBuf> {
    if file == FileId::default() {
        return None;
    }
    let entries = fs::read_dir(folder).ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| open(path).ok().and_then(|found| FileId::of(&found)) == Some(file))
}

/// The end of the name of a note beside what was put away.
const NOTE: &str = ".why.txt";

/// The name of the note beside a file of that name.
pub(super) fn note(name: &OsStr) -> String {
    format!("{}{NOTE}", atomic::shortened(&name.to_string_lossy(), 240))
}

/// The names of the replies that an inbox in `folder` holds back, sorted.
pub fn held(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder.join(HELD)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let replies = names.filter(|name| name_kind(name) == NameKind::Reply);
    let names = replies.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(NOTE)).collect();
    names.sort();
    names
}

/// Endings of names that replies are saved under. A name without an ending counts, too.
const ENDINGS: [&str; 4] = ["txt", "md", "markdown", "json"];
/// Endings that browsers, editors and copies give to a file until it is finished.
const TEMPORARY: [&str; 11] = [
    "part",
    "partial",
    "filepart",
    "crdownload",
    "opdownload",
    "download",
    "tmp",
    "temp",
    "swp",
    "swo",
    "swx",
];

/// What the name of a file in the inbox says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// It is a reply.
    Reply,
    /// It is hidden or temporary.
    Temporary,
    /// Its ending is none of a reply.
    Other,
}

/// What the name of a file says.
pub(super) fn name_kind(name: &OsStr) -> NameKind {
    let name = name.to_string_lossy();
    let is_one_of = |endings: &[&str], ending: &str| {
        endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
    };
    match name.rsplit_once('.') {
        _ if name.starts_with(['.', '#']) || name.ends_with('~') => NameKind::Temporary,
        None => NameKind::Reply,
        Some((_, ending)) if is_one_of(&ENDINGS, ending) => NameKind::Reply,
        Some((_, ending)) if is_one_of(&TEMPORARY, ending) => NameKind::Temporary,
        Some(_) => NameKind::Other,
    }
}

/// Whether a file was written just now, so that more may follow.
pub(super) fn is_young(file: &File) -> bool {
    let written = file.metadata().and_then(|found| found.modified()).ok();
    // A time in the future says nothing, so it does not make anybody wait.
    written.and_then(|time| time.elapsed().ok()).is_some_and(|age| age < UNCLOSED_WAIT)
}

/// The bytes of a reply, as many as one may have.
pub(super) fn read(file: &mut File, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}

/// Opens a regular file for reading, never a link, and without waiting for a FIFO.
#[cfg(unix)]
pub(super) fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

impl FileId {
    /// What identifies an open file and its content.
    #[cfg(unix)]
    pub(super) fn of(file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = file.metadata().ok()?;
        let written = crate::clock::nanos(found.mtime(), found.mtime_nsec());
        Some(Self { inode: found.ino(), written, length: found.len() })
    }

    #[cfg(not(unix))]
    pub(super) fn of(_: &File) -> Option<Self> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_replies_from_what_is_not_finished() {
        let table: [(NameKind, &[&str]); 3] = [
            (
                NameKind::Reply,
                &[
                    "a.txt",
                    "a b.TXT",
                    "x.tmp.txt",
                    "a.json",
                    "a.txt.JSON",
                    "a.md",
                    "a.Markdown",
                    "reply",
                ],
            ),
            (
                NameKind::Temporary,
                &[
                    "a.txt.part",
                    "a.txt~",
                    "#reply#",
                    "reply~",
                    ".a.txt",
                    ".txt",
                    "a.txt.tmp",
                    "a.md.crdownload",
                    "a.SWP",
                ],
            ),
            (NameKind::Other, &["a.jsonl", "a.pdf", "a.", "Dr. No"]),
        ];
        for (kind, names) in table {
            for name in names {
                assert_eq!(name_kind(OsStr::new(name)), kind, "{name}");
            }
        }
    }
}
