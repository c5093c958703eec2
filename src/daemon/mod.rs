//! Serves a project: one reply after another, for as long as there is something to wait for.

mod clip;
mod sessions;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use crate::engine::{Engine, Foretold, Heard, Turn};
use crate::error::{Error, Result};
use crate::inbox::Taken;
use crate::ipc::{self, Request};
use crate::session::{ApprovalDecision, Session};
use crate::turn::Observer;
use crate::watch::{Stop, Watch};
use clip::Desk;
pub use clip::{Clip, Clipped};
use sessions::Sessions;

const OTHER_ENDING: &str =
    "replies have names that end in .txt, .md, .markdown or .json, or have no ending; rename it";

/// What the daemon tells while it serves.
pub trait Listener: Observer {
    /// From now on replies are taken as they come.
    fn serves(&mut self) {}
    /// No more are taken.
    fn stops(&mut self) {}
    /// A reply was taken for this session.
    fn took(&mut self, _name: &OsStr, _session: &Session) {}
    /// A reply was carried out.
    fn turned(&mut self, _turn: &Turn) {}
    /// A file was put into `rejected/`, for this reason.
    fn rejected(&mut self, _name: &OsStr, _why: &str) {}
    /// What was wished for elsewhere has been done.
    fn fulfilled(&mut self, _wish: &Request, _turn: &Turn) {}
    /// A reply was put into `held/`, for this reason.
    fn held(&mut self, _name: &OsStr, _why: &str) {}
    /// What was dropped among the approvals counts for nothing, for this reason.
    fn unheard(&mut self, _name: &OsStr, _why: &str) {}
    /// A reply waits, since its session does. Told once.
    fn waits(&mut self, _name: &OsStr, _session: &Session) {}
    /// What a turn waits for can be asked here: what `session` asks, and what would come
    /// of what it is about. Told once for each question.
    fn asks(&mut self, _session: &Session, _foretold: &Foretold) {}
    /// What the person has answered since, if they have.
    fn answer(&mut self) -> Answer {
        Answer::None
    }
    /// Nothing is to be done now, and this is waited for. Told again and again.
    fn idle(&mut self, _waiting: &Waiting<'_>) {}
    /// There is news of the clipboard.
    fn clipped(&mut self, _news: &Clipped<'_>) {}
    /// A file cannot be taken, for this reason; it is tried again. Told once, until it is taken or gone.
    fn stuck(&mut self, _name: &OsStr, _why: &str) {}
}

/// What is waited for while nothing is to be done.
#[derive(Debug, Clone)]
pub struct Waiting<'a> {
    /// The sessions that are open, in the order of their ids.
    pub sessions: Vec<&'a Session>,
    /// The names of replies that somebody still writes.
    pub unfinished: Vec<OsString>,
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
    listener: &mut dyn Listener,
) -> Result<()> {
    let mut sessions = Sessions::of(engine)?;
    round(engine, serve, stop, &mut sessions, &[], listener)?;
    engine.settle()
}

/// Serves `base` until there is nothing to wait for (then true) or the person stops it (false), with
/// the clipboard as `clip` says.
pub fn serve(
    engine: &mut Engine,
    serve: &Serve,
    clip: Clip,
    stop: &Stop,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let wishes = ipc::folder(&engine.config);
    fs::create_dir_all(&wishes).map_err(|e| Error::io("make the folder", &wishes, e))?;
    ipc::sweep(&engine.config);
    let also = [wishes, engine.approvals.folder().to_owned()];
    let mut watch = Watch::new(engine.inbox.folder(), also.into(), stop.clone());
    let mut sessions = Sessions::of(engine)?;
    let mut closed = Vec::new();
    engine.is_serving();
    listener.serves();
    let mut desk = Desk::open(clip, engine, serve, &sessions, watch.waker());
    loop {
        desk.attend(engine, &mut sessions, listener)?;
        let round = round(engine, serve, stop, &mut sessions, &closed, listener)?;
        desk.copy_new(engine, &sessions);
        if !matches!(round, Round::Wait { .. }) {
            listener.stops();
            desk.close(listener);
        }
        match round {
            Round::Over => return engine.settle().map(|()| true),
            Round::Stopped => return engine.settle().map(|()| false),
            Round::Wait { look_again } => {
                // Only here does nobody wait for anything. What was heard meanwhile is kept.
                engine.let_guest_rest();
                let more = engine.tidy_a_bit();
                listener.idle(&sessions.waits_for());
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
    listener: &mut dyn Listener,
) -> Result<Round> {
    sessions.passed_over.clear();
    // First, since somebody may resume a run as soon as they have dropped their decision.
    let awaits = decisions(engine, sessions, listener)?;
    if wishes(engine, serve, stop, sessions, listener)? {
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
        sessions.is_stuck(name, OTHER_ENDING, listener);
    }
    sessions.unfinished = look.unfinished;
    for path in look.ready {
        if stop.is_asked() {
            return Ok(Round::Stopped);
        }
        if !one(engine, sessions, &path, listener)? {
            // A reply that is not finished keeps those after it waiting: they come later.
            sessions.unfinished.extend(path.file_name().map(OsString::from));
            return Ok(Round::Wait { look_again: true });
        }
        ask(engine, sessions, listener);
        if sessions.are_over(engine, serve)? || wishes(engine, serve, stop, sessions, listener)? {
            return Ok(Round::Over);
        }
    }
    Ok(if stop.is_asked() {
        Round::Stopped
    } else {
        Round::Wait { look_again: look.look_again || awaits || sessions.may_go_on() }
    })
}

/// Does what others wish for. Returns whether there is nothing more to wait for then.
fn wishes(
    engine: &mut Engine,
    serve: &Serve,
    stop: &Stop,
    sessions: &mut Sessions,
    listener: &mut dyn Listener,
) -> Result<bool> {
    for (wish, turn) in ipc::answer_all(engine, stop, listener)? {
        if matches!(wish, Request::Close { delete: true, .. }) {
            sessions.known.remove(&turn.session.id);
        } else if turn.session.run.is_none() {
            sessions.known.insert(turn.session.id.clone(), turn.session.clone());
        } else if matches!(wish, Request::ResumeRun { .. }) {
            // What was heard on the way may have been about others.
            sessions.known.clear();
            sessions.refresh(engine)?;
        }
        listener.fulfilled(&wish, &turn);
        ask(engine, sessions, listener);
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
    listener: &mut dyn Listener,
) -> Result<bool> {
    let (heard, mut again) = engine.hear(listener)?;
    for Heard { name, turn } in heard {
        match turn {
            Ok(turn) => sessions.turned(turn, listener),
            Err(why) => listener.unheard(&name, &why),
        }
    }
    ask(engine, sessions, listener);
    match listener.answer() {
        Answer::None => {}
        Answer::Awaited => again = true,
        Answer::Given { stem, decision } => {
            match engine.decide(&stem, *decision, listener) {
                Ok(turn) => sessions.turned(turn, listener),
                // Somebody else was faster.
                Err(e) if e.is_nothing_pending() => {}
                Err(e) => return Err(e),
            }
            ask(engine, sessions, listener);
            again = true;
        }
    }
    Ok(again)
}

/// Asks what has not been asked here.
fn ask(engine: &Engine, sessions: &mut Sessions, listener: &mut dyn Listener) {
    let mut waiting: Vec<&Session> =
        sessions.known.values().filter(|session| session.question().is_some()).collect();
    // What another workspace is about would be asked of files that are not meant.
    waiting.retain(|session| engine.suits(session).is_ok());
    waiting.sort_by_key(|session| (session.updated_at, &session.id));
    for session in waiting {
        let Some(question) = session.question() else { continue };
        if sessions.asked.get(&session.id) != Some(question) {
            sessions.asked.insert(session.id.clone(), question.clone());
            listener.asks(session, &engine.foretell(session));
        }
    }
}

/// Carries out the reply in one file. Returns false if it is not finished yet.
fn one(
    engine: &mut Engine,
    sessions: &mut Sessions,
    path: &Path,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().to_owned();
    let answers = engine.inbox.answers(path);
    let session = sessions.addressed(engine, &name, answers.as_ref())?;
    // A session whose policy is gone, or whose workspace is another, waits until it is there again.
    if let Ok(session) = &session
        && let Err(e) = engine.suits(session).and_then(|()| engine.policy_of(session).map(drop))
    {
        sessions.is_stuck(&name, &e.to_string(), listener);
        return Ok(true);
    }
    // What comes while a turn waits is not even taken, nor is what comes behind it: somebody may have
    // decided since.
    if let Ok(session) = &session
        && (session.pending.is_some() || sessions.passed_over.contains(&session.id))
    {
        sessions.passed_over.insert(session.id.clone());
        if sessions.waiting.insert(name.clone()) {
            listener.waits(&name, session);
        }
        return Ok(true);
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
            listener.rejected(&name, &why);
            return Ok(true);
        }
        Ok(Taken::Reply(claimed)) => claimed,
        Err(e) if e.is_of_the_disk() => return Err(e),
        // One bad file must not stop the others.
        Err(e) => {
            sessions.is_stuck(&name, &e.to_string(), listener);
            return Ok(true);
        }
    };
    let (put_away, why, held) = match session {
        Err(why) => (engine.inbox.reject(&claimed, &why), why, false),
        Ok(session) => {
            match ipc::objection(&session, &claimed.letter, claimed.written()).map(ipc::held) {
                Some(why) => (engine.inbox.hold(&claimed, &why), why, true),
                None => {
                    listener.took(&name, &session);
                    let turn = engine.carry_out(session, claimed, listener)?;
                    sessions.turned(turn, listener);
                    return Ok(true);
                }
            }
        }
    };
    match put_away {
        Err(e) if e.is_of_the_disk() => return Err(e),
        // It stays among the claimed, and is a new reply at the next start.
        Err(e) => listener.stuck(&name, &e.to_string()),
        Ok(()) if held => listener.held(&name, &why),
        Ok(()) => listener.rejected(&name, &why),
    }
    Ok(true)
}
