//! Reports outcomes as events ("Event Types", "Error Handling"): one event for each operation.
//!
//! A warning about an operation is part of its event (docs/operations.md). A warning that the outbox lacks room is an
//! `error` event of its own. A warning about the reply as a whole is also an `error` event of its own, without an ID.
//!
//! In cases that the specification does not cover:
//!
//! - A command that was ended by a signal has the exit code 128 + the signal's number, as in shells, and `error` says
//!   so.
//! - If it is unknown how a command ended, it has no exit code, and `error` says so.
//! - An operation that was never begun is an `error` of category `execution`. A failure of the machine has category
//!   `system`, and a message that is rejected as a whole has category `validation`. Both make the run's status `error`.

use std::time::Duration;

use serde::Serialize;

use super::{ErrorCategory, Event, EventType, EventsMessage, Status, UtcTime};
use crate::protocol::{
    CommandOutput, Detail, Ending, Execution, Failure, FailureKind, Kind, Mistake, Operation,
    Outcome, RelPath, Step, StepContent, Warning, WarningKind, code, tags,
};
use crate::text::{ascii_controls, count, visible_line};

/// Warnings about the reply as a whole rather than about the operation with which they are stored.
const ABOUT_REPLY: [WarningKind; 5] = [
    WarningKind::InventedResult,
    WarningKind::OtherDialect,
    WarningKind::ReplyLineUnreadable,
    WarningKind::TagsInElement,
    WarningKind::TagsInThoughts,
];
/// The guide's text for a command that is not in the policy's list. The program's name may follow.
pub const NOT_ALLOWED: &str = "Command not in allowed list";

/// Reports an outcome: the event of its operation, and events for warnings that fit nowhere else. `now` is the time if
/// the outcome has none.
pub fn events_of(outcome: &Outcome, now: &UtcTime) -> Vec<Event> {
    let asked = outcome.asked.as_ref();
    let report = Report {
        kind: outcome.kind,
        id: asked.and_then(|asked| asked.id.clone()),
        subject: asked.map(|asked| &*asked.about).filter(|about| !about.is_empty()),
        at: outcome.at.as_ref().unwrap_or(now).clone(),
    };
    let mut events = vec![report.event(&outcome.detail)];
    let (of_reply, of_operation): (Vec<_>, Vec<_>) =
        outcome.warnings.iter().partition(|warning| ABOUT_REPLY.contains(&warning.kind));
    for warning in of_operation {
        // It is not the operation's fault if the outbox lacks room.
        let is_own = warning.kind != WarningKind::Room;
        match is_own.then(|| warning_field(&mut events[0])).flatten() {
            Some(field) if field.is_empty() => field.clone_from(&warning.text),
            Some(field) => field.push_str(&format!("\n{}", warning.text)),
            None => events.push(report.warning(report.id.clone(), warning)),
        }
    }
    events.extend(of_reply.into_iter().map(|warning| report.warning(None, warning)));
    if let Detail::Ineffective { reason, .. } = &outcome.detail {
        events.push(report.error(ErrorCategory::Execution, reason.clone()));
    }
    events
}

/// The status of a run with these outcomes that does not wait for a decision.
pub fn status_of(outcomes: &[Outcome]) -> Status {
    let failed = |outcome: &Outcome| match &outcome.detail {
        Detail::Failed(
            Failure { mistake: Some(Mistake::TooMany), .. }
            | Failure { kind: FailureKind::System, .. },
        ) => true,
        Detail::Failed(Failure { kind: FailureKind::Invalid | FailureKind::CutOff, .. }) => {
            outcome.kind == Kind::Reply && outcome.asked.is_none()
        }
        _ => false,
    };
    if outcomes.iter().any(failed) { Status::Error } else { Status::Completed }
}

/// Reports that the user has to approve an operation ("Approval Flow"). `id` is the operation's own ID or a generated
/// one.
pub fn approval_required(step: &Step, id: &str, reason: &str, policy: &str, at: UtcTime) -> Event {
    let subject = match &step.asks {
        StepContent::Operation(Operation::Run(run)) => Some(("command", &*run.command)),
        StepContent::Operation(operation) => operation.path().map(|path| ("path", path.as_str())),
        StepContent::Invalid(_) => None,
    };
    let sent = step.asked.as_ref().map(|asked| &*asked.about).filter(|about| !about.is_empty());
    let subject = subject.map(|(key, lowered)| (key, sent.unwrap_or(lowered)));
    let details = subject.into_iter().chain([("policy", policy)]);
    let details = details.map(|(key, text)| (key.to_owned(), text.into())).collect();
    Event {
        event_type: EventType::ApprovalRequired,
        operation_id: Some(id.to_owned()),
        timestamp: at,
        operation_type: Some(code(type_of(step.kind()))),
        reason: Some(reason.to_owned()),
        details: Some(details),
        ..Event::default()
    }
}

/// Reports a text from the user.
pub fn user_message(text: &str, at: UtcTime) -> Event {
    let (event_type, content) = (EventType::UserMessage, Some(text.to_owned()));
    Event { event_type, timestamp: at, content, ..Event::default() }
}

/// Prints a message as JSON, with each event on its own indented line. All other lines begin with a brace or a bracket.
/// Characters that control a terminal, reorder text or are invisible are escaped, which does not change the message.
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::{parse_events_message, print};
/// let message = r#"{"protocolVersion":"1.0","runId":"run_a","status":"completed","events":[
///   {"type":"userMessage","timestamp":"2025-01-15T10:30:00Z","content":"a\u202eb"}
/// ]}
/// "#;
/// assert_eq!(print(&parse_events_message(message).unwrap()), message);
/// ```
pub fn print(message: &EventsMessage) -> String {
    let EventsMessage { run_id, status, events } = message;
    let lines: Vec<String> = events.iter().map(|event| format!("\n  {}", json(event))).collect();
    format!(
        "{{\"protocolVersion\":\"1.0\",\"runId\":{},\"status\":{},\"events\":[{}{}]}}\n",
        json(run_id),
        json(status),
        lines.join(","),
        if events.is_empty() { "" } else { "\n" }
    )
}

/// Writes a value as JSON on one line, with hazardous characters escaped.
fn json(value: &impl Serialize) -> String {
    // Values made of strings, numbers and objects can always be written.
    ascii_controls(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()))
}

/// The type of the event for an operation. The protocol has none for listings, searches and moves, so they are reported
/// like commands.
fn type_of(kind: Kind) -> EventType {
    match kind {
        Kind::Message | Kind::Done | Kind::Reply => EventType::Message,
        Kind::Create => EventType::CreateFile,
        Kind::Read => EventType::ReadFile,
        Kind::Edit => EventType::EditFile,
        Kind::Delete => EventType::DeleteFile,
        Kind::Run | Kind::List | Kind::Search | Kind::Move => EventType::Shell,
    }
}

/// The field of an event that a warning is added to: `error`, or the reason of a failure.
fn warning_field(event: &mut Event) -> Option<&mut String> {
    let field = match event.event_type {
        EventType::PolicyDenied => &mut event.reason,
        EventType::Error => &mut event.message,
        EventType::Message | EventType::UserMessage | EventType::ApprovalRequired => return None,
        _ => &mut event.error,
    };
    Some(field.get_or_insert_default())
}

/// The common data of all events about an operation.
struct Report<'a> {
    kind: Kind,
    id: Option<String>,
    /// The path or command as it was sent.
    subject: Option<&'a str>,
    at: UtcTime,
}

impl Report<'_> {
    fn event(&self, detail: &Detail) -> Event {
        let file = |event_type, path: &RelPath| self.file(event_type, path.as_str());
        match detail {
            Detail::Shown { .. } | Detail::Completed { .. } | Detail::Ineffective { .. } => {
                Event { success: Some(true), ..self.about(EventType::Message) }
            }
            Detail::Created { path, bytes, .. } => {
                Event { bytes_written: Some(*bytes), ..file(EventType::CreateFile, path) }
            }
            Detail::Edited { path, .. } => {
                Event { edits_applied: Some(1), ..file(EventType::EditFile, path) }
            }
            Detail::Replaced { path, edits, .. } => {
                Event { edits_applied: Some(*edits as u64), ..file(EventType::EditFile, path) }
            }
            Detail::Deleted { path } => file(EventType::DeleteFile, path),
            Detail::Read { path, content, encoding, size } => Event {
                content: Some(content.clone()),
                encoding: Some(*encoding),
                size: Some(*size),
                ..file(EventType::ReadFile, path)
            },
            Detail::ReadLater { path, .. } => Event {
                success: Some(false),
                error: Some("the file was not read at this point".to_owned()),
                ..file(EventType::ReadFile, path)
            },
            Detail::Moved { path, to, .. } => {
                self.listed(&format!("{path} {to}"), format!("Moved '{path}' to '{to}'"))
            }
            Detail::Listed { path, shown, .. } => {
                let subject = path.as_ref().map_or("", |path| path.as_str());
                self.listed(subject, shown.clone())
            }
            Detail::Found { pattern, .. } => {
                let (shown, more) = detail.listing().unwrap_or_default();
                let more = (more > 0).then(|| format!("… and {}\n", count(more, "more line")));
                self.listed(pattern, shown.into_owned() + &more.unwrap_or_default())
            }
            Detail::Ran(execution) => self.ran(execution),
            Detail::Unknown { reason } => {
                self.error(ErrorCategory::Execution, format!("not known: {reason}"))
            }
            Detail::Failed(failure) => self.failed(failure),
        }
    }

    fn failed(&self, failure: &Failure) -> Event {
        let Failure { kind, reason, suggestion, excerpt, mistake, .. } = failure;
        match kind {
            FailureKind::Invalid | FailureKind::CutOff => {
                self.error(ErrorCategory::Validation, reason.clone())
            }
            FailureKind::System => self.error(ErrorCategory::System, reason.clone()),
            FailureKind::NotRun => self.error(ErrorCategory::Execution, reason.clone()),
            FailureKind::Denied => {
                // The event repeats the command, so the reason does not need to name the program.
                let program = self.subject.and_then(|command| command.split_whitespace().next());
                let named = program.map(|it| format!("{NOT_ALLOWED}: {}", visible_line(it)));
                let is_plain = named.is_some_and(|named| named == *reason);
                Event {
                    operation_type: Some(code(type_of(self.kind))),
                    reason: Some(if is_plain { NOT_ALLOWED.to_owned() } else { reason.clone() }),
                    suggestion: suggestion.clone(),
                    ..self.about(EventType::PolicyDenied)
                }
            }
            FailureKind::Rejected if *mistake == Some(Mistake::PathRefused) => {
                self.own_failure(format!("REJECTED: {reason}"))
            }
            FailureKind::Rejected | FailureKind::Execution => {
                // Use the words of the specification, because agents may search for them.
                let mut error = match mistake {
                    Some(Mistake::FileNotFound) => "File not found".to_owned(),
                    Some(Mistake::FileExists) => "File already exists".to_owned(),
                    _ => reason.clone(),
                };
                if let (Some(Mistake::FileNotFound), Some(suggestion)) = (mistake, suggestion) {
                    error.push_str(&format!(": {suggestion}"));
                }
                if !excerpt.is_empty() {
                    let lines = tags::excerpt(excerpt, &mut excerpt.lines.len());
                    error.push_str(&format!(":\n{}", lines.trim_end()));
                }
                self.own_failure(error)
            }
        }
    }

    /// The event for a failure: that of the operation's own type, if this type can report failures.
    fn own_failure(&self, error: String) -> Event {
        let event = match type_of(self.kind) {
            EventType::Message => return self.error(ErrorCategory::Execution, error),
            EventType::Shell => self.shell(""),
            of_file => self.file(of_file, ""),
        };
        Event { success: Some(false), error: Some(error), ..event }
    }

    // An event contains the path or command as it was sent; if that is unknown, as it was read.

    fn file(&self, event_type: EventType, path: &str) -> Event {
        let path = self.subject.unwrap_or(path).to_owned();
        Event { path: Some(path), success: Some(true), ..self.about(event_type) }
    }

    fn shell(&self, command: &str) -> Event {
        let command = self.subject.unwrap_or(command);
        let command = match self.kind {
            // These operations are reported like commands, under the names of their tags.
            Kind::List | Kind::Search | Kind::Move => {
                format!("{} {command}", tags::name(self.kind)).trim_end().to_owned()
            }
            _ => command.to_owned(),
        };
        Event { command: Some(command), success: Some(true), ..self.about(EventType::Shell) }
    }

    fn listed(&self, subject: &str, stdout: String) -> Event {
        Event { stdout: Some(stdout), ..self.shell(subject) }
    }

    fn ran(&self, execution: &Execution) -> Event {
        let Execution { command, ending, output, duration } = execution;
        let (stdout, stderr) = match output {
            CommandOutput::Together(capture) => (capture.to_text(), None),
            CommandOutput::Apart { stdout, stderr } => (stdout.to_text(), Some(stderr.to_text())),
        };
        let exit_code = match ending {
            Ending::Exited(code) => Some(i64::from(*code)),
            Ending::Signalled(signal) => Some(128 + i64::from(*signal)),
            // As in the reference's example, and like the program `timeout`.
            Ending::TimedOut(_) => Some(124),
            Ending::Interrupted | Ending::Lost | Ending::Stopped(_) | Ending::NotStarted(_) => None,
        };
        // A command that never began wrote nothing. It is unknown what a lost command wrote.
        let ran = !matches!(ending, Ending::NotStarted(_) | Ending::Lost);
        let has_duration = matches!(ending, Ending::Exited(_)) || *duration > Duration::ZERO;
        let timed_out = matches!(ending, Ending::TimedOut(_));
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Event {
            success: Some(*ending == Ending::Exited(0)),
            exit_code,
            stdout: Some(stdout).filter(|text| ran || !text.is_empty()),
            stderr: stderr.filter(|text| ran || !text.is_empty()),
            duration_ms: has_duration.then_some(milliseconds),
            error: if timed_out { None } else { ending.in_words() },
            timed_out: timed_out.then_some(true),
            ..self.shell(command)
        }
    }

    fn error(&self, category: ErrorCategory, message: String) -> Event {
        let (category, message) = (Some(category), Some(message));
        Event { category, message, ..self.about(EventType::Error) }
    }

    /// A warning as a separate event.
    fn warning(&self, operation_id: Option<String>, warning: &Warning) -> Event {
        let category = match warning.kind {
            WarningKind::Guard | WarningKind::Asking => ErrorCategory::Policy,
            WarningKind::Timeout => ErrorCategory::Timeout,
            _ => ErrorCategory::Execution,
        };
        Event { operation_id, ..self.error(category, warning.text.clone()) }
    }

    /// An event about the operation, without the fields that are specific to its type.
    fn about(&self, event_type: EventType) -> Event {
        let (operation_id, timestamp) = (self.id.clone(), self.at.clone());
        Event { event_type, operation_id, timestamp, ..Event::default() }
    }
}
