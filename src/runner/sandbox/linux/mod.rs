//! The helper on Linux. Three processes where a pid namespace is to be had: the helper, which
//! deaddrop waits for; the namespace's init, whose end ends all in it; and the shell. Else two: the
//! helper adopts every process that loses its parent, and ends them one by one.
//!
//! A command may send signals to whichever of these it sees and open what `/proc` shows of them. So
//! they are closed to it (not dumpable, which does not bind root), init and the shell tell through
//! shared memory, and the helper alone reports, once all the others are dead.
//!
//! The helper is single-threaded from its first line to its last, so what runs between fork and
//! exec is ordinary code; every exit is `_exit`.
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
mod told;
mod walls;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use libc::{c_int, c_ulong};

use super::order::{Means, Order};
use super::report::{Facts, Mechanism, Report};
use super::too_long;
pub(super) use bwrap::inside;
use group::Group;
pub(crate) use outside::Started;
pub(in crate::runner) use outside::{Orphans, ask_to_end, close_to_others};
use processes::{adopt, end_children, fork_first, wait_for};
use told::Told;

/// Where the report's socket is moved to; closed on exec.
const REPORT: c_int = 3;
const SHELL: &str = "/bin/sh";

/// What failed, in words for the person.
type Step<T> = Result<T, String>;

/// Words for a failure: `cannot mount /proc: Permission denied`.
fn while_<E: Display>(doing: &str) -> impl FnOnce(E) -> String {
    move |error| format!("cannot {doing}: {error}")
}

/// Carries out the order that comes through standard input, and reports.
pub(super) fn helper() -> ! {
    let (order, told) = match prepare() {
        Ok(prepared) => prepared,
        Err(reason) => end_with(&Report::line(Facts::default(), &format!("error={reason}"))),
    };
    let order = &order;
    let group = bounding_group(order);
    let done = match order.means {
        Means::Full => in_namespaces(order, group.as_ref(), told),
        Means::Bwrap => bwrap::run(order, group.as_ref(), told),
        Means::Partial => as_subreaper(order, group.as_ref(), told),
        Means::Open | Means::Inside => unconfined(order, told),
    };
    if let Some(group) = group {
        group.remove();
    }
    if let Err(reason) = done {
        told.failed(&reason);
    }
    let ending = match (told.reason(), told.status()) {
        (Some(reason), _) => format!("error={reason}"),
        (None, Some(status)) if libc::WIFSIGNALED(status) => {
            format!("signal={}", libc::WTERMSIG(status))
        }
        (None, Some(status)) => format!("exit={}", libc::WEXITSTATUS(status)),
        (None, None) => "lost".to_owned(),
    };
    end_with(&Report::line(told.facts(), &ending))
}

/// Sets this process apart from deaddrop (its files, its signals, its end) and takes the order.
fn prepare() -> Step<(Order, &'static Told)> {
    // SAFETY: plain system calls on integers and constant strings.
    unsafe {
        // The report moves first: else /dev/null would be opened as the descriptor it moves to.
        if libc::dup3(0, REPORT, libc::O_CLOEXEC) < 0 {
            return Err(io::Error::last_os_error()).map_err(while_("set up the report"));
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if null < 0 || libc::dup2(null, 0) < 0 {
            return Err(io::Error::last_os_error()).map_err(while_("open /dev/null"));
        }
        // Nothing that deaddrop has open reaches the command.
        libc::syscall(libc::SYS_close_range, REPORT + 1, c_int::MAX, 0);
    }
    // SAFETY: it is open, and never closed here; the command does not get it.
    let mut channel = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(REPORT) });
    let order = Order::receive(&mut *channel).ok_or("cannot understand what to run")?;
    die_with_parent(order.parent);
    hold(&order.lock);
    Ok((order, Told::new().map_err(while_("get memory"))?))
}

/// deaddrop's end is the command's end, also when it is killed.
fn die_with_parent(parent: u32) {
    // SAFETY: plain system calls on integers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as c_ulong);
        if u32::try_from(libc::getppid()) != Ok(parent) {
            libc::_exit(1);
        }
    }
}

/// Locks a file for as long as this process lives, or init, which inherits it; the shell does not.
/// Whoever finds it free knows that the command has ended, whatever became of deaddrop. Where it
/// cannot be had, the command runs all the same: it only protects from a restart within a moment.
fn hold(lock: &Path) {
    use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
    if lock.as_os_str().is_empty() {
        return;
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if let Ok(file) = open(lock, flags, Mode::RUSR | Mode::WUSR) {
        let _ = flock(&file, FlockOperation::LockExclusive);
        // Held until the end of the process.
        std::mem::forget(file);
    }
}

/// A bound on processes for root, whom no other holds; where one can be had.
fn bounding_group(order: &Order) -> Option<Group> {
    let unbounded = order.user.is_none() && rustix::process::geteuid().is_root();
    let by_namespace = order.means == Means::Full && limits::pid_max_is_ours();
    let wanted = order.limits.processes > 0 && unbounded && !by_namespace;
    wanted.then(|| Group::new(order.limits.processes)).flatten()
}

fn enter_group(group: Option<&Group>) -> Step<()> {
    group.map_or(Ok(()), Group::enter).map_err(while_("bound the number of processes"))
}

/// Everything: namespaces, a root of its own, and the other walls.
fn in_namespaces(order: &Order, group: Option<&Group>, told: &'static Told) -> Step<()> {
    let outside = order.probe.then(probe::surroundings).and_then(Result::ok);
    let network = if order.network { 0 } else { libc::CLONE_NEWNET };
    let user_namespace = namespaces::enter(namespaces::SANDBOX | network)?;
    die_with_parent(order.parent);
    with_init(told, || {
        enter_group(group)?;
        if !order.network {
            namespaces::loopback_up()?;
        }
        root::enter(order, user_namespace)?;
        start_shell(|| {
            let facts = walls::raise(order)?;
            become_command(order, facts, outside, told)
        })
    })
}

/// No walls; the tree is ended whole, as far as the machine allows.
fn unconfined(order: &Order, told: &'static Told) -> Step<()> {
    if namespaces::enter(namespaces::TREE).is_err() {
        return as_subreaper(order, None, told);
    }
    die_with_parent(order.parent);
    with_init(told, || {
        told.found(open::hide(order));
        start_shell(|| {
            limits::set(order.limits)?;
            become_command(order, Facts::default(), None, told)
        })
    })
}

/// Forks init, which does `run` as process 1 of the namespace (it starts the shell, and gives its
/// number); then reaps whatever ends, and ends with the shell.
fn with_init(told: &Told, run: impl FnOnce() -> Step<libc::pid_t>) -> Step<()> {
    close_to_others();
    let (alive, ours) = io::pipe().map_err(while_("make a pipe"))?;
    let init = fork_first().map_err(while_("start a process"))?;
    if init == 0 {
        drop(ours);
        // SAFETY: system calls on integers and a descriptor of ours.
        unsafe {
            libc::close(REPORT);
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
            // The helper may have died before that: then its end of the pipe is gone.
            let mut poll = libc::pollfd { fd: alive.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            if libc::poll(&raw mut poll, 1, 0) != 0 {
                libc::_exit(1);
            }
            libc::setsid();
        }
        drop(alive);
        match run() {
            Err(reason) => told.failed(&reason),
            Ok(shell) => {
                // It only waits from here on.
                let _ = walls::forget_capabilities();
                if let Some(status) = wait_for(shell) {
                    told.ended(status);
                }
            }
        }
        // SAFETY: ends this process.
        unsafe { libc::_exit(0) }
    }
    forget_output();
    // The kernel lets init end after all others in the namespace.
    wait_for(init);
    Ok(())
}

/// Forks the process that becomes the command.
fn start_shell(run: impl FnOnce() -> Step<Infallible>) -> Step<libc::pid_t> {
    // SAFETY: single-threaded.
    let shell = unsafe { libc::fork() };
    if shell == 0 {
        // Why it failed is told already.
        let _ = run();
        // SAFETY: ends this process.
        unsafe { libc::_exit(127) }
    }
    if shell > 0 {
        Ok(shell)
    } else {
        Err(io::Error::last_os_error()).map_err(while_("start a process"))
    }
}

/// Takes this process's place with the command, or finds out what holds it.
fn become_command(
    order: &Order,
    facts: Facts,
    outside: Option<OsString>,
    told: &Told,
) -> Step<Infallible> {
    let result = try_command(order, facts, outside, told);
    if let Err(reason) = &result {
        told.failed(reason);
    }
    result
}

fn try_command(
    order: &Order,
    mut facts: Facts,
    outside: Option<OsString>,
    told: &Told,
) -> Step<Infallible> {
    if order.probe {
        let mut order = order.clone();
        order.environment.extend(outside.map(|outside| (probe::OUTSIDE.into(), outside)));
        facts.0 |= probe::look_around(&order).0;
        told.found(facts);
        // SAFETY: ends this process.
        unsafe { libc::_exit(0) }
    }
    rustix::process::chdir(&order.folder)
        .map_err(|e| format!("cannot enter {}: {e}", order.folder.display()))?;
    let mut shell = Command::new(SHELL);
    shell.arg0("sh").arg("-c").arg(&order.command).env_clear();
    shell.envs(order.environment.iter().map(|(key, value)| (key, value)));
    Err(match shell.exec() {
        e if e.kind() == io::ErrorKind::ArgumentListTooLong => too_long(order),
        e => format!("cannot start {SHELL}: {e}"),
    })
}

/// Landlock and seccomp alone. Whatever the command leaves behind comes to this process. It is not the command's
/// parent, which a command can easily kill.
fn as_subreaper(order: &Order, group: Option<&Group>, told: &'static Told) -> Step<()> {
    adopt();
    close_to_others();
    let helper = std::process::id();
    let parent = fork_first().map_err(while_("start a process"))?;
    if parent == 0 {
        die_at_once_with(helper);
        // SAFETY: closes a descriptor of ours that nothing here uses.
        unsafe { libc::close(REPORT) };
        if let Err(reason) = as_parent(order, group, told) {
            told.failed(&reason);
        }
        // SAFETY: ends this process.
        unsafe { libc::_exit(0) }
    }
    forget_output();
    wait_for(parent);
    let mut facts = Facts::default();
    facts.add_if(Mechanism::Subreaper, end_children());
    told.found(facts);
    Ok(())
}

/// Starts the command and waits for it.
fn as_parent(order: &Order, group: Option<&Group>, told: &'static Told) -> Step<()> {
    let parent = std::process::id();
    let shell = fork_first().map_err(while_("start a process"))?;
    if shell == 0 {
        // SAFETY: plain system calls on integers.
        unsafe {
            libc::setsid();
        }
        let walls = || -> Step<Facts> {
            if order.means != Means::Partial {
                limits::set(order.limits)?;
                return Ok(Facts::default());
            }
            enter_group(group)?;
            let facts = walls::raise(order)?;
            if facts.has(Mechanism::Landlock) {
                Ok(facts)
            } else {
                Err("this system has no Landlock, or it is not switched on".to_owned())
            }
        };
        let _ = walls().inspect_err(|reason| told.failed(reason)).and_then(|facts| {
            // After the change of credentials, which would undo it.
            die_at_once_with(parent);
            become_command(order, facts, None, told)
        });
        // SAFETY: ends this process.
        unsafe { libc::_exit(127) }
    }
    forget_output();
    if let Some(status) = wait_for(shell) {
        told.ended(status);
    }
    Ok(())
}

/// The end of this process's parent is its own.
fn die_at_once_with(parent: u32) {
    // SAFETY: plain system calls on integers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        if u32::try_from(libc::getppid()) != Ok(parent) {
            libc::_exit(1);
        }
    }
}

/// The output belongs to the command alone: its pipe must close when the last of it is gone.
fn forget_output() {
    // SAFETY: closing our own descriptors; nothing here writes to them.
    unsafe {
        libc::close(1);
        libc::close(2);
    }
}

/// The helper's only report: nothing that the command started can follow it.
fn end_with(line: &str) -> ! {
    const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    let text = format!("{line}\n");
    // SAFETY: the text is valid for its length. It is shorter than a socket's buffer, so it is
    // sent whole; a reader that is gone does not matter. Then this process ends.
    unsafe {
        libc::send(REPORT, text.as_ptr().cast(), text.len(), FLAGS);
        libc::_exit(0)
    }
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or_default()
}
