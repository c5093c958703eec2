//! Operations that are carried out on another machine: whether this project has a guest, and
//! how a turn goes on that was begun in one.

use std::rc::Rc;
use std::time::Duration;

use super::Engine;
use crate::admission;
use crate::context;
use crate::error::Result;
use crate::executor::{Guest, Terms};
use crate::outbox::Files;
use crate::program::Programs;
use crate::protocol::jsonrpc::About;
use crate::protocol::{Asks, Digest, Failure, Operation, RelPath};
use crate::session::record::Begin;
use crate::session::{SecretFile, Session};
use crate::settings::{Config, Policy};
use crate::watch::Stop;
use crate::workspace::Contents;
use crate::workspace::picture::is_ignored_product_file;
use crate::workspace::walk::Walk;

/// So much of a file is looked at to tell what some lines of it are, in bytes.
const WHOLE_LIMIT: u64 = 4 << 20;
/// So many files are looked at for that.
const WHOLES: usize = 64;

impl Engine {
    /// The guest of the settings, not reached yet.
    pub(super) fn guest_of(config: &Config, stop: &Stop) -> Option<Guest> {
        let guest = config.guest.clone().map(|guest| Guest::new(guest, Programs::of(config)));
        let stop = stop.clone();
        guest.map(|guest| guest.until(move || stop.is_asked()))
    }

    /// A turn is gone on with that is begun, and may be begun in the guest: where a deaddrop is there
    /// that still carries out one of its steps, it is waited for as long as that may take.
    pub(super) fn set_guest_patience(&self, begin: &Begin) -> Result<()> {
        let Some(guest) = &self.guest else { return Ok(()) };
        let policy = self.policy_of_turn(begin)?;
        let given = timeout(&policy, self.runner.timeout);
        let longest = begin.steps().iter().filter_map(|step| match &step.asks {
            Asks::Operation(Operation::Run(run)) => Some(given(run.wanted_timeout())),
            _ => None,
        });
        guest.be_patient(longest.max().unwrap_or_default());
        Ok(())
    }

    /// Which guest operations are carried out in, for people; None for this machine.
    pub fn guest_label(&self) -> Option<String> {
        self.guest.as_ref().map(Guest::label)
    }

    /// What the guest is, if there is one.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn guest_about(&self) -> Result<Option<Rc<About>>> {
        self.guest.as_ref().map(Guest::about).transpose()
    }

    /// Nothing is asked of the guest for a while: it is free for others.
    pub fn let_guest_rest(&self) {
        if let Some(guest) = &self.guest {
            guest.rest();
        }
    }

    /// Why nothing more of a turn is carried out: its operations were meant for another machine.
    pub(super) fn meant_for_another(&self, begin: &Begin) -> Option<String> {
        let named = |guest: &Option<String>| match guest {
            Some(guest) => format!("in the guest '{guest}'"),
            None => "on the user's own machine".to_owned(),
        };
        let now = self.guest_label();
        (begin.guest != now).then(|| {
            format!(
                "the turn was begun {}, and the settings have it go on {}",
                named(&begin.guest),
                named(&now)
            )
        })
    }

    /// The files as they are where operations are carried out; `walk` is what was found there, if
    /// somebody has just looked.
    pub(super) fn files(&self, session: &Session, walk: Option<Walk>) -> Result<(Walk, Files)> {
        let (mut requested, mut wholes) = (Vec::new(), Vec::new());
        for (path, part) in session.read_requests() {
            let contents = match &self.guest {
                Some(guest) => guest.read_part(path, part)?,
                None => self.workspace.as_is().read_part(path, part),
            };
            if let Some(part) = contents.as_ref().ok().filter(|contents| contents.lines.is_some()) {
                self.add_whole(&mut wholes, &part.path)?;
            }
            requested.push(contents);
        }
        for path in context::files_with_lines(session) {
            self.add_whole(&mut wholes, &path)?;
        }
        let mut walk = walk.map_or_else(|| self.walk(), Ok)?;
        if self.guest.is_none() {
            self.workspace.count_ignored(&mut walk);
        }
        self.list_touched(session, &mut walk)?;
        let offered = self.offered(session, &walk)?;
        let shows = context::shows_contents(session);
        let mut secrets = Vec::new();
        if shows {
            secrets = self.secrets(&walk)?;
            secrets.extend(session.held.iter().map(SecretFile::contents));
        }
        Ok((walk, Files { requested, offered, wholes, secrets }))
    }

    /// Adds all of a file, if that is not too much, and it is not there yet.
    fn add_whole(&self, wholes: &mut Vec<Contents>, path: &RelPath) -> Result<()> {
        if wholes.len() == WHOLES || wholes.iter().any(|whole| whole.path == *path) {
            return Ok(());
        }
        let file = self.read(path, WHOLE_LIMIT)?.ok();
        let whole = file.filter(|file| file.bytes.len() as u64 == file.size);
        wholes.extend(whole.map(|file| Contents { path: path.clone(), ..file }));
        Ok(())
    }

    /// Reads at most the first `limit` bytes of a file where operations are carried out.
    pub(super) fn read(
        &self,
        path: &RelPath,
        limit: u64,
    ) -> Result<std::result::Result<Contents, Failure>> {
        match &self.guest {
            Some(guest) => guest.read(path, limit),
            None => Ok(self.workspace.read(path, limit)),
        }
    }

    /// Lists the files where operations are carried out.
    pub(super) fn walk(&self) -> Result<Walk> {
        match &self.guest {
            Some(guest) => guest.walk(),
            None => self.workspace.walk(),
        }
    }

    /// Has the newest results' files listed also among build products that are ignored.
    fn list_touched(&self, session: &Session, walk: &mut Walk) -> Result<()> {
        for path in context::newest(session) {
            if !is_ignored_product_file(walk, path) {
                continue;
            }
            // None of its bytes are wanted, only how many there are.
            let Ok(path) = RelPath::parse(path) else { continue };
            if let Ok(file) = self.read(&path, 0)?
                && file.path == path
            {
                walk.list_too(path.as_str(), file.size);
            }
        }
        Ok(())
    }
}

/// What the keys of a turn's steps in a guest begin with: the same whenever it is taken up again, and
/// of no other turn.
pub(super) fn turn_key(begin: &Begin) -> String {
    let Session { secret, id, sequence, .. } = &begin.session;
    let text = admission::reply_identity(begin);
    let what = format!("{secret} {id} {sequence} {}", text.as_str());
    Digest::of(what.as_bytes()).as_str().to_owned()
}

/// What a session is called in a guest: nobody who knows its id alone finds what its commands have
/// there for themselves.
pub(super) fn scratch_name(session: &Session) -> String {
    let secret = Digest::of(session.secret.as_bytes());
    format!("{}-{}", session.id, &secret.as_str()[..16])
}

/// How long a command gets that asks for so much.
pub(super) fn timeout(policy: &Policy, default: Duration) -> impl Fn(Option<Duration>) -> Duration {
    move |asked| policy.shell.timeout(asked, default)
}

/// The terms under which what was left of a turn is asked about: nothing is carried out.
pub(super) fn terms_to_ask<'a>(begin: &Begin, config: &'a Config) -> Terms<'a> {
    Terms {
        turn: turn_key(begin),
        own: scratch_name(&begin.session),
        timeout: &|asked| asked.unwrap_or_default(),
        network: None,
        output_limit: config.max_output_length,
        read_limit: 0,
        read_room: 0,
        files: None,
    }
}
