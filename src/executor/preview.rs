//! What a reply would do, without doing it: changes go to an overlay in memory. What a command
//! would change cannot be known, so after the first one whatever depends on files is uncertain.

use super::{Executor, Left, WriteAhead, fault_of, told};
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

/// A workspace seen through changes that were not made.
pub struct PreviewExecutor<'a> {
    workspace: &'a Workspace,
    overlay: Overlay<'a>,
    /// What would have been done before of which nobody knows what it leaves behind.
    after: Option<&'static str>,
    /// The step that is performed, counted from 0.
    step: usize,
    /// The files that would have been changed when a command would run.
    changes: Vec<PreviewedChange>,
    /// As for [`LocalExecutor`](super::LocalExecutor).
    pub read_limit: u64,
    /// As for [`LocalExecutor`](super::LocalExecutor).
    pub read_room: u64,
}

impl<'a> PreviewExecutor<'a> {
    /// The workspace as it is.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self {
            workspace,
            overlay: Overlay::new(workspace),
            after: None,
            step: 0,
            changes: Vec::new(),
            read_limit: READ_LIMIT,
            read_room: READ_ROOM,
        }
    }

    /// The files that would be changed: before each command, which may use them as they are then, and at the end.
    pub fn rewritten(mut self) -> Vec<PreviewedChange> {
        self.changes.append(&mut self.overlay.take_changes());
        self.changes
    }

    /// Fails where nothing would stand.
    fn stands(&self, path: Option<&RelPath>) -> Result<(), Failure> {
        path.map_or(Ok(()), |path| self.overlay.stands(path))
    }

    fn attempt(&mut self, operation: &Operation, opens: Grant) -> Result<Detail, Failure> {
        match operation {
            Operation::Create { path, content, existing } => {
                self.overlay.create(path, content.as_bytes(), *existing, opens.protected)
            }
            Operation::Edit { path, change } => {
                let detail = self.overlay.edit(path, change, opens.protected)?;
                match (self.after, change) {
                    // Other lines may stand there then.
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
            Operation::Delete { path } => self.overlay.delete(path, opens.protected),
            Operation::Done { if_ok: true, .. } if self.after.is_some() => {
                Ok(unknown_end(self.after.unwrap_or_default()))
            }
            Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { reading: Reading::Later(_) | Reading::Definition(_), .. } => {
                Ok(told(operation))
            }
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let contents = self.overlay.read(path, self.read_limit.saturating_add(1))?;
                contents.whole(*encoding, self.read_limit, &mut self.read_room)
            }
            Operation::List { path } => {
                self.stands(path.as_ref())?;
                Ok(Detail::Unknown { reason: format!("would list {}", below(path.as_ref())) })
            }
            Operation::Search { pattern, path } => {
                check_pattern(pattern)?;
                self.stands(path.as_ref())?;
                let reason =
                    format!("would search {} for {}", below(path.as_ref()), named(pattern));
                Ok(Detail::Unknown { reason })
            }
            Operation::Move { path, to } => {
                match self.overlay.rename(path, to, opens.protected)? {
                    Some(detail) => Ok(detail),
                    None => {
                        // What would stand there then is not held in memory.
                        self.after.get_or_insert("what is moved before");
                        let reason = format!("would move '{path}' to '{to}'");
                        Ok(Detail::Unknown { reason })
                    }
                }
            }
            Operation::Run(run) => {
                // What is not there may be made by a command before.
                if let Some(Err(failure)) = run.cwd.as_ref().map(|cwd| self.workspace.folder(cwd))
                    && failure.kind == FailureKind::Rejected
                {
                    return Err(failure);
                }
                if let Some(fault) = fault_of(run) {
                    return Err(Failure::execution(fault));
                }
                let by_step = Some(self.step + 1);
                let changes = self.overlay.take_changes().into_iter();
                self.changes.extend(changes.map(|change| PreviewedChange { by_step, ..change }));
                self.after = Some("a command");
                Ok(Detail::Unknown { reason: format!("would run {}", named(&run.command)) })
            }
        }
    }
}

/// What a session comes to that ends only where all before succeeds, which nobody knows yet.
pub(super) fn unknown_end(what: &str) -> Detail {
    let reason =
        format!("would end the session if all before it succeeds, which depends on {what}");
    Detail::Unknown { reason }
}

/// Where would be looked, in words.
fn below(path: Option<&RelPath>) -> String {
    path.map_or("the workspace".to_owned(), |path| format!("'{path}'"))
}

impl Executor for PreviewExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Grant,
        _: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        Ok(match self.attempt(operation, opens) {
            Ok(detail) => detail,
            Err(failure) => self.unreadable(failure),
        })
    }

    fn unreadable(&self, failure: Failure) -> Detail {
        if let Some(what) = self.after.filter(|_| failure.kind == FailureKind::Execution) {
            let reason = format!("depends on {what} (as it is now: {})", failure.reason);
            return Detail::Unknown { reason };
        }
        failure.into()
    }

    fn at(&mut self, step: usize) {
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

    fn left(&mut self, _: &Effect, _: &Operation) -> Result<Left> {
        Ok(Left::Undone)
    }
}
