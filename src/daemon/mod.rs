//! Serves a project: carries out one reply after another until nothing remains to wait for.

mod clip;
mod sessions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::admission::{self, Admission, ReplyOptions};
use crate::engine::{Engine, HandledApproval};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::inbox::{ClaimOutcome, HELD, REJECTED};
use crate::ipc::{self, Request};
use crate::session::{ApprovalDecision, Session};
use crate::watch::{FolderWatch, Stop};
pub use clip::Clip;
use clip::ClipboardSync;
use sessions::Sessions;

const OTHER_EXTENSION: &str =
    "replies have names that end in .txt, .md, .markdown or .json, or have no extension; rename it";

/// The person at the terminal of a serving process.
pub trait Person: Observer {
    /// Their answer to the last question (see [`Event::Question`]), if they gave one since the last call.
    fn answer(&mut self) -> Answer;
}

/// Nobody is at the terminal.
impl Person for () {
    fn answer(&mut self) -> Answer {
        Answer::None
    }
}

/// The person's answer to the last question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// None: there is no question, or no terminal to answer at.
    None,
    /// They may still answer.
    Awaited,
    /// They answered.
    Given {
        /// The file stem of the session that asked.
        stem: String,
        /// The question and their decision.
        decision: Box<ApprovalDecision>,
    },
}

/// The sessions that the daemon serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// Every open session, until the daemon is stopped.
    All,
    /// Every open session, until this one and all that were added meanwhile are complete.
    One(String),
}

/// A served project and the state of its sessions.
struct Daemon<'a> {
    engine: &'a mut Engine,
    serve: &'a Serve,
    stop: &'a Stop,
    person: &'a mut dyn Person,
    sessions: Sessions,
}

/// Carries out the replies that are in the inbox now.
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

/// Serves a project until nothing remains to wait for (returns true) or the person stops it (returns false). `clip` says
/// how the clipboard is used.
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
    engine.announce_serving();
    person.event(Event::Serving);
    let mut clipboard = ClipboardSync::open(clip, engine, serve, &sessions, watch.waker());
    let mut daemon = Daemon { engine, serve, stop, person, sessions };
    loop {
        clipboard.handle_events(daemon.engine, &mut daemon.sessions, daemon.person)?;
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
            Round::Wait { scan_again } => {
                // Nobody is waiting now, so there is time for this. `watch` keeps events that arrive meanwhile.
                engine.release_guest();
                let more = engine.empty_trash_partly();
                person.event(Event::Idle(&sessions.waiting()));
                closed = watch.wait(scan_again, more);
            }
        }
    }
}

/// How a round ended.
enum Round {
    /// Nothing remains to wait for.
    Over,
    /// The person stops deaddrop.
    Stopped,
    /// Everything that was ready is done.
    Wait { scan_again: bool },
}

impl Daemon<'_> {
    /// Carries out everything that is ready, in order.
    fn round(&mut self, closed: &[OsString]) -> Result<Round> {
        self.sessions.skipped.clear();
        // Otherwise the folders of a project that was moved away would be created again.
        self.engine.check_place()?;
        // Decisions come first, since somebody may resume a run as soon as they have given one.
        let awaits = self.decisions()?;
        if self.requests()? {
            return Ok(Round::Over);
        }
        if self.sessions.are_over(self.engine, self.serve)? {
            return Ok(Round::Over);
        }
        let scan = match self.engine.inbox.scan(closed) {
            // The folder was removed or replaced.
            Err(_) => {
                self.engine.inbox.create_folders()?;
                self.engine.inbox.scan(closed)?
            }
            Ok(scan) => scan,
        };
        self.sessions.forget_gone(self.engine.inbox.folder());
        for name in &scan.others {
            self.sessions.report_stuck(name, OTHER_EXTENSION, self.person);
        }
        self.sessions.unfinished = scan.unfinished;
        for path in scan.ready {
            if self.stop.is_asked() {
                return Ok(Round::Stopped);
            }
            if !self.handle_file(&path)? {
                // Later replies wait for an unfinished one, to keep their order.
                self.sessions.unfinished.extend(path.file_name().map(OsString::from));
                return Ok(Round::Wait { scan_again: true });
            }
            self.ask();
            if self.sessions.are_over(self.engine, self.serve)? || self.requests()? {
                return Ok(Round::Over);
            }
        }
        Ok(if self.stop.is_asked() {
            Round::Stopped
        } else {
            Round::Wait { scan_again: scan.scan_again || awaits || self.sessions.may_continue() }
        })
    }

    /// Handles requests of other processes. Returns whether nothing remains to wait for.
    fn requests(&mut self) -> Result<bool> {
        for (request, turn) in ipc::answer_all(self.engine, self.stop, self.person)? {
            match &request {
                Request::Close { delete: true, .. } => {
                    self.sessions.known.remove(&turn.session.id);
                }
                Request::ResumeRun { .. } => {
                    // It may have handled approvals for other sessions, too.
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
                    // A run that was requested at a terminal asks its question there.
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

    /// Carries out decisions from the approvals folder and the terminal. Returns whether to check again soon, since more may
    /// come without an event.
    fn decisions(&mut self) -> Result<bool> {
        let (handled, mut again) = self.engine.handle_approvals(self.person)?;
        for HandledApproval { name, turn } in handled {
            match turn {
                Ok(turn) => self.sessions.end_turn(turn, self.person),
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
                    Ok(turn) => self.sessions.end_turn(turn, self.person),
                    // It was decided elsewhere first.
                    Err(e) if e.is_nothing_pending() => {}
                    Err(e) => return Err(e),
                }
                self.ask();
                again = true;
            }
        }
        Ok(again)
    }

    /// Reports the questions that have not been reported here.
    fn ask(&mut self) {
        let mut waiting: Vec<&Session> =
            self.sessions.known.values().filter(|session| session.question().is_some()).collect();
        // Previews of a session of another workspace would show the wrong files.
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

    /// Carries out, holds or rejects the reply in a file. Returns false if the file is not finished yet.
    fn handle_file(&mut self, path: &Path) -> Result<bool> {
        let name = path.file_name().unwrap_or_default().to_owned();
        let answers = self.engine.inbox.answers(path);
        let session = self.sessions.session_for_file(self.engine, &name, answers.as_ref())?;
        if let Ok(session) = &session {
            let waits = match self.engine.check_ready(session) {
                Ok(()) => self.sessions.skipped.contains(&session.id),
                Err(e) if e.code() == "decision-needed" => true,
                // The policy does not exist, or the session began in another workspace. The file is tried again later.
                Err(e) => {
                    self.sessions.report_stuck(&name, &e.to_string(), self.person);
                    return Ok(true);
                }
            };
            // While a turn waits, its session's replies stay in the inbox. Later ones stay, too, even if the turn was
            // decided during this round, to keep their order.
            if waits {
                self.sessions.skipped.insert(session.id.clone());
                if self.sessions.waiting.insert(name.clone()) {
                    self.person.event(Event::ReplyWaits { name: &name, session });
                }
                return Ok(true);
            }
        }
        self.sessions.waiting.remove(&name);
        let outcome = self.engine.inbox.claim(path);
        if outcome.is_ok() {
            self.sessions.stuck.remove(&name);
        }
        let claimed = match outcome {
            Ok(ClaimOutcome::NotYet) => return Ok(false),
            Ok(ClaimOutcome::Gone) => return Ok(true),
            Ok(ClaimOutcome::Rejected(why)) => {
                let folder = self.engine.inbox.folder().join(REJECTED);
                self.person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
                return Ok(true);
            }
            Ok(ClaimOutcome::Reply(claimed)) => claimed,
            Err(e) if e.is_disk_failure() => return Err(e),
            // One bad file must not stop the others.
            Err(e) => {
                self.sessions.report_stuck(&name, &e.to_string(), self.person);
                return Ok(true);
            }
        };
        let options = ReplyOptions { written: claimed.written(), ..ReplyOptions::default() };
        let admitted =
            session.map(|session| (admission::admit(&claimed.reply, &session, options), session));
        let (folder, refusal) = match admitted {
            Ok((Admission::Accepted, session)) => {
                self.person.event(Event::ReplyTaken { name: &name, session: &session });
                let turn =
                    self.engine.carry_out(session, claimed, &BTreeMap::new(), self.person)?;
                self.sessions.end_turn(turn, self.person);
                return Ok(true);
            }
            Ok((Admission::Held(held), _)) => (HELD, held),
            Ok((Admission::Rejected(rejected), _)) | Err(rejected) => (REJECTED, rejected),
        };
        let why = refusal.to_string();
        match self.engine.inbox.put_away(&claimed, folder, &why) {
            Err(e) if e.is_disk_failure() => return Err(e),
            // It stays in `.claimed/`, and counts as a new reply at the next start.
            Err(e) => self.person.event(Event::FileStuck { name: &name, why: &e.to_string() }),
            Ok(()) => {
                let folder = self.engine.inbox.folder().join(folder);
                self.person.event(Event::FileMoved { name: &name, folder: &folder, why: &why });
            }
        }
        Ok(true)
    }
}
