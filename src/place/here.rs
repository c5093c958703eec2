//! This machine: the workspace's files, and commands through the runner.

use std::path::Path;

use super::{Coming, Place};
use crate::error::Result;
use crate::policy::Opens;
use crate::protocol::{Detail, Effect, Execution, Failure, Operation, RelPath, ShellCommand};
use crate::runner::{Errand, Runner};
use crate::workspace::guard::Guard;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, Workspace};

/// The workspace on this machine.
pub struct Here<'a> {
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
    /// What watches over those names.
    pub guard: Guard,
    noticed: Vec<String>,
    /// The walk at the end of a turn in which commands ran.
    last_walk: Option<Walk>,
}

impl<'a> Here<'a> {
    /// A place where nothing watches over commands.
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
            guard: Guard::default(),
            noticed: Vec::new(),
            last_walk: None,
        }
    }

    /// The same with a guard.
    #[must_use]
    pub fn guarded(self, guarded: bool, guard: Guard) -> Self {
        Self { guarded, guard, ..self }
    }

    /// What the last walk of the turn found, where it needed one.
    pub fn into_last_walk(self) -> Option<Walk> {
        self.last_walk
    }

    fn run(
        &mut self,
        command: &str,
        before: &mut dyn FnMut(Coming<'_>) -> Result<()>,
    ) -> Result<Execution> {
        if self.guarded
            && let Some(snapshot) = self.guard.begin(self.workspace)?
        {
            before(Coming::Guard(snapshot))?;
        }
        before(Coming::Effect(&Effect::Command))?;
        let errand = Errand {
            protected: &self.guard.places(self.workspace),
            open: self.open,
            ..Errand::new(command, self.workspace.path(), self.own)
        };
        let execution = self.runner.run(&errand, self.interrupted);
        self.noticed = self.guard.check(self.workspace);
        Ok(execution)
    }
}

impl Place for Here<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        _opens: Opens,
        before: &mut dyn FnMut(Coming<'_>) -> Result<()>,
    ) -> Result<Detail> {
        let plan = match operation {
            Operation::Create { path, content, existing } => {
                self.workspace.plan_create(path, content.as_bytes(), *existing)
            }
            Operation::Edit { path, change } => self.workspace.plan_edit(path, change),
            Operation::Delete { path } => self.workspace.plan_delete(path),
            Operation::Run(ShellCommand { command, .. }) => {
                return self.run(command, before).map(Detail::Ran);
            }
            Operation::Message { text } => return Ok(Detail::Shown { text: text.clone() }),
            Operation::Read { path, .. } => return Ok(Detail::ReadLater { path: path.clone() }),
            Operation::Done { summary, .. } => {
                return Ok(Detail::Completed { summary: summary.clone() });
            }
        };
        Ok(match plan {
            Err(failure) => failure.into(),
            Ok(plan) => {
                before(Coming::Effect(&Effect::File(Box::new(plan.effect().clone()))))?;
                plan.execute().unwrap_or_else(Detail::Failed)
            }
        })
    }

    fn noticed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.noticed)
    }

    fn finish(&mut self) -> Result<Vec<String>> {
        if !self.guard.has_begun() {
            return Ok(Vec::new());
        }
        let walk = self.workspace.walk()?;
        let noticed = self.guard.finish(self.workspace, &walk);
        self.last_walk = Some(walk);
        Ok(noticed)
    }

    fn walk(&self) -> Result<Walk> {
        self.workspace.walk()
    }

    fn read(&self, path: &RelPath) -> Result<Contents, Failure> {
        self.workspace.read_text(path)
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}
