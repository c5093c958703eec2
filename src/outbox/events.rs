//! The newest results of a session as events, and the section `## Events`.
//!
//! The JSON is escaped, so no text in it begins a line, and it cannot pose as another part of the outbox.

use super::Shown;
use super::budget::{NEXT_LINES, contents_within, cut, keep};
use super::contents::{print_lines, rest_of_line};
use super::results::Limits;
use crate::clock::Timestamp;
use crate::protocol::operations::{
    self, Encoding, ErrorCategory, Event, EventsMessage, Status, UtcTime, approval_required,
    events_of, status_of, user_message,
};
use crate::protocol::{Detail, Failure, FileVersion, Outcome, Warning, WarningKind};
use crate::session::Session;
use crate::text::{byte_count, count};
use crate::workspace::edit::count_lines;

/// The newest results of a session or run as events, in full (agent-spaces-protocol, "Events Message"). A run that was
/// resumed reports what it has not reported before. For a turn that waits, see [`waiting`].
pub fn events(session: &Session) -> EventsMessage {
    let reported = session.run.as_ref().map_or(0, |run| run.told);
    message(session, session.last_results.get(reported..).unwrap_or_default(), &Limits::NONE)
}

/// The results so far of a turn that waits for the person's approval, and the question (agent-spaces-protocol,
/// "Approval Flow"); None if no turn waits.
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
    Some(EventsMessage { run_id, status, events })
}

/// The section `## Events`, within limits.
pub(super) fn render(session: &Session, limits: &Limits) -> String {
    let message = message(session, &session.last_results, limits);
    format!("\n## Events\n{}", operations::print(&message))
}

fn message(session: &Session, outcomes: &[Outcome], limits: &Limits) -> EventsMessage {
    let now = utc(session.updated_at);
    let mut events = Vec::new();
    let is_conversation = session.run.is_none();
    let said = |words: &str, at: UtcTime| match cut(words, limits.each) {
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
    let (kept, [failed, ok]) = keep(shown.collect(), limits.results);
    events.extend(kept.into_iter().flatten());
    if failed + ok > 0 {
        let message = format!(
            "the events of more operations are left out for room: {ok} succeeded, {failed} failed"
        );
        events.push(Event {
            timestamp: now.clone(),
            category: Some(ErrorCategory::Execution),
            message: Some(message),
            ..Event::default()
        });
    }
    // A complete session said these in the outbox before.
    if is_conversation && !session.is_complete {
        // Only PROMPT contains what was added to the outbox later.
        let written = session.words_written().iter();
        events.extend(written.map(|words| said(words, now.clone())));
    }
    let (run_id, status) = (run_id(session, session.answered()), status_of(outcomes));
    EventsMessage { run_id, status, events }
}

/// An outcome within limits. What is left out of a file becomes a warning event, as the protocol has no field for it.
fn shortened(outcome: &Outcome, limits: &Limits) -> Outcome {
    let mut outcome = outcome.within(limits.each);
    let Detail::Read { path, content, encoding, size } = &mut outcome.detail else {
        return outcome;
    };
    let end = shown_of(content, *encoding, limits.each).len();
    if end == content.len() {
        return outcome;
    }
    let (path, shown) = (path.as_str(), &content[..end]);
    let message = if shown.is_empty() {
        let reason = format!(
            "'{path}' is not shown ({}): there is no room for it in this message; shell with head -c or the like shows a part",
            byte_count(*size)
        );
        outcome.detail = Failure::execution(reason).into();
        return outcome;
    } else if shown.ends_with('\n') {
        let lines = |text: &str| count_lines(text.as_bytes());
        let (shown, all) = (lines(shown), lines(content));
        let rest = print_lines(path, shown + 1, (shown + NEXT_LINES).min(all));
        format!(
            "of '{path}' only lines 1-{shown} of {all} are given, for room; shell with {rest} shows more"
        )
    } else {
        let shown = shown.chars().count();
        let length = content.find('\n').unwrap_or(content.len()) as u64;
        format!(
            "of '{path}' only the first {} of line 1 are given, which is {} long: so long a line cannot be given whole; shell with grep -o finds in it, and {} shows more",
            count(shown, "character"),
            byte_count(length),
            rest_of_line(path, 1, shown)
        )
    };
    content.truncate(end);
    outcome.warnings.push(Warning::new(WarningKind::Room, message));
    outcome
}

/// The part of a file that is shown within a limit. Encoded content is shown whole or not at all.
fn shown_of(content: &str, encoding: Encoding, limit: usize) -> &str {
    match encoding {
        Encoding::Utf8 => contents_within(content, limit),
        Encoding::Base64 if content.len() <= limit => content,
        Encoding::Base64 => "",
    }
}

/// What the model sees of a file in events that contain `limit` characters of it.
pub(super) fn shown(outcome: &Outcome, limit: usize) -> Option<Shown> {
    let Detail::Read { path, content, encoding, .. } = &outcome.detail else { return None };
    let seen = encoding.decode(content).ok().map(|bytes| FileVersion::whole(&bytes));
    let part = shown_of(content, *encoding, limit);
    let (whole, last) = (part.len() == content.len(), part.matches('\n').count());
    let lines = if !whole && last > 0 { vec![(1, last)] } else { Vec::new() };
    Some(Shown { path: path.clone(), whole, lines, seen })
}

/// The id of a run: `run_{id}_{NNNN}` with the number of the answered outbox, or the run's own name.
fn run_id(session: &Session, answered: u32) -> String {
    match session.run {
        Some(_) => session.stem(),
        None => format!("run_{}_{answered:04}", session.id),
    }
}

fn utc(time: Timestamp) -> UtcTime {
    UtcTime::parse(&time.to_string()).unwrap_or_default()
}
