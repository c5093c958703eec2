//! One reply carried out: steps in order, each to its outcome. One failure does not stop the rest;
//! `[DONE]` and the person do.

use crate::error::Result;
use crate::place::Place;
use crate::protocol::{Asks, Effect, Failure, Kind, Operation, Outcome, Step};

/// Is told what happens while a reply is carried out.
pub trait Observer {
    /// An operation is about to be tried.
    fn begun(&mut self, _step: &Step) {}
    /// A step has come to this.
    fn done(&mut self, _outcome: &Outcome) {}
}

/// An observer of nothing.
impl Observer for () {}

/// Is told what must not be forgotten, before it is built upon.
pub trait Ledger {
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

/// Carries out `steps` in `place`, each to its outcome.
///
/// # Errors
/// Only the ledger's: then how far it came stands there.
pub fn carry_out(
    steps: &[Step],
    place: &mut dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<Vec<Outcome>> {
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(steps.len());
    let mut stopped: Option<&str> = None;
    for (n, step) in steps.iter().enumerate() {
        if stopped.is_none() && place.interrupted() {
            stopped = Some("the user stopped deaddrop");
        }
        let outcome = match (&step.asks, stopped) {
            (_, Some(why)) => Outcome::not_run(step, why),
            (Asks::Invalid(invalid), None) => Outcome::invalid(step, invalid),
            (Asks::Operation(operation), None) => {
                observer.begun(step);
                if matches!(operation, Operation::Done { .. }) {
                    stopped = Some("it comes after [DONE]");
                }
                match operation.path() {
                    // A session that is over has no next outbox to show a file in.
                    Some(path) if operation.kind() == Kind::Read && ends(&steps[n..]) => {
                        let reason = format!("'{path}' is not shown: [DONE] ended the session");
                        Outcome::of(step, Failure::execution(reason).into())
                    }
                    _ => {
                        let before = &mut |effect: &Effect| ledger.intent(n, effect);
                        Outcome::of(step, place.perform(operation, before)?)
                    }
                }
            }
        };
        ledger.result(n, &outcome)?;
        observer.done(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Whether one of these steps completes the session.
fn ends(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step.asks, Asks::Operation(Operation::Done { .. })))
}
