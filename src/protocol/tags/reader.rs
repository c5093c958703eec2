//! Finds the blocks of a reply. Total: whatever the text, there is a list of steps, and the work is
//! linear in its length.

use memchr::{memchr, memmem};

use super::attributes::{self, Opening, brief};
use super::catalogue::{self, Command};
use crate::protocol::{
    Asks, Change, Existing, Invalid, Kind, Operation, PathFault, Reading, RelPath, ShellCommand,
    Step,
};

/// A reply in the tag dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its blocks in order; never empty, since a reply without any is one [`Invalid`].
    pub steps: Vec<Step>,
    /// Whether it ends within a block: it may have been cut off, or not be complete yet.
    pub unclosed: bool,
}

/// Reads a reply (tag protocol, "Inbox Format").
///
/// # Examples
/// ```
/// use deaddrop::protocol::{Asks, Operation, ShellCommand, tags};
/// let reply = tags::parse("Let me look.\n[RUN_COMMAND]\nls -l\n[/RUN_COMMAND]\n");
/// assert_eq!(reply.steps.len(), 1);
/// assert_eq!(reply.steps[0].asks, Asks::Operation(Operation::Run(ShellCommand::new("ls -l"))));
/// ```
pub fn parse(text: &str) -> Reply {
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut reply = Reply { steps: Vec::new(), unclosed: false };
    while reader.at < text.len() {
        let (line, number) = reader.next_line();
        let Some((command, rest)) = opening(line) else { continue };
        let (asks, warnings) = match reader.block(command, line, rest, number) {
            Ok(block) => block.operation(command, number),
            Err(fault) => {
                reply.unclosed |= matches!(fault, Fault::Unclosed);
                (invalid(command, number, line.trim(), &fault), Vec::new())
            }
        };
        reply.steps.push(Step { line: number, asks, warnings, asked: None });
    }
    if reply.steps.is_empty() {
        let reason = "The reply holds no command, so nothing was done. A command begins a line with its tag; the shortest complete reply is three lines: [DONE], a summary, [/DONE]".to_owned();
        let invalid = Invalid { kind: Kind::Reply, rejected: false, reason };
        reply.steps.push(Step {
            line: 1,
            asks: Asks::Invalid(invalid),
            warnings: Vec::new(),
            asked: None,
        });
    }
    reply
}

/// The command that a line opens, cheaply for the many lines that open none.
fn opening(line: &str) -> Option<(&'static Command, &str)> {
    match line.as_bytes().first()? {
        b'[' | b' ' | b'\t' | 0x80.. => catalogue::opened_by(line.trim()),
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    /// The byte offset of the next line, and its number.
    at: usize,
    line: usize,
}

/// A block whose tags are in order.
struct Block<'a> {
    values: Vec<&'a str>,
    body: String,
    warnings: Vec<String>,
}

enum Fault {
    /// What is wrong with the opening tag, as a phrase.
    Tag(String),
    /// There is no closing tag.
    Unclosed,
}

impl<'a> Reader<'a> {
    /// The next line without its newline, and its number.
    fn next_line(&mut self) -> (&'a str, usize) {
        let rest = &self.text[self.at..];
        let length = memchr(b'\n', rest.as_bytes());
        self.at += length.map_or(rest.len(), |n| n + 1);
        self.line += 1;
        (&rest[..length.unwrap_or(rest.len())], self.line - 1)
    }

    /// Reads the block that `line` opens, up to and with its closing tag.
    fn block(
        &mut self,
        command: &Command,
        line: &'a str,
        rest: &'a str,
        number: usize,
    ) -> Result<Block<'a>, Fault> {
        let tag = attributes::read(command, rest);
        let Some(closing) = command.closing else {
            let Opening { values, after, mut warnings } = tag.map_err(Fault::Tag)?;
            if !after.trim().is_empty() && after.trim() != format!("[/{}]", command.name) {
                warnings.push(format!(
                    "`{}` after the tag on line {number} was ignored",
                    brief(after.trim())
                ));
            }
            return Ok(Block { values, body: String::new(), warnings });
        };

        // A body may begin, or even end, on the line of its opening tag.
        let after = tag.as_ref().map_or("", |tag| tag.after.trim());
        let inline = after.strip_suffix(closing);
        let lines = match inline {
            Some(_) => "",
            None => self.body(closing).ok_or(Fault::Unclosed)?,
        };
        let Opening { values, mut warnings, .. } = tag.map_err(Fault::Tag)?;
        // Nobody can say which of the closing tags is meant.
        if inline.unwrap_or(after).contains(closing) {
            return Err(Fault::Tag(format!("the text after the tag holds {closing}")));
        }

        let mut body = String::with_capacity(lines.len() + after.len() + 1);
        let first = inline.unwrap_or(after);
        if !first.is_empty() {
            if !matches!(command.kind, Kind::Message | Kind::Done) {
                warnings.push(format!("the body began on the line of its tag (line {number}); put the tag on a line of its own"));
            }
            body.push_str(first);
            body.push('\n');
        }
        // Where the tag line ends in CRLF, so does the body: a property of the reply, not of it.
        if line.ends_with('\r') {
            body.push_str(&lines.replace("\r\n", "\n"));
        } else {
            body.push_str(lines);
        }
        Ok(Block { values, body, warnings })
    }

    /// The lines up to the one that is only `closing`, which is passed. Without one the rest of
    /// the reply is passed.
    fn body(&mut self, closing: &str) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        for found in memmem::find_iter(rest.as_bytes(), closing) {
            // Only the white space around it is looked at, so that a long line with many closing
            // tags in it stays linear.
            let before = rest[..found].trim_end_matches(is_blank);
            let after = rest[found + closing.len()..].trim_start_matches(is_blank);
            let begins = before.is_empty() || before.ends_with('\n');
            if begins && (after.is_empty() || after.starts_with('\n')) {
                let passed = rest.len() - after.len() + usize::from(!after.is_empty());
                self.line += memchr::memchr_iter(b'\n', &rest.as_bytes()[..passed]).count();
                self.at += passed;
                return Some(before);
            }
        }
        self.at = self.text.len();
        None
    }
}

impl Block<'_> {
    /// What the block asks for, and the warnings about it.
    fn operation(self, command: &Command, number: usize) -> (Asks, Vec<String>) {
        let Self { values, body, mut warnings } = self;
        let wrong =
            |reason: String| Asks::Invalid(Invalid { kind: command.kind, rejected: false, reason });
        let path = match values.first().map(|text| read_path(text, &mut warnings)) {
            None => None,
            Some(Ok(path)) => Some(path),
            Some(Err(fault)) => {
                let reason = format!("{fault} (line {number})");
                let invalid = Invalid { kind: command.kind, rejected: true, reason };
                return (Asks::Invalid(invalid), warnings);
            }
        };
        let operation = match (command.kind, path) {
            (Kind::Create, Some(path)) => {
                Operation::Create { path, content: body.into(), existing: Existing::Replace }
            }
            (Kind::Edit, Some(path)) => {
                let mut range = [0; 2];
                for (n, key) in ["start_line", "end_line"].into_iter().enumerate() {
                    match values[n + 1].trim().parse() {
                        Ok(value) => range[n] = value,
                        Err(_) => {
                            let reason = format!(
                                "Line {number}: {key}=\"{}\" is no line number. Correct form: {}",
                                brief(values[n + 1]),
                                command.form
                            );
                            return (wrong(reason), warnings);
                        }
                    }
                }
                let change = Change::Lines { start: range[0], end: range[1], with: body };
                Operation::Edit { path, change }
            }
            (Kind::Delete, Some(path)) => Operation::Delete { path },
            (Kind::Read, Some(path)) => Operation::Read { path, reading: Reading::Later },
            (Kind::Run, _) if body.trim().is_empty() => {
                return (
                    wrong(format!(
                        "Line {number}: the command is empty. Correct form: {}",
                        command.form
                    )),
                    warnings,
                );
            }
            (Kind::Run, _) => Operation::Run(ShellCommand::new(without_newline(body))),
            (Kind::Done, _) => Operation::Done { summary: without_newline(body), if_ok: false },
            _ => Operation::Message { text: without_newline(body) },
        };
        (Asks::Operation(operation), warnings)
    }
}

fn read_path(text: &str, warnings: &mut Vec<String>) -> Result<RelPath, PathFault> {
    let path = RelPath::parse(text.trim())?;
    if text.contains('\\') {
        warnings.push(format!(
            "the path '{}' was read as '{path}': write / between folders",
            brief(text)
        ));
    }
    Ok(path)
}

fn is_blank(c: char) -> bool {
    c != '\n' && c.is_whitespace()
}

fn without_newline(mut body: String) -> String {
    if body.ends_with('\n') {
        body.pop();
    }
    body
}

fn invalid(command: &Command, number: usize, line: &str, fault: &Fault) -> Asks {
    let reason = match fault {
        Fault::Tag(what) => {
            format!("Line {number}: {what} in `{}`. Correct form: {}", brief(line), command.form)
        }
        Fault::Unclosed => format!(
            "Line {number}: `{}` is never closed, so neither it nor anything after it was carried out. Send it again from there, and close it with {} alone on a line",
            brief(line),
            command.closing.unwrap_or_default()
        ),
    };
    Asks::Invalid(Invalid { kind: command.kind, rejected: false, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_on_the_tag_line_cannot_hold_its_closing_tag() {
        for (text, steps) in [
            ("[MESSAGE][/MESSAGE][/MESSAGE]\n[DONE]x[/DONE]\n", 2),
            ("[DONE] [/DONE] x [/DONE]\n[MESSAGE]y[/MESSAGE]", 2),
            ("[MESSAGE][/MESSAGE] x\ny\n[/MESSAGE]\n[READ_FILE path=\"a\"]\n", 2),
        ] {
            let reply = parse(text);
            assert_eq!(reply.steps.len(), steps, "{text}");
            assert!(matches!(reply.steps[1].asks, Asks::Operation(_)), "{text}");
            let Asks::Invalid(invalid) = &reply.steps[0].asks else { panic!("{text}") };
            assert!(invalid.reason.starts_with("Line 1: the text after the tag holds [/"));
            assert!(invalid.reason.contains("Correct form: ["), "{}", invalid.reason);
        }
    }
}
