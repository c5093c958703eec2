//! Between text and JSON: values one by one, so that one that cannot be read does not take the
//! others with it, and errors in words.
//!
//! Where a key stands twice in an object, the last one counts, as in `JSON.parse`.

use std::collections::BTreeMap;
use std::fmt;

use memchr::{memchr_iter, memchr2};
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use crate::protocol::bounded;

/// So many bytes are shown on each side of an error.
const NEAR: usize = 24;

/// The fields of an object, their values not read yet.
pub(super) type RawFields<'a> = BTreeMap<String, &'a RawValue>;

/// Calls `each` with the text of each element of the list that `list` is.
pub(super) fn elements<'a>(list: &'a str, each: impl FnMut(&'a str)) -> Result<(), Error> {
    struct Each<F>(F);
    impl<'a, F: FnMut(&'a str)> Visitor<'a> for Each<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'a>>(mut self, mut seq: A) -> Result<(), A::Error> {
            while let Some(element) = seq.next_element::<&RawValue>()? {
                (self.0)(element.get());
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(list).deserialize_seq(Each(each))
}

/// Reads `part`, a piece of `whole`; what is wrong with it is told by its line in `whole`.
pub(super) fn value(part: &str, lines: &mut Lines) -> Result<Value, String> {
    bounded::from_str(part).map_err(|error| in_words(&error, part, lines))
}

/// Why `part` is not JSON: what, on which line, and the text around it.
pub(super) fn in_words(error: &Error, part: &str, lines: &mut Lines) -> String {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(&*told, |(what, _)| what);
    let at = offset(error, part);
    let what = match what {
        _ if error.is_eof() => "it ends before it is complete; was it cut off?",
        w if w.starts_with("control character") => {
            "a line break, tab or other control character stands within a text (write \\n, \\t)"
        }
        w if w.starts_with("recursion limit") => "it is nested deeper than 127 levels",
        w if w.contains("hex escape") || w.contains("surrogate") => {
            "a \\u escape is no character (surrogates come in pairs)"
        }
        w if w.starts_with("invalid escape") => {
            "a backslash stands before a character that is not escaped (write \\\\ for a backslash)"
        }
        w if w.starts_with("number out of range") => "a number is too large",
        w if w.starts_with("key must be a string") => "a key has no double quotes around it",
        "trailing comma" => "a comma stands before a closing bracket",
        "expected value" => match part.as_bytes().get(at) {
            Some(b']' | b'}') => "a comma stands before a closing bracket",
            Some(b'/') => "a comment stands in it",
            _ => "there is no value where one should be",
        },
        other => other,
    };
    let line = lines.line_of(lines.offset_of(part) + at.min(part.len()));
    let from = part.floor_char_boundary(at.saturating_sub(NEAR));
    let to = part.ceil_char_boundary((at + NEAR).min(part.len()));
    let near = crate::text::visible_line(&part[from..to]);
    // Words of the chat often stand behind what was cut off.
    let is_cut = !error.is_eof()
        && !what.starts_with("trailing characters")
        && memchr2(b'}', b']', &part.as_bytes()[at..]).is_none();
    let cut =
        if is_cut { "; nothing behind that closes it: it was cut off there, perhaps" } else { "" };
    format!("it cannot be read as JSON: {what} (line {line}, near `{near}`){cut}")
}

/// Where in `part` reading stopped, in bytes.
pub(super) fn offset(error: &Error, part: &str) -> usize {
    let start = match error.line() {
        0 | 1 => 0,
        line => memchr_iter(b'\n', part.as_bytes()).nth(line - 2).map_or(part.len(), |n| n + 1),
    };
    // In column 0 it is the line break before.
    (start + error.column()).saturating_sub(1).min(part.len())
}

/// Which line a place of a text is on. Asked in order, it looks at the text once.
pub(super) struct Lines<'a> {
    whole: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(whole: &'a str) -> Self {
        Self { whole, at: 0, line: 1 }
    }

    /// Where `part`, a piece of the text, begins in it.
    pub(super) fn offset_of(&self, part: &str) -> usize {
        part.as_ptr().addr().saturating_sub(self.whole.as_ptr().addr()).min(self.whole.len())
    }

    /// The line that the byte is on, counted from 1.
    pub(super) fn line_of(&mut self, offset: usize) -> usize {
        if offset < self.at {
            (self.at, self.line) = (0, 1);
        }
        self.line += memchr_iter(b'\n', &self.whole.as_bytes()[self.at..offset]).count();
        self.at = offset;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        value(text, &mut Lines::of(text)).unwrap_err()
    }

    #[test]
    fn errors_are_told_in_words_with_line_and_place() {
        assert_eq!(
            told("{\n  \"a\": 1,\n  b: 2\n}"),
            "it cannot be read as JSON: a key has no double quotes around it (line 3, near `{␊  \"a\": 1,␊  b: 2␊}`)"
        );
        for (text, words) in [
            ("{\"a\": \"x\ny\"}", "write \\n, \\t) (line 1"),
            ("{\"a\": [1, 2", "was it cut off? (line 1"),
            ("{\"a\": 1,}", "a comma stands before"),
            ("[1, ]", "a comma stands before"),
            ("[1, // x", "a comment stands in it"),
            ("[1, oops]", "no value where"),
            ("{\"a\": 1,\n\nShall I go on?", "closes it: it was cut off there, perhaps"),
            ("\"\\q\"", "write \\\\ for a backslash"),
            ("\"\\ud800\"", "surrogates come in pairs"),
            ("\"\\ud800\\u0041\"", "surrogates come in pairs"),
            ("\"\\uzzzz\"", "escape"),
            ("1e400", "too large"),
            ("{} x", "trailing characters"),
            ("", "cut off"),
        ] {
            assert!(told(text).contains(words), "{text}: {}", told(text));
        }
        assert!(told(&"[".repeat(10_000)).contains("deeper than 127 levels"));
    }

    #[test]
    fn a_part_is_told_of_by_its_line_in_the_whole() {
        let whole = "é\n\n[1,\n oops]";
        let mut lines = Lines::of(whole);
        let error = value(&whole[4..], &mut lines).unwrap_err();
        assert!(error.contains("(line 4, near"), "{error}");
        assert_eq!([lines.line_of(0), lines.line_of(3), lines.line_of(4)], [1, 2, 3]);
    }

    #[test]
    fn elements_are_told_apart_without_being_read() {
        let mut found = Vec::new();
        elements("[1e400, \"\\ud800\" ,{\"a\":[]}, [ ] ]", |part| found.push(part)).unwrap();
        assert_eq!(found, ["1e400", "\"\\ud800\"", "{\"a\":[]}", "[ ]"]);
        assert!(elements("{}", |_| ()).is_err());
    }

    #[test]
    fn of_two_fields_with_one_key_the_last_counts() {
        let fields: RawFields = serde_json::from_str("{\"a\": 1, \"\\u0061\": 2}").unwrap();
        assert_eq!(fields["a"].get(), "2");
        let text = "{\"a\": 1, \"a\": 2}";
        assert_eq!(value(text, &mut Lines::of(text)).unwrap()["a"], 2);
    }
}
