//! Whose hands changed what after the first command of a turn: those of commands, or those of the
//! operations between them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::What;

/// What operations touched after the first command.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// Where, and what they left there.
    operations: BTreeMap<String, Left>,
    /// What commands changed of it, too.
    commands: BTreeSet<String>,
}

/// What operations left somewhere.
#[derive(Debug)]
enum Left {
    /// No command has run since: whatever stands there.
    Standing,
    /// This, before the last command ran.
    Was(Option<What>),
}

impl Hands {
    /// Whether a command may have changed what stands there since an operation last did.
    pub(super) fn may_have_changed(&self, path: &str) -> bool {
        !matches!(self.operations.get(path), Some(Left::Standing))
    }

    /// What an operation left there before the last command, if one did.
    pub(super) fn left(&self, path: &str) -> Option<&Option<What>> {
        match self.operations.get(path)? {
            Left::Standing => None,
            Left::Was(what) => Some(what),
        }
    }

    /// An operation is about to change that; a command may have `changed` it before.
    pub(super) fn touch(&mut self, path: String, changed: bool) {
        if changed {
            self.commands.insert(path.clone());
        }
        self.operations.insert(path, Left::Standing);
    }

    /// What operations touched since the last command.
    pub(super) fn untold(&self) -> Vec<String> {
        let untold = self.operations.iter().filter(|(_, left)| matches!(left, Left::Standing));
        untold.map(|(path, _)| path.clone()).collect()
    }

    /// They have left that there.
    pub(super) fn leave(&mut self, path: String, what: Option<What>) {
        self.operations.insert(path, Left::Was(what));
    }

    /// Whether a command changed what differs now from what it was before the first command.
    pub(super) fn is_by_command(&self, path: &str, now: Option<&What>) -> bool {
        self.commands.contains(path)
            || match self.operations.get(path) {
                None => true,
                Some(Left::Standing) => false,
                Some(Left::Was(what)) => what.as_ref() != now,
            }
    }
}
