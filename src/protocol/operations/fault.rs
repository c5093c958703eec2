//! What is wrong with a message: where, in plain words, and how it should be.

use std::fmt;

use serde_json::Value;

use crate::text::{count, visible_line};

/// So many faults are told of one message; the rest is counted.
const TOLD: usize = 100;
/// So many characters are quoted of what was sent.
const QUOTED: usize = 60;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, as a JSON path: `$.operations[2].timeout`. `$` is the message itself.
    pub path: String,
    /// What is wrong there, without a full stop.
    pub problem: String,
    /// What would be right there.
    pub form: String,
}

impl fmt::Display for Fault {
    /// One line, whatever was sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}. Correct form: {}", self.path, self.problem, self.form)
    }
}

/// All that is wrong with a message, in the order of the message; never empty where it is an error.
///
/// Printed, each fault stands on a line of its own. At most 100 are kept, and the rest is counted.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::parse_operation;
/// let faults = parse_operation(r#"{"type": "shell", "command": "ls", "timeout": 5}"#).unwrap_err();
/// assert_eq!(
///     faults.to_string(),
///     "$.timeout: 5 is less than 1000. Correct form: \"timeout\": 30000 \
///      (milliseconds, a whole number from 1000 to 3600000)"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    told: Vec<Fault>,
    more: usize,
    /// Whether one of them says its line.
    placed: bool,
}

impl Faults {
    /// The faults that were kept, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.told.iter()
    }

    /// How many there are, with those that were not kept.
    pub fn count(&self) -> usize {
        self.told.len() + self.more
    }

    pub(super) fn add(&mut self, at: &At, problem: impl Into<String>, form: impl Into<String>) {
        if self.told.len() < TOLD {
            let (problem, form) = (problem.into(), form.into());
            self.told.push(Fault { path: at.to_string(), problem, form });
        } else {
            self.more += 1;
        }
    }

    /// The same of a problem that says its line, so that no other is to be told.
    pub(super) fn add_placed(&mut self, at: &At, problem: String, form: &str) {
        self.placed = true;
        self.add(at, problem, form);
    }

    /// What goes before the faults of what begins on this line, unless they say a line.
    pub(super) fn line_before(&self, line: usize) -> String {
        if self.placed { String::new() } else { format!("Line {line}: ") }
    }

    /// `value`, if nothing was found wrong.
    pub(super) fn or<T>(self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.count() == 0 => Ok(value),
            _ => Err(self),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.told.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            fault.fmt(f)?;
        }
        if self.more > 0 {
            write!(f, "\nand {}", count(self.more, "more fault"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// A place in a message. Made into text only where there is a fault.
#[derive(Clone, Copy)]
pub(super) enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl At<'_> {
    pub(super) fn key<'a>(&'a self, key: &'a str) -> At<'a> {
        At::Key(self, key)
    }

    pub(super) fn index(&self, index: usize) -> At<'_> {
        At::Index(self, index)
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Index(outer, index) => write!(f, "{outer}[{index}]"),
            Self::Key(outer, key) if is_word(key) => write!(f, "{outer}.{key}"),
            Self::Key(outer, key) => write!(f, "{outer}[\"{}\"]", brief(key)),
        }
    }
}

fn is_word(key: &str) -> bool {
    (1..=QUOTED).contains(&key.len())
        && !key.starts_with(|c: char| c.is_ascii_digit())
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The beginning of what was sent, on one line and with nothing hidden in it.
pub(super) fn brief(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        None => visible_line(text).into_owned(),
        Some((cut, _)) => format!("{}…", visible_line(&text[..cut])),
    }
}

/// What a value is, as a sentence about it goes on: "it is …".
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text \"{}\"", brief(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_json_paths_on_one_line() {
        let (root, list) = (At::Root, At::Root);
        let list = list.key("operations");
        let entry = list.index(2);
        assert_eq!(root.to_string(), "$");
        assert_eq!(entry.key("timeout").to_string(), "$.operations[2].timeout");
        assert_eq!(root.key("a b\n").to_string(), "$[\"a b␊\"]");
        assert_eq!(root.key("").to_string(), "$[\"\"]");
        assert_eq!(root.key("1a").to_string(), "$[\"1a\"]");
        assert_eq!(root.key(&"k".repeat(99)).to_string(), format!("$[\"{}…\"]", "k".repeat(60)));
    }

    #[test]
    fn faults_are_bounded_and_the_rest_is_counted() {
        let mut faults = Faults::default();
        for n in 0..102 {
            faults.add(&At::Root.index(n), "it is wrong", "right");
        }
        assert_eq!((faults.iter().count(), faults.count()), (100, 102));
        let text = faults.to_string();
        assert!(text.starts_with("$[0]: it is wrong. Correct form: right\n$[1]: "), "{text}");
        assert!(text.ends_with("$[99]: it is wrong. Correct form: right\nand 2 more faults"));
    }

    #[test]
    fn nothing_wrong_and_a_value_is_a_value() {
        assert_eq!(Faults::default().or(Some(1)), Ok(1));
        let mut faults = Faults::default();
        faults.add(&At::Root, "it is wrong", "right");
        assert_eq!(faults.clone().or(Some(1)), Err(faults));
    }
}
