//! The section `## Previous Command Results`: a line for each result, with its warnings and output, followed by other
//! changes in the workspace.

use super::budget::{clipped, first_lines, keep};
use super::events;
use super::layout::RenderInput;
use super::redaction::Redaction;
use crate::protocol::{Detail, Dialect, Outcome, operations, tags};
use crate::session::{Ignored, Reversal, Session, TurnChanges};
use crate::text::{count, first_of, indented, visible, visible_line};

/// The fewest characters to which a line is shortened.
const LINE: usize = 300;
/// The most changed files that are named, and the most characters of each name.
const NAMED: usize = 30;
const NAME_LENGTH: usize = 200;

/// The limits for the task in HEADER, for results and for requested files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most characters of each item: the task, an output stream, a list of lines or names, a file in events, and
    /// each message from the person in events (PROMPT contains all of it).
    pub(super) each: usize,
    /// The most results. Failures take precedence.
    pub(super) results: usize,
    /// The most characters of each requested file.
    pub(super) file: usize,
    /// The index of a block that may have more characters, and their number.
    pub(super) larger: Option<(usize, usize)>,
}

impl Limits {
    pub(super) const NONE: Self =
        Self { each: usize::MAX, results: usize::MAX, file: usize::MAX, larger: None };

    /// The most characters of this block of requested contents.
    pub(super) fn of_block(&self, block: usize) -> usize {
        self.larger.filter(|(larger, _)| *larger == block).map_or(self.file, |(_, limit)| limit)
    }
}

/// The section, within limits; empty if there is nothing to report.
pub(super) fn render(material: &RenderInput<'_>, limits: &Limits) -> String {
    let RenderInput { session, outcomes, .. } = material;
    if session.dialect == Dialect::Operations {
        let events = events::message(session, outcomes, limits);
        return format!("\n## Events\n{}", operations::print(&events));
    }
    let changes = changes_within(&material.changes, limits.each);
    if outcomes.is_empty() && changes.is_empty() {
        return String::new();
    }
    let (results, [failed, ok]) = keep(describe_each(material, limits), limits.results);
    // Only deaddrop's own lines are not indented, so this cannot be mistaken for data.
    let more = format!("[... more results are left out for room: {ok} OK, {failed} FAILED ...]\n");
    let more = if failed + ok > 0 { &*more } else { "" };
    format!("\n## Previous Command Results\n{}{more}{changes}", results.concat())
}

/// The text of each result, and whether it is a success.
fn describe_each(material: &RenderInput<'_>, limits: &Limits) -> Vec<(bool, String)> {
    let (mut reads, mut excerpt_room) = (0.., tags::EXCERPT_LINES);
    let line = |text: &str| clipped(text, limits.each.max(LINE));
    let result = |outcome: &Outcome| {
        let (success, summary) = match &outcome.detail {
            Detail::ReadLater { .. } => {
                material.requested.result(reads.next().unwrap_or_default(), limits)
            }
            // The line number distinguishes equal commands.
            Detail::Ran(_) if !outcome.success() && outcome.line > 0 => {
                let summary = tags::summary(outcome);
                (false, format!("{summary}, line {} of the reply", outcome.line))
            }
            _ => (outcome.success(), tags::summary(outcome)),
        };
        let mark = if success { "[OK]" } else { "[FAILED]" };
        let mut text = format!("{mark} {}: {}\n", tags::name(outcome.kind), line(&summary));
        for warning in &outcome.warnings {
            text.push_str(&format!("  Warning: {}\n", line(&visible_line(&warning.text))));
        }
        let excerpt = outcome.detail.excerpt();
        let excerpt = excerpt.map(|it| (tags::excerpt(it, &mut excerpt_room).into(), 0));
        for (lines, more) in excerpt.into_iter().chain(outcome.detail.listing()) {
            text.push_str(&indented(&first_lines(&visible(&lines), limits.each, more)));
        }
        if let Detail::Ran(execution) = &outcome.detail {
            let output = tags::output(&execution.output.within(limits.each));
            if !output.is_empty() {
                // Each line is indented, so it cannot pose as a result.
                let (first, rest) = output.split_once('\n').unwrap_or((&output, ""));
                let first = format!("Output: {first}");
                text.push_str(&indented(&[first.trim_end(), rest].join("\n")));
            }
        }
        (success, text)
    };
    material.outcomes.iter().map(result).collect()
}

/// Changes of the newest turn that its results do not report, as whole lines; usually none.
pub(super) fn describe_changes(session: &Session, redaction: &mut Redaction<'_>) -> String {
    let Some(changed) = session.changed.as_deref() else { return String::new() };
    if let Some(back) = &changed.back {
        return describe_undo(changed, back, redaction);
    }
    let by_commands = changed.named.iter().filter(|change| change.by_command);
    let by_commands = by_commands.map(|change| redaction.change(change));
    let introduction = format!("Commands changed {}", count(changed.by_commands, "file"));
    let text = list(&introduction, by_commands, changed.by_commands);
    // Only losses matter. Builds and new ignored files are not reported.
    let Some(Ignored { lost, .. }) = &changed.ignored else { return text };
    let introduction = "Commands deleted or overwrote ignored files, which the user cannot undo";
    text + &list(introduction, lost.named.iter().map(|name| redaction.name(name)), lost.count)
}

/// Shortens these changes to lists of about `limit` characters.
pub(super) fn changes_within(changes: &str, limit: usize) -> String {
    changes.lines().map(|line| clipped(line, limit.max(LINE)) + "\n").collect()
}

/// Describes an undo or a redo by the person.
fn describe_undo(changed: &TurnChanges, back: &Reversal, redaction: &mut Redaction<'_>) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let (plural, turns) = (if turns.len() == 1 { "" } else { "s" }, turns.join(", "));
    let (what, files, others, limit) = match back.redid {
        Some(_) => ("redone", "Files changed again", "Redone", "No command was run again."),
        None => (
            "undone",
            "Files restored",
            "Restored",
            "Only workspace files were restored: other effects of commands remain, such as commits, ignored files and everything outside the workspace.",
        ),
    };
    let mut text =
        format!("The user has {what} what you changed in reply to message{plural} {turns}.\n");
    let named = changed.named.iter().map(|change| redaction.change(change));
    text += &list(files, named, changed.files);
    let left = back.left.iter().map(|(path, _)| redaction.name(path));
    text += &list("Left as they are", left, back.left.len());
    if let Some(ignored) = back.ignored.as_ref().filter(|ignored| ignored.matters()) {
        let named = ignored.named.iter().map(|name| redaction.name(name));
        text += &list("Ignored files that were not restored", named, ignored.places);
    }
    let named = back.others.named.iter().map(|path| redaction.name(path));
    let introduction = format!("{others}, but with later changes by somebody else");
    text += &list(&introduction, named, back.others.count);
    text + limit
        + " Rely on these files as they are now, and read them again before you edit them by line numbers.\n"
}

/// A line with the first of these names, and the number of others out of `all`; empty if `all` is 0.
fn list(introduction: &str, named: impl Iterator<Item = String>, all: usize) -> String {
    if all == 0 {
        return String::new();
    }
    let named = first_of(named.map(|name| clipped(&name, NAME_LENGTH)), NAMED, all);
    format!("{introduction}: {named}\n")
}
