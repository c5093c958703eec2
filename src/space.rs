//! A space, for other programs: a workspace, a policy, and runs of operations messages in it
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

/// A folder in which operations messages are carried out: a project, whose workspace they
/// touch and nothing else.
///
/// It holds the lock of the project, so nothing else can serve that meanwhile. Whatever is
/// journalled, recovered and confined for replies is so here.
///
/// # Examples
/// ```
/// use deaddrop::Space;
/// use deaddrop::protocol::operations::Status;
///
/// let folder = tempfile::tempdir()?;
/// // Commands would be run by this program; here are none.
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
/// An operation that the policy asks about stops the run, until somebody decides:
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
    /// Opens the space in `folder`, which must exist; what is missing in it is made. Its settings
    /// are those of a project. `helper` is the program that runs commands, one whose `main`
    /// begins with [`dispatch`](crate::runner::sandbox::dispatch): an installed `deaddrop`.
    ///
    /// # Errors
    /// The settings are wrong, or open something that the person has not agreed to (`deaddrop config
    /// allow`); something cannot be made, or another process serves the folder.
    pub fn open(folder: &Path, helper: &Path) -> Result<Self> {
        let config = Config::load_trusted(folder, Layer::default())?;
        let policy = config.policy.clone().unwrap_or_else(|| RUN_POLICY.to_owned());
        let mut engine = Engine::open(config, Clock::default(), Stop::default(), None, &mut ())?;
        engine.run_commands_by(helper);
        Ok(Self { engine, policy })
    }

    /// The same with another policy for runs that begin from here on.
    ///
    /// # Errors
    /// There is no policy of that name.
    pub fn with_policy(mut self, name: &str) -> Result<Self> {
        self.engine.config.policy(name)?;
        name.clone_into(&mut self.policy);
        Ok(self)
    }

    /// Carries out the operations of a message, in their order. An operation that fails does not
    /// stop those after it; one that has to be approved does. The text is read as `deaddrop ops run`
    /// reads it, and what is no message is answered by an `error` event.
    ///
    /// # Errors
    /// Only of the machine, where nothing can be told in events. What it had begun is finished when
    /// the space is opened again.
    pub fn run(&mut self, message: &str) -> Result<EventsMessage> {
        let policy = self.engine.config.policy(&self.policy)?;
        let turn = self.engine.run(read_run(message).steps, policy, None, &mut ())?;
        Ok(told(&turn.session))
    }

    /// Decides about the operation that a run waits with. It counts once, for that operation as it
    /// stands; [`resume`](Self::resume) goes on.
    ///
    /// # Errors
    /// There is no such run, or it does not wait with that operation.
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

    /// Goes on with a run that somebody has decided about, and gives its new events; of a run that
    /// nobody has, or that is over, those that it gave last.
    ///
    /// # Errors
    /// There is no such run, or as for [`run`](Self::run).
    pub fn resume(&mut self, run: &str) -> Result<EventsMessage> {
        self.load(run)?;
        Ok(told(&self.engine.resume_run(run, &mut ())?.session))
    }

    fn load(&self, run: &str) -> Result<Session> {
        match run_id(run) {
            Some(_) => self.engine.store.load_stem(run),
            None => Err(Error::no_run(run, &self.engine.config.sessions)),
        }
    }
}

/// The decision about the operation that a run waits with.
///
/// # Errors
/// It does not wait with that operation.
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

/// What a run tells as it stands.
pub fn told(run: &Session) -> EventsMessage {
    outbox::waiting(run).unwrap_or_else(|| outbox::events(run))
}
