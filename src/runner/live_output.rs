//! The last output of a running command, for display. It is a small copy, so reading it does not delay the command.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::output::{whole_beginning, whole_end};

/// How many bytes are kept of the end of a stream: more than a terminal line has columns.
const KEPT: usize = 4 << 10;

/// The end of a command's output so far.
#[derive(Debug, Default)]
pub struct LiveOutput(Mutex<StreamTails>);

#[derive(Debug, Default)]
struct StreamTails {
    /// Standard output and standard error; if both are one stream, it is the first.
    streams: [StreamTail; 2],
    /// The index of the stream that was written last.
    last: usize,
}

#[derive(Debug, Default)]
struct StreamTail {
    bytes: Vec<u8>,
    /// Whether earlier bytes were dropped.
    cut: bool,
}

/// The last line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastLine {
    /// The line or the end of it, without line terminators, otherwise as written.
    pub text: String,
    /// Whether the beginning of the line is missing.
    pub is_cut: bool,
}

impl LiveOutput {
    /// Adds output of a stream. `stream` is 0 or 1.
    pub(super) fn push(&self, stream: usize, bytes: &[u8]) {
        let mut ends = self.lock();
        ends.last = stream;
        ends.streams[stream].push(bytes);
    }

    /// Clears the output before another command begins.
    pub fn clear(&self) {
        *self.lock() = StreamTails::default();
    }

    /// The last line that is not blank, from the stream that was written last. A carriage return begins a new line,
    /// because the following text overwrites the line on a terminal.
    pub fn last_line(&self) -> Option<LastLine> {
        let (bytes, cut) = {
            let ends = self.lock();
            let StreamTail { bytes, cut } = &ends.streams[ends.last];
            (bytes.clone(), *cut)
        };
        // Both the beginning and the end may be within a character.
        let whole = whole_end(if cut { whole_beginning(&bytes) } else { &bytes });
        let mut found = last_line(&String::from_utf8_lossy(whole))?;
        found.is_cut &= cut;
        Some(found)
    }

    /// The end of the stream that was written last, as text.
    pub fn end(&self) -> String {
        let ends = self.lock();
        let StreamTail { bytes, cut } = &ends.streams[ends.last];
        let whole = whole_end(if *cut { whole_beginning(bytes) } else { bytes });
        String::from_utf8_lossy(whole).into_owned()
    }

    fn lock(&self) -> MutexGuard<'_, StreamTails> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamTail {
    fn push(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(KEPT);
        if from > 0 {
            self.bytes.clear();
            self.cut = true;
        }
        self.bytes.extend_from_slice(&bytes[from..]);
        if self.bytes.len() > 2 * KEPT {
            self.bytes.drain(..self.bytes.len() - KEPT);
            self.cut = true;
        }
    }
}

/// The last line of a text that is not blank. `is_cut` is true if there is no line end before it.
///
/// # Examples
/// ```
/// let last = deaddrop::runner::last_line("10 %\r20 %\r\n\n").unwrap();
/// assert_eq!(last.text, "20 %");
/// ```
pub fn last_line(text: &str) -> Option<LastLine> {
    let text = text.trim_end();
    let (is_cut, line) = match text.rfind(['\n', '\r']) {
        Some(end) => (false, &text[end + 1..]),
        None => (true, text),
    };
    (!line.is_empty()).then(|| LastLine { text: line.to_owned(), is_cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(pieces: &[&[u8]]) -> Option<(String, bool)> {
        let live_output = LiveOutput::default();
        pieces.iter().for_each(|piece| live_output.push(0, piece));
        live_output.last_line().map(|last| (last.text, last.is_cut))
    }

    #[test]
    fn the_last_line_is_seen_in_whatever_pieces_it_comes() {
        let whole = |text: &str| Some((text.to_owned(), false));
        assert_eq!(last(&[]), None);
        assert_eq!(last(&[b"\n \r\n"]), None);
        assert_eq!(last(&[b"a\nb"]), whole("b"));
        assert_eq!(last(&[b"a\nb\n"]), whole("b"));
        assert_eq!(last(&[b"one", b" line"]), whole("one line"));
        assert_eq!(last(&[b"10%\r", b"20%\r"]), whole("20%"));
        assert_eq!(last(&[b"10%\r20%\r\n"]), whole("20%"));
        // The rest of the character has not arrived yet.
        assert_eq!(
            last(&["a\n\u{5bbd}".as_bytes(), &"\u{5bbd}".as_bytes()[..2]]),
            whole("\u{5bbd}")
        );
        assert_eq!(last(&[b"a\n\xff"]), whole("\u{fffd}"));
    }

    #[test]
    fn of_a_line_without_end_its_end_is_seen_and_little_is_kept() {
        let live_output = LiveOutput::default();
        let text = "\u{5bbd}".repeat(KEPT);
        for piece in text.as_bytes().chunks(701) {
            live_output.push(0, piece);
            assert!(live_output.lock().streams[0].bytes.len() <= 2 * KEPT);
        }
        live_output.push(0, b"end");
        let last = live_output.last_line().unwrap();
        assert!(last.is_cut && last.text.ends_with("\u{5bbd}end"), "{last:?}");
        assert!(last.text.trim_end_matches("end").chars().all(|c| c == '\u{5bbd}'), "{last:?}");
        live_output.push(0, &[b'x'; 3 * KEPT]);
        assert_eq!(live_output.last_line().unwrap().text, "x".repeat(KEPT));
    }

    #[test]
    fn the_stream_that_was_written_last_is_told_and_not_mixed() {
        let live_output = LiveOutput::default();
        live_output.push(0, b"half a ");
        live_output.push(1, b"warning\n");
        assert_eq!(live_output.last_line().unwrap().text, "warning");
        live_output.push(0, b"line");
        assert_eq!(live_output.last_line().unwrap().text, "half a line");
        live_output.clear();
        assert_eq!(live_output.last_line(), None);
    }
}
