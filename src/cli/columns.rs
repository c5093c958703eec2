//! How wide a text is on the terminal, and what of it fits into so many columns.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::visible_line;

/// How many columns a text takes that acts on no terminal.
pub(super) fn wide(text: &str) -> usize {
    text.width()
}

/// The begin of a line in at most `room` columns, with everything in it visible.
pub(super) fn begin(line: &str, room: usize) -> String {
    let line = visible_line(line);
    if wide(&line) <= room {
        return line.into_owned();
    }
    let fits = taken(line.chars(), room.saturating_sub(1));
    let begin: String = line.chars().take(fits).collect();
    let more = if room > 0 { "…" } else { "" };
    format!("{}{more}", begin.trim_end())
}

/// The same of the end of a line of which the begin is not known.
pub(super) fn end(line: &str, room: usize) -> String {
    let line = visible_line(line);
    let fits = taken(line.chars().rev(), room.saturating_sub(1));
    let skipped = line.chars().count() - fits;
    let end: String = line.chars().skip(skipped).collect();
    let more = if room > 0 { "…" } else { "" };
    format!("{more}{}", end.trim_start())
}

/// How many of these characters fit.
fn taken(line: impl Iterator<Item = char>, room: usize) -> usize {
    let mut left = room;
    line.take_while(|c| {
        // What has no width may join what stands beside it, at most by a column.
        let fits = left.checked_sub(c.width().unwrap_or(1));
        left = fits.unwrap_or_default();
        fits.is_some()
    })
    .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_by_columns_and_not_by_characters() {
        assert_eq!(begin("short", 5), "short");
        assert_eq!(begin("shorter", 5), "shor…");
        assert_eq!(begin("宽宽宽", 6), "宽宽宽");
        assert_eq!(begin("宽宽宽", 5), "宽宽…");
        assert_eq!(begin("宽宽宽", 4), "宽…");
        assert_eq!(begin("a word", 3), "a…");
        assert_eq!(begin("naïve", 5), "naïve");
        assert_eq!(begin("e\u{301}e\u{301}e\u{301}", 3), "e\u{301}e\u{301}e\u{301}");
        assert_eq!(end("宽宽宽", 5), "…宽宽");
        assert_eq!(end("progress", 5), "…ress");
        for room in 0..9 {
            for line in [
                "宽x宽y宽",
                "x宽y宽z",
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} xyz",
                "plain text",
            ] {
                assert!(wide(&begin(line, room)) <= room, "{line} in {room}");
                assert!(wide(&end(line, room)) <= room, "{line} in {room}");
            }
        }
    }

    #[test]
    fn nothing_in_a_line_acts_on_the_terminal() {
        assert_eq!(begin("\u{1b}[31mred\u{1b}[0m\t\u{7}", 40), "␛[31mred␛[0m␉␇");
        assert_eq!(end("\u{1b}[2J\u{202e}x", 40), "…␛[2J<U+202E>x");
    }
}
