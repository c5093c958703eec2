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
use crate::watch::{FolderWatch, Stop};
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

/// A project that is served, with what is known of its sessions.
struct Daemon<'a> {
    engine: &'a mut Engine,
    serve: &'a Serve,
    stop: &'a Stop,
    person: &'a mut dyn Person,
    sessions: Sessions,
}

/// Carries out what lies in the inbox now.
pub fn serve_once(
    engine: &mut Engine,
    serve: &Serve,
    stop: &Stop,
    person: &mut dyn Person,
) -> Result<()> {
    let sessions = Sessions::of(engine)?;
    let mut daemon = Daemon { engine, serve, stop, person, sessions };
    daemon.round(&[])?;
    daemon.engine.shut_down()
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
    let mut watch = FolderWatch::new(engine.inbox.folder(), also.into(), stop.clone());
    let sessions = Sessions::of(engine)?;
    let mut closed = Vec::new();
    engine.is_serving();
    person.event(Event::Serving);
    let mut clipboard = ClipboardSync::open(clip, engine, serve, &sessions, watch.waker());
    let mut daemon = Daemon { engine, serve, stop, person, sessions };
    loop {
        clipboard.attend(daemon.engine, &mut daemon.sessions, daemon.person)?;
        let round = daemon.round(&closed)?;
        clipboard.copy_new(daemon.engine, &daemon.sessions);
        let Daemon { engine, person, sessions, .. } = &mut daemon;
        if !matches!(round, Round::Wait { .. }) {
            person.event(Event::Stopping);
            clipboard.close(*person);
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

impl Daemon<'_> {
    /// Carries out what is ready, in its order.
    fn round(&mut self, closed: &[OsString]) -> Result<Round> {
        self.sessions.passed_over.clear();
        // First, since somebody may resume a run as soon as they have dropped their decision.
        let awaits = self.decisions()?;
        if self.requests()? {
            return Ok(Round::Over);
        }
        if self.sessions.are_over(self.engine, self.serve)? {
            return Ok(Round::Over);
        }
        let look = match self.engine.inbox.look(closed) {
            // Somebody removed the folder, and perhaps made another: make it whole, and go on there.
            Err(_) => {
                self.engine.inbox.make()?;
                self.engine.inbox.look(closed)?
            }
            Ok(look) => look,
        };
        self.sessions.forget_gone(self.engine.inbox.folder());
        for name in &look.others {
            self.sessions.is_stuck(name, OTHER_ENDING, self.person);
        }
        self.sessions.unfinished = look.unfinished;
        for path in look.ready {
            if self.stop.is_asked() {
                return Ok(Round::Stopped);
            }
            if !self.one(&path)? {
                // A reply that is not finished keeps those after it waiting: they come later.
                self.sessions.unfinished.extend(path.file_name().map(OsString::from));
                return Ok(Round::Wait { look_again: true });
            }
            self.ask();
            if self.sessions.are_over(self.engine, self.serve)? || self.requests()? {
                return Ok(Round::Over);
            }
        }
        Ok(if self.stop.is_asked() {
            Round::Stopped
        } else {
            Round::Wait { look_again: look.look_again || awaits || self.sessions.may_go_on() }
        })
    }

    /// Handles what others ask for. Returns whether there is nothing more to wait for then.
    fn requests(&mut self) -> Result<bool> {
        for (request, turn) in ipc::answer_all(self.engine, self.stop, self.person)? {
            match &request {
                Request::Close { delete: true, .. } => {
                    self.sessions.known.remove(&turn.session.id);
                }
                Request::ResumeRun { .. } => {
                    // Approvals that were handled on the way may have been about others.
                    self.sessions.known.clear();
                    self.sessions.refresh(self.engine)?;
                }
                _ if turn.session.run.is_none() && !matches!(request, Request::Preview(_)) => {
                    self.sessions.known.insert(turn.session.id.clone(), turn.session.clone());
                }
                _ => {}
            }
            match request {
                Request::Preview(_) => {}
                Request::Decide { .. } if turn.session.run.is_some() => {}
                Request::Apply { .. } | Request::Undo { .. } | Request::Decide { .. } => {
                    self.person.event(Event::TurnEnded(&turn));
                }
                Request::Say { .. } => self.person.event(Event::WordsAdded(&turn)),
                Request::New(_) | Request::Reopen { .. } => {
                    self.person.event(Event::SessionAdded(&turn.session));
                }
                Request::Run { .. } | Request::ResumeRun { .. } => {
                    self.person.event(Event::RunEnded(&turn.session));
                    // Who asks from a terminal is asked there.
                    let is_remote =
                        turn.session.run.as_ref().is_some_and(|run| run.request.is_some());
                    if is_remote && turn.session.question().is_some() {
                        let preview = self.engine.preview_question(&turn.session);
                        self.person
                            .event(Event::Question { session: &turn.session, preview: &preview });
                    }
                }
                Request::Close { delete: removed, .. } => {
                    self.person.event(Event::SessionClosed { session: &turn.session, removed });
                }
            }
            self.ask();
            if self.sessions.are_over(self.engine, self.serve)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Does what follows from decisions, dropped here or answered at the terminal. Returns whether there
    /// may soon be more without any sign of it.
    fn decisions(&mut self) -> Result<bool> {
        let (handled, mut again) = self.engine.handle_approvals(self.person)?;
        for HandledApproval { name, turn } in handled {
            match turn {
                Ok(turn) => self.sessions.turned(turn, self.person),
                Err(why) => {
                    let folder = self.engine.approvals.folder().join(REJECTED);
                    self.person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
                }
            }
        }
        self.ask();
        match self.person.answer() {
            Answer::None => {}
            Answer::Awaited => again = true,
            Answer::Given { stem, decision } => {
                match self.engine.decide(&stem, *decision, self.person) {
                    Ok(turn) => self.sessions.turned(turn, self.person),
                    // Somebody else was faster.
                    Err(e) if e.is_nothing_pending() => {}
                    Err(e) => return Err(e),
                }
                self.ask();
                again = true;
            }
        }
        Ok(again)
    }

    /// Asks what has not been asked here.
    fn ask(&mut self) {
        let mut waiting: Vec<&Session> =
            self.sessions.known.values().filter(|session| session.question().is_some()).collect();
        // What another workspace is about would be asked of files that are not meant.
        waiting.retain(|session| self.engine.check_workspace(session).is_ok());
        waiting.sort_by_key(|session| (session.updated_at, &session.id));
        for session in waiting {
            let Some(question) = session.question() else { continue };
            if self.sessions.asked.get(&session.id) != Some(question) {
                self.sessions.asked.insert(session.id.clone(), question.clone());
                let preview = self.engine.preview_question(session);
                self.person.event(Event::Question { session, preview: &preview });
            }
        }
    }

    /// Carries out the reply in one file. Returns false if it is not finished yet.
    fn one(&mut self, path: &Path) -> Result<bool> {
        let name = path.file_name().unwrap_or_default().to_owned();
        let answers = self.engine.inbox.answers(path);
        let session = self.sessions.addressed(self.engine, &name, answers.as_ref())?;
        if let Ok(session) = &session {
            let waits = match self.engine.check_ready(session) {
                Ok(()) => self.sessions.passed_over.contains(&session.id),
                Err(e) if e.code() == "decision-needed" => true,
                // Its policy is gone, or its workspace is another: until that is there again.
                Err(e) => {
                    self.sessions.is_stuck(&name, &e.to_string(), self.person);
                    return Ok(true);
                }
            };
            // What comes while a turn waits is not even taken, nor is what comes behind it: somebody may have
            // decided since.
            if waits {
                self.sessions.passed_over.insert(session.id.clone());
                if self.sessions.waiting.insert(name.clone()) {
                    self.person.event(Event::ReplyWaits { name: &name, session });
                }
                return Ok(true);
            }
        }
        self.sessions.waiting.remove(&name);
        let taken = self.engine.inbox.take(path);
        if taken.is_ok() {
            self.sessions.stuck.remove(&name);
        }
        let claimed = match taken {
            Ok(Taken::NotYet) => return Ok(false),
            Ok(Taken::Gone) => return Ok(true),
            Ok(Taken::Rejected(why)) => {
                let folder = self.engine.inbox.folder().join(REJECTED);
                self.person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
                return Ok(true);
            }
            Ok(Taken::Reply(claimed)) => claimed,
            Err(e) if e.is_disk_failure() => return Err(e),
            // One bad file must not stop the others.
            Err(e) => {
                self.sessions.is_stuck(&name, &e.to_string(), self.person);
                return Ok(true);
            }
        };
        let given = Given { written: claimed.written(), ..Given::default() };
        let admitted =
            session.map(|session| (admission::admit(&claimed.reply, &session, given), session));
        let (folder, refusal) = match admitted {
            Ok((Admission::Accepted, session)) => {
                self.person.event(Event::ReplyTaken { name: &name, session: &session });
                let turn =
                    self.engine.carry_out(session, claimed, &BTreeMap::new(), self.person)?;
                self.sessions.turned(turn, self.person);
                return Ok(true);
            }
            Ok((Admission::Held(held), _)) => (HELD, held),
            Ok((Admission::Rejected(rejected), _)) | Err(rejected) => (REJECTED, rejected),
        };
        let why = refusal.to_string();
        match self.engine.inbox.put_away(&claimed, folder, &why) {
            Err(e) if e.is_disk_failure() => return Err(e),
            // It stays among the claimed, and is a new reply at the next start.
            Err(e) => self.person.event(Event::FileStuck { name: &name, why: &e.to_string() }),
            Ok(()) => {
                let folder = self.engine.inbox.folder().join(folder);
                self.person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
            }
        }
        Ok(true)
    }
}
