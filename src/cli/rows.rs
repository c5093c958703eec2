//! Text of a model's in rows of the terminal's width: none of it begins a row of its own, and nothing
//! of it is pushed out of sight by blanks.

use crate::terminal::Stream;

/// What every row of a model's text begins with.
pub(super) const BAR: &str = "  | ";
/// As many blanks in a row are shown as they are.
const FEW_BLANKS: usize = 8;
/// The width of a terminal that does not say.
const USUAL: usize = 80;
/// Less cannot be written in.
const NARROWEST: usize = 40;

/// How wide the terminal is, for texts that need some room.
pub(super) fn width() -> usize {
    own_width().max(NARROWEST)
}

/// How wide the terminal is, be it ever so narrow.
pub(super) fn own_width() -> usize {
    said_width().unwrap_or(USUAL)
}

/// The same, where somebody says it.
pub(super) fn said_width() -> Option<usize> {
    let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|width| *width > 0);
    terminal().or_else(said)
}

/// How wide the terminal says that it is.
pub(super) fn terminal() -> Option<usize> {
    use rustix::termios::tcgetwinsize;

    let sizes = [
        Stream::Err.with(|fd| tcgetwinsize(fd)),
        Stream::Out.with(|fd| tcgetwinsize(fd)),
        tcgetwinsize(std::io::stdin()),
    ];
    let widths = sizes.into_iter().flatten().map(|size| usize::from(size.ws_col));
    widths.filter(|width| *width > 0).min()
}

/// A line, already visible, with its tabs shown and its long runs of blanks counted.
pub(super) fn squeezed(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut run = String::new();
    for c in line.chars() {
        if is_blank(c) {
            run.push(c);
        } else {
            end_run(&mut shown, &mut run);
            shown.push(c);
        }
    }
    end_run(&mut shown, &mut run);
    shown
}

fn end_run(shown: &mut String, run: &mut String) {
    let blanks = run.chars().count();
    if blanks > FEW_BLANKS {
        shown.push_str(&format!("‹{blanks} blanks›"));
    } else {
        shown.push_str(&run.replace('\t', "␉"));
    }
    run.clear();
}

/// Whether nothing is seen where `c` stands.
fn is_blank(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\u{34f}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{200c}'
                | '\u{200d}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
        )
}

/// How many columns `c` takes at most: what is wide is not the same at every terminal.
fn columns(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// A squeezed line in pieces of at most `room` columns; at least one.
pub(super) fn pieces(line: &str, room: usize) -> Vec<String> {
    let (mut pieces, line) = (Vec::new(), squeezed(line));
    let mut rest = &*line;
    loop {
        let (piece, more) = rest.split_at(first_of(rest, room));
        pieces.push(piece.to_owned());
        if more.is_empty() {
            return pieces;
        }
        rest = more;
    }
}

/// How many bytes of a line fit in so many columns; its first character always does.
fn first_of(line: &str, room: usize) -> usize {
    let mut taken = 0;
    let mut ends = line.char_indices().filter(|(at, c)| {
        taken += columns(*c);
        taken > room && *at > 0
    });
    ends.next().map_or(line.len(), |(at, _)| at)
}

/// The same of a text that is read and not compared: a piece ends behind a word where it can.
fn in_words(line: &str, room: usize) -> Vec<String> {
    let (mut found, line) = (Vec::new(), squeezed(line));
    let mut rest = &*line;
    loop {
        let first = &rest[..first_of(rest, room)];
        if first.len() == rest.len() {
            found.push(first.to_owned());
            return found;
        }
        let at = if rest[first.len()..].starts_with(' ') {
            first.len()
        } else {
            first.rfind(' ').filter(|at| *at >= first.len() / 2).unwrap_or(first.len())
        };
        found.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].strip_prefix(' ').unwrap_or(&rest[at..]);
    }
}

/// A visible text in rows that begin with the bar.
pub(super) fn barred(text: &str, width: usize) -> Vec<String> {
    let room = width - BAR.len();
    let lines = text.split('\n').flat_map(|line| pieces(line, room));
    lines.map(|piece| format!("{BAR}{piece}").trim_end().to_owned()).collect()
}

/// Something that is said of an operation, behind its label; further rows begin with the bar.
pub(super) fn field(label: &str, text: &str, width: usize) -> String {
    let label = format!("  {:<8}", format!("{label}:"));
    let gap = " ".repeat(label.len() - BAR.len());
    let rows = in_words(text, width - label.len()).join(&format!("\n{BAR}{gap}"));
    format!("{label}{rows}\n")
}

/// The begin of a line that fits into so many columns.
pub(super) fn cut(line: &str, room: usize) -> String {
    super::columns::begin(&squeezed(line), room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_bar_and_fits() {
        let text = format!("sh ./evil.sh;{}\tx\n\n{}", " ".repeat(500), "宽x".repeat(99));
        let rows = barred(&text, 40);
        assert_eq!(rows[0], "  | sh ./evil.sh;‹501 blanks›x");
        for row in &rows {
            assert!(row.starts_with("  |"), "{row}");
            assert!(row.chars().map(columns).sum::<usize>() <= 40, "{row}");
        }
        assert_eq!(rows[1], "  |");
        let joined: String = rows[2..].iter().map(|row| &row[BAR.len()..]).collect();
        assert_eq!(joined, "宽x".repeat(99));
    }

    #[test]
    fn few_blanks_are_shown_as_they_are() {
        assert_eq!(squeezed("a        b"), "a        b");
        assert_eq!(squeezed("a         b\u{2800}"), "a‹9 blanks›b\u{2800}");
        assert_eq!(squeezed("\ta"), "␉a");
    }

    #[test]
    fn long_fields_and_lines_fit() {
        let told = field("Why", &"w".repeat(100), 60);
        let rows: Vec<_> = told.lines().collect();
        assert_eq!(rows[0], format!("  Why:    {}", "w".repeat(50)));
        assert_eq!(rows[1], format!("  |       {}", "w".repeat(50)));
        assert_eq!(cut("ls", 10), "ls");
        assert_eq!(cut("ls -la /tmp", 10), "ls -la /t…");
    }
}
