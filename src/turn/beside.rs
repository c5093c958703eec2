//! What is told beside an outcome that the place of an operation does not know: what it means for the
//! reply.

use crate::protocol::{
    Detail, FailureKind, Mistake, Operation, Outcome, Step, Warning, WarningSort, elision, tags,
};

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

/// Says with what failed, and does not tell of the reply itself, where in the reply it was asked for: the
/// reason is what the LLM corrects it by. Events name their operation otherwise.
pub(super) fn name_tag(operation: &Operation, step: &Step, outcome: &mut Outcome) {
    let (Detail::Failed(failure), None) = (&mut outcome.detail, &outcome.asked) else { return };
    let as_sent = step.as_sent.as_deref();
    let range = match failure.mistake {
        Some(Mistake::NoSuchLines) => tags::range_asked(operation, outcome.line, as_sent),
        _ => None,
    };
    let is_corrected = matches!(
        failure.kind,
        FailureKind::Execution | FailureKind::Rejected | FailureKind::Denied
    );
    let tag = || is_corrected.then(|| tags::asked_at(operation, outcome.line, as_sent));
    failure.reason.push_str(&range.or_else(tag).unwrap_or_default());
}
