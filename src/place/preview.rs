//! What a reply would do, without doing it: changes go to an overlay in memory. What a command
//! would change cannot be known, so after the first one whatever depends on files is uncertain.

use super::{Coming, Place};
use crate::error::Result;
use crate::policy::Opens;
use crate::protocol::{Detail, Failure, FailureKind, Operation, RelPath, ShellCommand};
use crate::text::named;
use crate::workspace::overlay::Overlay;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, READ_LIMIT, Workspace};

pub use crate::workspace::overlay::{Rewritten, Standing};

/// A workspace seen through changes that were not made.
pub struct Preview<'a> {
    workspace: &'a Workspace,
    overlay: Overlay<'a>,
    /// Whether commands would be kept from protected names.
    guarded: bool,
    /// A command would have run before.
    after_command: bool,
}

impl<'a> Preview<'a> {
    /// The workspace as it is; `guarded` as for [`Here`](super::Here).
    pub fn new(workspace: &'a Workspace, guarded: bool) -> Self {
        Self { workspace, overlay: Overlay::new(workspace), guarded, after_command: false }
    }

    /// The files that would be changed, by path.
    pub fn rewritten(self) -> Vec<Rewritten> {
        self.overlay.rewritten()
    }

    fn attempt(&mut self, operation: &Operation) -> Result<Detail, Failure> {
        match operation {
            Operation::Create { path, content, existing } => {
                self.overlay.create(path, content.as_bytes(), *existing)
            }
            Operation::Edit { path, change } => self.overlay.edit(path, change),
            Operation::Delete { path } => self.overlay.delete(path),
            Operation::Read { path, .. } => Ok(Detail::ReadLater { path: path.clone() }),
            Operation::Run(ShellCommand { command, .. }) => {
                self.after_command = true;
                Ok(Detail::Unknown { reason: format!("would run {}", named(command)) })
            }
            Operation::Message { text } => Ok(Detail::Shown { text: text.clone() }),
            Operation::Done { summary, .. } => Ok(Detail::Completed { summary: summary.clone() }),
        }
    }
}

impl Place for Preview<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        _opens: Opens,
        _: &mut dyn FnMut(Coming<'_>) -> Result<()>,
    ) -> Result<Detail> {
        Ok(match self.attempt(operation) {
            Ok(detail) => detail,
            Err(failure) => self.unreadable(failure),
        })
    }

    fn unreadable(&self, failure: Failure) -> Detail {
        if self.after_command && failure.kind == FailureKind::Execution {
            let reason = format!("depends on a command (as it is now: {})", failure.reason);
            return Detail::Unknown { reason };
        }
        failure.into()
    }

    fn walk(&self) -> Result<Walk> {
        self.workspace.walk()
    }

    fn read(&self, path: &RelPath) -> Result<Contents, Failure> {
        self.overlay.read(path, READ_LIMIT)?.text()
    }
}
