//! What deaddrop itself does on Linux, outside the helper, so that commands can neither inspect it nor leave processes
//! behind.

use std::collections::BTreeSet;
use std::io;
use std::process::Child;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};

use super::children;

/// How long to wait for killed processes to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Protects `/proc/<pid>/environ`, `mem` and `fd` of this process from other processes of its user, and forbids
/// tracing. The protection ends at an exec, and does not restrict root.
pub(in crate::runner) fn close_to_others() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Asks a helper to end its process tree. The helper itself ends afterwards.
pub(in crate::runner) fn ask_to_end(helper: u32) {
    if let Ok(pid) = pid_t::try_from(helper) {
        // SAFETY: the helper is our child and has not been waited for, so its process ID is still valid.
        unsafe {
            libc::kill(pid, libc::SIGTERM);
        }
    }
}

/// Read-locked while a helper is started, and write-locked while orphans are ended. Otherwise a new helper whose
/// process ID is not registered yet could be treated as an orphan.
static STARTING: RwLock<()> = RwLock::new(());
/// The helpers of all threads that have not been waited for yet.
static HELPERS: Mutex<BTreeSet<pid_t>> = Mutex::new(BTreeSet::new());

/// Registers a helper until the guard is dropped, so that the helper is not treated as an orphan.
pub(crate) struct HelperGuard(pid_t);

impl HelperGuard {
    /// Starts a helper. Keep the returned guard until the helper has been waited for.
    pub(crate) fn start(start: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, Self)> {
        let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let child = start()?;
        let pid = pid_t::try_from(child.id()).unwrap_or_default();
        helpers().insert(pid);
        Ok((child, Self(pid)))
    }
}

impl Drop for HelperGuard {
    fn drop(&mut self) {
        helpers().remove(&self.0);
    }
}

fn helpers() -> MutexGuard<'static, BTreeSet<pid_t>> {
    HELPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process adopts orphans, and the number of running commands.
static ADOPTING: Mutex<(bool, usize)> = Mutex::new((false, 0));

/// Makes this process adopt and end the processes that a helper leaves behind when a command kills it. This applies
/// while commands run. Only a program should call this: a library would also end processes that its host starts.
pub fn adopt_orphans() {
    adopting().0 = true;
}

fn adopting() -> MutexGuard<'static, (bool, usize)> {
    ADOPTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes that this process adopts when the helper that had adopted them is killed. Several commands may run at
/// once. So a child counts as an orphan if it is not a helper, did not exist before, and is not in this process's group
/// or session, where other children usually are.
pub(in crate::runner) struct Orphans {
    /// Other children that existed before the command; None if this process does not adopt orphans.
    known: Option<Vec<pid_t>>,
}

impl Orphans {
    /// Records the existing children before a command begins.
    pub(in crate::runner) fn expect() -> Self {
        let mut adopting = adopting();
        adopting.1 += 1;
        let adopts = adopting.0 && set_child_subreaper(Some(getpid())).is_ok();
        let known = || children::of_this_process().map(without_helpers);
        Self { known: adopts.then(known).flatten() }
    }

    /// Ends the orphans. May also end a process that is started meanwhile in its own group, unless it is a helper.
    pub(in crate::runner) fn end(&self) {
        let Some(known) = &self.known else { return };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
            let orphans = orphans_among(children::of_this_process().unwrap_or_default(), known);
            if orphans.is_empty() {
                break;
            }
            for orphan in orphans {
                // SAFETY: a child of ours that nobody else waits for, so its process ID stays valid until it is reaped
                // here.
                unsafe {
                    libc::kill(orphan, libc::SIGKILL);
                    libc::waitpid(orphan, ptr::null_mut(), libc::WNOHANG);
                }
            }
            drop(alone);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        let mut adopting = adopting();
        adopting.1 -= 1;
        if *adopting == (true, 0) {
            let _ = set_child_subreaper(None);
        }
    }
}

fn without_helpers(mut children: Vec<pid_t>) -> Vec<pid_t> {
    let helpers = helpers();
    children.retain(|pid| !helpers.contains(pid));
    children
}

fn orphans_among(children: Vec<pid_t>, known: &[pid_t]) -> Vec<pid_t> {
    let mut orphans = without_helpers(children);
    orphans.retain(|pid| !known.contains(pid) && is_apart(*pid));
    orphans
}

/// Whether a process is in another session or group than this process. Helpers and their descendants are.
fn is_apart(pid: pid_t) -> bool {
    // SAFETY: system calls on integers.
    unsafe { libc::getsid(pid) != libc::getsid(0) || libc::getpgid(pid) != libc::getpgid(0) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{self, Command, Stdio};

    use super::*;

    #[test]
    fn of_the_children_only_those_are_orphans_that_nobody_started_here() {
        let start = |apart: bool| {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped());
            if apart {
                command.process_group(0);
            }
            command.spawn()
        };
        let pid = |child: &Child| pid_t::try_from(child.id()).unwrap();
        let mut before = start(true).unwrap();
        let known = [pid(&before)];
        let (mut helper, started) = HelperGuard::start(|| start(true)).unwrap();
        let (mut ours, mut orphan) = (start(false).unwrap(), start(true).unwrap());
        let all = [&before, &helper, &ours, &orphan].map(pid);
        let found = || {
            let mut children = children::scanned(process::id()).unwrap();
            // Other tests have their own children.
            children.retain(|pid| all.contains(pid));
            children.sort_unstable();
            assert_eq!(children.len(), all.len());
            orphans_among(children, &known)
        };
        assert_eq!(found(), [pid(&orphan)]);
        drop(started);
        assert!(found().contains(&pid(&helper)));
        for child in [&mut before, &mut helper, &mut ours, &mut orphan] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
