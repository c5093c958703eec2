//! A block whose tags and body are known: what it asks for.

use super::attributes::brief;
use super::bodies::{self, Body};
use super::catalogue::Command;
use super::notes;
use super::paths::{self, Refusal};
use super::wrong::{Wrong, wrong};
use crate::protocol::{
    Asked, Asks, Change, Existing, Invalid, Kind, Mistake, Operation, Reading, RelPath,
    ShellCommand, Step, Warning, elision,
};

/// A block as its tags have it.
pub(super) struct Block<'a> {
    pub(super) command: &'static Command,
    /// The line of its opening tag, and that line.
    pub(super) number: usize,
    pub(super) tag: &'a str,
    /// Its attributes, in the catalogue's order.
    pub(super) values: Vec<Option<String>>,
    pub(super) body: String,
    /// The line that its body begins on.
    pub(super) body_line: usize,
    pub(super) warnings: Vec<Warning>,
}

impl Block<'_> {
    /// What it asks for, and the warnings about it.
    pub(super) fn step(self) -> Step {
        let Self { command, number, tag, values, body, body_line, mut warnings } = self;
        let value = |name: &str| {
            let at = command.attributes.iter().position(|known| known.name == name)?;
            values.get(at)?.as_deref()
        };
        let path = match value("path").map(|text| (text, paths::read(text, &mut warnings))) {
            None => None,
            Some((_, Ok(path))) => Some(path),
            Some((text, Err(Refusal::Fault(fault)))) => {
                let reason = format!("{fault} (line {number})");
                let (kind, sort) = (command.kind, Mistake::PathRefused);
                let invalid = Invalid { kind, sort, rejected: true, reason };
                let asked = Asked { id: None, about: text.to_owned() };
                let step = Step::new(number, Asks::Invalid(invalid));
                return Step { warnings, asked: Some(asked), ..step };
            }
            Some((_, Err(Refusal::Unclear(what)))) => {
                let step = Step::new(number, tag_fault(command, number, tag, &what));
                return Step { warnings, ..step };
            }
        };
        let first = match command.kind {
            Kind::Edit => value("start_line").and_then(|start| start.trim().parse().ok()),
            _ => Some(1),
        };
        let kind = command.kind;
        let body = Body { kind, path: path.as_ref(), text: body, line: body_line, first };
        let asks = bodies::repaired(body, &mut warnings)
            .and_then(|body| {
                if command.closing.is_some() {
                    notes::tell(command.kind, path.as_ref(), &body, body_line, &mut warnings);
                }
                operation(command, value, path, body)
            })
            .map_or_else(
                |Wrong { sort, phrase }| {
                    let reason = format!("Line {number}: {phrase}. Correct form: {}", command.form);
                    Asks::Invalid(Invalid { kind: command.kind, sort, rejected: false, reason })
                },
                Asks::Operation,
            );
        Step { warnings, ..Step::new(number, asks) }
    }
}

/// What a command with these attributes and that body asks for; else what is wrong with it.
fn operation<'a>(
    command: &Command,
    value: impl Fn(&str) -> Option<&'a str>,
    path: Option<RelPath>,
    body: String,
) -> Result<Operation, Wrong> {
    Ok(match (command.kind, path) {
        (Kind::Create, Some(path)) => {
            let existing = if elision::may_leave_out(&body) {
                Existing::ReplaceWhole
            } else {
                Existing::Replace
            };
            Operation::Create { path, content: body.into(), existing }
        }
        (Kind::Edit, Some(path)) => {
            let number = |key: &str| {
                let given = value(key).unwrap_or_default();
                let told = || format!("{key}=\"{}\" is no line number", brief(given));
                given.trim().parse().map_err(|_| wrong(Mistake::LineNumber, told()))
            };
            let (start, end) = (number("start_line")?, number("end_line")?);
            Operation::Edit { path, change: Change::Lines { start, end, with: body } }
        }
        (Kind::Delete, Some(path)) => Operation::Delete { path },
        (Kind::Read, Some(path)) => Operation::Read { path, reading: Reading::Later },
        (Kind::Run, _) if body.trim().is_empty() => {
            return Err(wrong(Mistake::EmptyCommand, "the command is empty"));
        }
        (Kind::Run, _) => Operation::Run(ShellCommand::new(without_newline(body))),
        (Kind::Done, _) => Operation::Done { summary: without_newline(body), if_ok: false },
        _ => Operation::Message { text: without_newline(body) },
    })
}

fn without_newline(mut body: String) -> String {
    if body.ends_with('\n') {
        body.pop();
    }
    body
}

/// An opening tag with which something is wrong.
pub(super) fn tag_fault(command: &Command, number: usize, tag: &str, what: &Wrong) -> Asks {
    let Wrong { sort, phrase } = what;
    let tag = brief(tag.trim());
    let reason = format!("Line {number}: {phrase} in `{tag}`. Correct form: {}", command.form);
    Asks::Invalid(Invalid { kind: command.kind, sort: *sort, rejected: false, reason })
}

/// A block that cannot be read, as a sentence.
pub(super) fn refused(command: &Command, number: usize, sort: Mistake, sentence: String) -> Step {
    let invalid = Invalid { kind: command.kind, sort, rejected: false, reason: sentence };
    Step::new(number, Asks::Invalid(invalid))
}
