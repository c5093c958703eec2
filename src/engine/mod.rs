//! A project, opened: sessions, workspace, inbox and outbox together. Carries out one reply
//! from steps to the next outbox.

mod approved;
mod asking;
mod elsewhere;
mod environment;
mod held;
mod keeping;
mod meant;
mod notes;
mod offering;
mod others;
mod outboxes;
mod own;
mod recording;
mod recovery;
mod showing;
mod turning;
mod undoing;

pub use approved::{ApprovedCommand, ApprovedCommands};
pub use asking::{Foretold, Heard, foretell, preview};
pub use keeping::{Kept, kept};
pub use meant::Back;
pub use showing::{Shown, Turns, Which};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::executor::Guest;
use crate::inbox::Inbox;
use crate::lock::{self, Lock};
use crate::program;
use crate::protocol::Dialect;
use crate::runner::Runner;
use crate::runner::sandbox;
use crate::session::journal::Journal;
use crate::session::record::Record;
use crate::session::store::Store as Sessions;
use crate::session::{Offer, Session, new_id};
use crate::settings::{self, Config};
use crate::turn::Observer;
use crate::watch::Stop;
use crate::workspace::Workspace;
use crate::workspace::checkpoint::Store;
use crate::workspace::protected::Quarantine;

/// A project that this process may write in.
pub struct Engine {
    /// The settings in force.
    pub config: Config,
    /// Its sessions.
    pub store: Sessions,
    /// Its inbox.
    pub inbox: Inbox,
    /// Where approvals are dropped.
    pub approvals: Inbox,
    /// What was found and done at the start after deaddrop had been stopped hard, a sentence each.
    pub recovered: Vec<String>,
    /// The turn that was finished then, if one was.
    pub taken_up: Option<Turn>,
    workspace: Workspace,
    /// What the workspace was like before turns, and after them.
    checkpoints: Store,
    runner: Runner,
    /// Where operations are carried out instead, if not here.
    guest: Option<Guest>,
    stop: Stop,
    clock: Clock,
    /// What was begun and what came of it.
    journal: Journal,
    /// Whether a turn is begun and not concluded: then only a new start can go on.
    within_turn: bool,
    /// Whether something may lie aside that is to be removed.
    tidies: Cell<bool>,
    /// Whether what confines commands was asked for.
    probed: Cell<bool>,
    /// The events that are to be written next, so that nothing is looked at twice.
    events: RefCell<Option<outboxes::Events>>,
    /// The sessions that the journal holds, as they are now.
    changed: BTreeMap<String, Session>,
    lock: Lock,
}

/// Tells the time: the machine's, or one that was given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(pub Option<Timestamp>);

impl Clock {
    /// The time now.
    pub fn now(self) -> Timestamp {
        self.0.unwrap_or_else(Timestamp::now)
    }
}

/// A reply that was carried out.
#[derive(Debug)]
pub struct Turn {
    /// Its session, as it is now.
    pub session: Session,
    /// The next outbox; None where the session is complete, or waits for the person.
    pub outbox: Option<PathBuf>,
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beginning {
    /// The task.
    pub task: String,
    /// Its id; None for a random one.
    pub id: Option<String>,
    /// What its outboxes teach.
    pub dialect: Dialect,
    /// What its first outbox shows of the workspace's contents unasked; None for nothing.
    #[serde(default)]
    pub offer: Option<Offer>,
    /// The name of its policy.
    pub policy: String,
    /// Which workspace is meant (see [`Config::workspace_name`]); None for that of whoever begins it.
    #[serde(default)]
    pub workspace: Option<String>,
}

impl Engine {
    /// Opens the project of `config` to serve it: makes its folders and notes them, takes the lock,
    /// makes what else is missing, finishes what deaddrop was stopped in, and clears away what an interrupted write left.
    pub fn open(
        config: Config,
        clock: Clock,
        stop: Stop,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let Config { sessions, inbox, outbox, approvals, .. } = &config;
        config.claim_dirs([sessions, inbox, outbox, approvals])?;
        let lock = Lock::take(&config)?;
        sandbox::close_to_commands();
        let (journal, payloads) = Journal::open(&config.sessions.join("journal"))?;
        let mut base = Self::build(config, clock, stop, lock, journal)?;
        base.checkpoints.clear();
        base.recover(&payloads, observer)?;
        base.forget_all();
        atomic::sweep(&base.config.outbox)?;
        atomic::sweep(&base.config.sessions)?;
        Ok(base)
    }

    fn build(
        config: Config,
        clock: Clock,
        stop: Stop,
        lock: Lock,
        journal: Journal,
    ) -> Result<Self> {
        make_folders(&config)?;
        let inbox = Inbox::open(&config.inbox)?;
        let approvals = Inbox::open(&config.approvals)?;
        let workspace = open_workspace(&config)?;
        keep_settings_ours(&config, &workspace)?;
        let helper = program::own()
            .map_err(|e| Error::io("find", Path::new("deaddrop's own program"), e))?;
        let runner = Runner::of(&config, workspace.path(), helper);
        Ok(Self {
            store: Sessions::new(&config.sessions),
            inbox,
            approvals,
            journal,
            within_turn: false,
            tidies: Cell::new(false),
            probed: Cell::new(false),
            events: RefCell::default(),
            changed: BTreeMap::new(),
            recovered: Vec::new(),
            taken_up: None,
            workspace,
            checkpoints: keeping::store(&config),
            runner,
            guest: Self::guest_of(&config, &stop),
            stop,
            clock,
            config,
            lock,
        })
    }

    /// Commands are run by this program instead of the one that runs now.
    pub fn run_commands_by(&mut self, helper: &Path) {
        helper.clone_into(&mut self.runner.helper);
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Begins a session: its file and its first outbox. `unconfined`: the person allowed commands
    /// with their own rights where no sandbox is to be had.
    pub fn begin(&mut self, beginning: &Beginning, unconfined: bool) -> Result<Turn> {
        let Beginning { task, id, dialect, policy, offer, workspace } = beginning;
        // Whoever hands it over may have other settings.
        self.config.policy(policy)?;
        let here = self.config.workspace_name();
        if let Some(meant) = workspace.as_ref().filter(|meant| **meant != here) {
            return Err(Error::usage(format!(
                "the deaddrop that runs here works in the workspace '{here}', and the session is to begin in '{meant}': stop it first, or begin in a project of its own (-C)"
            ))
            .with_code("other-workspace"));
        }
        let id = id.clone().unwrap_or_else(|| self.free_id());
        let tools = match &self.guest {
            Some(guest) => guest.tools()?,
            None => {
                self.confinement();
                self.runner.tools(&self.config.sessions.join(environment::PROBE))
            }
        };
        let mut session = Session::new(id, task, tools, self.now());
        session.unconfined = unconfined;
        session.dialect = *dialect;
        session.offer.clone_from(offer);
        session.policy.clone_from(policy);
        session.workspace = self.workspace_name();
        let walk = self.walk()?;
        self.names_something(&session, &walk)?;
        let outbox = self.save_and_write_over(&mut session, Some(walk))?;
        Ok(Turn { session, outbox: Some(outbox) })
    }

    /// What sessions note of the workspace that they begin in; None of a guest's.
    pub fn workspace_name(&self) -> Option<String> {
        self.guest.is_none().then(|| self.config.workspace_name())
    }

    /// Whether a session, or a run, goes on in the workspace that is set now.
    ///
    /// # Errors
    /// It began in another one.
    pub fn suits(&self, session: &Session) -> Result<()> {
        self.suits_or(session, session.run.is_none())
    }

    /// The same; `moves`: whether it can be moved to this one instead.
    fn suits_or(&self, session: &Session, moves: bool) -> Result<()> {
        suits(session, self.workspace_name().as_deref(), moves)
    }

    /// An id that nothing has.
    fn free_id(&self) -> String {
        loop {
            let id = new_id();
            if self.store.is_free(&id) {
                return id;
            }
        }
    }

    /// Saves a session that the person made or changed.
    pub fn save(&mut self, session: &Session) -> Result<()> {
        self.journal.append(&Record::State(Box::new(session.clone())).to_line())?;
        self.journal.sync()?;
        self.changed.insert(session.id.clone(), session.clone());
        self.store.save_soon(session)
    }

    /// Makes what somebody has removed since, and opens the workspace that is there now.
    fn stand_firm(&mut self) -> Result<()> {
        make_folders(&self.config)?;
        if !self.workspace.is_current() {
            self.workspace = open_workspace(&self.config)?;
        }
        Ok(())
    }

    /// Whether a turn was begun and could not be concluded.
    pub fn is_within_turn(&self) -> bool {
        self.within_turn
    }

    /// Tells others that this process now serves the inbox until it is stopped.
    pub fn is_serving(&mut self) {
        self.lock.is_serving();
    }

    /// Where what commands make under protected names goes in the turn that begins from here.
    fn quarantine(&self, session: &Session) -> Quarantine {
        let sessions = &self.config.sessions;
        let shown = sessions.strip_prefix(&self.config.project).unwrap_or(sessions);
        let turn = format!("{}_seq{:04}", session.stem(), session.sequence);
        Quarantine::new(sessions.clone(), &shown.to_string_lossy(), &turn)
    }
}

/// Whether a session, or a run, goes on in the workspace of that name; None is a guest's. `moves`: whether
/// it can be moved there instead.
///
/// # Errors
/// It began in another one.
pub fn suits(session: &Session, now: Option<&str>, moves: bool) -> Result<()> {
    match (&session.workspace, now) {
        (Some(begun), Some(now)) if begun != now => {
            Err(Error::other_workspace(&session.stem(), begun, now, moves))
        }
        _ => Ok(()),
    }
}

fn open_workspace(config: &Config) -> Result<Workspace> {
    Workspace::open(&config.workspace, &config.state(), &config.protected_names)
}

fn make_folders(config: &Config) -> Result<()> {
    for folder in [&config.workspace, &config.outbox] {
        fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    }
    if !config.sessions.exists() {
        lock::make_private(config)?;
    }
    Ok(())
}

/// A project inside its own workspace gets a settings file: where there is none, a command
/// could write one for the next start to read. The same of other projects there, and of what
/// the person has for themselves.
fn keep_settings_ours(config: &Config, workspace: &Workspace) -> Result<()> {
    const NOTE: &str = "# Settings of deaddrop; `deaddrop --help` lists them.\n";
    let path = config.project.join(settings::FILE);
    if path.starts_with(workspace.path()) && fs::symlink_metadata(&path).is_err() {
        atomic::write(&path, NOTE.as_bytes())?;
    }
    let writable = config.sandbox.writable.iter().map(PathBuf::as_path);
    let writable: Vec<&Path> = [workspace.path()].into_iter().chain(writable).collect();
    settings::make_folders(&writable)?;
    config.keep_settings_of_others(NOTE);
    Ok(())
}
