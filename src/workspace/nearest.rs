//! Where a text stands that an edit did not find, when white space is left out of account: so that
//! who sent it sees the difference. Pure.

use std::ops::Range;

use memchr::memmem;

use crate::text::is_hazard;

/// How many characters of a text are quoted.
const QUOTED: usize = 200;
/// How many lines are shown.
const LINES: usize = 3;

/// The place in `bytes` that is most like `text`, in words: `the nearest is line 3: "a\tb"`.
pub(super) fn nearest(bytes: &[u8], text: &str) -> Option<String> {
    let bytes = String::from_utf8_lossy(bytes);
    let found = same_but_for_blanks(&bytes, text).or_else(|| first_line(&bytes, text))?;
    let ends = text.ends_with('\n');
    let begin = bytes[..found.start].rfind('\n').map_or(0, |at| at + 1);
    let end = bytes[found.end..].find('\n').map_or(bytes.len(), |at| found.end + at + 1);
    let lines: Vec<&str> = bytes[begin..end].split_inclusive('\n').collect();
    // What is the same at the beginning need not be shown.
    let same = match lines.len() {
        ..=LINES => 0,
        n => {
            let pairs = lines.iter().zip(text.split_inclusive('\n'));
            pairs.take_while(|(line, sent)| **line == *sent).count().min(n - 1)
        }
    };
    let shown = &lines[same..lines.len().min(same + LINES)];
    let first = memchr::memchr_iter(b'\n', &bytes.as_bytes()[..begin]).count() + same + 1;
    let lines = match shown.len() {
        1 => format!("line {first}"),
        n => format!("lines {first} to {}", first + n - 1),
    };
    let shown = shown.concat();
    let shown = if ends { &*shown } else { shown.strip_suffix('\n').unwrap_or(&shown) };
    // Of a line that is much longer than what was sought, that alone.
    let part = &bytes[found];
    let shown = if shown.len() > QUOTED && part.len() < shown.len() / 2 { part } else { shown };
    let verb = if lines.starts_with("lines") { "are" } else { "is" };
    Some(format!("the nearest {verb} {lines}: {}", quoted(shown)))
}

/// Where a text stands when white space is left out of account.
pub(super) fn same_but_for_blanks(bytes: &str, text: &str) -> Option<Range<usize>> {
    let sought = squeezed(text);
    if sought.is_empty() {
        return None;
    }
    let at = memmem::find(squeezed(bytes).as_bytes(), sought.as_bytes())?;
    Some(unsqueezed(bytes, at, sought.len()))
}

/// The first line that equals the first of `text` that is not blank.
fn first_line(bytes: &str, text: &str) -> Option<Range<usize>> {
    let sought = text.lines().map(squeezed).find(|line| !line.is_empty())?;
    // A bracket alone is like many others.
    if !sought.contains(char::is_alphanumeric) {
        return None;
    }
    let mut begin = 0;
    for line in bytes.split_inclusive('\n') {
        let seen = line.chars().filter(|c| !is_left_out(*c));
        if seen.eq(sought.chars()) {
            return Some(begin..begin + line.trim_end().len());
        }
        begin += line.len();
    }
    None
}

pub(super) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !is_left_out(*c)).collect()
}

/// Where that part of the squeezed text stands in `text`; it is not empty.
fn unsqueezed(text: &str, at: usize, length: usize) -> Range<usize> {
    let (mut seen, mut begin, mut end) = (0, 0, text.len());
    for (n, c) in text.char_indices().filter(|(_, c)| !is_left_out(*c)) {
        if seen == at {
            begin = n;
        }
        seen += c.len_utf8();
        if seen >= at + length {
            end = n + c.len_utf8();
            break;
        }
    }
    begin..end
}

/// White space, and what cannot be seen.
fn is_left_out(c: char) -> bool {
    c.is_whitespace() || is_hazard(c)
}

/// A text as a JSON string, in which no white space can be taken for another; of a long one both
/// ends.
pub(super) fn quoted(text: &str) -> String {
    let length = text.chars().count();
    if length <= QUOTED {
        return json(text);
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(QUOTED / 2)], &text[at(length - QUOTED / 2)..]);
    let between = crate::text::count(length - QUOTED, "character");
    format!("{} … {} ({between} between them)", json(head), json(tail))
}

fn json(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    for c in serde_json::Value::from(text).to_string().chars() {
        if c != ' ' && is_left_out(c) {
            let units = &mut [0; 2];
            c.encode_utf16(units)
                .iter()
                .for_each(|unit| quoted.push_str(&format!("\\u{unit:04x}")));
        } else {
            quoted.push(c);
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protocol::{Change, Replacement};
    use crate::workspace::changed;

    #[track_caller]
    fn check(bytes: &str, text: &str, told: Option<&str>) {
        assert_eq!(nearest(bytes.as_bytes(), text).as_deref(), told);
    }

    #[test]
    fn the_place_that_differs_in_white_space_is_shown() {
        check("x\ny\na\tb\n", "a b", Some(r#"the nearest is line 3: "a\tb""#));
        check("a\n", "a \n", Some(r#"the nearest is line 1: "a\n""#));
        check(
            "if x:\n    y\n",
            "if x:\n  y\n",
            Some(r#"the nearest are lines 1 to 2: "if x:\n    y\n""#),
        );
        check("a\r\nb\r\n", "a\nb", Some(r#"the nearest are lines 1 to 2: "a\r\nb\r""#));
        check("let x = f( 1 );\n", "f(1)", Some(r#"the nearest is line 1: "let x = f( 1 );""#));
        check("a\u{a0}b\u{200b}", "a b", Some(r#"the nearest is line 1: "a\u00a0b\u200b""#));
        check("é ab", "é  a", Some(r#"the nearest is line 1: "é ab""#));
    }

    #[test]
    fn else_the_line_that_the_text_begins_with() {
        check(
            "x\n  foo(1)\n  bar(2)\n",
            "\nfoo(1)\nbar(3)\n",
            Some(r#"the nearest is line 2: "  foo(1)\n""#),
        );
        check("x\n}\n", "}\ny", None);
        check("x\n", "y", None);
        check("x\n", " \n", None);
        check("", "y", None);
    }

    #[test]
    fn of_many_lines_those_are_shown_that_differ_first() {
        check(
            "0\n1\n2\n3\n  4\n5\n6\n7\n",
            "1\n2\n3\n4\n5\n6\n7\n",
            Some(r#"the nearest are lines 5 to 7: "  4\n5\n6\n""#),
        );
        check("1\n2\n3\n4 \n", "1\n2\n3\n4\n", Some(r#"the nearest is line 4: "4 \n""#));
    }

    #[test]
    fn long_texts_are_quoted_with_both_ends() {
        assert_eq!(quoted("a \t\n\""), r#""a \t\n\"""#);
        let long = format!("a{}b ", "x".repeat(300));
        let (head, tail) = ("x".repeat(99), "x".repeat(98));
        assert_eq!(
            quoted(&long),
            format!("\"a{head}\" … \"{tail}b \" (103 characters between them)")
        );
        let line = format!("{}f( 1 ){}", "x".repeat(500), "y".repeat(500));
        check(&line, "f(1)", Some(r#"the nearest is line 1: "f( 1 )""#));
    }

    #[test]
    fn an_edit_that_finds_nothing_says_so_to_the_letter() {
        let path = crate::protocol::RelPath::parse("x").unwrap();
        let edit = |old: &str, new: &str| Replacement { old: old.into(), new: new.into() };
        let said = |edits: &[Replacement]| {
            changed(&path, b"a\n\tb\n", &Change::First(edits.to_vec())).unwrap_err().reason
        };
        assert_eq!(
            said(&[edit("b ", "c")]),
            r#"oldContent not found in 'x'; nothing was changed. It must stand there to the letter, with its white space: "b "; the nearest is line 2: "\tb""#
        );
        // In what the edits before it made.
        assert_eq!(
            said(&[edit("a", "1\n2"), edit("a", "c"), edit("b", "d")]),
            r#"edit 2 of 3: oldContent not found in 'x', as the edits before it left the file; nothing was changed. It must stand there to the letter, with its white space: "a""#
        );
        assert!(said(&[edit("a", "1\n2"), edit(" b", "c")]).ends_with(r#"is line 3: "\tb""#));
    }

    proptest! {
        #[test]
        fn whatever_was_sent_is_compared(
            bytes in prop::collection::vec(prop::sample::select(b"ab \n\t\xc3\xa9\xff".to_vec()), 0..40),
            text in "[ab \n\té\u{200b}]{0,8}",
        ) {
            let told = nearest(&bytes, &text);
            let has_it = !squeezed(&text).is_empty()
                && squeezed(&String::from_utf8_lossy(&bytes)).contains(&squeezed(&text));
            prop_assert!(!has_it || told.is_some());
        }

        #[test]
        fn what_is_quoted_is_json(text in any::<String>()) {
            prop_assume!(text.chars().count() <= QUOTED);
            prop_assert_eq!(serde_json::from_str::<String>(&quoted(&text)).unwrap(), text);
        }
    }
}
