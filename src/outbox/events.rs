//! What a session's newest results are as events, and `## Events`, which shows them.
//!
//! The JSON of events cannot pose as anything else of an outbox: it is escaped, so no text in it
//! begins a line.

use super::Shown;
use super::budget::{NEXT_LINES, cut, keep};
use super::contents::{BEGINNING, LEAST, print_lines, rest_of_line};
use super::results::Limits;
use crate::clock::Timestamp;
use crate::protocol::operations::{
    self, Encoding, ErrorCategory, ErrorEvent, Event, EventsMessage, Status, UtcTime, Version,
    approval_required, events_of, status_of, user_message,
};
use crate::protocol::{Detail, Failure, Outcome, Seen, Warning, WarningSort};
use crate::session::Session;
use crate::text::{byte_count, count};
use crate::tokens;
use crate::workspace::edit::count_lines;

/// The newest results of a session, or of a run, as events, whole (agent-spaces-protocol, "Events
/// Message").
///
/// In a conversation its first are the task, and its last what the person says since; a run that was
/// resumed reports what it has not reported before. For a turn that waits, see [`waiting`].
pub fn events(session: &Session) -> EventsMessage {
    let reported = session.run.as_ref().map_or(0, |run| run.told);
    message(session, session.last_results.get(reported..).unwrap_or_default(), &Limits::NONE)
}

/// The results so far of a turn that waits for the person, with what they are asked
/// (agent-spaces-protocol, "Approval Flow"); None if none waits.
pub fn waiting(session: &Session) -> Option<EventsMessage> {
    let pending = session.pending.as_ref()?;
    let question = &pending.question;
    let step = pending.steps.get(question.step)?;
    let reported = session.run.as_ref().map_or(0, |run| run.told);
    let outcomes = pending.outcomes.get(reported..).unwrap_or_default();
    let now = utc(session.updated_at);
    let mut events: Vec<Event> =
        outcomes.iter().flat_map(|outcome| events_of(outcome, &now)).collect();
    let (asked, at) = (&question.ask, utc(question.at));
    events.push(approval_required(step, &question.id, &asked.reason, &asked.policy, at));
    let run_id = run_id(session, session.sequence);
    let status = Status::AwaitingApproval;
    Some(EventsMessage { protocol_version: Version, run_id, status, events })
}

/// `## Events`: what commands wrote, what was read and what was said within limits, all else whole.
pub(super) fn render(session: &Session, limits: &Limits) -> String {
    let message = message(session, &session.last_results, limits);
    format!("\n## Events\n{}", operations::print(&message))
}

fn message(session: &Session, outcomes: &[Outcome], limits: &Limits) -> EventsMessage {
    let now = utc(session.updated_at);
    let mut events = Vec::new();
    let is_conversation = session.run.is_none();
    let said = |words: &str, at: UtcTime| match cut(words, limits.line) {
        None => user_message(words, at),
        Some((first, more)) => {
            let more = count(more, "character");
            let notice = format!("[... {more} left out; the PROMPT section has all of it ...]");
            user_message(&format!("{first}\n{notice}"), at)
        }
    };
    if is_conversation && session.answered() == 0 {
        events.push(said(&session.task, utc(session.created_at)));
    }
    let shown = outcomes
        .iter()
        .map(|outcome| (outcome.success(), events_of(&shortened(outcome, limits), &now)));
    let size =
        |events: &Vec<Event>| tokens::count(&serde_json::to_string(events).unwrap_or_default()) + 4;
    let (kept, [failed, ok]) = keep(shown.collect(), limits.results, size);
    events.extend(kept.into_iter().flatten());
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
    // If it is complete, these were said in the outbox before.
    if is_conversation && !session.is_complete {
        // What was added to the outbox since, PROMPT alone says.
        let written = session.words_written().iter();
        events.extend(written.map(|words| said(words, now.clone())));
    }
    let (run_id, status) = (run_id(session, session.answered()), status_of(outcomes));
    EventsMessage { protocol_version: Version, run_id, status, events }
}

/// An outcome with what it holds of output and contents within limits. What is left out of a file is
/// an event of its own: the protocol has no other place for that.
fn shortened(outcome: &Outcome, limits: &Limits) -> Outcome {
    let mut outcome = outcome.within(limits.output);
    let Detail::Read { path, content, encoding, size } = &mut outcome.detail else {
        return outcome;
    };
    let Some((first, _)) = cut(content, limits.contents) else { return outcome };
    let (whole, is_text) = (first.rfind('\n').map_or(0, |n| n + 1), *encoding == Encoding::Utf8);
    let (kept, told) = if whole > 0 && is_text {
        let (shown, all) =
            (count_lines(&content.as_bytes()[..whole]), count_lines(content.as_bytes()));
        let rest = print_lines(path.as_str(), shown + 1, (shown + NEXT_LINES).min(all));
        let told = format!(
            "of '{path}' only lines 1-{shown} of {all} are given, for room; shell with {rest} shows more"
        );
        (whole, told)
    } else if limits.contents >= LEAST && is_text {
        let shown = limits.contents.min(BEGINNING);
        let length = content.find('\n').unwrap_or(content.len()) as u64;
        let told = format!(
            "of '{path}' only the first {} of line 1 are given, which is {} long: so long a line cannot be given whole; shell with grep -o finds in it, and {} shows more",
            count(shown, "character"),
            byte_count(length),
            rest_of_line(path.as_str(), 1, shown)
        );
        (cut(content, shown).map_or(content.len(), |(first, _)| first.len()), told)
    } else {
        outcome.detail = Failure::execution(format!(
            "'{path}' is not shown ({}): there is no room for it in this message; shell with head -c or the like shows a part",
            byte_count(*size)
        ))
        .into();
        return outcome;
    };
    content.truncate(kept);
    outcome.warnings.push(Warning::new(WarningSort::Room, told));
    outcome
}

/// The file that an outcome shows if events have so many characters of it.
pub(super) fn shown(outcome: &Outcome, limit: usize) -> Option<Shown> {
    let Detail::Read { path, content, encoding, .. } = &outcome.detail else { return None };
    let seen = encoding.decode(content).ok().map(|bytes| Seen::whole(&bytes));
    let first = cut(content, limit).map(|(first, _)| first);
    let lines = first.map_or(0, |first| first.matches('\n').count());
    let lines = (lines > 0 && *encoding == Encoding::Utf8).then_some((1, lines));
    Some(Shown { path: path.clone(), whole: first.is_none(), lines, seen })
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
