//! Carries out operations on this machine: on the workspace's files, and commands through the runner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Executor, InterruptedStep, WriteAhead, command_fault, immediate_result};
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::jsonrpc::Done;
use crate::protocol::{
    Detail, Effect, Ending, Execution, Failure, FileEffect, Operation, Reading, RelPath,
    ShellCommand, Warning, WarningKind,
};
use crate::runner::{CommandSpec, LiveOutput, Runner};
use crate::settings::SandboxMode;
use crate::workspace::checkpoint::Recorder;
use crate::workspace::overlay::Overlay;
use crate::workspace::protected::{ProtectionHandle, Snapshot};
use crate::workspace::walk::Walk;
use crate::workspace::{Plan, READ_LIMIT, READ_ROOM, SearchOptions, Workspace};

/// The workspace on this machine.
pub struct LocalExecutor<'a> {
    /// The files.
    pub workspace: &'a Workspace,
    /// Runs the commands.
    pub runner: &'a Runner,
    /// The scratch directory for commands of this session.
    pub own: &'a Path,
    /// Whether commands may run with the user's rights if there is no sandbox.
    pub open: bool,
    /// Whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Whether protected names are checked. False if commands are not confined at all.
    pub guarded: bool,
    /// The check of protected names.
    pub protection: ProtectionHandle,
    /// The timeout of a command that requests one; None for the runner's timeout.
    pub timeout: &'a dyn Fn(Option<Duration>) -> Option<Duration>,
    /// Whether commands have network access; None for the setting.
    pub network: Option<bool>,
    /// A file that is locked while a command runs; None for the runner's.
    pub lock: Option<&'a Path>,
    /// The maximum number of characters kept of a command's output; None for the runner's limit.
    pub output_limit: Option<usize>,
    /// Receives the output of commands while they run.
    pub seen: Option<Arc<LiveOutput>>,
    /// The size of the largest file whose complete content is returned, in bytes.
    pub read_limit: u64,
    /// How many more bytes of such contents may be returned.
    pub read_room: u64,
    /// Whether a search may show lines of a file with this path and size.
    pub readable: &'a dyn Fn(&RelPath, u64) -> bool,
    /// Records the changes of a turn, if checkpoints are on.
    pub recorder: Option<Recorder<'a>>,
    /// The workspace as it is.
    unchanged: Overlay<'a>,
    /// File changes that are made together.
    joined: Vec<Plan>,
    warnings: Vec<Warning>,
    /// The walk at the end of a turn that ran commands.
    last_walk: Option<Walk>,
}

impl<'a> LocalExecutor<'a> {
    /// Makes an executor that does not check protected names.
    pub fn new(
        workspace: &'a Workspace,
        runner: &'a Runner,
        own: &'a Path,
        open: bool,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            workspace,
            runner,
            own,
            open,
            interrupted,
            guarded: false,
            protection: ProtectionHandle::default(),
            timeout: &|asked| asked,
            network: None,
            lock: None,
            output_limit: None,
            seen: None,
            read_limit: READ_LIMIT,
            read_room: READ_ROOM,
            readable: &|_, _| true,
            recorder: None,
            unchanged: workspace.as_is(),
            joined: Vec::new(),
            warnings: Vec::new(),
            last_walk: None,
        }
    }

    /// Adds a check of protected names.
    #[must_use]
    pub fn guarded(self, guarded: bool, protection: impl Into<ProtectionHandle>) -> Self {
        Self { guarded, protection: protection.into(), ..self }
    }

    /// The last walk of the turn, if there was one, and the recorder.
    pub fn into_parts(self) -> (Option<Walk>, Option<Recorder<'a>>) {
        (self.last_walk, self.recorder)
    }

    fn run(
        &mut self,
        run: &ShellCommand,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let folder = match &run.cwd {
            Some(folder) => self.workspace.folder(folder),
            None => Ok(self.workspace.path().to_owned()),
        };
        let folder = match (folder, command_fault(run)) {
            (Ok(folder), None) => folder,
            (Ok(_), Some(fault)) => return Ok(Failure::execution(fault).into()),
            (Err(failure), _) => return Ok(failure.into()),
        };
        // The snapshot of protected names needs the same walk.
        let mut walk = None;
        let recorder = self.recorder.as_mut();
        if let Some((noted, all)) = recorder.and_then(|r| r.before_command(self.workspace)) {
            before(WriteAhead::Noted(&noted))?;
            walk = all;
        }
        if self.guarded {
            let mut keep = |snapshot: &Snapshot| before(WriteAhead::Guard(snapshot));
            self.protection.begin(self.workspace, walk.as_ref(), &mut keep)?;
        }
        before(WriteAhead::Effects(&[Effect::Command]))?;
        let read_only = self.protection.lock().read_only(self.workspace, grant.repository);
        let command = CommandSpec {
            protected: &read_only.places,
            pinned: &read_only.pinned,
            open: self.open,
            timeout: (self.timeout)(run.wanted_timeout()),
            environment: &run.env,
            streams: run.streams,
            output_limit: self.output_limit,
            network: self.network,
            lock: self.lock,
            seen: self.seen.as_deref(),
            ..CommandSpec::new(&run.command, &folder, self.own)
        };
        let execution = self.runner.run(&command, self.interrupted);
        self.warnings = self.protection.lock().check(self.workspace);
        self.warnings.extend(self.settings_hint(run, &execution));
        Ok(Detail::Ran(execution))
    }

    /// Names the setting that may have made a command fail.
    fn settings_hint(&self, run: &ShellCommand, execution: &Execution) -> Option<Warning> {
        let settings = &self.runner.settings;
        let is_confined = !self.open && settings.mode != SandboxMode::Off;
        let is_offline = is_confined && !self.network.unwrap_or(settings.network);
        match (&execution.ending, run.wanted_timeout()) {
            _ if is_offline && super::missed_network(execution) => {
                let text = match self.network {
                    Some(false) => {
                        "commands have no network under this policy; the user can set `network = true` in a policy of their own"
                    }
                    _ => {
                        "commands have no network; the user can allow it with the setting `sandbox.network`"
                    }
                };
                Some(Warning::new(WarningKind::Network, text))
            }
            (&Ending::TimedOut(given), Some(_)) => {
                run.timeout.and_then(|asked| super::timeout_warning(given, asked))
            }
            (Ending::TimedOut(_), None) => Some(Warning::new(
                WarningKind::Timeout,
                "the user can give commands more time with the setting `command_timeout_seconds`, or with `shell.timeout_seconds` of their policy if that sets one",
            )),
            _ => None,
        }
    }

    /// Plans a change of one file.
    fn plan(&self, operation: &Operation, permit: bool) -> Option<Result<Plan, Failure>> {
        Some(match operation {
            Operation::Create { path, content, existing } => {
                self.workspace.plan_create(path, content.as_bytes(), *existing, permit)
            }
            Operation::Edit { path, change } => self.workspace.plan_edit(path, change, permit),
            Operation::Delete { path } => self.workspace.plan_delete(path, permit),
            _ => return None,
        })
    }

    /// Refuses an approved change of protected names after a command has run: the check after commands could not
    /// distinguish it from changes by a command.
    fn refuse_beside_commands(&self, path: &RelPath, grant: Grant) -> Option<Failure> {
        (grant.protected && self.protection.lock().has_begun()).then(|| Failure::execution(format!(
            "'{path}' is protected, and its change could not be distinguished from those by the commands that have run before it or run now: send it again in a reply of its own"
        )))
    }

    /// Makes planned changes, after recording them.
    fn change<R>(
        &mut self,
        effects: &[Effect],
        execute: impl FnOnce() -> R,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<R> {
        let workspace = self.workspace;
        let noted = self.recorder.as_mut().and_then(|recorder| match effects {
            [Effect::Move(moved)] => recorder.before_move(workspace, moved),
            files => recorder.before_files(workspace, files.iter().filter_map(file_of)),
        });
        if let Some(noted) = noted {
            before(WriteAhead::Noted(&noted))?;
        }
        before(WriteAhead::Effects(effects))?;
        Ok(execute())
    }
}

impl Executor for LocalExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let permit = grant.protected;
        if let Some(plan) = self.plan(operation, permit) {
            let plan = match plan {
                Err(failure) => return Ok(failure.into()),
                Ok(plan) => plan,
            };
            if let Some(failure) = self.refuse_beside_commands(&plan.effect().path, grant) {
                return Ok(failure.into());
            }
            let (effect, workspace) = (effect_of(&plan), self.workspace);
            let done = self.change(&[effect], || plan.execute(workspace), before)?;
            return Ok(done.unwrap_or_else(Detail::Failed));
        }
        match operation {
            Operation::List { .. } | Operation::Search { .. } => {
                let options = SearchOptions::new(self.readable, self.interrupted);
                let done = list_or_search(self.workspace, operation, &options);
                self.warnings = done.warnings;
                Ok(done.detail)
            }
            Operation::Move { path, to } => match self.workspace.plan_move(path, to, permit) {
                Err(failure) => Ok(failure.into()),
                Ok(plan) => {
                    if let Some(failure) = self.refuse_beside_commands(&plan.effect().from, grant) {
                        return Ok(failure.into());
                    }
                    let effect = Effect::Move(Box::new(plan.effect().clone()));
                    let done = self.change(&[effect], || plan.execute(), before)?;
                    Ok(done.unwrap_or_else(Detail::Failed))
                }
            },
            Operation::Run(run) => self.run(run, grant, before),
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let read = self.workspace.read(path, self.read_limit.saturating_add(1));
                let room = &mut self.read_room;
                let detail = read.and_then(|file| file.whole(*encoding, self.read_limit, room));
                Ok(detail.unwrap_or_else(Detail::Failed))
            }
            _ => Ok(immediate_result(operation)),
        }
    }

    fn joins_changes(&self) -> bool {
        true
    }

    fn join_change(&mut self, operation: &Operation) -> bool {
        match self.plan(operation, false) {
            Some(Ok(plan)) if plan.can_join(&self.joined) => {
                self.joined.push(plan);
                true
            }
            _ => false,
        }
    }

    fn perform_joined(
        &mut self,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Vec<Detail>> {
        let (plans, workspace) = (std::mem::take(&mut self.joined), self.workspace);
        let effects: Vec<Effect> = plans.iter().map(effect_of).collect();
        let execute = || Plan::execute_all(workspace, plans);
        let all = self.change(&effects, execute, before)?;
        Ok(all.into_iter().map(|done| done.unwrap_or_else(Detail::Failed)).collect())
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn finish(&mut self) -> Result<Vec<Warning>> {
        let recorder = self.recorder.as_mut();
        let walk = recorder.and_then(|recorder| recorder.after_commands(self.workspace));
        if !self.protection.has_begun() {
            self.last_walk = walk;
            return Ok(Vec::new());
        }
        let walk = walk.map_or_else(|| self.workspace.walk(), Ok)?;
        let warnings = self.protection.lock().finish(self.workspace, &walk);
        self.last_walk = Some(walk);
        Ok(warnings)
    }

    fn overlay(&self) -> Option<&Overlay<'_>> {
        Some(&self.unchanged)
    }

    fn inspect_interrupted(&mut self, effect: &Effect, _: &Operation) -> Result<InterruptedStep> {
        Ok(inspect_on_disk(effect, self.workspace))
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}

fn effect_of(plan: &Plan) -> Effect {
    Effect::File(Box::new(plan.effect().clone()))
}

fn file_of(effect: &Effect) -> Option<&FileEffect> {
    if let Effect::File(file) = effect { Some(file) } else { None }
}

/// Determines the state of an interrupted step from the disk. If the disk shows neither the state before nor the state
/// after, somebody else changed something: this is reported, and left alone. Commands and guest steps leave no trace.
pub fn inspect_on_disk(effect: &Effect, workspace: &Workspace) -> InterruptedStep {
    let (was_done, detail, unclear) = match effect {
        Effect::File(effect) => {
            let removed = workspace.remove_temporary(effect);
            let found = removed.and_then(|()| workspace.digest(&effect.path));
            let was_done = found.map(|found| match found {
                found if found == effect.after => Some(true),
                found if found == effect.before => Some(false),
                _ => None,
            });
            let unclear = format!(
                "deaddrop was stopped during this change, and '{}' now has neither its former nor the new content: READ_FILE it before you go on",
                effect.path
            );
            (was_done, &effect.detail, unclear)
        }
        Effect::Move(effect) => {
            let unclear = format!(
                "deaddrop was stopped during this move, and the present entries do not show whether '{}' was moved to '{}': check both paths before you go on",
                effect.from, effect.to
            );
            (workspace.was_moved(effect), &effect.detail, unclear)
        }
        Effect::Command | Effect::Guest { .. } => return InterruptedStep::Unknown,
    };
    let detail = match was_done {
        Err(failure) => failure.into(),
        Ok(Some(true)) => detail.clone(),
        Ok(Some(false)) => return InterruptedStep::NotDone,
        Ok(None) => Failure::execution(unclear).into(),
    };
    InterruptedStep::Done(Box::new(Done { detail, warnings: Vec::new() }))
}

/// Carries out a listing or a search.
pub fn list_or_search(
    workspace: &Workspace,
    operation: &Operation,
    options: &SearchOptions,
) -> Done {
    let found = match operation {
        Operation::List { path } => workspace.list_below(path.as_ref(), options),
        Operation::Search { pattern, path } => workspace.search(pattern, path.as_ref(), options),
        _ => Err(Failure::execution("this operation is no listing or search")),
    };
    let (detail, warnings) = found.unwrap_or_else(|failure| (failure.into(), Vec::new()));
    Done { detail, warnings }
}
