//! Serves a base directory: one reply after another, for as long as there is something to wait for.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use crate::base::{Base, Turn};
use crate::control::{self, SAME, Wish};
use crate::error::{Error, Result};
use crate::inbox::{Claimed, Taken};
use crate::session::Session;
use crate::turn::Observer;
use crate::watch::{Stop, Watch};

/// What the daemon tells while it serves.
pub trait Listener: Observer {
    /// A reply was taken for this session.
    fn took(&mut self, _name: &OsStr, _session: &Session) {}
    /// A reply was carried out.
    fn turned(&mut self, _turn: &Turn) {}
    /// A file was put into `rejected/`, for this reason.
    fn rejected(&mut self, _name: &OsStr, _why: &str) {}
    /// What was wished for elsewhere has been done.
    fn fulfilled(&mut self, _wish: &Wish, _turn: &Turn) {}
    /// A reply was put into `held/`, for this reason.
    fn held(&mut self, _name: &OsStr, _why: &str) {}
    /// A file cannot be taken, for this reason; it is tried again. Told once.
    fn stuck(&mut self, _name: &OsStr, _why: &str) {}
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
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    listener: &mut dyn Listener,
) -> Result<()> {
    let mut sessions = Sessions::of(base)?;
    round(base, serve, stop, &mut sessions, &[], listener)?;
    base.settle()
}

/// Serves `base` until there is nothing to wait for (then true) or the person stops it (false).
pub fn serve(
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let wishes = control::folder(&base.config);
    fs::create_dir_all(&wishes).map_err(|e| Error::io("make the folder", &wishes, e))?;
    control::sweep(&base.config);
    let mut watch = Watch::new(base.inbox.folder(), &wishes, stop.clone());
    let mut sessions = Sessions::of(base)?;
    let mut closed = Vec::new();
    base.is_serving();
    loop {
        match round(base, serve, stop, &mut sessions, &closed, listener)? {
            Round::Over => return base.settle().map(|()| true),
            Round::Stopped => return base.settle().map(|()| false),
            Round::Wait { look_again } => {
                // Only here does nobody wait for anything. What was heard meanwhile is kept.
                let more = base.tidy_a_bit();
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
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    sessions: &mut Sessions,
    closed: &[OsString],
    listener: &mut dyn Listener,
) -> Result<Round> {
    if wishes(base, serve, stop, sessions, listener)? {
        return Ok(Round::Over);
    }
    let look = match base.inbox.look(closed) {
        // Somebody removed the folder, and perhaps made another: make it whole, and go on there.
        Err(_) => {
            base.inbox.make()?;
            base.inbox.look(closed)?
        }
        Ok(look) => look,
    };
    for path in look.ready {
        if stop.is_asked() {
            return Ok(Round::Stopped);
        }
        if !one(base, sessions, &path, listener)? {
            // A reply that is not finished keeps those after it waiting: they come later.
            return Ok(Round::Wait { look_again: true });
        }
        if sessions.are_over(base, serve)? || wishes(base, serve, stop, sessions, listener)? {
            return Ok(Round::Over);
        }
    }
    Ok(if stop.is_asked() { Round::Stopped } else { Round::Wait { look_again: look.look_again } })
}

/// Does what others wish for. Returns whether there is nothing more to wait for then.
fn wishes(
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    sessions: &mut Sessions,
    listener: &mut dyn Listener,
) -> Result<bool> {
    for (wish, turn) in control::answer_all(base, stop, listener)? {
        sessions.known.insert(turn.session.id.clone(), turn.session.clone());
        listener.fulfilled(&wish, &turn);
        if sessions.are_over(base, serve)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Carries out the reply in one file. Returns false if it is not finished yet.
fn one(
    base: &mut Base,
    sessions: &mut Sessions,
    path: &Path,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().to_owned();
    let claimed = match base.inbox.take(path) {
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
            if sessions.stuck.insert(name.clone()) {
                listener.stuck(&name, &e.to_string());
            }
            return Ok(true);
        }
    };
    let (put_away, why, held) = match sessions.addressed(base, &claimed)? {
        Err(why) => (base.inbox.reject(&claimed, &why), why, false),
        Ok(session) if session.is_repeat(&claimed.text) => {
            (base.inbox.hold(&claimed, SAME), SAME.to_owned(), true)
        }
        Ok(session) => {
            listener.took(&name, &session);
            let turn = base.carry_out(session, claimed, listener)?;
            sessions.known.insert(turn.session.id.clone(), turn.session.clone());
            listener.turned(&turn);
            return Ok(true);
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

/// The sessions as this process left them; it alone changes them, but others may be added.
struct Sessions {
    known: HashMap<String, Session>,
    /// What is wrong with the files of others, by their ids.
    damaged: HashMap<String, String>,
    /// The sessions that there were when serving began.
    at_first: Vec<String>,
    /// Files that cannot be taken, by name.
    stuck: HashSet<OsString>,
}

impl Sessions {
    fn of(base: &Base) -> Result<Self> {
        Ok(Self {
            known: HashMap::new(),
            damaged: HashMap::new(),
            at_first: base.store.ids()?,
            stuck: HashSet::new(),
        })
    }

    fn get(&mut self, base: &Base, id: &str) -> Result<&Session> {
        if !self.known.contains_key(id) {
            self.known.insert(id.to_owned(), base.store.load(id)?);
        }
        self.known.get(id).ok_or_else(|| Error::no_session(id, &base.config.sessions))
    }

    /// Reads the sessions that were added since.
    fn refresh(&mut self, base: &Base) -> Result<()> {
        self.damaged.clear();
        for id in base.store.ids()? {
            if let Err(e) = self.get(base, &id) {
                self.damaged.insert(id, e.to_string());
            }
        }
        Ok(())
    }

    /// Whether there is nothing more to wait for.
    fn are_over(&mut self, base: &Base, serve: &Serve) -> Result<bool> {
        let Serve::One(id) = serve else { return Ok(false) };
        if !self.get(base, id)?.is_complete {
            return Ok(false);
        }
        self.refresh(base)?;
        let mut added = self.known.values().filter(|session| !self.at_first.contains(&session.id));
        Ok(added.all(|session| session.is_complete))
    }

    /// The session that a reply is for, or why there is none: the open one whose id stands in the
    /// file's name, or else the only open one.
    fn addressed(&mut self, base: &Base, claimed: &Claimed) -> Result<Result<Session, String>> {
        self.refresh(base)?;
        let name = claimed.name.to_string_lossy().to_lowercase();
        let mut open: Vec<&Session> =
            self.known.values().filter(|session| !session.is_complete).collect();
        open.sort_by(|a, b| a.id.cmp(&b.id));
        let named: Vec<&Session> =
            open.iter().copied().filter(|session| name.contains(&session.id)).collect();
        if let [session] = named.as_slice() {
            return Ok(Ok((*session).clone()));
        }
        if named.is_empty() {
            if let Some(session) = self.known.values().find(|session| name.contains(&session.id)) {
                return Ok(Err(format!(
                    "session {0} is complete; `deaddrop resume {0} --reopen TEXT` takes it up again",
                    session.id
                )));
            }
            if let Some((_, why)) = self.damaged.iter().find(|(id, _)| name.contains(*id)) {
                return Ok(Err(why.clone()));
            }
            match open.as_slice() {
                // A damaged one may be open, too.
                [only] if self.damaged.is_empty() => return Ok(Ok((*only).clone())),
                [] => {
                    return Ok(Err(
                        "no session is open; `deaddrop new \"your task\"` starts one".to_owned()
                    ));
                }
                _ => {}
            }
        }
        let ids: Vec<&str> = open.iter().map(|session| session.id.as_str()).collect();
        let damaged: Vec<&str> = self.damaged.keys().map(String::as_str).collect();
        let damaged = match damaged.join(", ") {
            ids if ids.is_empty() => ids,
            ids => format!(", damaged: {ids}"),
        };
        Ok(Err(format!(
            "several sessions are open ({}{damaged}), and the file's name does not say which one it is for; put the session's id into the name, as in {}_reply.txt, and move it back into the inbox",
            ids.join(", "),
            ids[0]
        )))
    }
}
