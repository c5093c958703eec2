//! The library's entry for other programs. A space is a workspace with a policy, in which operations messages are run
//! (agent-spaces-operations-guide, "Batching Operations").

use std::path::Path;

use crate::engine::{Clock, Engine};
use crate::error::{Error, Result};
use crate::outbox;
use crate::protocol::operations::{Decision, EventsMessage};
use crate::protocol::read_run;
use crate::session::{ApprovalDecision, Session, run_id};
use crate::settings::{Config, Layer, RUN_POLICY};
use crate::watch::Stop;

/// A project whose workspace operations messages change.
///
/// It has the project's lock, so no other process can serve the project meanwhile. Journal, recovery and sandbox work as
/// for replies.
///
/// # Examples
/// ```
/// use deaddrop::Space;
/// use deaddrop::protocol::operations::Status;
///
/// let folder = tempfile::tempdir()?;
/// // The program that runs commands; this message has none.
/// let mut space = Space::open(folder.path(), "deaddrop".as_ref())?;
/// let run = space.run(
///     r#"{"protocolVersion": "1.0", "operations": [
///         {"type": "createFile", "path": "src/a.txt", "content": "one\n"},
///         {"type": "editFile", "path": "src/a.txt",
///          "edits": [{"oldContent": "one", "newContent": "two"}]},
///         {"type": "readFile", "path": "src/a.txt"},
///         {"type": "readFile", "path": "b.txt"}
///     ]}"#,
/// )?;
/// assert_eq!(run.status, Status::Completed);
/// let succeeded: Vec<_> = run.events.iter().map(|event| event.success).collect();
/// assert_eq!(succeeded, [Some(true), Some(true), Some(true), Some(false)]);
/// assert_eq!(std::fs::read_to_string(folder.path().join("workspace/src/a.txt"))?, "two\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// An operation that needs approval stops the run until there is a decision:
///
/// ```
/// use deaddrop::Space;
/// use deaddrop::protocol::operations::{Decision, EventType, Status};
///
/// let folder = tempfile::tempdir()?;
/// let mut space = Space::open(folder.path(), "deaddrop".as_ref())?.with_policy("permissive")?;
/// let run = space.run(
///     r#"{"protocolVersion": "1.0", "operations": [
///         {"type": "shell", "id": "cleanup-1", "command": "rm -rf temp/*"},
///         {"type": "message", "content": "Done"}]}"#,
/// )?;
/// assert_eq!(run.status, Status::AwaitingApproval);
///
/// space.decide(&run.run_id, "cleanup-1", Decision::Denied, Some("not today"))?;
/// let run = space.resume(&run.run_id)?;
/// assert_eq!(run.status, Status::Completed);
/// let types: Vec<_> = run.events.iter().map(|event| event.event_type).collect();
/// assert_eq!(types, [EventType::PolicyDenied, EventType::Message]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Space {
    engine: Engine,
    policy: String,
}

impl Space {
    /// Opens the space in `folder`, which must exist, and creates what is missing in it. Its settings are those of a
    /// project. `helper` is the program that runs commands. Its `main` must begin with
    /// [`dispatch`](crate::runner::sandbox::dispatch), as that of an installed `deaddrop` does.
    ///
    /// # Errors
    /// The settings are invalid, or weaken the defaults without the person's consent (`deaddrop config allow`); something
    /// cannot be created, or another process serves the folder.
    pub fn open(folder: &Path, helper: &Path) -> Result<Self> {
        let config = Config::load_trusted(folder, Layer::default())?;
        let policy = config.policy.clone().unwrap_or_else(|| RUN_POLICY.to_owned());
        let mut engine = Engine::open(config, Clock::default(), Stop::default(), None, &mut ())?;
        engine.set_command_helper(helper);
        Ok(Self { engine, policy })
    }

    /// Sets the policy of later runs.
    ///
    /// # Errors
    /// There is no policy of that name.
    pub fn with_policy(mut self, name: &str) -> Result<Self> {
        self.engine.config.policy(name)?;
        name.clone_into(&mut self.policy);
        Ok(self)
    }

    /// Carries out the operations of a message, in order. An operation that fails does not stop those after it; one
    /// that needs approval does. The text is read as by `deaddrop ops run`. If it is not a message, the result is an
    /// `error` event.
    ///
    /// # Errors
    /// Only errors of the machine; all others are events. A begun run is finished when the space is opened again.
    pub fn run(&mut self, message: &str) -> Result<EventsMessage> {
        let policy = self.engine.config.policy(&self.policy)?;
        let turn = self.engine.run(read_run(message).steps, policy, None, &mut ())?;
        Ok(run_events(&turn.session))
    }

    /// Decides about the operation that a waiting run asks about. The decision counts once, for the operation and the
    /// files as they are now. [`resume`](Self::resume) continues the run.
    ///
    /// # Errors
    /// There is no such run, or it does not ask about that operation.
    pub fn decide(
        &mut self,
        run: &str,
        operation: &str,
        decision: Decision,
        reason: Option<&str>,
    ) -> Result<()> {
        let decision = decision_about(&self.load(run)?, operation, decision, reason)?;
        self.engine.decide(run, decision, &mut ()).map(drop)
    }

    /// Continues a run after a decision, and returns its new events. Returns the last events again if there is no decision,
    /// or if the run is complete.
    ///
    /// # Errors
    /// There is no such run, or an error as for [`run`](Self::run).
    pub fn resume(&mut self, run: &str) -> Result<EventsMessage> {
        self.load(run)?;
        Ok(run_events(&self.engine.resume_run(run, &mut ())?.session))
    }

    fn load(&self, run: &str) -> Result<Session> {
        match run_id(run) {
            Some(_) => self.engine.store.load_stem(run),
            None => Err(Error::no_run(run, &self.engine.config.sessions)),
        }
    }
}

/// The decision about the operation that a run asks about.
///
/// # Errors
/// The run does not ask about that operation.
pub fn decision_about(
    run: &Session,
    operation: &str,
    decision: Decision,
    reason: Option<&str>,
) -> Result<ApprovalDecision> {
    let question = run.question().filter(|question| question.id == operation);
    Ok(ApprovalDecision {
        question: question.ok_or_else(|| Error::nothing_pending(operation))?.clone(),
        approved: decision == Decision::Approved,
        further: false,
        reason: reason.map(str::to_owned),
    })
}

/// The present events of a run.
pub fn run_events(run: &Session) -> EventsMessage {
    outbox::waiting(run).unwrap_or_else(|| outbox::events(run))
}
