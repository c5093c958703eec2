//! What a session's newest results are as events, and `## Events`, which shows them.
//!
//! The JSON of events cannot pose as anything else of an outbox: it is escaped, so no text in it
//! begins a line.

use super::budget::{CHARS_PER_TOKEN, NEXT, greatest, level};
use super::lines;
use crate::clock::Timestamp;
use crate::protocol::operations::{
    self, Encoding, ErrorCategory, ErrorEvent, Event, EventsMessage, Status, UtcTime, Version,
    approval_required, events_of, status_of, user_message,
};
use crate::protocol::{Detail, Failure, Outcome, Warning, WarningSort};
use crate::session::Session;
use crate::text::{byte_count, count, shell_word};
use crate::tokens;
use crate::workspace::edit::count_lines;

/// So many tokens the heading takes, what holds the events, and the one that counts others.
const ENVELOPE: usize = 150;

/// What the newest results of a session, or of a run, are as events, whole (agent-spaces-protocol,
/// "Events Message").
///
/// In a conversation its first are the task, and its last what the person says since; a run that was
/// taken up again tells what it has not told before. What a turn that waits has come to is in
/// [`waiting`].
pub fn events(session: &Session) -> EventsMessage {
    let told = session.run.as_ref().map_or(0, |run| run.told);
    let outcomes = session.last_results.get(told..).unwrap_or_default();
    message(session, outcomes, None)
}

/// What a turn that waits for the person has come to, with what they are asked (agent-spaces-protocol,
/// "Approval Flow"); None where none waits.
pub fn waiting(session: &Session) -> Option<EventsMessage> {
    let pending = session.pending.as_ref()?;
    let question = &pending.question;
    let step = pending.steps.get(question.step)?;
    let told = session.run.as_ref().map_or(0, |run| run.told);
    let now = utc(session.updated_at);
    let mut events = all(pending.outcomes.get(told..).unwrap_or_default(), &now);
    let asked = &question.ask;
    let at = utc(question.at);
    events.push(approval_required(step, &question.id, &asked.reason, &asked.policy, at));
    let run_id = run_id(session, session.sequence);
    let status = Status::AwaitingApproval;
    Some(EventsMessage { protocol_version: Version, run_id, status, events })
}

/// How much of the newest results `## Events` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// So many characters of each stream that a command wrote.
    output: usize,
    /// So many characters, as whole lines, of each file that was read.
    contents: usize,
    /// So many characters of what the user said, which PROMPT has whole.
    words: usize,
    /// So many tokens of events; of more, failures first.
    events: Option<usize>,
}

impl Limits {
    /// All, but for what commands wrote.
    pub(super) fn of(output: usize) -> Self {
        Self { output, contents: usize::MAX, words: usize::MAX, events: None }
    }

    /// So many characters, as whole lines, of each file that was read; none where events are left
    /// out.
    pub(super) fn contents(&self) -> usize {
        if self.events.is_some() { 0 } else { self.contents }
    }

    /// Whether no event is left out.
    pub(super) fn keeps_events(&self) -> bool {
        self.events.is_none()
    }
}

/// `## Events`: what commands wrote, what was read and what was said within limits, all else whole.
pub(super) fn render(session: &Session, limits: &Limits) -> String {
    let shown = message(session, &session.last_results, Some(limits));
    format!("\n## Events\n{}", operations::print(&shown))
}

/// How much can be told so that all is `room` tokens at most, if that can be at all.
pub(super) fn within(session: &Session, output: usize, room: usize) -> Limits {
    let words = (room * CHARS_PER_TOKEN) / 16;
    let whole = Limits { words, ..Limits::of(output) };
    let mut lengths = Vec::new();
    for outcome in &session.last_results {
        match &outcome.detail {
            Detail::Ran(execution) => {
                let captures = execution.output.captures().into_iter();
                let kept = captures.map(|c| c.head.chars().count() + c.tail.chars().count());
                lengths.extend(kept.map(|length| length.min(output)));
            }
            Detail::Read { content, .. } => lengths.push(content.chars().count()),
            _ => {}
        }
    }
    let longest = lengths.iter().copied().max().unwrap_or_default();
    let first = level(&lengths, room.saturating_mul(CHARS_PER_TOKEN)).min(longest);
    let shortened = |limit: usize| Limits { output: output.min(limit), contents: limit, ..whole };
    if let Some(limit) = greatest(first, room, &|limit| render(session, &shortened(limit))) {
        return shortened(limit);
    }
    Limits { events: Some(room.saturating_sub(ENVELOPE)), ..shortened(0) }
}

fn message(session: &Session, outcomes: &[Outcome], limits: Option<&Limits>) -> EventsMessage {
    let now = utc(session.updated_at);
    let mut events = Vec::new();
    let is_conversation = session.run.is_none();
    let said = |words: &str, at: UtcTime| match limits {
        Some(Limits { words: limit, .. }) => user_message(&beginning(words, *limit), at),
        None => user_message(words, at),
    };
    if is_conversation && session.answered() == 0 {
        events.push(said(&session.task, utc(session.created_at)));
    }
    match limits {
        None => events.extend(all(outcomes, &now)),
        Some(limits) => {
            let told = outcomes.iter().map(|outcome| {
                let text = events_of(&shortened(outcome, limits), &now);
                (outcome.success(), text)
            });
            events.extend(fitting(told.collect(), limits.events, &now));
        }
    }
    // Once it is complete, these were said in the outbox before.
    if is_conversation && !session.is_complete {
        // What was added to the outbox since, PROMPT alone says.
        let written = session.words_written().iter();
        events.extend(written.map(|words| said(words, now.clone())));
    }
    let (run_id, status) = (run_id(session, session.answered()), status_of(outcomes));
    EventsMessage { protocol_version: Version, run_id, status, events }
}

/// What the user said, or its beginning.
fn beginning(words: &str, limit: usize) -> String {
    match words.char_indices().nth(limit) {
        None => words.to_owned(),
        Some((cut, _)) => {
            let more = words[cut..].chars().count();
            let more = count(more, "character");
            format!(
                "{}\n[... {more} left out; the PROMPT section has all of it ...]",
                &words[..cut]
            )
        }
    }
}

/// So many characters are given of a line that is too long to be given whole, and no fewer than that.
const BEGINNING: usize = 4_000;
const LEAST: usize = 100;

/// An outcome with what it holds of output and contents within limits. What is left out of a file is
/// told beside it, as an event of its own: the protocol has no other place for that.
fn shortened(outcome: &Outcome, limits: &Limits) -> Outcome {
    let mut outcome = outcome.within(limits.output);
    let Detail::Read { path, content, encoding, size } = &mut outcome.detail else {
        return outcome;
    };
    let Some((cut, _)) = content.char_indices().nth(limits.contents) else { return outcome };
    let whole = content[..cut].rfind('\n').map_or(0, |n| n + 1);
    if whole == 0 && limits.contents >= LEAST && *encoding == Encoding::Utf8 {
        let length = content.find('\n').unwrap_or(content.len()) as u64;
        let shown = limits.contents.min(BEGINNING);
        let cut = content.char_indices().nth(shown).map_or(cut, |(at, _)| at);
        let told = format!(
            "of '{path}' only the first {} of line 1 are given, which is {} long: so long a line cannot be given whole; shell with grep -o finds in it, and {} shows more",
            count(shown, "character"),
            byte_count(length),
            lines::cut_out(path.as_str(), 1, shown)
        );
        content.truncate(cut);
        outcome.warnings.push(Warning::new(WarningSort::Room, told));
        return outcome;
    }
    if whole == 0 || *encoding != Encoding::Utf8 {
        let told = format!(
            "'{path}' is not shown ({}): there is no room for it in this message; shell with head -c or the like shows a part",
            byte_count(*size)
        );
        outcome.detail = Failure::execution(told).into();
        return outcome;
    }
    let (shown, all) = (content[..whole].matches('\n').count(), count_lines(content.as_bytes()));
    let told = format!(
        "of '{path}' only lines 1-{shown} of {all} are given, for room; shell with sed -n '{},{}p' {} shows more",
        shown + 1,
        (shown + NEXT).min(all),
        shell_word(path.as_str())
    );
    content.truncate(whole);
    outcome.warnings.push(Warning::new(WarningSort::Room, told));
    outcome
}

/// The events that are told in `room` tokens: those of failures before those of what succeeded, and
/// an `error` that counts the others.
fn fitting(told: Vec<(bool, Vec<Event>)>, room: Option<usize>, now: &UtcTime) -> Vec<Event> {
    let Some(room) = room else {
        return told.into_iter().flat_map(|(_, events)| events).collect();
    };
    let (mut kept, mut left, mut dropped) = (vec![false; told.len()], room, [0, 0]);
    for wanted in [false, true] {
        for (n, (success, events)) in told.iter().enumerate().filter(|(_, told)| told.0 == wanted) {
            let text = serde_json::to_string(events).unwrap_or_default();
            match left.checked_sub(tokens::count(&text) + 4) {
                Some(less) => (kept[n], left) = (true, less),
                None => dropped[usize::from(*success)] += 1,
            }
        }
    }
    let is_kept = |(n, _): &(usize, (bool, Vec<Event>))| kept[*n];
    let mut events: Vec<Event> =
        told.into_iter().enumerate().filter(is_kept).flat_map(|(_, (_, events))| events).collect();
    let [failed, ok] = dropped;
    if failed + ok > 0 {
        events.push(Event::Error(ErrorEvent {
            operation_id: None,
            timestamp: now.clone(),
            category: ErrorCategory::Execution,
            message: format!(
                "the events of more operations are left out for room: {ok} succeeded, {failed} failed"
            ),
            details: None,
        }));
    }
    events
}

fn all(outcomes: &[Outcome], now: &UtcTime) -> Vec<Event> {
    outcomes.iter().flat_map(|outcome| events_of(outcome, now)).collect()
}

/// `run_{id}_{NNNN}`, with the number of the outbox that was answered; of a run, its own name.
fn run_id(session: &Session, answered: u32) -> String {
    match session.run {
        Some(_) => session.stem(),
        None => format!("run_{}_{answered:04}", session.id),
    }
}

fn utc(time: Timestamp) -> UtcTime {
    UtcTime::parse(&time.to_string()).unwrap_or_default()
}
