//! The guest: the machine that carries out operations, if the settings name one. Also reads files from it or from here.

use std::rc::Rc;
use std::time::Duration;

use super::Engine;
use crate::admission;
use crate::context;
use crate::error::Result;
use crate::executor::{Guest, GuestTurn};
use crate::outbox::Files;
use crate::program::Programs;
use crate::protocol::jsonrpc::About;
use crate::protocol::{Digest, Failure, Operation, RelPath, StepContent};
use crate::session::record::Begin;
use crate::session::{SecretFile, Session};
use crate::settings::{Config, Policy};
use crate::watch::Stop;
use crate::workspace::Contents;
use crate::workspace::overview::is_ignored_product_file;
use crate::workspace::walk::Walk;

/// The largest file that is read completely so that the version of some of its lines is known, in bytes.
const WHOLE_LIMIT: u64 = 4 << 20;
/// How many files are read completely for that.
const WHOLES: usize = 64;

impl Engine {
    /// The guest of the settings, not connected yet.
    pub(super) fn guest_of(config: &Config, stop: &Stop) -> Option<Guest> {
        let guest = config.guest.clone().map(|guest| Guest::new(guest, Programs::of(config)));
        let stop = stop.clone();
        guest.map(|guest| guest.with_interrupt(move || stop.is_asked()))
    }

    /// Sets how long to wait for the guest: as long as the turn's longest command may take. If the turn was begun
    /// before, the guest may still be carrying out one of its steps.
    pub(super) fn set_guest_patience(&self, begin: &Begin) -> Result<()> {
        let Some(guest) = &self.guest else { return Ok(()) };
        let policy = self.policy_of_turn(begin)?;
        let timeout = timeout(&policy, self.runner.timeout);
        let longest = begin.steps().iter().filter_map(|step| match &step.asks {
            StepContent::Operation(Operation::Run(run)) => Some(timeout(run.wanted_timeout())),
            _ => None,
        });
        guest.wait_for_lock(longest.max().unwrap_or_default());
        Ok(())
    }

    /// The name of the guest that carries out operations, for people; None for this machine.
    pub fn guest_label(&self) -> Option<String> {
        self.guest.as_ref().map(Guest::label)
    }

    /// What the guest says about itself; None without a guest.
    ///
    /// # Errors
    /// The guest cannot be reached.
    pub fn guest_about(&self) -> Result<Option<Rc<About>>> {
        self.guest.as_ref().map(Guest::about).transpose()
    }

    /// Disconnects from the guest while it is not needed, so that others can use it.
    pub fn release_guest(&self) {
        if let Some(guest) = &self.guest {
            guest.disconnect();
        }
    }

    /// Why the rest of a turn is not carried out, if it began on another machine than the present settings name.
    pub(super) fn other_machine(&self, begin: &Begin) -> Option<String> {
        let place = |guest: &Option<String>| match guest {
            Some(guest) => format!("in the guest '{guest}'"),
            None => "on the user's own machine".to_owned(),
        };
        let now = self.guest_label();
        (begin.guest != now).then(|| {
            format!(
                "the turn was begun {}, and the settings now say that operations are carried out {}",
                place(&begin.guest),
                place(&now)
            )
        })
    }

    /// The files for an outbox, from the machine that carries out operations. `walk` lists them, if they were listed just
    /// now.
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

    /// Adds a complete file, unless it is too large or already there.
    fn add_whole(&self, wholes: &mut Vec<Contents>, path: &RelPath) -> Result<()> {
        if wholes.len() == WHOLES || wholes.iter().any(|whole| whole.path == *path) {
            return Ok(());
        }
        let file = self.read(path, WHOLE_LIMIT)?.ok();
        let whole = file.filter(|file| file.bytes.len() as u64 == file.size);
        wholes.extend(whole.map(|file| Contents { path: path.clone(), ..file }));
        Ok(())
    }

    /// Reads at most the first `limit` bytes of a file, on the machine that carries out operations.
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

    /// Lists the files on the machine that carries out operations.
    pub(super) fn walk(&self) -> Result<Walk> {
        match &self.guest {
            Some(guest) => guest.walk(),
            None => self.workspace.walk(),
        }
    }

    /// Adds the files of the newest results to the listing even if they are ignored build products.
    fn list_touched(&self, session: &Session, walk: &mut Walk) -> Result<()> {
        for path in context::newest(session) {
            if !is_ignored_product_file(walk, path) {
                continue;
            }
            // Only its size is needed.
            let Ok(path) = RelPath::parse(path) else { continue };
            if let Ok(file) = self.read(&path, 0)?
                && file.path == path
            {
                walk.add_file(path.as_str(), file.size);
            }
        }
        Ok(())
    }
}

/// The prefix of the keys of a turn's steps in a guest: unique to the turn, and the same when it is recovered.
pub(super) fn turn_key(begin: &Begin) -> String {
    let Session { secret, id, sequence, .. } = &begin.session;
    let text = admission::reply_identity(begin);
    let text = format!("{secret} {id} {sequence} {}", text.as_str());
    Digest::of(text.as_bytes()).as_str().to_owned()
}

/// A session's name in a guest, which names its scratch directory there. It cannot be guessed from the session's ID.
pub(super) fn scratch_name(session: &Session) -> String {
    let secret = Digest::of(session.secret.as_bytes());
    format!("{}-{}", session.id, &secret.as_str()[..16])
}

/// Computes the time limit of a command from the limit that it asks for.
pub(super) fn timeout(policy: &Policy, default: Duration) -> impl Fn(Option<Duration>) -> Duration {
    move |asked| policy.shell.timeout(asked, default)
}

/// The terms for asking a guest what became of a turn's steps; nothing is carried out.
pub(super) fn terms_to_ask<'a>(begin: &Begin, config: &'a Config) -> GuestTurn<'a> {
    GuestTurn {
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
