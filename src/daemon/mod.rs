//! Serves a project: one reply after another, for as long as there is something to wait for.

mod clip;
mod sessions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::admission::{self, Admission, Given};
use crate::engine::{Engine, HandledApproval};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::inbox::{HELD, REJECTED, Taken};
use crate::ipc::{self, Request};
use crate::session::{ApprovalDecision, Session};
use crate::watch::{Stop, Watch};
pub use clip::Clip;
use clip::ClipboardSync;
use sessions::Sessions;

const OTHER_ENDING: &str =
    "replies have names that end in .txt, .md, .markdown or .json, or have no ending; rename it";

/// The person at the terminal of a process that serves.
pub trait Person: Observer {
    /// Their answer since the last call to what was asked (see [`Event::Question`]), if they gave one.
    fn answer(&mut self) -> Answer;
}

/// Nobody is there.
impl Person for () {
    fn answer(&mut self) -> Answer {
        Answer::None
    }
}

/// What the person has said to what was asked last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// They were not asked, or have no terminal to answer at.
    None,
    /// They may still answer.
    Awaited,
    /// This.
    Given {
        /// The session that asked: the name of its files.
        stem: String,
        /// What was asked, and what they decided.
        decision: Box<ApprovalDecision>,
    },
}

/// Whom the daemon serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// Every open session, until it is stopped.
    All,
    /// Every open session, until this one is complete and none that was added meanwhile is open.
    One(String),
}

/// Carries out what lies in the inbox now.
pub fn serve_once(
    engine: &mut Engine,
    serve: &Serve,
    stop: &Stop,
    person: &mut dyn Person,
) -> Result<()> {
    let mut sessions = Sessions::of(engine)?;
    round(engine, serve, stop, &mut sessions, &[], person)?;
    engine.shut_down()
}

/// Serves a project until there is nothing to wait for (then true) or the person stops it (false), with
/// the clipboard as `clip` says.
pub fn serve(
    engine: &mut Engine,
    serve: &Serve,
    clip: Clip,
    stop: &Stop,
    person: &mut dyn Person,
) -> Result<bool> {
    let requests = ipc::folder(&engine.config);
    fs::create_dir_all(&requests).map_err(|e| Error::io("make the folder", &requests, e))?;
    ipc::sweep(&engine.config);
    let also = [requests, engine.approvals.folder().to_owned()];
    let mut watch = Watch::new(engine.inbox.folder(), also.into(), stop.clone());
    let mut sessions = Sessions::of(engine)?;
    let mut closed = Vec::new();
    engine.is_serving();
    person.event(Event::Serving);
    let mut clipboard = ClipboardSync::open(clip, engine, serve, &sessions, watch.waker());
    loop {
        clipboard.attend(engine, &mut sessions, person)?;
        let round = round(engine, serve, stop, &mut sessions, &closed, person)?;
        clipboard.copy_new(engine, &sessions);
        if !matches!(round, Round::Wait { .. }) {
            person.event(Event::Stopping);
            clipboard.close(person);
        }
        match round {
            Round::Over => return engine.shut_down().map(|()| true),
            Round::Stopped => return engine.shut_down().map(|()| false),
            Round::Wait { look_again } => {
                // Only here does nobody wait for anything. What was heard meanwhile is kept.
                engine.let_guest_rest();
                let more = engine.empty_trash_a_bit();
                person.event(Event::Idle(&sessions.waiting()));
                closed = watch.wait(look_again, more);
            }
        }
    }
}

/// How a look into the inbox ended.
enum Round {
    /// There is nothing more to wait for.
    Over,
    /// The person wants to stop.
    Stopped,
    /// All that was ready is done.
    Wait { look_again: bool },
}

/// Carries out what is ready, in its order.
fn round(
    engine: &mut Engine,
    serve: &Serve,
    stop: &Stop,
    sessions: &mut Sessions,
    closed: &[OsString],
    person: &mut dyn Person,
) -> Result<Round> {
    sessions.passed_over.clear();
    // First, since somebody may resume a run as soon as they have dropped their decision.
    let awaits = decisions(engine, sessions, person)?;
    if requests(engine, serve, stop, sessions, person)? {
        return Ok(Round::Over);
    }
    if sessions.are_over(engine, serve)? {
        return Ok(Round::Over);
    }
    let look = match engine.inbox.look(closed) {
        // Somebody removed the folder, and perhaps made another: make it whole, and go on there.
        Err(_) => {
            engine.inbox.make()?;
            engine.inbox.look(closed)?
        }
        Ok(look) => look,
    };
    sessions.forget_gone(engine.inbox.folder());
    for name in &look.others {
        sessions.is_stuck(name, OTHER_ENDING, person);
    }
    sessions.unfinished = look.unfinished;
    for path in look.ready {
        if stop.is_asked() {
            return Ok(Round::Stopped);
        }
        if !one(engine, sessions, &path, person)? {
            // A reply that is not finished keeps those after it waiting: they come later.
            sessions.unfinished.extend(path.file_name().map(OsString::from));
            return Ok(Round::Wait { look_again: true });
        }
        ask(engine, sessions, person);
        if sessions.are_over(engine, serve)? || requests(engine, serve, stop, sessions, person)? {
            return Ok(Round::Over);
        }
    }
    Ok(if stop.is_asked() {
        Round::Stopped
    } else {
        Round::Wait { look_again: look.look_again || awaits || sessions.may_go_on() }
    })
}

/// Handles what others ask for. Returns whether there is nothing more to wait for then.
fn requests(
    engine: &mut Engine,
    serve: &Serve,
    stop: &Stop,
    sessions: &mut Sessions,
    person: &mut dyn Person,
) -> Result<bool> {
    for (request, turn) in ipc::answer_all(engine, stop, person)? {
        match &request {
            Request::Close { delete: true, .. } => {
                sessions.known.remove(&turn.session.id);
            }
            Request::ResumeRun { .. } => {
                // Approvals that were handled on the way may have been about others.
                sessions.known.clear();
                sessions.refresh(engine)?;
            }
            _ if turn.session.run.is_none() && !matches!(request, Request::Preview(_)) => {
                sessions.known.insert(turn.session.id.clone(), turn.session.clone());
            }
            _ => {}
        }
        match request {
            Request::Preview(_) => {}
            Request::Decide { .. } if turn.session.run.is_some() => {}
            Request::Apply { .. } | Request::Undo { .. } | Request::Decide { .. } => {
                person.event(Event::TurnEnded(&turn));
            }
            Request::Say { .. } => person.event(Event::WordsAdded(&turn)),
            Request::New(_) | Request::Reopen { .. } => {
                person.event(Event::SessionAdded(&turn.session));
            }
            Request::Run { .. } | Request::ResumeRun { .. } => {
                person.event(Event::RunEnded(&turn.session));
                // Who asks from a terminal is asked there.
                let is_remote = turn.session.run.as_ref().is_some_and(|run| run.request.is_some());
                if is_remote && turn.session.question().is_some() {
                    let preview = engine.preview_question(&turn.session);
                    person.event(Event::Question { session: &turn.session, preview: &preview });
                }
            }
            Request::Close { delete: removed, .. } => {
                person.event(Event::SessionClosed { session: &turn.session, removed });
            }
        }
        ask(engine, sessions, person);
        if sessions.are_over(engine, serve)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Does what follows from decisions, dropped here or answered at the terminal. Returns whether there
/// may soon be more without any sign of it.
fn decisions(
    engine: &mut Engine,
    sessions: &mut Sessions,
    person: &mut dyn Person,
) -> Result<bool> {
    let (handled, mut again) = engine.handle_approvals(person)?;
    for HandledApproval { name, turn } in handled {
        match turn {
            Ok(turn) => sessions.turned(turn, person),
            Err(why) => {
                let folder = engine.approvals.folder().join(REJECTED);
                person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
            }
        }
    }
    ask(engine, sessions, person);
    match person.answer() {
        Answer::None => {}
        Answer::Awaited => again = true,
        Answer::Given { stem, decision } => {
            match engine.decide(&stem, *decision, person) {
                Ok(turn) => sessions.turned(turn, person),
                // Somebody else was faster.
                Err(e) if e.is_nothing_pending() => {}
                Err(e) => return Err(e),
            }
            ask(engine, sessions, person);
            again = true;
        }
    }
    Ok(again)
}

/// Asks what has not been asked here.
fn ask(engine: &Engine, sessions: &mut Sessions, person: &mut dyn Person) {
    let mut waiting: Vec<&Session> =
        sessions.known.values().filter(|session| session.question().is_some()).collect();
    // What another workspace is about would be asked of files that are not meant.
    waiting.retain(|session| engine.check_workspace(session).is_ok());
    waiting.sort_by_key(|session| (session.updated_at, &session.id));
    for session in waiting {
        let Some(question) = session.question() else { continue };
        if sessions.asked.get(&session.id) != Some(question) {
            sessions.asked.insert(session.id.clone(), question.clone());
            let preview = engine.preview_question(session);
            person.event(Event::Question { session, preview: &preview });
        }
    }
}

/// Carries out the reply in one file. Returns false if it is not finished yet.
fn one(
    engine: &mut Engine,
    sessions: &mut Sessions,
    path: &Path,
    person: &mut dyn Person,
) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().to_owned();
    let answers = engine.inbox.answers(path);
    let session = sessions.addressed(engine, &name, answers.as_ref())?;
    if let Ok(session) = &session {
        let waits = match engine.check_ready(session) {
            Ok(()) => sessions.passed_over.contains(&session.id),
            Err(e) if e.code() == "decision-needed" => true,
            // Its policy is gone, or its workspace is another: until that is there again.
            Err(e) => {
                sessions.is_stuck(&name, &e.to_string(), person);
                return Ok(true);
            }
        };
        // What comes while a turn waits is not even taken, nor is what comes behind it: somebody may have
        // decided since.
        if waits {
            sessions.passed_over.insert(session.id.clone());
            if sessions.waiting.insert(name.clone()) {
                person.event(Event::ReplyWaits { name: &name, session });
            }
            return Ok(true);
        }
    }
    sessions.waiting.remove(&name);
    let taken = engine.inbox.take(path);
    if taken.is_ok() {
        sessions.stuck.remove(&name);
    }
    let claimed = match taken {
        Ok(Taken::NotYet) => return Ok(false),
        Ok(Taken::Gone) => return Ok(true),
        Ok(Taken::Rejected(why)) => {
            let folder = engine.inbox.folder().join(REJECTED);
            person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
            return Ok(true);
        }
        Ok(Taken::Reply(claimed)) => claimed,
        Err(e) if e.is_of_the_disk() => return Err(e),
        // One bad file must not stop the others.
        Err(e) => {
            sessions.is_stuck(&name, &e.to_string(), person);
            return Ok(true);
        }
    };
    let given = Given { written: claimed.written(), ..Given::default() };
    let admitted =
        session.map(|session| (admission::admit(&claimed.reply, &session, given), session));
    let (folder, refusal) = match admitted {
        Ok((Admission::Accepted, session)) => {
            person.event(Event::ReplyTaken { name: &name, session: &session });
            let turn = engine.carry_out(session, claimed, &BTreeMap::new(), person)?;
            sessions.turned(turn, person);
            return Ok(true);
        }
        Ok((Admission::Held(held), _)) => (HELD, held),
        Ok((Admission::Rejected(rejected), _)) | Err(rejected) => (REJECTED, rejected),
    };
    let why = refusal.to_string();
    match engine.inbox.put_away(&claimed, folder, &why) {
        Err(e) if e.is_of_the_disk() => return Err(e),
        // It stays among the claimed, and is a new reply at the next start.
        Err(e) => person.event(Event::FileStuck { name: &name, why: &e.to_string() }),
        Ok(()) => {
            let folder = engine.inbox.folder().join(folder);
            person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
        }
    }
    Ok(true)
}
