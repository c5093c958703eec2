//! Parts of files among the requested contents: which lines their markers name, their numbers, and
//! what the results say of them. Pure.

use crate::protocol::Lines;
use crate::text::{byte_count, count, shell_word};

/// What the markers of a file's part name it by.
pub(super) fn name(path: &str, lines: &Lines) -> String {
    format!("{path} ({})", range(lines))
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

/// Whether a part is the whole file.
pub(super) fn are_all(lines: &Lines) -> bool {
    let Lines { first, last, total, uncounted, cut, within_line, .. } = *lines;
    first <= 1 && last == total && !(uncounted || cut || within_line)
}

/// The first `shown` lines of a part, of which no more fit.
pub(super) fn first(lines: &Lines, shown: usize) -> Lines {
    let last = (lines.first + shown).saturating_sub(1);
    Lines { last, cut: true, within_line: false, length: None, ..*lines }
}

/// The text of a part, each line behind its number where that was asked for.
pub(super) fn numbered(text: &str, lines: &Lines) -> String {
    if !lines.numbered {
        return text.to_owned();
    }
    let number = |(n, line): (usize, &str)| format!("{}| {line}", lines.first + n);
    text.split_inclusive('\n').enumerate().map(number).collect()
}

/// What the results say of a part that is shown; of its last line only the first `within` characters,
/// where that is not all.
pub(super) fn told(path: &str, size: u64, lines: &Lines, within: Option<usize>) -> String {
    let Lines { last, cut, length, .. } = *lines;
    let mut told = format!("'{path}' is shown below ({}; {}", byte_count(size), range(lines));
    if lines.numbered && lines.first > 0 {
        told.push_str(", each behind its number and `| `");
    }
    if let Some(within) = within {
        told.push_str(&beginning(&format!("line {last}"), length, within));
    } else if cut {
        told.push_str(&format!("; no more fits: for more ask with start_line=\"{}\"", last + 1));
    }
    told + ")"
}

/// Said with a line of which only the first `shown` characters are.
pub(super) fn beginning(line: &str, length: Option<u64>, shown: usize) -> String {
    let length = length.map_or("longer than was looked at".to_owned(), byte_count);
    format!("; of {line} ({length}) only the first {}", count(shown, "character"))
}

/// How to see more of a line that is too long to be shown whole: a command, behind the first `shown`
/// characters.
pub(super) fn cut_out(path: &str, line: usize, shown: usize) -> String {
    /// As many characters of a line are asked for as a command's output has.
    const NEXT: usize = 4_000;
    let path = shell_word(path);
    format!("sed -n '{line}p' {path} | cut -c{}-{}", shown + 1, shown + NEXT)
}

/// Said of lines that stand within the whole file, which is shown, too.
pub(super) fn within_whole(path: &str, lines: &Lines) -> String {
    format!("'{path}' is shown below as a whole ({} was asked for)", range(lines))
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
        assert_eq!(name("a.py", &lines(3, 9, 120)), "a.py (lines 3-9 of 120)");
        assert_eq!(name("a.py", &lines(3, 3, 3)), "a.py (line 3 of 3)");
        assert_eq!(name("a.py", &lines(0, 0, 0)), "a.py (empty)");
        let uncounted = Lines { uncounted: true, ..lines(3, 9, 1000) };
        assert_eq!(name("a.py", &uncounted), "a.py (lines 3-9 of more than 1000)");
    }

    #[test]
    fn a_part_may_be_all() {
        assert!(are_all(&lines(1, 9, 9)) && are_all(&lines(0, 0, 0)));
        assert!(!are_all(&lines(2, 9, 9)) && !are_all(&lines(1, 8, 9)));
        assert!(!are_all(&Lines { uncounted: true, ..lines(1, 9, 9) }));
        assert!(!are_all(&Lines { within_line: true, cut: true, ..lines(1, 1, 1) }));
    }

    #[test]
    fn each_line_stands_behind_its_number() {
        let asked = Lines { numbered: true, ..lines(9, 11, 11) };
        assert_eq!(numbered("a\n\n--- b ---", &asked), "9| a\n10| \n11| --- b ---");
        assert_eq!(numbered("", &Lines { numbered: true, ..lines(0, 0, 0) }), "");
        assert_eq!(numbered("a\n", &lines(1, 1, 1)), "a\n");
    }
}
