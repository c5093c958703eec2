//! A block whose tags and body are known: what it asks for.

use super::attributes::brief;
use super::bodies::{self, Body, Repaired};
use super::catalogue::Command;
use super::diffs;
use super::escapes;
use super::fences;
use super::markers;
use super::notes;
use super::pairs;
use super::paths::{self, Refusal};
use super::printer::{PART_FORM, opening};
use super::wrong::{Wrong, wrong};
use crate::protocol::{
    Asked, Asks, Change, Existing, Invalid, Kind, Mistake, Operation, Part, Reading, RelPath,
    Replacement, ShellCommand, Step, Warning, WarningSort,
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

/// Whether a warning is about what stands in an opening tag, so that its line tells more.
fn is_of_tag(sort: WarningSort) -> bool {
    matches!(
        sort,
        WarningSort::UnknownAttribute
            | WarningSort::PathDecorated
            | WarningSort::PathBackslashes
            | WarningSort::PathPlaceholder
    )
}

impl Block<'_> {
    /// What it asks for, and the warnings about it.
    pub(super) fn step(self) -> Step {
        let (number, tag) = (self.number, brief(self.tag.trim()));
        let mut step = self.read();
        if let Asks::Operation(operation) = &step.asks {
            step.as_sent = Some(tag).filter(|tag| opening(operation).as_ref() != Some(tag));
        }
        for warning in step.warnings.iter_mut().filter(|warning| is_of_tag(warning.sort)) {
            warning.text.insert_str(0, &format!("line {number}: "));
        }
        step
    }

    fn read(self) -> Step {
        let Self { command, number, tag, values, mut body, body_line, mut warnings } = self;
        let value = |name: &str| {
            let at = command.attributes.iter().position(|known| known.name == name)?;
            values.get(at)?.as_deref()
        };
        let (mut path, mut to) = (None, None);
        for (key, read) in [("path", &mut path), ("to", &mut to)] {
            let Some(text) = value(key) else { continue };
            let found = match command.kind {
                Kind::List | Kind::Search => paths::read_folder(text, &mut warnings),
                Kind::Move => paths::read_either(text, &mut warnings).map(Some),
                _ => paths::read(text, &mut warnings).map(Some),
            };
            match found {
                Ok(found) => *read = found,
                Err(Refusal::Fault(fault)) => {
                    let (tag, form) = (brief(tag.trim()), command.form);
                    let reason = format!("{fault} (line {number}, `{tag}`). Correct form: {form}");
                    let (kind, sort) = (command.kind, Mistake::PathRefused);
                    let invalid = Invalid { kind, sort, rejected: true, reason };
                    let asked = Asked { id: None, about: text.to_owned() };
                    let step = Step::new(number, Asks::Invalid(invalid));
                    return Step { warnings, asked: Some(asked), ..step };
                }
                Err(Refusal::Unclear(mut what)) => {
                    if let Some(told) = what.phrase.strip_prefix("path=") {
                        what.phrase = format!("{key}={told}");
                    }
                    let step = Step::new(number, tag_fault(command, number, tag, &what));
                    return Step { warnings, ..step };
                }
            }
        }
        let in_pairs = command.kind == Kind::Edit && value("start_line").is_none();
        if in_pairs {
            body = markers::repaired(body, tag, body_line, &mut warnings);
        }
        if in_pairs && !pairs::are_in(&body) {
            let indented = || {
                markers::indented(&body, body_line).map(|told| wrong(Mistake::SearchPairs, told))
            };
            let asks = match indented().or_else(|| pairs::nearly(&body, body_line)) {
                Some(what) => body_fault(command, number, tag, &what, pairs::FORM),
                None if diffs::is_diff(fences::inside(&body)) => {
                    let told = "the body is a diff, which is no edit: send the lines that are to be replaced and those for them as a pair, without signs before them";
                    body_fault(command, number, tag, &wrong(Mistake::Diff, told), pairs::FORM)
                }
                None => {
                    let told = "the attribute start_line is missing";
                    tag_fault(command, number, tag, &wrong(Mistake::AttributeMissing, told))
                }
            };
            return Step { warnings, ..Step::new(number, asks) };
        }
        if in_pairs {
            warnings.extend(pairs::odd(&body, body_line));
        }
        let first = match command.kind {
            Kind::Edit => value("start_line").and_then(|start| start.trim().parse().ok()),
            _ => Some(1),
        };
        let kind = command.kind;
        let body = Body { kind, path: path.as_ref(), text: body, line: body_line, first, in_pairs };
        let asks = bodies::repaired(body, &mut warnings)
            .and_then(|Repaired { mut text, line, pairs }| {
                if command.kind == Kind::Run {
                    text = escapes::without_returns(text, line, &mut warnings)?;
                }
                if command.closing.is_some() {
                    if value("end").is_none() {
                        warnings.extend(notes::own_closing(command.kind, &text, line));
                    }
                    notes::tell(command.kind, path.as_ref(), &text, line, &mut warnings);
                }
                operation(command, value, (path, to), (text, pairs))
            })
            .map_or_else(
                |what| {
                    let form = match (command.kind, what.sort) {
                        _ if in_pairs => pairs::FORM,
                        (_, Mistake::PairsAsContent) => pairs::FORM,
                        (Kind::Read, _) => PART_FORM,
                        (_, sort) => form(command, sort),
                    };
                    body_fault(command, number, tag, &what, form)
                },
                Asks::Operation,
            );
        Step { warnings, ..Step::new(number, asks) }
    }
}

/// A block whose body cannot be taken as it is.
fn body_fault(command: &Command, number: usize, tag: &str, what: &Wrong, form: &str) -> Asks {
    let (tag, phrase) = (brief(tag.trim()), &what.phrase);
    let reason = format!("Line {number}, `{tag}`: {phrase}. Correct form: {form}");
    Asks::Invalid(Invalid { kind: command.kind, sort: what.sort, rejected: false, reason })
}

/// What a command with these attributes and that body asks for; else what is wrong with it.
fn operation<'a>(
    command: &Command,
    value: impl Fn(&str) -> Option<&'a str>,
    (path, to): (Option<RelPath>, Option<RelPath>),
    (body, pairs): (String, Vec<Replacement>),
) -> Result<Operation, Wrong> {
    let number = |key: &str| line_number(key, value(key));
    Ok(match (command.kind, path) {
        (Kind::Create, Some(path)) => {
            let existing = Existing::replaced_by(&body);
            Operation::Create { path, content: body.into(), existing }
        }
        (Kind::Edit, Some(path)) if value("start_line").is_none() => {
            Operation::Edit { path, change: Change::Once(pairs) }
        }
        (Kind::Edit, Some(path)) => {
            let (start, end) = (number("start_line")?, number("end_line")?);
            Operation::Edit { path, change: Change::Lines { start, end, with: body, seen: None } }
        }
        (Kind::Delete, Some(path)) => Operation::Delete { path },
        (Kind::Read, Some(path)) => {
            Operation::Read { path, reading: Reading::Later(part(&value)?) }
        }
        (Kind::List, path) => Operation::List { path },
        (Kind::Search, path) => match value("pattern") {
            Some(pattern) if !pattern.is_empty() => {
                Operation::Search { pattern: pattern.to_owned(), path }
            }
            _ => return Err(wrong(Mistake::EmptyPattern, "the pattern is empty")),
        },
        (Kind::Move, Some(path)) => match to {
            Some(to) => Operation::Move { path, to },
            None => return Err(wrong(Mistake::AttributeMissing, "the attribute to is missing")),
        },
        (Kind::Run, _) if body.trim().is_empty() => {
            return Err(wrong(Mistake::EmptyCommand, "the command is empty"));
        }
        (Kind::Run, _) => Operation::Run(ShellCommand::new(without_newline(body))),
        (Kind::Done, _) => {
            let if_ok = match value("if").map(str::trim) {
                None => false,
                Some(given) if given.eq_ignore_ascii_case("ok") => true,
                Some(given) => {
                    let given = brief(given);
                    let told = format!("if=\"{given}\" is no condition; there is only if=\"ok\"");
                    return Err(wrong(Mistake::AttributeValue, told));
                }
            };
            Operation::Done { summary: without_newline(body), if_ok }
        }
        _ => Operation::Message { text: without_newline(body) },
    })
}

fn line_number(key: &str, given: Option<&str>) -> Result<usize, Wrong> {
    let given = given.unwrap_or_default();
    let told = || format!("{key}=\"{}\" is no line number", brief(given));
    given.trim().parse().map_err(|_| wrong(Mistake::LineNumber, told()))
}

/// Which lines of a file are to be shown, and how.
fn part<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<Part, Wrong> {
    let line =
        |key: &str| match value(key).map(|given| line_number(key, Some(given))).transpose()? {
            Some(0) => {
                let told = format!("{key}=\"0\" is no line number: lines are counted from 1");
                Err(wrong(Mistake::LineNumber, told))
            }
            line => Ok(line),
        };
    let (start, end) = (line("start_line")?, line("end_line")?);
    if let (Some(start), Some(end)) = (start, end)
        && start > end
    {
        let told = format!("start_line=\"{start}\" is behind end_line=\"{end}\"");
        return Err(wrong(Mistake::PartRange, told));
    }
    let numbered = match value("numbered").map(|given| given.trim().to_ascii_lowercase()) {
        None => false,
        Some(given) if matches!(given.as_str(), "true" | "yes" | "1") => true,
        Some(given) if matches!(given.as_str(), "false" | "no" | "0") => false,
        Some(given) => {
            let told = format!("numbered=\"{}\" is neither true nor false", brief(&given));
            return Err(wrong(Mistake::AttributeValue, told));
        }
    };
    Ok(Part { start, end, numbered })
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
    let form = form(command, *sort);
    let reason = format!("Line {number}: {phrase} in `{tag}`. Correct form: {form}");
    Asks::Invalid(Invalid { kind: command.kind, sort: *sort, rejected: false, reason })
}

/// How to write what ends the session only if all is well.
pub(super) const DONE_IF_OK: &str =
    "[DONE if=\"ok\"], a summary on the lines below, then [/DONE] alone on a line";

/// How to write a command with whose tag that is wrong.
fn form(command: &Command, sort: Mistake) -> &'static str {
    match (command.kind, sort) {
        (
            Kind::Done,
            Mistake::UnknownAttribute | Mistake::AttributeValue | Mistake::TagUnreadable,
        ) => DONE_IF_OK,
        _ => command.form,
    }
}

/// A block that cannot be read, as a sentence.
pub(super) fn refused(command: &Command, number: usize, sort: Mistake, sentence: String) -> Step {
    let invalid = Invalid { kind: command.kind, sort, rejected: false, reason: sentence };
    Step::new(number, Asks::Invalid(invalid))
}
