//! `## Previous Command Results`: a line for each, with warnings and output below it, shortened if they
//! would leave no room for anything else. After them, what changed in the workspace by other hands than
//! the model's file operations. Names are data; each is within a line of ours.

use super::budget::{CHARS_PER_TOKEN, clipped, cut, first_lines, keep, limit};
use super::contents::RequestedBlocks;
use super::events;
use crate::protocol::{Detail, Dialect, Outcome, Output, tags};
use crate::session::{Back, Changed, FileChange, Session};
use crate::text::{count, indented, visible, visible_line};
use crate::tokens;

/// If results would not fit otherwise, so many characters of each line are kept.
const LINE: usize = 300;
/// How many tokens the heading takes, what holds events, and the line that counts what is left out.
const ENVELOPE: usize = 150;
/// So many changed files are named, and so many characters of each name shown.
const NAMED: usize = 30;
const NAME_LENGTH: usize = 200;

/// How much is shown of results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many characters of each stream that a command wrote, and of each list of lines.
    pub(super) output: usize,
    /// How many characters, as whole lines, of each file that was read.
    pub(super) contents: usize,
    /// How many characters of each line, and in events of what the person said, which PROMPT has whole.
    pub(super) line: usize,
    /// How many tokens of results; of more, failures first.
    pub(super) results: Option<usize>,
}

impl Limits {
    pub(super) const NONE: Self =
        Self { output: usize::MAX, contents: usize::MAX, line: usize::MAX, results: None };

    /// Whether the lines of files that belong to a result are shown whole.
    pub(super) fn keeps_excerpts(&self, dialect: Dialect) -> bool {
        self.results.is_none() && (dialect == Dialect::Operations || self.output == usize::MAX)
    }

    /// How many characters are shown of each file that was read.
    pub(super) fn contents(&self) -> usize {
        if self.results.is_some() { 0 } else { self.contents }
    }
}

/// What results are rendered from.
#[derive(Clone, Copy)]
pub(super) struct Results<'a> {
    pub(super) session: &'a Session,
    /// What is shown of the files that were requested.
    pub(super) requested: &'a RequestedBlocks<'a>,
}

impl Results<'_> {
    /// All results, with their heading; nothing if there are none.
    pub(super) fn render(&self, limits: &Limits) -> String {
        if self.session.dialect == Dialect::Operations {
            return events::render(self.session, limits);
        }
        let changes = changes(self.session);
        if self.session.last_results.is_empty() && changes.is_empty() {
            return String::new();
        }
        let size = |text: &String| tokens::count(text);
        let (results, [failed, ok]) = keep(self.each(limits), limits.results, size);
        let mut out = format!("\n## Previous Command Results\n{}", results.concat());
        if failed + ok > 0 {
            // Flush left, as nothing is that anybody else wrote.
            out.push_str(&format!(
                "[... more results are left out for room: {ok} OK, {failed} FAILED ...]\n"
            ));
        }
        out + &changes
    }

    /// How much can be shown so that all takes `room` tokens at most, if that is possible at all; no more
    /// than with the limits `most`.
    pub(super) fn within(&self, most: Limits, room: usize) -> Limits {
        let line = match self.session.dialect {
            Dialect::Tags => usize::MAX,
            Dialect::Operations => room * CHARS_PER_TOKEN / 16,
        };
        let shortened =
            |limit| Limits { output: most.output.min(limit), contents: limit, line, results: None };
        let render = |limit| self.render(&shortened(limit));
        if let Some(output) = limit(&self.session.last_results, room, &render) {
            return shortened(output);
        }
        let short = Limits { line: LINE.min(line), ..shortened(0) };
        if tokens::count(&self.render(&short)) <= room {
            return short;
        }
        let beside = ENVELOPE + tokens::count(&changes(self.session));
        Limits { results: Some(room.saturating_sub(beside)), ..short }
    }

    /// Each result with whether it is a success.
    fn each(&self, limits: &Limits) -> Vec<(bool, String)> {
        let (mut reads, mut excerpt_room) = (0.., tags::EXCERPT_LINES);
        let line = |text: &str| clipped(text, limits.line);
        let result = |outcome: &Outcome| {
            let (success, summary) = match &outcome.detail {
                Detail::ReadLater { .. } => self.requested.result(reads.next().unwrap_or_default()),
                _ => (outcome.success(), tags::summary(outcome) + &reply_line(outcome)),
            };
            let mark = if success { "[OK]" } else { "[FAILED]" };
            let mut text = format!("{mark} {}: {}\n", tags::name(outcome.kind), line(&summary));
            for warning in &outcome.warnings {
                text.push_str(&format!("  Warning: {}\n", line(&visible_line(warning))));
            }
            if let Some(excerpt) = outcome.detail.excerpt() {
                let lines = tags::excerpt(excerpt, &mut excerpt_room);
                text.push_str(&indented(&first_lines(&lines, limits.output)));
            }
            if let Some(lines) = outcome.detail.listing() {
                text.push_str(&indented(&first_lines(&visible(&lines), limits.output)));
            }
            if let Detail::Ran(execution) = &outcome.detail {
                push_output(&output_within(&execution.output, limits.output), &mut text);
            }
            (success, text)
        };
        self.session.last_results.iter().map(result).collect()
    }
}

/// What a command wrote, cut to so many characters of each stream if that is shorter.
fn output_within(output: &Output, limit: usize) -> String {
    let all = tags::output(output);
    if limit == usize::MAX {
        return all;
    }
    let part = tags::output(&output.within(limit));
    if part.chars().count() < all.chars().count() { part } else { all }
}

/// The line of the reply with a command that failed: of several alike nothing else tells which one.
fn reply_line(outcome: &Outcome) -> String {
    if outcome.ran() && !outcome.success() && outcome.line > 0 {
        format!(", line {} of the reply", outcome.line)
    } else {
        String::new()
    }
}

fn push_output(output: &str, text: &mut String) {
    if !output.is_empty() {
        // Every line but the first begins with two spaces, so none can pose as a result.
        let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
        text.push_str(format!("  Output: {first}").trim_end());
        text.push('\n');
        text.push_str(&indented(rest));
    }
}

/// What the newest turn is said to have changed beside its results, in whole lines; mostly nothing.
pub(super) fn changes(session: &Session) -> String {
    let Some(changed) = session.changed.as_deref() else { return String::new() };
    if let Some(back) = &changed.back {
        return undone(changed, back);
    }
    let mut told = String::new();
    if changed.by_commands > 0 {
        let by_commands = changed.named.iter().filter(|change| change.by_command);
        told = format!(
            "Commands changed {}: {}\n",
            count(changed.by_commands, "file"),
            names(by_commands.map(FileChange::describe), changed.by_commands)
        );
    }
    // A build is nothing to tell, nor what is new: it takes nothing from anybody.
    if let Some(ignored) = changed.ignored.as_ref().filter(|ignored| ignored.lost.count > 0) {
        told.push_str(&format!(
            "Commands deleted or overwrote ignored files, which the user cannot undo: {}\n",
            names(&ignored.lost.named, ignored.lost.count)
        ));
    }
    told
}

/// What the person undid, or did again.
fn undone(changed: &Changed, back: &Back) -> String {
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
    let mut told = match changed.files {
        0 => format!("{what}.\n"),
        n => {
            let named = names(changed.named.iter().map(FileChange::describe), n);
            format!("{what}. {} changed by that: {named}\n", count(n, "file"))
        }
    };
    if !back.left.is_empty() {
        let left = names(back.left.iter().map(|(path, _)| path), back.left.len());
        told.push_str(&format!("Left as they are: {left}\n"));
    }
    if let Some(ignored) = back.ignored.as_ref().filter(|ignored| ignored.matters()) {
        let left = names(&ignored.named, ignored.places);
        told.push_str(&format!("Ignored files were not put back: {left}\n"));
    }
    if back.others.count > 0 {
        let others = names(&back.others.named, back.others.count);
        told.push_str(&format!("{otherwise}, but as somebody else changed them since: {others}\n"));
    }
    told + beside
        + " Go by these files as they are now, and look at them again before you edit lines of them by number.\n"
}

/// The first of these names, and how many of `all` are not among them.
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
