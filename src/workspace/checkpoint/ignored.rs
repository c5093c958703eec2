//! Selects the ignored files to store, so that an undo can restore them if a command deletes them: small files that are
//! not build products and whose names do not suggest secrets. An ignored folder is stored completely or not at all.

use crate::secrets::is_secret_file;
use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::names::{escaped_os, shown, split};
use crate::workspace::products::is_ignored_product_path;
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::detailed::WalkEntry;

/// The most ignored files and folders that are stored.
const ENTRIES: usize = 10_000;

/// How many bytes of ignored files are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoredLimits {
    /// The most bytes of one file.
    pub file: u64,
    /// The most bytes of all files together.
    pub all: u64,
}

/// The ignored files and folders to store. If there is not enough room for all, the first ones by path are chosen.
pub(super) fn select(
    workspace: &Workspace,
    left_out: &[WalkEntry],
    limits: IgnoredLimits,
) -> Vec<WalkEntry> {
    let mut left_out: Vec<&WalkEntry> = left_out.iter().collect();
    left_out.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let (mut kept, mut room) = (Vec::new(), limits.all);
    let mut folders = FolderCache::new(workspace);
    for one in left_out {
        let limits = IgnoredLimits { all: room, ..limits };
        let found = collect(workspace, &mut folders, &one.path, limits, ENTRIES - kept.len());
        let found = found.unwrap_or_default();
        room -= found.iter().map(|met| met.size).sum::<u64>();
        kept.extend(found);
    }
    kept
}

/// A file, or a folder with everything in it. None if any of the entries must not be stored.
fn collect(
    workspace: &Workspace,
    folders: &mut FolderCache,
    path: &str,
    limits: IgnoredLimits,
    entries: usize,
) -> Option<Vec<WalkEntry>> {
    let (mut found, mut pending, mut bytes) = (Vec::new(), vec![path.to_owned()], 0);
    while let Some(path) = pending.pop() {
        let (_, stands) = folders.entry(&path).ok()?;
        let mut met = WalkEntry::of(path, &stands);
        let name = shown(&met.path);
        let is_kept = match met.kind {
            None => {
                !split(&met.path).1.eq_ignore_ascii_case(".git")
                    && !is_ignored_product_path(&format!("{name}/"))
            }
            Some(EntryKind::File) => met.size <= limits.file && !is_ignored_product_path(&name),
            Some(EntryKind::Link) => true,
            Some(EntryKind::Other) => false,
        };
        if !is_kept || is_secret_file(&name) || workspace.is_state(&met.path, &stands) {
            return None;
        }
        if met.kind.is_none() {
            met.size = 0;
            for entry in folders.folder(&met.path).ok()?.entries().ok()? {
                pending.push(format!("{}/{}", met.path, escaped_os(&entry.ok()?.file_name())));
            }
        }
        bytes += met.size;
        found.push(met);
        if bytes > limits.all || found.len() + pending.len() > entries {
            return None;
        }
    }
    Some(found)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::reverse;
    use super::super::tests::scene;

    #[test]
    fn what_is_deleted_of_small_ignored_files_comes_back_where_nothing_stands() {
        let mut scene = scene();
        scene.sh("printf '*.db\ndata/\nlogs/\nnode_modules/\n.env\n' > .gitignore; mkdir -p data/in logs node_modules; \
            echo l > local.db; echo i > data/in/i; ln -s i data/in/l; echo n > node_modules/n; echo s > .env; \
            echo k > logs/k; head -c 200 /dev/zero | tee big.db > logs/big");
        let before = scene.all();
        let changes = scene.turn("rm -r *.db data logs node_modules .env; echo a > new.db");
        let paths: Vec<&str> = changes.iter().map(|change| &*change.path).collect();
        assert_eq!(paths, ["data", "data/in", "data/in/i", "data/in/l", "local.db"]);
        assert!(changes.iter().all(|change| change.ignored && change.by_command));
        // A file that the person has put there stays, even with force.
        scene.sh("echo mine > local.db");
        for force in [false, true] {
            let plan = scene.plan(reverse(changes.clone()), force);
            let left: Vec<&str> = plan.left.iter().map(|(path, _)| &**path).collect();
            assert_eq!((left, plan.conflicts.len()), (vec!["local.db"], 0));
        }
        scene.sh("rm local.db");
        assert_eq!(scene.make(reverse(changes.clone())), []);
        let now = scene.all();
        for path in paths {
            assert_eq!(now[path], before[path], "{path}");
        }
        assert_eq!(scene.make(changes), []);
        assert!(!scene.all().contains_key("data"));
        // Nothing is recorded of files that a command only wrote to.
        assert_eq!(scene.turn("echo b > new.db; echo l > local.db"), []);
    }
}
