//! What is told beside an outcome that the place of an operation does not know: what it means for the
//! reply.

use crate::protocol::{Detail, Mistake, Operation, Outcome, Warning, WarningSort, elision, tags};

/// What is told of a new file that holds what an outbox shows in the place of a secret.
pub(super) fn stand_in(operation: &Operation, detail: &Detail) -> Option<Warning> {
    let (Operation::Create { content, .. }, Detail::Created { path, replaced: false, .. }) =
        (operation, detail)
    else {
        return None;
    };
    let line = elision::stand_in(content.as_bytes())?;
    let told = format!(
        "line {line} of '{path}' holds what an outbox shows in the place of a secret ([withheld: ...]): the file has these words now, and not the secret"
    );
    Some(Warning::new(WarningSort::StandIn, told))
}

/// Says with lines that a file does not have where in the reply they were asked for. Events name
/// their operation otherwise.
pub(super) fn name_range(operation: &Operation, outcome: &mut Outcome) {
    if let (Detail::Failed(failure), None) = (&mut outcome.detail, &outcome.asked)
        && failure.mistake == Some(Mistake::NoSuchLines)
    {
        let asked = tags::range_asked(operation, outcome.line);
        failure.reason.push_str(&asked.unwrap_or_default());
    }
}
