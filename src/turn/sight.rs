//! Edits by line numbers mean the lines that whoever sent them saw.

use std::borrow::Cow;

use crate::error::Result;
use crate::place::Place;
use crate::protocol::{Change, Operation, Outcome, Step, tags};
use crate::session::SeenFiles;

/// What is known of files while a reply is carried out.
pub(super) struct Sights {
    /// What whoever sent it saw, and what the steps so far made of that.
    before: SeenFiles,
    /// The same, with what is shown to them of these steps.
    after: SeenFiles,
    /// How many lines of files can be shown yet.
    room: usize,
}

impl Sights {
    pub(super) fn of(seen: &SeenFiles) -> Self {
        Self { before: seen.clone(), after: seen.clone(), room: tags::EXCERPT_LINES }
    }

    /// Takes in what a step came to.
    pub(super) fn take_in(&mut self, step: &Step, outcome: &Outcome) {
        self.before.take_in(step, outcome);
        self.after.take_in(step, outcome);
        let excerpt = outcome.detail.excerpt();
        let is_shown = excerpt.is_some_and(|excerpt| tags::has_room(excerpt, &mut self.room));
        // Events show no lines of what was edited.
        if is_shown && (outcome.asked.is_none() || !outcome.success()) {
            self.after.take_in_shown(outcome);
        }
    }

    /// What is known once they are told of it.
    pub(super) fn told(self) -> SeenFiles {
        self.after
    }

    /// The operation, and what was last seen of the lines that it is about where it goes by their
    /// numbers. That is no part of what a policy or the person judges: it can only have the edit refused.
    pub(super) fn with_seen<'a>(
        &self,
        operation: &'a Operation,
        place: &dyn Place,
    ) -> Result<Cow<'a, Operation>> {
        let Operation::Edit { change: Change::Lines { start, end, .. }, .. } = operation else {
            return Ok(Cow::Borrowed(operation));
        };
        if self.before.is_empty() {
            return Ok(Cow::Borrowed(operation));
        }
        let seen = |real| self.before.get(&real, (*start, *end)).cloned();
        let Some(last) = place.place_of(operation)?.and_then(seen) else {
            return Ok(Cow::Borrowed(operation));
        };
        let mut operation = operation.clone();
        if let Operation::Edit { change: Change::Lines { seen, .. }, .. } = &mut operation {
            *seen = Some(last);
        }
        Ok(Cow::Owned(operation))
    }
}
