//! Previews a reply without asking the guest, from the reply alone.

use super::preview::unknown_end;
use super::{Executor, InterruptedStep, WriteAhead, command_fault, immediate_result};
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::{Detail, Effect, Failure, Operation, Part, Reading, RelPath};
use crate::text::named;
use crate::workspace::protected::ProtectedNames;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, PathFacts, check_pattern};

/// Previews operations of a guest without asking it.
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
        let what = match operation {
            Operation::Run(run) => match command_fault(run) {
                Some(fault) => return Ok(Failure::execution(fault).into()),
                None => {
                    self.after_command = true;
                    format!("run {}", named(&run.command))
                }
            },
            Operation::Done { if_ok: true, .. } if self.after_command => {
                return Ok(unknown_end("a command"));
            }
            Operation::Create { path, .. } => format!("write '{path}'"),
            Operation::Edit { path, .. } => format!("edit '{path}'"),
            Operation::Delete { path } => format!("delete '{path}'"),
            Operation::Read { path, reading: Reading::Now(_) } => format!("read '{path}'"),
            Operation::Move { path, to } => format!("move '{path}' to '{to}'"),
            Operation::List { .. } => "list files".to_owned(),
            Operation::Search { pattern, .. } => match check_pattern(pattern) {
                Err(failure) => return Ok(failure.into()),
                Ok(()) => format!("search for {}", named(pattern)),
            },
            Operation::Message { .. } | Operation::Read { .. } | Operation::Done { .. } => {
                return Ok(immediate_result(operation));
            }
        };
        let reason = format!("would {what} in the guest, which a preview does not ask");
        Ok(Detail::Unknown { reason })
    }

    fn walk(&self) -> Result<Walk> {
        Ok(Walk::default())
    }

    fn read(&self, path: &RelPath, _: Part) -> Result<Result<Contents, Failure>> {
        Ok(Ok(Contents { path: path.clone(), bytes: Vec::new(), size: 0, lines: None }))
    }

    fn find_definition(&self, _: &RelPath, _: &str) -> Result<Result<Part, Failure>> {
        Ok(Ok(Part::default()))
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        Ok(operation.path().map(|path| {
            let to = match operation {
                Operation::Move { to, .. } => Some(to),
                _ => None,
            };
            let is_protected = |path: &RelPath| self.protected.name_in(path).is_some();
            let protected = is_protected(path) || to.is_some_and(is_protected);
            PathFacts { protected, ..PathFacts::default() }
        }))
    }

    fn inspect_interrupted(&mut self, _: &Effect, _: &Operation) -> Result<InterruptedStep> {
        Ok(InterruptedStep::Unknown)
    }
}
