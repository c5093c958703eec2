//! The only writer to standard output, standard error and the terminal. Texts are [`Styled`], in which every character
//! is visible. Only the methods here write escape sequences.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::ops::{Add, Range};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::Style;

use crate::text::{ascii_controls, visible};

/// The controlling terminal of this process.
pub(crate) const TERMINAL: &str = "/dev/tty";

/// Text for a person. Styles are ranges, not escape sequences, so no input can add its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Styled {
    text: String,
    /// Sorted and not nested.
    styles: Vec<(Range<usize>, Style)>,
}

impl Styled {
    pub(crate) fn new(style: Style, text: &str) -> Self {
        let text = visible(text).into_owned();
        Self { styles: vec![(0..text.len(), style)], text }
    }

    /// The text without its styles.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn push(&mut self, other: impl Into<Self>) {
        let (other, at) = (other.into(), self.text.len());
        self.text.push_str(&other.text);
        let moved = |(range, style): (Range<usize>, _)| (range.start + at..range.end + at, style);
        self.styles.extend(other.styles.into_iter().map(moved));
    }

    /// Replaces these ranges by other texts. The ranges are sorted and contain only blanks. Styles stay on their words.
    pub(crate) fn with_blanks(self, changed: &[(Range<usize>, String)]) -> Self {
        let (mut text, mut styles) = (self.text, self.styles);
        for (range, new) in changed.iter().rev() {
            text.replace_range(range.clone(), new);
        }
        let moved = |at: usize| {
            let before = changed.iter().take_while(|(range, _)| range.end <= at);
            before.fold(at, |at, (range, new)| at + new.len() - range.len())
        };
        styles.iter_mut().for_each(|(at, _)| *at = moved(at.start)..moved(at.end));
        Self { text, styles }
    }

    /// The text, with escape sequences for its styles if the stream supports colours.
    fn shown(&self, to: Stream) -> String {
        if !HAS_COLORS[to as usize].load(Ordering::Relaxed) {
            return self.text.clone();
        }
        let (mut out, mut at) = (String::with_capacity(self.text.len()), 0);
        for (range, style) in &self.styles {
            out.push_str(&self.text[at..range.start]);
            out.push_str(&format!("{style}{}{style:#}", &self.text[range.clone()]));
            at = range.end;
        }
        out + &self.text[at..]
    }
}

impl<T: AsRef<str>> From<T> for Styled {
    fn from(text: T) -> Self {
        Self { text: visible(text.as_ref()).into_owned(), styles: Vec::new() }
    }
}

impl<T: Into<Self>> Add<T> for Styled {
    type Output = Self;

    fn add(mut self, other: T) -> Self {
        self.push(other);
        self
    }
}

/// Standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Whether styles are written, for standard output and standard error.
pub(crate) static HAS_COLORS: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

impl Stream {
    pub(crate) fn is_terminal(self) -> bool {
        self.with(|fd| fd.is_terminal())
    }

    /// Calls `ask` with the stream's descriptor, for example to get the size of its terminal.
    #[expect(clippy::disallowed_methods, reason = "the only place that writes to them")]
    pub(crate) fn with<T>(self, ask: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        match self {
            Self::Out => ask(io::stdout().as_fd()),
            Self::Err => ask(io::stderr().as_fd()),
        }
    }

    /// Writes text for a person.
    pub(crate) fn text(self, text: &Styled) -> io::Result<()> {
        self.write(text.shown(self).as_bytes())
    }

    /// Writes text for a person, and ends the line.
    pub(crate) fn line(self, text: &Styled) -> io::Result<()> {
        self.write((text.shown(self) + "\n").as_bytes())
    }

    /// Writes JSON with every control character escaped, and ends the line.
    pub(crate) fn json(self, json: &str) -> io::Result<()> {
        self.write((ascii_controls(json) + "\n").as_bytes())
    }

    /// Writes data: unchanged to a pipe or a file, and with visible control characters to a terminal.
    pub(crate) fn data(self, data: &[u8]) -> io::Result<()> {
        if self.is_terminal() {
            return self.text(&Styled::from(&*String::from_utf8_lossy(data)));
        }
        self.write(data)
    }

    /// Writes the help with its own styles. They are trusted because they are part of this program.
    pub(crate) fn help(self, help: &clap::builder::StyledStr) -> io::Result<()> {
        if HAS_COLORS[self as usize].load(Ordering::Relaxed) {
            return self.write(help.ansi().to_string().as_bytes());
        }
        self.text(&Styled::from(help.to_string()))
    }

    /// Draws a line in place of the previous one, and leaves the cursor at its beginning. Line wrapping is turned off,
    /// so a line that is wider than computed is cut.
    pub(crate) fn draw(self, line: &Styled) -> io::Result<()> {
        self.write(format!("\r\x1b[?7l{}\x1b[J\x1b[?7h\r", line.shown(self)).as_bytes())
    }

    /// Erases the drawn line.
    pub(crate) fn wipe(self) -> io::Result<()> {
        self.write(b"\r\x1b[J")
    }

    /// Erases the row above the cursor and everything below it, and leaves the cursor there.
    pub(crate) fn erase_row_above(self) -> io::Result<()> {
        self.write(b"\x1b[A\r\x1b[J")
    }

    /// Erases this many columns before the cursor.
    pub(crate) fn erase(self, columns: usize) {
        let _ = self.write("\u{8} \u{8}".repeat(columns).as_bytes());
    }

    /// Rings the bell.
    pub(crate) fn ring(self) -> io::Result<()> {
        self.write(b"\x07")
    }

    /// The sequence that turns off the marking of pastes.
    pub(crate) const PASTES_UNMARKED: &[u8] = b"\x1b[?2004l";

    /// Turns the marking of the beginning and end of pastes on or off.
    pub(crate) fn mark_pastes(self, on: bool) {
        let _ = self.write(if on { b"\x1b[?2004h" } else { Self::PASTES_UNMARKED });
    }

    #[expect(clippy::disallowed_methods, reason = "the only place that writes to them")]
    fn write(self, bytes: &[u8]) -> io::Result<()> {
        let write = |out: &mut dyn Write| out.write_all(bytes).and_then(|()| out.flush());
        match self {
            Self::Out => write(&mut io::stdout().lock()),
            Self::Err => write(&mut io::stderr().lock()),
        }
    }
}

/// Sends base64-encoded text to the terminal's clipboard (OSC 52).
pub(crate) fn copy(base64: &str) -> io::Result<()> {
    let mut terminal = File::options().write(true).open(TERMINAL)?;
    // One call, so that other output cannot come in between.
    terminal.write_all(format!("\x1b]52;c;{base64}\x07").as_bytes())
}

/// Reports panics through this module, because their messages can contain any text. `restore` is called first.
pub(crate) fn report_panics(restore: fn()) {
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        let trace = std::backtrace::Backtrace::capture();
        let is_there = trace.status() == std::backtrace::BacktraceStatus::Captured;
        let trace = if is_there { format!("\n{trace}") } else { String::new() };
        let _ = Stream::Err.line(&Styled::from(format!("{panic}{trace}")));
    }));
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    const RED: Style = AnsiColor::Red.on_default();

    #[test]
    fn only_own_styles_are_escape_sequences() {
        HAS_COLORS[Stream::Err as usize].store(true, Ordering::Relaxed);
        let text =
            Styled::new(RED, "a\x1b[2J") + " \x1b[1mb\u{9b}c\u{202e}" + Styled::new(RED, "d");
        assert_eq!(text.as_str(), "a␛[2J ␛[1mb<U+009B>c<U+202E>d");
        assert_eq!(
            text.shown(Stream::Err),
            "\x1b[31ma␛[2J\x1b[0m ␛[1mb<U+009B>c<U+202E>\x1b[31md\x1b[0m"
        );
    }

    #[test]
    fn styles_stay_on_their_words_when_rows_are_broken() {
        HAS_COLORS[Stream::Err as usize].store(true, Ordering::Relaxed);
        let text = Styled::from("see ") + Styled::new(RED, "this or  that") + " too";
        let breaks = [3..4, 11..13, 17..18].map(|range| (range, "\n  ".to_owned()));
        let rows = text.with_blanks(&breaks);
        assert_eq!(rows.shown(Stream::Err), "see\n  \x1b[31mthis or\n  that\x1b[0m\n  too");
        assert_eq!(rows.shown(Stream::Out), "see\n  this or\n  that\n  too");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ "a": "\x1b\u{7f}\u{9b}\u{202e}\u{e0041}ï\"\\" });
        let told = ascii_controls(&value.to_string());
        assert_eq!(told, r#"{"a":"\u001b\u007f\u009b\u202e\udb40\udc41ï\"\\"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&told).unwrap(), value);
    }
}
