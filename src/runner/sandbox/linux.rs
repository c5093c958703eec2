//! The helper on Linux. Three processes where a pid namespace is to be had: the helper, which
//! deaddrop waits for; the namespace's init, whose end ends all in it; and the shell. Else two: the
//! helper adopts every process that loses its parent, and ends them one by one.
//!
//! A command may send signals to whichever of these it sees and open what `/proc` shows of them. So
//! they are closed to it (not dumpable, which does not bind root), init and the shell tell through
//! shared memory, and the helper alone reports, once all the others are dead.
//!
//! Hard code, since it lives between fork and exec: nothing here may wait for a lock, and every
//! exit is `_exit`.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_ulong, pid_t};

use super::children;
pub(in crate::runner) use outside::{Orphans, ask_to_end, close_to_others};

#[path = "outside.rs"]
mod outside;

/// Where the report's socket is moved to; closed on exec.
const REPORT: c_int = 3;
const SHELL: &CStr = c"/bin/sh";

/// The process whose death begins the end of the tree: init, or the shell. 0 once it is dead.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// What the helper learns from its children: memory that they share, which no exec keeps.
struct Told {
    /// Whether deaddrop's files are out of sight.
    hidden: AtomicBool,
    /// Why the shell could not be started, as an errno; else 0.
    failed: AtomicI32,
    /// Whether the shell has ended, and how.
    ended: AtomicBool,
    status: AtomicI32,
}

pub(super) fn helper(parent: u32, command: &OsStr, lock: &OsStr, hidden: &[OsString]) -> ! {
    let Ok(command) = CString::new(command.as_bytes()) else {
        fail(0, "the command holds a NUL byte");
    };
    let hidden: Vec<CString> =
        hidden.iter().filter_map(|path| CString::new(path.as_bytes()).ok()).collect();
    // SAFETY: plain system calls on integers and constant strings.
    unsafe {
        // deaddrop's end is the command's end, also when it is killed.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM as c_ulong);
        if u32::try_from(libc::getppid()) != Ok(parent) {
            libc::_exit(1);
        }
        // The report moves first: else /dev/null would be opened as the descriptor it moves to.
        if libc::dup3(0, REPORT, libc::O_CLOEXEC) < 0 {
            fail(0, "cannot set up the report");
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
        if null < 0 || libc::dup2(null, 0) < 0 {
            fail(REPORT, "cannot set up the command's files");
        }
        // Nothing that deaddrop has open reaches the command.
        libc::syscall(libc::SYS_close_range, REPORT + 1, c_int::MAX, 0);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    hold(lock);
    let entered = enter_namespaces();
    let told = share();
    close_to_others();
    if entered { with_init(&command, &hidden, told) } else { as_subreaper(&command, told) }
}

/// Locks a file for as long as this process lives, or init, which inherits it; the shell does not.
/// Whoever finds it free knows that the command has ended, whatever became of deaddrop.
fn hold(lock: &OsStr) {
    let Some(path) = CString::new(lock.as_bytes()).ok().filter(|path| !path.is_empty()) else {
        return;
    };
    // SAFETY: system calls on a string that outlives them. Where the file cannot be had or locked,
    // the command runs all the same: it only protects from a restart within a moment.
    unsafe {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        let file = libc::open(path.as_ptr(), flags, 0o600);
        if file >= 0 {
            libc::flock(file, libc::LOCK_EX);
        }
    }
}

/// As the user that we are, or else in a user namespace that maps us to ourselves.
fn enter_namespaces() -> bool {
    const WANTED: c_int = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    // SAFETY: single-threaded, so entering namespaces affects this process alone.
    unsafe {
        if libc::unshare(WANTED) == 0 {
            return true;
        }
        let (user, group) = (libc::geteuid(), libc::getegid());
        if libc::unshare(libc::CLONE_NEWUSER | WANTED) != 0 {
            return false;
        }
        // Without the maps the command would be nobody, and its files somebody else's.
        let maps = fs::write("/proc/self/setgroups", "deny")
            .and_then(|()| fs::write("/proc/self/uid_map", format!("{user} {user} 1")))
            .and_then(|()| fs::write("/proc/self/gid_map", format!("{group} {group} 1")));
        if maps.is_err() {
            fail(REPORT, "cannot map the user into a namespace");
        }
        true
    }
}

fn share() -> &'static Told {
    const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
    const FLAGS: c_int = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping of zeroes, aligned to a page and never unmapped; all zeroes is a valid
    // value of each field, and they are atomic, so that processes may share them.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), size_of::<Told>(), PROTECTION, FLAGS, -1, 0);
        if memory == libc::MAP_FAILED {
            fail(REPORT, "cannot get memory");
        }
        &*memory.cast()
    }
}

fn with_init(command: &CStr, hidden: &[CString], told: &Told) -> ! {
    let mut alive = [0; 2];
    // SAFETY: system calls on our own descriptors and memory; the child of fork goes on in `init`.
    let init = unsafe {
        if libc::pipe2(alive.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            fail(REPORT, "cannot make a pipe");
        }
        let init = fork_first();
        if init == 0 {
            libc::close(alive[1]);
            libc::close(REPORT);
            run_init(command, hidden, told, alive[0]);
        }
        init
    };
    forget_output();
    // The kernel lets init end after all others in the namespace.
    wait_for(init);
    let status = told.ended.load(Ordering::Acquire).then(|| told.status.load(Ordering::Acquire));
    finish("pidns", told, status)
}

/// Process 1 of the namespace: reaps whatever ends, and ends with the shell.
fn run_init(command: &CStr, hidden: &[CString], told: &Told, helper_alive: c_int) -> ! {
    // SAFETY: system calls on integers and constant strings.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
        // The helper may have died before that: then its end of the pipe is gone.
        let mut poll = libc::pollfd { fd: helper_alive, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut poll, 1, 0) != 0 {
            libc::_exit(1);
        }
        libc::close(helper_alive);
        libc::setsid();
        // A /proc that shows the namespace, if the mount stays our own. Where it is refused
        // (some containers) the old one remains, which shows only more.
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), private, ptr::null()) == 0 {
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, ptr::null());
            told.hidden.store(hidden.iter().all(|path| hide(path)), Ordering::Release);
        }
        let shell = libc::fork();
        if shell == 0 {
            exec_shell(command, told);
        } else if shell < 0 {
            told.failed.store(errno(), Ordering::Release);
        } else if let Some(status) = wait_for(shell) {
            told.status.store(status, Ordering::Release);
            told.ended.store(true, Ordering::Release);
        }
        libc::_exit(0)
    }
}

/// Covers a file or folder in this mount namespace; one that is not there needs no cover.
fn hide(path: &CStr) -> bool {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
    // SAFETY: system calls on strings that outlive them and a zeroed buffer of the right type.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        if libc::stat(path.as_ptr(), &raw mut found) != 0 {
            return errno() == libc::ENOENT;
        }
        let done = if found.st_mode & libc::S_IFMT == libc::S_IFDIR {
            let kind = c"tmpfs".as_ptr();
            libc::mount(kind, path.as_ptr(), kind, flags, ptr::null())
        } else {
            let null = c"/dev/null".as_ptr();
            libc::mount(null, path.as_ptr(), ptr::null(), libc::MS_BIND, ptr::null())
        };
        done == 0
    }
}

fn as_subreaper(command: &CStr, told: &Told) -> ! {
    // SAFETY: as in `with_init`.
    let shell = unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        let shell = fork_first();
        if shell == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong);
            libc::setsid();
            exec_shell(command, told);
        }
        shell
    };
    forget_output();
    let status = wait_for(shell);
    finish(if end_children() { "subreaper" } else { "tree" }, told, status)
}

/// Ends all that was handed to us. Returns whether nothing is left.
fn end_children() -> bool {
    // SAFETY: system calls on integers; whoever is killed is our child and not reaped yet.
    unsafe {
        // Each round ends our children; theirs are ours in the next.
        loop {
            while libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) > 0 {}
            if errno() == libc::ECHILD {
                return true;
            }
            let Some(children) = children::of_this_process() else { return false };
            for child in children {
                libc::kill(child, libc::SIGKILL);
            }
            libc::waitpid(-1, ptr::null_mut(), 0);
        }
    }
}

/// Forks the process that a request to end will kill.
fn fork_first() -> pid_t {
    // SAFETY: the handler only loads an atomic and calls kill, which is async-signal-safe; the
    // signal is blocked while there is a child that the handler does not know.
    unsafe {
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut term);
        libc::sigaddset(&raw mut term, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const term, ptr::null_mut());
        let child = libc::fork();
        if child < 0 {
            fail(REPORT, "cannot start a process");
        }
        if child > 0 {
            FIRST.store(child, Ordering::Relaxed);
            let handler: extern "C" fn(c_int) = end_first;
            libc::signal(libc::SIGTERM, handler as libc::sighandler_t);
        }
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const term, ptr::null_mut());
        child
    }
}

extern "C" fn end_first(_: c_int) {
    let first = FIRST.load(Ordering::Relaxed);
    if first != 0 {
        // SAFETY: async-signal-safe; the number is forgotten before its process is reaped.
        unsafe {
            libc::kill(first, libc::SIGKILL);
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

fn exec_shell(command: &CStr, told: &Told) -> ! {
    let arguments = [c"sh".as_ptr(), c"-c".as_ptr(), command.as_ptr(), ptr::null()];
    // SAFETY: a null-terminated array of valid strings; on success this does not return.
    unsafe {
        libc::execv(SHELL.as_ptr(), arguments.as_ptr());
        told.failed.store(errno(), Ordering::Release);
        libc::_exit(127)
    }
}

/// Reaps until `child` has ended, and tells how; None where that cannot be known.
fn wait_for(child: pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: `status` and `ended` are ours, and all zeroes is a valid `siginfo_t`.
    unsafe {
        loop {
            // To look comes before to reap: the handler must not know the number any longer.
            let mut ended: libc::siginfo_t = std::mem::zeroed();
            if libc::waitid(libc::P_ALL, 0, &raw mut ended, libc::WEXITED | libc::WNOWAIT) != 0 {
                if errno() == libc::EINTR {
                    continue;
                }
                return None;
            }
            let ended = ended.si_pid();
            if ended == child {
                FIRST.store(0, Ordering::Relaxed);
            }
            let reaped = libc::waitpid(ended, &raw mut status, 0);
            if reaped == child {
                return Some(status);
            }
        }
    }
}

/// The helper's only report: nothing that the command started can follow it.
fn finish(contained: &str, told: &Told, status: Option<c_int>) -> ! {
    let ending = match (told.failed.load(Ordering::Acquire), status) {
        (0, Some(status)) if libc::WIFSIGNALED(status) => {
            format!("signal={}", libc::WTERMSIG(status))
        }
        (0, Some(status)) => format!("exit={}", libc::WEXITSTATUS(status)),
        (0, None) => "lost".to_owned(),
        (errno, _) => {
            format!("error=cannot start /bin/sh: {}", io::Error::from_raw_os_error(errno))
        }
    };
    let hidden = if told.hidden.load(Ordering::Acquire) { "yes" } else { "no" };
    send(REPORT, &format!("contained={contained};hidden={hidden};{ending}\n"));
    // SAFETY: ends this process.
    unsafe { libc::_exit(0) }
}

fn fail(report: c_int, why: &str) -> ! {
    send(report, &format!("contained=unknown;hidden=no;error={why}\n"));
    // SAFETY: ends this process.
    unsafe { libc::_exit(127) }
}

fn send(report: c_int, text: &str) {
    const FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the text is valid for its length. It is shorter than a socket's buffer, so it is
    // sent whole; a reader that is gone does not matter.
    unsafe {
        libc::send(report, text.as_ptr().cast(), text.len(), FLAGS);
    }
}

fn errno() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or_default()
}
