//! What a reply would do, without doing it: changes go to an overlay in memory. What a command
//! would change cannot be known, so after the first one whatever depends on files is uncertain.

use std::collections::BTreeMap;

use super::Place;
use crate::error::Result;
use crate::protocol::{Detail, Effect, Existing, Failure, FailureKind, Operation, RelPath};
use crate::text::named;
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, Workspace, changed};

/// A workspace seen through changes that were not made.
pub struct Preview<'a> {
    workspace: &'a Workspace,
    /// Files as they would be; None where one would be gone.
    overlay: BTreeMap<RelPath, Option<Vec<u8>>>,
    /// A command would have run before.
    after_command: bool,
}

/// A file that a reply would change.
pub struct Rewritten {
    /// Which.
    pub path: RelPath,
    /// What stands there now, if anything.
    pub before: Option<Vec<u8>>,
    /// What would stand there, if anything.
    pub after: Option<Vec<u8>>,
}

impl<'a> Preview<'a> {
    /// The workspace as it is.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, overlay: BTreeMap::new(), after_command: false }
    }

    /// The files that would be changed, by path.
    pub fn rewritten(self) -> Vec<Rewritten> {
        let read = |path: &RelPath| Some(self.workspace.read(path, u64::MAX).ok()?.bytes);
        self.overlay
            .into_iter()
            .map(|(path, after)| Rewritten { before: read(&path), path, after })
            .filter(|file| file.before != file.after)
            .collect()
    }

    /// Where `path` leads and what would stand there.
    fn at(&self, path: &RelPath) -> Result<(RelPath, Option<Vec<u8>>), Failure> {
        let (real, exists) = self.workspace.place_for(path)?;
        let content = match self.overlay.get(&real) {
            Some(content) => content.clone(),
            None if exists => Some(self.workspace.read(path, u64::MAX)?.bytes),
            None => None,
        };
        Ok((real, content))
    }

    fn existing(&self, path: &RelPath) -> Result<(RelPath, Vec<u8>), Failure> {
        match self.at(path)? {
            (real, Some(content)) => Ok((real, content)),
            (_, None) => Err(Failure::execution(format!("File '{path}' not found"))),
        }
    }

    fn attempt(&mut self, operation: &Operation) -> Result<Detail, Failure> {
        match operation {
            Operation::Create { path, content, existing } => {
                let (real, old) = self.at(path)?;
                if old.is_some() && *existing == Existing::Fail {
                    return Err(Failure::execution(format!("File '{path}' already exists")));
                }
                self.overlay.insert(real.clone(), Some(content.clone().into_bytes()));
                let bytes = content.len() as u64;
                Ok(Detail::Created { path: real, bytes, replaced: old.is_some() })
            }
            Operation::Edit { path, change } => {
                let (real, old) = self.existing(path)?;
                let (new, detail) = changed(&real, &old, change)?;
                self.overlay.insert(real, Some(new));
                Ok(detail)
            }
            Operation::Delete { path } => {
                // A link is deleted itself; whatever else must be there.
                let real = match self.workspace.find(path) {
                    Ok(real) if self.overlay.get(&real) != Some(&None) => real,
                    _ => self.existing(path)?.0,
                };
                self.overlay.insert(real.clone(), None);
                Ok(Detail::Deleted { path: real })
            }
            Operation::Read { path } => Ok(Detail::ReadLater { path: path.clone() }),
            Operation::Run { command } => {
                self.after_command = true;
                Ok(Detail::Unknown { reason: format!("would run {}", named(command)) })
            }
            Operation::Message { text } => Ok(Detail::Shown { text: text.clone() }),
            Operation::Done { summary } => Ok(Detail::Completed { summary: summary.clone() }),
        }
    }
}

impl Place for Preview<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        _: &mut dyn FnMut(&Effect) -> Result<()>,
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
        let (real, exists) = self.workspace.place_for(path)?;
        match self.overlay.get(&real) {
            Some(Some(bytes)) => {
                let size = bytes.len() as u64;
                Ok(Contents { path: real, bytes: bytes.clone(), size })
            }
            None if exists => self.workspace.read_text(path),
            _ => Err(Failure::execution(format!("File '{path}' not found"))),
        }
    }
}
