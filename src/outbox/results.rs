//! `## Previous Command Results`: a line for each, warnings and output below it; shortened where they
//! would leave no room for anything else.

use super::budget::{CHARS_PER_TOKEN, clipped, first_lines, greatest, level};
use super::changed;
use super::contents::{Requested, Seen};
use crate::protocol::{Capture, Detail, Outcome, Output, Warning, WarningSort, tags};
use crate::session::Session;
use crate::text::{indented, visible, visible_line};
use crate::tokens;

/// Of results that would not fit otherwise, so many characters of each line are kept.
const LINE: usize = 300;

/// How much is told of each result.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    /// So many characters of each stream that a command wrote.
    output: usize,
    /// So many characters of each line.
    line: usize,
    /// So many tokens of lines; of more, failures first.
    lines: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output: usize::MAX, line: usize::MAX, lines: None }
    }
}

impl Limits {
    /// Whether the lines of files that belong to a result are told whole.
    pub(super) fn keeps_excerpts(&self) -> bool {
        self.output == usize::MAX && self.lines.is_none()
    }
}

/// One result, and whether it did what was asked.
struct Told {
    success: bool,
    text: String,
}

/// What results are rendered of.
#[derive(Clone, Copy)]
pub(super) struct Results<'a> {
    pub(super) session: &'a Session,
    pub(super) requested: &'a [Requested],
    /// What is shown of each that was requested; nothing where all is.
    pub(super) seen: &'a [Seen],
}

impl Results<'_> {
    /// All results, with their heading; nothing where there are none.
    pub(super) fn render(&self, limits: &Limits) -> String {
        let mut out = String::new();
        let changed = changed::told(self.session);
        if self.session.last_results.is_empty() && changed.is_empty() {
            return out;
        }
        out.push_str("\n## Previous Command Results\n");
        let mut told = self.told(limits);
        let Some(room) = limits.lines else {
            told.iter().for_each(|told| out.push_str(&told.text));
            out.push_str(&changed);
            return out;
        };
        let kept = kept(&told, room);
        let mut dropped = [0, 0];
        let mut kept = kept.into_iter();
        told.retain(|told| {
            let keeps = kept.next().unwrap_or_default();
            dropped[usize::from(told.success)] += usize::from(!keeps);
            keeps
        });
        told.iter().for_each(|told| out.push_str(&told.text));
        // Flush left, as nothing stands that anybody else wrote.
        let [failed, ok] = dropped;
        if failed + ok > 0 {
            out.push_str(&format!(
                "[... more results are left out for room: {ok} OK, {failed} FAILED ...]\n"
            ));
        }
        out.push_str(&changed);
        out
    }

    /// How much can be told so that all is `room` tokens at most, if that can be at all.
    pub(super) fn within(&self, room: usize) -> Limits {
        let (mut lengths, mut excerpts) = (Vec::new(), tags::EXCERPT_LINES);
        for outcome in &self.session.last_results {
            if let Some(excerpt) = outcome.detail.excerpt() {
                lengths.push(tags::excerpt(excerpt, &mut excerpts).chars().count());
            }
            match &outcome.detail {
                Detail::Ran(execution) => {
                    let captures = execution.output.captures().into_iter();
                    let length = |c: &Capture| c.head.chars().count() + c.tail.chars().count();
                    lengths.extend(captures.map(length));
                }
                detail => lengths.extend(detail.listing().map(|shown| shown.chars().count())),
            }
        }
        let longest = lengths.iter().copied().max().unwrap_or_default();
        // More than a few guesses would take long where there is much.
        let first = level(&lengths, room.saturating_mul(CHARS_PER_TOKEN)).min(longest);
        let shortened = |output| self.render(&Limits { output, ..Limits::default() });
        if let Some(output) = greatest(first, room, &shortened) {
            // What is as long as the longest is whole.
            let output = if output >= longest { usize::MAX } else { output };
            return Limits { output, ..Limits::default() };
        }
        let short = Limits { output: 0, line: LINE, lines: None };
        match tokens::count(&self.render(&short)) {
            all if all <= room => short,
            // The heading, the line that counts what is left out, and that of changed files.
            _ => {
                let beside = 40 + tokens::count(&changed::told(self.session));
                Limits { lines: Some(room.saturating_sub(beside)), ..short }
            }
        }
    }

    fn told(&self, limits: &Limits) -> Vec<Told> {
        let mut reads =
            self.requested.iter().zip(self.seen.iter().map(Some).chain(std::iter::repeat(None)));
        let mut excerpts = tags::EXCERPT_LINES;
        let line = |text: &str| clipped(text, limits.line);
        let told = |outcome: &Outcome| {
            let (success, summary) = match &outcome.detail {
                Detail::ReadLater { .. } => match reads.next() {
                    Some((file, seen)) => file.told(self.requested, seen),
                    None => (false, "the file was not read".to_owned()),
                },
                _ => match not_ended(outcome) {
                    Some(why) => (false, visible_line(why).into_owned()),
                    None => (outcome.success(), tags::summary(outcome) + &ran_from(outcome)),
                },
            };
            let mark = if success { "[OK]" } else { "[FAILED]" };
            let mut text = format!("{mark} {}: {}\n", tags::name(outcome.kind), line(&summary));
            let beside = |warning: &&Warning| warning.sort != WarningSort::Done;
            for warning in outcome.warnings.iter().filter(beside) {
                text.push_str(&format!("  Warning: {}\n", line(&visible_line(warning))));
            }
            if let Some(excerpt) = outcome.detail.excerpt() {
                let shown = tags::excerpt(excerpt, &mut excerpts);
                text.push_str(&indented(&first_lines(&shown, limits.output)));
            }
            if let Some(shown) = outcome.detail.listing() {
                text.push_str(&indented(&first_lines(&visible(&shown), limits.output)));
            }
            if let Detail::Ran(execution) = &outcome.detail {
                push_output(&output_within(&execution.output, limits.output), &mut text);
            }
            Told { success, text }
        };
        self.session.last_results.iter().map(told).collect()
    }
}

/// What a command wrote, cut to so many characters of each stream, where that is shorter.
fn output_within(output: &Output, limit: usize) -> String {
    let all = tags::output(output);
    if limit == usize::MAX {
        return all;
    }
    let part = tags::output(&output.within(limit));
    if part.chars().count() < all.chars().count() { part } else { all }
}

/// Which line of the reply a command that failed stands on: of several alike nobody could say it else.
fn ran_from(outcome: &Outcome) -> String {
    if outcome.ran() && !outcome.success() && outcome.line > 0 {
        format!(", line {} of the reply", outcome.line)
    } else {
        String::new()
    }
}

/// Why the end of a session does not count, where that is what it came to.
fn not_ended(outcome: &Outcome) -> Option<&str> {
    let found = outcome.warnings.iter().find(|warning| warning.sort == WarningSort::Done);
    found.map(|warning| &**warning)
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

/// Which results are told in `room` tokens: failures before what succeeded, the first before the last.
fn kept(told: &[Told], room: usize) -> Vec<bool> {
    let (mut kept, mut left) = (vec![false; told.len()], room);
    for success in [false, true] {
        for (n, told) in told.iter().enumerate().filter(|(_, told)| told.success == success) {
            let Some(less) = left.checked_sub(tokens::count(&told.text)) else { break };
            (kept[n], left) = (true, less);
        }
    }
    kept
}

/// Whether each of the first `count` results did what was asked.
pub(super) fn successes(session: &Session, requested: &[Requested], count: usize) -> Vec<bool> {
    let mut reads = requested.iter();
    let success = |outcome: &Outcome| match &outcome.detail {
        Detail::ReadLater { .. } => reads.next().is_some_and(|file| file.told(requested, None).0),
        _ => outcome.success(),
    };
    session.last_results.iter().take(count).map(success).collect()
}
