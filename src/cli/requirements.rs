//! What kind of thing a command does: what has to be there before it, and what it may make.

use super::Command;

impl Command {
    /// Whether it is about sessions that are there already.
    pub(super) fn needs_sessions(&self) -> bool {
        match self {
            Self::Resume(_)
            | Self::Apply(_)
            | Self::Next(_)
            | Self::Approve(_)
            | Self::Deny(_)
            | Self::Say(_)
            | Self::Log(_)
            | Self::Diff(_)
            | Self::Undo(_)
            | Self::Redo(_)
            | Self::Show(_)
            | Self::Close(_)
            | Self::SystemdUnit(_) => true,
            Self::Status(status) => status.is_of_one(),
            _ => false,
        }
    }

    /// Whether it goes on with what has begun, and writes: where nothing has, it is to make nothing.
    pub(super) fn goes_on(&self) -> bool {
        matches!(
            self,
            Self::Resume(_)
                | Self::Apply(_)
                | Self::Next(_)
                | Self::Say(_)
                | Self::Undo(_)
                | Self::Redo(_)
                | Self::Close(_)
        )
    }

    /// Whether it tells of settings, and acts on none that open something.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Self::Doctor(_) | Self::Policy(_))
    }

    /// Whether it makes a project where there is none, so that the person should know which.
    pub(super) fn makes_project(&self) -> bool {
        matches!(self, Self::New(_) | Self::Resume(_) | Self::Watch(_) | Self::Run(_))
    }

    /// Whether it begins something in a project that may not be set up yet.
    pub(super) fn begins(&self) -> bool {
        match self {
            Self::New(_) | Self::Watch(_) => true,
            Self::Run(run) => !run.resumes(),
            _ => false,
        }
    }
}
