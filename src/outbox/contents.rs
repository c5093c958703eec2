//! Blocks with the contents of files: those that the LLM asked for, and those that the first outbox
//! shows unasked.
//!
//! ```text
//! --- src/x.py ---
//! its text, whole lines
//! --- end src/x.py ---
//! ... lines 201-512 are left out for room: [READ_FILE path="src/x.py" start_line="201"] shows them
//! ```
//!
//! The last line stands only where something is left out, and outside of the markers: within them it
//! would be content. Lines are whole, but for one for which there is no room by itself: of that its
//! beginning is shown, and how to see more of it, since asking again would show no more.

use std::borrow::Cow;
use std::rc::Rc;

use memchr::memmem;

use super::Shown;
use super::boundaries::boundary;
use super::budget::{LineTokens, NEXT, chars_within, share_out};
use super::lines;
use super::screening::Texts;
use crate::protocol::{self, Dialect, Failure, FailureKind, Lines};
use crate::session::Session;
use crate::text::{byte_count, count, is_hazard, shell_word, visible, visible_line};
use crate::tokens;
use crate::workspace::Contents;
use crate::workspace::edit::count_lines;

/// A file that the LLM asked for, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The file, or its beginning, or why there is nothing.
    pub contents: Result<Contents, Failure>,
}

/// So many characters are shown of a line that is too long to be shown whole, and no fewer than that.
const BEGINNING: usize = 4_000;
const LEAST: usize = 100;

/// What is shown of a file that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// So many of its lines; None for all that was read of it.
    pub(super) lines: Option<usize>,
    /// Of the last of these so many characters, where that is not all of it.
    pub(super) within: Option<usize>,
}

impl Requested {
    /// Whether it is shown, and what the results say of it, where all these were requested; `seen`
    /// where not all of it may be.
    pub(super) fn told(&self, beside: &[Self], seen: Option<&Seen>) -> (bool, String) {
        let contents = match &self.contents {
            Err(failure) if failure.kind == FailureKind::Rejected => {
                return (false, format!("REJECTED: {}", visible_line(&failure.reason)));
            }
            Err(failure) => return (false, visible_line(&failure.reason).into_owned()),
            Ok(contents) => contents,
        };
        let Contents { path, size, .. } = contents;
        if let Some(part) = contents.lines.as_ref().filter(|_| is_within_whole(contents, beside)) {
            return (true, lines::within_whole(path.as_str(), part));
        }
        let read = whole_lines(contents);
        let is_read = read.len() as u64 == *size;
        let all = count_lines(read);
        let text = String::from_utf8_lossy(read);
        let shown = match seen.and_then(|seen| seen.lines).unwrap_or(all) {
            0 if *size > 0 && !read.is_empty() => {
                return (
                    false,
                    format!(
                        "'{path}' is not shown ({}): there is no room in this message for its first line; ask for it by itself, or see a part with RUN_COMMAND, as in head -c 2000",
                        byte_count(*size)
                    ),
                );
            }
            shown => shown,
        };
        let within = match seen {
            Some(seen) => seen.within,
            None => within_line(contents).then(|| text.chars().count()),
        };
        let is_cut = shown < all || within.is_some() && !within_line(contents);
        let told = match (&contents.lines, is_cut, is_read) {
            (Some(part), false, _) => lines::told(path.as_str(), *size, part, within),
            (Some(part), true, _) => {
                let length = within.and(length_of_first(contents));
                let part = Lines { length, ..lines::first(part, shown) };
                lines::told(path.as_str(), *size, &part, within)
            }
            (None, true, _) if let Some(within) = within => {
                let all = if is_read { format!(" of {all}") } else { String::new() };
                let line = format!("line {shown}{all}");
                let told = lines::beginning(&line, length_of_first(contents), within);
                format!("'{path}' is shown below ({}{told})", byte_count(*size))
            }
            (None, false, true) => {
                format!("'{path}' is shown below ({}, {})", byte_count(*size), count(all, "line"))
            }
            (None, true, true) => {
                format!(
                    "'{path}' is shown below ({}; only its lines 1-{shown} of {all})",
                    byte_count(*size)
                )
            }
            (None, _, false) => {
                format!("'{path}' is shown below ({}; only its lines 1-{shown})", byte_count(*size))
            }
        };
        let mut told = told;
        let goes_on = is_cut || within.is_some();
        for (holds, note) in [
            (
                !goes_on && !read.is_empty() && !read.ends_with(b"\n"),
                "its last line has no newline",
            ),
            (memmem::find(read, b"\r\n").is_some(), "its lines end in CRLF"),
            (matches!(text, Cow::Owned(_)), "it is not UTF-8; what is not shows as U+FFFD"),
            (
                text.replace("\r\n", "\n").chars().any(is_hazard),
                "control and invisible characters show as ␛ or <U+202E>",
            ),
        ] {
            if holds {
                told.push_str(&format!("; {note}"));
            }
        }
        (true, told)
    }
}

/// A file as it is shown.
#[derive(Clone)]
pub(super) struct Block<'a> {
    contents: &'a Contents,
    dialect: Dialect,
    /// All that was read of it, as it is shown.
    text: Rc<str>,
    lines: Rc<LineTokens>,
    /// How much of that is shown: whole lines, or the beginning of the first.
    end: usize,
}

impl<'a> Block<'a> {
    pub(super) fn of(session: &Session, contents: &'a Contents, texts: &Texts) -> Self {
        let text = texts.of(contents);
        let mut text = visible(&text).into_owned();
        if let Some(part) = &contents.lines {
            text = lines::numbered(&text, part);
        }
        let end = text.len();
        Self { contents, dialect: session.dialect, text: text.into(), lines: Rc::default(), end }
    }

    /// What of it is shown, where that is not all.
    fn seen(&self) -> Seen {
        let lines = count_lines(&self.text.as_bytes()[..self.end]);
        let lines = (self.end < self.text.len()).then_some(lines);
        Seen { lines, within: self.within() }
    }

    /// So many characters are shown of the last line that is, where that is not all of it.
    fn within(&self) -> Option<usize> {
        let shown = &self.text[..self.end];
        let is_cut = if self.end < self.text.len() {
            self.end > 0 && !shown.ends_with('\n')
        } else {
            within_line(self.contents)
        };
        let line = shown.rsplit('\n').next().unwrap_or_default();
        let is_numbered = self.contents.lines.is_some_and(|part| part.numbered);
        let number = line.find("| ").filter(|_| is_numbered).map_or(0, |at| at + 2);
        is_cut.then(|| line[number..].chars().count())
    }

    /// Shows as many of its lines as are `room` tokens at most, with all that belongs to it, and tells
    /// how many these are.
    fn cut(&mut self, session: &Session, room: usize) -> usize {
        self.end = 0;
        let frame = tokens::count(&self.render(session)) + 8;
        let (lines, taken) = self.lines.within(&self.text, room.saturating_sub(frame));
        self.end = lines.len();
        if self.end > 0 {
            return frame + taken;
        }
        let line = self.text.split('\n').next().unwrap_or_default();
        let limit = line.char_indices().nth(BEGINNING).map_or(line.len(), |(at, _)| at);
        self.end = line.floor_char_boundary(LEAST.min(limit));
        let frame = tokens::count(&self.render(session));
        let shown = chars_within(&line[..limit], room.saturating_sub(frame));
        self.end = if shown.len() < LEAST { 0 } else { shown.len() };
        if self.end == 0 { 0 } else { frame + tokens::count(shown) }
    }

    /// The block; nothing where not even a line of it is to be shown.
    pub(super) fn render(&self, session: &Session) -> String {
        let text = &self.text[..self.end];
        let mut name = self.contents.path.to_string();
        if let Some(part) = &self.contents.lines {
            let is_cut = self.end < self.text.len();
            let shown = count_lines(text.as_bytes());
            let part = if is_cut { lines::first(part, shown) } else { *part };
            name = lines::name(&name, &part);
        }
        let mark = match boundary(session, &name, text) {
            Some(word) => format!("{name} (boundary {word})"),
            None => name,
        };
        let mut out = format!("--- {mark} ---\n{text}");
        if !text.is_empty() && !text.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&format!("--- end {mark} ---\n"));
        out.push_str(&self.rest().unwrap_or_default());
        out
    }

    /// The line that says what is left out, and how to ask for it.
    fn rest(&self) -> Option<String> {
        let Contents { path, size, lines: part, .. } = self.contents;
        let read = whole_lines(self.contents);
        let is_read = match part {
            Some(part) => !part.cut,
            None => read.len() as u64 == *size,
        };
        let within = self.within();
        if self.end == self.text.len() && is_read && within.is_none() {
            return None;
        }
        let shown = count_lines(&self.text.as_bytes()[..self.end]);
        let before = part.map_or(0, |part| part.first.saturating_sub(1));
        let next = before + shown + 1;
        let (mut rest, mut ends) = (String::new(), false);
        if let Some(within) = within {
            let (search, command) = match self.dialect {
                Dialect::Tags => ("SEARCH", "RUN_COMMAND"),
                Dialect::Operations => ("shell with grep -o", "shell"),
            };
            let cut_out = lines::cut_out(path.as_str(), next - 1, within);
            rest = format!(
                "the rest of line {} is left out, since so long a line cannot be shown whole: {search} finds in it, {command} with {cut_out} shows more of it",
                next - 1
            );
            ends = match part {
                Some(part) => part.total < next && !part.uncounted,
                None => is_read && count_lines(read) < next,
            };
        }
        if ends {
            return Some(format!("... {rest}\n"));
        }
        if within.is_some() {
            rest.push_str("; ");
        }
        let left = match before + count_lines(read) {
            last if is_read && last == next => format!("line {next} is"),
            last if is_read => format!("lines {next}-{last} are"),
            _ => format!("line {next} and all after it are"),
        };
        let by_command =
            format!("sed -n '{next},{}p' {}", next + NEXT - 1, shell_word(path.as_str()));
        let how = match self.dialect {
            // READ_FILE takes no such path.
            Dialect::Tags if !path.as_str().contains('"') => {
                format!("[READ_FILE path=\"{path}\" start_line=\"{next}\"] shows them")
            }
            Dialect::Tags => format!("RUN_COMMAND with {by_command} shows more"),
            Dialect::Operations => format!("shell with {by_command} shows more"),
        };
        Some(format!("... {rest}{left} left out for room: {how}\n"))
    }

    /// What the LLM has seen of it.
    pub(super) fn shown(&self) -> Shown {
        let Contents { path, bytes, size, lines: part } = self.contents;
        let is_read = match part {
            Some(part) => lines::are_all(part),
            None => bytes.len() as u64 == *size,
        };
        let whole = is_read && self.end == self.text.len();
        let first = part.map_or(1, |part| part.first);
        // What is shown cut does not count as seen.
        let cut = usize::from(self.within().is_some());
        let shown = count_lines(&self.text.as_bytes()[..self.end]) - cut;
        let lines = (!whole && shown > 0).then(|| (first, first + shown - 1));
        let seen = part.is_none().then(|| protocol::Seen::of(bytes, *size));
        Shown { path: path.clone(), whole, lines, seen }
    }
}

/// The files that were requested and could be read, each once.
#[derive(Clone)]
pub(super) struct Blocks<'a> {
    session: &'a Session,
    all: Vec<Block<'a>>,
    /// For each request which of the blocks answers it.
    of: Rc<[Option<usize>]>,
}

impl<'a> Blocks<'a> {
    pub(super) fn of(session: &'a Session, requested: &'a [Requested], texts: &Texts) -> Self {
        let mut all: Vec<Block<'a>> = Vec::new();
        let of = requested.iter().map(|file| {
            let contents = file.contents.as_ref().ok()?;
            if is_within_whole(contents, requested) {
                return None;
            }
            let same = |block: &Block<'_>| {
                (&block.contents.path, block.contents.lines) == (&contents.path, contents.lines)
            };
            Some(all.iter().position(same).unwrap_or_else(|| {
                all.push(Block::of(session, contents, texts));
                all.len() - 1
            }))
        });
        let of = of.collect();
        Self { session, all, of }
    }

    /// How many tokens each is.
    pub(super) fn tokens(&self) -> Vec<usize> {
        self.all.iter().map(|block| tokens::count(&block.render(self.session))).collect()
    }

    /// Cuts what is too large, so that all is `room` tokens at most; `sizes` are what they are whole.
    pub(super) fn cut(&mut self, sizes: &[usize], room: usize) {
        share_out(sizes, room, &mut |n, share| self.all[n].cut(self.session, share));
    }

    /// What is shown for each request.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let whole = Seen { lines: None, within: None };
        self.of.iter().map(|of| of.map_or(whole, |n| self.all[n].seen())).collect()
    }

    /// The blocks of which there is something to show.
    fn visible(&self) -> impl Iterator<Item = &Block<'a>> {
        self.all.iter().filter(|block| block.end > 0 || block.text.is_empty())
    }

    /// What the LLM has seen.
    pub(super) fn shown(&self) -> impl Iterator<Item = Shown> {
        self.visible().map(Block::shown)
    }

    /// All of them, with their heading; nothing where there are none.
    pub(super) fn render(&self) -> String {
        let blocks: String = self.visible().map(|block| block.render(self.session)).collect();
        if blocks.is_empty() { blocks } else { format!("\n## Requested File Contents\n{blocks}") }
    }
}

/// Whether lines of a file stand in the whole of it, which is shown, too. Numbered ones are shown all
/// the same.
fn is_within_whole(contents: &Contents, requested: &[Requested]) -> bool {
    let is_whole = |other: &Requested| {
        other.contents.as_ref().is_ok_and(|other| {
            let shows_all = other.lines.is_none() && other.bytes.len() as u64 == other.size;
            shows_all && other.path == contents.path
        })
    };
    contents.lines.is_some_and(|lines: Lines| !lines.numbered) && requested.iter().any(is_whole)
}

/// Whether what was read ends within a line, since that is longer than what is read of a file.
fn within_line(contents: &Contents) -> bool {
    contents.lines.is_some_and(|part| part.within_line)
}

/// How many bytes the first line has of what was read; None where nobody knows.
fn length_of_first(contents: &Contents) -> Option<u64> {
    let first = || memchr::memchr(b'\n', &contents.bytes).unwrap_or(contents.bytes.len()) as u64;
    contents.lines.filter(|part| part.within_line).map_or_else(|| Some(first()), |part| part.length)
}

/// The bytes that can be shown: all, or whole lines of a file that is longer.
pub(super) fn whole_lines(contents: &Contents) -> &[u8] {
    let bytes = contents.bytes.as_slice();
    if contents.lines.is_some() || bytes.len() as u64 == contents.size {
        return bytes;
    }
    memchr::memrchr(b'\n', bytes).map_or(b"", |n| &bytes[..=n])
}
