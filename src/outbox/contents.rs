//! Blocks with the contents of files: the requested ones, and those that the first outbox shows unasked.
//!
//! ```text
//! --- src/x.py ---
//! its text, whole lines
//! --- end src/x.py ---
//! ... lines 201-512 are left out for room: [READ_FILE path="src/x.py" start_line="201"] shows them
//! ```
//!
//! The last line appears only if something is left out. Of a line that is too long for the room, the beginning is
//! shown, with a command that shows more of it: requesting it again would not help.

use std::borrow::Cow;
use std::rc::Rc;

use memchr::memmem;

use super::Shown;
use super::boundaries::boundary;
use super::budget::{BEGINNING, Measure, NEXT_LINES, contents_within, greatest_limit};
use crate::protocol::{self, Dialect, Failure, FailureKind, Lines};
use crate::session::Session;
use crate::text::{byte_count, count, is_hazard, shell_word, visible, visible_line};
use crate::workspace::Contents;
use crate::workspace::edit::count_lines;

/// A file that the model asked for, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// The file, or its beginning, or why there is nothing.
    pub contents: Result<Contents, Failure>,
}

/// Files that the first outbox may show, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Texts, the most wanted first.
    pub files: Vec<Contents>,
    /// How many of them, the first, the person named: these may take all the room there is.
    pub included: usize,
    /// How many files were looked at and are not text.
    pub not_text: usize,
    /// How many files of the workspace's listing are not empty.
    pub listed: usize,
    /// How many are empty.
    pub empty: usize,
}

/// `lines 3-9 of 120`
fn range(lines: &Lines) -> String {
    let Lines { first, last, total, uncounted, .. } = lines;
    let total = if *uncounted { format!("more than {total}") } else { total.to_string() };
    match (first, last) {
        (0, _) => "empty".to_owned(),
        (first, last) if first == last => format!("line {first} of {total}"),
        (first, last) => format!("lines {first}-{last} of {total}"),
    }
}

/// A command that shows more of a long line, after its first `shown` characters.
pub(super) fn rest_of_line(path: &str, line: usize, shown: usize) -> String {
    let path = shell_word(path);
    format!("sed -n '{line}p' {path} | cut -c{}-{}", shown + 1, shown + BEGINNING)
}

/// A command that shows lines of a file.
pub(super) fn print_lines(path: &str, first: usize, last: usize) -> String {
    format!("sed -n '{first},{last}p' {}", shell_word(path))
}

/// The text with line numbers, if they were requested.
fn numbered<'t>(text: Cow<'t, str>, lines: &Lines) -> Cow<'t, str> {
    if !lines.numbered {
        return text;
    }
    let number = |(n, line): (usize, &str)| format!("{}| {line}", lines.first + n);
    text.split_inclusive('\n').enumerate().map(number).collect()
}

/// The bytes that can be shown: all, or the whole lines if the file was not read to its end.
pub(super) fn whole_lines(contents: &Contents) -> &[u8] {
    let bytes = contents.bytes.as_slice();
    if contents.lines.is_some() || bytes.len() as u64 == contents.size {
        return bytes;
    }
    memchr::memrchr(b'\n', bytes).map_or(b"", |n| &bytes[..=n])
}

/// Which lines were read.
fn lines_read(contents: &Contents) -> Lines {
    contents.lines.unwrap_or_else(|| {
        let read = whole_lines(contents);
        let last = count_lines(read);
        let cut = read.len() as u64 != contents.size;
        let (within_line, length, numbered) = (false, None, false);
        Lines { first: 1, last, total: last, uncounted: cut, cut, within_line, length, numbered }
    })
}

/// Notes on the form of a file. The first one applies only if it is shown to its end.
fn notes(contents: &Contents) -> [&'static str; 4] {
    let read = whole_lines(contents);
    let text = String::from_utf8_lossy(read);
    let note = |holds, note| if holds { note } else { "" };
    let is_crlf = memmem::find(read, b"\r\n").is_some();
    let has_hazards = text.replace("\r\n", "\n").chars().any(is_hazard);
    [
        note(!read.is_empty() && !read.ends_with(b"\n"), "; its last line has no newline"),
        note(is_crlf, "; its lines end in CRLF"),
        note(matches!(text, Cow::Owned(_)), "; it is not UTF-8; what is not shows as U+FFFD"),
        note(has_hazards, "; control and invisible characters show as ␛ or <U+202E>"),
    ]
}

/// A file, or the beginning of it.
#[derive(Clone)]
pub(super) struct Block<'a> {
    session: &'a Session,
    contents: &'a Contents,
    /// The lines that were read.
    read: Lines,
    notes: [&'static str; 4],
    /// The visible form of what was read, without secrets.
    text: Rc<str>,
    /// How many bytes of the text are shown.
    end: usize,
}

impl<'a> Block<'a> {
    /// A whole file; `text` is its content without secrets.
    pub(super) fn new(session: &'a Session, contents: &'a Contents, text: &str) -> Self {
        let read = lines_read(contents);
        let text: Rc<str> = numbered(visible(text), &read).into();
        Self { session, contents, read, notes: notes(contents), end: text.len(), text }
    }

    fn shown_text(&self) -> &str {
        &self.text[..self.end]
    }

    /// Shortens the text to `limit` characters.
    fn cut(&mut self, limit: usize) {
        self.end = contents_within(&self.text, limit).len();
    }

    fn is_visible(&self) -> bool {
        self.end > 0 || self.text.is_empty()
    }

    /// The lines that are shown, the last one perhaps in part.
    fn lines(&self) -> Lines {
        if self.end == self.text.len() {
            return self.read;
        }
        let (shown, bytes) = (self.shown_text(), &self.contents.bytes);
        let last = (self.read.first + count_lines(shown.as_bytes())).saturating_sub(1);
        let within_line = !shown.is_empty() && !shown.ends_with('\n');
        let length = if self.read.within_line {
            self.read.length
        } else {
            Some(memchr::memchr(b'\n', bytes).unwrap_or(bytes.len()) as u64)
        };
        Lines { last, cut: true, within_line, length, ..self.read }
    }

    /// How many characters of the last line are shown.
    fn shown_of_line(&self) -> usize {
        let line = self.shown_text().rsplit('\n').next().unwrap_or_default();
        let number = line.find("| ").filter(|_| self.read.numbered).map_or(0, |at| at + 2);
        line[number..].chars().count()
    }

    /// The block, and the line that says what is left out; empty if nothing is shown.
    fn render(&self) -> String {
        if !self.is_visible() {
            return String::new();
        }
        let text = self.shown_text();
        let mut mark = self.contents.path.to_string();
        if self.contents.lines.is_some() {
            mark.push_str(&format!(" ({})", range(&self.lines())));
        }
        if let Some(word) = boundary(self.session, &mark, text) {
            mark.push_str(&format!(" (boundary {word})"));
        }
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let rest = self.rest().map(|rest| format!("... {rest}\n")).unwrap_or_default();
        format!("--- {mark} ---\n{text}{newline}--- end {mark} ---\n{rest}")
    }

    /// What is left out, and how to ask for it; None if nothing is.
    fn rest(&self) -> Option<String> {
        let Lines { last, total, uncounted, cut, within_line, .. } = self.lines();
        let (path, next) = (self.contents.path.as_str(), last + 1);
        let mut rest = Vec::new();
        if within_line {
            let more = rest_of_line(path, last, self.shown_of_line());
            rest.push(format!(
                "the rest of line {last} is left out, since so long a line cannot be shown whole: SEARCH finds in it, RUN_COMMAND with {more} shows more of it"
            ));
        }
        if cut && (!within_line || last < total || uncounted) {
            let left = match self.read.last {
                _ if self.read.cut => format!("line {next} and all after it are"),
                last if last == next => format!("line {next} is"),
                last => format!("lines {next}-{last} are"),
            };
            let how = if path.contains('"') {
                // READ_FILE cannot name such a path.
                let print = print_lines(path, next, next + NEXT_LINES - 1);
                format!("RUN_COMMAND with {print} shows more")
            } else {
                format!("[READ_FILE path=\"{path}\" start_line=\"{next}\"] shows them")
            };
            rest.push(format!("{left} left out for room: {how}"));
        }
        (!rest.is_empty()).then(|| rest.join("; "))
    }

    /// Whether the file is shown, and the text of its result.
    fn result(&self) -> (bool, String) {
        let Contents { path, size, lines: part, .. } = self.contents;
        let size = byte_count(*size);
        if !self.is_visible() {
            let message = format!(
                "'{path}' is not shown ({size}): there is no room in this message for its first line; ask for it by itself, or see a part with RUN_COMMAND, as in head -c 2000"
            );
            return (false, message);
        }
        let (lines, is_part) = (self.lines(), part.is_some());
        let Lines { first, last, total, uncounted, cut, within_line, length, numbered } = lines;
        let mut extent = if is_part { format!("; {}", range(&lines)) } else { String::new() };
        if numbered && first > 0 {
            extent.push_str(", each behind its number and `| `");
        }
        let of_total = if uncounted || is_part { String::new() } else { format!(" of {total}") };
        extent.push_str(&match (within_line, is_part, cut) {
            (true, ..) => {
                let length = length.map_or("longer than was looked at".to_owned(), byte_count);
                let shown = count(self.shown_of_line(), "character");
                format!("; of line {last}{of_total} ({length}) only the first {shown}")
            }
            (false, true, true) => {
                format!("; no more fits: for more ask with start_line=\"{}\"", last + 1)
            }
            (false, true, false) => String::new(),
            (false, false, true) => format!("; only its lines 1-{last}{of_total}"),
            (false, false, false) => format!(", {}", count(last, "line")),
        });
        let [newline, notes @ ..] = self.notes;
        let is_whole = self.end == self.text.len() && !within_line;
        let newline = if is_whole { newline } else { "" };
        let notes = notes.concat();
        (true, format!("'{path}' is shown below ({size}{extent}){newline}{notes}"))
    }

    /// What the model sees of the file; None if that is nothing. A partial line does not count.
    pub(super) fn shown(&self) -> Option<Shown> {
        let Contents { path, bytes, size, lines: part } = self.contents;
        let Lines { first, last, total, uncounted, cut, within_line, .. } = self.lines();
        let whole = first <= 1 && last == total && !(uncounted || cut || within_line);
        let last = last - usize::from(within_line);
        let is_part = !whole && first > 0 && last >= first;
        let lines = if is_part { vec![(first, last)] } else { Vec::new() };
        let seen = part.is_none().then(|| protocol::FileVersion::of(bytes, *size));
        self.is_visible().then(|| Shown { path: path.clone(), whole, lines, seen })
    }
}

/// `## Requested File Contents`: the requested files that could be read, each once.
#[derive(Clone)]
pub(super) struct RequestedBlocks<'a> {
    requested: &'a [Requested],
    pub(super) blocks: Vec<Block<'a>>,
    /// For each request, the index of the block that answers it.
    answers: Rc<[Option<usize>]>,
}

impl<'a> RequestedBlocks<'a> {
    /// Whole blocks for all requests; `text` returns the content of a file without secrets.
    pub(super) fn new(
        session: &'a Session,
        requested: &'a [Requested],
        text: &mut dyn FnMut(&'a Contents) -> Cow<'a, str>,
    ) -> Self {
        let mut blocks: Vec<Block<'a>> = Vec::new();
        let answers = requested.iter().map(|file| {
            let contents = file.contents.as_ref().ok()?;
            if is_within_whole(contents, requested) {
                return None;
            }
            let same = |block: &Block<'_>| {
                (&block.contents.path, block.contents.lines) == (&contents.path, contents.lines)
            };
            Some(blocks.iter().position(same).unwrap_or_else(|| {
                blocks.push(Block::new(session, contents, &text(contents)));
                blocks.len() - 1
            }))
        });
        let answers = answers.collect();
        Self { requested, blocks, answers }
    }

    /// Whether request `n` is answered, and the text of its result.
    pub(super) fn result(&self, n: usize) -> (bool, String) {
        let Some(file) = self.requested.get(n) else {
            return (false, "the file was not read".to_owned());
        };
        match (&file.contents, self.answers[n]) {
            (_, Some(block)) => self.blocks[block].result(),
            (Err(failure), _) => {
                let rejected =
                    if failure.kind == FailureKind::Rejected { "REJECTED: " } else { "" };
                (false, format!("{rejected}{}", visible_line(&failure.reason)))
            }
            (Ok(contents), _) => {
                let range = range(&lines_read(contents));
                let path = &contents.path;
                (true, format!("'{path}' is shown below as a whole ({range} was asked for)"))
            }
        }
    }

    /// Shortens files so that all blocks take at most `room` tokens: all to the same length. What files with very long
    /// lines cannot use goes to the first file that can.
    pub(super) fn fit(&mut self, room: usize, measure: Measure) {
        let limit = greatest_limit(room, measure, |limit| {
            self.blocks.iter_mut().for_each(|block| block.cut(limit));
            self.render()
        });
        self.blocks.iter_mut().for_each(|block| block.cut(limit.unwrap_or_default()));
        for n in 0..self.blocks.len() {
            let left = room.saturating_sub(measure(&self.render()));
            if left < room / 8 {
                break;
            }
            let block = &mut self.blocks[n];
            let (shown, room) = (block.end, left + measure(&block.render()));
            let limit = greatest_limit(room, measure, |limit| {
                block.cut(limit);
                block.render()
            });
            block.cut(limit.unwrap_or_default());
            block.end = block.end.max(shown);
        }
    }

    /// The section; empty if it has no blocks.
    pub(super) fn render(&self) -> String {
        let blocks = self.blocks.iter().map(Block::render).collect::<String>();
        if blocks.is_empty() { blocks } else { format!("\n## Requested File Contents\n{blocks}") }
    }
}

/// Whether another request shows the whole file anyway. Numbered lines are shown in addition.
fn is_within_whole(contents: &Contents, requested: &[Requested]) -> bool {
    let is_whole = |other: &Requested| {
        other.contents.as_ref().is_ok_and(|other| {
            let shows_all = other.lines.is_none() && other.bytes.len() as u64 == other.size;
            shows_all && other.path == contents.path
        })
    };
    contents.lines.is_some_and(|lines: Lines| !lines.numbered) && requested.iter().any(is_whole)
}

/// `## Workspace File Contents`: whole files that the first outbox shows unasked.
#[derive(Clone)]
pub(super) struct OfferedBlocks<'a> {
    dialect: Dialect,
    offered: &'a Offered,
    pub(super) blocks: Vec<Block<'a>>,
}

impl<'a> OfferedBlocks<'a> {
    /// Whole blocks for all files; `text` returns the content of a file without secrets.
    pub(super) fn new(
        session: &'a Session,
        offered: &'a Offered,
        text: &mut dyn FnMut(&'a Contents) -> Cow<'a, str>,
    ) -> Self {
        let files = offered.files.iter();
        let blocks = files.map(|contents| Block::new(session, contents, &text(contents))).collect();
        Self { dialect: session.dialect, offered, blocks }
    }

    /// Shows the files that fit: those that the person named may take all of `room`, the others half of what is left.
    /// A file that does not fit is skipped.
    pub(super) fn fit(&mut self, room: usize, measure: Measure) {
        // The heading, and the line below it.
        let mut left = room.saturating_sub(40);
        for (n, block) in self.blocks.iter_mut().enumerate() {
            if n == self.offered.included {
                left /= 2;
            }
            // Do not count what is certainly too long: no token has more than 128 bytes.
            let fits = block.text.len() / 128 <= left;
            match fits.then(|| left.checked_sub(measure(&block.render()))).flatten() {
                Some(less) => left = less,
                None => block.end = 0,
            }
        }
    }

    /// The section; empty if no file is shown.
    pub(super) fn render(&self) -> String {
        let Offered { listed, not_text, empty, .. } = *self.offered;
        let shown = self.blocks.iter().filter(|block| block.is_visible()).count();
        if shown == 0 {
            return String::new();
        }
        let nonempty = match (empty, shown) {
            (0, _) => "",
            (_, 1) => " that holds something",
            _ => " that hold something",
        };
        let what = if shown + not_text < listed {
            let read = match self.dialect {
                Dialect::Tags => "READ_FILE",
                Dialect::Operations => "readFile",
            };
            let all = count(listed, "file");
            format!("{shown} of {all} that hold something, whole; {read} shows others.")
        } else if shown == 1 {
            format!("The only text file{nonempty}, whole.")
        } else {
            format!("All {shown} text files{nonempty}, whole.")
        };
        let blocks: String = self.blocks.iter().map(Block::render).collect();
        format!("\n## Workspace File Contents\n{what}\n{blocks}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(first: usize, last: usize, total: usize) -> Lines {
        let (uncounted, cut, within_line, numbered) = (false, false, false, false);
        Lines { first, last, total, uncounted, cut, within_line, length: None, numbered }
    }

    #[test]
    fn markers_name_the_lines() {
        assert_eq!(range(&lines(3, 9, 120)), "lines 3-9 of 120");
        assert_eq!(range(&lines(3, 3, 3)), "line 3 of 3");
        assert_eq!(range(&lines(0, 0, 0)), "empty");
        let uncounted = Lines { uncounted: true, ..lines(3, 9, 1000) };
        assert_eq!(range(&uncounted), "lines 3-9 of more than 1000");
    }

    #[test]
    fn a_part_may_be_all() {
        let session =
            Session::new("a1b2c3d4".into(), "x", vec![], "2025-01-15T10:30:00Z".parse().unwrap());
        let is_whole = |lines| {
            let path = protocol::RelPath::parse("a").unwrap();
            let contents = Contents { path, bytes: vec![], size: 0, lines: Some(lines) };
            Block::new(&session, &contents, "").shown().unwrap().whole
        };
        assert!(is_whole(lines(1, 9, 9)) && is_whole(lines(0, 0, 0)));
        assert!(!is_whole(lines(2, 9, 9)) && !is_whole(lines(1, 8, 9)));
        assert!(!is_whole(Lines { uncounted: true, ..lines(1, 9, 9) }));
        assert!(!is_whole(Lines { within_line: true, cut: true, ..lines(1, 1, 1) }));
    }

    #[test]
    fn each_line_stands_behind_its_number() {
        let asked = Lines { numbered: true, ..lines(9, 11, 11) };
        assert_eq!(numbered("a\n\n--- b ---".into(), &asked), "9| a\n10| \n11| --- b ---");
        assert_eq!(numbered("".into(), &Lines { numbered: true, ..lines(0, 0, 0) }), "");
        assert_eq!(numbered("a\n".into(), &lines(1, 1, 1)), "a\n");
    }
}
