//! What a command requires, and what it may create.

use super::Command;

impl Command {
    /// Whether it is about existing sessions.
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

    /// Whether it continues something and writes: in a folder without sessions it must not create anything.
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

    /// Whether it only reports on settings, and needs no consent.
    pub(super) fn only_looks(&self) -> bool {
        matches!(self, Self::Doctor(_) | Self::Policy(_))
    }

    /// Whether it can make a project, so that the person should know which.
    pub(super) fn makes_project(&self) -> bool {
        matches!(self, Self::New(_) | Self::Resume(_) | Self::Watch(_) | Self::Run(_))
    }

    /// Whether it can start in a project that is not set up yet.
    pub(super) fn begins(&self) -> bool {
        match self {
            Self::New(_) | Self::Watch(_) => true,
            Self::Run(run) => !run.resumes(),
            _ => false,
        }
    }
}
