//! One reply carried out: steps in order, each to its outcome. One failure does not stop the rest;
//! `[DONE]` and the person do.

pub mod recover;

use std::collections::{BTreeMap, HashMap};

use crate::error::Result;
use crate::place::{Coming, Place};
use crate::protocol::{Asks, Detail, Effect, Failure, Kind, Operation, Outcome, RelPath, Step};
use crate::workspace::guard::Snapshot;

/// As many commands of one reply are carried out.
pub const STEP_LIMIT: usize = 1_000;
/// So many bytes of files one outbox shows at most.
const SHOWN_LIMIT: u64 = 1_000_000;

/// Why a step is not tried that stands behind `[DONE]`.
const AFTER_DONE: &str = "it comes after [DONE]";

/// Is told what happens while a reply is carried out.
pub trait Observer {
    /// An operation is about to be tried.
    fn begun(&mut self, _step: &Step) {}
    /// A step has come to this.
    fn done(&mut self, _outcome: &Outcome) {}
    /// Something was put right after deaddrop had been stopped hard: a sentence.
    fn recovered(&mut self, _told: &str) {}
    /// Something was noticed of a command only after its outcome was told: a sentence.
    fn noticed(&mut self, _told: &str) {}
}

/// An observer of nothing.
impl Observer for () {}

/// Is told what must not be forgotten, before it is built upon.
pub trait Ledger {
    /// Commands will run in this turn, and this is what they must leave as it is. It need not be
    /// on disk before the first [`Ledger::intent`] is.
    fn guard(&mut self, _snapshot: &Snapshot) -> Result<()> {
        Ok(())
    }
    /// This step (counted from 0) is about to do that. After an error nothing is done.
    fn intent(&mut self, _step: usize, _effect: &Effect) -> Result<()> {
        Ok(())
    }
    /// This step came to that.
    fn result(&mut self, _step: usize, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
}

/// A ledger for what leaves no trace.
impl Ledger for () {}

/// Carries out `steps` in `place`, each to its outcome; those whose outcome is `known` (by step,
/// counted from 0) are not tried again. Files that are to be shown are judged after
/// all steps, and told of last.
///
/// # Errors
/// Only the ledger's: then how far it came stands there.
pub fn carry_out(
    steps: &[Step],
    known: &BTreeMap<usize, Outcome>,
    place: &mut dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<Vec<Outcome>> {
    let (tried, left) = steps.split_at(steps.len().min(STEP_LIMIT));
    let completes = |step: &Step| matches!(step.asks, Asks::Operation(Operation::Done { .. }));
    let done_at = tried.iter().position(completes);
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(tried.len());
    let mut stopped: Option<&str> = None;
    for (n, step) in tried.iter().enumerate() {
        if let Some(outcome) = known.get(&n) {
            if done_at == Some(n) {
                stopped = Some(AFTER_DONE);
            }
            outcomes.push(outcome.clone());
            continue;
        }
        if stopped.is_none() && place.interrupted() {
            stopped = Some("the user stopped deaddrop");
        }
        let outcome = match (&step.asks, stopped) {
            (_, Some(why)) => Outcome::not_run(step, why),
            (Asks::Invalid(invalid), None) => Outcome::invalid(step, invalid),
            (Asks::Operation(Operation::Read { path, .. }), None) if done_at > Some(n) => {
                // A session that is over has no next outbox to show a file in.
                let reason = format!("'{path}' is not shown: [DONE] ended the session");
                Outcome::of(step, Failure::execution(reason).into())
            }
            (Asks::Operation(operation), None) => {
                observer.begun(step);
                if done_at == Some(n) {
                    stopped = Some(AFTER_DONE);
                }
                let before = &mut |coming: Coming<'_>| match coming {
                    Coming::Guard(snapshot) => ledger.guard(snapshot),
                    Coming::Effect(effect) => ledger.intent(n, effect),
                };
                let mut outcome = Outcome::of(step, place.perform(operation, before)?);
                outcome.warnings.extend(place.noticed());
                outcome
            }
        };
        if !matches!(outcome.detail, Detail::ReadLater { .. }) {
            ledger.result(n, &outcome)?;
            observer.done(&outcome);
        }
        outcomes.push(outcome);
    }
    finish(&mut outcomes, place, ledger, observer)?;
    judge_reads(&mut outcomes, known, place, ledger, observer)?;
    if let Some(first) = left.first() {
        let outcome = Outcome::not_run_from(first, left.len(), STEP_LIMIT);
        observer.done(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// What is noticed only after all steps is told with the last command.
fn finish(
    outcomes: &mut [Outcome],
    place: &mut dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<()> {
    let noticed = place.finish()?;
    let ran =
        |outcome: &Outcome| outcome.kind == Kind::Run && matches!(outcome.detail, Detail::Ran(_));
    let Some(last) = outcomes.iter().rposition(ran).filter(|_| !noticed.is_empty()) else {
        return Ok(());
    };
    noticed.iter().for_each(|told| observer.noticed(told));
    outcomes[last].warnings.extend(noticed);
    ledger.result(last, &outcomes[last])
}

/// Finds out which of the files to be shown can be.
fn judge_reads(
    outcomes: &mut [Outcome],
    known: &BTreeMap<usize, Outcome>,
    place: &dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<()> {
    let mut judged: HashMap<RelPath, Result<u64, Failure>> = HashMap::new();
    let mut room = SHOWN_LIMIT;
    for (n, outcome) in outcomes.iter_mut().enumerate() {
        let Detail::ReadLater { path } = &outcome.detail else { continue };
        if known.contains_key(&n) {
            continue;
        }
        let judgement = judged.entry(path.clone()).or_insert_with(|| {
            let length = place.read(path)?.bytes.len() as u64;
            room = room.checked_sub(length).ok_or_else(|| {
                Failure::execution(format!(
                    "'{path}' is not shown: one message shows {SHOWN_LIMIT} bytes of files at most; ask for it again by itself"
                ))
            })?;
            Ok(length)
        });
        if let Err(failure) = judgement {
            outcome.detail = place.unreadable(failure.clone());
        }
        ledger.result(n, outcome)?;
        observer.done(outcome);
    }
    Ok(())
}
