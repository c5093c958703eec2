//! Extracts lines of a file. Reads only as much as is needed to find the lines and to count the file's lines.

use std::io::{self, Read};

use super::locate::{FinalLink, LocatedEntry};
use super::overlay::Overlay;
use super::{Contents, READ_LIMIT, open_file};
use crate::protocol::{Failure, LineRange, Mistake, Part, RelPath};
use crate::text::{byte_count, count};

/// The most bytes of a file that are read to find the requested lines and to count all lines.
const SCAN_LIMIT: u64 = 256 << 20;

/// How many bytes at the beginning of a file are checked to decide whether it is text.
const SNIFF_BYTES: u64 = 8 << 10;

impl Overlay<'_> {
    /// Reads a text file for the model: the whole file or the requested lines, up to [`READ_LIMIT`] bytes. Never
    /// blocks.
    pub fn read_part(&self, path: &RelPath, part: Part) -> Result<Contents, Failure> {
        if part.is_whole() {
            let text = self.read(path, READ_LIMIT)?.text()?;
            if !text.is_within_a_line() {
                return Ok(text);
            }
        }
        let location = self.resolve(path, FinalLink::Follow)?;
        let size = self.size(path, &location)?;
        if matches!(location.found, Some(LocatedEntry::File)) {
            return read_lines(&location.real, self.created(&location.real), size, part);
        }
        let (folder, name) = location.place(path)?;
        let (file, size) = open_file(path, folder, name)?;
        read_lines(&location.real, file, size, part)
    }
}

impl Contents {
    /// Whether the first line is longer than the bytes read. If so, reading by lines reports the line's length.
    pub fn is_within_a_line(&self) -> bool {
        (self.bytes.len() as u64) < self.size && !self.bytes.contains(&b'\n')
    }
}

/// Reads the requested lines of a file of `size` bytes.
///
/// # Errors
/// The requested lines do not exist, or the file is not text or cannot be read.
fn read_lines(
    path: &RelPath,
    reader: impl Read,
    size: u64,
    part: Part,
) -> Result<Contents, Failure> {
    let cut = cut(reader, part, READ_LIMIT, SCAN_LIMIT)
        .map_err(|e| super::locate::failed("read", path, &e))?;
    if cut.is_binary {
        return Err(Failure::execution(format!("'{path}' is not text ({})", byte_count(size))));
    }
    let lines = cut.lines;
    if let Some(start) = part.start.filter(|start| *start > lines.total) {
        let failure = Failure::execution(if lines.uncounted {
            format!(
                "'{path}' is {size} bytes long, and line {start} is not in the first {SCAN_LIMIT} bytes ({}), which is as far as deaddrop reads: use RUN_COMMAND, as in sed -n '{start},{}p;{}q'",
                count(lines.total, "line"),
                start + 99,
                start + 99,
            )
        } else {
            format!(
                "Invalid line range: '{path}' has {}, so no line {start}",
                count(lines.total, "line")
            )
        });
        return Err(failure.as_a(Mistake::NoSuchLines));
    }
    Ok(Contents { path: path.clone(), bytes: cut.bytes, size, lines: Some(lines) })
}

/// The lines cut out of a file.
struct Cut {
    bytes: Vec<u8>,
    lines: LineRange,
    is_binary: bool,
}

/// Cuts lines out of a file, up to `limit` bytes, and counts all lines in its first `scan` bytes.
fn cut(reader: impl Read, part: Part, limit: u64, scan: u64) -> io::Result<Cut> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (start, end) = (part.start.unwrap_or(1), part.end.unwrap_or(usize::MAX));
    let mut reader = reader.take(scan.saturating_add(1));
    let mut buffer = vec![0; 64 << 10];
    let (mut bytes, mut is_binary, mut at) = (Vec::new(), false, 0_u64);
    // The line number of the next byte, whether the byte begins that line, and so far the length of line `start`.
    let (mut line, mut fresh, mut uncounted, mut length) = (1, true, false, 0_u64);
    loop {
        let read = match reader.read(&mut buffer) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            break;
        }
        let mut chunk = &buffer[..read];
        let sniffed = usize::try_from(SNIFF_BYTES.saturating_sub(at)).unwrap_or(usize::MAX);
        is_binary |= memchr::memchr(0, &chunk[..sniffed.min(read)]).is_some();
        at += read as u64;
        if at > scan {
            uncounted = true;
            chunk = &chunk[..read - 1];
        }
        while !chunk.is_empty() {
            let (this, rest) = match memchr::memchr(b'\n', chunk) {
                Some(n) => chunk.split_at(n + 1),
                None => (chunk, &[][..]),
            };
            if (start..=end).contains(&line) && bytes.len() <= limit {
                // Keep one byte more than the limit, to show that the lines exceed it.
                let room = (limit + 1 - bytes.len()).min(this.len());
                bytes.extend_from_slice(&this[..room]);
            }
            fresh = this.ends_with(b"\n");
            if line == start {
                length += (this.len() - usize::from(fresh)) as u64;
            }
            line += usize::from(fresh);
            chunk = rest;
        }
    }
    let total = if fresh { line - 1 } else { line };
    is_binary |= bytes.contains(&0);
    let first = if total == 0 { 0 } else { start };
    let mut lines = LineRange {
        first,
        last: end.min(total),
        total,
        uncounted,
        cut: false,
        within_line: false,
        length: None,
        numbered: part.numbered,
    };
    if bytes.len() > limit {
        lines.cut = true;
        let whole = memchr::memrchr(b'\n', &bytes[..limit]).map(|n| n + 1);
        lines.within_line = whole.is_none();
        let is_ended = fresh || line > start || !uncounted;
        lines.length = (lines.within_line && is_ended).then_some(length);
        bytes.truncate(whole.unwrap_or_else(|| character_end(&bytes, limit)));
        lines.last = first + super::edit::count_lines(&bytes).max(1) - 1;
    } else if uncounted && end > total && !fresh {
        // The scan ended within the last line.
        (lines.cut, lines.within_line) = (true, true);
    }
    Ok(Cut { bytes, lines, is_binary })
}

/// The last character boundary of UTF-8 up to `limit`.
fn character_end(bytes: &[u8], limit: usize) -> usize {
    let is_start = |at: &usize| bytes.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
    (limit.saturating_sub(3)..=limit).rev().find(is_start).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: Option<usize>, end: Option<usize>) -> Part {
        Part { start, end, numbered: false }
    }

    fn told(text: &[u8], part: Part, limit: u64, scan: u64) -> (String, LineRange) {
        let cut = cut(text, part, limit, scan).unwrap();
        (String::from_utf8(cut.bytes).unwrap(), cut.lines)
    }

    #[test]
    fn exactly_the_lines_that_were_asked_for_are_cut_out() {
        let text = b"one\ntwo\r\nthree\nfour";
        for (start, end, wanted, first, last) in [
            (Some(2), Some(3), "two\r\nthree\n", 2, 3),
            (None, Some(1), "one\n", 1, 1),
            (Some(4), None, "four", 4, 4),
            (Some(3), Some(90), "three\nfour", 3, 4),
            (None, None, "one\ntwo\r\nthree\nfour", 1, 4),
        ] {
            let (cut, lines) = told(text, part(start, end), 100, 100);
            assert_eq!(
                (cut.as_str(), lines.first, lines.last, lines.total),
                (wanted, first, last, 4)
            );
            assert!(!lines.cut && !lines.uncounted && !lines.within_line);
        }
        let (cut, lines) = told(b"", part(None, Some(3)), 10, 10);
        assert_eq!((cut.as_str(), lines.first, lines.last, lines.total), ("", 0, 0, 0));
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_line_or_else_at_a_character() {
        let (cut, lines) = told(b"1234\n5678\n90\n", part(None, None), 11, 100);
        assert_eq!((cut.as_str(), lines.last, lines.cut), ("1234\n5678\n", 2, true));
        assert!(!lines.within_line);
        let (cut, lines) = told(b"1234\n5678\n90\n", part(None, None), 13, 100);
        assert_eq!((cut.len(), lines.cut), (13, false));
        let long = "ä".repeat(10) + "\nb\n";
        let (cut, lines) = told(long.as_bytes(), part(None, None), 5, 100);
        assert_eq!((cut.as_str(), lines.last, lines.total), ("ää", 1, 2));
        assert!(lines.cut && lines.within_line && lines.length == Some(20));
        // The scan ended within the line, so its length is unknown.
        let (_, lines) = told(long.as_bytes(), part(None, None), 5, 12);
        assert!(lines.within_line && lines.uncounted && lines.length.is_none());
    }

    #[test]
    fn no_more_is_looked_through_than_may_be() {
        let endless = io::repeat(b'\n');
        let cut = cut(endless, part(Some(5), Some(6)), 100, 1000).unwrap();
        assert_eq!((cut.bytes.as_slice(), cut.lines.total), (&b"\n\n"[..], 1000));
        assert!(cut.lines.uncounted);
        let path = RelPath::parse("a").unwrap();
        let text = "x\n".repeat(7);
        let beyond = read_lines(&path, text.as_bytes(), 14, part(Some(8), None)).unwrap_err();
        assert_eq!(beyond.reason, "Invalid line range: 'a' has 7 lines, so no line 8");
        let binary = read_lines(&path, &b"a\n\0\n"[..], 4, part(Some(1), Some(1))).unwrap_err();
        assert_eq!(binary.reason, "'a' is not text (4 bytes)");
    }
}
