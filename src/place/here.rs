//! This machine: the workspace's files, and commands through the runner.

use super::Place;
use crate::error::Result;
use crate::protocol::{Detail, Failure, Operation, RelPath};
use crate::runner::Runner;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, Workspace};

/// The workspace on this machine.
pub struct Here<'a> {
    /// Its files.
    pub workspace: &'a Workspace,
    /// Its commands.
    pub runner: &'a Runner,
    /// Says whether the person wants to stop.
    pub interrupted: &'a dyn Fn() -> bool,
}

impl Place for Here<'_> {
    fn perform(&mut self, operation: &Operation) -> Detail {
        let done = match operation {
            Operation::Create { path, content, existing } => {
                self.workspace.create(path, content.as_bytes(), *existing)
            }
            Operation::Edit { path, change } => self.workspace.edit(path, change),
            Operation::Delete { path } => self.workspace.delete(path),
            Operation::Run { command } => {
                Ok(Detail::Ran(self.runner.run(command, self.workspace.path(), self.interrupted)))
            }
            Operation::Message { text } => Ok(Detail::Shown { text: text.clone() }),
            Operation::Read { path } => Ok(Detail::ReadLater { path: path.clone() }),
            Operation::Done { summary } => Ok(Detail::Completed { summary: summary.clone() }),
        };
        done.unwrap_or_else(Detail::Failed)
    }

    fn walk(&self) -> Result<Walk> {
        self.workspace.walk()
    }

    fn read(&self, path: &RelPath, limit: u64) -> Result<Contents, Failure> {
        self.workspace.read(path, limit)
    }

    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
}
