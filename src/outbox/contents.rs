//! Blocks with the contents of files: those that the model asked for, and those that the first outbox
//! shows unasked.
//!
//! ```text
//! --- src/x.py ---
//! its text, whole lines
//! --- end src/x.py ---
//! ... lines 201-512 are left out for room: [READ_FILE path="src/x.py" start_line="201"] shows them
//! ```
//!
//! The last line is there only if something is left out, and outside of the markers: within them it
//! would be content. A line that is too long for the room by itself is shown in part, with a command that
//! shows more of it, since asking again would not.

use std::borrow::Cow;
use std::rc::Rc;

use memchr::memmem;

use super::Shown;
use super::boundaries::boundary;
use super::budget::{LineTokens, NEXT_LINES, chars_within, share_out};
use crate::protocol::{self, Dialect, Failure, FailureKind, Lines};
use crate::session::Session;
use crate::text::{byte_count, count, is_hazard, shell_word, visible, visible_line};
use crate::tokens;
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

/// The most and the fewest characters that are shown of a line that is too long to be shown whole.
pub(super) const BEGINNING: usize = 4_000;
pub(super) const LEAST: usize = 100;

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

/// A command that shows more of a line that is too long to be shown whole, after its first `shown`
/// characters.
pub(super) fn rest_of_line(path: &str, line: usize, shown: usize) -> String {
    let path = shell_word(path);
    format!("sed -n '{line}p' {path} | cut -c{}-{}", shown + 1, shown + BEGINNING)
}

/// A command that shows lines of a file.
pub(super) fn print_lines(path: &str, first: usize, last: usize) -> String {
    format!("sed -n '{first},{last}p' {}", shell_word(path))
}

/// The text of a part, each line behind its number if that was asked for.
fn numbered<'t>(text: Cow<'t, str>, lines: &Lines) -> Cow<'t, str> {
    if !lines.numbered {
        return text;
    }
    let number = |(n, line): (usize, &str)| format!("{}| {line}", lines.first + n);
    text.split_inclusive('\n').enumerate().map(number).collect()
}

/// The bytes that can be shown: all, or whole lines of a file that is longer.
pub(super) fn whole_lines(contents: &Contents) -> &[u8] {
    let bytes = contents.bytes.as_slice();
    if contents.lines.is_some() || bytes.len() as u64 == contents.size {
        return bytes;
    }
    memchr::memrchr(b'\n', bytes).map_or(b"", |n| &bytes[..=n])
}

/// Which lines were read; of a file without a range all that are whole.
fn lines_read(contents: &Contents) -> Lines {
    contents.lines.unwrap_or_else(|| {
        let read = whole_lines(contents);
        let last = count_lines(read);
        let cut = read.len() as u64 != contents.size;
        let (within_line, length, numbered) = (false, None, false);
        Lines { first: 1, last, total: last, uncounted: cut, cut, within_line, length, numbered }
    })
}

/// What the results say of the form of a file.
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

/// A file as it is shown: from its beginning up to the end of a line, or into its first one.
#[derive(Clone)]
pub(super) struct Block<'a> {
    session: &'a Session,
    contents: &'a Contents,
    read: Lines,
    /// What the results say of its form, the first of them only if it is shown to its end.
    notes: [&'static str; 4],
    /// All that was read of it, as it is shown.
    text: Rc<str>,
    tokens: Rc<LineTokens>,
    /// How many bytes of that are shown.
    end: usize,
}

impl<'a> Block<'a> {
    /// All of a file, given its text without secrets.
    pub(super) fn new(session: &'a Session, contents: &'a Contents, text: &str) -> Self {
        let read = lines_read(contents);
        let (notes, text) = (notes(contents), numbered(visible(text), &read));
        let end = text.len();
        Self { session, contents, read, notes, text: text.into(), tokens: Rc::default(), end }
    }

    fn is_cut(&self) -> bool {
        self.end < self.text.len()
    }

    /// The lines that are shown. Of the last one it may be only a part.
    fn lines(&self) -> Lines {
        if !self.is_cut() {
            return self.read;
        }
        let shown = count_lines(&self.text.as_bytes()[..self.end]);
        let last = (self.read.first + shown).saturating_sub(1);
        Lines { last, cut: true, within_line: false, length: None, ..self.read }
    }

    /// How many characters of the last line are shown, unless that is all of it.
    fn within_line(&self) -> Option<usize> {
        let shown = &self.text[..self.end];
        let is_within = if self.is_cut() {
            self.end > 0 && !shown.ends_with('\n')
        } else {
            self.read.within_line
        };
        let line = shown.rsplit('\n').next().unwrap_or_default();
        let number = line.find("| ").filter(|_| self.read.numbered).map_or(0, |at| at + 2);
        is_within.then(|| line[number..].chars().count())
    }

    /// Shows as many lines as fit into `room` tokens with all that belongs to the block. Returns how many
    /// tokens that is.
    fn cut(&mut self, room: usize) -> usize {
        self.end = 0;
        let frame = tokens::count(&self.render()) + 8;
        let (lines, taken) = self.tokens.within(&self.text, room.saturating_sub(frame));
        self.end = lines.len();
        if self.end > 0 {
            return frame + taken;
        }
        let line = self.text.split('\n').next().unwrap_or_default();
        let limit = line.char_indices().nth(BEGINNING).map_or(line.len(), |(at, _)| at);
        self.end = line.floor_char_boundary(LEAST.min(limit));
        let frame = tokens::count(&self.render());
        let shown = chars_within(&line[..limit], room.saturating_sub(frame));
        self.end = if shown.len() < LEAST { 0 } else { shown.len() };
        if self.end == 0 { 0 } else { frame + tokens::count(shown) }
    }

    /// The block; without any text if there is no room for even a part of a line.
    pub(super) fn render(&self) -> String {
        let text = &self.text[..self.end];
        let mut mark = self.contents.path.to_string();
        if self.contents.lines.is_some() {
            mark.push_str(&format!(" ({})", range(&self.lines())));
        }
        if let Some(word) = boundary(self.session, &mark, text) {
            mark.push_str(&format!(" (boundary {word})"));
        }
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let rest = self.rest();
        format!("--- {mark} ---\n{text}{newline}--- end {mark} ---\n{rest}")
    }

    /// The line that says what is left out, and how to ask for it; nothing if nothing is.
    fn rest(&self) -> String {
        let within = self.within_line();
        if !self.is_cut() && !self.read.cut && within.is_none() {
            return String::new();
        }
        let (path, dialect) = (self.contents.path.as_str(), self.session.dialect);
        let (last, next) = (self.lines().last, self.lines().last + 1);
        let of_line = within.map(|shown| {
            let (search, command) = match dialect {
                Dialect::Tags => ("SEARCH", "RUN_COMMAND"),
                Dialect::Operations => ("shell with grep -o", "shell"),
            };
            let more = rest_of_line(path, last, shown);
            format!(
                "the rest of line {last} is left out, since so long a line cannot be shown whole: {search} finds in it, {command} with {more} shows more of it"
            )
        });
        let is_last = self.read.total <= last && !self.read.uncounted;
        let of_line = match of_line {
            Some(told) if is_last => return format!("... {told}\n"),
            Some(told) => format!("{told}; "),
            None => String::new(),
        };
        let left = match self.read.last {
            _ if self.read.cut => format!("line {next} and all after it are"),
            last if last == next => format!("line {next} is"),
            last => format!("lines {next}-{last} are"),
        };
        let print = || print_lines(path, next, next + NEXT_LINES - 1);
        let how = match dialect {
            // READ_FILE does not take such a path.
            Dialect::Tags if !path.contains('"') => {
                format!("[READ_FILE path=\"{path}\" start_line=\"{next}\"] shows them")
            }
            Dialect::Tags => format!("RUN_COMMAND with {} shows more", print()),
            Dialect::Operations => format!("shell with {} shows more", print()),
        };
        format!("... {of_line}{left} left out for room: {how}\n")
    }

    /// Whether it is shown, and what the results say of it.
    fn result(&self) -> (bool, String) {
        let Contents { path, size, bytes, lines: part } = self.contents;
        let size = byte_count(*size);
        if self.end == 0 && !self.text.is_empty() {
            let told = format!(
                "'{path}' is not shown ({size}): there is no room in this message for its first line; ask for it by itself, or see a part with RUN_COMMAND, as in head -c 2000"
            );
            return (false, told);
        }
        let (lines, within, is_part) = (self.lines(), self.within_line(), part.is_some());
        let Lines { first, last, total, uncounted, cut, numbered, .. } = lines;
        let of_total = if uncounted || is_part { String::new() } else { format!(" of {total}") };
        let part = if is_part { format!("; {}", range(&lines)) } else { String::new() };
        let numbered = if numbered && first > 0 { ", each behind its number and `| `" } else { "" };
        let extent = match (within, is_part, cut) {
            (Some(shown), ..) => {
                let length = if self.read.within_line {
                    self.read.length
                } else {
                    Some(memchr::memchr(b'\n', bytes).unwrap_or(bytes.len()) as u64)
                };
                let length = length.map_or("longer than was looked at".to_owned(), byte_count);
                let shown = count(shown, "character");
                format!("; of line {last}{of_total} ({length}) only the first {shown}")
            }
            (None, true, true) => {
                format!("; no more fits: for more ask with start_line=\"{}\"", last + 1)
            }
            (None, true, false) => String::new(),
            (None, false, true) => format!("; only its lines 1-{last}{of_total}"),
            (None, false, false) => format!(", {}", count(last, "line")),
        };
        let is_whole = !self.is_cut() && within.is_none();
        let newline = if is_whole { self.notes[0] } else { "" };
        let notes = self.notes[1..].concat();
        (true, format!("'{path}' is shown below ({size}{part}{numbered}{extent}){newline}{notes}"))
    }

    /// What the model has seen of the file. A line that is shown in part does not count.
    fn shown(&self) -> Shown {
        let Contents { path, bytes, size, lines: part } = self.contents;
        let Lines { first, last, total, uncounted, cut, .. } = self.lines();
        let within = self.within_line().is_some();
        let whole = first <= 1 && last == total && !(uncounted || cut || within);
        let last = last - usize::from(within);
        let lines = (!whole && first > 0 && last >= first).then_some((first, last));
        let seen = part.is_none().then(|| protocol::Seen::of(bytes, *size));
        Shown { path: path.clone(), whole, lines, seen }
    }
}

/// `## Requested File Contents`: the files that were requested and could be read, each once.
#[derive(Clone)]
pub(super) struct RequestedBlocks<'a> {
    requested: &'a [Requested],
    blocks: Vec<Block<'a>>,
    /// For each request which of the blocks answers it.
    answers: Rc<[Option<usize>]>,
}

impl<'a> RequestedBlocks<'a> {
    /// The blocks of all requests, given the text of each.
    pub(super) fn new(
        session: &'a Session,
        requested: &'a [Requested],
        texts: &[Cow<'_, str>],
    ) -> Self {
        let mut blocks: Vec<Block<'a>> = Vec::new();
        let answers = requested.iter().zip(texts).map(|(file, text)| {
            let contents = file.contents.as_ref().ok()?;
            if is_within_whole(contents, requested) {
                return None;
            }
            let same = |block: &Block<'_>| {
                (&block.contents.path, block.contents.lines) == (&contents.path, contents.lines)
            };
            Some(blocks.iter().position(same).unwrap_or_else(|| {
                blocks.push(Block::new(session, contents, text));
                blocks.len() - 1
            }))
        });
        let answers = answers.collect();
        Self { requested, blocks, answers }
    }

    /// Whether request `n` is answered, and what the results say of that.
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

    /// How many tokens each block takes.
    pub(super) fn tokens(&self) -> Vec<usize> {
        self.blocks.iter().map(|block| tokens::count(&block.render())).collect()
    }

    /// Cuts what is too large, so that all blocks take at most `room` tokens; `sizes` are those of whole
    /// blocks.
    pub(super) fn cut(&mut self, sizes: &[usize], room: usize) {
        share_out(sizes, room, &mut |n, share| self.blocks[n].cut(share));
    }

    /// The blocks of which there is something to show.
    fn visible(&self) -> impl Iterator<Item = &Block<'a>> {
        self.blocks.iter().filter(|block| block.end > 0 || block.text.is_empty())
    }

    /// What the model sees of the files.
    pub(super) fn shown(&self) -> impl Iterator<Item = Shown> {
        self.visible().map(Block::shown)
    }

    /// The section; nothing if it has no blocks.
    pub(super) fn render(&self) -> String {
        let blocks: String = self.visible().map(Block::render).collect();
        if blocks.is_empty() { blocks } else { format!("\n## Requested File Contents\n{blocks}") }
    }
}

/// Whether lines of a file were requested, and the whole of it, too. Numbered lines are shown all the
/// same.
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
    /// Each with its text, and whether it is shown.
    blocks: Vec<(Block<'a>, Rc<str>, bool)>,
}

impl<'a> OfferedBlocks<'a> {
    /// All files, given the text of each.
    pub(super) fn new(session: &'a Session, offered: &'a Offered, texts: &[Cow<'_, str>]) -> Self {
        let files = offered.files.iter().zip(texts);
        let blocks = files.map(|(contents, text)| Block::new(session, contents, text));
        let blocks = blocks.map(|block| (block.clone(), block.render().into(), true));
        Self { dialect: session.dialect, offered, blocks: blocks.collect() }
    }

    /// Shows what fits: of the files that the person named into `room` tokens, of all others into half of
    /// what is left then. A file that does not fit is skipped. Returns whether all are shown.
    pub(super) fn fit(&mut self, room: usize, count: impl Fn(&str) -> usize) -> bool {
        // The heading, and the line below it.
        let mut left = room.saturating_sub(40);
        for (n, (_, text, is_shown)) in self.blocks.iter_mut().enumerate() {
            if n == self.offered.included {
                left /= 2;
            }
            // What is sure to be too long is not counted: no token is longer than 128 bytes.
            let fits = (text.len() / 128 <= left).then(|| left.checked_sub(count(text))).flatten();
            *is_shown = fits.is_some();
            left = fits.unwrap_or(left);
        }
        self.blocks.iter().all(|(.., is_shown)| *is_shown)
    }

    fn visible(&self) -> impl Iterator<Item = &(Block<'a>, Rc<str>, bool)> {
        self.blocks.iter().filter(|(.., is_shown)| *is_shown)
    }

    /// What the model sees of the files.
    pub(super) fn shown(&self) -> impl Iterator<Item = Shown> {
        self.visible().map(|(block, ..)| block.shown())
    }

    /// The section; nothing if no file is shown.
    pub(super) fn render(&self) -> String {
        let Offered { listed, not_text, empty, .. } = *self.offered;
        let shown = self.visible().count();
        if shown == 0 {
            return String::new();
        }
        let verb = if shown == 1 { "holds" } else { "hold" };
        let nonempty = if empty == 0 { String::new() } else { format!(" that {verb} something") };
        let what = match (shown, self.dialect) {
            (1, _) if shown + not_text == listed => format!("The only text file{nonempty}, whole."),
            (n, _) if n + not_text == listed => format!("All {n} text files{nonempty}, whole."),
            (n, dialect) => {
                let read = match dialect {
                    Dialect::Tags => "READ_FILE",
                    Dialect::Operations => "readFile",
                };
                let all = count(listed, "file");
                format!("{n} of {all} that hold something, whole; {read} shows others.")
            }
        };
        let blocks: String = self.visible().map(|(_, text, _)| &**text).collect();
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
            Block::new(&session, &contents, "").shown().whole
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
