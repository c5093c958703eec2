//! What is known of a turn that deaddrop was stopped in: which steps are done, and which may not be
//! done again.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::place::{Left, Place, lost};
use crate::protocol::{Asks, Detail, Outcome, Warning};
use crate::session::record::Unfinished;

/// The outcomes of the steps that need not, or must not, be tried again, by step.
///
/// A step with a result is done. Of one that was begun and has none, the place may know what became
/// of it; a command of which nobody knows may have run in part, and is never run again.
pub fn known(turn: &Unfinished, place: &mut dyn Place) -> Result<BTreeMap<usize, Outcome>> {
    let mut known = turn.begin.known();
    known.extend(turn.results.clone());
    for (n, effect) in &turn.intents {
        let Some(step) = turn.begin.steps().get(*n) else { continue };
        let Asks::Operation(operation) = &step.asks else { continue };
        if known.contains_key(n) {
            continue;
        }
        let (detail, warnings): (Detail, Vec<Warning>) = match place.left(effect, operation)? {
            Left::Done(detail, warnings) => (*detail, warnings),
            Left::Lost => (lost(operation), Vec::new()),
            Left::Undone => continue,
        };
        let mut outcome = Outcome::of(step, detail);
        outcome.warnings.extend(warnings);
        known.insert(*n, outcome);
    }
    Ok(known)
}
