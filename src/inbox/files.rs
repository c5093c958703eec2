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
    let replies = names.filter(|name| is_reply_name(name));
    let names = replies.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(NOTE)).collect();
    names.sort();
    names
}

/// `.txt` and `.json` files, but for those that are hidden.
pub(super) fn is_reply_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let known = |e: &str| ["txt", "json"].iter().any(|known| e.eq_ignore_ascii_case(known));
    !name.starts_with('.') && extension.is_some_and(known)
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
    fn only_finished_files_of_text_or_json_are_replies() {
        for name in ["a.txt", "a b.TXT", "x.tmp.txt", "a.json", "a.txt.JSON"] {
            assert!(is_reply_name(OsStr::new(name)), "{name}");
        }
        for name in [
            "a.txt.part",
            "a.txt~",
            ".a.txt",
            ".txt",
            "txt",
            "a.txt.tmp",
            "a.md",
            "a.txt.crdownload",
            "a.json.part",
            ".json",
            "json",
            "a.jsonl",
        ] {
            assert!(!is_reply_name(OsStr::new(name)), "{name}");
        }
    }
}
