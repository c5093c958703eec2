//! Files that the next outbox is to show: which of them can be shown.

use std::collections::{BTreeMap, HashMap};

use super::beside::name_tag;
use super::{Ledger, Observer};
use crate::error::Result;
use crate::place::Place;
use crate::protocol::{Detail, Failure, Kind, Operation, Outcome, Part, Reading, RelPath, Step};

/// So many bytes of files one outbox shows at most.
const SHOWN_LIMIT: u64 = 1_000_000;

/// A session that is over has no next outbox to show a file in.
pub(super) fn not_shown(path: &RelPath) -> Detail {
    Failure::execution(format!("'{path}' is not shown: [DONE] ended the session")).into()
}

/// Finds out which of the files to be shown can be.
pub(super) fn judge_reads(
    outcomes: &mut [Outcome],
    (steps, known): (&[Step], &BTreeMap<usize, Outcome>),
    place: &dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
    plainly_over: bool,
) -> Result<()> {
    let mut judged: HashMap<(RelPath, Part), Result<(), Failure>> = HashMap::new();
    let mut room = SHOWN_LIMIT;
    let is_over = outcomes.iter().any(|o| matches!(o.detail, Detail::Completed { .. }));
    // That all went well was the condition for the end: it was looked at then.
    let on_condition = outcomes.iter().any(|o| o.kind == Kind::Done && is_over) && !plainly_over;
    for (n, outcome) in outcomes.iter_mut().enumerate() {
        let Detail::ReadLater { path, part } = &outcome.detail else { continue };
        let asked = (path.clone(), *part);
        if known.contains_key(&n) {
            continue;
        }
        if !is_over && !judged.contains_key(&asked) {
            let judgement = place.read(path, *part)?.and_then(|contents| {
                room = room.checked_sub(contents.bytes.len() as u64).ok_or_else(|| {
                    Failure::execution(format!(
                        "'{path}' is not shown: of the files that one reply asks for {SHOWN_LIMIT} bytes are looked at, far more than a message has room for; ask for it in a reply of its own"
                    ))
                })?;
                Ok(())
            });
            judged.insert(asked.clone(), judgement);
        }
        if on_condition {
            let reason =
                format!("'{path}' can be read, and is not shown: [DONE] ended the session");
            outcome.detail = Detail::Unknown { reason };
        } else if is_over {
            outcome.detail = not_shown(path);
        } else if let Some(Err(failure)) = judged.get(&asked) {
            let (path, part) = asked;
            outcome.detail = place.unreadable(failure.clone());
            let read = Operation::Read { path, reading: Reading::Later(part) };
            name_tag(&read, &steps[n], outcome);
        }
        ledger.result(n, outcome)?;
        observer.done(outcome);
    }
    Ok(())
}
