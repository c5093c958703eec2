//! The guest's side: a host carries out the operations of a session on this machine. The methods describe this
//! machine, and carry out steps. Each step is carried out once, even if host or guest dies meanwhile.
//!
//! A step is recorded before it has an effect (see [`super::steps`]), and its result afterwards. A step that
//! was begun and has no result is repeated only if the disk shows that it had no effect. Reads have no effect
//! and are not steps; a repeated request reads again.

use std::thread;
use std::time::{Duration, Instant};

use super::Served;
use super::scratch_dir::{LockedDir, remove_session};
use super::served::unchecked_warning;
use super::steps::{BeginRecord, LOCK_RETRY, LockResult, LockedRecord, RunningStep, is_key};
use crate::error::Error;
use crate::executor::{
    InterruptedStep, WriteAhead, has_effect, inspect_on_disk, list_or_search, lost_command,
};
use crate::machine;
use crate::policy::{self, Grant};
use crate::protocol::jsonrpc::{
    About, AboutParams, Done, FindParams, PathFactsParams, PathFactsResult, READ_LIMIT, ReadParams,
    ReadResult, ResultParams, RpcError, STREAM_LIMIT, State, StepParams, VERSION, WalkResult,
    Written,
};
use crate::protocol::{Digest, Effect, Operation, RelPath, Warning};
use crate::runner::sandbox::Tier;
use crate::settings::FilePolicy;
use crate::workspace::SearchOptions;
use crate::workspace::protected::{Protection, Snapshot};

/// How long to wait at the start for commands of a killed process to die.
const PATIENCE: Duration = Duration::from_secs(10);

impl Served {
    pub(super) fn about(&self, params: AboutParams) -> Result<About, RpcError> {
        let runner = &self.serving.runner;
        let confinement = runner.confinement(&self.serving.scratch_dir);
        let policy = self.serving.policy.as_ref();
        let network = match (confinement.tier, policy.and_then(|policy| policy.network)) {
            (Tier::None | Tier::Off, _) | (_, None) => confinement.network_line(confinement.tier),
            (_, Some(true)) => "open to commands",
            (_, Some(false)) => "off: nothing can be fetched or installed",
        };
        let workspace = &self.serving.workspace;
        let tools = || self.tools.get_or_init(|| runner.tools(&self.serving.scratch_dir));
        Ok(About {
            version: VERSION,
            program: format!("deaddrop {}", env!("CARGO_PKG_VERSION")),
            system: machine::system(),
            shell: machine::shell(),
            sandbox: confinement.line(),
            network: network.to_owned(),
            confined: confinement.tier.confines(),
            guarded: self.guarded,
            protected: workspace.protected_names().map(str::to_owned).collect(),
            offline: policy.is_some_and(|policy| policy.network == Some(false)),
            tools: if params.tools { tools().clone() } else { Vec::new() },
            root: workspace.path().to_string_lossy().into_owned(),
            state: self.steps.identity()?,
        })
    }

    pub(super) fn walk(&self) -> Result<WalkResult, RpcError> {
        let workspace = &self.serving.workspace;
        let mut walk = workspace.walk()?;
        workspace.count_ignored(&mut walk);
        let files = walk.files().map(|file| (file.path.to_owned(), file.size, file.kind));
        Ok(WalkResult {
            files: files.collect(),
            unreadable: walk.unreadable().map(str::to_owned).collect(),
            ignored_files: walk.ignored_files(),
            left_out: walk.left_out().to_vec(),
        })
    }

    pub(super) fn path_facts(&self, params: &PathFactsParams) -> PathFactsResult {
        let workspace = self.serving.workspace.as_is();
        let digest = || workspace.content_digest(&params.operation);
        PathFactsResult {
            facts: workspace.path_facts(&params.operation),
            resolved_path: workspace.resolved_path(&params.operation),
            content_digest: if params.with_digest { digest() } else { None },
        }
    }

    pub(super) fn read(&self, params: &ReadParams) -> Result<ReadResult, RpcError> {
        let ReadParams { path, limit, part } = params;
        if let Some(failure) = self.refused_read(path)? {
            return Ok(ReadResult::Failed(failure));
        }
        let read = if part.is_whole() {
            self.serving.workspace.read(path, (*limit).min(READ_LIMIT))
        } else {
            self.serving.workspace.as_is().read_part(path, *part)
        };
        Ok(match read {
            Ok(file) => ReadResult::file(file.path, file.bytes, file.size, file.lines),
            Err(failure) => ReadResult::Failed(failure),
        })
    }

    /// Lists files, or searches for lines in them.
    pub(super) fn find(&self, params: &FindParams) -> Result<Done, RpcError> {
        let FindParams { operation, files, key } = params;
        if !matches!(operation, Operation::List { .. } | Operation::Search { .. }) {
            return Err(RpcError::params("only a list or a search finds something"));
        }
        key.as_deref().map_or(Ok(()), |key| check_key("key", key))?;
        let going = key.as_deref().map(|key| self.steps.enter(key));
        let is_to_end = || going.as_ref().is_some_and(RunningStep::is_to_end);
        let interrupted = || self.serving.stop.is_asked() || is_to_end();
        let executor = self.executor(&interrupted);
        if let Some(failure) = self.refused(operation, Grant::default(), &executor)? {
            return Ok(Done { detail: failure.into(), warnings: Vec::new() });
        }
        let own = self.serving.policy.as_ref().map(|policy| policy.files.clone());
        let theirs = files.clone().map(serde_json::from_value::<FilePolicy>).transpose();
        let theirs = theirs.map_err(RpcError::params)?;
        let both: Vec<FilePolicy> = own.into_iter().chain(theirs).collect();
        let both: Vec<_> = both.iter().map(policy::may_search).collect();
        let readable = |path: &RelPath, size| both.iter().all(|may| may(path, size));
        let terms = SearchOptions::new(&readable, &interrupted);
        Ok(list_or_search(&self.serving.workspace, operation, &terms))
    }

    /// Carries out a step, or returns its result if it was carried out before.
    pub(super) fn step(&self, params: &StepParams) -> Result<State, RpcError> {
        let StepParams { key, operation, settled, .. } = params;
        check_key("key", key)?;
        check_operation(operation)?;
        params.own.as_deref().map_or(Ok(()), |own| check_key("the name of a session", own))?;
        let going = self.steps.enter(key);
        self.check_state(params.state.as_deref())?;
        for settled in settled.iter().filter(|settled| *settled != key && is_key(settled)) {
            // The host has this result. If removing its record fails, it is removed when it is old.
            let _ = self.steps.forget(settled);
        }
        let stop = &self.serving.stop;
        let Some(mut held) = self.steps.hold(key, stop).map_err(|e| unknown(&e))? else {
            return Err(stopped("it is being carried out elsewhere"));
        };
        self.steps.forget_old(key);
        let digest = digest_of(operation);
        if let Some(begun) = &held.begun
            && (begun.operation != digest || begun.key != *key)
        {
            return Err(RpcError::params(format!("the key '{key}' is of another operation")));
        }
        loop {
            match self.step_state(key, &mut held)? {
                State::Unknown => break,
                done @ State::Done(_) => return Ok(done),
                State::Running if stop.is_asked() || going.is_to_end() => {
                    return Err(later("the command of a deaddrop that died is still running"));
                }
                State::Running => thread::sleep(LOCK_RETRY),
            }
        }
        if stop.is_asked() {
            let _ = self.steps.remove(key, &held);
            return Err(stopped("the step was not begun"));
        }
        let carried = self.carry_out(params, digest, &mut held, &going);
        if carried.is_err() {
            // An empty file means the same as no file.
            let _ = self.steps.remove(key, &held);
        }
        let undone = |e| RpcError::internal(format!("{e}; nothing was done"));
        carried.map(State::Done).map_err(undone)
    }

    /// Returns the state of a step.
    pub(super) fn step_result(&self, params: &ResultParams) -> Result<State, RpcError> {
        let ResultParams { key, state } = params;
        check_key("key", key)?;
        self.check_state(state.as_deref())?;
        let taken = self.steps.try_hold(key, false).map_err(|e| unknown(&e))?;
        self.steps.forget_old(key);
        match taken {
            LockResult::Missing => Ok(State::Unknown),
            LockResult::Elsewhere => Ok(State::Running),
            LockResult::Held(held)
                if held.begun.as_ref().is_some_and(|begun| begun.key != *key) =>
            {
                Ok(State::Unknown)
            }
            LockResult::Held(mut held) => self.step_state(key, &mut held),
        }
    }

    /// Checks that these are the records that the host knows, by their identity.
    fn check_state(&self, state: Option<&str>) -> Result<(), RpcError> {
        let Some(state) = state else { return Ok(()) };
        if self.steps.identity().map_err(|e| unknown(&e))? == state {
            return Ok(());
        }
        let told =
            "what is known of steps here is not what was: it was lost, or this is another guest";
        Err(RpcError::new(RpcError::OTHER, told))
    }

    /// Carries out a step that was never begun. After an error nothing was done.
    fn carry_out(
        &self,
        params: &StepParams,
        operation: Digest,
        held: &mut LockedRecord,
        going: &RunningStep,
    ) -> Result<Done, Error> {
        let (serving, key) = (&self.serving, &params.key);
        let interrupted = || serving.stop.is_asked() || going.is_to_end();
        let timeout = |asked| Some(self.timeout(asked));
        let (lock, dir) = (self.steps.lock_of(key), self.scratch_dir_of(params)?);
        let mut executor = self.executor_named(&quarantine_name(key), &dir.folder, &interrupted);
        executor.timeout = &timeout;
        executor.lock = Some(&lock);
        executor.network = self.network(params.network);
        executor.output_limit = Some(params.output_limit.min(STREAM_LIMIT));

        let command = match &params.operation {
            Operation::Run(run) => Some(run.command.clone()),
            _ => None,
        };
        let mut begun =
            BeginRecord { key: key.clone(), operation, command, guard: None, effect: None };
        let grant = Grant { protected: params.protected, repository: params.repository };
        let mut before = |coming: WriteAhead<'_>| match coming {
            WriteAhead::Guard(snapshot) => {
                begun.guard = Some(snapshot.clone());
                Ok(())
            }
            // The guest's files are not kept for the host to restore.
            WriteAhead::Noted(_) => Ok(()),
            WriteAhead::Effects(effects) => {
                begun.effect = effects.first().cloned();
                held.begin(&begun)
            }
        };
        let done = self.perform(executor, &params.operation, grant, &mut before)?;
        if begun.effect.is_some() || held.begin(&begun).is_ok() {
            self.conclude(key, held, &done);
        }
        Ok(done)
    }

    /// Records the result of a step. If that fails, the result is still returned now; later the disk shows the
    /// result of a file operation, and a command counts as lost.
    fn conclude(&self, key: &str, held: &mut LockedRecord, done: &Done) {
        if held.finish(done).is_ok() {
            self.steps.end_of_command(key);
        }
    }

    /// The scratch directory of a step: its session's, if it has one, otherwise the server's.
    fn scratch_dir_of(&self, params: &StepParams) -> Result<LockedDir, Error> {
        let Some(session) = &params.own else {
            return Ok(LockedDir::of_server(self.serving.scratch_dir.clone()));
        };
        // If commands run with all rights of the user, they use the user's HOME.
        let is_command = matches!(params.operation, Operation::Run(_));
        LockedDir::of_session(&self.serving.state, session, is_command && self.guarded)
    }

    /// Ends a session of a host: removes the scratch directory of its commands.
    pub(super) fn leave(&self, session: &str) -> Result<Written, RpcError> {
        check_key("the name of a session", session)?;
        remove_session(&self.serving.state, session)?;
        Ok(Written { success: true })
    }

    /// Whether a command may use the network, given the host's request; None means as in the settings.
    pub(super) fn network(&self, asked: Option<bool>) -> Option<bool> {
        let own = self.serving.policy.as_ref().and_then(|policy| policy.network);
        let network = if own == Some(false) { own } else { asked.or(own) };
        self.serving.runner.settings.mode.network(network)
    }
}

// Steps whose process died. The disk shows the result of a file operation. A command counts as lost, and its changes to
// protected names are undone. This is done before other requests are served, so that no later command takes these
// changes for the original state. If the command is still running, this is done when its step is requested, and only
// while no other command runs here, because that command's check would revert the repair.
impl Served {
    /// The state of a step whose file is locked here and which is not in progress. `Running` means that its command has
    /// outlived its process, or that other commands are running, during which it cannot be cleaned up.
    ///
    /// # Errors
    /// The state cannot be determined.
    fn step_state(&self, key: &str, held: &mut LockedRecord) -> Result<State, RpcError> {
        let Some(begun) = &held.begun else { return Ok(State::Unknown) };
        if let Some(done) = &held.done {
            return Ok(State::Done(done.clone()));
        }
        let done = match &begun.effect {
            Some(effect @ (Effect::File(_) | Effect::Move(_))) => {
                match inspect_on_disk(effect, &self.serving.workspace) {
                    InterruptedStep::Done(done) => *done,
                    InterruptedStep::NotDone | InterruptedStep::Unknown => {
                        return Ok(State::Unknown);
                    }
                }
            }
            Some(Effect::Command) => {
                match self.lost_command_warnings(key, begun).map_err(|e| unknown(&e))? {
                    Some(warnings) => {
                        let command = begun.command.as_deref().unwrap_or_default();
                        Done { detail: lost_command(command), warnings }
                    }
                    None => return Ok(State::Running),
                }
            }
            Some(Effect::Guest { .. }) | None => return Ok(State::Unknown),
        };
        self.conclude(key, held, &done);
        Ok(State::Done(done))
    }

    /// The warnings about a command whose process died; None if it cannot be cleaned up
    /// now.
    fn lost_command_warnings(
        &self,
        key: &str,
        begun: &BeginRecord,
    ) -> Result<Option<Vec<Warning>>, Error> {
        if !self.steps.has_ended(key)? {
            return Ok(None);
        }
        let Some(snapshot) = begun.guard.clone().filter(|_| self.guarded) else {
            return Ok(Some(Vec::new()));
        };
        Ok(self.protection.while_idle(|| self.undo_lost_command(key, snapshot)))
    }

    /// Undoes the changes of a lost command to protected names.
    fn undo_lost_command(&self, key: &str, snapshot: Snapshot) -> Vec<Warning> {
        let workspace = &self.serving.workspace;
        let mut protection = Protection::resumed(self.quarantine(&quarantine_name(key)), snapshot);
        let mut warnings = protection.unreported(std::iter::empty());
        warnings.extend(protection.check(workspace));
        match workspace.walk() {
            Ok(walk) => warnings.extend(protection.finish(workspace, &walk)),
            Err(e) => warnings.push(unchecked_warning(&e)),
        }
        warnings
    }

    /// Cleans up after the commands of processes that died.
    pub(super) fn clean_up_lost_commands(&self) {
        let begun = Instant::now();
        self.steps.each(&mut |key, held| {
            let is_command = |begun: &BeginRecord| matches!(begun.effect, Some(Effect::Command));
            if held.done.is_some() || !held.begun.as_ref().is_some_and(is_command) {
                return;
            }
            // A failure is reported when the host asks for the step.
            while let Ok(State::Running) = self.step_state(key, held)
                && begun.elapsed() < PATIENCE
                && !self.serving.stop.is_asked()
            {
                thread::sleep(LOCK_RETRY);
            }
        });
    }
}

/// Checks the key of a step or the name of a session. Both become file names that are created and removed.
fn check_key(what: &str, key: &str) -> Result<(), RpcError> {
    if is_key(key) {
        return Ok(());
    }
    let told = "must be 1 to 64 letters (a-z, A-Z), digits and hyphens";
    Err(RpcError::params(format!("{what} {told}")))
}

/// Checks that an operation has an effect on this machine. Only such operations are steps; reads use `read`.
fn check_operation(operation: &Operation) -> Result<(), RpcError> {
    if has_effect(operation) {
        return Ok(());
    }
    Err(RpcError::params("what has no effect is no step of a guest"))
}

/// The digest that identifies an operation.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn digest_of(operation: &Operation) -> Digest {
    Digest::of(&serde_json::to_vec(operation).expect("texts and numbers become JSON"))
}

/// The name of the quarantine folder of a step.
fn quarantine_name(key: &str) -> String {
    format!("step_{key}")
}

fn later(told: &str) -> RpcError {
    RpcError::new(RpcError::LATER, told)
}

fn stopped(told: &str) -> RpcError {
    later(&format!("deaddrop is being stopped there, and {told}"))
}

/// The error for a step that may or may not have been begun.
fn unknown(error: &Error) -> RpcError {
    later(&error.to_string())
}
