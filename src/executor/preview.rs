//! Previews a reply: changes are made to an overlay in memory. The changes of a command are unknown, so all results
//! that depend on files are uncertain after the first one.

use super::{Executor, InterruptedStep, WriteAhead, command_fault, immediate_result};
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::{
    Change, Detail, Digest, Effect, Failure, FailureKind, Operation, Part, Reading, RelPath,
};
use crate::text::named;
use crate::workspace::overlay::Overlay;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, PathFacts, READ_LIMIT, READ_ROOM, Workspace, check_pattern};

pub use crate::workspace::overlay::{FileState, PreviewedChange};

/// Carries out operations on an overlay of the workspace.
pub struct PreviewExecutor<'a> {
    workspace: &'a Workspace,
    overlay: Overlay<'a>,
    /// An earlier step whose results are unknown, in words.
    uncertain_since: Option<&'static str>,
    /// The number of the present step, counted from 0.
    step: usize,
    /// The files that would have been changed before each command.
    changes: Vec<PreviewedChange>,
    /// As for [`LocalExecutor`](super::LocalExecutor).
    pub read_limit: u64,
    /// As for [`LocalExecutor`](super::LocalExecutor).
    pub read_room: u64,
}

impl<'a> PreviewExecutor<'a> {
    /// Makes a preview of the present workspace.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            overlay: Overlay::new(workspace),
            uncertain_since: None,
            step: 0,
            changes: Vec::new(),
            read_limit: READ_LIMIT,
            read_room: READ_ROOM,
        }
    }

    /// The files that would be changed before each command, which may use them, and at the end.
    pub fn into_changes(mut self) -> Vec<PreviewedChange> {
        self.changes.append(&mut self.overlay.take_changes());
        self.changes
    }

    /// Fails if nothing would exist at a path.
    fn require_exists(&self, path: Option<&RelPath>) -> Result<(), Failure> {
        path.map_or(Ok(()), |path| self.overlay.require_exists(path))
    }

    fn attempt(&mut self, operation: &Operation, grant: Grant) -> Result<Detail, Failure> {
        match operation {
            Operation::Create { path, content, existing } => {
                self.overlay.create(path, content.as_bytes(), *existing, grant.protected)
            }
            Operation::Edit { path, change } => {
                let detail = self.overlay.edit(path, change, grant.protected)?;
                match (self.uncertain_since, change) {
                    // The lines may have changed.
                    (Some(what), Change::Lines { start, end, .. }) => {
                        let lines = if start == end {
                            format!("line {start}")
                        } else {
                            format!("lines {start}-{end}")
                        };
                        let reason =
                            format!("would edit {lines} of '{path}', which depends on {what}");
                        Ok(Detail::Unknown { reason })
                    }
                    _ => Ok(detail),
                }
            }
            Operation::Delete { path } => self.overlay.delete(path, grant.protected),
            Operation::Done { if_ok: true, .. } if self.uncertain_since.is_some() => {
                Ok(unknown_end(self.uncertain_since.unwrap_or_default()))
            }
            Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { reading: Reading::Later(_) | Reading::Definition(_), .. } => {
                Ok(immediate_result(operation))
            }
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let contents = self.overlay.read(path, self.read_limit.saturating_add(1))?;
                contents.whole(*encoding, self.read_limit, &mut self.read_room)
            }
            Operation::List { path } => {
                self.require_exists(path.as_ref())?;
                Ok(Detail::Unknown { reason: format!("would list {}", folder_name(path.as_ref())) })
            }
            Operation::Search { pattern, path } => {
                check_pattern(pattern)?;
                self.require_exists(path.as_ref())?;
                let folder = folder_name(path.as_ref());
                let reason = format!("would search {folder} for {}", named(pattern));
                Ok(Detail::Unknown { reason })
            }
            Operation::Move { path, to } => {
                match self.overlay.rename(path, to, grant.protected)? {
                    Some(detail) => Ok(detail),
                    None => {
                        // The overlay does not contain the moved entry.
                        self.uncertain_since.get_or_insert("an earlier move");
                        let reason = format!("would move '{path}' to '{to}'");
                        Ok(Detail::Unknown { reason })
                    }
                }
            }
            Operation::Run(run) => {
                // A missing folder may be created by an earlier command.
                if let Some(Err(failure)) = run.cwd.as_ref().map(|cwd| self.workspace.folder(cwd))
                    && failure.kind == FailureKind::Rejected
                {
                    return Err(failure);
                }
                if let Some(fault) = command_fault(run) {
                    return Err(Failure::execution(fault));
                }
                let by_step = Some(self.step + 1);
                let changes = self.overlay.take_changes().into_iter();
                self.changes.extend(changes.map(|change| PreviewedChange { by_step, ..change }));
                self.uncertain_since = Some("a command");
                Ok(Detail::Unknown { reason: format!("would run {}", named(&run.command)) })
            }
        }
    }
}

/// The result of a DONE that ends the session only if all steps before it succeed.
pub(super) fn unknown_end(what: &str) -> Detail {
    let reason =
        format!("would end the session if all before it succeeds, which depends on {what}");
    Detail::Unknown { reason }
}

/// The folder of a listing or search, in words.
fn folder_name(path: Option<&RelPath>) -> String {
    path.map_or("the workspace".to_owned(), |path| format!("'{path}'"))
}

impl Executor for PreviewExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        grant: Grant,
        _: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        Ok(match self.attempt(operation, grant) {
            Ok(detail) => detail,
            Err(failure) => self.unreadable(failure),
        })
    }

    fn unreadable(&self, failure: Failure) -> Detail {
        if let Some(what) = self.uncertain_since.filter(|_| failure.kind == FailureKind::Execution)
        {
            let reason = format!("depends on {what} (as it is now: {})", failure.reason);
            return Detail::Unknown { reason };
        }
        failure.into()
    }

    fn set_step(&mut self, step: usize) {
        self.step = step;
    }

    fn walk(&self) -> Result<Walk> {
        self.workspace.walk()
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        Ok(self.overlay.read_part(path, part))
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        Ok(self.overlay.path_facts(operation))
    }

    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        Ok(self.overlay.resolved_path(operation))
    }

    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        Ok(self.overlay.content_digest(operation))
    }

    fn inspect_interrupted(&mut self, _: &Effect, _: &Operation) -> Result<InterruptedStep> {
        Ok(InterruptedStep::NotDone)
    }
}
