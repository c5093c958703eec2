//! This machine: the workspace's files, and commands through the runner.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Executor, Left, WriteAhead, fault_of, told};
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::jsonrpc::Done;
use crate::protocol::{
    Detail, Digest, Effect, Ending, Execution, Failure, FileEffect, MoveEffect, Operation, Part,
    Reading, RelPath, ShellCommand, Warning, WarningKind,
};
use crate::runner::{CommandSpec, LiveOutput, Runner};
use crate::settings::SandboxMode;
use crate::workspace::checkpoint::Recorder;
use crate::workspace::protected::{ProtectionHandle, Snapshot};
use crate::workspace::walk::Walk;
use crate::workspace::{
    Contents, MovePlan, PathFacts, Plan, READ_LIMIT, READ_ROOM, SearchOptions, Workspace,
};

/// The workspace on this machine.
pub struct LocalExecutor<'a> {
    /// Its files.
    pub workspace: &'a Workspace,
    /// Its commands.
    pub runner: &'a Runner,
    /// The folder that commands of this session have for themselves.
    pub own: &'a Path,
    /// Whether commands may run with the user's own rights where no sandbox is to be had.
    pub open: bool,
    /// Says whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
    /// Whether commands are kept from protected names. Off where commands are not confined at all.
    pub guarded: bool,
    /// What checks those names.
    pub protection: ProtectionHandle,
    /// How long a command gets that asks for so much; None for as long as the runner gives.
    pub timeout: &'a dyn Fn(Option<Duration>) -> Option<Duration>,
    /// Whether commands reach the network; None for what the settings say.
    pub network: Option<bool>,
    /// A file that is locked while a command runs; None for the runner's.
    pub lock: Option<&'a Path>,
    /// How many characters of a command's output are kept; None for as many as the runner keeps.
    pub output_limit: Option<usize>,
    /// Is shown what commands write while they run.
    pub seen: Option<Arc<LiveOutput>>,
    /// The largest file, in bytes, that is given where it is read in its place.
    pub read_limit: u64,
    /// How many bytes of such files may be given yet.
    pub read_room: u64,
    /// Whether the lines of a file of that size may be shown where files are searched.
    pub readable: &'a dyn Fn(&RelPath, u64) -> bool,
    /// What records what a turn changes, if that is kept.
    pub recorder: Option<Recorder<'a>>,
    /// Changes of files that are to be made together.
    joined: Vec<Plan>,
    noticed: Vec<Warning>,
    /// The walk at the end of a turn in which commands ran.
    last_walk: Option<Walk>,
}

impl<'a> LocalExecutor<'a> {
    /// One whose commands are not kept from protected names.
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
            joined: Vec::new(),
            noticed: Vec::new(),
            last_walk: None,
        }
    }

    /// The same with a check of protected names.
    #[must_use]
    pub fn guarded(self, guarded: bool, protection: impl Into<ProtectionHandle>) -> Self {
        Self { guarded, protection: protection.into(), ..self }
    }

    /// What the last walk of the turn found, where it needed one; and what recorded the turn.
    pub fn into_parts(self) -> (Option<Walk>, Option<Recorder<'a>>) {
        (self.last_walk, self.recorder)
    }

    fn run(
        &mut self,
        run: &ShellCommand,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let folder = match &run.cwd {
            Some(folder) => self.workspace.folder(folder),
            None => Ok(self.workspace.path().to_owned()),
        };
        let folder = match (folder, fault_of(run)) {
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
        let read_only = self.protection.lock().read_only(self.workspace, opens.repository);
        let errand = CommandSpec {
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
        let execution = self.runner.run(&errand, self.interrupted);
        self.noticed = self.protection.lock().check(self.workspace);
        self.noticed.extend(self.setting_that_helps(run, &execution));
        Ok(Detail::Ran(execution))
    }

    /// Names the setting without which a command may not have failed.
    fn setting_that_helps(&self, run: &ShellCommand, execution: &Execution) -> Option<Warning> {
        let settings = &self.runner.settings;
        let is_confined = !self.open && settings.mode != SandboxMode::Off;
        let is_offline = is_confined && !self.network.unwrap_or(settings.network);
        match (&execution.ending, run.wanted_timeout()) {
            _ if is_offline && super::missed_network(execution) => {
                let told = match self.network {
                    Some(false) => {
                        "commands have no network under this policy; the user can set `network = true` in a policy of their own"
                    }
                    _ => {
                        "commands have no network; the user can allow it with the setting `sandbox.network`"
                    }
                };
                Some(Warning::new(WarningKind::Network, told))
            }
            (&Ending::TimedOut(given), Some(_)) => {
                run.timeout.and_then(|asked| super::shorter_than_asked(given, asked))
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

    /// Makes changes that are planned together, and announces one that is of protected names.
    fn change<R>(
        &mut self,
        effects: &[Effect],
        execute: impl FnOnce() -> R,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<R> {
        let workspace = self.workspace;
        // It is stored along with the effect, before which it has to be on disk; see `protected::approved`.
        if opens.protected && self.protection.lock().has_begun() {
            for effect in effects {
                let keep = |snapshot: &Snapshot| before(WriteAhead::Guard(snapshot));
                self.protection.lock().expect(workspace, effect).map_or(Ok(()), keep)?;
            }
        }
        let noted = self.recorder.as_mut().and_then(|recorder| match effects {
            [Effect::Move(moved)] => recorder.before_move(workspace, moved),
            files => recorder.before_files(workspace, files.iter().filter_map(file_of)),
        });
        if let Some(noted) = noted {
            before(WriteAhead::Noted(&noted))?;
        }
        before(WriteAhead::Effects(effects))?;
        let done = execute();
        self.protection.lock().settle(workspace);
        Ok(done)
    }

    fn rename(
        &mut self,
        plan: MovePlan,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        if opens.protected && plan.is_folder && self.protection.lock().has_begun() {
            return Ok(Failure::execution(format!(
                "'{}' holds names that only the user may write, and commands have run just before, or run now, of whose doings such a move could not be told: send the MOVE_FILE again in a reply of its own",
                plan.effect().from
            ))
            .into());
        }
        let effect = Effect::Move(Box::new(plan.effect().clone()));
        let done = self.change(&[effect], || plan.execute(), opens, before)?;
        Ok(done.unwrap_or_else(Detail::Failed))
    }
}

impl Executor for LocalExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let permit = opens.protected;
        if let Some(plan) = self.plan(operation, permit) {
            let plan = match plan {
                Err(failure) => return Ok(failure.into()),
                Ok(plan) => plan,
            };
            let (effect, workspace) = (effect_of(&plan), self.workspace);
            let done = self.change(&[effect], || plan.execute(workspace), opens, before)?;
            return Ok(done.unwrap_or_else(Detail::Failed));
        }
        match operation {
            Operation::List { .. } | Operation::Search { .. } => {
                let terms = SearchOptions::new(self.readable, self.interrupted);
                let done = find(self.workspace, operation, &terms);
                self.noticed = done.warnings;
                Ok(done.detail)
            }
            Operation::Move { path, to } => match self.workspace.plan_move(path, to, permit) {
                Err(failure) => Ok(failure.into()),
                Ok(plan) => self.rename(plan, opens, before),
            },
            Operation::Run(run) => self.run(run, opens, before),
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let read = self.workspace.read(path, self.read_limit.saturating_add(1));
                let room = &mut self.read_room;
                let given = read.and_then(|file| file.whole(*encoding, self.read_limit, room));
                Ok(given.unwrap_or_else(Detail::Failed))
            }
            Operation::Create { .. }
            | Operation::Edit { .. }
            | Operation::Delete { .. }
            | Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { .. } => Ok(told(operation)),
        }
    }

    fn joins_changes(&self) -> bool {
        true
    }

    fn join(&mut self, operation: &Operation) -> bool {
        match self.plan(operation, false) {
            Some(Ok(plan)) if plan.goes_with(&self.joined) => {
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
        let all = self.change(&effects, execute, Grant::default(), before)?;
        Ok(all.into_iter().map(|done| done.unwrap_or_else(Detail::Failed)).collect())
    }

    fn noticed(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.noticed)
    }

    fn finish(&mut self) -> Result<Vec<Warning>> {
        let recorder = self.recorder.as_mut();
        let walk = recorder.and_then(|recorder| recorder.after_commands(self.workspace));
        if !self.protection.has_begun() {
            self.last_walk = walk;
            return Ok(Vec::new());
        }
        let walk = walk.map_or_else(|| self.workspace.walk(), Ok)?;
        let noticed = self.protection.lock().finish(self.workspace, &walk);
        self.last_walk = Some(walk);
        Ok(noticed)
    }

    fn walk(&self) -> Result<Walk> {
        self.workspace.walk()
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        Ok(self.workspace.as_is().read_part(path, part))
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        Ok(self.workspace.as_is().path_facts(operation))
    }

    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        Ok(self.workspace.as_is().resolved_path(operation))
    }

    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        Ok(self.workspace.as_is().content_digest(operation))
    }

    fn left(&mut self, effect: &Effect, _: &Operation) -> Result<Left> {
        Ok(left_on_disk(effect, self.workspace))
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

/// What the disk tells of something that was about to be done: of a command, and of what was asked of a
/// guest, nothing.
pub fn left_on_disk(effect: &Effect, workspace: &Workspace) -> Left {
    match effect {
        Effect::File(effect) => {
            let removed = workspace.remove_temporary(effect);
            left_by(effect, removed.and_then(|()| workspace.digest(&effect.path)))
        }
        Effect::Move(effect) => left_of_move(effect, workspace),
        Effect::Command | Effect::Guest { .. } => Left::Lost,
    }
}

/// What can be said of a move that was about to be made: what stands at both ends tells.
fn left_of_move(effect: &MoveEffect, workspace: &Workspace) -> Left {
    let detail = match workspace.was_moved(effect) {
        Err(failure) => failure.into(),
        Ok(Some(true)) => effect.detail.clone(),
        Ok(Some(false)) => return Left::Undone,
        Ok(None) => Failure::execution(format!(
            "deaddrop was stopped meanwhile, and what stands at '{}' and '{}' does not tell whether the one became the other: look at both before you go on",
            effect.from, effect.to
        ))
        .into(),
    };
    Left::Done(Box::new(Done { detail, warnings: Vec::new() }))
}

/// What a look into the workspace comes to, and what is to be told beside it.
pub fn find(workspace: &Workspace, operation: &Operation, terms: &SearchOptions) -> Done {
    let found = match operation {
        Operation::List { path } => workspace.list_below(path.as_ref(), terms),
        Operation::Search { pattern, path } => workspace.search(pattern, path.as_ref(), terms),
        _ => Err(Failure::execution("nothing is to be found by it")),
    };
    let (detail, warnings) = found.unwrap_or_else(|failure| (failure.into(), Vec::new()));
    Done { detail, warnings }
}

/// What can be said of a file that was about to change, where this was found: it is as it was to become,
/// or as it was before, or neither: somebody else's hand, told and left alone.
fn left_by(effect: &FileEffect, found: Result<Option<Digest>, Failure>) -> Left {
    let detail = match found {
        Err(failure) => failure.into(),
        Ok(found) if found == effect.after => effect.detail.clone(),
        Ok(found) if found == effect.before => return Left::Undone,
        Ok(_) => Failure::execution(format!(
            "deaddrop was stopped meanwhile, and '{}' is now neither what it was before nor what it was to become: READ_FILE it before you go on",
            effect.path
        ))
        .into(),
    };
    Left::Done(Box::new(Done { detail, warnings: Vec::new() }))
}
