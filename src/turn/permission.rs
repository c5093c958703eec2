//! Whether an operation may be tried: by the policy, and by what the person decided about it.

use super::{Asking, Course};
use crate::error::Result;
use crate::place::Place;
use crate::policy::{Ask, Decision, Denial, Opens};
use crate::protocol::{Digest, Failure, FailureKind, Operation, Step};
use crate::session::{Question, Verdict};
use crate::text::named;

/// What came of seeking it.
pub(super) enum Sought {
    /// It may, and that is open to it; with what is to be told of it.
    Given(Opens, Option<String>),
    /// It may not.
    Refused(Failure),
    /// The person is asked first.
    Asked(Box<Question>),
}

/// Seeks it for step `n`.
pub(super) fn seek(
    course: &Course,
    n: usize,
    step: &Step,
    operation: &Operation,
    place: &dyn Place,
) -> Result<Sought> {
    let verdict = course.verdict.filter(|verdict| verdict.question.step == n);
    if let Some(verdict) = verdict.filter(|verdict| !verdict.approved) {
        return Ok(Sought::Refused(denied_by_person(verdict, operation)));
    }
    let ask = match (course.judge)(operation, place)? {
        Decision::Allow => return Ok(Sought::Given(Opens::default(), None)),
        Decision::Deny(denial) => return Ok(Sought::Refused(denied(denial))),
        Decision::Ask(ask) => ask,
    };
    let digest = binding(operation, place)?;
    let name = match (course.asking, verdict) {
        (Asking::Foretells, _) => {
            let told = format!("the user is asked before this: {}", ask.reason);
            return Ok(Sought::Given(ask.opens, Some(told)));
        }
        (_, Some(Verdict { question, .. }))
            if question.digest == digest && question.ask.opens == ask.opens =>
        {
            return Ok(Sought::Given(ask.opens, None));
        }
        (Asking::Stops(name), _) => name,
    };
    // What was approved stands no more as it stood then.
    let reason = match verdict {
        Some(_) => format!("{CHANGED}: {}", ask.reason),
        None => ask.reason,
    };
    Ok(Sought::Asked(Box::new(Question {
        step: n,
        id: name(n),
        kind: step.kind(),
        ask: Ask { reason, ..ask },
        digest,
        at: (course.now)(),
    })))
}

/// Said before the reason where an approval came too late.
const CHANGED: &str = "It has changed since it was approved";

/// What an approval is bound to: the operation, and what it would change as it stands now.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn binding(operation: &Operation, place: &dyn Place) -> Result<Digest> {
    let mut bytes = serde_json::to_vec(operation).expect("texts and numbers become JSON");
    bytes.push(0);
    // Which file or folder that is: links may lead elsewhere by then.
    if let Some(real) = place.place_of(operation)? {
        bytes.extend_from_slice(real.as_str().as_bytes());
    }
    bytes.push(0);
    if let Some(standing) = place.standing(operation)? {
        bytes.extend_from_slice(standing.as_str().as_bytes());
    }
    Ok(Digest::of(&bytes))
}

fn denied(denial: Denial) -> Failure {
    let Denial { reason, suggestion, .. } = denial;
    Failure { suggestion, ..Failure::new(FailureKind::Denied, reason) }
}

fn denied_by_person(verdict: &Verdict, operation: &Operation) -> Failure {
    let what = match (operation, operation.path()) {
        (Operation::Run(run), _) => named(&run.command),
        (_, Some(path)) => format!("'{path}'"),
        _ => "it".to_owned(),
    };
    let why = verdict.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    Failure::new(FailureKind::Denied, format!("The user denied {what}{why}"))
}
