//! What a session's newest results are as events, and `## Events`, which shows them.
//!
//! The JSON of events cannot pose as anything else of an outbox: it is escaped, so no text in it
//! begins a line.

use crate::clock::Timestamp;
use crate::protocol::Outcome;
use crate::protocol::operations::{
    self, Event, EventsMessage, Status, UtcTime, Version, approval_required, events_of, status_of,
    user_message,
};
use crate::session::Session;

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

/// Writes `## Events`: what commands wrote within a limit for each stream, and all else whole.
pub(super) fn render(session: &Session, limit: usize, out: &mut String) {
    out.push_str("\n## Events\n");
    out.push_str(&operations::print(&message(session, &session.last_results, Some(limit))));
}

fn message(session: &Session, outcomes: &[Outcome], limit: Option<usize>) -> EventsMessage {
    let now = utc(session.updated_at);
    let mut events = Vec::new();
    let is_conversation = session.run.is_none();
    if is_conversation && session.answered() == 0 {
        events.push(user_message(&session.task, utc(session.created_at)));
    }
    match limit {
        None => events.extend(all(outcomes, &now)),
        Some(limit) => {
            for outcome in outcomes {
                events.extend(events_of(&outcome.within(limit), &now));
            }
        }
    }
    // Once it is complete, these were said in the outbox before.
    if is_conversation && !session.is_complete {
        events.extend(session.said.iter().map(|words| user_message(words, now.clone())));
    }
    let (run_id, status) = (run_id(session, session.answered()), status_of(outcomes));
    EventsMessage { protocol_version: Version, run_id, status, events }
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
