//! Previews a reply: changes are made to an overlay in memory. The changes of a command are unknown, so all results
//! that depend on files are uncertain after the first one. A guest is not contacted, so its files are unknown.

use super::{Executor, WriteAhead, command_fault, immediate_result};
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::{Change, Detail, Failure, FailureKind, Operation, Part, Reading, RelPath};
use crate::text::named;
use crate::workspace::overlay::Overlay;
use crate::workspace::protected::ProtectedNames;
use crate::workspace::{PathFacts, READ_LIMIT, READ_ROOM, Workspace, check_pattern};

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
                        Ok(unknown(&format!("edit {lines} of '{path}', which depends on {what}")))
                    }
                    _ => Ok(detail),
                }
            }
            Operation::Delete { path } => self.overlay.delete(path, grant.protected),
            Operation::Done { if_ok: true, .. } if self.uncertain_since.is_some() => {
                Ok(unknown_end(self.uncertain_since.unwrap_or_default()))
            }
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let contents = self.overlay.read(path, self.read_limit.saturating_add(1))?;
                contents.whole(*encoding, self.read_limit, &mut self.read_room)
            }
            Operation::List { path } | Operation::Search { path, .. } => {
                check(operation)?;
                path.as_ref().map_or(Ok(()), |path| self.overlay.require_exists(path))?;
                Ok(unknown(&words(operation)))
            }
            Operation::Move { path, to } => {
                match self.overlay.rename(path, to, grant.protected)? {
                    Some(detail) => Ok(detail),
                    None => {
                        // The overlay does not contain the moved entry.
                        self.uncertain_since.get_or_insert("an earlier move");
                        Ok(unknown(&words(operation)))
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
                check(operation)?;
                let by_step = Some(self.step + 1);
                let changes = self.overlay.take_changes().into_iter();
                self.changes.extend(changes.map(|change| PreviewedChange { by_step, ..change }));
                self.uncertain_since = Some("a command");
                Ok(unknown(&words(operation)))
            }
            _ => Ok(immediate_result(operation)),
        }
    }
}

/// Fails if an operation can never be carried out.
fn check(operation: &Operation) -> Result<(), Failure> {
    match operation {
        Operation::Run(run) => command_fault(run).map_or(Ok(()), |f| Err(Failure::execution(f))),
        Operation::Search { pattern, .. } => check_pattern(pattern),
        _ => Ok(()),
    }
}

/// Describes an operation as a verb phrase.
fn words(operation: &Operation) -> String {
    let folder = |path: &Option<RelPath>| match path {
        Some(path) => format!("'{path}'"),
        None => "the workspace".to_owned(),
    };
    match operation {
        Operation::Create { path, .. } => format!("write '{path}'"),
        Operation::Edit { path, .. } => format!("edit '{path}'"),
        Operation::Delete { path } => format!("delete '{path}'"),
        Operation::Read { path, .. } => format!("read '{path}'"),
        Operation::Move { path, to } => format!("move '{path}' to '{to}'"),
        Operation::List { path } => format!("list {}", folder(path)),
        Operation::Search { pattern, path } => {
            format!("search {} for {}", folder(path), named(pattern))
        }
        Operation::Run(run) => format!("run {}", named(&run.command)),
        Operation::Message { .. } => "show a message".to_owned(),
        Operation::Done { .. } => "end the session".to_owned(),
    }
}

/// The result of an operation that would do `what`, with an unknown outcome.
fn unknown(what: &str) -> Detail {
    Detail::Unknown { reason: format!("would {what}") }
}

/// The result of a DONE that ends the session only if all steps before it succeed.
fn unknown_end(what: &str) -> Detail {
    unknown(&format!("end the session if all before it succeeds, which depends on {what}"))
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

    fn overlay(&self) -> Option<&Overlay<'_>> {
        Some(&self.overlay)
    }
}

/// Previews operations of a guest without asking it, from the reply alone.
pub struct OpaquePreview {
    protected: ProtectedNames,
    /// Whether a command would have run before.
    after_command: bool,
}

impl OpaquePreview {
    /// Makes a preview with these protected names.
    pub fn new(protected: &[String]) -> Self {
        Self { protected: ProtectedNames::new(protected), after_command: false }
    }
}

impl Executor for OpaquePreview {
    fn perform(
        &mut self,
        operation: &Operation,
        _: Grant,
        _: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        if let Err(failure) = check(operation) {
            return Ok(failure.into());
        }
        Ok(match operation {
            Operation::Done { if_ok: true, .. } if self.after_command => unknown_end("a command"),
            Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { reading: Reading::Later(_) | Reading::Definition(_), .. } => {
                immediate_result(operation)
            }
            _ => {
                self.after_command |= matches!(operation, Operation::Run(_));
                let what = words(operation);
                unknown(&format!("{what} in the guest, which a preview does not ask"))
            }
        })
    }

    fn find_definition(&self, _: &RelPath, _: &str) -> Result<Result<Part, Failure>> {
        Ok(Ok(Part::default()))
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        let Some(path) = operation.path() else { return Ok(None) };
        let to = match operation {
            Operation::Move { to, .. } => Some(to),
            _ => None,
        };
        let protected = to.into_iter().chain([path]).any(|p| self.protected.name_in(p).is_some());
        Ok(Some(PathFacts { protected, ..PathFacts::default() }))
    }
}
