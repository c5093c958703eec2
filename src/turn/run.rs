//! Executes the steps of a reply in order, each to its outcome. A failed step does not stop the others. Only `[DONE]`,
//! the person, and for a run a failure of the system do.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::permission::{self, Permission};
use super::{Ledger, TurnInput, TurnResult};
use crate::error::Result;
use crate::event::{Event, Observer};
use crate::executor::{Executor, InterruptedStep, WriteAhead, unknown_result};
use crate::policy::Grant;
use crate::protocol::operations::UtcTime;
use crate::protocol::{
    Change, Detail, Ending, Execution, Failure, FailureKind, Kind, Mistake, Operation, Outcome,
    Part, Reading, RelPath, SentValues, Step, StepContent, Warning, WarningKind, elision, tags,
};
use crate::session::record::UnfinishedTurn;
use crate::session::{FileVersions, Question};
use crate::text::{count, visible_line};
use crate::workspace::Contents;

/// The maximum number of steps of one reply that are executed.
pub const STEP_LIMIT: usize = 1_000;

/// The maximum number of bytes of files that one outbox shows.
const SHOWN_LIMIT: u64 = 1_000_000;
/// The maximum number of operations named as the reason why a `[DONE]` is ineffective.
const NAMED: usize = 10;

const AFTER_DONE: &str = "it comes after [DONE]";
const HALTED: &str = "the run was halted by a failure of the system";
const INTERRUPTED: &str = "the user stopped deaddrop";
const STOPPED_RUN: &str = "the run was stopped";
const UNREAD_WORDS: &str = "the user has said more than this reply answers (see PROMPT)";
const PASSED_OVER: &str =
    "the reply contains a complete tag that was not carried out (see the warnings)";

/// Executes a reply. A turn that stops to ask is continued by running it again, with its outcomes so far as `known`.
///
/// # Errors
/// Those of the ledger, and errors that make it impossible to continue. The ledger contains what was done until then.
pub fn run(
    input: &TurnInput,
    executor: &mut dyn Executor,
    ledger: &mut dyn Ledger,
    observer: &mut dyn Observer,
) -> Result<TurnResult> {
    let (steps, over_limit) = input.steps.split_at(input.steps.len().min(STEP_LIMIT));
    let completes = |step: &Step| {
        matches!(step.asks, StepContent::Operation(Operation::Done { if_ok: false, .. }))
    };
    let mut turn = RunningTurn {
        input,
        executor,
        ledger,
        observer,
        outcomes: Vec::with_capacity(steps.len()),
        question: None,
        stopped: input.stopped,
        done_at: steps.iter().position(completes).filter(|_| !input.session.has_unread_words()),
        seen: input.session.seen.clone(),
        shown: input.session.seen.clone(),
        room: tags::EXCERPT_LINES,
    };
    while let Some(step) = steps.get(turn.outcomes.len()) {
        let n = turn.outcomes.len();
        if let Some(outcome) = input.known.get(&n) {
            turn.add_outcome(step, outcome.clone());
        } else if turn.change_files_together(&steps[n..])? {
        } else if let Some(outcome) = turn.execute(n, step)? {
            turn.record_outcome(n, step, outcome)?;
        } else {
            break;
        }
    }
    turn.finish_commands()?;
    if turn.question.is_none() {
        turn.resolve_reads()?;
        for outcome in Outcome::not_run_from(over_limit, STEP_LIMIT) {
            turn.observer.event(Event::StepDone(&outcome));
            turn.outcomes.push(outcome);
        }
    }
    Ok(TurnResult { outcomes: turn.outcomes, question: turn.question, seen: turn.shown })
}

/// A turn while it runs.
struct RunningTurn<'a, 'i> {
    input: &'a TurnInput<'i>,
    executor: &'a mut dyn Executor,
    ledger: &'a mut dyn Ledger,
    observer: &'a mut dyn Observer,
    outcomes: Vec<Outcome>,
    /// What the person has to decide before the next step.
    question: Option<Question>,
    /// Why the remaining steps are not executed.
    stopped: Option<&'i str>,
    /// The first step that completes the session whatever happens before it.
    done_at: Option<usize>,
    /// The file versions that the sender saw, with the effects of the steps so far.
    seen: FileVersions,
    /// Like `seen`, with the lines that are shown with the outcomes.
    shown: FileVersions,
    /// How many more lines can be shown.
    room: usize,
}

impl RunningTurn<'_, '_> {
    /// Executes one step, if it is permitted; None if the person has to be asked first.
    fn execute(&mut self, n: usize, step: &Step) -> Result<Option<Outcome>> {
        self.executor.set_step(n);
        if self.stopped.is_none() && self.executor.interrupted() {
            let is_run = self.input.session.run.is_some();
            self.stopped = Some(if is_run { STOPPED_RUN } else { INTERRUPTED });
        }
        let operation = match (&step.asks, self.stopped) {
            (_, Some(why)) => return Ok(Some(Outcome::not_run(step, why))),
            (StepContent::Invalid(invalid), None) => {
                return Ok(Some(Outcome::invalid(step, invalid)));
            }
            (StepContent::Operation(operation), None) => operation,
        };
        if let Operation::Read { path, reading: Reading::Later(_) | Reading::Definition(_) } =
            operation
            && self.done_at > Some(n)
        {
            let failure = format!("'{path}' is not shown: [DONE] ended the session");
            return Ok(Some(Outcome::of(step, Failure::execution(failure).into())));
        }
        let permission =
            permission::check_permission(self.input, n, step, operation, self.executor)?;
        let (detail, asking) = match permission {
            Permission::Granted(opens, asked) => (self.perform(n, step, operation, opens)?, asked),
            Permission::Denied(failure) => (failure.into(), None),
            Permission::Asked(question) => {
                self.question = Some(*question);
                return Ok(None);
            }
        };
        let asking = asking.map(|text| Warning::new(WarningKind::Asking, text));
        Ok(Some(self.outcome(step, operation, detail, asking)))
    }

    /// Makes the next file changes together, as far as they are permitted and can be grouped. Returns false if there is
    /// none, or if the first one has to be executed alone.
    fn change_files_together(&mut self, steps: &[Step]) -> Result<bool> {
        let first = self.outcomes.len();
        if !self.executor.joins_changes() || self.stopped.is_some() || self.executor.interrupted() {
            return Ok(false);
        }
        let mut joined = 0;
        for (n, step) in (first..).zip(steps) {
            let StepContent::Operation(operation) = &step.asks else { break };
            let is_change = matches!(operation.kind(), Kind::Create | Kind::Edit | Kind::Delete);
            if !is_change || self.input.known.contains_key(&n) {
                break;
            }
            match permission::check_permission(self.input, n, step, operation, self.executor)? {
                Permission::Granted(opens, None) if opens == Grant::default() => {}
                _ => break,
            }
            let operation = self.with_seen_version(operation)?;
            if !self.executor.join_change(&operation) {
                break;
            }
            joined += 1;
        }
        if joined == 0 {
            return Ok(false);
        }
        let mut write_ahead = |entry: WriteAhead<'_>| self.ledger.write_ahead(first, entry);
        let details = self.executor.perform_joined(&mut write_ahead)?;
        for (step, detail) in steps.iter().zip(details) {
            let StepContent::Operation(operation) = &step.asks else { break };
            self.observer.event(Event::StepBegun(step));
            let outcome = self.outcome(step, operation, detail, None);
            self.record_outcome(self.outcomes.len(), step, outcome)?;
        }
        Ok(self.outcomes.len() > first)
    }

    fn outcome(
        &mut self,
        step: &Step,
        operation: &Operation,
        detail: Detail,
        asking: Option<Warning>,
    ) -> Outcome {
        let mut outcome = Outcome::of(step, detail);
        outcome.warnings.extend(asking);
        outcome.warnings.extend(warn_of_placeholder(operation, &outcome.detail));
        add_location(step, &mut outcome);
        outcome.warnings.extend(self.executor.take_warnings());
        outcome
    }

    /// Performs a permitted operation, and records its effect beforehand.
    fn perform(
        &mut self,
        n: usize,
        step: &Step,
        operation: &Operation,
        opens: Grant,
    ) -> Result<Detail> {
        self.observer.event(Event::StepBegun(step));
        if let Some(ineffective) = self.ineffective_done(n, operation)? {
            return Ok(ineffective);
        }
        let operation = self.with_seen_version(operation)?;
        let mut write_ahead = |entry: WriteAhead<'_>| self.ledger.write_ahead(n, entry);
        match self.executor.perform(&operation, opens, &mut write_ahead)? {
            // A command that the machine could not run is a failure of the system.
            Detail::Ran(Execution { ending: Ending::NotStarted(why), .. })
                if self.input.session.run.is_some() =>
            {
                Ok(Failure::new(FailureKind::System, why).into())
            }
            detail => Ok(detail),
        }
    }

    /// Adds to an edit by line numbers the version in which the model last saw these lines, so that it fails if they have
    /// changed. Neither policy nor approval depends on the version.
    fn with_seen_version<'o>(&self, operation: &'o Operation) -> Result<Cow<'o, Operation>> {
        let mut edit = Cow::Borrowed(operation);
        if let Operation::Edit { change: Change::Lines { start, end, .. }, .. } = operation
            && !self.seen.is_empty()
            && let Some(path) = self.executor.resolved_path(operation)?
            && let Some(version) = self.seen.get(&path, (*start, *end))
            && let Operation::Edit { change: Change::Lines { seen, .. }, .. } = edit.to_mut()
        {
            *seen = Some(version);
        }
        Ok(edit)
    }

    /// Adds an outcome, and updates the file versions with it.
    fn add_outcome(&mut self, step: &Step, outcome: Outcome) {
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

    /// Records, reports and adds a new outcome. The outcome of a file to show is recorded after all steps.
    fn record_outcome(&mut self, n: usize, step: &Step, mut outcome: Outcome) -> Result<()> {
        // Only events contain times, and the ID of the question.
        if let Some(asked) = &mut outcome.asked {
            outcome.at = UtcTime::parse(&(self.input.now)().to_string());
            let decision = self.input.decision.filter(|decision| decision.question.step == Some(n));
            if let (None, Some(decision)) = (&asked.id, decision) {
                asked.id = Some(decision.question.id.clone());
            }
        }
        if !matches!(outcome.detail, Detail::ReadLater { .. }) {
            self.ledger.result(n, &outcome)?;
            self.observer.event(Event::StepDone(&outcome));
        }
        self.add_outcome(step, outcome);
        Ok(())
    }

    /// The outcome of a `[DONE]` that has no effect, because something failed, is still to be done, or was not read.
    fn ineffective_done(&self, n: usize, operation: &Operation) -> Result<Option<Detail>> {
        let Operation::Done { summary, if_ok } = operation else { return Ok(None) };
        let failed = if *if_ok { self.failed()? } else { Vec::new() };
        let after = if *if_ok { &self.input.steps[n + 1..] } else { &[] };
        let (why, advice) = if !failed.is_empty() {
            let names = list_steps(self.input.steps, failed.iter().copied());
            (format!("{} before it failed ({names})", count(failed.len(), "operation")), "")
        } else if *if_ok && self.input.steps[n].passes_over {
            (PASSED_OVER.to_owned(), "")
        } else if self.input.session.has_unread_words() {
            (UNREAD_WORDS.to_owned(), "")
        } else if !after.is_empty() {
            let come = if after.len() == 1 { "comes" } else { "come" };
            let names = list_steps(self.input.steps, n + 1..self.input.steps.len());
            let after = count(after.len(), "operation");
            (format!("{after} {come} after it ({names})"), "; put it last in the reply")
        } else {
            return Ok(None);
        };
        let reason = format!("not counted: {why}, so the session goes on{advice}");
        Ok(Some(Detail::Ineffective { summary: summary.clone(), reason }))
    }

    /// The operations that failed so far, including files to show that cannot be read.
    fn failed(&self) -> Result<Vec<usize>> {
        let mut failed = Vec::new();
        for (n, outcome) in self.outcomes.iter().enumerate() {
            let has_failed = match &outcome.detail {
                Detail::ReadLater { path, part } => {
                    read_requested(&*self.executor, &self.input.steps[n], path, *part)?.is_err()
                }
                _ => outcome.failed(),
            };
            failed.extend(has_failed.then_some(n));
        }
        Ok(failed)
    }

    /// Adds warnings that are noticed only after all steps to the last command.
    fn finish_commands(&mut self) -> Result<()> {
        let noticed = self.executor.finish()?;
        let ran = |outcome: &Outcome| outcome.kind == Kind::Run && outcome.ran();
        match self.outcomes.iter().rposition(ran) {
            Some(last) if !noticed.is_empty() => {
                noticed
                    .iter()
                    .for_each(|warning| self.observer.event(Event::Warning(&warning.text)));
                self.outcomes[last].warnings.extend(noticed);
                self.ledger.result(last, &self.outcomes[last])
            }
            _ => Ok(()),
        }
    }

    /// Determines which requested files can be shown. A complete session has no outbox to show them in.
    fn resolve_reads(&mut self) -> Result<()> {
        let completes = |outcome: &Outcome| matches!(outcome.detail, Detail::Completed { .. });
        let is_complete = self.outcomes.iter().any(completes);
        let (mut room, mut shown) = (SHOWN_LIMIT, HashSet::new());
        let known = self.input.known;
        let outcomes = self.outcomes.iter_mut().enumerate();
        for (n, outcome) in outcomes.filter(|(n, _)| !known.contains_key(n)) {
            let Detail::ReadLater { path, part } = outcome.detail.clone() else { continue };
            let step = &self.input.steps[n];
            if is_complete {
                // `[DONE if="ok"]` has checked that it can be read.
                let reason = format!("'{path}' is not shown: [DONE] ended the session");
                outcome.detail = Detail::Unknown { reason };
            } else {
                let read = read_requested(self.executor, step, &path, part)?;
                let shown = read.and_then(|(part, contents)| {
                    if !shown.contains(&(path.clone(), part)) {
                        take_room(&mut room, &contents, &path)?;
                        shown.insert((path.clone(), part));
                    }
                    Ok(Detail::ReadLater { path, part })
                });
                outcome.detail = shown.unwrap_or_else(|failure| self.executor.unreadable(failure));
                add_location(step, outcome);
            }
            self.ledger.result(n, outcome)?;
            self.observer.event(Event::StepDone(outcome));
        }
        Ok(())
    }
}

/// The outcomes of the steps of an interrupted turn that need not, or must not, be executed again, by step.
///
/// A step with a Result is done. The executor may know what became of a step with only an Intent. A command whose result
/// is unknown may have run in part, and is never run again.
pub fn known_outcomes(
    turn: &UnfinishedTurn,
    executor: &mut dyn Executor,
) -> Result<BTreeMap<usize, Outcome>> {
    let mut known = turn.begin.known();
    known.extend(turn.results.clone());
    for (n, effect) in &turn.intents {
        let Some(step) = turn.begin.steps().get(*n) else { continue };
        let StepContent::Operation(operation) = &step.asks else { continue };
        if known.contains_key(n) {
            continue;
        }
        let (detail, warnings) = match executor.inspect_interrupted(effect, operation)? {
            InterruptedStep::Done(done) => (done.detail, done.warnings),
            InterruptedStep::Unknown => (unknown_result(operation), Vec::new()),
            InterruptedStep::NotDone => continue,
        };
        let mut outcome = Outcome::of(step, detail);
        outcome.warnings.extend(warnings);
        known.insert(*n, outcome);
    }
    Ok(known)
}

/// Reads the file part that a step requests: `part`, or the lines of a definition.
fn read_requested(
    executor: &dyn Executor,
    step: &Step,
    path: &RelPath,
    mut part: Part,
) -> Result<Result<(Part, Contents), Failure>> {
    if let StepContent::Operation(Operation::Read { reading: Reading::Definition(name), .. }) =
        &step.asks
    {
        match executor.find_definition(path, name)? {
            Ok(lines) => part = lines,
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(executor.read(path, part)?.map(|contents| (part, contents)))
}

/// Subtracts the size of a shown file from the remaining room.
fn take_room(room: &mut u64, contents: &Contents, path: &RelPath) -> Result<(), Failure> {
    *room = room.checked_sub(contents.bytes.len() as u64).ok_or_else(|| {
        Failure::execution(format!(
            "'{path}' is not shown: this reply asks for more than {SHOWN_LIMIT} bytes of files; ask for it in a reply of its own"
        ))
    })?;
    Ok(())
}

/// Warns of a new file that contains the placeholder that an outbox shows instead of a secret.
fn warn_of_placeholder(operation: &Operation, detail: &Detail) -> Option<Warning> {
    let (Operation::Create { content, .. }, Detail::Created { path, replaced: false, .. }) =
        (operation, detail)
    else {
        return None;
    };
    let line = elision::secret_placeholder_line(content.as_bytes())?;
    let text = format!(
        "line {line} of '{path}' contains a placeholder ([withheld: ...]) that an outbox shows instead of a secret: the file now contains the placeholder, not the secret"
    );
    Some(Warning::new(WarningKind::StandIn, text))
}

/// Adds the operation's place in the reply to the reason of a failure, to help the model correct it. Not for events,
/// which identify their operation by its ID.
fn add_location(step: &Step, outcome: &mut Outcome) {
    let StepContent::Operation(operation) = &step.asks else { return };
    let (Detail::Failed(failure), None) = (&mut outcome.detail, &outcome.asked) else { return };
    let is_corrected = matches!(
        failure.kind,
        FailureKind::Execution | FailureKind::Rejected | FailureKind::Denied
    );
    if !is_corrected {
        return;
    }
    failure.reason.push_str(&tags::asked_at(outcome.line, step.as_sent.as_deref()));
    if failure.mistake == Some(Mistake::NoSuchLines) {
        failure.reason.push_str(&tags::form_of_range(operation).unwrap_or_default());
    }
}

/// Lists the first of these steps, counted from 0, by name and place in the reply.
fn list_steps(steps: &[Step], numbers: impl Iterator<Item = usize>) -> String {
    let name = |n: usize| match &steps[n].asked {
        Some(SentValues { id: Some(id), .. }) => format!("\"{}\"", visible_line(id)),
        Some(_) => format!("operation {}", n + 1),
        None => format!("{} on line {} of the reply", tags::name(steps[n].kind()), steps[n].line),
    };
    let mut names: Vec<String> = numbers.take(NAMED + 1).map(name).collect();
    if names.len() > NAMED {
        names.truncate(NAMED);
        names.push("…".to_owned());
    }
    names.join(", ")
}
