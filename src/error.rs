//! What can go wrong for the person: every error names its cause, the path and what to do next.
//! What goes wrong for the model is not an error here but an outcome (see `protocol`).

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `std::result::Result` with deaddrop's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error for the person at the terminal.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<ErrorKind>);

#[derive(Debug, thiserror::Error)]
enum ErrorKind {
    #[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "{error}; the session's commands left much in {}, which you can remove",
        room.display()
    )]
    Full { error: Error, room: PathBuf },
    #[error(
        "{0}; your words may have been kept: check the newest outbox and `deaddrop status ID --json` before you repeat them"
    )]
    InDoubt(Error),
    #[error("{origin}: {problem}")]
    Config { origin: String, problem: String, code: &'static str },
    #[error(
        "another deaddrop{} is {} {}; {}",
        holder(*.pid),
        if *.serves { "serving" } else { "at work in" },
        base.display(),
        if *.serves { "stop it first, or drop the reply into its inbox" } else { "wait until it has ended, or stop it: it takes no replies from the inbox" }
    )]
    Locked { base: PathBuf, pid: Option<u32>, serves: bool },
    #[error("no session '{id}' in {}; `deaddrop status` lists them", sessions.display())]
    NoSession { id: String, sessions: PathBuf },
    #[error("no run '{run}' in {}; a run's events message contains its name, run_…", sessions.display())]
    NoRun { run: String, sessions: PathBuf },
    #[error("no open session in {}; start one with `deaddrop new \"your task\"`{}", sessions.display(), reopening(complete.as_deref()))]
    NoOpenSession { sessions: PathBuf, complete: Option<String> },
    #[error(
        "there is no project here ({}) or in a folder above; `deaddrop init` sets one up, `deaddrop new \"your task\"` starts a session here, and -C DIR names a project",
        .0.display()
    )]
    NoBase(PathBuf),
    #[error("several sessions are open ({}); name one with --session ID", .0.join(", "))]
    SeveralSessions(Vec<String>),
    #[error("{} is damaged: {problem}; restore it from a backup, or move it away to continue without that session", path.display())]
    DamagedSession { path: PathBuf, problem: String },
    #[error(
        "the journal {} is damaged at byte {offset}, so nothing is done on top of it; restore it from a backup, or move it away to continue from the session files (a reply that was being executed is then set aside)",
        path.display()
    )]
    DamagedJournal { path: PathBuf, offset: usize },
    #[error(
        "record {record} of the journal {} is unknown to this version of deaddrop; a newer version may read it",
        path.display()
    )]
    StrangeJournal { path: PathBuf, record: usize },
    #[error(
        "a command of a killed deaddrop is still running (it holds {}); end it, then run `deaddrop resume`",
        .0.display()
    )]
    CommandRuns(PathBuf),
    #[error("the guest '{guest}' cannot be used: {why}{}", going_on(*.within_turn))]
    Guest { guest: String, why: String, within_turn: bool },
    #[error("{}: {why}", path.display())]
    NoReply { path: PathBuf, why: String, code: &'static str },
    #[error("nothing waits for a decision{about}; `deaddrop status` shows what does")]
    NothingPending { about: String },
    #[error("{0}")]
    Waits(String),
    #[error("{why}")]
    Undo { why: String, code: &'static str },
    #[error("another program already listens on {0}; stop it, or choose another address")]
    Listens(String),
    #[error("{message}")]
    Relayed { message: String, code: String, status: u8 },
    #[error("{message}")]
    Usage { message: String, code: &'static str },
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A failed call of the system: `doing` is a verb ("read", "write"), `path` what it was about.
    pub fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        ErrorKind::Io { doing, path: path.to_owned(), source }.into()
    }

    /// A wrong setting; `origin` says where it stands (`deaddrop.toml:3`, a variable, a flag).
    pub fn config(origin: impl Into<String>, problem: impl Into<String>) -> Self {
        let (origin, problem) = (origin.into(), problem.into());
        ErrorKind::Config { origin, problem, code: "invalid-setting" }.into()
    }

    /// Another process is at work in the project; `serves` tells whether it takes replies from
    /// the inbox until it is stopped.
    pub fn locked(base: &Path, pid: Option<u32>, serves: bool) -> Self {
        ErrorKind::Locked { base: base.to_owned(), pid, serves }.into()
    }

    /// There is no session with that id.
    pub fn no_session(id: &str, sessions: &Path) -> Self {
        ErrorKind::NoSession { id: id.to_owned(), sessions: sessions.to_owned() }.into()
    }

    /// There is no run of that name.
    pub fn no_run(run: &str, sessions: &Path) -> Self {
        ErrorKind::NoRun { run: run.to_owned(), sessions: sessions.to_owned() }.into()
    }

    /// There is no incomplete session at all; `complete` is the newest that is complete.
    pub fn no_open_session(sessions: &Path, complete: Option<String>) -> Self {
        ErrorKind::NoOpenSession { sessions: sessions.to_owned(), complete }.into()
    }

    /// There is no project at `here` or above.
    pub fn no_base(here: &Path) -> Self {
        ErrorKind::NoBase(here.to_owned()).into()
    }

    /// A session has to be named, since several are open.
    pub fn several_sessions(ids: Vec<String>) -> Self {
        ErrorKind::SeveralSessions(ids).into()
    }

    /// A session file that cannot be read as one.
    pub fn damaged_session(path: &Path, problem: impl Into<String>) -> Self {
        ErrorKind::DamagedSession { path: path.to_owned(), problem: problem.into() }.into()
    }

    /// A journal with a record that was on disk and is not what it was.
    pub fn damaged_journal(path: &Path, offset: usize) -> Self {
        ErrorKind::DamagedJournal { path: path.to_owned(), offset }.into()
    }

    /// A journal with a record that has no meaning here; records are counted from 0.
    pub fn strange_journal(path: &Path, record: usize) -> Self {
        ErrorKind::StrangeJournal { path: path.to_owned(), record }.into()
    }

    /// A command from before does not end; `lock` is the file that it holds.
    pub fn command_runs(lock: &Path) -> Self {
        ErrorKind::CommandRuns(lock.to_owned()).into()
    }

    /// The guest, known by this to the person, cannot be reached, or does not speak as it should.
    pub fn guest(guest: &str, why: &str) -> Self {
        ErrorKind::Guest { guest: guest.to_owned(), why: why.to_owned(), within_turn: false }.into()
    }

    /// The same error, saying how a turn goes on that a guest went away from.
    #[must_use]
    pub fn within_turn(mut self) -> Self {
        if let ErrorKind::Guest { within_turn, .. } = &mut *self.0 {
            *within_turn = true;
        }
        self
    }

    /// A file given as a reply that cannot be one.
    pub fn no_reply(path: &Path, why: impl Into<String>) -> Self {
        ErrorKind::NoReply { path: path.to_owned(), why: why.into(), code: "unreadable-reply" }
            .into()
    }

    /// The session is complete, and would have to be taken up again first.
    pub fn complete(id: &str) -> Self {
        Self::usage(format!(
            "session {id} is complete; `deaddrop resume {id} --reopen TEXT` reopens it"
        ))
        .with_code("session-complete")
    }

    /// The session, or the run, began in another workspace than is set now; both as
    /// [`Config::workspace_name`](crate::settings::Config::workspace_name) has them. `moves`: whether it
    /// can be moved.
    pub fn other_workspace(stem: &str, begun: &str, now: &str, moves: bool) -> Self {
        let moving = if moves {
            format!("; `deaddrop resume {stem} --here` moves it to '{now}' for good")
        } else {
            String::new()
        };
        Self::usage(format!(
            "{stem} began in the workspace '{begun}', but the workspace is now '{now}'; use `--workspace-dir {}` (or workspace_dir in deaddrop.toml){moving}",
            crate::text::shell_word(begun)
        ))
        .with_code("other-workspace")
    }

    /// There is no question that a decision could be about; `about` names what was meant.
    pub fn nothing_pending(about: &str) -> Self {
        let about = if about.is_empty() { String::new() } else { format!(" about '{about}'") };
        ErrorKind::NothingPending { about }.into()
    }

    /// The question is none that the person can answer for good.
    pub fn not_for_good() -> Self {
        Self::usage("only a command that could be read, and that changes no protected names and no repository, can be approved for good; leave --always out")
            .with_code("not-for-good")
    }

    /// Whether there is no such question, or no more.
    pub fn is_nothing_pending(&self) -> bool {
        matches!(*self.0, ErrorKind::NothingPending { .. })
    }

    /// Nothing can be done before the person has decided about something else.
    pub fn waits(message: String) -> Self {
        ErrorKind::Waits(message).into()
    }

    /// Nothing is taken back, or shown, and why.
    pub fn undo(why: impl Into<String>) -> Self {
        ErrorKind::Undo { why: why.into(), code: "cannot-undo" }.into()
    }

    /// The same error, of a reply, an undo, a setting or the command line, with a more exact code.
    #[must_use]
    pub fn with_code(mut self, exact: &'static str) -> Self {
        if let ErrorKind::NoReply { code, .. }
        | ErrorKind::Undo { code, .. }
        | ErrorKind::Config { code, .. }
        | ErrorKind::Usage { code, .. } = &mut *self.0
        {
            *code = exact;
        }
        self
    }

    /// The command line does not say what is needed.
    pub fn usage(message: impl Into<String>) -> Self {
        ErrorKind::Usage { message: message.into(), code: "usage" }.into()
    }

    /// The person stopped the program.
    pub fn interrupted() -> Self {
        ErrorKind::Interrupted.into()
    }

    /// Whether the person stopped the program: said by nobody, since they know.
    pub fn is_interrupted(&self) -> bool {
        matches!(*self.0, ErrorKind::Interrupted)
    }

    /// Whether there is no session that could be gone on with.
    pub fn is_without_session(&self) -> bool {
        matches!(*self.0, ErrorKind::NoOpenSession { .. })
    }

    /// Whether the disk is full or failing: then the next call is no better than this one.
    pub fn is_of_the_disk(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let source = match &*self.0 {
            ErrorKind::Full { .. } => return true,
            ErrorKind::InDoubt(error) => return error.is_of_the_disk(),
            ErrorKind::Io { source, .. } => source,
            _ => return false,
        };
        let kind = source.kind();
        // EIO has no kind of its own; its number is the same on all systems that have it.
        (cfg!(unix) && source.raw_os_error() == Some(5))
            || matches!(kind, StorageFull | QuotaExceeded | ReadOnlyFilesystem)
    }

    /// Whether there is no room left on a disk, for bytes or for files.
    pub fn is_of_a_full_disk(&self) -> bool {
        let ErrorKind::Io { source, .. } = &*self.0 else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// The same error of a full disk, saying where room can be made.
    #[must_use]
    pub fn with_room_in(self, folder: &Path) -> Self {
        ErrorKind::Full { error: self, room: folder.to_owned() }.into()
    }

    /// The same error of what the person has said, where nobody can tell whether it is kept.
    #[must_use]
    pub fn in_doubt(self) -> Self {
        ErrorKind::InDoubt(self).into()
    }

    /// Whether another process is at work in the project.
    pub fn is_locked(&self) -> bool {
        matches!(*self.0, ErrorKind::Locked { .. })
    }

    /// Somebody else listens at a socket's path, or a port.
    pub fn listens(place: impl Into<String>) -> Self {
        ErrorKind::Listens(place.into()).into()
    }

    /// An error of another process, with its own code and exit status.
    pub fn relayed(message: String, code: impl Into<String>, status: u8) -> Self {
        ErrorKind::Relayed { message, code: code.into(), status }.into()
    }

    /// A failure of something outside of deaddrop, described in a sentence.
    pub fn failed(message: String) -> Self {
        Self::relayed(message, "failed", 1)
    }

    /// The exit code of `deaddrop` for this error, as `--help` lists them.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_status())
    }

    /// A stable name for programs, as `--json` prints it. The message may change, this does not.
    pub fn code(&self) -> &str {
        match &*self.0 {
            ErrorKind::Io { .. } if self.is_of_a_full_disk() => "disk-full",
            ErrorKind::Io { .. } => "io",
            ErrorKind::Full { .. } => "disk-full",
            ErrorKind::InDoubt(_) => "in-doubt",
            ErrorKind::Locked { .. } => "locked",
            ErrorKind::NoSession { .. } => "no-session",
            ErrorKind::NoRun { .. } => "no-run",
            ErrorKind::NoOpenSession { .. } => "no-open-session",
            ErrorKind::NoBase(_) => "no-project",
            ErrorKind::SeveralSessions(_) => "several-sessions",
            ErrorKind::DamagedSession { .. } => "damaged-session",
            ErrorKind::DamagedJournal { .. } => "damaged-journal",
            ErrorKind::StrangeJournal { .. } => "unknown-journal",
            ErrorKind::CommandRuns(_) => "command-still-running",
            ErrorKind::Guest { .. } => "guest-unavailable",
            ErrorKind::NothingPending { .. } => "nothing-pending",
            ErrorKind::Waits(_) => "decision-needed",
            ErrorKind::Listens(_) => "address-in-use",
            ErrorKind::Relayed { code, .. } => code,
            ErrorKind::NoReply { code, .. }
            | ErrorKind::Undo { code, .. }
            | ErrorKind::Config { code, .. }
            | ErrorKind::Usage { code, .. } => code,
            ErrorKind::Interrupted => "interrupted",
        }
    }

    /// The exit status as a number.
    pub fn exit_status(&self) -> u8 {
        match *self.0 {
            ErrorKind::Usage { .. } | ErrorKind::SeveralSessions(_) | ErrorKind::Config { .. } => 2,
            ErrorKind::Waits(_) => 3,
            ErrorKind::Locked { .. } => 4,
            ErrorKind::NoSession { .. }
            | ErrorKind::NoRun { .. }
            | ErrorKind::NoOpenSession { .. }
            | ErrorKind::NoBase(_)
            | ErrorKind::NothingPending { .. } => 5,
            ErrorKind::Interrupted => 130,
            ErrorKind::Relayed { status, .. } => status,
            _ => 1,
        }
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self(Box::new(kind))
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

fn going_on(within_turn: bool) -> &'static str {
    if within_turn {
        "; nothing is lost: `deaddrop resume` continues when it is back (if it is gone for good, remove [guest]; the rest of the turn is then not executed)"
    } else {
        ""
    }
}

fn reopening(complete: Option<&str>) -> String {
    complete.map_or_else(String::new, |id| {
        format!(", or reopen {id}, the newest: `deaddrop resume {id} --reopen TEXT`")
    })
}

/// What to do about the failures that a person meets most.
pub(crate) fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; check its owner and permissions",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; make room (`df -h` and `df -i` show what is full), then run `deaddrop resume`"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; the file system is read-only",
        _ => "",
    }
}
