//! Carries out operations in a guest: each step has a key, journalled before it is asked for.

use std::cell::RefCell;

use super::{AGAIN, GRACE, Guest, PATIENCE, Terms, sane};
use crate::error::{Error, Result};
use crate::executor::{Executor, Left, WriteAhead, fault_of, lost, shorter_than_asked, told};
use crate::policy::Grant;
use crate::protocol::jsonrpc::{
    Done, FindParams, PathFactsParams, PathFactsResult, READ_LIMIT, ResultParams, RpcError, State,
    StepParams, without_content,
};
use crate::protocol::{
    Detail, Digest, Effect, Ending, Failure, Operation, Part, Reading, RelPath, Warning,
    WarningKind,
};
use crate::workspace::walk::Walk;
use crate::workspace::{Contents, MOVED_FILES, PathFacts};

/// Carries out the operations of a turn in a guest.
pub(super) struct RemoteExecutor<'a> {
    guest: &'a Guest,
    terms: Terms<'a>,
    /// The number of the step.
    step: usize,
    noticed: Vec<Warning>,
    /// What was looked at last for this step, and what the guest told of it.
    looked: RefCell<Option<(PathFactsParams, PathFactsResult)>>,
}

impl<'a> RemoteExecutor<'a> {
    pub(super) fn new(guest: &'a Guest, terms: Terms<'a>) -> Self {
        Self { guest, terms, step: 0, noticed: Vec::new(), looked: RefCell::default() }
    }

    fn key(&self) -> String {
        format!("{}-{}", self.terms.turn, self.step)
    }

    /// What the guest tells of an operation: the same is asked for once before a step.
    fn look_at(&self, operation: &Operation, standing: bool) -> Result<PathFactsResult> {
        let asked = PathFactsParams { operation: without_content(operation), standing };
        let known = self
            .looked
            .take()
            .filter(|(of, _)| of.operation == asked.operation && (of.standing || !asked.standing));
        let (asked, looked) = match known {
            Some(known) => known,
            None => {
                let looked: PathFactsResult = self.guest.ask("look", &asked)?;
                (asked, looked)
            }
        };
        self.looked.replace(Some((asked, looked.clone())));
        Ok(looked)
    }

    /// What an operation came to, as far as that can be believed; what was noticed is kept.
    fn take(&mut self, done: Done, operation: &Operation) -> Detail {
        let done = sane::done(done, operation, self.terms.output_limit);
        self.noticed = done.warnings;
        done.detail
    }

    /// Has the step noted that comes next, and asks for it.
    fn ask_for(
        &mut self,
        operation: &Operation,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Option<Detail>> {
        let (key, state) = (self.key(), self.guest.state()?);
        before(WriteAhead::Effects(&[Effect::Guest { key: key.clone(), state: state.clone() }]))?;
        self.carry_out(operation, opens, &key, state)
    }

    /// Asks for a step; the same twice is the same step. None where nothing was done, since what the
    /// guest knows of steps is not known by this `state` any more.
    fn carry_out(
        &mut self,
        operation: &Operation,
        opens: Grant,
        key: &str,
        state: Option<String>,
    ) -> Result<Option<Detail>> {
        let mut operation = operation.clone();
        let mut patience = PATIENCE;
        if let Operation::Run(run) = &mut operation {
            let given = (self.terms.timeout)(run.wanted_timeout());
            run.timeout = Some(given);
            patience = given + GRACE;
        }
        // A session that was over may have been taken up again.
        self.guest.over.borrow_mut().retain(|own| *own != self.terms.own);
        let asked = StepParams {
            key: key.to_owned(),
            operation,
            protected: opens.protected,
            repository: opens.repository,
            network: self.terms.network,
            output_limit: self.terms.output_limit,
            state,
            own: Some(self.terms.own.clone()),
            settled: self.guest.settled.take(),
        };
        let state = self.guest.ask_until::<State>("step", &asked, &asked.key, patience);
        if matches!(state, Ok((Ok(State::Done(_)), _))) {
            self.guest.settled.borrow_mut().push(key.to_owned());
        } else {
            // It may not have heard of them.
            self.guest.settled.borrow_mut().extend(asked.settled.iter().cloned());
        }
        let (state, broke) = state?;
        Ok(Some(match state {
            Ok(State::Done(done)) => {
                let detail = self.take(done, &asked.operation);
                if broke {
                    self.noticed.push(Warning::new(WarningKind::Guest, ASKED_AGAIN));
                }
                detail
            }
            Ok(State::Unknown | State::Running) => {
                let why = "a step that was asked for is not done";
                return Err(self.guest.nonsense("step", why));
            }
            // What it came to, if it was begun, will be told later.
            Err(RpcError { code: RpcError::LATER, message }) => {
                return Err(Error::guest(&self.guest.label(), &sane::line(&message)));
            }
            // Those that were asked before may have begun it, and are not to be had again.
            Err(RpcError { code: RpcError::OTHER, .. }) if broke => lost(&asked.operation),
            Err(RpcError { code: RpcError::OTHER, .. }) => return Ok(None),
            // It was not understood, so nothing was done.
            Err(RpcError { code: RpcError::PARAMS, message, .. }) => not_done(message),
            // It was refused now; but where it is asked for again it may have been begun before.
            Err(RpcError { message, .. }) => {
                let effect = Effect::Guest { key: key.to_owned(), state: asked.state.clone() };
                match self.left(&effect, &asked.operation)? {
                    Left::Done(done) => {
                        self.noticed = done.warnings;
                        done.detail
                    }
                    Left::Undone => not_done(message),
                    Left::Lost => lost(&asked.operation),
                }
            }
        }))
    }
}

impl Executor for RemoteExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        opens: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        self.looked.take();
        match operation {
            Operation::Message { .. }
            | Operation::Done { .. }
            | Operation::Read { reading: Reading::Later(_) | Reading::Definition(_), .. } => {
                return Ok(told(operation));
            }
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let limit = self.terms.read_limit.min(READ_LIMIT);
                let read = self.guest.read(path, limit.saturating_add(1))?;
                let room = &mut self.terms.read_room;
                let given = read.and_then(|file| file.whole(*encoding, limit, room));
                return Ok(given.unwrap_or_else(Detail::Failed));
            }
            Operation::Run(run) => {
                if let Some(fault) = fault_of(run) {
                    return Ok(Failure::execution(fault).into());
                }
            }
            Operation::List { .. } | Operation::Search { .. } => {
                let key = uuid::Uuid::new_v4().simple().to_string();
                let files = self.terms.files.as_ref().map(|files| serde_json::json!(files));
                let operation = operation.clone();
                let asked = FindParams { operation, files, key: Some(key.clone()) };
                let (said, _) = self.guest.ask_until("find", &asked, &key, PATIENCE)?;
                let done = self.guest.given("find", said)?;
                return Ok(self.take(done, &asked.operation));
            }
            Operation::Create { .. }
            | Operation::Edit { .. }
            | Operation::Delete { .. }
            | Operation::Move { .. } => {}
        }
        let detail = match self.ask_for(operation, opens, before)? {
            Some(detail) => detail,
            None => {
                // It was made anew since it was asked. What it is now is journalled first.
                self.guest.about.take();
                let again = self.ask_for(operation, opens, before)?;
                let why = "it does not know itself by the name that it has just told";
                again.ok_or_else(|| self.guest.nonsense("step", why))?
            }
        };
        if let (Operation::Run(run), Detail::Ran(execution)) = (operation, &detail)
            && let (Ending::TimedOut(given), Some(asked)) = (&execution.ending, run.timeout)
        {
            self.noticed.extend(shorter_than_asked(*given, asked));
        }
        Ok(detail)
    }

    fn noticed(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.noticed)
    }

    fn at(&mut self, step: usize) {
        self.step = step;
        self.looked.take();
    }

    fn walk(&self) -> Result<Walk> {
        self.guest.walk()
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        self.guest.read_part(path, part)
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        if operation.path().is_none() {
            return Ok(None);
        }
        // An operation with a path is always looked at: else its path would go unjudged.
        let Some(mut look) = self.look_at(operation, false)?.look else {
            return Err(self.guest.nonsense("look", "the path was not looked at"));
        };
        // Who looks at a move looks at both ends: else one would go unjudged.
        if matches!(operation, Operation::Move { .. }) != look.moved.is_some() {
            return Err(self.guest.nonsense("look", "not both ends of a move were looked at"));
        }
        if let Some(moved) = &mut look.moved {
            moved.files.truncate(MOVED_FILES);
        }
        look.size = look.size.map(sane::size);
        Ok(Some(look))
    }

    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        match operation {
            Operation::Run(run) if run.cwd.is_none() => Ok(None),
            Operation::Message { .. } | Operation::Done { .. } => Ok(None),
            _ => Ok(self.look_at(operation, false)?.place),
        }
    }

    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        match operation {
            Operation::Create { .. }
            | Operation::Edit { .. }
            | Operation::Delete { .. }
            | Operation::Move { .. } => Ok(self.look_at(operation, true)?.standing),
            _ => Ok(None),
        }
    }

    fn left(&mut self, effect: &Effect, operation: &Operation) -> Result<Left> {
        let Effect::Guest { key, state } = effect else { return Ok(Left::Lost) };
        let asked = ResultParams { key: key.clone(), state: state.clone() };
        loop {
            let told = match self.guest.exchange("result", &asked)? {
                Err(RpcError { code: RpcError::OTHER, .. }) => return Ok(Left::Lost),
                Err(RpcError { message, .. }) => {
                    return Err(Error::guest(&self.guest.label(), &sane::line(&message)));
                }
                Ok(told) => told,
            };
            match told {
                State::Unknown => return Ok(Left::Undone),
                State::Done(done) => {
                    let mut done = sane::done(done, operation, self.terms.output_limit);
                    done.warnings.push(Warning::new(WarningKind::Guest, ASKED_AGAIN));
                    return Ok(Left::Done(Box::new(done)));
                }
                State::Running if self.guest.is_interrupted() => return Err(Error::interrupted()),
                State::Running => std::thread::sleep(AGAIN),
            }
        }
    }

    fn interrupted(&self) -> bool {
        self.guest.is_interrupted()
    }
}

/// What a step came to that a guest refuses, in its words.
fn not_done(message: String) -> Detail {
    sane::failure(Failure::execution(message)).into()
}

/// Said where the connection broke while a step was carried out.
const ASKED_AGAIN: &str = "the guest went away, or deaddrop did, while this was carried out; what it came to was asked for afterwards";
