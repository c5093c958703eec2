//! One reply carried out: steps in order, each to its outcome. One failure does not stop the rest;
//! `[DONE]` and the person do.

use crate::place::Place;
use crate::protocol::{Asks, Detail, Operation, Outcome, Step};

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
    for step in steps {
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
                Outcome::of(step, place.perform(operation))
            }
        };
        observer.done(&outcome);
        outcomes.push(outcome);
    }
    // A session that is over has no next outbox to show a file in.
    if outcomes.iter().any(|outcome| matches!(outcome.detail, Detail::Completed { .. })) {
        for outcome in &mut outcomes {
            if let Detail::ReadLater { path } = &outcome.detail {
                let reason = format!("'{path}' is not shown: [DONE] ended the session");
                outcome.detail = crate::protocol::Failure::execution(reason).into();
            }
        }
    }
    outcomes
}
