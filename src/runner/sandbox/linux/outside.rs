//! What deaddrop itself does on Linux, outside the helper, so that a command neither looks into it
//! nor leaves something behind.

use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libc::{c_ulong, pid_t};

use super::children;

/// How long what was killed may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Closes this process to other processes of its user: `/proc/<pid>/environ`, `mem` and `fd`, and
/// tracing. An exec opens it again; root is not bound.
pub(in crate::runner) fn close_to_others() {
    // SAFETY: a system call on integers.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0 as c_ulong);
    }
}

/// Asks a helper to end its tree; its own end says that it is done.
pub(in crate::runner) fn ask_to_end(helper: u32) {
    if let Ok(pid) = pid_t::try_from(helper) {
        // SAFETY: the helper is our child and has not been waited for, so the number is still its.
        unsafe {
            libc::kill(pid, libc::SIGTERM);
        }
    }
}

/// What comes to this process when a helper is killed that had adopted it.
pub(in crate::runner) struct Orphans {
    /// Children that were there before the command; None where they cannot be known.
    known: Option<Vec<pid_t>>,
}

impl Orphans {
    /// From now on orphans come to this process.
    pub(in crate::runner) fn expect() -> Self {
        // SAFETY: a system call on integers.
        unsafe {
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1 as c_ulong);
        }
        Self { known: children::of_this_process() }
    }

    /// Ends them. No thread may be starting a process meanwhile.
    pub(in crate::runner) fn end(&self) {
        let Some(known) = &self.known else { return };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut orphans = children::of_this_process().unwrap_or_default();
            orphans.retain(|pid| !known.contains(pid));
            if orphans.is_empty() {
                break;
            }
            for orphan in orphans {
                // SAFETY: a child of ours that nobody else waits for, so that its number is its
                // own until it is reaped here.
                unsafe {
                    libc::kill(orphan, libc::SIGKILL);
                    libc::waitpid(orphan, ptr::null_mut(), libc::WNOHANG);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
