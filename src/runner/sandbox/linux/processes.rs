//! Forks, waits for and ends the processes of a command.
#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, pid_t};

use super::children;
use super::errno;

/// The process whose death ends the whole process tree: init, bwrap or the shell. 0 once it is dead.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// Forks this process, which must be single-threaded.
pub(super) fn fork() -> io::Result<pid_t> {
    // SAFETY: the process is single-threaded.
    match unsafe { libc::fork() } {
        child if child >= 0 => Ok(child),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Forks the process that the SIGTERM handler will kill.
pub(super) fn fork_first() -> io::Result<pid_t> {
    // SAFETY: the handler only loads an atomic and calls kill, which is async-signal-safe; the
    // signal is blocked while there is a child that the handler does not know.
    unsafe {
        let mut term: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut term);
        libc::sigaddset(&raw mut term, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const term, ptr::null_mut());
        let child = fork();
        if let Ok(child @ 1..) = child {
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
        // SAFETY: async-signal-safe. The process ID is cleared before the process is reaped.
        unsafe {
            libc::kill(first, libc::SIGKILL);
        }
    }
}

/// Reaps children until `child` has ended, and returns the status of `child`. None if the status is not known.
pub(super) fn wait_for(child: pid_t) -> Option<c_int> {
    let mut status = 0;
    // SAFETY: we own `status` and `ended`, and all zeroes is a valid `siginfo_t`.
    unsafe {
        loop {
            // Find the ended child before reaping it, because the handler's process ID must be cleared first.
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

/// Makes this process adopt orphans among its descendants.
pub(super) fn adopt() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends all children, including adopted ones. Returns whether no child is left.
pub(super) fn end_children() -> bool {
    // SAFETY: system calls on integers. Each killed process is our child and has not been reaped yet.
    unsafe {
        // Each round ends our children. Their own children are then adopted and ended in the next round.
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
