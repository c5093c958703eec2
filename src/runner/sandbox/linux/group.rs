//! A control group that limits the number of processes for root if the pid namespace has no limit of its own. Resource
//! limits (rlimits) do not restrict root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The possible locations of the pids controller: version 2, then version 1.
const ROOTS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "cgroup.subtree_control"), ("/sys/fs/cgroup/pids", "cgroup.procs")];
/// The prefix of the names of deaddrop's groups. The probe looks for it.
pub(super) const PREFIX: &str = "deaddrop-";

/// A control group for this process.
pub(super) struct Group(PathBuf);

impl Group {
    /// Creates a group for at most `most` processes. None if that is not possible. Removes the groups of helpers that
    /// were killed.
    pub(super) fn new(most: u64) -> Option<Self> {
        let (root, _) = ROOTS.iter().find(|(root, file)| {
            let file = Path::new(root).join(file);
            let offers = |text: String| root.ends_with("/pids") || text.contains("pids");
            fs::read_to_string(file).is_ok_and(offers)
        })?;
        for entry in fs::read_dir(root).ok()?.flatten() {
            let name = entry.file_name();
            let helper = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            if helper.is_some_and(|helper| !Path::new("/proc").join(helper).exists()) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let group = Self(Path::new(root).join(format!("{PREFIX}{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        let bounded = fs::write(group.0.join("pids.max"), most.to_string());
        bounded.is_ok().then_some(group)
    }

    /// Moves this process, and everything that it will start, into the group.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// Removes the group once all its processes are dead.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.0);
    }
}
