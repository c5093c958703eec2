//! Carries out operations on this machine ([`LocalExecutor`]) or on another one ([`Guest`]), or only previews them
//! ([`PreviewExecutor`], and [`OpaquePreview`] for a guest).

mod local;
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
    CommandOutput, Detail, Digest, Effect, Ending, Execution, Failure, Operation, Part, Reading,
    RelPath, ShellCommand, Warning, WarningKind,
};
use crate::runner::environment_fault;
use crate::workspace::Contents;
use crate::workspace::checkpoint::CheckpointNote;
use crate::workspace::overlay::Overlay;
use crate::workspace::protected::Snapshot;

pub use crate::workspace::PathFacts;
pub use local::{LocalExecutor, inspect_on_disk, list_or_search};
pub use preview::{FileState, OpaquePreview, PreviewExecutor, PreviewedChange};
pub use remote::{Guest, GuestTurn};

/// A record that must be stored before the executor continues.
#[derive(Debug, Clone, Copy)]
pub enum WriteAhead<'a> {
    /// The protected entries that commands of this turn must not change.
    Guard(&'a Snapshot),
    /// The content or state that is about to change.
    Noted(&'a CheckpointNote),
    /// The effects that are about to happen: those of a step and of those made together with it.
    Effects(&'a [Effect]),
}

/// The state of a step that was begun before deaddrop was stopped.
#[derive(Debug)]
pub enum InterruptedStep {
    /// It was carried out, with this result.
    Done(Box<Done>),
    /// It had no effect, and can be carried out.
    NotDone,
    /// It may have been carried out in part, and must not be repeated.
    Unknown,
}

/// Carries out operations.
pub trait Executor {
    /// Carries out one operation. `grant` is what the person approved for it. If the operation has an effect, calls
    /// `before` first; if that fails, nothing was done.
    fn perform(
        &mut self,
        operation: &Operation,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail>;
    /// Whether it can make file changes together.
    fn joins_changes(&self) -> bool {
        false
    }
    /// Plans a file change, to be made together with the changes planned before. If this returns false, the change must
    /// be performed alone, after the planned ones.
    fn join_change(&mut self, _operation: &Operation) -> bool {
        false
    }
    /// Makes the joined changes. Returns the results up to the first change that fails or must be planned again. The
    /// changes after that one are not made.
    fn perform_joined(
        &mut self,
        _before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Vec<Detail>> {
        Ok(Vec::new())
    }
    /// Takes the warnings of the last operation.
    fn take_warnings(&mut self) -> Vec<Warning> {
        Vec::new()
    }
    /// Ends the operations of a turn. Returns warnings about all of them.
    fn finish(&mut self) -> Result<Vec<Warning>> {
        Ok(Vec::new())
    }
    /// Sets the number of the next step, counted from 0.
    fn set_step(&mut self, _step: usize) {}
    /// The files as they would be, if they are on this machine.
    fn overlay(&self) -> Option<&Overlay<'_>> {
        None
    }
    /// Reads a text file for the model, or some of its lines.
    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        let nothing = Contents { path: path.clone(), bytes: Vec::new(), size: 0, lines: None };
        Ok(self.overlay().map_or(Ok(nothing), |overlay| overlay.read_part(path, part)))
    }
    /// Finds the lines of a definition in the part of a file that a read returns.
    fn find_definition(&self, path: &RelPath, name: &str) -> Result<Result<Part, Failure>> {
        let file = self.read(path, Part::default())?;
        Ok(file.and_then(|file| context::find_definition(&file, name)))
    }
    /// Facts about the path of a file operation before it is carried out; None for other operations.
    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        Ok(self.overlay().and_then(|overlay| overlay.path_facts(operation)))
    }
    /// The path of a file operation, or of a command's working directory, with links resolved. An approval applies to
    /// this path. None if there is no path, or it leads to the root or cannot be resolved.
    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        Ok(self.overlay().and_then(|overlay| overlay.resolved_path(operation)))
    }
    /// The digest of the content that a file operation would change; None for other operations, and if nothing exists.
    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        Ok(self.overlay().and_then(|overlay| overlay.content_digest(operation)))
    }
    /// Determines the state of a step that was begun before deaddrop was stopped, if the journal has no result.
    fn inspect_interrupted(&mut self, _: &Effect, _: &Operation) -> Result<InterruptedStep> {
        Ok(InterruptedStep::Unknown)
    }
    /// The result for a file that could not be read.
    fn unreadable(&self, failure: Failure) -> Detail {
        failure.into()
    }
    /// Whether the person wants to stop.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Whether an operation can change something.
pub fn has_effect(operation: &Operation) -> bool {
    match operation {
        Operation::Create { .. }
        | Operation::Edit { .. }
        | Operation::Delete { .. }
        | Operation::Move { .. }
        | Operation::Run(_) => true,
        Operation::Read { .. }
        | Operation::List { .. }
        | Operation::Search { .. }
        | Operation::Message { .. }
        | Operation::Done { .. } => false,
    }
}

/// The result of an operation that needs no executor.
fn immediate_result(operation: &Operation) -> Detail {
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
        _ => Failure::execution("this operation needs an executor").into(),
    }
}

/// The result of an operation whose outcome is unknown ([`InterruptedStep::Unknown`]).
pub fn unknown_result(operation: &Operation) -> Detail {
    let Operation::Run(run) = operation else {
        let of = operation.path().map(|path| format!(" of '{path}'")).unwrap_or_default();
        let reason = format!(
            "deaddrop or its guest was stopped during this operation, and the state{of} is unknown: check it before you go on"
        );
        return Failure::execution(reason).into();
    };
    lost_command(&run.command)
}

/// The result of a command whose end is unknown.
pub fn lost_command(command: &str) -> Detail {
    Detail::Ran(Execution {
        command: command.to_owned(),
        ending: Ending::Lost,
        output: CommandOutput::default(),
        duration: Duration::ZERO,
    })
}

/// The reason why a command can never be run. Otherwise it would be reported as a failure of the machine.
fn command_fault(run: &ShellCommand) -> Option<String> {
    if run.command.contains('\0') {
        return Some("the command contains a NUL character".to_owned());
    }
    environment_fault(&run.env)
}

/// A warning for a command that timed out and had requested more time than the policy allows.
fn timeout_warning(given: Duration, asked: Duration) -> Option<Warning> {
    (asked > given).then(|| {
        let text = format!(
            "it asked for a timeout of {} s; the policy gives it {} s at most",
            asked.as_secs_f64(),
            given.as_secs_f64()
        );
        Warning::new(WarningKind::Timeout, text)
    })
}

/// Phrases that programs write if they have no network, one per line.
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
