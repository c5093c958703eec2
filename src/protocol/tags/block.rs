//! Turns a block into an operation, once its tags and body are known, or reports what is wrong with it.

use super::body::{self, Body, RareText};
use super::catalogue::TagCommand;
use super::lints;
use super::paths::{self, TagError};
use crate::protocol::mistake::{Problem, brief};
use crate::protocol::{
    Change, Existing, Invalid, Kind, Mistake, Operation, Part, Reading, RelPath, SentValues,
    ShellCommand, Step, StepContent, Warning, WarningKind, returns,
};

/// A block whose tags have been read.
pub(super) struct TagBlock<'a> {
    pub(super) command: &'static TagCommand,
    /// The line number of the opening tag, and the line itself.
    pub(super) number: usize,
    pub(super) tag: &'a str,
    /// The attributes, in the order of the catalogue.
    pub(super) values: Vec<Option<String>>,
    pub(super) body: String,
    /// The number of the line on which the body begins.
    pub(super) body_line: usize,
    pub(super) rare: RareText,
    pub(super) warnings: Vec<Warning>,
}

impl TagBlock<'_> {
    /// The step, with its warnings. `workspace` is the real path of the workspace, if known.
    pub(super) fn step_in(mut self, workspace: Option<&str>) -> Step {
        let mut warnings = std::mem::take(&mut self.warnings);
        let (command, number, tag) = (self.command, self.number, brief(self.tag.trim()));
        let mut step = match self.operation(workspace, &mut warnings) {
            Ok(operation) => {
                Step { as_sent: Some(tag), ..Step::new(number, StepContent::Operation(operation)) }
            }
            Err(TagError::PathOutside { given, fault }) => {
                let form = command.form;
                let reason = format!("{fault} (line {number}, `{tag}`). Correct form: {form}");
                let (kind, mistake) = (command.kind, Mistake::PathRefused);
                let invalid = Invalid { kind, mistake, rejected: true, reason };
                let asked = Some(SentValues { id: None, about: given });
                Step { asked, ..Step::new(number, StepContent::Invalid(invalid)) }
            }
            Err(TagError::Problem(problem)) => {
                Step::new(number, tag_fault(command, number, self.tag, &problem))
            }
        };
        for warning in warnings.iter_mut().filter(|warning| is_of_tag(warning.kind)) {
            warning.text.insert_str(0, &format!("line {number}: "));
        }
        step.warnings = warnings;
        step
    }

    fn operation(
        &mut self,
        workspace: Option<&str>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Operation, TagError> {
        let kind = self.command.kind;
        let mut path_in = |key: &str| match self.value(key) {
            Some(value) => paths::read(kind, (key, value), workspace, warnings),
            None => Ok(None),
        };
        let (path, to) = (path_in("path")?, path_in("to")?);
        // An edit without line numbers is an edit by search.
        let is_in_pairs = kind == Kind::Edit && self.value("start_line").is_none();
        let (mut start, mut end) = (1, 1);
        if kind == Kind::Edit && !is_in_pairs {
            start = self.line_number("start_line")?.ok_or_else(|| missing("start_line"))?;
            end = self.line_number("end_line")?.ok_or_else(|| missing("end_line"))?;
        }
        let text = std::mem::take(&mut self.body);
        let has_end = self.value("end").is_some();
        let mut body = Body::new(kind, path.as_ref(), text, self.body_line, has_end, self.rare);
        let mut replacements = Vec::new();
        if is_in_pairs {
            replacements = body::read_pairs(&mut body, self.tag, warnings)?;
        } else if self.command.closing.is_some() {
            body::check(&mut body, start, warnings)?;
        }
        if kind == Kind::Run {
            body.text = returns::strip(body.text, Some(body.line), warnings)?;
        }
        if self.command.closing.is_some() {
            lints::run(&body, warnings);
        }
        let text = body.text;
        let required = |path: Option<RelPath>| path.ok_or_else(|| missing("path"));
        Ok(match kind {
            Kind::Create => {
                let (path, existing) = (required(path)?, Existing::ReplaceWhole);
                Operation::Create { path, content: text.into(), existing }
            }
            Kind::Edit => {
                let change = if is_in_pairs {
                    Change::Once(replacements)
                } else {
                    Change::Lines { start, end, with: text, seen: None }
                };
                Operation::Edit { path: required(path)?, change }
            }
            Kind::Delete => Operation::Delete { path: required(path)? },
            Kind::Read => {
                let part = self.part()?;
                let reading = match self.value("symbol").map(str::trim) {
                    None => Reading::Later(part),
                    Some("") => {
                        let phrase = "symbol=\"\" names no definition";
                        return Err(Problem::new(Mistake::AttributeValue, phrase).into());
                    }
                    Some(_) if part.start.or(part.end).is_some() => {
                        let phrase = "symbol stands alone, without start_line and end_line";
                        return Err(Problem::new(Mistake::PartRange, phrase).into());
                    }
                    Some(symbol) => Reading::Definition(symbol.to_owned()),
                };
                Operation::Read { path: required(path)?, reading }
            }
            Kind::List => Operation::List { path },
            Kind::Search => {
                let pattern = self.value("pattern").unwrap_or_default().to_owned();
                if pattern.is_empty() {
                    return Err(Problem::new(Mistake::EmptyPattern, "the pattern is empty").into());
                }
                Operation::Search { pattern, path }
            }
            Kind::Move => {
                let to = to.ok_or_else(|| missing("to"))?;
                Operation::Move { path: required(path)?, to }
            }
            Kind::Run if text.trim().is_empty() => {
                return Err(Problem::new(Mistake::EmptyCommand, "the command is empty").into());
            }
            Kind::Run => Operation::Run(ShellCommand::new(without_newline(text))),
            Kind::Done => {
                let fault = "is not a condition; there is only if=\"ok\"";
                let if_ok = self.choice("if", &["ok"], &[], fault)?;
                Operation::Done { summary: without_newline(text), if_ok }
            }
            Kind::Message | Kind::Reply => Operation::Message { text: without_newline(text) },
        })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.command.value(&self.values, name)
    }

    fn line_number(&self, key: &str) -> Result<Option<usize>, Problem> {
        let Some(given) = self.value(key) else { return Ok(None) };
        let phrase = || format!("{key}=\"{}\" is not a line number", brief(given));
        given.trim().parse().map(Some).map_err(|_| Problem::new(Mistake::LineNumber, phrase()))
    }

    /// Which lines of a file to show, and whether to number them.
    fn part(&self) -> Result<Part, Problem> {
        let (start, end) = (self.line_number("start_line")?, self.line_number("end_line")?);
        for (key, line) in [("start_line", start), ("end_line", end)] {
            if line == Some(0) {
                let phrase = format!("{key}=\"0\" is not a line number: lines are counted from 1");
                return Err(Problem::new(Mistake::LineNumber, phrase));
            }
        }
        if let (Some(start), Some(end)) = (start, end)
            && start > end
        {
            let phrase = format!("start_line=\"{start}\" is after end_line=\"{end}\"");
            return Err(Problem::new(Mistake::PartRange, phrase));
        }
        let (yes, no) = (["true", "yes", "1"], ["false", "no", "0"]);
        let numbered = self.choice("numbered", &yes, &no, "is neither true nor false")?;
        Ok(Part { start, end, numbered })
    }

    /// Whether an attribute has one of the `yes` words. If it has none of the `no` words either, `fault` is the error.
    fn choice(&self, key: &str, yes: &[&str], no: &[&str], fault: &str) -> Result<bool, Problem> {
        let Some(given) = self.value(key) else { return Ok(false) };
        let word = given.trim().to_ascii_lowercase();
        let is_yes = yes.contains(&&*word);
        if !is_yes && !no.contains(&&*word) {
            let phrase = format!("{key}=\"{}\" {fault}", brief(given.trim()));
            return Err(Problem::new(Mistake::AttributeValue, phrase));
        }
        Ok(is_yes)
    }
}

fn missing(name: &str) -> Problem {
    Problem::new(Mistake::AttributeMissing, format!("the attribute {name} is missing"))
}

/// Whether a warning is about an opening tag, so that the line number must be added.
fn is_of_tag(kind: WarningKind) -> bool {
    use WarningKind::{PathBackslashes, PathDecorated, PathPlaceholder, UnknownAttribute};
    [UnknownAttribute, PathDecorated, PathBackslashes, PathPlaceholder].contains(&kind)
}

fn without_newline(mut body: String) -> String {
    if body.ends_with('\n') {
        body.pop();
    }
    body
}

/// The refusal of a block, from the problem and the correct form.
pub(super) fn tag_fault(
    command: &TagCommand,
    number: usize,
    tag: &str,
    what: &Problem,
) -> StepContent {
    let Problem { mistake, phrase } = what;
    let (tag, phrase, form) = (brief(tag.trim()), phrase.trim_end_matches(','), command.form);
    let reason = format!("Line {number}, `{tag}`: {phrase}. Correct form: {form}");
    StepContent::Invalid(Invalid { kind: command.kind, mistake: *mistake, rejected: false, reason })
}

/// The refusal of a block, from a complete sentence.
pub(super) fn refused(
    command: &TagCommand,
    number: usize,
    mistake: Mistake,
    sentence: String,
) -> Step {
    let invalid = Invalid { kind: command.kind, mistake, rejected: false, reason: sentence };
    Step::new(number, StepContent::Invalid(invalid))
}
