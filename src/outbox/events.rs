//! The newest results of a session as events, and the section `## Events`.
//!
//! The JSON is escaped: no text in it begins a line, so it cannot pose as another part of the outbox.

use super::ShownFile;
use super::budget::{clipped, contents_within, keep};
use super::contents::{left_out, lines_within, range};
use super::results::Limits;
use crate::clock::Timestamp;
use crate::protocol::operations::{
    Encoding, ErrorCategory, Event, EventsMessage, Status, UtcTime, approval_required, events_of,
    status_of, user_message,
};
use crate::protocol::{Detail, Failure, FileVersion, LineRange, Outcome, Warning, WarningKind};
use crate::session::{Pending, Session};
use crate::text::byte_count;
use crate::workspace::edit::count_lines;

/// The newest results of a session or run as complete events (agent-spaces-protocol, "Events Message"). A resumed
/// run contains only results that were not reported before. For a waiting turn, see [`waiting`].
pub fn events(session: &Session) -> EventsMessage {
    of_results(session, &session.last_results)
}

/// Like [`events`], but with these results. Secrets may have been removed from them.
pub(super) fn of_results(session: &Session, results: &[Outcome]) -> EventsMessage {
    message(session, unreported(session, results), &Limits::NONE)
}

fn unreported<'o>(session: &Session, outcomes: &'o [Outcome]) -> &'o [Outcome] {
    let reported = session.run.as_ref().map_or(0, |run| run.told);
    outcomes.get(reported..).unwrap_or_default()
}

/// The results so far of a turn that waits for an approval, and the question (agent-spaces-protocol,
/// "Approval Flow"); None if no turn waits.
pub fn waiting(session: &Session) -> Option<EventsMessage> {
    let pending = session.pending.as_ref()?;
    let question = question(pending)?;
    let outcomes = unreported(session, &pending.outcomes).iter();
    let now = utc(session.updated_at);
    let mut events: Vec<Event> = outcomes.flat_map(|outcome| events_of(outcome, &now)).collect();
    events.push(question);
    let (run_id, status) = (run_id(session, session.sequence), Status::AwaitingApproval);
    Some(EventsMessage { run_id, status, events })
}

/// The question of a waiting turn as an event; None if it is about the whole reply.
pub fn question(pending: &Pending) -> Option<Event> {
    let question = &pending.question;
    let step = pending.steps.get(question.step?)?;
    let (asked, at) = (&question.ask, utc(question.at));
    Some(approval_required(step, &question.id, &asked.reason, &asked.policy, at))
}

/// All events of a run so far: its outcomes, the decided questions and the waiting question.
pub fn events_so_far(run: &Session, outcomes: &[Outcome]) -> Vec<Event> {
    let now = utc(run.updated_at);
    let asked_at = |step: usize| {
        let decided = run.run.iter().flat_map(|run| &run.decided);
        decided.filter(move |decided| decided.step == step).map(|decided| decided.event.clone())
    };
    let mut events = Vec::new();
    for (n, outcome) in outcomes.iter().enumerate() {
        events.extend(asked_at(n));
        events.extend(events_of(outcome, &now));
    }
    events.extend(asked_at(outcomes.len()));
    events.extend(run.pending.as_deref().and_then(question));
    events
}

/// The message of the section `## Events`, within limits.
pub(super) fn message(session: &Session, outcomes: &[Outcome], limits: &Limits) -> EventsMessage {
    let now = utc(session.updated_at);
    let mut events = Vec::new();
    let is_conversation = session.run.is_none();
    let said = |words: &str, at| {
        let shown = clipped(words, limits.each);
        let whole = if shown == words { "" } else { " (PROMPT contains all of it)" };
        user_message(&(shown + whole), at)
    };
    if is_conversation && session.answered() == 0 {
        events.push(said(&session.task, utc(session.created_at)));
    }
    let shown = |outcome| events_of(&shortened(session, outcome, limits), &now);
    let shown = outcomes.iter().map(|outcome| (outcome.success(), shown(outcome)));
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
    // For a complete session, the previous outbox contained the messages.
    if is_conversation && !session.is_complete {
        // Messages that were added to the outbox later are only in PROMPT.
        let written = session.words_written().iter();
        events.extend(written.map(|words| said(words, now.clone())));
    }
    let (run_id, status) = (run_id(session, session.answered()), status_of(outcomes));
    EventsMessage { run_id, status, events }
}

/// Shortens an outcome. A warning says what is left out of a file, since the protocol has no field for that.
fn shortened(session: &Session, outcome: &Outcome, limits: &Limits) -> Outcome {
    let mut outcome = outcome.within(limits.each);
    let Detail::Read { path, content, encoding, size } = &mut outcome.detail else {
        return outcome;
    };
    let (end, lines) = shown_within(content, *encoding, limits.each);
    if end == content.len() {
        return outcome;
    }
    let path = path.as_str();
    if end == 0 {
        let reason = format!(
            "'{path}' is not shown ({}): this message has no room for it. A shell operation can show a part of it, for example with head -c 2000",
            byte_count(*size)
        );
        outcome.detail = Failure::execution(reason).into();
        return outcome;
    }
    let rest = left_out(session.dialect, path, &lines, &content[..end], Some(lines.total));
    let given = range(&lines, &content[..end]);
    let message = format!("'{path}' is given in part ({given}): {rest}");
    content.truncate(end);
    outcome.warnings.push(Warning::new(WarningKind::Room, message));
    outcome
}

/// How many bytes of a file are shown within a limit, and their lines. Base64 is shown completely or not at all.
fn shown_within(content: &str, encoding: Encoding, limit: usize) -> (usize, LineRange) {
    let end = match encoding {
        Encoding::Utf8 => contents_within(content, limit).len(),
        Encoding::Base64 if content.len() <= limit => content.len(),
        Encoding::Base64 => 0,
    };
    let (bytes, total) = (content.as_bytes(), count_lines(content.as_bytes()));
    let read = LineRange { first: 1, last: total, total, ..LineRange::default() };
    (end, lines_within(read, content, end, bytes))
}

/// The part of a file that the model sees if events show `limit` characters of the file.
pub(super) fn shown(outcome: &Outcome, limit: usize) -> Option<ShownFile> {
    let Detail::Read { path, content, encoding, .. } = &outcome.detail else { return None };
    let version = encoding.decode(content).ok().map(|bytes| FileVersion::whole(&bytes));
    let (_, lines) = shown_within(content, *encoding, limit);
    Some(ShownFile::new(path, &lines, version))
}

/// The ID of a run: `run_{id}_{NNNN}` with the number of the answered outbox, or the run's own name.
fn run_id(session: &Session, answered: u32) -> String {
    match session.run {
        Some(_) => session.stem(),
        None => format!("run_{}_{answered:04}", session.id),
    }
}

fn utc(time: Timestamp) -> UtcTime {
    UtcTime::parse(&time.to_string()).unwrap_or_default()
}
