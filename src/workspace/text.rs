//! Refuses to show a file that is not UTF-8 text, and names the file's format in the failure.

use super::Contents;
use crate::protocol::Failure;
use crate::text::count;

/// The first bytes of some file formats, and the names of the formats.
const FORMATS: [(&[u8], &str); 22] = [
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"BM", "perhaps a BMP image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "an icon"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document or package made as one"),
    (b"\x1f\x8b", "compressed with gzip"),
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\0", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "a program or library (ELF)"),
    (b"MZ", "perhaps a program or library of Windows"),
    (b"\xcf\xfa\xed\xfe", "a program or library of macOS"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
];

impl Contents {
    /// Whether the bytes read are UTF-8 text.
    pub fn is_text(&self) -> bool {
        !self.bytes.contains(&0) && self.invalid().is_none()
    }

    /// The position of the first byte that is not UTF-8. A character cut off at the end of a partial read is valid.
    fn invalid(&self) -> Option<usize> {
        let error = std::str::from_utf8(&self.bytes).err()?;
        let is_cut = error.error_len().is_none() && (self.bytes.len() as u64) < self.size;
        (!is_cut).then(|| error.valid_up_to())
    }

    /// Fails unless the content is UTF-8 text. If invalid bytes were shown as U+FFFD, the model would send U+FFFD back.
    pub fn text(self) -> Result<Self, Failure> {
        if self.is_text() {
            return Ok(self);
        }
        let Self { path, bytes, size, .. } = &self;
        let bytes_long = count(usize::try_from(*size).unwrap_or(usize::MAX), "byte");
        let what = match (format(bytes), self.invalid()) {
            (Some(format), _) => format!("it is {format} ({bytes_long})"),
            (None, Some(at)) if !bytes.contains(&0) => {
                let line = memchr::memchr_iter(b'\n', &bytes[..at]).count() + 1;
                format!(
                    "it is not in UTF-8 ({bytes_long}; the first byte that is not is in line {line}); if it is text, RUN_COMMAND with iconv shows it"
                )
            }
            _ => format!("it is binary ({bytes_long})"),
        };
        Err(Failure::execution(format!("'{path}' is not shown: {what}")))
    }
}

/// The format of a file, based on its first bytes.
fn format(bytes: &[u8]) -> Option<&'static str> {
    let riff = |kind: &[u8]| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(kind);
    if riff(b"WEBP") {
        return Some("a WebP image");
    }
    if riff(b"WAVE") {
        return Some("WAV audio");
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some("video, audio or an image (MP4 and the like)");
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Some("perhaps text in UTF-16, which iconv -f UTF-16 -t UTF-8 shows");
    }
    FORMATS.iter().find(|(begin, _)| bytes.starts_with(begin)).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RelPath;

    fn told(bytes: &[u8], size: u64) -> String {
        let path = RelPath::parse("x").unwrap();
        let contents = Contents { path, bytes: bytes.to_vec(), size, lines: None };
        contents.text().map_or_else(|failure| failure.reason, |_| "text".to_owned())
    }

    #[test]
    fn what_is_no_text_is_named() {
        for (bytes, what) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], "'x' is not shown: it is a PNG image (10 bytes)"),
            (b"RIFF\x01\0\0\0WEBPVP8 ", "it is a WebP image (16 bytes)"),
            (b"\x1f\x8b\x08", "it is compressed with gzip (3 bytes)"),
            (b"\xff\xfea\0", "perhaps text in UTF-16"),
            (
                b"a\nb\xe9\n",
                "it is not in UTF-8 (5 bytes; the first byte that is not is in line 2)",
            ),
            (b"\0", "it is binary (1 byte)"),
            (b"a\0\xff", "it is binary (3 bytes)"),
        ] {
            let told = told(bytes, bytes.len() as u64);
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn texts_are_texts_however_they_begin_and_wherever_they_are_cut() {
        for text in ["", "BM and MZ", "PK\u{3}\u{4}", "ID3", "%PDF-", "ñ\u{feff}"] {
            assert_eq!(told(text.as_bytes(), text.len() as u64), "text", "{text:?}");
        }
        assert_eq!(told("añ".as_bytes().split_last().unwrap().1, 3), "text");
        assert_ne!(told(b"a\xc3", 2), "text");
        assert_ne!(told(b"a\xffb", 9), "text");
    }
}
