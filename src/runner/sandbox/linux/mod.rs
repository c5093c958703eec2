//! The helper on Linux. With a pid namespace there are three processes: the helper, for which deaddrop waits; the
//! namespace's init, whose end also ends all other processes in the namespace; and the shell. Without a pid namespace,
//! the helper adopts every process that loses its parent, and ends these processes one by one.
//!
//! A command can send signals to those of these processes that it sees, and open their files in `/proc`. So they are
//! marked as not dumpable (which does not restrict root), init and the shell report through shared memory, and only the
//! helper reports to deaddrop, after all others are dead.
//!
//! The helper stays single-threaded, so any code may run between fork and exec. Every exit uses `_exit`.
#![allow(unsafe_code)]

mod bwrap;
mod children;
mod filter;
mod group;
mod limits;
mod mounts;
mod namespaces;
mod open;
mod outside;
mod places;
mod probe;
mod processes;
mod root;
mod status;
mod walls;

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::{c_int, pid_t};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::report::{HelperReport, Mechanism, MechanismSet};
use super::request::{Backend, SandboxRequest};
use super::too_long;
pub(super) use bwrap::inside;
use group::Group;
pub(crate) use outside::HelperGuard;
pub use outside::adopt_orphans;
pub(in crate::runner) use outside::{Orphans, ask_to_end, close_to_others};
use processes::{adopt, end_children, fork, fork_first, wait_for};
use status::SharedStatus;

/// The descriptor of the socket for the report. It is closed on exec.
const REPORT: c_int = 3;
const SHELL: &str = "/bin/sh";

/// The result of a step. The error tells the person what failed.
type StepResult<T> = Result<T, String>;

/// Formats a failure: `cannot mount /proc: Permission denied`.
fn cannot<E: Display>(doing: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {doing}: {error}")
}

/// A helper that carries out a request.
struct SandboxHelper {
    request: SandboxRequest,
    /// A limit on the number of processes for root, if available. No other limit restricts root.
    group: Option<Group>,
    shared: &'static SharedStatus,
}

/// Carries out the request that comes through standard input, and reports the result.
pub(super) fn helper() -> ! {
    let helper = match SandboxHelper::prepare() {
        Ok(helper) => helper,
        Err(reason) => {
            send_report(&HelperReport::line(MechanismSet::default(), &format!("error={reason}")))
        }
    };
    let done = match helper.request.backend {
        Backend::Full => helper.in_namespaces(),
        Backend::Bwrap => bwrap::run(&helper),
        Backend::Partial => helper.as_subreaper(),
        Backend::Open | Backend::Inside => helper.unconfined(),
    };
    let SandboxHelper { group, shared, .. } = helper;
    if let Some(group) = group {
        group.remove();
    }
    if let Err(reason) = done {
        shared.failed(&reason);
    }
    let ending = match (shared.reason(), shared.status()) {
        (Some(reason), _) => format!("error={reason}"),
        (None, Some(status)) if libc::WIFSIGNALED(status) => {
            format!("signal={}", libc::WTERMSIG(status))
        }
        (None, Some(status)) => format!("exit={}", libc::WEXITSTATUS(status)),
        (None, None) => "lost".to_owned(),
    };
    send_report(&HelperReport::line(shared.facts(), &ending))
}

impl SandboxHelper {
    /// Separates this process from deaddrop (open files, signals, end of the parent), and receives the request.
    fn prepare() -> StepResult<Self> {
        // SAFETY: plain system calls on integers and constant strings.
        unsafe {
            // Move the report's socket first. Otherwise /dev/null would replace it.
            if libc::dup3(0, REPORT, libc::O_CLOEXEC) < 0 {
                return Err(io::Error::last_os_error()).map_err(cannot("set up the report"));
            }
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
            if null < 0 || libc::dup2(null, 0) < 0 {
                return Err(io::Error::last_os_error()).map_err(cannot("open /dev/null"));
            }
            // No file that deaddrop has open must reach the command.
            libc::syscall(libc::SYS_close_range, REPORT + 1, c_int::MAX, 0);
        }
        // SAFETY: the descriptor is open, and is never closed here. The command does not get it.
        let channel = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(REPORT) });
        let request = SandboxRequest::receive(&channel).ok_or("cannot understand what to run")?;
        exit_with_parent(request.parent, Signal::TERM);
        lock_for_life(&request.lock);
        let unbounded = request.user.is_none() && rustix::process::geteuid().is_root();
        let by_namespace = request.backend == Backend::Full && limits::pid_max_is_ours();
        let wanted = request.limits.processes > 0 && unbounded && !by_namespace;
        let group = wanted.then(|| Group::new(request.limits.processes)).flatten();
        let mut helper =
            Self { request, group, shared: SharedStatus::new().map_err(cannot("get memory"))? };
        if helper.request.probe {
            helper.request.surroundings = probe::surroundings().unwrap_or_default();
        }
        Ok(helper)
    }

    fn enter_group(&self) -> StepResult<()> {
        let entered = self.group.as_ref().map_or(Ok(()), Group::enter);
        entered.map_err(cannot("bound the number of processes"))
    }

    /// Runs the command with all restrictions: namespaces, its own root, and the others.
    fn in_namespaces(&self) -> StepResult<()> {
        let request = &self.request;
        let network = if request.network { 0 } else { libc::CLONE_NEWNET };
        let user_namespace = namespaces::enter(namespaces::SANDBOX | network)?;
        exit_with_parent(request.parent, Signal::TERM);
        self.with_init(|| {
            self.enter_group()?;
            if !request.network {
                namespaces::loopback_up()?;
            }
            root::enter(request, user_namespace)?;
            self.fork(fork, || self.become_command(walls::drop_rights(request)?))
        })
    }

    /// Runs the command without restrictions. Its whole process tree is still ended, as far as the machine allows.
    fn unconfined(&self) -> StepResult<()> {
        if namespaces::enter(namespaces::TREE).is_err() {
            return self.as_subreaper();
        }
        exit_with_parent(self.request.parent, Signal::TERM);
        self.with_init(|| {
            self.shared.found(open::hide(&self.request));
            self.fork(fork, || {
                limits::set(self.request.limits)?;
                self.become_command(MechanismSet::default())
            })
        })
    }

    /// Forks init, which calls `run` as process 1 of the namespace. `run` starts the shell and returns its process ID.
    /// Init then reaps all other processes, and ends together with the shell.
    fn with_init(&self, run: impl FnOnce() -> StepResult<pid_t>) -> StepResult<()> {
        close_to_others();
        let (alive, ours) = io::pipe().map_err(cannot("make a pipe"))?;
        let init = self.fork(fork_first, || {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            // SAFETY: system calls on integers and our own descriptors, which nothing here uses later.
            unsafe {
                libc::close(REPORT);
                libc::close(ours.as_raw_fd());
                // The helper may have died before this point. Then its end of the pipe is closed.
                let (fd, events) = (alive.as_raw_fd(), libc::POLLIN);
                let mut poll = libc::pollfd { fd, events, revents: 0 };
                if libc::poll(&raw mut poll, 1, 0) != 0 {
                    libc::_exit(1);
                }
                libc::close(alive.as_raw_fd());
                libc::setsid();
            }
            let shell = run()?;
            // From here on, init only waits.
            let _ = walls::forget_capabilities();
            if let Some(status) = wait_for(shell) {
                self.shared.ended(status);
            }
            exit(0)
        })?;
        close_output();
        // Init ends after all other processes in the namespace.
        wait_for(init);
        Ok(())
    }

    /// Forks a process that calls `run`, and returns its process ID. A failure is stored in the shared status.
    fn fork(
        &self,
        fork: fn() -> io::Result<pid_t>,
        run: impl FnOnce() -> StepResult<Infallible>,
    ) -> StepResult<pid_t> {
        let child = fork().map_err(cannot("start a process"))?;
        if child == 0 {
            let Err(reason) = run();
            self.shared.failed(&reason);
            exit(127)
        }
        Ok(child)
    }

    /// Replaces this process with the command, or probes the restrictions.
    fn become_command(&self, facts: MechanismSet) -> StepResult<Infallible> {
        if self.request.probe {
            self.shared.found(facts);
            self.shared.found(probe::check_mechanisms(&self.request));
            exit(0)
        }
        become_shell(&self.request)
    }

    /// Runs the command without namespaces. This process adopts all processes that the command leaves behind. It is not
    /// the command's parent, because a command can easily kill its parent.
    fn as_subreaper(&self) -> StepResult<()> {
        adopt();
        close_to_others();
        let helper = std::process::id();
        let parent = self.fork(fork_first, || {
            exit_with_parent(helper, Signal::KILL);
            // SAFETY: closes our own descriptor, which nothing here uses.
            unsafe { libc::close(REPORT) };
            let parent = std::process::id();
            let shell = self.fork(fork_first, || self.below_subreaper(parent))?;
            close_output();
            if let Some(status) = wait_for(shell) {
                self.shared.ended(status);
            }
            exit(0)
        })?;
        close_output();
        wait_for(parent);
        let mut facts = MechanismSet::default();
        facts.add_if(Mechanism::Subreaper, end_children());
        self.shared.found(facts);
        Ok(())
    }

    fn below_subreaper(&self, parent: u32) -> StepResult<Infallible> {
        let _ = rustix::process::setsid();
        let facts = if self.request.backend == Backend::Partial {
            self.enter_group()?;
            walls::drop_rights(&self.request)?
        } else {
            limits::set(self.request.limits)?;
            MechanismSet::default()
        };
        if self.request.backend == Backend::Partial && !facts.has(Mechanism::Landlock) {
            return Err("this system has no Landlock, or it is not switched on".to_owned());
        }
        // Set this last, because a change of credentials would clear it.
        exit_with_parent(parent, Signal::KILL);
        self.become_command(facts)
    }
}

/// Replaces this process with the command. If that fails, returns the reason.
fn become_shell(request: &SandboxRequest) -> StepResult<Infallible> {
    rustix::process::chdir(&request.folder)
        .map_err(|e| format!("cannot enter {}: {e}", request.folder.display()))?;
    let mut shell = Command::new(SHELL);
    shell.arg0("sh").arg("-c").arg(&request.command).env_clear();
    shell.envs(request.environment.iter().map(|variable| (&variable.name, &variable.value)));
    Err(match shell.exec() {
        e if e.kind() == io::ErrorKind::ArgumentListTooLong => too_long(request),
        e => format!("cannot start {SHELL}: {e}"),
    })
}

/// Ends this process by a signal when its parent ends. So a command ends with deaddrop, even if deaddrop is killed.
fn exit_with_parent(parent: u32, signal: Signal) {
    let _ = set_parent_process_death_signal(Some(signal));
    if std::os::unix::process::parent_id() != parent {
        exit(1);
    }
}

/// Locks a file as long as this process lives, or init, which inherits the lock; the shell does not. If the lock is
/// free, the command has ended, whatever happened to deaddrop. If the file cannot be locked, the command runs anyway:
/// the lock is only needed if deaddrop restarts immediately.
fn lock_for_life(lock: &Path) {
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
    if lock.as_os_str().is_empty() {
        return;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if let Ok(file) = open(lock, flags, Mode::RUSR | Mode::WUSR) {
        let _ = flock(&file, FlockOperation::LockExclusive);
        // The lock is held until the process ends.
        std::mem::forget(file);
    }
}

/// Closes the output here, because only the command may hold it: the pipe must close with the command's last process.
fn close_output() {
    // SAFETY: closing our own descriptors; nothing here writes to them.
    unsafe {
        libc::close(1);
        libc::close(2);
    }
}

/// Sends the only report of the helper. No process that the command started can still send anything.
fn send_report(line: &str) -> ! {
    const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let text = format!("{line}\n");
    // SAFETY: the text is valid for its length. It is shorter than a socket's buffer, so it is sent completely. It does
    // not matter if the reader is gone.
    unsafe { libc::send(REPORT, text.as_ptr().cast(), text.len(), FLAGS) };
    exit(0)
}

/// Ends this process at once.
fn exit(code: c_int) -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(code) }
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or_default()
}
