//! Ends a tree of processes from outside, by following parents. This is the last resort, because it does not find
//! processes that have left their parent. On Linux, the helper ends its tree from inside.

use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// How many times the process table is read, to find processes that were created in the meantime.
const ROUNDS: usize = 20;

/// Kills the process `root` and all its descendants. Repeats this until none is found.
pub(super) fn end(root: u32) {
    end_below(root, true);
}

/// Kills all descendants of the process `root`. Repeats this until none is found.
#[cfg(not(target_os = "linux"))]
pub(super) fn end_descendants(root: u32) {
    end_below(root, false);
}

fn end_below(root: u32, root_too: bool) {
    let root = Pid::from_u32(root);
    let Ok(mut system) = System::new() else { return };
    for _ in 0..ROUNDS {
        system.refresh_processes_specifics(
            ProcessesToUpdate::All,
            true,
            ProcessRefreshKind::nothing(),
        );
        let mut found = vec![root];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            let children = system.processes().values().filter(|p| p.parent() == Some(parent));
            found.extend(children.map(sysinfo::Process::pid).filter(|pid| *pid != root));
            next += 1;
        }
        // Kill children first: after their parent is killed, they can no longer be found.
        let mut killed = 0;
        for pid in found.iter().rev().filter(|pid| root_too || **pid != root) {
            killed += usize::from(system.process(*pid).is_some_and(sysinfo::Process::kill));
        }
        if killed <= usize::from(root_too) {
            break;
        }
    }
}
