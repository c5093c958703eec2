//! One reply carried out: steps in order, each to its outcome. One failure does not stop the rest;
//! `[DONE]` and the person do.

use crate::place::Place;
use crate::protocol::{Asks, Failure, Kind, Operation, Outcome, Step};

/// Is told what happens while a reply is carried out.
pub trait Observer {
    /// An operation is about to be tried.
    fn begun(&mut self, _step: &Step) {}
    /// A step has come to this.
    fn done(&mut self, _outcome: &Outcome) {}
}

/// An observer of nothing.
impl Observer for () {}

/// Carries out `steps` in `place`, each to its outcome.
pub fn carry_out(
    steps: &[Step],
    place: &mut dyn Place,
    observer: &mut dyn Observer,
) -> Vec<Outcome> {
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
                    _ => Outcome::of(step, place.perform(operation)),
                }
            }
        };
        observer.done(&outcome);
        outcomes.push(outcome);
    }
    outcomes
}

/// Whether one of these steps completes the session.
fn ends(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step.asks, Asks::Operation(Operation::Done { .. })))
}
