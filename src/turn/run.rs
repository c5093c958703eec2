//! Executes the steps of a reply in order, each to its outcome. A failed step does not stop the others;
//! `[DONE]` and the person do.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::permission::{self, Permission};
use super::{Ledger, Observer, TurnInput, TurnResult};
use crate::error::Result;
use crate::place::{Left, Place, WriteAhead, lost};
use crate::policy::Opens;
use crate::protocol::operations::UtcTime;
use crate::protocol::{
    Asked, Asks, Change, Detail, Ending, Execution, Failure, FailureKind, Kind, Mistake, Operation,
    Outcome, Part, Reading, RelPath, Step, Warning, WarningKind, elision, tags,
};
use crate::session::record::Unfinished;
use crate::session::{FileVersions, Question};
use crate::text::{count, visible_line};

/// How many steps of one reply are executed.
pub const STEP_LIMIT: usize = 1_000;

/// How many bytes of files one outbox shows at most.
const SHOWN_LIMIT: u64 = 1_000_000;
/// How many operations are named that make a `[DONE]` ineffective.
const NAMED: usize = 10;

const AFTER_DONE: &str = "it comes after [DONE]";
const HALTED: &str = "the run was halted by a failure of the system";
const INTERRUPTED: &str = "the user stopped deaddrop";
const UNREAD_WORDS: &str =
    "the user has said more than this reply answers (see PROMPT), so the session goes on";
const PASSED_OVER: &str = "a complete tag of the reply was read as words or ignored (see the warnings), so the session goes on";

/// Executes a reply in `place`. A turn that stops to ask is continued by running it again with its outcomes
/// so far as known.
///
/// # Errors
/// Those of the ledger, and what makes it impossible to go on. The ledger knows what was done until then.
pub fn run(
    input: &TurnInput,
    place: &mut dyn Place,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<TurnResult> {
    let (steps, over_limit) = input.steps.split_at(input.steps.len().min(STEP_LIMIT));
    let completes =
        |step: &Step| matches!(step.asks, Asks::Operation(Operation::Done { if_ok: false, .. }));
    let mut turn = Turn {
        input,
        place,
        ledger,
        observer,
        outcomes: Vec::with_capacity(steps.len()),
        stopped: input.stopped,
        done_at: steps.iter().position(completes).filter(|_| !input.session.has_unread_words()),
        seen: input.session.seen.clone(),
        shown: input.session.seen.clone(),
        room: tags::EXCERPT_LINES,
    };
    for (n, step) in steps.iter().enumerate() {
        if let Some(outcome) = input.known.get(&n) {
            turn.take(step, outcome.clone());
            continue;
        }
        match turn.execute(n, step)? {
            Ok(outcome) => turn.settle(n, step, outcome)?,
            Err(question) => {
                turn.finish_commands()?;
                return Ok(turn.into_result(Some(*question)));
            }
        }
    }
    turn.finish_commands()?;
    turn.resolve_reads()?;
    for outcome in Outcome::not_run_from(over_limit, STEP_LIMIT) {
        turn.observer.done(&outcome);
        turn.outcomes.push(outcome);
    }
    Ok(turn.into_result(None))
}

/// The outcome of a step, or the question that the person has to answer first.
type Executed = std::result::Result<Outcome, Box<Question>>;

/// A turn while it runs.
struct Turn<'a, 'i> {
    input: &'a TurnInput<'i>,
    place: &'a mut dyn Place,
    ledger: &'a mut dyn Ledger,
    observer: &'a mut dyn Observer,
    outcomes: Vec<Outcome>,
    /// Why the remaining steps are not executed.
    stopped: Option<&'i str>,
    /// The first step that completes the session whatever happens before it.
    done_at: Option<usize>,
    /// The file versions that the sender saw, with the effects of the steps so far.
    seen: FileVersions,
    /// The same with the lines that are shown with the outcomes.
    shown: FileVersions,
    /// How many more lines can be shown.
    room: usize,
}

impl Turn<'_, '_> {
    /// Executes one step, if it is permitted.
    fn execute(&mut self, n: usize, step: &Step) -> Result<Executed> {
        self.place.at(n);
        if self.stopped.is_none() && self.place.interrupted() {
            self.stopped = Some(INTERRUPTED);
        }
        let operation = match (&step.asks, self.stopped) {
            (_, Some(why)) => return Ok(Ok(Outcome::not_run(step, why))),
            (Asks::Invalid(invalid), None) => return Ok(Ok(Outcome::invalid(step, invalid))),
            (Asks::Operation(operation), None) => operation,
        };
        if let Operation::Read { path, reading: Reading::Later(_) } = operation
            && self.done_at > Some(n)
        {
            return Ok(Ok(Outcome::of(step, not_shown(path))));
        }
        let (detail, foretold) = match permission::seek(self.input, n, step, operation, self.place)?
        {
            Permission::Granted(opens, foretold) => {
                (self.perform(n, step, operation, opens)?, foretold)
            }
            Permission::Denied(failure) => (failure.into(), None),
            Permission::Asked(question) => return Ok(Err(question)),
        };
        let mut outcome = Outcome::of(step, detail);
        outcome.warnings.extend(foretold.map(|told| Warning::new(WarningKind::Asking, told)));
        outcome.warnings.extend(warn_of_placeholder(operation, &outcome.detail));
        locate(step, &mut outcome);
        outcome.warnings.extend(self.place.noticed());
        Ok(Ok(outcome))
    }

    /// Performs a permitted operation, and records its effect ahead.
    fn perform(
        &mut self,
        n: usize,
        step: &Step,
        operation: &Operation,
        opens: Opens,
    ) -> Result<Detail> {
        self.observer.begun(step);
        if let Some(ineffective) = self.ineffective_done(n, operation)? {
            return Ok(ineffective);
        }
        let operation = self.with_seen_version(operation)?;
        let mut write_ahead = |entry: WriteAhead<'_>| self.ledger.write_ahead(n, entry);
        match self.place.perform(&operation, opens, &mut write_ahead)? {
            // A command that the machine could not run is a failure of the system.
            Detail::Ran(Execution { ending: Ending::NotStarted(why), .. })
                if self.input.session.run.is_some() =>
            {
                Ok(Failure::new(FailureKind::System, why).into())
            }
            detail => Ok(detail),
        }
    }

    /// An edit by line numbers with the version in which its lines were last seen, so that it fails where
    /// they have changed. No policy and no person needs to know that.
    fn with_seen_version<'o>(&self, operation: &'o Operation) -> Result<Cow<'o, Operation>> {
        let mut edit = Cow::Borrowed(operation);
        if let Operation::Edit { change: Change::Lines { start, end, .. }, .. } = operation
            && !self.seen.is_empty()
            && let Some(path) = self.place.place_of(operation)?
            && let Some(version) = self.seen.get(&path, (*start, *end))
            && let Operation::Edit { change: Change::Lines { seen, .. }, .. } = edit.to_mut()
        {
            *seen = Some(version);
        }
        Ok(edit)
    }

    /// Takes an outcome into account.
    fn take(&mut self, step: &Step, outcome: Outcome) {
        match &outcome.detail {
            Detail::Completed { .. } => self.stopped = Some(AFTER_DONE),
            Detail::Failed(Failure { kind: FailureKind::System, .. })
                if self.input.session.run.is_some() =>
            {
                self.stopped = Some(HALTED);
            }
            _ => {}
        }
        self.seen.apply(step, &outcome);
        self.shown.apply(step, &outcome);
        let excerpt = outcome.detail.excerpt();
        let is_shown = excerpt.is_some_and(|excerpt| tags::has_room(excerpt, &mut self.room));
        // Events show no lines of what was edited.
        if is_shown && (outcome.asked.is_none() || !outcome.success()) {
            self.shown.record_excerpt(&outcome);
        }
        self.outcomes.push(outcome);
    }

    /// Takes a new outcome into account, records and reports it. A file to show follows at the end.
    fn settle(&mut self, n: usize, step: &Step, mut outcome: Outcome) -> Result<()> {
        // Only events have times, and the name under which the person was asked.
        if let Some(asked) = &mut outcome.asked {
            outcome.at = UtcTime::parse(&(self.input.now)().to_string());
            let verdict = self.input.verdict.filter(|verdict| verdict.question.step == n);
            if let (None, Some(verdict)) = (&asked.id, verdict) {
                asked.id = Some(verdict.question.id.clone());
            }
        }
        if !matches!(outcome.detail, Detail::ReadLater { .. }) {
            self.ledger.result(n, &outcome)?;
            self.observer.done(&outcome);
        }
        self.take(step, outcome);
        Ok(())
    }

    /// The outcome of a `[DONE]` that has no effect: something failed, is still to be done, or was not read.
    fn ineffective_done(&self, n: usize, operation: &Operation) -> Result<Option<Detail>> {
        let Operation::Done { summary, if_ok } = operation else { return Ok(None) };
        let failed = if *if_ok { self.failed()? } else { Vec::new() };
        let after = if *if_ok { &self.input.steps[n + 1..] } else { &[] };
        let reason = if !failed.is_empty() {
            let failures = count(failed.len(), "operation");
            let names = named(failed.iter().map(|one| (one.kind, one.line, one.asked.as_ref())));
            format!("{failures} before it failed ({names}), so the session goes on")
        } else if *if_ok && self.input.steps[n].passes_over {
            PASSED_OVER.to_owned()
        } else if self.input.session.has_unread_words() {
            UNREAD_WORDS.to_owned()
        } else if !after.is_empty() {
            let come = if after.len() == 1 { "operation comes" } else { "operations come" };
            let names = named(after.iter().map(|one| (one.kind(), one.line, one.asked.as_ref())));
            let rest = "so the session goes on; put it last in the reply";
            format!("{} {come} after it ({names}), {rest}", after.len())
        } else {
            return Ok(None);
        };
        let reason = format!("not counted: {reason}");
        Ok(Some(Detail::Ineffective { summary: summary.clone(), reason }))
    }

    /// The operations that failed so far, with the files to show that cannot be read.
    fn failed(&self) -> Result<Vec<&Outcome>> {
        let mut failed = Vec::new();
        for outcome in &self.outcomes {
            let has_failed = match &outcome.detail {
                Detail::ReadLater { path, part } => self.place.read(path, *part)?.is_err(),
                _ => outcome.failed(),
            };
            failed.extend(has_failed.then_some(outcome));
        }
        Ok(failed)
    }

    /// Adds what is noticed only after all steps to the last command.
    fn finish_commands(&mut self) -> Result<()> {
        let noticed = self.place.finish()?;
        let ran = |outcome: &Outcome| outcome.kind == Kind::Run && outcome.ran();
        if noticed.is_empty() {
            return Ok(());
        }
        let Some(last) = self.outcomes.iter().rposition(ran) else { return Ok(()) };
        noticed.iter().for_each(|told| self.observer.noticed(told));
        self.outcomes[last].warnings.extend(noticed);
        self.ledger.result(last, &self.outcomes[last])
    }

    /// Finds out which of the files to show can be shown. A complete session has no outbox to show them in.
    fn resolve_reads(&mut self) -> Result<()> {
        let completes = |outcome: &Outcome| matches!(outcome.detail, Detail::Completed { .. });
        let is_complete = self.outcomes.iter().any(completes);
        let mut checked: HashMap<(RelPath, Part), Option<Failure>> = HashMap::new();
        let mut room = SHOWN_LIMIT;
        for (n, outcome) in self.outcomes.iter_mut().enumerate() {
            let Detail::ReadLater { path, part } = &outcome.detail else { continue };
            if self.input.known.contains_key(&n) {
                continue;
            }
            let (path, part) = (path.clone(), *part);
            if is_complete {
                outcome.detail = if self.done_at.is_some() {
                    not_shown(&path)
                } else {
                    // [DONE if="ok"] has found that it can be read.
                    let end = "can be read, and is not shown: [DONE] ended the session";
                    Detail::Unknown { reason: format!("'{path}' {end}") }
                };
            } else {
                let key = (path.clone(), part);
                if !checked.contains_key(&key) {
                    let fits = self.place.read(&path, part)?.and_then(|contents| {
                        room = room
                            .checked_sub(contents.bytes.len() as u64)
                            .ok_or_else(|| too_much(&path))?;
                        Ok(())
                    });
                    checked.insert(key.clone(), fits.err());
                }
                if let Some(Some(failure)) = checked.get(&key) {
                    outcome.detail = self.place.unreadable(failure.clone());
                    locate(&self.input.steps[n], outcome);
                }
            }
            self.ledger.result(n, outcome)?;
            self.observer.done(outcome);
        }
        Ok(())
    }

    fn into_result(self, question: Option<Question>) -> TurnResult {
        TurnResult { outcomes: self.outcomes, question, seen: self.shown }
    }
}

/// The outcomes of the steps of an interrupted turn that need not, or must not, be executed again, by step.
///
/// A step with a result is done. The place may know what became of a step with an intent alone. A command
/// of which nobody knows may have run in part, and is never run again.
pub fn known_outcomes(
    turn: &Unfinished,
    place: &mut dyn Place,
) -> Result<BTreeMap<usize, Outcome>> {
    let mut known = turn.begin.known();
    known.extend(turn.results.clone());
    for (n, effect) in &turn.intents {
        let Some(step) = turn.begin.steps().get(*n) else { continue };
        let Asks::Operation(operation) = &step.asks else { continue };
        if known.contains_key(n) {
            continue;
        }
        let (detail, warnings) = match place.left(effect, operation)? {
            Left::Done(detail, warnings) => (*detail, warnings),
            Left::Lost => (lost(operation), Vec::new()),
            Left::Undone => continue,
        };
        let mut outcome = Outcome::of(step, detail);
        outcome.warnings.extend(warnings);
        known.insert(*n, outcome);
    }
    Ok(known)
}

fn not_shown(path: &RelPath) -> Detail {
    Failure::execution(format!("'{path}' is not shown: [DONE] ended the session")).into()
}

fn too_much(path: &RelPath) -> Failure {
    Failure::execution(format!(
        "'{path}' is not shown: of the files that one reply asks for {SHOWN_LIMIT} bytes are looked at, far more than a message has room for; ask for it in a reply of its own"
    ))
}

/// Warns of a new file that contains what an outbox shows instead of a secret.
fn warn_of_placeholder(operation: &Operation, detail: &Detail) -> Option<Warning> {
    let (Operation::Create { content, .. }, Detail::Created { path, replaced: false, .. }) =
        (operation, detail)
    else {
        return None;
    };
    let line = elision::secret_placeholder_line(content.as_bytes())?;
    let told = format!(
        "line {line} of '{path}' holds what an outbox shows in the place of a secret ([withheld: ...]): the file has these words now, and not the secret"
    );
    Some(Warning::new(WarningKind::StandIn, told))
}

/// Adds to the reason of a failure where in the reply the operation is, to help the model correct it. Events
/// identify their operation by its id.
fn locate(step: &Step, outcome: &mut Outcome) {
    let Asks::Operation(operation) = &step.asks else { return };
    let (Detail::Failed(failure), None) = (&mut outcome.detail, &outcome.asked) else { return };
    let is_corrected = matches!(
        failure.kind,
        FailureKind::Execution | FailureKind::Rejected | FailureKind::Denied
    );
    let Some(as_sent) = step.as_sent.as_deref().filter(|_| is_corrected) else { return };
    failure.reason.push_str(&tags::asked_at(outcome.line, as_sent));
    if failure.mistake == Some(Mistake::NoSuchLines) {
        failure.reason.push_str(&tags::form_of_range(operation).unwrap_or_default());
    }
}

/// The names of the first of these operations, and where they are in the reply.
fn named<'a>(operations: impl Iterator<Item = (Kind, usize, Option<&'a Asked>)>) -> String {
    let name = |(kind, line, asked): (Kind, usize, Option<&Asked>)| match asked {
        Some(Asked { id: Some(id), .. }) => format!("\"{}\"", visible_line(id)),
        Some(_) => format!("line {line}"),
        None => format!("{} on line {line} of the reply", tags::name(kind)),
    };
    let mut names: Vec<String> = operations.take(NAMED + 1).map(name).collect();
    if names.len() > NAMED {
        names.truncate(NAMED);
        names.push("…".to_owned());
    }
    names.join(", ")
}
