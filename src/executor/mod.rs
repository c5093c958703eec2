//! Carries out operations: on this machine ([`LocalExecutor`]), on another one ([`Guest`]), or not at all, to
//! tell what they would do ([`PreviewExecutor`], and [`OpaquePreview`] for a guest).

mod local;
mod opaque;
mod preview;
mod remote;
#[cfg(all(test, unix))]
mod tests;

use std::time::Duration;

use crate::context;
use crate::error::Result;
use crate::policy::Grant;
use crate::protocol::jsonrpc::Done;
use crate::protocol::{
    Detail, Digest, Effect, Ending, Execution, Failure, Operation, Output, Part, Reading, RelPath,
    ShellCommand, Warning, WarningKind,
};
use crate::runner::environment_fault;
use crate::workspace::Contents;
use crate::workspace::checkpoint::CheckpointNote;
use crate::workspace::protected::Snapshot;
use crate::workspace::walk::Walk;

pub use crate::workspace::PathFacts;
pub use local::{LocalExecutor, find, left_on_disk};
pub use opaque::OpaquePreview;
pub use preview::{FileState, PreviewExecutor, PreviewedChange};
pub use remote::{Guest, Terms};

/// What is told of before it is built upon.
#[derive(Debug, Clone, Copy)]
pub enum WriteAhead<'a> {
    /// Commands will run in this turn, and this is what they must leave as it is.
    Guard(&'a Snapshot),
    /// This is kept of what is about to change.
    Noted(&'a CheckpointNote),
    /// These are about to happen: the effects of a step and of those that follow it.
    Effects(&'a [Effect]),
}

/// What became of something that was begun.
#[derive(Debug)]
pub enum Left {
    /// It came to this, with what is to be told beside it.
    Done(Box<Done>),
    /// Nothing: it is still to be done.
    Undone,
    /// Nobody knows: it may have been done in part, and is not done again.
    Lost,
}

/// Something that can carry out operations.
pub trait Executor {
    /// Carries out one operation, for which the person's approval opens that. Where it has an
    /// effect, `before` is told of it first; if that fails, nothing was done.
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail>;
    /// Whether it makes changes of files together.
    fn joins_changes(&self) -> bool {
        false
    }
    /// Plans a change of a file, to be made together with those that were planned before it. False where it cannot
    /// be: it is performed by itself then, when they are made.
    fn join(&mut self, _operation: &Operation) -> bool {
        false
    }
    /// Makes the changes that have joined. Gives what came of the first of them, up to one that fails or is to be
    /// planned anew; the others are not made.
    fn perform_joined(
        &mut self,
        _before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Vec<Detail>> {
        Ok(Vec::new())
    }
    /// What was noticed beside the last operation.
    fn noticed(&mut self) -> Vec<Warning> {
        Vec::new()
    }
    /// All operations of a turn are done. Returns what is noticed only now.
    fn finish(&mut self) -> Result<Vec<Warning>> {
        Ok(Vec::new())
    }
    /// The step of this number, counted from 0, comes next.
    fn at(&mut self, _step: usize) {}
    /// Lists the files.
    fn walk(&self) -> Result<Walk>;
    /// Reads a text for the model, its beginning, or some of its lines.
    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>>;
    /// Finds the lines of a definition in a file, within the beginning of it that a read gives.
    fn find_definition(&self, path: &RelPath, name: &str) -> Result<Result<Part, Failure>> {
        let file = self.read(path, Part::default())?;
        Ok(file.and_then(|file| context::find_definition(&file, name)))
    }
    /// What can be told of the path of a file operation, before anything is done there; None for
    /// other operations.
    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>>;
    /// Where the path of a file operation leads, or that of the folder of a command, links resolved:
    /// what an approval means by it. None where there is no path, it leads to the root itself, or
    /// out of reach.
    fn resolved_path(&self, _operation: &Operation) -> Result<Option<RelPath>> {
        Ok(None)
    }
    /// The digest of what stands where a file operation would change something; None for other
    /// operations, and where nothing stands.
    fn content_digest(&self, _operation: &Operation) -> Result<Option<Digest>> {
        Ok(None)
    }
    /// What became of something that was begun before deaddrop was stopped, and of which nothing else
    /// is known.
    fn left(&mut self, effect: &Effect, operation: &Operation) -> Result<Left>;
    /// What is told of a file that could not be read.
    fn unreadable(&self, failure: Failure) -> Detail {
        failure.into()
    }
    /// Whether the person wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// The result of an operation that needs no executor.
fn told(operation: &Operation) -> Detail {
    match operation {
        Operation::Message { text } => Detail::Shown { text: text.clone() },
        Operation::Done { summary, .. } => Detail::Completed { summary: summary.clone() },
        Operation::Read { path, reading } => {
            let part = match reading {
                Reading::Later(part) => *part,
                Reading::Now(_) | Reading::Definition(_) => Part::default(),
            };
            Detail::ReadLater { path: path.clone(), part }
        }
        _ => Failure::execution("nothing can be told of it").into(),
    }
}

/// What an operation came to of which nobody knows ([`Left::Lost`]).
pub fn lost(operation: &Operation) -> Detail {
    let Operation::Run(run) = operation else {
        let what = operation.path().map(|path| format!(" of '{path}'")).unwrap_or_default();
        let told = format!(
            "deaddrop, or its guest, was stopped meanwhile, and what became{what} is not known: look at it before you go on"
        );
        return Failure::execution(told).into();
    };
    lost_command(&run.command)
}

/// What a command came to of which nobody knows how it ended.
pub fn lost_command(command: &str) -> Detail {
    Detail::Ran(Execution {
        command: command.to_owned(),
        ending: Ending::Lost,
        output: Output::default(),
        duration: Duration::ZERO,
    })
}

/// Why no command can be run like this, whatever it is: not the machine's failure, as which it would
/// come back.
fn fault_of(run: &ShellCommand) -> Option<String> {
    if run.command.contains('\0') {
        return Some("the command holds a NUL character".to_owned());
    }
    environment_fault(&run.env)
}

/// Says that a command which was ended had asked for more time than it was given.
fn shorter_than_asked(given: Duration, asked: Duration) -> Option<Warning> {
    (asked > given).then(|| {
        let told = format!(
            "it asked for a timeout of {} s; the policy gives it {} s at most",
            asked.as_secs_f64(),
            given.as_secs_f64()
        );
        Warning::new(WarningKind::Timeout, told)
    })
}

/// What programs write where they have no network, a phrase a line.
static NO_NETWORK: &str = include_str!("data/no_network.txt");

/// Whether a command failed, and wrote that it had no network.
fn missed_network(execution: &Execution) -> bool {
    let says_so = |text: &str| {
        let text = text.to_lowercase();
        NO_NETWORK.lines().any(|phrase| text.contains(&phrase.to_lowercase()))
    };
    let captures = || execution.output.captures().into_iter();
    execution.ending != Ending::Exited(0)
        && captures().any(|it| says_so(&it.head) || says_so(&it.tail))
}
