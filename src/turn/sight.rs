//! Edits by line numbers mean the lines that whoever sent them saw.

use std::borrow::Cow;

use crate::error::Result;
use crate::place::Place;
use crate::protocol::{Change, Operation};
use crate::session::SeenFiles;

/// The operation, and what was last seen of its file where it goes by the numbers of lines. That is no
/// part of what a policy or the person judges: it can only have the edit refused.
pub(super) fn with_seen<'a>(
    operation: &'a Operation,
    files: &SeenFiles,
    place: &dyn Place,
) -> Result<Cow<'a, Operation>> {
    let by_lines = matches!(operation, Operation::Edit { change: Change::Lines { .. }, .. });
    if !by_lines || files.is_empty() {
        return Ok(Cow::Borrowed(operation));
    }
    let Some(last) = place.place_of(operation)?.and_then(|real| files.get(&real).cloned()) else {
        return Ok(Cow::Borrowed(operation));
    };
    let mut operation = operation.clone();
    if let Operation::Edit { change: Change::Lines { seen, .. }, .. } = &mut operation {
        *seen = Some(last);
    }
    Ok(Cow::Owned(operation))
}
