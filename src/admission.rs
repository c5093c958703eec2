//! Decides whether a reply is accepted: which session it is for, whether it answers the newest outbox of that session,
//! and whether it repeats the previous reply. An earlier outbox counts, too, as long as no later reply could be read: a
//! partly copied reply does not make the complete one outdated.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;

use crate::error::{Error, Result};
use crate::protocol::tags::is_button;
use crate::protocol::{
    Detail, Digest, Ending, Failure, FailureKind, Kind, Outcome, ParsedReply, ReplyAddress,
};
use crate::session::Session;
use crate::session::record::Begin;
use crate::session::store::SessionStore;
use crate::text::visible_line;

/// The flag of `apply` for a reply that is the same as the one before it.
const AGAIN: &str = "--again";

/// The decision about a reply.
#[derive(Debug)]
pub enum Admission {
    /// It is executed.
    Accepted,
    /// It is most likely a mistake, so it is kept; the person can execute it all the same.
    Held(Refusal),
    /// It cannot be executed.
    Rejected(Refusal),
}

/// Why a reply is not executed. Displayed, it says how to execute it all the same.
#[derive(Debug)]
pub struct Refusal {
    /// A stable name of the reason, for programs.
    pub code: &'static str,
    /// The reason, a phrase.
    pub why: String,
    /// The flag with which `apply` executes it all the same, if one does.
    pub flag: Option<&'static str>,
}

/// How a reply was given, and what the person allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplyOptions {
    /// When its file, if any, was last written, in nanoseconds since 1970.
    pub written: Option<i64>,
    /// Whether it was given as a text. An empty text is rejected, since it was most likely copied wrongly.
    pub as_text: bool,
    /// Execute it even if it repeats the previous reply.
    pub again: bool,
    /// Execute it even if it answers another outbox than the newest.
    pub force: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        let Some(flag) = self.flag else { return Ok(()) };
        write!(
            f,
            ". It was not executed; `deaddrop apply {flag}` with this file executes it anyway"
        )
    }
}

/// Decides about a reply to a session that can accept one (see [`check_ready`]).
pub fn admit(reply: &ParsedReply, session: &Session, options: ReplyOptions) -> Admission {
    if options.as_text && reply.text().trim().is_empty() {
        let why = "it is empty; copy the reply in the chat window, or save it, and give it again"
            .to_owned();
        return Admission::Rejected(Refusal { code: "unreadable-reply", why, flag: None });
    }
    let is_overruled = |held: &Refusal| options.force || options.again && held.flag == Some(AGAIN);
    match objection(session, reply, options.written).filter(|held| !is_overruled(held)) {
        Some(held) => Admission::Held(held),
        None => Admission::Accepted,
    }
}

/// Checks that a session can accept a reply now. `workspace` is the name of the present workspace; None in a guest.
///
/// # Errors
/// The session began in another workspace, or waits for a decision. The reply can be given again later.
pub fn check_ready(session: &Session, workspace: Option<&str>) -> Result<()> {
    check_workspace(session, workspace, true)?;
    let Some(question) = session.question() else { return Ok(()) };
    Err(Error::waits(format!(
        "session {0} waits for your decision about '{1}': `deaddrop approve --session {0}` or `deaddrop deny --session {0}`; the reply was not carried out",
        session.id,
        visible_line(&question.id)
    )))
}

/// Checks that a session or a run began in the workspace of this name; None in a guest. `moves` says whether the error
/// suggests moving it.
///
/// # Errors
/// The session or run began in another workspace.
pub fn check_workspace(session: &Session, workspace: Option<&str>, moves: bool) -> Result<()> {
    match (&session.workspace, workspace) {
        (Some(begun), Some(now)) if begun != now => {
            Err(Error::other_workspace(&session.stem(), begun, now, moves))
        }
        _ => Ok(()),
    }
}

/// The session that a reply given by hand is for: the named one, the one that the reply says it answers, or the only
/// open one. With `force`, a session that the reply names and that does not exist is ignored.
///
/// # Errors
/// The session does not exist, none is open, or several are.
pub fn choose_session(
    store: &SessionStore,
    answers: Option<&ReplyAddress>,
    named: Option<&str>,
    force: bool,
) -> Result<Session> {
    let answered = answers.map(|answers| &*answers.session);
    let answered = answered.filter(|id| !force || store.load(id).is_ok());
    store.choose(named.or(answered))
}

/// The session that a file of the inbox is for: the open one that it says it answers, the one whose ID is in the file's
/// name, or the only open one. `damaged` contains the errors of sessions that cannot be read, by ID.
///
/// # Errors
/// The session does not exist, or is complete or damaged; several sessions match; or file name and reply disagree.
pub fn session_for_file<'a>(
    sessions: impl Iterator<Item = &'a Session>,
    damaged: &BTreeMap<String, String>,
    file_name: &OsStr,
    answers: Option<&ReplyAddress>,
) -> Result<&'a Session, Refusal> {
    let mut sessions: Vec<&Session> = sessions.collect();
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    let name = file_name.to_string_lossy().to_lowercase();
    let is_named = |session: &&&Session| name.contains(&session.id);
    let open: Vec<&Session> = sessions.iter().filter(|s| !s.is_complete).copied().collect();
    if let Some(ReplyAddress { session: id, .. }) = answers {
        let session = open_session(&sessions, damaged, id)?;
        let other = sessions.iter().filter(is_named).find(|_| !name.contains(id));
        return other.map_or(Ok(session), |other| {
            let other = &other.id;
            reject("other-session", format!(
                "it says that it answers session {id}, but its file name says session {other}; `deaddrop apply --session ID --force FILE` carries it out for the session that you mean"
            ))
        });
    }
    let named: Vec<&Session> = open.iter().filter(is_named).copied().collect();
    if let [session] = *named {
        return Ok(session);
    }
    if named.is_empty() {
        let ids = sessions.iter().map(|session| &session.id).chain(damaged.keys());
        if let Some(id) = ids.into_iter().find(|id| name.contains(*id)) {
            return open_session(&sessions, damaged, id);
        }
        match *open {
            // A damaged session may be open, too.
            [only] if damaged.is_empty() => return Ok(only),
            [] => {
                let why = "no session is open; `deaddrop new \"your task\"` starts one";
                return reject("no-open-session", why.to_owned());
            }
            _ => {}
        }
    }
    let mut ids: Vec<&str> = open.iter().map(|session| &*session.id).collect();
    let example = ids[0];
    let damaged: Vec<String> = damaged.keys().map(|id| format!("damaged: {id}")).collect();
    ids.extend(damaged.iter().map(String::as_str));
    let ids = ids.join(", ");
    let why = format!(
        "several sessions are open ({ids}), and neither the reply nor the file's name says which one it is for; put the session's id into the name, as in {example}_reply.txt, and move it back into the inbox"
    );
    reject("several-sessions", why)
}

/// The open session of this ID.
fn open_session<'a>(
    sessions: &[&'a Session],
    damaged: &BTreeMap<String, String>,
    id: &str,
) -> Result<&'a Session, Refusal> {
    if let Some(why) = damaged.get(id) {
        return reject("damaged-session", why.clone());
    }
    match sessions.iter().find(|session| session.id == id) {
        Some(session) if session.is_complete => {
            reject("session-complete", Error::complete(id).to_string())
        }
        Some(session) => Ok(session),
        None => reject(
            "no-session",
            format!(
                "it says that it answers session {}, which does not exist; `deaddrop apply --force FILE` carries it out for the open one",
                visible_line(id)
            ),
        ),
    }
}

fn reject<T>(code: &'static str, why: String) -> Result<T, Refusal> {
    Err(Refusal { code, why, flag: None })
}

/// Why a reply is most likely a mistake: it was just executed, or answers an outbox that cannot be answered any more.
fn objection(session: &Session, reply: &ParsedReply, written: Option<i64>) -> Option<Refusal> {
    let is_duplicate = match reply.answers() {
        Some(answers)
            if answers.session == session.id
                && answers.sequence < session.sequence
                && is_last_reply(session, reply.text()) =>
        {
            true
        }
        Some(answers) => return mismatch(session, answers),
        None => is_duplicate(session, reply.text(), written),
    };
    is_duplicate.then(|| Refusal {
        why: "it is the same text as the reply before it, most likely pasted twice".to_owned(),
        flag: Some(AGAIN),
        code: "duplicate-reply",
    })
}

/// Why the outbox that a reply answers cannot be answered any more; None if it can.
fn mismatch(session: &Session, answers: &ReplyAddress) -> Option<Refusal> {
    let (id, newest) = (&session.id, session.sequence);
    let ReplyAddress { session: answered, sequence, key } = answers;
    let (code, why) = match sequence.cmp(&newest) {
        _ if answered != id => {
            let why = format!("it says that it answers session {}", visible_line(answered));
            ("other-session", why)
        }
        _ if session.words_added_to(*sequence).is_some() => {
            key.as_ref().filter(|key| session.words_read(*sequence, key).is_none())?;
            ("wrong-key", format!("its key is not that of outbox {sequence} of session {id}"))
        }
        Ordering::Less => (
            "outdated-reply",
            format!(
                "it answers outbox {sequence} of session {id}, and the newest is {newest}, so it may be based on outdated files"
            ),
        ),
        Ordering::Greater | Ordering::Equal => (
            "unknown-outbox",
            format!(
                "it says that it answers outbox {sequence} of session {id}, and the newest is {newest}"
            ),
        ),
    };
    Some(Refusal { code, why, flag: Some("--force") })
}

/// Whether a reply has the key of an outbox that the session awaits a reply to: only somebody who read that outbox can
/// have written it.
pub fn is_authentic(session: &Session, answers: &ReplyAddress) -> bool {
    session.awaits_reply() && answers.key.is_some() && mismatch(session, answers).is_none()
}

/// Identifies the reply of a turn by its text.
pub fn reply_identity(begin: &Begin) -> Digest {
    match &begin.session.pending {
        Some(pending) => pending.text.clone(),
        None => identity(&begin.text),
    }
}

/// Identifies a reply by its text.
pub fn identity(reply: &str) -> Digest {
    Digest::of(normalize(reply).as_bytes())
}

/// Whether this text repeats the previous reply; `written` is when its file was last written, in nanoseconds since 1970.
///
/// If a step of the previous reply failed and nothing was done, the model may send the same again. Then the text is a
/// duplicate only if its file was written before anybody could read those results.
fn is_duplicate(session: &Session, reply: &str, written: Option<i64>) -> bool {
    let results = &session.last_results;
    let asks_again = results.iter().any(Outcome::failed) && !results.iter().any(may_have_acted);
    // The time of the results has a resolution of a second.
    let reported = (session.updated_at.seconds() + 1) * 1_000_000_000;
    is_last_reply(session, reply)
        && (!asks_again || written.is_some_and(|written| written < reported))
}

/// Whether this is the text of the previous reply.
fn is_last_reply(session: &Session, reply: &str) -> bool {
    // Sessions of early versions identify a text by all of its bytes.
    let is_same = |last: &Digest| *last == identity(reply) || *last == Digest::of(reply.as_bytes());
    session.last_reply.as_ref().is_some_and(is_same)
}

/// Whether the operation may have had an effect that a repetition would repeat.
fn may_have_acted(outcome: &Outcome) -> bool {
    match outcome.kind {
        Kind::Message | Kind::Read | Kind::List | Kind::Search | Kind::Reply => return false,
        Kind::Create | Kind::Edit | Kind::Delete | Kind::Move | Kind::Run | Kind::Done => {}
    }
    match &outcome.detail {
        Detail::Ineffective { .. } => false,
        Detail::Ran(execution) => !matches!(execution.ending, Ending::NotStarted(_)),
        // A disk or a guest may fail after a part was done.
        Detail::Failed(Failure { kind, mistake, .. }) => {
            matches!(kind, FailureKind::Execution | FailureKind::System) && mistake.is_none()
        }
        _ => true,
    }
}

/// A reply without the differences that copying it from a chat makes: line endings, white space at the ends of lines,
/// and blank lines, fences and page buttons around it.
fn normalize(reply: &str) -> String {
    let lines: Vec<&str> =
        reply.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    let is_inside = |line: &&str| !is_furniture(line);
    let first = lines.iter().position(is_inside).unwrap_or(lines.len());
    let end = lines.iter().rposition(is_inside).map_or(first, |last| last + 1);
    // A selection may begin within the indentation of the first line.
    lines[first..end].join("\n").trim_start().to_owned()
}

/// Whether a line around a reply does not belong to it: a blank line, a fence with at most one word, or a page button.
fn is_furniture(line: &str) -> bool {
    let word = line.trim().to_lowercase();
    let info = word.strip_prefix("```").or(word.strip_prefix("~~~"));
    // A reply ends with a tag or with words.
    let is_fence = info.is_some_and(|info| !info.contains(|c: char| c.is_whitespace() || c == '['));
    word.is_empty() || word == "code" || is_fence || is_button(&word)
}

#[cfg(test)]
mod tests;
