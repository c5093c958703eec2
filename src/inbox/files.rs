//! Files in a folder that others write to: which names count, and how files are opened, identified and decoded.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::{HELD, SIZE_LIMIT, UNCLOSED_WAIT};
use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::ParsedReply;
use crate::session::record::FileId;

/// The path of this file in `folder`, even if it was renamed.
pub(super) fn find(folder: &Path, file: FileId) -> Option<PathBuf> {
    if file == FileId::default() {
        return None;
    }
    let entries = fs::read_dir(folder).ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| open(path).ok().and_then(|found| FileId::of(&found)) == Some(file))
}

/// The ending of the name of a note about a held or rejected file.
const NOTE: &str = ".why.txt";

/// The name of the note about a file with that name.
pub(super) fn note_name(name: &OsStr) -> String {
    format!("{}{NOTE}", atomic::shortened(&name.to_string_lossy(), 240))
}

/// The names of the held replies of an inbox in `folder`, sorted.
pub fn held_replies(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder.join(HELD)) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let replies = names.filter(|name| name_kind(name) == NameKind::Reply);
    let names = replies.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(NOTE)).collect();
    names.sort();
    names
}

/// The extensions of replies. A name without an extension also counts as a reply.
const EXTENSIONS: [&str; 4] = ["txt", "md", "markdown", "json"];
/// Extensions that browsers, editors and copy programs use for unfinished files.
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

/// The kind of a file in the inbox, according to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    /// A reply.
    Reply,
    /// A hidden or temporary file.
    Temporary,
    /// A file with an extension that replies do not have.
    Other,
}

/// The kind of a file, according to its name.
pub(super) fn name_kind(name: &OsStr) -> NameKind {
    let name = name.to_string_lossy();
    let is_one_of = |endings: &[&str], ending: &str| {
        endings.iter().any(|known| ending.eq_ignore_ascii_case(known))
    };
    match name.rsplit_once('.') {
        _ if name.starts_with(['.', '#']) || name.ends_with('~') => NameKind::Temporary,
        None => NameKind::Reply,
        Some((_, ending)) if is_one_of(&EXTENSIONS, ending) => NameKind::Reply,
        Some((_, ending)) if is_one_of(&TEMPORARY, ending) => NameKind::Temporary,
        Some(_) => NameKind::Other,
    }
}

/// Whether a file was written so recently that more may follow.
pub(super) fn is_young(file: &File) -> bool {
    let written = file.metadata().and_then(|found| found.modified()).ok();
    // A time in the future counts as old. Otherwise the file would wait for that time.
    written.and_then(|time| time.elapsed().ok()).is_some_and(|age| age < UNCLOSED_WAIT)
}

/// Reads a reply, at most [`SIZE_LIMIT`] bytes.
pub(super) fn read(file: &mut File, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes)
}

/// Opens a file for reading. Never follows a link or waits for a FIFO.
pub(super) fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

impl FileId {
    /// The identity of an open file and its content.
    pub(super) fn of(file: &File) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = file.metadata().ok()?;
        let written = crate::clock::nanos(found.mtime(), found.mtime_nsec());
        Some(Self { inode: found.ino(), written, length: found.len() })
    }
}

/// Why a file with NUL bytes is not a reply.
const NUL: &str = "it is not text: it contains NUL bytes; save the reply as UTF-8";

/// Decodes a reply: UTF-8, or UTF-16 with a byte order mark, as some editors write it.
///
/// # Errors
/// Why the reply is not text, for display.
pub fn decode(bytes: Vec<u8>) -> Result<String, String> {
    DecodedReply::of(bytes).reply().map(ParsedReply::into_text)
}

fn decode_unicode(bytes: Vec<u8>) -> Result<String, String> {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map_err(|_| "it is not valid UTF-16 text".to_owned())
    };
    match bytes.as_slice() {
        [0xff, 0xfe, ..] => wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => wide(u16::from_be_bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
            Err(_) => Err("it is not text: save the reply as UTF-8".to_owned()),
        },
    }
}

/// Why a reply of this size is rejected.
pub fn too_large(size: u64) -> String {
    format!("it is {size} bytes long; a reply may have {SIZE_LIMIT}")
}

/// A decoded reply.
pub(super) struct DecodedReply {
    /// Whether the bytes end within a character.
    is_cut: bool,
    reply: Result<ParsedReply, String>,
}

impl DecodedReply {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        let is_cut = match bytes.as_slice() {
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => !bytes.len().is_multiple_of(2),
            bytes => std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none()),
        };
        Self { is_cut, reply: decode_unicode(bytes).map(ParsedReply::new) }
    }

    /// Whether a reply ends within a block, a message or a character.
    pub(super) fn ends_early(&self) -> bool {
        self.is_cut || self.reply.as_ref().is_ok_and(ParsedReply::ends_early)
    }

    /// The reply, or the reason why it is not text, for display.
    pub(super) fn reply(self) -> Result<ParsedReply, String> {
        let reply = self.reply?;
        if reply.text().contains('\0') { Err(NUL.to_owned()) } else { Ok(reply) }
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

    fn ends_early(bytes: &[u8]) -> bool {
        DecodedReply::of(bytes.to_vec()).ends_early()
    }

    #[test]
    fn what_is_cut_off_ends_early_in_either_dialect() {
        const MESSAGE: &str =
            r#"{"protocolVersion": "1.0", "operations": [{"type": "shell", "command": "lé"}]}"#;
        const TAGS: &str = "[CREATE_FILE path=\"a\"]\n{\"operations\": [\n[/CREATE_FILE]\n";
        for whole in [MESSAGE, TAGS, "```json\n{\"a\": 1}\n```", "Prose {", ""] {
            assert!(!ends_early(whole.as_bytes()), "{whole}");
        }
        for n in 1..MESSAGE.len() {
            assert!(ends_early(&MESSAGE.as_bytes()[..n]), "{n}");
            let fenced = [b"Look:\n```json\n", &MESSAGE.as_bytes()[..n]].concat();
            assert!(ends_early(&fenced), "{n}");
            let after = [TAGS.as_bytes(), &MESSAGE.as_bytes()[..n]].concat();
            // Only the key shows that this is a message: most prose after blocks is not.
            let shows = n >= MESSAGE.find("operations").unwrap() + "operations".len();
            assert_eq!(ends_early(&after), shows, "{n}");
        }
        let wide: Vec<u8> = MESSAGE.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide = [&[0xff, 0xfe][..], &wide].concat();
        assert!(!ends_early(&wide) && ends_early(&wide[..wide.len() - 2]));
    }

    #[test]
    fn text_is_decoded_whatever_an_editor_made_of_it() {
        let wide = |mark: [u8; 2], unit: fn(u16) -> [u8; 2]| {
            let units = "[DONE] ä\n".encode_utf16().flat_map(unit);
            decode(mark.into_iter().chain(units).collect())
        };
        assert_eq!(wide([0xff, 0xfe], u16::to_le_bytes).unwrap(), "[DONE] ä\n");
        assert_eq!(wide([0xfe, 0xff], u16::to_be_bytes).unwrap(), "[DONE] ä\n");
        assert_eq!(decode(b"\xef\xbb\xbf[DONE]".to_vec()).unwrap(), "[DONE]");
        assert!(decode(b"\xff\xd8\xff".to_vec()).unwrap_err().contains("UTF-8"));
        assert!(decode(b"a\0b".to_vec()).unwrap_err().contains("NUL"));
    }
}
