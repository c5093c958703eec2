//! Lays out texts on the terminal: measures, cuts and wraps them.
//!
//! deaddrop's own messages are wrapped between words. Text from a model is shown behind a bar, so that it cannot pose
//! as a row of deaddrop's. Long runs of blanks are replaced by a count, so that they cannot push text out of sight.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::Stream;
use crate::text::visible_line;

/// The beginning of every row with text from a model.
pub(super) const BAR: &str = "  | ";
/// Longer runs of blanks are replaced by a count.
const MAX_BLANKS: usize = 8;
/// The assumed width of a terminal that does not report its width.
const DEFAULT_WIDTH: usize = 80;
/// The least width for texts that need some space.
const MIN_TEXT_WIDTH: usize = 40;

/// The width for texts that need some space: at least [`MIN_TEXT_WIDTH`].
pub(super) fn text_width() -> usize {
    terminal_width().max(MIN_TEXT_WIDTH)
}

/// The terminal's width, from the terminal or from COLUMNS.
pub(super) fn terminal_width() -> usize {
    let from_environment =
        || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|width| *width > 0);
    reported_width().or_else(from_environment).unwrap_or(DEFAULT_WIDTH)
}

/// The width that the terminal reports.
pub(super) fn reported_width() -> Option<usize> {
    use rustix::termios::tcgetwinsize;

    let sizes = [
        Stream::Err.with(|fd| tcgetwinsize(fd)),
        Stream::Out.with(|fd| tcgetwinsize(fd)),
        tcgetwinsize(std::io::stdin()),
    ];
    let widths = sizes.into_iter().flatten().map(|size| usize::from(size.ws_col));
    widths.filter(|width| *width > 0).min()
}

/// Matches runs of characters that are or may be invisible.
static BLANKS: LazyLock<Regex> = LazyLock::new(|| {
    let more = r"\x{34f}\x{115f}\x{1160}\x{200c}\x{200d}\x{2800}\x{3164}\x{fe00}-\x{fe0f}\x{ffa0}";
    Regex::new(&format!(r"[\s{more}]+")).expect("the pattern is valid")
});

/// Shows tabs and counts long runs of blanks in a line. Its other characters must be visible already.
pub(super) fn squeeze_blanks(line: &str) -> String {
    let squeeze = |run: &Captures<'_>| match run[0].chars().count() {
        blanks if blanks > MAX_BLANKS => format!("‹{blanks} blanks›"),
        _ => run[0].replace('\t', "␉"),
    };
    BLANKS.replace_all(line, squeeze).into_owned()
}

/// The most columns that `c` can take. Terminals differ in which characters are wide.
fn max_columns(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Squeezes the blanks of a line, and splits it into one or more pieces of at most `room` columns. With `at_words`,
/// pieces end after words if possible; otherwise they show the line exactly.
pub(super) fn pieces(line: &str, room: usize, at_words: bool) -> Vec<String> {
    let (mut pieces, line) = (Vec::new(), squeeze_blanks(line));
    let mut rest = &*line;
    loop {
        // A piece has at least one character.
        let fits = fitting(rest, room, max_columns);
        let fits = fits.max(rest.chars().next().map_or(0, char::len_utf8));
        if fits == rest.len() {
            pieces.push(rest.to_owned());
            return pieces;
        }
        let (mut piece, mut more) = rest.split_at(fits);
        if at_words {
            let is_within = !more.starts_with(' ');
            let word = piece.rfind(' ').filter(|at| is_within && *at >= fits / 2);
            (piece, more) = rest.split_at(word.unwrap_or(fits));
            (piece, more) = (piece.trim_end(), more.strip_prefix(' ').unwrap_or(more));
        }
        pieces.push(piece.to_owned());
        rest = more;
    }
}

/// The number of bytes of a line that fit in `room` columns.
fn fitting(line: &str, room: usize, columns: impl Fn(char) -> usize) -> usize {
    let mut taken = 0;
    let mut cut = line.char_indices().filter(|(_, c)| {
        taken += columns(*c);
        taken > room
    });
    cut.next().map_or(line.len(), |(at, _)| at)
}

/// The columns of a single character. A character without a width may widen its neighbour by at most one column.
fn columns(c: char) -> usize {
    c.width().unwrap_or(1)
}

/// Puts a visible text in rows behind the bar.
pub(super) fn behind_bar(text: &str, width: usize) -> String {
    let room = width - BAR.len();
    let rows = text.split('\n').flat_map(|line| pieces(line, room, false));
    rows.map(|row| format!("{}\n", format!("{BAR}{row}").trim_end())).collect()
}

/// A labelled property of an operation. Its continuation rows begin with the bar.
pub(super) fn field(label: &str, text: &str, width: usize) -> String {
    let label = format!("  {:<8}", format!("{label}:"));
    let gap = " ".repeat(label.len() - BAR.len());
    let rows = pieces(text, width - label.len(), true).join(&format!("\n{BAR}{gap}"));
    format!("{label}{rows}\n")
}

/// Cuts a line to `room` columns after squeezing its blanks.
pub(super) fn cut_squeezed(line: &str, room: usize) -> String {
    cut_end(&squeeze_blanks(line), room)
}

/// The width of a text without control characters, in columns.
pub(super) fn display_width(text: &str) -> usize {
    text.width()
}

/// The beginning of a line in at most `room` columns, with all characters visible.
pub(super) fn cut_end(line: &str, room: usize) -> String {
    let line = visible_line(line);
    if display_width(&line) <= room {
        return line.into_owned();
    }
    let begin = &line[..fitting(&line, room.saturating_sub(1), columns)];
    let more = if room > 0 { "…" } else { "" };
    format!("{}{more}", begin.trim_end())
}

/// The end of a line in at most `room` columns. Always begins with `…`, because the beginning of the line is unknown.
pub(super) fn cut_start(line: &str, room: usize) -> String {
    let reversed: String = visible_line(line).chars().rev().collect();
    let fits = fitting(&reversed, room.saturating_sub(1), columns);
    let end: String = reversed[..fits].chars().rev().collect();
    let more = if room > 0 { "…" } else { "" };
    format!("{more}{}", end.trim_start())
}

/// The least width to which text is wrapped.
const MIN_WRAP_WIDTH: usize = 20;
/// A label must end before this byte of a line.
const MAX_LABEL: usize = 24;

/// Wraps lines between words into rows of at most `width` columns. Returns which blanks to replace, and by what. Text
/// in backticks stays together, because it may be copied. The further rows of a line are aligned with the text after
/// its label, or indented by two. A word that is wider than a row is not broken.
pub(super) fn wrap(text: &str, width: usize) -> Vec<(Range<usize>, String)> {
    let (mut breaks, mut begin) = (Vec::new(), 0);
    for line in text.split('\n').filter(|_| width >= MIN_WRAP_WIDTH) {
        let hang = hanging_indent(line, width);
        let (mut row, mut indent) = (0, 0);
        for word in words(line, width - hang) {
            let is_wide = indent + display_width(&line[row..word.end]) > width;
            let blanks = line[..word.start].trim_end_matches(' ').len();
            if is_wide && row < blanks && blanks < word.start {
                breaks.push((begin + blanks..begin + word.start, format!("\n{:hang$}", "")));
                (row, indent) = (word.start, hang);
            }
        }
        begin += line.len() + 1;
    }
    breaks
}

/// The indentation of the continuation rows of a line.
fn hanging_indent(line: &str, width: usize) -> usize {
    let leading = line.len() - line.trim_start_matches(' ').len();
    let mut labelled = line.char_indices().filter(|(at, c)| {
        *c != ' ' && *at > leading && *at <= MAX_LABEL && line[..*at].ends_with("  ")
    });
    // Keeping a path in one piece is more important than the alignment.
    let has_room = |hang: &usize| {
        *hang <= width / 2 && line.split(' ').all(|word| display_width(word) <= width - hang)
    };
    let after_label = labelled.next_back().map(|(at, _)| display_width(&line[..at]));
    after_label.filter(has_room).unwrap_or(leading + 2).min(width / 2)
}

/// Matches words, and text in backticks together with the characters next to it.
static WORDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("(?:[^ `]*`[^`]*`)+[^ `]*|[^ ]+").expect("the pattern is valid"));

/// The words of a line. Text in backticks is one word if it fits in one row.
fn words(line: &str, room: usize) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    for found in WORDS.find_iter(line) {
        let (mut at, fits) = (found.start(), display_width(found.as_str()) <= room);
        for word in found.as_str().split(|c| c == ' ' && !fits) {
            words.push(at..at + word.len());
            at += word.len() + 1;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::Styled;

    #[test]
    fn every_row_has_the_bar_and_fits() {
        let text = format!("sh ./evil.sh;{}\tx\n\n{}", " ".repeat(500), "宽x".repeat(99));
        let rows = behind_bar(&text, 40);
        let rows: Vec<&str> = rows.lines().collect();
        assert_eq!(rows[0], "  | sh ./evil.sh;‹501 blanks›x");
        for row in &rows {
            assert!(row.starts_with("  |"), "{row}");
            assert!(row.chars().map(max_columns).sum::<usize>() <= 40, "{row}");
        }
        assert_eq!(rows[1], "  |");
        let joined: String = rows[2..].iter().map(|row| &row[BAR.len()..]).collect();
        assert_eq!(joined, "宽x".repeat(99));
    }

    #[test]
    fn few_blanks_are_shown_as_they_are() {
        assert_eq!(squeeze_blanks("a        b"), "a        b");
        assert_eq!(squeeze_blanks("a         b\u{2800}"), "a‹9 blanks›b\u{2800}");
        assert_eq!(squeeze_blanks("\ta"), "␉a");
    }

    #[test]
    fn long_fields_and_lines_fit() {
        let told = field("Why", &"w".repeat(100), 60);
        let rows: Vec<_> = told.lines().collect();
        assert_eq!(rows[0], format!("  Why:    {}", "w".repeat(50)));
        assert_eq!(rows[1], format!("  |       {}", "w".repeat(50)));
        assert_eq!(cut_squeezed("ls", 10), "ls");
        assert_eq!(cut_squeezed("ls -la /tmp", 10), "ls -la /t…");
    }

    #[test]
    fn lines_are_cut_by_columns_and_not_by_characters() {
        assert_eq!(cut_end("short", 5), "short");
        assert_eq!(cut_end("shorter", 5), "shor…");
        assert_eq!(cut_end("宽宽宽", 6), "宽宽宽");
        assert_eq!(cut_end("宽宽宽", 5), "宽宽…");
        assert_eq!(cut_end("宽宽宽", 4), "宽…");
        assert_eq!(cut_end("a word", 3), "a…");
        assert_eq!(cut_end("naïve", 5), "naïve");
        assert_eq!(cut_end("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
        assert_eq!(cut_start("宽宽宽", 5), "…宽宽");
        assert_eq!(cut_start("progress", 5), "…ress");
        for room in 0..9 {
            for line in [
                "宽x宽y宽",
                "x宽y宽z",
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} xyz",
                "plain text",
            ] {
                assert!(display_width(&cut_end(line, room)) <= room, "{line} in {room}");
                assert!(display_width(&cut_start(line, room)) <= room, "{line} in {room}");
            }
        }
    }

    #[test]
    fn nothing_in_a_line_acts_on_the_terminal() {
        assert_eq!(cut_end("\u{1b}[31mred\u{1b}[0m\t\u{7}", 40), "␛[31mred␛[0m␉␇");
        assert_eq!(cut_start("\u{1b}[2J\u{202e}x", 40), "…␛[2J<U+202E>x");
    }

    fn wrapped(text: &str, width: usize) -> String {
        Styled::from(text).with_blanks(&wrap(text, width)).as_str().to_owned()
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(
            wrapped("a file was changed since, and nothing was touched\nshort", 30),
            "a file was changed since, and\n  nothing was touched\nshort"
        );
        let row = "exactly as wide as the row";
        assert_eq!(wrapped(row, row.len()), row);
        assert_eq!(wrapped("宽宽宽宽宽 宽宽宽宽宽 宽", 20), "宽宽宽宽宽\n  宽宽宽宽宽 宽");
        // Blanks in the text stay unless a row ends there.
        assert_eq!(
            wrapped("a   b        c and more words", 21),
            "a   b        c and\n  more words"
        );
    }

    #[test]
    fn what_has_a_label_goes_on_below_what_follows_it() {
        assert_eq!(
            wrapped("ok  commands    are isolated, all of them", 34),
            "ok  commands    are isolated, all\n                of them"
        );
        assert_eq!(wrapped("a = 1  (/a/path/of/this)", 20), "a = 1\n  (/a/path/of/this)");
        assert_eq!(wrapped("  Decide: yes or no or else", 20), "  Decide: yes or no\n    or else");
    }

    #[test]
    fn what_may_be_copied_stays_whole() {
        let path = "/a/folder/that/has/a/name/wider/than/this";
        assert_eq!(wrapped(&format!("It is in {path}."), 20), format!("It is in\n  {path}."));
        assert_eq!(wrapped(path, 20), path);
        assert_eq!(
            wrapped("Then type `deaddrop new x` in it", 20),
            "Then type\n  `deaddrop new x`\n  in it"
        );
    }

    #[test]
    fn a_question_keeps_its_end() {
        assert_eq!(wrapped("Do you agree to that? [y/N] ", 27), "Do you agree to that? [y/N] ");
        assert_eq!(wrapped("Do you agree to that? [y/N] ", 24), "Do you agree to that?\n  [y/N] ");
        assert_eq!(wrapped("a narrow one", 5), "a narrow one");
    }
}
