//! A block whose tags and body are known: the operation that it asks for, or what is wrong with it.

use super::body::{self, Body};
use super::catalogue::Command;
use super::escapes;
use super::lints;
use super::pairs;
use super::paths::{self, Refusal};
use super::print::{PART_FORM, opening};
use super::wrong::{Wrong, wrong};
use crate::protocol::mistake::brief;
use crate::protocol::{
    Asked, Asks, Change, Existing, Invalid, Kind, Mistake, Operation, Part, Reading, ShellCommand,
    Step, Warning, WarningSort,
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

/// Why a block cannot be used.
enum Fault {
    Path(Refusal),
    Tag(Wrong),
    Body(Wrong),
}

impl From<Wrong> for Fault {
    fn from(what: Wrong) -> Self {
        Self::Body(what)
    }
}

impl Block<'_> {
    /// The step that it is, with its warnings. `workspace` is the real path of the workspace, if it is known.
    pub(super) fn step_in(mut self, workspace: Option<&str>) -> Step {
        let mut warnings = std::mem::take(&mut self.warnings);
        let (number, tag) = (self.number, brief(self.tag.trim()));
        let mut step = match self.operation(workspace, &mut warnings) {
            Ok(operation) => Step::new(number, Asks::Operation(operation)),
            Err(Fault::Path(Refusal::Outside { given, fault })) => {
                let form = self.command.form;
                let reason = format!("{fault} (line {number}, `{tag}`). Correct form: {form}");
                let (kind, sort) = (self.command.kind, Mistake::PathRefused);
                let invalid = Invalid { kind, sort, rejected: true, reason };
                let asked = Some(Asked { id: None, about: given });
                Step { asked, ..Step::new(number, Asks::Invalid(invalid)) }
            }
            Err(Fault::Path(Refusal::Unclear(what)) | Fault::Tag(what)) => {
                Step::new(number, tag_fault(self.command, number, self.tag, &what))
            }
            Err(Fault::Body(Wrong { sort, phrase })) => {
                let form = self.form(sort);
                let sentence = format!("Line {number}, `{tag}`: {phrase}. Correct form: {form}");
                refused(self.command, number, sort, sentence)
            }
        };
        for warning in warnings.iter_mut().filter(|warning| is_of_tag(warning.sort)) {
            warning.text.insert_str(0, &format!("line {number}: "));
        }
        if let Asks::Operation(operation) = &step.asks {
            step.as_sent = Some(tag).filter(|tag| opening(operation).as_ref() != Some(tag));
        }
        Step { warnings, ..step }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self.command.attributes.iter().position(|known| known.name == name)?;
        self.values.get(at)?.as_deref()
    }

    /// Whether it is an edit by search.
    fn is_in_pairs(&self) -> bool {
        self.command.kind == Kind::Edit && self.value("start_line").is_none()
    }

    /// How to write a block like this, for an error of that sort.
    fn form(&self, sort: Mistake) -> &'static str {
        match self.command.kind {
            _ if self.is_in_pairs() || sort == Mistake::PairsAsContent => pairs::FORM,
            Kind::Read => PART_FORM,
            _ => form(self.command, sort),
        }
    }

    fn operation(
        &self,
        workspace: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Operation, Fault> {
        let kind = self.command.kind;
        let mut path_of = |key: &str| match self.value(key) {
            Some(value) => paths::read_as(kind, (key, value), workspace, warnings),
            None => Ok(None),
        };
        let path = path_of("path").map_err(Fault::Path)?;
        let to = path_of("to").map_err(Fault::Path)?;
        let mut body = Body {
            kind,
            path: path.as_ref(),
            text: self.body.clone(),
            line: self.body_line,
            has_end: self.value("end").is_some(),
        };
        let mut replacements = Vec::new();
        if self.is_in_pairs() {
            body.text = pairs::repair(body.text, self.tag, body.line, warnings);
            if !pairs::are_in(&body.text) {
                return Err(body::no_pairs(&body).map_or_else(
                    || {
                        Fault::Tag(wrong(
                            Mistake::AttributeMissing,
                            "the attribute start_line is missing",
                        ))
                    },
                    Fault::Body,
                ));
            }
            replacements = body::check_pairs(&mut body, warnings)?;
        } else {
            let first = match kind {
                Kind::Edit => self.value("start_line").and_then(|start| start.trim().parse().ok()),
                _ => Some(1),
            };
            body::check(&mut body, first, warnings)?;
        }
        if kind == Kind::Run {
            body.text = escapes::without_returns(body.text, body.line, warnings)?;
        }
        if self.command.closing.is_some() {
            lints::run(&body, warnings);
        }
        let body = body.text;
        Ok(match (kind, path) {
            (Kind::Create, Some(path)) => {
                let existing = Existing::replaced_by(&body);
                Operation::Create { path, content: body.into(), existing }
            }
            (Kind::Edit, Some(path)) if self.is_in_pairs() => {
                Operation::Edit { path, change: Change::Once(replacements) }
            }
            (Kind::Edit, Some(path)) => {
                let start = line_number("start_line", self.value("start_line"))?;
                let end = line_number("end_line", self.value("end_line"))?;
                let change = Change::Lines { start, end, with: body, seen: None };
                Operation::Edit { path, change }
            }
            (Kind::Delete, Some(path)) => Operation::Delete { path },
            (Kind::Read, Some(path)) => {
                Operation::Read { path, reading: Reading::Later(self.part()?) }
            }
            (Kind::List, path) => Operation::List { path },
            (Kind::Search, path) => match self.value("pattern") {
                Some(pattern) if !pattern.is_empty() => {
                    Operation::Search { pattern: pattern.to_owned(), path }
                }
                _ => return Err(wrong(Mistake::EmptyPattern, "the pattern is empty").into()),
            },
            (Kind::Move, Some(path)) => match to {
                Some(to) => Operation::Move { path, to },
                None => {
                    let what = wrong(Mistake::AttributeMissing, "the attribute to is missing");
                    return Err(what.into());
                }
            },
            (Kind::Run, _) if body.trim().is_empty() => {
                return Err(wrong(Mistake::EmptyCommand, "the command is empty").into());
            }
            (Kind::Run, _) => Operation::Run(ShellCommand::new(without_newline(body))),
            (Kind::Done, _) => {
                let if_ok =
                    self.choice("if", &["ok"], &[], "is no condition; there is only if=\"ok\"")?;
                Operation::Done { summary: without_newline(body), if_ok }
            }
            _ => Operation::Message { text: without_newline(body) },
        })
    }

    /// The lines of a file that are to be shown, and how.
    fn part(&self) -> Result<Part, Wrong> {
        let line = |key: &str| {
            let line = self.value(key).map(|given| line_number(key, Some(given))).transpose()?;
            if line == Some(0) {
                let phrase = format!("{key}=\"0\" is no line number: lines are counted from 1");
                return Err(wrong(Mistake::LineNumber, phrase));
            }
            Ok(line)
        };
        let (start, end) = (line("start_line")?, line("end_line")?);
        if let (Some(start), Some(end)) = (start, end)
            && start > end
        {
            let phrase = format!("start_line=\"{start}\" is behind end_line=\"{end}\"");
            return Err(wrong(Mistake::PartRange, phrase));
        }
        let (yes, no) = (["true", "yes", "1"], ["false", "no", "0"]);
        let numbered = self.choice("numbered", &yes, &no, "is neither true nor false")?;
        Ok(Part { start, end, numbered })
    }

    /// Whether an attribute says yes; `fault` is what is wrong with one that says neither.
    fn choice(&self, key: &str, yes: &[&str], no: &[&str], fault: &str) -> Result<bool, Wrong> {
        let Some(given) = self.value(key) else { return Ok(false) };
        let said = given.trim().to_ascii_lowercase();
        match said.as_str() {
            said if yes.contains(&said) => Ok(true),
            said if no.contains(&said) => Ok(false),
            _ => {
                let phrase = format!("{key}=\"{}\" {fault}", brief(given.trim()));
                Err(wrong(Mistake::AttributeValue, phrase))
            }
        }
    }
}

/// Whether a warning is about an opening tag, so that its line helps.
fn is_of_tag(sort: WarningSort) -> bool {
    use WarningSort::{PathBackslashes, PathDecorated, PathPlaceholder, UnknownAttribute};
    [UnknownAttribute, PathDecorated, PathBackslashes, PathPlaceholder].contains(&sort)
}

fn line_number(key: &str, given: Option<&str>) -> Result<usize, Wrong> {
    let given = given.unwrap_or_default();
    let phrase = || format!("{key}=\"{}\" is no line number", brief(given));
    given.trim().parse().map_err(|_| wrong(Mistake::LineNumber, phrase()))
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
    let (tag, form) = (brief(tag.trim()), form(command, *sort));
    let reason = format!("Line {number}: {phrase} in `{tag}`. Correct form: {form}");
    Asks::Invalid(Invalid { kind: command.kind, sort: *sort, rejected: false, reason })
}

/// How to write what ends the session only if all is well.
pub(super) const DONE_IF_OK: &str =
    "[DONE if=\"ok\"], a summary on the lines below, then [/DONE] alone on a line";

/// How to write a command whose tag has a mistake of that sort.
fn form(command: &Command, sort: Mistake) -> &'static str {
    use Mistake::{AttributeValue, TagUnreadable, UnknownAttribute};
    let is_of_if = [UnknownAttribute, AttributeValue, TagUnreadable].contains(&sort);
    if command.kind == Kind::Done && is_of_if { DONE_IF_OK } else { command.form }
}

/// A block that cannot be read, as a sentence.
pub(super) fn refused(command: &Command, number: usize, sort: Mistake, sentence: String) -> Step {
    let invalid = Invalid { kind: command.kind, sort, rejected: false, reason: sentence };
    Step::new(number, Asks::Invalid(invalid))
}
