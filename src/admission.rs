//! Whether a reply is accepted: it must answer the newest outbox of its session, and not be the reply before it.
//! An earlier outbox counts, too, as long as nothing of any reply since could be read: a reply that was copied in
//! part does not outdate the whole one.

use std::cmp::Ordering;

use crate::protocol::tags::is_button;
use crate::protocol::{
    Address, Detail, Digest, Ending, Failure, FailureKind, Kind, Outcome, ParsedReply,
};
use crate::session::Session;
use crate::session::record::Begin;
use crate::text::visible_line;

/// The flag with which `apply` executes a reply again.
pub const AGAIN: &str = "--again";

/// Why a reply is held.
#[derive(Debug)]
pub struct Objection {
    /// Why it is most likely a mistake, a phrase.
    pub why: String,
    /// The flag with which `apply` executes it all the same.
    pub flag: &'static str,
    /// A stable name of the reason, for programs.
    pub code: &'static str,
}

/// Why a reply is most likely a mistake: it has just been executed, or answers an outbox that may not be answered any
/// more. `written` is when its file, if any, was last written, in nanoseconds since 1970.
pub fn objection(
    session: &Session,
    letter: &ParsedReply,
    written: Option<i128>,
) -> Option<Objection> {
    let is_duplicate = match letter.answers() {
        Some(answers) => match mismatch(session, answers) {
            None => answers.sequence < session.sequence && is_last_reply(session, letter.text()),
            found => return found,
        },
        None => is_duplicate(session, letter.text(), written),
    };
    is_duplicate.then(|| Objection {
        why: "it is the same text as the reply before it, most likely pasted twice".to_owned(),
        flag: AGAIN,
        code: "duplicate-reply",
    })
}

/// What the person is told of a reply that is held.
pub fn held(Objection { why, flag, .. }: Objection) -> String {
    format!("{why}. It was not carried out; `deaddrop apply {flag} FILE` does it")
}

/// Why a reply that answers `answers` does not answer an outbox that may still be answered; None if it does.
pub fn mismatch(session: &Session, answers: &Address) -> Option<Objection> {
    let (id, newest) = (&session.id, session.sequence);
    let Address { session: answered, sequence, key } = answers;
    let (code, why) = match sequence.cmp(&newest) {
        _ if answered != id => {
            let why = format!("it says that it answers session {}", visible_line(answered));
            ("other-session", why)
        }
        _ if session.words_added_to(*sequence).is_some() => {
            key.as_ref().filter(|key| session.words_read(*sequence, key).is_none())?;
            ("wrong-key", format!("its key is not that of message {sequence} of session {id}"))
        }
        Ordering::Less => (
            "outdated-reply",
            format!(
                "it answers message {sequence} of session {id}, and the newest is {newest}, so it may be based on outdated files"
            ),
        ),
        Ordering::Greater | Ordering::Equal => (
            "unknown-outbox",
            format!(
                "it says that it answers message {sequence} of session {id}, and the newest is {newest}"
            ),
        ),
    };
    Some(Objection { why, flag: "--force", code })
}

/// Whether a reply that answers `answers` has the key of the outbox, and the session awaits it: only somebody who has
/// read that outbox can have written it.
pub fn is_authentic(session: &Session, answers: &Address) -> bool {
    session.awaits_reply() && answers.key.is_some() && mismatch(session, answers).is_none()
}

/// Identifies the text of the reply of a turn.
pub fn reply_identity(begin: &Begin) -> Digest {
    match &begin.session.pending {
        Some(pending) => pending.text.clone(),
        None => identity(&begin.text),
    }
}

/// Identifies the text of a reply.
fn identity(reply: &str) -> Digest {
    Digest::of(normalize(reply).as_bytes())
}

/// Whether this text is the previous reply again, most likely pasted twice; `written` is when its file was last
/// written, in nanoseconds since 1970.
///
/// If something of the previous reply failed and nothing was done, the model was asked to send the same again: then
/// only a file that was written before anybody could read that is a duplicate.
fn is_duplicate(session: &Session, reply: &str, written: Option<i128>) -> bool {
    let results = &session.last_results;
    let asks_again = results.iter().any(Outcome::failed) && !results.iter().any(may_have_acted);
    // The time of the results is known to the second.
    let reported = i128::from(session.updated_at.seconds() + 1) * 1_000_000_000;
    is_last_reply(session, reply)
        && (!asks_again || written.is_some_and(|written| written < reported))
}

/// Whether this is the text of the previous reply.
fn is_last_reply(session: &Session, reply: &str) -> bool {
    // Sessions of early versions identify a text by all of its bytes.
    let is_same = |last: &Digest| *last == identity(reply) || *last == Digest::of(reply.as_bytes());
    session.last_reply.as_ref().is_some_and(is_same)
}

/// Whether executing the operation once more may have an effect once more.
fn may_have_acted(outcome: &Outcome) -> bool {
    match outcome.kind {
        Kind::Message | Kind::Read | Kind::List | Kind::Search | Kind::Reply => return false,
        Kind::Create | Kind::Edit | Kind::Delete | Kind::Move | Kind::Run | Kind::Done => {}
    }
    match &outcome.detail {
        Detail::Ineffective { .. } => false,
        Detail::Ran(execution) => !matches!(execution.ending, Ending::NotStarted(_)),
        // A disk or a guest may fail when a part is done.
        Detail::Failed(Failure { kind, mistake, .. }) => {
            matches!(kind, FailureKind::Execution | FailureKind::System) && mistake.is_none()
        }
        _ => true,
    }
}

/// A reply without what copying it from a chat changes: line endings, white space at the ends of lines,
/// and blank lines, fences and buttons of the page around it.
fn normalize(reply: &str) -> String {
    let lines: Vec<&str> =
        reply.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    let is_inside = |line: &&str| !is_furniture(line);
    let first = lines.iter().position(is_inside).unwrap_or(lines.len());
    let end = lines.iter().rposition(is_inside).map_or(first, |last| last + 1);
    // A selection may begin within the indentation of the first line.
    lines[first..end].join("\n").trim_start().to_owned()
}

/// Whether a line around a reply does not belong to it: blank, a fence with at most one word, or a button.
fn is_furniture(line: &str) -> bool {
    let word = line.trim().to_lowercase();
    let info = word.strip_prefix("```").or(word.strip_prefix("~~~"));
    // A reply ends with a tag or with words.
    let is_fence = info.is_some_and(|info| !info.contains(|c: char| c.is_whitespace() || c == '['));
    word.is_empty() || word == "code" || is_fence || is_button(&word)
}

#[cfg(test)]
mod tests;
