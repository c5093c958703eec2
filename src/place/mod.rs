//! Where operations happen: in the workspace here, or only in the mind ([`Preview`]).

mod here;
mod preview;

use crate::error::Result;
use crate::policy::Opens;
use crate::protocol::{Detail, Digest, Effect, Failure, Operation, RelPath, ShellCommand, Warning};
use crate::runner::environment_fault;
use crate::workspace::Contents;
use crate::workspace::guard::Snapshot;
use crate::workspace::walk::Walk;

pub use crate::workspace::Look;
pub use here::Here;
pub use preview::{Preview, Rewritten, Standing};

/// What is told of before it is built upon.
#[derive(Debug, Clone, Copy)]
pub enum Coming<'a> {
    /// Commands will run in this turn, and this is what they must leave as it is.
    Guard(&'a Snapshot),
    /// This is about to happen.
    Effect(&'a Effect),
}

/// Something that can carry out operations.
pub trait Place {
    /// Carries out one operation, for which the person's approval opens that. Where it has an
    /// effect, `before` is told of it first; if that fails, nothing was done.
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Opens,
        before: &mut dyn FnMut(Coming<'_>) -> Result<()>,
    ) -> Result<Detail>;
    /// What was noticed beside the last operation.
    fn noticed(&mut self) -> Vec<Warning> {
        Vec::new()
    }
    /// All operations of a turn are done. Returns what is noticed only now.
    fn finish(&mut self) -> Result<Vec<Warning>> {
        Ok(Vec::new())
    }
    /// Lists the files.
    fn walk(&self) -> Result<Walk>;
    /// Reads a text for the LLM, or its beginning.
    fn read(&self, path: &RelPath) -> Result<Contents, Failure>;
    /// What can be told of the path of a file operation, before anything is done there; None for
    /// other operations.
    fn look(&self, operation: &Operation) -> Option<Look>;
    /// Where the path of a file operation leads, or that of the folder of a command, links resolved:
    /// what an approval means by it. None where there is no path, it leads to the root itself, or
    /// out of reach.
    fn place_of(&self, operation: &Operation) -> Option<RelPath>;
    /// The digest of what stands where a file operation would change something; None for other
    /// operations, and where nothing stands.
    fn standing(&self, operation: &Operation) -> Option<Digest>;
    /// What is told of a file that could not be read.
    fn unreadable(&self, failure: Failure) -> Detail {
        failure.into()
    }
    /// Whether the person wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Why no command can be run like this, whatever it is: not the machine's failure, as which it would
/// come back.
fn fault_of(run: &ShellCommand) -> Option<String> {
    if run.command.contains('\0') {
        return Some("the command holds a NUL character".to_owned());
    }
    environment_fault(&run.env)
}
