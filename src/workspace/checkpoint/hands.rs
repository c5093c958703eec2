//! Whose hands changed what after the first command of a turn: those of commands, or those of the
//! operations between them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::What;

/// What operations touched after the first command.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// Where; with what they left there, once one more command was about to run.
    operations: BTreeMap<String, Option<Option<What>>>,
    /// What commands changed of it, too.
    commands: BTreeSet<String>,
}

impl Hands {
    /// Whether a command may have changed what stands there since an operation last did.
    pub(super) fn may_have_changed(&self, path: &str) -> bool {
        self.operations.get(path).is_none_or(Option::is_some)
    }

    /// What an operation left there before the last command, if one did.
    pub(super) fn left(&self, path: &str) -> Option<&Option<What>> {
        self.operations.get(path)?.as_ref()
    }

    /// An operation is about to change that; a command may have `changed` it before.
    pub(super) fn touch(&mut self, path: String, changed: bool) {
        if changed {
            self.commands.insert(path.clone());
        }
        self.operations.insert(path, None);
    }

    /// What operations touched since the last command.
    pub(super) fn untold(&self) -> Vec<String> {
        let untold = self.operations.iter().filter(|(_, left)| left.is_none());
        untold.map(|(path, _)| path.clone()).collect()
    }

    /// They have left that there.
    pub(super) fn leave(&mut self, path: String, what: Option<What>) {
        self.operations.insert(path, Some(what));
    }

    /// Whether a command changed what differs now from what it was before the first command.
    pub(super) fn is_by_command(&self, path: &str, now: Option<&What>) -> bool {
        match self.operations.get(path) {
            None => true,
            Some(left) => {
                self.commands.contains(path)
                    || left.as_ref().is_some_and(|left| left.as_ref() != now)
            }
        }
    }
}
