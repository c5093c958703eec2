//! Errors for the person. Each contains the cause, the path and what to do next. Failures that concern the model are
//! not errors but outcomes (see `protocol`).

use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::text::shell_word;

/// `std::result::Result` with deaddrop's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error for the person at the terminal.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<ErrorDetails>);

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct ErrorDetails {
    message: String,
    /// Owned only if another process made the error.
    code: Cow<'static, str>,
    status: u8,
    source: Option<io::Error>,
}

impl Error {
    fn new(code: &'static str, status: u8, message: String) -> Self {
        Self(Box::new(ErrorDetails { message, code: code.into(), status, source: None }))
    }

    /// A failed system call. `doing` is a verb ("read", "write"), and `path` its object.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let code = if is_full(&source) { "disk-full" } else { "io" };
        let message = format!("cannot {doing} {}: {source}{}", path.display(), advice(&source));
        let mut error = Self::new(code, 1, message);
        error.0.source = Some(source);
        error
    }

    /// An invalid setting. `origin` is the place that set it (`deaddrop.toml:3`, a variable, a flag).
    pub fn config(origin: impl Display, problem: impl Display) -> Self {
        Self::new("invalid-setting", 2, format!("{origin}: {problem}"))
    }

    /// Another process is using the project. `serves` means that it accepts replies from the inbox until it is stopped.
    pub fn locked(base: &Path, pid: Option<u32>, serves: bool) -> Self {
        let holder = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let (works, advice) = if serves {
            ("serving", "stop it first, or save replies in its inbox")
        } else {
            (
                "at work in",
                "wait until it has ended, or stop it: it takes no replies from the inbox",
            )
        };
        let message = format!("another deaddrop{holder} is {works} {}; {advice}", base.display());
        Self::new("locked", 4, message)
    }

    /// The project's folder was moved or removed while deaddrop was using it.
    pub fn moved(project: &Path) -> Self {
        let message = format!(
            "the project {} was moved or removed; `deaddrop resume` in its new place continues",
            project.display()
        );
        Self::new("project-moved", 1, message)
    }

    /// There is no session with this ID.
    pub fn no_session(id: &str, sessions: &Path) -> Self {
        let sessions = sessions.display();
        let message = format!("no session '{id}' in {sessions}; `deaddrop status` lists them");
        Self::new("no-session", 5, message)
    }

    /// There is no run with this name.
    pub fn no_run(run: &str, sessions: &Path) -> Self {
        let sessions = sessions.display();
        let message = format!(
            "no run '{run}' in {sessions}; a run's events message contains its name, run_…"
        );
        Self::new("no-run", 5, message)
    }

    /// There is no open session. `complete` is the newest complete one.
    pub fn no_open_session(sessions: &Path, complete: Option<String>) -> Self {
        let reopening = complete.map_or_else(String::new, |id| {
            format!(", or reopen {id}, the newest: `deaddrop resume {id} --reopen TEXT`")
        });
        let message = format!(
            "no open session in {}; start one with `deaddrop new \"your task\"`{reopening}",
            sessions.display()
        );
        Self::new("no-open-session", 5, message)
    }

    /// There is no project at `here` or above it.
    pub fn no_project(here: &Path) -> Self {
        let message = format!(
            "there is no project here ({}) or in a folder above; `deaddrop init` sets one up, `deaddrop new \"your task\"` starts a session here, and -C DIR names a project",
            here.display()
        );
        Self::new("no-project", 5, message)
    }

    /// Several sessions are open, so the person must name one.
    pub fn several_sessions(ids: &[String]) -> Self {
        let ids = ids.join(", ");
        let message = format!("several sessions are open ({ids}); name one with --session ID");
        Self::new("several-sessions", 2, message)
    }

    /// A session file that cannot be parsed.
    pub fn damaged_session(path: &Path, problem: impl Display) -> Self {
        let message = format!(
            "{} is damaged: {problem}; restore it from a backup, or move it away to continue without that session",
            path.display()
        );
        Self::new("damaged-session", 1, message)
    }

    /// A journal in which a record was changed after it was written.
    pub fn damaged_journal(path: &Path, offset: usize) -> Self {
        let message = format!(
            "the journal {} is damaged at byte {offset}, so nothing is done on top of it; restore it from a backup, or move it away to continue from the session files (a reply that was being executed is then set aside)",
            path.display()
        );
        Self::new("damaged-journal", 1, message)
    }

    /// A journal with a record that is unknown to this version. Records are counted from 0.
    pub fn unknown_record(path: &Path, record: usize) -> Self {
        let message = format!(
            "record {record} of the journal {} is unknown to this version of deaddrop; a newer version may read it",
            path.display()
        );
        Self::new("unknown-journal", 1, message)
    }

    /// A command of an earlier process is still running. `lock` is the file that it keeps locked.
    pub fn command_runs(lock: &Path) -> Self {
        let message = format!(
            "a command of a killed deaddrop is still running (it holds {}); end it, then run `deaddrop resume`",
            lock.display()
        );
        Self::new("command-still-running", 1, message)
    }

    /// The guest with this label cannot be reached, or violates the protocol.
    pub fn guest(guest: &str, why: &str) -> Self {
        let message = format!("the guest '{guest}' cannot be used: {why}");
        Self::new("guest-unavailable", 1, message)
    }

    /// Adds how to continue a turn whose guest is unavailable.
    #[must_use]
    pub fn within_turn(mut self) -> Self {
        if self.is("guest-unavailable") {
            self.0.message += "; nothing is lost: `deaddrop resume` continues when it is back (if it is gone for good, remove [guest]; the rest of the turn is then not executed)";
        }
        self
    }

    /// A file that cannot be used as a reply.
    pub fn no_reply(path: &Path, why: impl Into<String>) -> Self {
        Self::new("unreadable-reply", 1, format!("{}: {}", path.display(), why.into()))
    }

    /// The session is complete and must be reopened first.
    pub fn complete(id: &str) -> Self {
        let message =
            format!("session {id} is complete; `deaddrop resume {id} --reopen TEXT` reopens it");
        Self::new("session-complete", 2, message)
    }

    /// The session or run began in a different workspace from the current one. Both names come from
    /// [`Config::workspace_name`](crate::settings::Config::workspace_name). `moves` means that it can be moved.
    pub fn other_workspace(stem: &str, begun: &str, now: &str, moves: bool) -> Self {
        let moving = if moves {
            format!("; `deaddrop resume {stem} --here` moves it to '{now}' for good")
        } else {
            String::new()
        };
        let message = format!(
            "{stem} began in the workspace '{begun}', but the workspace is now '{now}'; use `--workspace-dir {}` (or workspace_dir in deaddrop.toml){moving}",
            shell_word(begun)
        );
        Self::new("other-workspace", 2, message)
    }

    /// No question waits for a decision. `about` is the question that the person asked for.
    pub fn nothing_pending(about: &str) -> Self {
        let about = if about.is_empty() { String::new() } else { format!(" about '{about}'") };
        let message =
            format!("nothing waits for a decision{about}; `deaddrop status` shows what does");
        Self::new("nothing-pending", 5, message)
    }

    /// The question cannot be answered permanently.
    pub fn not_for_good() -> Self {
        let message = "only a command that could be read, and that changes no protected names and no repository, can be approved for good; leave --always out";
        Self::new("not-for-good", 2, message.to_owned())
    }

    /// The person must first decide about another question.
    pub fn waits(message: String) -> Self {
        Self::new("decision-needed", 3, message)
    }

    /// The reason why nothing can be undone or shown.
    pub fn undo(why: impl Into<String>) -> Self {
        Self::new("cannot-undo", 1, why.into())
    }

    /// A mistake in the command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("usage", 2, message.into())
    }

    /// The person stopped the program.
    pub fn interrupted() -> Self {
        Self::new("interrupted", 130, "interrupted".to_owned())
    }

    /// Another program already listens on a socket or port.
    pub fn listens(place: impl Into<String>) -> Self {
        let place = place.into();
        let message = format!(
            "another program already listens on {place}; stop it, or choose another address (port 0: any that is free)"
        );
        Self::new("address-in-use", 1, message)
    }

    /// An error from another process, with its code and exit status.
    pub fn relayed(message: String, code: impl Into<String>, status: u8) -> Self {
        let mut error = Self::new("", status, message);
        error.0.code = Cow::Owned(code.into());
        error
    }

    /// A failure outside deaddrop, described in a sentence.
    pub fn failed(message: String) -> Self {
        Self::new("failed", 1, message)
    }

    /// Replaces the code by a more specific one.
    #[must_use]
    pub fn with_code(mut self, exact: &'static str) -> Self {
        self.0.code = exact.into();
        self
    }

    /// Adds advice for the person.
    #[must_use]
    pub fn with_advice(mut self, advice: &str) -> Self {
        self.0.message += &format!("; {advice}");
        self
    }

    /// Adds that it is unknown whether the person's message was stored.
    #[must_use]
    pub fn with_uncertain_outcome(mut self) -> Self {
        self.0.message += "; your words may have been kept: check the newest outbox and `deaddrop status ID --json` before you repeat them";
        self.0.status = 1;
        self.with_code("in-doubt")
    }

    /// Whether this process created the error with this code.
    fn is(&self, code: &str) -> bool {
        matches!(self.0.code, Cow::Borrowed(own) if own == code)
    }

    /// Whether the error means that there is no such question, or no longer.
    pub fn is_nothing_pending(&self) -> bool {
        self.is("nothing-pending")
    }

    /// Whether the person stopped the program. Such an error is not printed.
    pub fn is_interrupted(&self) -> bool {
        self.is("interrupted")
    }

    /// Whether there is no session to continue.
    pub fn is_no_open_session(&self) -> bool {
        self.is("no-open-session")
    }

    /// Whether another process is using the project.
    pub fn is_locked(&self) -> bool {
        self.is("locked")
    }

    /// Whether a disk has no space left for bytes or files.
    pub fn is_disk_full(&self) -> bool {
        self.is("disk-full")
    }

    /// Whether the disk is full or failing, so that the next call will also fail.
    pub fn is_disk_failure(&self) -> bool {
        self.0.source.as_ref().is_some_and(|source| {
            // EIO has no `ErrorKind`.
            is_full(source)
                || source.kind() == io::ErrorKind::ReadOnlyFilesystem
                || source.raw_os_error() == Some(libc::EIO)
        })
    }

    /// The exit code of `deaddrop` for this error, as listed in `--help`.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_status())
    }

    /// The exit status as a number.
    pub fn exit_status(&self) -> u8 {
        self.0.status
    }

    /// A stable name for programs, as in `--json`. The message may change, but not the code.
    pub fn code(&self) -> &str {
        &self.0.code
    }
}

fn is_full(source: &io::Error) -> bool {
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Advice for the most common failures.
pub(crate) fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; check its owner and permissions",
        io::ErrorKind::ReadOnlyFilesystem => "; the file system is read-only",
        _ if is_full(source) => {
            "; make room (`df -h` and `df -i` show what is full), then run `deaddrop resume`"
        }
        _ => "",
    }
}
