//! One reply carried out: steps in order, each to its outcome. One failure does not stop the rest;
//! `[DONE]` and the person do.

mod beside;
mod judge;
mod permission;
mod reads;
pub mod recover;
mod sight;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::place::{Coming, Place};
use crate::policy::Decision;
use crate::protocol::operations::UtcTime;
use crate::protocol::tags;
use crate::protocol::{
    Asked, Asks, Detail, Effect, Ending, Execution, Failure, FailureKind, Kind, Operation, Outcome,
    Reading, Step, Warning, WarningSort,
};
use crate::runner::Glimpse;
use crate::session::{Question, SeenFiles, Session, Verdict};
use crate::text::{count, visible_line};
use crate::workspace::checkpoint::Noted;
use crate::workspace::guard::Snapshot;
use beside::{name_tag, stand_in};
pub use judge::judge;
use permission::Sought;
use reads::{judge_reads, not_shown};
use sight::Sights;

/// As many commands of one reply are carried out.
pub const STEP_LIMIT: usize = 1_000;

/// Why a step is not tried that stands behind `[DONE]`.
const AFTER_DONE: &str = "it comes after [DONE]";
/// Why a step is not tried after the machine has failed one.
const HALTED: &str = "the run was halted by a failure of the system";
/// Why a [DONE] does not count whose sender does not know all that the person has said.
const UNHEARD: &str = "not counted: the user has said more than this reply goes by (see PROMPT), so the session goes on";
/// What is told with a [DONE if="ok"] beside a tag that may have been meant.
const PASSED_OVER: &str = "not counted: a whole tag of the reply was read as words or ignored (see the warnings), so the session goes on";
/// So many operations are named that keep a [DONE] from counting.
const NAMED: usize = 10;

/// Is told what happens while a reply is carried out.
pub trait Observer {
    /// A turn of this session begins, or goes on, with the reply of that name.
    fn turn(&mut self, _session: &Session, _reply: &str) {}
    /// An operation is about to be tried.
    fn begun(&mut self, _step: &Step) {}
    /// What is shown what commands write while they run, where somebody looks on.
    fn looks_on(&self) -> Option<Arc<Glimpse>> {
        None
    }
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
    /// This is kept of what is about to change. It need not be on disk before the next
    /// [`Ledger::intent`] is.
    fn noted(&mut self, _noted: &Noted) -> Result<()> {
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

/// A reply to be carried out, and what is known of it beforehand.
#[derive(Clone, Copy)]
pub struct Course<'a> {
    /// What it asks for.
    pub steps: &'a [Step],
    /// The outcomes of steps that are not to be tried again, by step, counted from 0.
    pub known: &'a BTreeMap<usize, Outcome>,
    /// What the person decided about one of the steps.
    pub verdict: Option<&'a Verdict>,
    /// What was seen of files by whoever sent it, before it.
    pub seen: &'a SeenFiles,
    /// What the policy says of an operation.
    pub judge: &'a dyn Fn(&Operation, &dyn Place) -> Result<Decision>,
    /// What to do where the policy asks.
    pub asking: Asking<'a>,
    /// Why nothing more of it is tried, if that is so from its beginning.
    pub stopped: Option<&'a str>,
    /// Whether the person has said something that whoever sent it does not know: then it cannot end
    /// the session.
    pub unheard: bool,
    /// Whether a failure of the machine ends it: nothing after it is tried.
    pub halts: bool,
    /// Tells the time.
    pub now: &'a dyn Fn() -> Timestamp,
}

/// What is done where a policy asks the person.
#[derive(Clone, Copy)]
pub enum Asking<'a> {
    /// The turn stops there; this is what the operation of a step is called then.
    Stops(&'a dyn Fn(usize) -> String),
    /// It goes on, and only says that it would have asked.
    Foretells,
}

/// How far a turn came.
#[derive(Debug)]
pub struct Carried {
    /// What the steps came to: all of them, or those before the one that is asked about.
    pub outcomes: Vec<Outcome>,
    /// What the person is asked before it goes on.
    pub question: Option<Question>,
    /// What is seen of files once these outcomes are told.
    pub seen: SeenFiles,
}

/// Carries out a reply in `place`, each step to its outcome. Files that are to be shown are judged
/// after all steps, and told of last. A turn that stops to ask is taken up again with the outcomes
/// that it came to as known.
///
/// # Errors
/// Only the ledger's, and what a place cannot do without: then how far it came stands in the ledger.
pub fn carry_out(
    course: &Course,
    place: &mut dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<Carried> {
    let Course { steps, known, .. } = *course;
    let (tried, left) = steps.split_at(steps.len().min(STEP_LIMIT));
    let completes = |step: &Step| {
        let plainly = matches!(step.asks, Asks::Operation(Operation::Done { if_ok: false, .. }));
        plainly && !course.unheard
    };
    let done_at = tried.iter().position(completes);
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(tried.len());
    let mut stopped = course.stopped;
    let mut sights = Sights::of(course.seen);
    for (n, step) in tried.iter().enumerate() {
        if let Some(outcome) = known.get(&n) {
            if matches!(outcome.detail, Detail::Completed { .. }) {
                stopped = Some(AFTER_DONE);
            }
            if course.halts && is_of_the_system(outcome) {
                stopped = Some(HALTED);
            }
            sights.take_in(step, outcome);
            outcomes.push(outcome.clone());
            continue;
        }
        place.at(n);
        if stopped.is_none() && place.interrupted() {
            stopped = Some("the user stopped deaddrop");
        }
        let mut outcome = match (&step.asks, stopped) {
            (_, Some(why)) => Outcome::not_run(step, why),
            (Asks::Invalid(invalid), None) => Outcome::invalid(step, invalid),
            (Asks::Operation(Operation::Read { path, reading: Reading::Later(_) }), None)
                if done_at > Some(n) =>
            {
                Outcome::of(step, not_shown(path))
            }
            (Asks::Operation(operation), None) => {
                match permission::seek(course, n, step, operation, place)? {
                    Sought::Refused(failure) => {
                        let mut outcome = Outcome::of(step, failure.into());
                        name_tag(operation, step, &mut outcome);
                        outcome
                    }
                    Sought::Asked(question) => {
                        finish(&mut outcomes, place, ledger, observer)?;
                        return Ok(Carried {
                            outcomes,
                            question: Some(*question),
                            seen: sights.told(),
                        });
                    }
                    Sought::Given(opens, foretold) => {
                        observer.begun(step);
                        let before = &mut |coming: Coming<'_>| match coming {
                            Coming::Guard(snapshot) => ledger.guard(snapshot),
                            Coming::Noted(noted) => ledger.noted(noted),
                            Coming::Effect(effect) => ledger.intent(n, effect),
                        };
                        let (detail, told) = match instead(course, n, operation, &outcomes, place)?
                        {
                            None => {
                                let operation = sights.with_seen(operation, place)?;
                                (place.perform(&operation, opens, before)?, None)
                            }
                            Some((detail, told)) => (detail, Some(told)),
                        };
                        let mut outcome = Outcome::of(step, detail);
                        let foretold = foretold.map(|told| Warning::new(WarningSort::Asking, told));
                        outcome.warnings.extend(foretold);
                        outcome.warnings.extend(stand_in(operation, &outcome.detail));
                        name_tag(operation, step, &mut outcome);
                        outcome.warnings.extend(place.noticed());
                        outcome.warnings.extend(told);
                        outcome
                    }
                }
            }
        };
        if course.halts {
            halt(&mut outcome);
            if is_of_the_system(&outcome) {
                stopped = Some(HALTED);
            }
        }
        if matches!(outcome.detail, Detail::Completed { .. }) {
            stopped = Some(AFTER_DONE);
        }
        sights.take_in(step, &outcome);
        settle(n, outcome, course, ledger, observer, &mut outcomes)?;
    }
    finish(&mut outcomes, place, ledger, observer)?;
    judge_reads(&mut outcomes, (tried, known), place, ledger, observer, done_at.is_some())?;
    if let Some(first) = left.first() {
        let outcome = Outcome::not_run_from(first, left.len(), STEP_LIMIT);
        observer.done(&outcome);
        outcomes.push(outcome);
    }
    Ok(Carried { outcomes, question: None, seen: sights.told() })
}

/// Notes and tells what a step came to; of a file that is to be shown, that is known later.
fn settle(
    n: usize,
    mut outcome: Outcome,
    course: &Course,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
    outcomes: &mut Vec<Outcome>,
) -> Result<()> {
    // Only events tell times, and what an operation was called that the person was asked about.
    if let Some(asked) = &mut outcome.asked {
        outcome.at = UtcTime::parse(&(course.now)().to_string());
        let verdict = course.verdict.filter(|verdict| verdict.question.step == n);
        if let (None, Some(verdict)) = (&asked.id, verdict) {
            asked.id = Some(verdict.question.id.clone());
        }
    }
    if !matches!(outcome.detail, Detail::ReadLater { .. }) {
        ledger.result(n, &outcome)?;
        observer.done(&outcome);
    }
    outcomes.push(outcome);
    Ok(())
}

/// What an operation comes to that does not count after these outcomes, or before the steps behind
/// step `n`, and why it does not.
fn instead(
    course: &Course,
    n: usize,
    operation: &Operation,
    outcomes: &[Outcome],
    place: &dyn Place,
) -> Result<Option<(Detail, Warning)>> {
    let Operation::Done { summary, if_ok } = operation else { return Ok(None) };
    let failed = if *if_ok { failed(outcomes, place)? } else { Vec::new() };
    // Whether these succeed is known only when the session would be over.
    let behind = if *if_ok { course.steps.get(n + 1..).unwrap_or_default() } else { &[] };
    let passes_over = *if_ok && course.steps.get(n).is_some_and(|step| step.passes_over);
    let told = match (failed.is_empty(), course.unheard, behind.is_empty()) {
        (false, _, _) => does_not_count(&failed),
        _ if passes_over => PASSED_OVER.to_owned(),
        (true, true, _) => UNHEARD.to_owned(),
        (true, false, false) => is_not_last(behind),
        (true, false, true) => return Ok(None),
    };
    let told = Warning::new(WarningSort::Done, told);
    Ok(Some((Detail::Shown { text: summary.clone() }, told)))
}

/// Those that failed, with the files to be shown that cannot be.
fn failed<'a>(outcomes: &'a [Outcome], place: &dyn Place) -> Result<Vec<&'a Outcome>> {
    let mut failed = Vec::new();
    for outcome in outcomes {
        let success = match &outcome.detail {
            Detail::ReadLater { path, part } => place.read(path, *part)?.is_ok(),
            _ => outcome.success(),
        };
        if !success {
            failed.push(outcome);
        }
    }
    Ok(failed)
}

/// What is told with a [DONE] that does not count after these outcomes.
fn does_not_count(failed: &[&Outcome]) -> String {
    let names =
        named(failed.iter().map(|outcome| (outcome.kind, outcome.line, outcome.asked.as_ref())));
    format!(
        "not counted: {} before it failed ({names}), so the session goes on",
        count(failed.len(), "operation")
    )
}

/// What is told with a [DONE if="ok"] before these steps, which are carried out all the same.
fn is_not_last(behind: &[Step]) -> String {
    let names = named(behind.iter().map(|step| (step.kind(), step.line, step.asked.as_ref())));
    format!(
        "not counted: {} behind it ({names}), so the session goes on; it counts as the last of its reply",
        if behind.len() == 1 {
            "1 operation stands".to_owned()
        } else {
            format!("{} operations stand", behind.len())
        }
    )
}

/// The first of some operations by name, and where in the reply they stand.
fn named<'a>(operations: impl Iterator<Item = (Kind, usize, Option<&'a Asked>)>) -> String {
    let name = |(kind, line, asked): (Kind, usize, Option<&Asked>)| match asked
        .map(|asked| asked.id.as_ref())
    {
        Some(Some(id)) => format!("\"{}\"", visible_line(id)),
        Some(None) => format!("line {line}"),
        None => format!("{} on line {line} of the reply", tags::name(kind)),
    };
    let mut names: Vec<String> = operations.take(NAMED + 1).map(name).collect();
    if names.len() > NAMED {
        names.truncate(NAMED);
        names.push("…".to_owned());
    }
    names.join(", ")
}

/// A command that the machine could not run is a failure of the system.
fn halt(outcome: &mut Outcome) {
    if let Detail::Ran(Execution { ending: Ending::NotStarted(why), .. }) = &outcome.detail {
        outcome.detail = Failure::new(FailureKind::System, why.clone()).into();
    }
}

fn is_of_the_system(outcome: &Outcome) -> bool {
    matches!(&outcome.detail, Detail::Failed(failure) if failure.kind == FailureKind::System)
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
