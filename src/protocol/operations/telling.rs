//! How outcomes are told in this dialect: one event for each operation, and one more for each
//! warning ("Event Types", "Error Handling"). Fields that have nothing to say are left out.
//!
//! Where the texts are silent:
//!
//! - *A signal* ends a command with exit code 128 + its number, as shells report it, so that agents
//!   read it as they know it; `error` says that it was one.
//! - *A command of which it is not known how it ended* has no exit code, and says so in `error`.
//! - *What was never begun* is an `error` of category `execution`; a failure of the machine, one of
//!   category `system`, which makes the run's status `error`.
//! - *A message that is refused as a whole* is an `error` of category `validation`, with that status.
//! - *Both streams* of a command that ended by itself are always there, as in all examples.

use std::time::Duration;

use super::{
    ApprovalDetails, ApprovalRequiredEvent, CreateFileEvent, DeleteFileEvent, EditFileEvent,
    ErrorCategory, ErrorEvent, Event, MessageEvent, OperationType, PolicyDeniedEvent,
    ReadFileEvent, ShellEvent, Status, Succeeded, UserMessageEvent, UtcTime,
};
use crate::protocol::{
    Asks, Detail, Ending, Execution, Failure, FailureKind, Kind, Operation, Outcome, Output, Step,
    WarningSort, tags,
};

/// What is told of an outcome: what came of the operation, and an `error` for each warning. `now`
/// is the time where the outcome has none.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{UtcTime, events_of};
/// use deaddrop::protocol::{Detail, Dialect, Outcome, read};
/// let message = r#"{"protocolVersion": "1.0", "operations": [
///     {"type": "message", "id": "msg-1", "content": "Hello"}
/// ]}"#;
/// let step = &read(message, Dialect::Operations).steps[0];
/// let outcome = Outcome::of(step, Detail::Shown { text: "Hello".into() });
/// let now = UtcTime::parse("2025-01-15T10:30:00Z").unwrap();
/// assert_eq!(
///     serde_json::to_string(&events_of(&outcome, &now)).unwrap(),
///     r#"[{"type":"message","operationId":"msg-1","timestamp":"2025-01-15T10:30:00Z","success":true}]"#
/// );
/// ```
pub fn events_of(outcome: &Outcome, now: &UtcTime) -> Vec<Event> {
    let asked = outcome.asked.as_ref();
    let told = Told {
        kind: outcome.kind,
        id: asked.and_then(|asked| asked.id.clone()),
        about: asked.map(|asked| &*asked.about).filter(|about| !about.is_empty()),
        at: outcome.at.as_ref().unwrap_or(now).clone(),
    };
    let mut events = vec![told.event(&outcome.detail)];
    events.extend(outcome.warnings.iter().map(|warning| {
        let category = match warning.sort {
            WarningSort::Guard | WarningSort::Asking => ErrorCategory::Policy,
            WarningSort::Timeout => ErrorCategory::Timeout,
            _ => ErrorCategory::Execution,
        };
        told.error(category, warning.text.clone())
    }));
    events
}

/// Where a run stands that came to these outcomes, once nothing of it waits for the user.
pub fn status_of(outcomes: &[Outcome]) -> Status {
    let failed = |outcome: &Outcome| match &outcome.detail {
        Detail::Failed(Failure { kind: FailureKind::System, .. }) => true,
        Detail::Failed(Failure { kind: FailureKind::Invalid | FailureKind::CutOff, .. }) => {
            outcome.kind == Kind::Reply && outcome.asked.is_none()
        }
        _ => false,
    };
    if outcomes.iter().any(failed) { Status::Error } else { Status::Completed }
}

/// The user has to approve an operation ("Approval Flow"); `id` is its own, or one that was made up.
pub fn approval_required(step: &Step, id: &str, reason: &str, policy: &str, at: UtcTime) -> Event {
    let about = |sent: &str| match &step.asked {
        Some(asked) if !asked.about.is_empty() => asked.about.clone(),
        _ => sent.to_owned(),
    };
    let mut details = ApprovalDetails { policy: Some(policy.to_owned()), ..Default::default() };
    match &step.asks {
        Asks::Operation(Operation::Run(run)) => details.command = Some(about(&run.command)),
        Asks::Operation(operation) => {
            details.path = operation.path().map(|path| about(path.as_str()));
        }
        Asks::Invalid(_) => {}
    }
    Event::ApprovalRequired(ApprovalRequiredEvent {
        timestamp: at,
        operation_id: id.to_owned(),
        operation_type: name(step.kind()),
        reason: reason.to_owned(),
        details,
    })
}

/// The user said something.
pub fn user_message(text: &str, at: UtcTime) -> Event {
    Event::UserMessage(UserMessageEvent { timestamp: at, content: text.to_owned() })
}

fn name(kind: Kind) -> String {
    kind.operation_type().unwrap_or(OperationType::Message).name().to_owned()
}

/// What all events about an operation have.
struct Told<'a> {
    kind: Kind,
    id: Option<String>,
    about: Option<&'a str>,
    at: UtcTime,
}

impl Told<'_> {
    fn event(&self, detail: &Detail) -> Event {
        let mut event = match detail {
            Detail::Ran(execution) => return Event::Shell(self.ran(execution)),
            Detail::Failed(failure) => return self.failed(failure),
            Detail::Unknown { reason } => {
                return self.error(ErrorCategory::Execution, format!("not known: {reason}"));
            }
            Detail::ReadLater { path, .. } => {
                let error = "it was not read in its place".to_owned();
                return self.outcome_of(Kind::Read, path.as_str(), Some(error));
            }
            Detail::Shown { .. } | Detail::Completed { .. } => return self.message(),
            Detail::Created { path, .. } => self.outcome_of(Kind::Create, path.as_str(), None),
            Detail::Edited { path, .. } | Detail::Replaced { path, .. } => {
                self.outcome_of(Kind::Edit, path.as_str(), None)
            }
            Detail::Moved { path, to, .. } => {
                self.outcome_of(Kind::Move, &format!("Moved '{path}' to '{to}'"), None)
            }
            Detail::Listed { shown, .. } => self.outcome_of(Kind::List, shown, None),
            Detail::Found { .. } => {
                let shown = detail.listing().unwrap_or_default();
                self.outcome_of(Kind::Search, &shown, None)
            }
            Detail::Deleted { path } => self.outcome_of(Kind::Delete, path.as_str(), None),
            Detail::Read { path, .. } => self.outcome_of(Kind::Read, path.as_str(), None),
        };
        match (&mut event, detail) {
            (Event::CreateFile(event), Detail::Created { bytes, .. }) => {
                event.bytes_written = Some(*bytes);
            }
            (Event::EditFile(event), Detail::Edited { .. }) => event.edits_applied = Some(1),
            (Event::EditFile(event), Detail::Replaced { edits, .. }) => {
                event.edits_applied = Some(*edits as u64);
            }
            // Nothing was sent that a command could be named by.
            (Event::Shell(event), Detail::Found { pattern, .. }) if self.about.is_none() => {
                event.command = format!("SEARCH {pattern}");
            }
            (Event::Shell(event), Detail::Listed { path: Some(path), .. })
                if self.about.is_none() =>
            {
                event.command = format!("LIST_FILES {path}");
            }
            (Event::Shell(event), Detail::Moved { path, to, .. }) if self.about.is_none() => {
                event.command = format!("MOVE_FILE {path} {to}");
            }
            (Event::ReadFile(event), Detail::Read { content, encoding, size, .. }) => {
                event.content = Some(content.clone());
                event.encoding = Some(*encoding);
                event.size = Some(*size);
            }
            _ => {}
        }
        event
    }

    fn failed(&self, failure: &Failure) -> Event {
        let Failure { kind, reason, suggestion, excerpt, .. } = failure;
        match kind {
            FailureKind::Invalid | FailureKind::CutOff => {
                self.error(ErrorCategory::Validation, reason.clone())
            }
            FailureKind::System => self.error(ErrorCategory::System, reason.clone()),
            FailureKind::NotRun if self.kind == Kind::Reply => {
                self.error(ErrorCategory::Execution, reason.clone())
            }
            FailureKind::NotRun => {
                let why = reason.strip_prefix("Not carried out: ").unwrap_or(reason);
                self.error(ErrorCategory::Execution, format!("not carried out: {why}"))
            }
            FailureKind::Denied => Event::PolicyDenied(PolicyDeniedEvent {
                operation_id: self.id.clone(),
                timestamp: self.at.clone(),
                operation_type: name(self.kind),
                reason: self.denied_in_its_words(reason),
                suggestion: suggestion.clone(),
            }),
            FailureKind::Rejected => self.own(format!("REJECTED: {reason}")),
            FailureKind::Execution => {
                let mut told = in_its_words(reason);
                if !excerpt.is_empty() {
                    let lines = tags::excerpt(excerpt, &mut excerpt.lines.len());
                    told.push_str(&format!(":\n{}", lines.trim_end()));
                }
                self.own(told)
            }
        }
    }

    /// A reason in the guide's own words ("Command not in allowed list"); which command of a line it
    /// is that is not there is left out where it is the first.
    fn denied_in_its_words(&self, reason: &str) -> String {
        let first = self.about.and_then(|about| about.split_whitespace().next());
        match reason.split_once(": ") {
            Some((words @ "Command not in allowed list", name)) if first == Some(name) => {
                words.to_owned()
            }
            _ => reason.to_owned(),
        }
    }

    /// The operation's own event of a failure, where it has one that can fail.
    fn own(&self, error: String) -> Event {
        let about = self.about.unwrap_or_default();
        match self.kind {
            Kind::Message | Kind::Done | Kind::Reply => self.error(ErrorCategory::Execution, error),
            kind => self.outcome_of(kind, about, Some(error)),
        }
    }

    /// The event of an operation on a file, or of a command that was not run. It names what was
    /// sent, and only where that is not known `otherwise`.
    fn outcome_of(&self, kind: Kind, otherwise: &str, error: Option<String>) -> Event {
        let operation_id = self.id.clone();
        let timestamp = self.at.clone();
        let path = self.about.unwrap_or(otherwise).to_owned();
        let success = error.is_none();
        match kind {
            Kind::Create => Event::CreateFile(CreateFileEvent {
                operation_id,
                timestamp,
                path,
                success,
                error,
                bytes_written: None,
            }),
            Kind::Edit => Event::EditFile(EditFileEvent {
                operation_id,
                timestamp,
                path,
                success,
                edits_applied: None,
                error,
            }),
            Kind::Delete => {
                let event = DeleteFileEvent { operation_id, timestamp, path, success, error };
                Event::DeleteFile(event)
            }
            Kind::Read => Event::ReadFile(ReadFileEvent {
                operation_id,
                timestamp,
                path,
                success,
                content: None,
                encoding: None,
                size: None,
                error,
            }),
            // The guide has no events for these: they are told as what a command did.
            Kind::List | Kind::Search | Kind::Move => {
                let stdout = success.then(|| otherwise.to_owned());
                let command = format!(
                    "{} {}",
                    crate::protocol::tags::name(kind),
                    self.about.unwrap_or_default()
                );
                let command = command.trim_end().to_owned();
                Event::Shell(ShellEvent { command, success, stdout, error, ..self.shell("") })
            }
            Kind::Run => Event::Shell(ShellEvent { success, error, ..self.shell(otherwise) }),
            Kind::Message | Kind::Done | Kind::Reply => self.message(),
        }
    }

    fn ran(&self, execution: &Execution) -> ShellEvent {
        let Execution { command, ending, output, duration } = execution;
        let (stdout, stderr) = match output {
            Output::Together(capture) => (Some(capture.to_text()), None),
            Output::Apart { stdout, stderr } => (Some(stdout.to_text()), Some(stderr.to_text())),
        };
        let exit_code = match ending {
            Ending::Exited(code) => Some(i64::from(*code)),
            Ending::Signalled(signal) => Some(128 + i64::from(*signal)),
            // As `timeout` of the shell has it, and the specification's example.
            Ending::TimedOut(_) => Some(124),
            _ => None,
        };
        let by_itself = matches!(ending, Ending::Exited(_));
        let wrote = |text: &String| by_itself || !text.is_empty();
        let tells_time = by_itself || *duration > Duration::ZERO;
        let timed_out = matches!(ending, Ending::TimedOut(_));
        ShellEvent {
            success: *ending == Ending::Exited(0),
            exit_code,
            stdout: stdout.filter(wrote),
            stderr: stderr.filter(wrote),
            duration_ms: tells_time
                .then(|| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            error: if timed_out { None } else { ending.in_words() },
            timed_out: timed_out.then_some(true),
            ..self.shell(command)
        }
    }

    fn shell(&self, command: &str) -> ShellEvent {
        ShellEvent {
            operation_id: self.id.clone(),
            timestamp: self.at.clone(),
            command: self.about.unwrap_or(command).to_owned(),
            success: false,
            exit_code: None,
            stdout: None,
            stderr: None,
            duration_ms: None,
            error: None,
            timed_out: None,
        }
    }

    fn message(&self) -> Event {
        Event::Message(MessageEvent {
            operation_id: self.id.clone(),
            timestamp: self.at.clone(),
            success: Succeeded,
        })
    }

    fn error(&self, category: ErrorCategory, message: String) -> Event {
        Event::Error(ErrorEvent {
            operation_id: self.id.clone(),
            timestamp: self.at.clone(),
            category,
            message,
            details: None,
        })
    }
}

/// A reason in the specification's own words ("File not found", "File already exists"), which agents
/// may look for: the workspace words them for people, with the name that the event has in `path`.
fn in_its_words(reason: &str) -> String {
    for (end, words) in
        [("' not found", "File not found"), ("' already exists", "File already exists")]
    {
        // What can be done about it follows in brackets; the prompt says it, too.
        if let Some((_, more)) =
            reason.strip_prefix("File '").and_then(|rest| rest.rsplit_once(end))
            && (more.is_empty() || more.starts_with(" ("))
        {
            return words.to_owned();
        }
    }
    reason.to_owned()
}
