//! The section `## Previous Command Results`: a line for each result, with its warnings and output, and after them
//! what else changed in the workspace.

use super::budget::{Measure, clipped, cut, first_lines, greatest_limit, keep};
use super::contents::RequestedBlocks;
use super::events;
use crate::protocol::{Capture, Detail, Dialect, Outcome, Output, tags};
use crate::session::{Back, Changed, FileChange, Session};
use crate::text::{count, indented, visible, visible_line};

/// Lines are not shortened to fewer characters.
const LINE: usize = 300;
/// About the length of the note that says how much is left out. To leave out less is useless.
const NOTICE: usize = 40;
/// How many changed files are named, and how many characters of each name are shown.
const NAMED: usize = 30;
const NAME_LENGTH: usize = 200;

/// How much is shown of results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most characters of each item: an output stream, a list of lines, a file in events, and in events the
    /// person's words, which PROMPT contains in full.
    pub(super) each: usize,
    /// The most results. Failures take precedence.
    pub(super) results: usize,
}

impl Limits {
    pub(super) const NONE: Self = Self { each: usize::MAX, results: usize::MAX };

    /// Whether excerpts of files are shown in full.
    pub(super) fn keeps_excerpts(&self, dialect: Dialect) -> bool {
        self.results == usize::MAX && (dialect == Dialect::Operations || self.each == usize::MAX)
    }
}

/// The section, within limits; empty if there is nothing to report.
pub(super) fn render(
    session: &Session,
    requested: &RequestedBlocks<'_>,
    limits: &Limits,
) -> String {
    if session.dialect == Dialect::Operations {
        return events::render(session, limits);
    }
    let changes = describe_changes(session);
    if session.last_results.is_empty() && changes.is_empty() {
        return String::new();
    }
    let (results, [failed, ok]) = keep(describe_each(session, requested, limits), limits.results);
    let mut out = format!("\n## Previous Command Results\n{}", results.concat());
    if failed + ok > 0 {
        // It is flush left, so nobody else can have written it.
        out.push_str(&format!(
            "[... more results are left out for room: {ok} OK, {failed} FAILED ...]\n"
        ));
    }
    out + &changes
}

/// The limits with which the results have at most `room` tokens: all items are shortened evenly, and if that is not
/// enough, results are left out.
pub(super) fn limits_within(
    session: &Session,
    requested: &RequestedBlocks<'_>,
    room: usize,
    measure: Measure,
) -> Limits {
    let greatest = |limits: &dyn Fn(usize) -> Limits| {
        greatest_limit(room, measure, |limit| render(session, requested, &limits(limit)))
            .map(limits)
    };
    let few = |results| Limits { each: 0, results };
    greatest(&|each| Limits { each, ..Limits::NONE }).or_else(|| greatest(&few)).unwrap_or(few(0))
}

/// The text of each result, and whether it is a success.
fn describe_each(
    session: &Session,
    requested: &RequestedBlocks<'_>,
    limits: &Limits,
) -> Vec<(bool, String)> {
    let (mut reads, mut excerpt_room) = (0.., tags::EXCERPT_LINES);
    let line = |text: &str| clipped(text, limits.each.max(LINE));
    let result = |outcome: &Outcome| {
        let (success, summary) = match &outcome.detail {
            Detail::ReadLater { .. } => requested.result(reads.next().unwrap_or_default()),
            _ => (outcome.success(), tags::summary(outcome) + &reply_line(outcome)),
        };
        let mark = if success { "[OK]" } else { "[FAILED]" };
        let mut text = format!("{mark} {}: {}\n", tags::name(outcome.kind), line(&summary));
        for warning in &outcome.warnings {
            text.push_str(&format!("  Warning: {}\n", line(&visible_line(warning))));
        }
        if let Some(excerpt) = outcome.detail.excerpt() {
            let lines = tags::excerpt(excerpt, &mut excerpt_room);
            text.push_str(&indented(&first_lines(&lines, limits.each)));
        }
        if let Some(lines) = outcome.detail.listing() {
            text.push_str(&indented(&first_lines(&visible(&lines), limits.each)));
        }
        if let Detail::Ran(execution) = &outcome.detail {
            push_output(&output_within(&execution.output, limits.each), &mut text);
        }
        (success, text)
    };
    session.last_results.iter().map(result).collect()
}

/// The output of a command, at most about `limit` characters.
fn output_within(output: &Output, limit: usize) -> String {
    let length = |capture: &Capture| capture.head.chars().count() + capture.tail.chars().count();
    let length: usize = output.captures().into_iter().map(length).sum();
    if length <= limit.saturating_add(NOTICE) {
        tags::output(output)
    } else {
        tags::output(&output.within(limit))
    }
}

/// Names the line of a failed command in the reply, which tells equal commands apart.
fn reply_line(outcome: &Outcome) -> String {
    if outcome.ran() && !outcome.success() && outcome.line > 0 {
        format!(", line {} of the reply", outcome.line)
    } else {
        String::new()
    }
}

fn push_output(output: &str, text: &mut String) {
    if !output.is_empty() {
        // Further lines are indented, so none can pose as a result.
        let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
        text.push_str(format!("  Output: {first}").trim_end());
        text.push('\n');
        text.push_str(&indented(rest));
    }
}

/// What the newest turn changed in addition to its results, as whole lines; mostly nothing.
pub(super) fn describe_changes(session: &Session) -> String {
    let Some(changed) = session.changed.as_deref() else { return String::new() };
    if let Some(back) = &changed.back {
        return describe_undo(changed, back);
    }
    let mut text = String::new();
    if changed.by_commands > 0 {
        let by_commands = changed.named.iter().filter(|change| change.by_command);
        text = format!(
            "Commands changed {}: {}\n",
            count(changed.by_commands, "file"),
            names(by_commands.map(FileChange::describe), changed.by_commands)
        );
    }
    // Only losses matter: builds and new ignored files are not reported.
    if let Some(ignored) = changed.ignored.as_ref().filter(|ignored| ignored.lost.count > 0) {
        text.push_str(&format!(
            "Commands deleted or overwrote ignored files, which the user cannot undo: {}\n",
            names(&ignored.lost.named, ignored.lost.count)
        ));
    }
    text
}

/// What the person undid or redid.
fn describe_undo(changed: &Changed, back: &Back) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let turns = match turns.as_slice() {
        [one] => format!("what your reply to message {one} changed"),
        _ => format!("what your replies to messages {} changed", turns.join(", ")),
    };
    let but = match (back.left.len(), back.others.count) {
        (0, 0) => "",
        (_, 0) => ", but for those that were left",
        _ => ", but for those that are named below",
    };
    let (what, otherwise, beside) = match back.redid {
        Some(_) => (
            format!("The user has put back {turns}, which they had undone: it stands again{but}"),
            "Not as you left them",
            "No command was run again for that.",
        ),
        None => (
            format!("The user has undone {turns}: files are as they were before{but}"),
            "Not as they were before",
            "Only files of the workspace were put back: what commands did beside them stands, such as commits, ignored files and all that is outside the workspace.",
        ),
    };
    let mut text = match changed.files {
        0 => format!("{what}.\n"),
        n => {
            let named = names(changed.named.iter().map(FileChange::describe), n);
            format!("{what}. {} changed by that: {named}\n", count(n, "file"))
        }
    };
    if !back.left.is_empty() {
        let left = names(back.left.iter().map(|(path, _)| path), back.left.len());
        text.push_str(&format!("Left as they are: {left}\n"));
    }
    if let Some(ignored) = back.ignored.as_ref().filter(|ignored| ignored.matters()) {
        let left = names(&ignored.named, ignored.places);
        text.push_str(&format!("Ignored files were not put back: {left}\n"));
    }
    if back.others.count > 0 {
        let others = names(&back.others.named, back.others.count);
        text.push_str(&format!("{otherwise}, but as somebody else changed them since: {others}\n"));
    }
    text + beside
        + " Go by these files as they are now, and look at them again before you edit lines of them by number.\n"
}

/// The first of these names, and how many more of `all` there are.
fn names(named: impl IntoIterator<Item = impl AsRef<str>>, all: usize) -> String {
    let short = |name: &str| match cut(name, NAME_LENGTH) {
        Some((first, _)) => format!("{first}…"),
        None => name.to_owned(),
    };
    let shown: Vec<String> =
        named.into_iter().take(NAMED).map(|name| short(name.as_ref())).collect();
    let more = match all.saturating_sub(shown.len()) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    shown.join(", ") + &more
}
