//! Blocks with the contents of files: requested files, and files that the first outbox shows without a request.
//!
//! A line after a block says what is left out and how to see it. If a line is too long, only its beginning is shown,
//! with a command that shows more of it, since another request would not help.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::cmp::Reverse;

use memchr::{memchr_iter, memmem};

use super::boundaries::boundary;
use super::budget::{BEGINNING, NEXT_LINES, contents_within};
use super::redaction::Redaction;
use super::results::Limits;
use super::{Files, ShownFile};
use crate::context::Outlined;
use crate::context::symbols::{Text, definitions};
use crate::protocol::{Dialect, FileVersion, LineRange};
use crate::secrets::Redactor;
use crate::session::Session;
use crate::text::{byte_count, count, is_hazard, shell_word, visible, visible_line};
use crate::tokens;
use crate::workspace::Contents;
use crate::workspace::edit::count_lines;

const CONTENTS: &str = "\n## Workspace File Contents\n";
const OUTLINE: &str = "\n## Workspace Outline\n";

/// Describes the shown lines: `lines 3-9 of 120`, and how much is shown of a partial line.
pub(super) fn range(lines: &LineRange, shown: &str) -> String {
    let LineRange { first, last, total, uncounted, .. } = lines;
    let total = if *uncounted { format!("more than {total}") } else { total.to_string() };
    let (range, whose) = match (first, last) {
        (0, _) => ("empty".to_owned(), ""),
        (first, last) if first == last => (format!("line {first} of {total}"), "its"),
        (first, last) => (format!("lines {first}-{last} of {total}"), "the last one's"),
    };
    if !lines.within_line {
        return range;
    }
    let first = count(last_line_length(shown, lines), "character");
    let length = lines.length.map_or("more bytes than were read".to_owned(), byte_count);
    format!("{range}, {whose} first {first} of {length}")
}

/// Adds line numbers to the text if they were requested.
fn numbered<'t>(text: Cow<'t, str>, lines: &LineRange) -> Cow<'t, str> {
    if !lines.numbered {
        return text;
    }
    let number = |(n, line): (usize, &str)| format!("{}| {line}", lines.first + n);
    text.split_inclusive('\n').enumerate().map(number).collect()
}

/// The bytes that can be shown: all of them, or only whole lines if the file was not read to its end.
pub(super) fn whole_lines(contents: &Contents) -> &[u8] {
    let bytes = contents.bytes.as_slice();
    if contents.lines.is_some() || bytes.len() as u64 == contents.size {
        return bytes;
    }
    memchr::memrchr(b'\n', bytes).map_or(b"", |n| &bytes[..=n])
}

/// The lines of `read` that are in the first `end` bytes of `text`. Only the first line can be partial; `bytes` begin
/// with its original form.
pub(super) fn lines_within(read: LineRange, text: &str, end: usize, bytes: &[u8]) -> LineRange {
    let shown = &text[..end];
    if shown.len() == text.len() {
        return read;
    }
    let last = (read.first + count_lines(shown.as_bytes())).saturating_sub(1);
    let within_line = !(shown.is_empty() || shown.ends_with('\n'));
    let length = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len()) as u64;
    let length = if read.within_line { read.length } else { Some(length) };
    LineRange { last, cut: true, within_line, length, ..read }
}

/// The lines that were read.
fn lines_read(contents: &Contents) -> LineRange {
    contents.lines.unwrap_or_else(|| {
        let read = whole_lines(contents);
        let last = count_lines(read);
        let cut = read.len() as u64 != contents.size;
        LineRange { first: 1, last, total: last, uncounted: cut, cut, ..LineRange::default() }
    })
}

/// Describes what is left out of a file after these lines, and how to see it. `shown` is the shown text, and `end`
/// the last line that is left out, if known. Empty if nothing is left out.
pub(super) fn left_out(
    dialect: Dialect,
    path: &str,
    lines: &LineRange,
    shown: &str,
    end: Option<usize>,
) -> String {
    let LineRange { last, total, uncounted, cut, within_line, .. } = *lines;
    let (next, word) = (last + 1, shell_word(path));
    let (run, search) = match dialect {
        Dialect::Tags => ("RUN_COMMAND", "SEARCH"),
        Dialect::Operations => ("shell", "shell with grep -o"),
    };
    let mut left_out = Vec::new();
    if within_line {
        let shown = last_line_length(shown, lines);
        let (from, to) = (shown + 1, shown + BEGINNING);
        left_out.push(format!(
            "the rest of line {last} is left out, as the line is too long to be shown whole: {search} finds text in it, and {run} with sed -n '{last}p' {word} | cut -c{from}-{to} shows more of it"
        ));
    }
    if cut && (!within_line || last < total || uncounted) {
        let what = match end {
            None => format!("line {next} and all after it are"),
            Some(end) if end == next => format!("line {next} is"),
            Some(end) => format!("lines {next}-{end} are"),
        };
        let how = if dialect == Dialect::Operations || path.contains('"') {
            // READ_FILE cannot name such a path.
            let to = (last + NEXT_LINES).min(end.unwrap_or(usize::MAX));
            format!("{run} with sed -n '{next},{to}p' {word} shows more")
        } else {
            format!("[READ_FILE path=\"{path}\" start_line=\"{next}\"] shows them")
        };
        left_out.push(format!("{what} left out for room: {how}"));
    }
    left_out.join("; ")
}

/// A file that is shown completely, or as many whole lines as fit into a limit of characters.
pub(super) struct FileBlock<'a> {
    session: &'a Session,
    pub(super) contents: &'a Contents,
    /// The path without secrets.
    path: String,
    /// The lines that were read.
    read: LineRange,
    /// Notes about the form of the text, such as its line ends.
    notes: String,
    /// The text without secrets and with visible control characters. Nothing else of the file is shown.
    text: String,
    /// The ranges of lines, if this is an excerpt.
    ranges: Option<Vec<(usize, usize)>>,
    /// The depth of each definition, and where it begins and ends in the text; only computed if the text must be cut.
    definitions: OnceCell<Vec<(usize, usize)>>,
}

impl<'a> FileBlock<'a> {
    pub(super) fn new(
        session: &'a Session,
        contents: &'a Contents,
        redaction: &mut Redaction<'a>,
    ) -> Self {
        let bytes = whole_lines(contents);
        let original = String::from_utf8_lossy(bytes);
        let is_crlf = memmem::find(bytes, b"\r\n").is_some();
        let has_hazards = original.replace("\r\n", "\n").chars().any(is_hazard);
        let notes = [
            (is_crlf, "; its lines end in CRLF"),
            (matches!(original, Cow::Owned(_)), "; it is not UTF-8: invalid bytes show as U+FFFD"),
            (has_hazards, "; control and invisible characters show as ␛ or <U+202E>"),
        ];
        let notes = notes.into_iter().filter_map(|(applies, note)| applies.then_some(note));
        let (notes, read) = (notes.collect(), lines_read(contents));
        let text = redaction.text(contents);
        let text = numbered(visible(&text), &read).into_owned();
        let path = redaction.name(contents.path.as_str());
        let (ranges, definitions) = (None, OnceCell::new());
        Self { session, contents, path, read, notes, text, ranges, definitions }
    }

    /// Restricts a whole file to these ranges of lines, with line numbers.
    pub(super) fn excerpt(self, ranges: &[(usize, usize)]) -> Self {
        let lines = LineRange { first: 1, numbered: true, ..self.read };
        let text = numbered(self.text.as_str().into(), &lines);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let excerpts = ranges.iter().map(|(first, last)| {
            let gap = if *first > 1 { "...\n" } else { "" };
            let to = lines.len().min(*last);
            [gap, &lines[first - 1..to].concat()].concat()
        });
        let mut text: String = excerpts.collect();
        if ranges.last().is_some_and(|(_, last)| *last < lines.len()) {
            text.push_str("...\n");
        }
        Self { text, ranges: Some(ranges.to_vec()), ..self }
    }

    /// The text that is shown within `limit` characters, and its lines; None if nothing fits.
    fn shown_within(&self, limit: usize) -> Option<(&str, LineRange)> {
        let shown = self.to_definition(contents_within(&self.text, limit));
        let lines = lines_within(self.read, &self.text, shown.len(), &self.contents.bytes);
        (!shown.is_empty() || self.text.is_empty()).then_some((shown, lines))
    }

    /// Shortens the shown text to end between definitions. Among the possible ends in its second half, it chooses one
    /// between outermost definitions, and of these the last.
    fn to_definition<'t>(&'t self, shown: &'t str) -> &'t str {
        if shown.len() == self.text.len() || !shown.ends_with('\n') {
            return shown;
        }
        let second_half = shown.len().div_ceil(2)..=shown.len();
        let ends = self.definitions.get_or_init(|| self.definition_ends()).iter();
        let ends = ends.filter(|(_, end)| second_half.contains(end));
        let end = ends.min_by_key(|(depth, end)| (*depth, Reverse(*end)));
        end.map_or(shown, |(_, end)| &shown[..*end])
    }

    fn definition_ends(&self) -> Vec<(usize, usize)> {
        let line_ends: Vec<usize> =
            memchr_iter(b'\n', self.text.as_bytes()).map(|at| at + 1).collect();
        let end_of = |line: usize| line_ends.get(line.checked_sub(1)?).copied();
        let found = definitions(self.contents.path.as_str(), &Text::new(&self.contents.bytes));
        let ends = found.iter().flat_map(|definition| {
            let lines = [definition.start - 1, definition.end];
            lines.map(|line| (definition.depth, end_of(line)))
        });
        ends.filter_map(|(depth, end)| Some((depth, end?))).collect()
    }

    /// The block, and a line about what is left out; empty if nothing is shown.
    pub(super) fn render(&self, limit: usize) -> String {
        let Some((text, lines)) = self.shown_within(limit) else { return String::new() };
        let mut mark = self.path.clone();
        if let Some(ranges) = &self.ranges {
            mark.push_str(&format!(" ({} of {})", line_ranges(ranges), self.read.total));
        } else if self.contents.lines.is_some() {
            mark.push_str(&format!(" ({})", range(&lines, text)));
        }
        if let Some(word) = boundary(self.session, &mark, text) {
            mark.push_str(&format!(" (boundary {word})"));
        }
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let end = (!self.read.cut).then_some(self.read.last);
        let rest = left_out(self.session.dialect, &self.path, &lines, text, end);
        let rest = if rest.is_empty() { rest } else { format!("... {rest}\n") };
        format!("--- {mark} ---\n{text}{newline}--- end {mark} ---\n{rest}")
    }

    /// Whether the file is shown within `limit` characters, and the text of its result.
    fn result(&self, limit: usize) -> (bool, String) {
        let (path, part, size) = (&self.path, self.contents.lines, byte_count(self.contents.size));
        let Some((text, lines)) = self.shown_within(limit) else {
            let how = "Ask for this file alone, or show a part of it with RUN_COMMAND, for example with head -c 2000";
            let reason = "this message has no room for its first line";
            return (false, format!("'{path}' is not shown ({size}): {reason}. {how}"));
        };
        let mut extent = match part {
            None if !lines.cut => format!(", {}", count(lines.last, "line")),
            _ => format!("; {}", range(&lines, text)),
        };
        if lines.numbered && lines.first > 0 {
            extent.push_str("; each line is behind its number and `| `");
        }
        let is_whole = text.len() == self.text.len() && !lines.within_line;
        let newline = match whole_lines(self.contents).last() {
            Some(last) if is_whole && *last != b'\n' => "; its last line has no newline",
            _ => "",
        };
        (true, format!("'{path}' is shown below ({size}{extent}){newline}{}", self.notes))
    }

    /// The part of the file that the model sees within `limit` characters; None if nothing is shown. The version of a
    /// part is that of the whole file.
    pub(super) fn shown(&self, limit: usize, wholes: &[Contents]) -> Option<ShownFile> {
        let Contents { path, bytes, size, lines: part } = self.contents;
        let (_, lines) = self.shown_within(limit)?;
        if let Some(ranges) = &self.ranges {
            let version = Some(FileVersion::whole(bytes));
            let (path, lines) = (path.clone(), ranges.clone());
            return Some(ShownFile { path, whole: false, lines, cut: None, version });
        }
        let whole = || wholes.iter().find(|whole| whole.path == *path);
        let version = match part {
            None => Some(FileVersion::of(bytes, *size)),
            Some(_) => whole().map(|whole| FileVersion::whole(&whole.bytes)),
        };
        Some(ShownFile::new(path, &lines, version))
    }
}

/// The number of characters of the last of these lines, without its line number.
fn last_line_length(text: &str, lines: &LineRange) -> usize {
    let line = text.rsplit('\n').next().unwrap_or_default();
    let number = line.find("| ").filter(|_| lines.numbered).map_or(0, |at| at + 2);
    line[number..].chars().count()
}

/// `## Requested File Contents`: the requested files that could be read, each part once.
pub(super) struct RequestedBlocks<'a> {
    pub(super) blocks: Vec<FileBlock<'a>>,
    /// The index of the block that shows each of the files.
    answers: Vec<usize>,
}

impl<'a> RequestedBlocks<'a> {
    pub(super) fn new(
        session: &'a Session,
        files: &'a Files,
        redaction: &mut Redaction<'a>,
    ) -> Self {
        let mut blocks: Vec<FileBlock<'a>> = Vec::new();
        let answers = files.requested.iter().flatten().map(|file| {
            let known = blocks.iter().position(|block| block.contents == file);
            known.unwrap_or_else(|| {
                blocks.push(FileBlock::new(session, file, redaction));
                blocks.len() - 1
            })
        });
        let answers = answers.collect();
        Self { blocks, answers }
    }

    /// Whether file `n` is shown, and the text of its result.
    pub(super) fn result(&self, n: usize, limits: &Limits) -> (bool, String) {
        match self.answers.get(n) {
            Some(block) => self.blocks[*block].result(limits.of_block(*block)),
            None => (false, "the file was not read".to_owned()),
        }
    }

    /// The section; empty if no file is shown.
    pub(super) fn render(&self, limits: &Limits) -> String {
        let blocks = self.blocks.iter().enumerate();
        let blocks: String = blocks.map(|(n, block)| block.render(limits.of_block(n))).collect();
        if blocks.is_empty() { blocks } else { format!("\n## Requested File Contents\n{blocks}") }
    }
}

/// The indices of the blocks that fit completely into `room`. A block that does not fit is skipped.
pub(super) fn within(blocks: &[FileBlock<'_>], room: usize) -> Vec<usize> {
    let mut left = room;
    let fits = |(_, block): &(usize, &FileBlock<'_>)| {
        // No token has more than 128 bytes. So the tokens of a text that is certainly too long need not be counted.
        let may_fit = block.text.len() / 128 <= left;
        let rest = may_fit.then(|| left.checked_sub(tokens::count(&block.render(usize::MAX))));
        rest.flatten().map(|rest| left = rest).is_some()
    };
    blocks.iter().enumerate().filter(fits).map(|(n, _)| n).collect()
}

/// `## Workspace File Contents`: the files that the first outbox shows without a request; empty if there are none.
pub(super) fn render_offered(shown: &[&FileBlock<'_>], listed: usize) -> String {
    let Some(first) = shown.first() else { return String::new() };
    let read = match first.session.dialect {
        Dialect::Tags => "READ_FILE",
        Dialect::Operations => "readFile",
    };
    let excerpts = shown.iter().filter(|block| block.ranges.is_some()).count();
    let what = match (shown.len(), excerpts) {
        (n, 0) if n >= listed => {
            format!("Every non-empty text file, in full ({}).", count(n, "file"))
        }
        (n, 0) => format!("{n} of {listed} non-empty files, in full; {read} shows others."),
        (n, _) => format!(
            "What seems to matter of {n} of {listed} non-empty files, best first: {} in full, {excerpts} in excerpts with line numbers. {read} shows the rest.",
            n - excerpts
        ),
    };
    let blocks: String = shown.iter().map(|block| block.render(usize::MAX)).collect();
    format!("{CONTENTS}{what}\n{blocks}")
}

/// `## Workspace Outline` of these files, in about `room` tokens; empty if no file fits.
pub(super) fn render_outline<'a>(
    outlined: impl Iterator<Item = Outlined<'a>>,
    room: usize,
    redactor: &mut Redactor,
) -> String {
    let of = "Further definitions, by line, of the files above and of others that may matter:";
    let mut text = format!("{OUTLINE}{of}\n");
    let (mut tokens, heading) = (tokens::estimate(&text).likely, text.len());
    for Outlined { path, entries } in outlined {
        let mut entry = format!("  {}:\n", visible_line(&redactor.name(path)));
        for line in entries {
            entry += &format!("    {}\n", visible_line(&redactor.name(&line)));
        }
        tokens += tokens::estimate(&entry).likely;
        if tokens > room {
            break;
        }
        text += &entry;
    }
    if text.len() == heading { String::new() } else { text }
}

/// The paths, without secrets, of the files that a first outbox shows, and of the other files that it outlines.
pub fn files_of_first(outbox: &str) -> [Vec<&str>; 2] {
    let section = |heading: &str| {
        let (_, rest) = outbox.split_once(heading).unwrap_or_default();
        // A line of data never begins like this.
        rest.split_once("\n## ")
            .or_else(|| rest.split_once("\n=== "))
            .map_or(rest, |(section, _)| section)
    };
    let marks = section(CONTENTS)
        .lines()
        .filter_map(|line| line.strip_prefix("--- end ")?.strip_suffix(" ---"));
    let path = |mark: &'_ str| {
        mark.rfind(" (lines ").or_else(|| mark.rfind(" (boundary ")).unwrap_or(mark.len())
    };
    let shown: Vec<&str> = marks.map(|mark| &mark[..path(mark)]).collect();
    let outlined =
        section(OUTLINE).lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let outlined = outlined.filter(|path| !shown.contains(path)).collect();
    [shown, outlined]
}

/// Describes ranges of lines: `lines 3-9, 12`.
fn line_ranges(ranges: &[(usize, usize)]) -> String {
    let range = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    let noun = if matches!(ranges, [(first, last)] if first == last) { "line" } else { "lines" };
    format!("{noun} {}", ranges.iter().map(range).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RelPath;
    use crate::settings::Secrets;

    fn lines(first: usize, last: usize, total: usize) -> LineRange {
        let (uncounted, cut, within_line, numbered) = (false, false, false, false);
        LineRange { first, last, total, uncounted, cut, within_line, length: None, numbered }
    }

    #[test]
    fn markers_name_the_lines() {
        assert_eq!(range(&lines(3, 9, 120), ""), "lines 3-9 of 120");
        assert_eq!(range(&lines(3, 3, 3), ""), "line 3 of 3");
        assert_eq!(range(&lines(0, 0, 0), ""), "empty");
        let uncounted = LineRange { uncounted: true, ..lines(3, 9, 1000) };
        assert_eq!(range(&uncounted, ""), "lines 3-9 of more than 1000");
        let cut = LineRange { within_line: true, length: Some(90), ..lines(1, 1, 2) };
        assert_eq!(range(&cut, "abc"), "line 1 of 2, its first 3 characters of 90 bytes");
        let cut = LineRange { numbered: true, length: None, ..cut };
        let told = "line 1 of 2, its first 2 characters of more bytes than were read";
        assert_eq!(range(&cut, "1| ab"), told);
        let cut = LineRange { within_line: true, ..uncounted };
        assert!(
            range(&cut, "a\nb")
                .ends_with(", the last one's first 1 character of more bytes than were read")
        );
    }

    #[test]
    fn a_part_may_be_all() {
        let session =
            Session::new("a1b2c3d4".into(), "x", vec![], "2025-01-15T10:30:00Z".parse().unwrap());
        let is_whole = |lines| {
            let path = RelPath::parse("a").unwrap();
            let contents = Contents { path, bytes: vec![], size: 0, lines: Some(lines) };
            let files = Files::default();
            let mut redaction = Redaction::new(&files, &Secrets::default());
            FileBlock::new(&session, &contents, &mut redaction).shown(0, &[]).unwrap().whole
        };
        assert!(is_whole(lines(1, 9, 9)) && is_whole(lines(0, 0, 0)));
        assert!(!is_whole(lines(2, 9, 9)) && !is_whole(lines(1, 8, 9)));
        assert!(!is_whole(LineRange { uncounted: true, ..lines(1, 9, 9) }));
        assert!(!is_whole(LineRange { within_line: true, cut: true, ..lines(1, 1, 1) }));
    }

    #[test]
    fn each_line_stands_behind_its_number() {
        let asked = LineRange { numbered: true, ..lines(9, 11, 11) };
        assert_eq!(numbered("a\n\n--- b ---".into(), &asked), "9| a\n10| \n11| --- b ---");
        assert_eq!(numbered("".into(), &LineRange { numbered: true, ..lines(0, 0, 0) }), "");
        assert_eq!(numbered("a\n".into(), &lines(1, 1, 1)), "a\n");
    }
}
