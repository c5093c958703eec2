//! An open project: its sessions, workspace, inbox and outbox. Carries out a reply, from its steps to the next outbox.

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
pub use undo::{KeptTurn, TurnDiff, TurnDiffs, TurnSpan, UndoRequest, kept_turns};

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
use crate::session::store::SessionStore;
use crate::settings::{self, Config};
use crate::watch::Stop;
use crate::workspace::Workspace;
use crate::workspace::checkpoint::CheckpointStore;

/// A project that this process may write in.
pub struct Engine {
    /// The project's settings.
    pub config: Config,
    /// The sessions on disk.
    pub store: SessionStore,
    /// The folder that receives replies.
    pub inbox: Inbox,
    /// The folder that receives approvals.
    pub approvals: Inbox,
    /// What recovery found and did when the project was opened, one sentence each.
    pub recovery_messages: Vec<String>,
    /// The turn that recovery finished.
    pub recovered_turn: Option<Turn>,
    workspace: Workspace,
    /// The workspace before and after each turn.
    checkpoints: CheckpointStore,
    runner: Runner,
    /// The machine that carries out operations; None for this one.
    guest: Option<Guest>,
    /// Shows the output of running commands to the person.
    live_output: Option<Arc<LiveOutput>>,
    stop: Stop,
    clock: Clock,
    journal: Journal,
    /// Whether a turn has begun and not ended. If it fails, only a new start can continue it.
    within_turn: bool,
    /// Whether folders that were put aside may remain to be removed.
    has_trash: Cell<bool>,
    /// The tools that commands can find; empty until they are looked up.
    tools: Vec<String>,
    /// Whether the sandbox was probed.
    probed: Cell<bool>,
    /// The present state of each session that may be durable only in the journal, by ID.
    unflushed: BTreeMap<String, Session>,
    lock: Lock,
}

/// A clock: the machine's, or one that always shows the given time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock(pub Option<Timestamp>);

impl Clock {
    /// The time now.
    pub fn now(self) -> Timestamp {
        self.0.unwrap_or_else(Timestamp::now)
    }
}

impl Engine {
    /// Opens the project of `config`: creates and claims its folders, takes the lock, recovers an interrupted turn, and
    /// removes temporary files that interrupted writes left behind. `live_output` shows the output of running commands
    /// to the person.
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
            store: SessionStore::new(&config.sessions),
            inbox,
            approvals,
            journal,
            within_turn: false,
            has_trash: Cell::new(false),
            tools: Vec::new(),
            probed: Cell::new(false),
            unflushed: BTreeMap::new(),
            recovery_messages: Vec::new(),
            recovered_turn: None,
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

    /// Sets the program that runs commands; the default is the running program.
    pub fn set_command_helper(&mut self, helper: &Path) {
        helper.clone_into(&mut self.runner.helper);
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The name of the workspace, which sessions record when they begin; None in a guest.
    pub fn workspace_name(&self) -> Option<String> {
        self.guest.is_none().then(|| self.config.workspace_name())
    }

    /// Checks that a session or a run began in the present workspace.
    ///
    /// # Errors
    /// It began in another one.
    pub fn check_workspace(&self, session: &Session) -> Result<()> {
        admission::check_workspace(session, self.workspace_name().as_deref(), session.run.is_none())
    }

    /// Checks that a session can accept a reply now.
    ///
    /// # Errors
    /// It began in another workspace, its policy does not exist, or it waits for a decision.
    pub fn check_ready(&self, session: &Session) -> Result<()> {
        self.policy_of(session)?;
        admission::check_ready(session, self.workspace_name().as_deref())
    }

    /// Creates folders that were removed, and reopens the workspace if its folder was replaced.
    fn ensure_folders(&mut self) -> Result<()> {
        make_folders(&self.config)?;
        if !self.workspace.is_current() {
            self.workspace = open_workspace(&self.config)?;
        }
        Ok(())
    }

    /// Checks that the project is still where it was opened.
    ///
    /// # Errors
    /// It was moved, removed or replaced.
    pub fn check_place(&self) -> Result<()> {
        if self.lock.is_in_place(&self.config) {
            return Ok(());
        }
        Err(Error::moved(&self.config.project))
    }

    /// Whether a turn has begun and not ended.
    pub fn is_within_turn(&self) -> bool {
        self.within_turn
    }

    /// Announces to other processes that this one serves the inbox until it stops.
    pub fn announce_serving(&mut self) {
        self.lock.mark_serving();
    }

    /// Shuts down: makes the state in the journal durable elsewhere, then removes scratch directories of completed sessions.
    /// The removal is last, since nobody waits for it.
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

/// Creates missing settings files in writable folders: for this project, for other projects, and for the person.
/// Otherwise a command could write one, and the next start would read it.
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
