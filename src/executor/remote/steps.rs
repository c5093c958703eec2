//! Carries out operations in a guest. Each step has a key that is journalled before it is requested.

use std::cell::RefCell;

use super::{GRACE, Guest, GuestTurn, POLL_INTERVAL, REQUEST_TIMEOUT, sanitize};
use crate::error::{Error, Result};
use crate::executor::{
    Executor, InterruptedStep, WriteAhead, command_fault, has_effect, immediate_result,
    timeout_warning, unknown_result,
};
use crate::policy::Grant;
use crate::protocol::jsonrpc::{
    Done, FindParams, PathFactsParams, PathFactsResult, READ_LIMIT, ResultParams, RpcError, State,
    StepParams, without_content,
};
use crate::protocol::{
    Detail, Digest, Effect, Ending, Failure, Operation, Part, Reading, RelPath, Warning,
    WarningKind,
};
use crate::workspace::{Contents, MOVED_FILES, PathFacts};

/// Carries out the operations of a turn in a guest.
pub(super) struct RemoteExecutor<'a> {
    guest: &'a Guest,
    turn: GuestTurn<'a>,
    /// The number of the step.
    step: usize,
    warnings: Vec<Warning>,
    /// The last request for path facts in this step, and its result.
    path_facts: RefCell<Option<(PathFactsParams, PathFactsResult)>>,
}

impl<'a> RemoteExecutor<'a> {
    pub(super) fn new(guest: &'a Guest, turn: GuestTurn<'a>) -> Self {
        Self { guest, turn, step: 0, warnings: Vec::new(), path_facts: RefCell::default() }
    }

    fn key(&self) -> String {
        format!("{}-{}", self.turn.turn, self.step)
    }

    /// Requests the path facts of an operation, once before each step.
    fn request_path_facts(
        &self,
        operation: &Operation,
        with_digest: bool,
    ) -> Result<PathFactsResult> {
        let params = PathFactsParams { operation: without_content(operation), with_digest };
        let known = self.path_facts.take().filter(|(known, _)| {
            known.operation == params.operation && (known.with_digest || !params.with_digest)
        });
        let (params, result) = match known {
            Some(known) => known,
            None => {
                let result: PathFactsResult = self.guest.request("look", &params)?;
                (params, result)
            }
        };
        self.path_facts.replace(Some((params, result.clone())));
        Ok(result)
    }

    /// Sanitizes the result of an operation, and keeps its warnings.
    fn accept(&mut self, done: Done, operation: &Operation) -> Detail {
        let done = sanitize::done(done, operation, self.turn.output_limit);
        self.warnings = done.warnings;
        done.detail
    }

    /// Journals the next step, and requests it. A second request with the same key is for the same step. Returns None
    /// if nothing was done because the guest's record of steps has a new name.
    fn request_step(
        &mut self,
        operation: &Operation,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Option<Detail>> {
        let effect = Effect::Guest { key: self.key(), state: self.guest.state()? };
        before(WriteAhead::Effects(std::slice::from_ref(&effect)))?;
        let Effect::Guest { key, state } = effect.clone() else { return Ok(None) };
        let mut operation = operation.clone();
        let mut timeout = REQUEST_TIMEOUT;
        if let Operation::Run(run) = &mut operation {
            let given = (self.turn.timeout)(run.wanted_timeout());
            run.timeout = Some(given);
            timeout = given + GRACE;
        }
        // An ended session may have been resumed.
        self.guest.ended.borrow_mut().retain(|own| *own != self.turn.own);
        let params = StepParams {
            key,
            operation,
            protected: grant.protected,
            repository: grant.repository,
            network: self.turn.network,
            output_limit: self.turn.output_limit,
            state,
            own: Some(self.turn.own.clone()),
            settled: self.guest.settled.take(),
        };
        let state = self.guest.ask::<State>("step", &params, timeout, Some(&params.key));
        if matches!(state, Ok((Ok(State::Done(_)), _))) {
            self.guest.settled.borrow_mut().push(params.key.clone());
        } else {
            // The guest may not have received the settled keys.
            self.guest.settled.borrow_mut().extend(params.settled.iter().cloned());
        }
        let (state, broke) = state?;
        Ok(Some(match state {
            Ok(State::Done(done)) => {
                let detail = self.accept(done, &params.operation);
                if broke {
                    self.warnings.push(Warning::new(WarningKind::Guest, RECONNECTED));
                }
                detail
            }
            Ok(State::Unknown | State::Running) => {
                return Err(self.guest.invalid_answer("step", "the step was not carried out"));
            }
            // If the step was begun, its result can be requested later.
            Err(RpcError { code: RpcError::LATER, message }) => {
                return Err(Error::guest(&self.guest.label(), &sanitize::line(&message)));
            }
            // The former guest may have begun the step, and cannot be asked any more.
            Err(RpcError { code: RpcError::OTHER, .. }) if broke => {
                unknown_result(&params.operation)
            }
            Err(RpcError { code: RpcError::OTHER, .. }) => return Ok(None),
            // The parameters were rejected, so nothing was done.
            Err(RpcError { code: RpcError::PARAMS, message, .. }) => refused(message),
            // This request was refused, but an earlier one for the same step may have begun it.
            Err(RpcError { message, .. }) => {
                match self.inspect_interrupted(&effect, &params.operation)? {
                    InterruptedStep::Done(done) => {
                        self.warnings = done.warnings;
                        done.detail
                    }
                    InterruptedStep::NotDone => refused(message),
                    InterruptedStep::Unknown => unknown_result(&params.operation),
                }
            }
        }))
    }
}

impl Executor for RemoteExecutor<'_> {
    fn perform(
        &mut self,
        operation: &Operation,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> Result<()>,
    ) -> Result<Detail> {
        self.path_facts.take();
        match operation {
            Operation::Read { path, reading: Reading::Now(encoding) } => {
                let limit = self.turn.read_limit.min(READ_LIMIT);
                let read = self.guest.read(path, limit.saturating_add(1))?;
                let room = &mut self.turn.read_room;
                let detail = read.and_then(|file| file.whole(*encoding, limit, room));
                return Ok(detail.unwrap_or_else(Detail::Failed));
            }
            Operation::Run(run) => {
                if let Some(fault) = command_fault(run) {
                    return Ok(Failure::execution(fault).into());
                }
            }
            Operation::List { .. } | Operation::Search { .. } => {
                let key = uuid::Uuid::new_v4().simple().to_string();
                let files = self.turn.files.as_ref().map(|files| serde_json::json!(files));
                let operation = operation.clone();
                let params = FindParams { operation, files, key: Some(key.clone()) };
                let (answer, _) = self.guest.ask("find", &params, REQUEST_TIMEOUT, Some(&key))?;
                let done = self.guest.require_success("find", answer)?;
                return Ok(self.accept(done, &params.operation));
            }
            _ if !has_effect(operation) => return Ok(immediate_result(operation)),
            _ => {}
        }
        let detail = match self.request_step(operation, grant, before)? {
            Some(detail) => detail,
            None => {
                // The guest was replaced since its last answer. Its new name must be journalled first.
                self.guest.about.take();
                let again = self.request_step(operation, grant, before)?;
                let why = "it rejects the name that it has just reported";
                again.ok_or_else(|| self.guest.invalid_answer("step", why))?
            }
        };
        if let (Operation::Run(run), Detail::Ran(execution)) = (operation, &detail)
            && let (Ending::TimedOut(given), Some(asked)) = (&execution.ending, run.timeout)
        {
            self.warnings.extend(timeout_warning(*given, asked));
        }
        Ok(detail)
    }

    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn set_step(&mut self, step: usize) {
        self.step = step;
        self.path_facts.take();
    }

    fn read(&self, path: &RelPath, part: Part) -> Result<Result<Contents, Failure>> {
        self.guest.read_part(path, part)
    }

    fn path_facts(&self, operation: &Operation) -> Result<Option<PathFacts>> {
        if operation.path().is_none() {
            return Ok(None);
        }
        // Without facts, the policy would not judge the path.
        let Some(mut facts) = self.request_path_facts(operation, false)?.facts else {
            return Err(self.guest.invalid_answer("look", "the facts of the path are missing"));
        };
        // Without the facts of a move, the policy would not judge the other path.
        if matches!(operation, Operation::Move { .. }) != facts.moved.is_some() {
            return Err(self.guest.invalid_answer("look", "the facts are not those of a move"));
        }
        if let Some(moved) = &mut facts.moved {
            moved.files.truncate(MOVED_FILES);
        }
        facts.size = facts.size.map(sanitize::size);
        Ok(Some(facts))
    }

    fn resolved_path(&self, operation: &Operation) -> Result<Option<RelPath>> {
        match operation {
            Operation::Run(run) if run.cwd.is_none() => Ok(None),
            Operation::Message { .. } | Operation::Done { .. } => Ok(None),
            _ => Ok(self.request_path_facts(operation, false)?.resolved_path),
        }
    }

    fn content_digest(&self, operation: &Operation) -> Result<Option<Digest>> {
        if !has_effect(operation) || operation.path().is_none() {
            return Ok(None);
        }
        Ok(self.request_path_facts(operation, true)?.content_digest)
    }

    fn inspect_interrupted(
        &mut self,
        effect: &Effect,
        operation: &Operation,
    ) -> Result<InterruptedStep> {
        let Effect::Guest { key, state } = effect else { return Ok(InterruptedStep::Unknown) };
        let params = ResultParams { key: key.clone(), state: state.clone() };
        loop {
            let (state, _) = self.guest.ask("result", &params, REQUEST_TIMEOUT, None)?;
            let state = match state {
                Err(RpcError { code: RpcError::OTHER, .. }) => return Ok(InterruptedStep::Unknown),
                Err(RpcError { message, .. }) => {
                    return Err(Error::guest(&self.guest.label(), &sanitize::line(&message)));
                }
                Ok(state) => state,
            };
            match state {
                State::Unknown => return Ok(InterruptedStep::NotDone),
                State::Done(done) => {
                    let mut done = sanitize::done(done, operation, self.turn.output_limit);
                    done.warnings.push(Warning::new(WarningKind::Guest, RECONNECTED));
                    return Ok(InterruptedStep::Done(Box::new(done)));
                }
                State::Running if self.guest.is_interrupted() => return Err(Error::interrupted()),
                State::Running => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn interrupted(&self) -> bool {
        self.guest.is_interrupted()
    }
}

/// The result of a step that a guest refuses, with its message.
fn refused(message: String) -> Detail {
    sanitize::failure(Failure::execution(message)).into()
}

/// The warning if the connection broke while a step was carried out.
const RECONNECTED: &str =
    "the connection to the guest was lost during this step; its result was requested afterwards";
