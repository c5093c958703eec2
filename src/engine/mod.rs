//! A project, opened: sessions, workspace, inbox and outbox together. Carries out one reply
//! from steps to the next outbox.

mod approvals;
mod approved;
mod changes;
mod environment;
mod execute;
mod initial_context;
mod outbox_writer;
mod project;
mod recovery;
mod remote;
mod scratch;
mod secret_files;
mod selection;
mod sessions;
mod transaction;
mod undo;

pub use crate::event::Turn;
pub use approvals::{HandledApproval, preview, preview_question};
pub use approved::{ApprovedCommand, ApprovedCommands};
pub use outbox_writer::pasted_outbox;
pub use selection::{Selection, leave_out, state_of};
pub use sessions::NewSession;
pub use undo::{KeptTurn, TurnDiff, TurnDiffs, UndoRequest, Which, kept_turns};

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::admission;
use crate::atomic;
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::Observer;
use crate::executor::Guest;
use crate::inbox::Inbox;
use crate::lock::{self, Lock};
use crate::program;
use crate::runner::sandbox;
use crate::runner::{LiveOutput, Runner};
use crate::session::Session;
use crate::session::journal::Journal;
use crate::session::store::Store as Sessions;
use crate::settings::{self, Config};
use crate::watch::Stop;
use crate::workspace::Workspace;
use crate::workspace::checkpoint::CheckpointStore;

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
    checkpoints: CheckpointStore,
    runner: Runner,
    /// Where operations are carried out instead, if not here.
    guest: Option<Guest>,
    /// Shows the person what commands write while they run.
    live_output: Option<Arc<LiveOutput>>,
    stop: Stop,
    clock: Clock,
    /// What was begun and what came of it.
    journal: Journal,
    /// Whether a turn is begun and not concluded: then only a new start can go on.
    within_turn: bool,
    /// Whether something may lie aside that is to be removed.
    has_trash: Cell<bool>,
    /// The tools that commands found when somebody last asked; empty before.
    tools: Vec<String>,
    /// Whether what confines commands was asked for.
    probed: Cell<bool>,
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

impl Engine {
    /// Opens the project of `config` to serve it: makes its folders and notes them, takes the lock,
    /// makes what else is missing, finishes what deaddrop was stopped in, and clears away what an interrupted write left.
    /// `glimpse` shows the person what commands write while they run.
    pub fn open(
        config: Config,
        clock: Clock,
        stop: Stop,
        live_output: Option<Arc<LiveOutput>>,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let Config { sessions, inbox, outbox, approvals, .. } = &config;
        config.claim_dirs([sessions, inbox, outbox, approvals])?;
        let lock = Lock::take(&config)?;
        sandbox::close_to_commands();
        let (journal, payloads) = Journal::open(&config.sessions.join("journal"))?;
        let mut engine = Self::build(config, clock, stop, lock, journal)?;
        engine.live_output = live_output;
        engine.checkpoints.remove_leftovers();
        engine.recover(&payloads, observer)?;
        engine.discard_all_scratch();
        atomic::sweep(&engine.config.outbox)?;
        atomic::sweep(&engine.config.sessions)?;
        Ok(engine)
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
        let helper = program::own_executable()
            .map_err(|e| Error::io("find", Path::new("deaddrop's own program"), e))?;
        let runner = Runner::of(&config, workspace.path(), helper);
        Ok(Self {
            store: Sessions::new(&config.sessions),
            inbox,
            approvals,
            journal,
            within_turn: false,
            has_trash: Cell::new(false),
            tools: Vec::new(),
            probed: Cell::new(false),
            changed: BTreeMap::new(),
            recovered: Vec::new(),
            taken_up: None,
            workspace,
            checkpoints: undo::store(&config),
            runner,
            guest: Self::guest_of(&config, &stop),
            live_output: None,
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

    /// What sessions note of the workspace that they begin in; None of a guest's.
    pub fn workspace_name(&self) -> Option<String> {
        self.guest.is_none().then(|| self.config.workspace_name())
    }

    /// Whether a session or a run goes on in the workspace that is set now.
    ///
    /// # Errors
    /// It began in another one.
    pub fn check_workspace(&self, session: &Session) -> Result<()> {
        admission::check_workspace(session, self.workspace_name().as_deref(), session.run.is_none())
    }

    /// Whether a session can take a reply now: it is this workspace's, has its policy, and does not wait for the person.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_ready(&self, session: &Session) -> Result<()> {
        self.policy_of(session)?;
        admission::check_ready(session, self.workspace_name().as_deref())
    }

    /// Makes what somebody has removed since, and opens the workspace that is there now.
    fn ensure_folders(&mut self) -> Result<()> {
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

    /// An orderly end: makes durable what the journal stands for. Removes what sessions that are
    /// over have left, last, when all that anybody waits for is done.
    pub fn shut_down(&mut self) -> Result<()> {
        self.flush()?;
        self.empty_trash_at_end();
        Ok(())
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
    settings::create_user_folders(&writable)?;
    config.create_settings_of_nested(NOTE);
    Ok(())
}
