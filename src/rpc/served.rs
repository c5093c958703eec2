//! What is served: a root folder, the commands that run in it, and an optional policy.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::steps::Steps;
use super::{Given, Service, scratch_dir};
use crate::error::{self, Error};
use crate::executor::{Executor, LocalExecutor, WriteAhead};
use crate::policy::{Ask, Denial, Grant, Verdict};
use crate::protocol::jsonrpc::{Done, Key, Method, Pong, RpcError, Written};
use crate::protocol::operations::Encoding;
use crate::protocol::{Failure, FailureKind, Operation, Reading, RelPath, Warning, WarningKind};
use crate::runner::Runner;
use crate::runner::sandbox::Tier;
use crate::settings::Policy;
use crate::turn;
use crate::watch::Stop;
use crate::workspace::Workspace;
use crate::workspace::protected::{Quarantine, SharedProtection};

/// The settings of a served folder.
pub struct Serving {
    /// Gives access to the files.
    pub workspace: Workspace,
    /// Runs the commands. It has no lock file, because commands run in parallel.
    pub runner: Runner,
    /// The timeout of a command started by `exec` or `exec_code`.
    pub timeout: Duration,
    /// The policy for operations, if there is one.
    pub policy: Option<Policy>,
    /// The scratch directory of commands. Its parent must exist.
    pub scratch_dir: PathBuf,
    /// deaddrop's own folder for this root, which must exist. It contains the results of steps and the quarantine
    /// for protected names.
    pub state: PathBuf,
    /// Reports whether the server should stop.
    pub stop: Stop,
}

/// A folder that is served.
pub struct Served {
    pub(super) serving: Serving,
    /// Whether protected names are guarded against commands. False if commands run with all rights of the user.
    pub(super) guarded: bool,
    /// The state of this protection, shared by all commands that run at once.
    pub(super) protection: SharedProtection,
    /// The steps of a host, by key.
    pub(super) steps: Steps,
    /// The tools found on this machine, cached at the first request.
    pub(super) tools: OnceLock<Vec<String>>,
    /// A counter of operations, used in the names of quarantine folders.
    count: AtomicU64,
}

impl Served {
    /// Determines how commands are confined, and gets ready for requests.
    ///
    /// # Errors
    /// deaddrop's own folder for this root does not exist, although commands are guarded.
    pub fn new(serving: Serving) -> error::Result<Self> {
        let tier = serving.runner.confinement(&serving.scratch_dir).tier;
        // If no sandbox is available, commands are refused, so protected names are safe.
        let guarded = tier != Tier::Off;
        if guarded {
            let state = &serving.state;
            state.read_dir().map_err(|e| Error::io("open the folder", state, e))?;
        }
        let steps = Steps::new(serving.state.clone());
        scratch_dir::clear_old(&serving.state);
        let (protection, tools, count) =
            (SharedProtection::default(), OnceLock::new(), AtomicU64::new(0));
        let served = Self { serving, guarded, protection, steps, tools, count };
        served.clean_up_lost_commands();
        Ok(served)
    }

    /// Creates the executor of one operation. Many can exist at once; they share the protection of
    /// protected names.
    pub(super) fn executor<'a>(&'a self, interrupted: &'a dyn Fn() -> bool) -> LocalExecutor<'a> {
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("rpc_{}_{n:04}", std::process::id());
        self.executor_named(&name, &self.serving.scratch_dir, interrupted)
    }

    /// Like `executor`, with a given name for its quarantine folder and a given scratch directory for commands.
    pub(super) fn executor_named<'a>(
        &'a self,
        name: &str,
        scratch_dir: &'a Path,
        interrupted: &'a dyn Fn() -> bool,
    ) -> LocalExecutor<'a> {
        let Serving { workspace, runner, .. } = &self.serving;
        let here = LocalExecutor::new(workspace, runner, scratch_dir, false, interrupted);
        here.guarded(self.guarded, self.protection.handle(self.quarantine(name)))
    }

    /// Checks that the root's path still leads to the folder that was opened. Otherwise file operations and
    /// commands would work on different folders.
    ///
    /// # Errors
    /// The path leads elsewhere. The message says what to do.
    pub(super) fn check_root(&self) -> Result<(), String> {
        let workspace = &self.serving.workspace;
        if workspace.is_current() {
            return Ok(());
        }
        Err(format!(
            "the root {} was removed, moved or replaced since deaddrop rpc began to serve it; put it back, or start deaddrop rpc again",
            workspace.path().display()
        ))
    }

    /// Carries out an operation unless the policy refuses it. Returns its result with all warnings.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) fn perform(
        &self,
        mut executor: LocalExecutor<'_>,
        operation: &Operation,
        grant: Grant,
        before: &mut dyn FnMut(WriteAhead<'_>) -> error::Result<()>,
    ) -> error::Result<Done> {
        let detail = match self.refused(operation, grant, &executor)? {
            Some(failure) => failure.into(),
            None => executor.perform(operation, grant, before)?,
        };
        let mut warnings = executor.take_warnings();
        match executor.finish() {
            Ok(noticed) => warnings.extend(noticed),
            // The command has run; its result must be reported in any case.
            Err(e) => warnings.push(unchecked_warning(&e)),
        }
        if let (Some(walk), _) = executor.into_parts() {
            self.protection.keep(walk);
        }
        Ok(Done { detail, warnings })
    }

    /// The reason why the policy refuses an operation, if it does. What `granted` permits is not asked about
    /// again. Anything else that needs approval is refused.
    ///
    /// # Errors
    /// The files concerned cannot be inspected.
    pub(super) fn refused(
        &self,
        operation: &Operation,
        granted: Grant,
        executor: &dyn Executor,
    ) -> error::Result<Option<Failure>> {
        let Some(policy) = &self.serving.policy else { return Ok(None) };
        let judge = |guarded| turn::judge(policy, guarded, operation, executor);
        let name = &policy.name;
        let (reason, suggestion) = match judge(self.guarded)? {
            Verdict::Allow => return Ok(None),
            Verdict::Deny(Denial { reason, policy, suggestion }) => {
                (format!("{reason} (denied by {policy} of the policy '{name}')"), suggestion)
            }
            Verdict::Ask(Ask { reason, policy, opens: needed, .. }) => {
                let is_granted = needed.protected && granted.protected
                    || needed.repository && granted.repository && judge(false)? == Verdict::Allow;
                if is_granted {
                    return Ok(None);
                }
                let told = format!(
                    "{reason} ({policy} of the policy '{name}' has somebody asked first, and nobody can be asked by `deaddrop rpc`)"
                );
                (told, None)
            }
        };
        Ok(Some(Failure { suggestion, ..Failure::new(FailureKind::Denied, reason) }))
    }

    /// Like `refused`, for reading a file.
    pub(super) fn refused_read(&self, path: &RelPath) -> error::Result<Option<Failure>> {
        let reading = Reading::Now(Encoding::Utf8);
        let operation = Operation::Read { path: path.clone(), reading };
        self.refused(&operation, Grant::default(), &self.executor(&|| false))
    }

    /// The timeout of a command for which `asked` was requested.
    pub(super) fn timeout(&self, asked: Option<Duration>) -> Duration {
        let default = self.serving.timeout;
        let policy = self.serving.policy.as_ref();
        policy.map_or(asked.unwrap_or(default), |policy| policy.shell.timeout(asked, default))
    }

    /// The quarantine folder of this name.
    pub(super) fn quarantine(&self, name: &str) -> Quarantine {
        let state = &self.serving.state;
        Quarantine::new(state.clone(), &state.to_string_lossy(), name)
    }
}

/// The reason for a failure, followed by the suggestion, if there is one.
pub(super) fn describe_failure(failure: &Failure) -> String {
    let instead = failure.suggestion.as_ref().map_or(String::new(), |told| format!(". {told}"));
    format!("{}{instead}", failure.reason)
}

/// The warning for protected names that could not be checked after a command.
pub(super) fn unchecked_warning(error: &Error) -> Warning {
    let told = format!("whether a command made repositories could not be looked at: {error}");
    Warning::new(WarningKind::Guard, told)
}

impl Service for Served {
    fn call(&self, method: Method) -> Result<Given, RpcError> {
        match method {
            Method::Ping {} => Ok(Given::Pong(Pong { pong: true })),
            Method::Exec { cmd } => Ok(Given::Ran(self.exec(cmd))),
            Method::ExecCode { lang, code } => Ok(Given::Ran(self.exec_code(&lang, &code))),
            Method::ReadFile { path } => self.read_file(&path).map(Given::File),
            Method::WriteFile { path, content } => {
                self.write_file(&path, content).map(Given::Written)
            }
            Method::ListDir { path } => self.list_dir(&path).map(Given::Entries),
            Method::About(params) => self.about(params).map(Given::About),
            Method::Walk {} => self.walk().map(Given::Walked),
            Method::PathFacts(params) => Ok(Given::Looked(self.path_facts(&params))),
            Method::Read(params) => self.read(&params).map(Given::Contents),
            Method::Find(params) => self.find(&params).map(Given::Found),
            Method::Step(params) => self.step(&params).map(Given::Step),
            Method::Result(params) => self.step_result(&params).map(Given::Step),
            Method::Leave(Key { key }) => self.leave(&key).map(Given::Written),
            Method::Interrupt(Key { key }) => {
                self.interrupt(&key);
                Ok(Given::Written(Written { success: true }))
            }
        }
    }

    fn interrupt(&self, key: &str) {
        self.steps.interrupt(key);
    }
}
