//! Finds the blocks of a reply. Total: whatever the text, there is a list of steps, and the work is
//! linear in its length.

use std::ops::Range;

use memchr::{memchr, memmem};

use super::attributes::{self, Opening, brief};
use super::catalogue::{self, Command};
use crate::protocol::{
    Asked, Asks, Change, Existing, Invalid, Kind, Operation, PathFault, Reading, RelPath, Reply,
    ShellCommand, Step,
};

/// What is told of a reply that holds no block.
pub(in crate::protocol) const NO_COMMAND: &str = "The reply holds no command, so nothing was done. A command begins a line with its tag; the shortest complete reply is three lines: [DONE], a summary, [/DONE]";

/// The blocks of a text.
pub(in crate::protocol) struct Blocks {
    /// What they ask for, in order. A path that was refused stands in `asked` as it was sent.
    pub(in crate::protocol) steps: Vec<Step>,
    /// Whether the text ends within a block.
    pub(in crate::protocol) unclosed: bool,
    /// Where what follows the opening lines stands: bodies and closing tags, in bytes.
    pub(in crate::protocol) bodies: Vec<Range<usize>>,
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
    let Blocks { mut steps, unclosed, .. } = blocks(text);
    steps.iter_mut().for_each(|step| step.asked = None);
    if steps.is_empty() {
        steps.push(Step::refused(1, NO_COMMAND));
    }
    Reply { steps, unclosed }
}

/// Finds all blocks.
pub(in crate::protocol) fn blocks(text: &str) -> Blocks {
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut blocks = Blocks { steps: Vec::new(), unclosed: false, bodies: Vec::new() };
    while reader.at < text.len() {
        let (line, number) = reader.next_line();
        let Some((command, rest)) = opening(line) else { continue };
        let begin = reader.at;
        let step = match reader.block(command, line, rest, number) {
            Ok(block) => block.step(command, number),
            Err(fault) => {
                blocks.unclosed |= matches!(fault, Fault::Unclosed);
                Step::new(number, invalid(command, number, line.trim(), &fault))
            }
        };
        if reader.at > begin {
            blocks.bodies.push(begin..reader.at);
        }
        blocks.steps.push(step);
    }
    blocks
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
    fn step(self, command: &Command, number: usize) -> Step {
        let Self { values, body, mut warnings } = self;
        let path = match values.first().map(|text| read_path(text, &mut warnings)) {
            None => None,
            Some(Ok(path)) => Some(path),
            Some(Err(fault)) => {
                let reason = format!("{fault} (line {number})");
                let invalid = Invalid { kind: command.kind, rejected: true, reason };
                let asked = Asked { id: None, about: values[0].to_owned() };
                let step = Step::new(number, Asks::Invalid(invalid));
                return Step { warnings, asked: Some(asked), ..step };
            }
        };
        let asks = match operation(command, &values, path, body) {
            Ok(operation) => Asks::Operation(operation),
            Err(what) => {
                let reason = format!("Line {number}: {what}. Correct form: {}", command.form);
                Asks::Invalid(Invalid { kind: command.kind, rejected: false, reason })
            }
        };
        Step { warnings, ..Step::new(number, asks) }
    }
}

/// What a command with these attributes and that body asks for; else what is wrong with it.
fn operation(
    command: &Command,
    values: &[&str],
    path: Option<RelPath>,
    body: String,
) -> Result<Operation, String> {
    Ok(match (command.kind, path) {
        (Kind::Create, Some(path)) => {
            Operation::Create { path, content: body.into(), existing: Existing::Replace }
        }
        (Kind::Edit, Some(path)) => {
            let number = |n: usize, key: &str| {
                let given = values[n];
                let wrong = || format!("{key}=\"{}\" is no line number", brief(given));
                given.trim().parse().map_err(|_| wrong())
            };
            let (start, end) = (number(1, "start_line")?, number(2, "end_line")?);
            Operation::Edit { path, change: Change::Lines { start, end, with: body } }
        }
        (Kind::Delete, Some(path)) => Operation::Delete { path },
        (Kind::Read, Some(path)) => Operation::Read { path, reading: Reading::Later },
        (Kind::Run, _) if body.trim().is_empty() => return Err("the command is empty".to_owned()),
        (Kind::Run, _) => Operation::Run(ShellCommand::new(without_newline(body))),
        (Kind::Done, _) => Operation::Done { summary: without_newline(body), if_ok: false },
        _ => Operation::Message { text: without_newline(body) },
    })
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
