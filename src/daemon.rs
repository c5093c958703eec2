//! Serves a base directory: one reply after another, for as long as there is something to wait for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use crate::base::{Base, Turn};
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
}

/// Whom the daemon serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serve {
    /// Every open session, until it is stopped.
    All,
    /// This session until it is complete. A reply that names another session is carried out for
    /// that one; a reply that names none is for this.
    One(String),
}

/// Carries out what lies in the inbox now.
pub fn serve_once(
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    listener: &mut dyn Listener,
) -> Result<()> {
    let look = base.inbox.look(&[])?;
    let mut sessions = Sessions::default();
    for path in look.ready {
        one(base, serve, &mut sessions, &path, listener)?;
        if stop.is_asked() || sessions.are_over(base, serve)? {
            break;
        }
    }
    Ok(())
}

/// Serves `base` until there is nothing to wait for (then true) or the person stops it (false).
pub fn serve(
    base: &mut Base,
    serve: &Serve,
    stop: &Stop,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let mut watch = Watch::new(base.inbox.folder(), stop.clone());
    let mut sessions = Sessions::default();
    let mut closed = Vec::new();
    loop {
        if stop.is_asked() {
            return Ok(false);
        }
        let look = match base.inbox.look(&closed) {
            // Somebody removed the folder, and perhaps made another: make it whole, and go on there.
            Err(_) => {
                base.inbox.make()?;
                base.inbox.look(&closed)?
            }
            Ok(look) => look,
        };
        let mut look_again = look.look_again;
        for path in look.ready {
            look_again |= one(base, serve, &mut sessions, &path, listener)?;
            if sessions.are_over(base, serve)? {
                return Ok(true);
            }
            if stop.is_asked() {
                return Ok(false);
            }
        }
        closed = watch.wait(look_again);
    }
}

/// Carries out the reply in one file. Returns whether the inbox should be looked at again soon.
fn one(
    base: &Base,
    serve: &Serve,
    sessions: &mut Sessions,
    path: &Path,
    listener: &mut dyn Listener,
) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().to_owned();
    let claimed = match base.inbox.take(path)? {
        Taken::NotYet => return Ok(true),
        Taken::Gone => return Ok(false),
        Taken::Rejected(why) => {
            listener.rejected(&name, &why);
            return Ok(false);
        }
        Taken::Reply(claimed) => claimed,
    };
    match sessions.addressed(base, serve, &claimed)? {
        Err(why) => {
            base.inbox.reject(&claimed, &why)?;
            listener.rejected(&name, &why);
        }
        Ok(session) => {
            listener.took(&name, &session);
            let turn = base.carry_out(session, &claimed.reply.steps, listener)?;
            base.inbox.archive(&claimed)?;
            sessions.known.insert(turn.session.id.clone(), turn.session.clone());
            listener.turned(&turn);
        }
    }
    Ok(false)
}

/// The sessions as this process left them; it alone changes them, but others may be added.
#[derive(Default)]
struct Sessions {
    known: HashMap<String, Session>,
    /// What is wrong with the files of others, by their ids.
    damaged: HashMap<String, String>,
}

impl Sessions {
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

    /// Whether the one session that is served is complete.
    fn are_over(&mut self, base: &Base, serve: &Serve) -> Result<bool> {
        match serve {
            Serve::All => Ok(false),
            Serve::One(id) => Ok(self.get(base, id)?.is_complete),
        }
    }

    /// The session that a reply is for, or why there is none.
    fn addressed(
        &mut self,
        base: &Base,
        serve: &Serve,
        claimed: &Claimed,
    ) -> Result<Result<Session, String>> {
        let name = claimed.name.to_string_lossy().to_lowercase();
        let names_one = name.split(|c: char| !c.is_ascii_hexdigit()).any(|part| part.len() >= 8);
        if let (Serve::One(id), false) = (serve, names_one) {
            return Ok(Ok(self.get(base, id)?.clone()));
        }
        self.refresh(base)?;
        let is_named = |session: &&Session| name.contains(&session.id);
        let mut open: Vec<&Session> =
            self.known.values().filter(|session| !session.is_complete).collect();
        open.sort_by(|a, b| a.id.cmp(&b.id));
        let named: Vec<&Session> = open.iter().copied().filter(is_named).collect();
        if let [session] = named.as_slice() {
            return Ok(Ok((*session).clone()));
        }
        if named.is_empty() {
            if let Some(session) = self.known.values().find(is_named) {
                return Ok(Err(format!(
                    "session {0} is complete; `deaddrop resume {0} --reopen TEXT` takes it up again",
                    session.id
                )));
            }
            if let Some((_, why)) = self.damaged.iter().find(|(id, _)| name.contains(*id)) {
                return Ok(Err(why.clone()));
            }
            match (serve, open.as_slice()) {
                (Serve::One(id), _) => return Ok(Ok(self.get(base, id)?.clone())),
                (Serve::All, [only]) => return Ok(Ok((*only).clone())),
                (Serve::All, []) => {
                    return Ok(Err(
                        "no session is open; `deaddrop new \"your task\"` starts one".to_owned()
                    ));
                }
                (Serve::All, _) => {}
            }
        }
        let ids: Vec<&str> = open.iter().map(|session| session.id.as_str()).collect();
        Ok(Err(format!(
            "several sessions are open ({}), and the file's name does not say which one it is for; put the session's id into the name, as in {}_reply.txt, and move it back into the inbox",
            ids.join(", "),
            ids[0]
        )))
    }
}
