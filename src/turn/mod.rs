//! One turn: a reply's steps are permitted or refused, executed, and become outcomes.

mod permission;
mod run;

use std::collections::BTreeMap;

use crate::clock::Timestamp;
use crate::error::Result;
use crate::executor::{Executor, WriteAhead};
use crate::policy::Verdict;
use crate::protocol::{Operation, Outcome, Step};
use crate::session::{ApprovalDecision, FileVersions, Question, Session};

pub use permission::{judge, state_of};
pub use run::{STEP_LIMIT, known_outcomes, run};

/// Records what recovery needs. The default records nothing.
pub trait Ledger {
    /// Records `entry` before the effect of a step, counted from 0, and perhaps of those that follow it. After an error
    /// the step must have no effect.
    fn write_ahead(&mut self, _step: usize, _entry: WriteAhead<'_>) -> Result<()> {
        Ok(())
    }
    /// Records the outcome of a step.
    fn result(&mut self, _step: usize, _outcome: &Outcome) -> Result<()> {
        Ok(())
    }
}

impl Ledger for () {}

/// The input of a turn.
#[derive(Clone, Copy)]
pub struct TurnInput<'a> {
    /// The steps of the reply.
    pub steps: &'a [Step],
    /// The outcomes of steps that are not executed again, by step, counted from 0.
    pub known: &'a BTreeMap<usize, Outcome>,
    /// The person's decision about one of the steps.
    pub decision: Option<&'a ApprovalDecision>,
    /// The session before the turn.
    pub session: &'a Session,
    /// The policy's decision about an operation.
    pub judge: &'a dyn Fn(&Operation, &dyn Executor) -> Result<Verdict>,
    /// The ID of the question about a step, if the policy asks about it. None for a preview, which continues with a
    /// warning instead.
    pub question_id: Option<&'a dyn Fn(usize) -> String>,
    /// Why no step is executed, if that is clear from the beginning.
    pub stopped: Option<&'a str>,
    /// The clock.
    pub now: &'a dyn Fn() -> Timestamp,
}

/// The result of a turn.
#[derive(Debug)]
pub struct TurnResult {
    /// The outcomes of all steps, or of those before the one in question.
    pub outcomes: Vec<Outcome>,
    /// The question that the person has to answer before the turn continues.
    pub question: Option<Question>,
    /// The versions of files that the model will have seen, once it reads these outcomes.
    pub seen: FileVersions,
}
