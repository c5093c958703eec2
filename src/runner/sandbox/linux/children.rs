//! Lists the children of this process from `/proc`.

use std::fs;
use std::path::Path;
use std::process;

use libc::pid_t;

/// The children of this process, or, if the system distinguishes them, only those of its main thread, which adopts
/// orphans. None if the children are not known.
pub(super) fn of_this_process() -> Option<Vec<pid_t>> {
    let me = process::id();
    // If /proc belongs to another namespace, its process IDs are different.
    if fs::read_link("/proc/self").ok()? != Path::new(&me.to_string()) {
        return None;
    }
    listed(me).or_else(|| scanned(me))
}

/// Reads the list of children of the main thread. Needs `CONFIG_PROC_CHILDREN`.
fn listed(me: u32) -> Option<Vec<pid_t>> {
    let list = fs::read_to_string(format!("/proc/self/task/{me}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect())
}

/// Finds the children of all threads.
pub(super) fn scanned(me: u32) -> Option<Vec<pid_t>> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let is_child = |pid: &pid_t| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        parent(&stat) == Some(me)
    };
    Some(
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(is_child)
            .collect(),
    )
}

/// The parent in a line such as `7 (name) S 1 …`. The name may contain anything.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_without_the_list_of_children() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let found = scanned(process::id()).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(found.contains(&pid_t::try_from(child.id()).unwrap()), "{found:?}");
    }

    #[test]
    fn a_name_cannot_pose_as_a_parent() {
        assert_eq!(parent("7 (a) S 9 (b)) R 1 7 7 0"), Some(1));
        assert_eq!(parent(""), None);
    }
}
