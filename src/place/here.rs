//! This machine: the workspace's files, and commands through the runner.

use std::path::Path;

use super::Place;
use crate::error::Result;
use crate::protocol::{Detail, Effect, Failure, Operation, RelPath};
use crate::runner::{Errand, Runner};
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
}

impl Place for Here<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        before: &mut dyn FnMut(&Effect) -> Result<()>,
    ) -> Result<Detail> {
        let plan = match operation {
            Operation::Create { path, content, existing } => {
                self.workspace.plan_create(path, content.as_bytes(), *existing)
            }
            Operation::Edit { path, change } => self.workspace.plan_edit(path, change),
            Operation::Delete { path } => self.workspace.plan_delete(path),
            Operation::Run { command } => {
                before(&Effect::Command)?;
                let folder = self.workspace.path();
                let (own, open) = (self.own, self.open);
                let errand = Errand { command, folder, own, protected: &[], open };
                return Ok(Detail::Ran(self.runner.run(&errand, self.interrupted)));
            }
            Operation::Message { text } => return Ok(Detail::Shown { text: text.clone() }),
            Operation::Read { path } => return Ok(Detail::ReadLater { path: path.clone() }),
            Operation::Done { summary } => {
                return Ok(Detail::Completed { summary: summary.clone() });
            }
        };
        Ok(match plan {
            Err(failure) => failure.into(),
            Ok(plan) => {
                before(&Effect::File(Box::new(plan.effect().clone())))?;
                plan.execute().unwrap_or_else(Detail::Failed)
            }
        })
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
