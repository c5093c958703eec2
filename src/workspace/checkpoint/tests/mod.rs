//! Scans, comparisons and undo in real folders.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use super::scan::READS;
use super::*;
use crate::protocol::{Existing, RelPath};
use crate::workspace::Workspace;
use crate::workspace::protected::defaults;

pub(super) const IGNORED: IgnoredLimits = IgnoredLimits { file: 100, all: 250 };

pub(super) struct Scene {
    pub(super) dir: tempfile::TempDir,
    pub(super) workspace: Workspace,
    pub(super) store: CheckpointStore,
}

pub(super) fn scene() -> Scene {
    scene_in(&std::env::temp_dir())
}

/// A scene in a new folder inside this folder.
pub(super) fn scene_in(folder: &Path) -> Scene {
    let dir = tempfile::tempdir_in(folder).unwrap();
    let root = dir.path().join("w");
    fs::create_dir(&root).unwrap();
    let workspace = Workspace::open(&root, &[], &defaults()).unwrap();
    let store = CheckpointStore::new(&dir.path().join("checkpoints"), 1000, IGNORED, 100_000);
    Scene { dir, workspace, store }
}

/// All entries below a folder, and the folder itself under an empty name: modes, and contents or link targets.
fn all(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    // FUSE shows a removed file under such a name if a process started by another test still has it open.
    let is_there = |e: &walkdir::DirEntry| !e.file_name().as_encoded_bytes().starts_with(b".fuse_");
    for entry in walkdir::WalkDir::new(root).into_iter().filter_entry(is_there) {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(root).unwrap().to_string_lossy().into_owned();
        let kind = entry.file_type();
        let bytes = if kind.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            format!("-> {}", target.display()).into_bytes()
        } else if kind.is_file() {
            fs::read(entry.path()).unwrap()
        } else {
            b"no file".to_vec()
        };
        found.insert(path, (entry.metadata().unwrap().mode(), bytes));
    }
    found
}

impl Scene {
    /// The store as another process would open it, with this limit.
    pub(super) fn new_store(&self, limit: u64) -> CheckpointStore {
        CheckpointStore::new(&self.dir.path().join("checkpoints"), 1000, IGNORED, limit)
    }

    /// Whether a content is stored.
    pub(super) fn has(&self, bytes: &[u8]) -> bool {
        self.store.blobs.size_of(&BlobId::of(bytes)).is_some()
    }

    pub(super) fn sh(&self, script: &str) {
        let root = self.dir.path().join("w");
        let status = Command::new("/bin/sh").args(["-ec", script]).current_dir(root).status();
        assert!(status.unwrap().success(), "{script}");
    }

    pub(super) fn all(&self) -> BTreeMap<String, (u32, Vec<u8>)> {
        all(&self.dir.path().join("w"))
    }

    /// The changes that a script makes, recorded as a turn with one command.
    pub(super) fn turn(&mut self, script: &str) -> Vec<TreeChange> {
        let Scene { workspace, store, .. } = self;
        let mut recorder = Recorder::new(store);
        recorder.before_command(workspace).unwrap();
        let root = self.dir.path().join("w");
        let status = Command::new("/bin/sh").args(["-ec", script]).current_dir(root).status();
        assert!(status.unwrap().success(), "{script}");
        recorder.after_commands(&self.workspace).unwrap();
        recorder.finish(&self.workspace).changes.unwrap()
    }

    pub(super) fn plan(&mut self, changes: Vec<TreeChange>, force: bool) -> UndoPlan {
        let plan = self.store.plan(&self.workspace, changes, force).unwrap();
        self.store.sync().unwrap();
        plan
    }

    /// Makes these changes. Returns what could not be changed.
    pub(super) fn make(&mut self, changes: Vec<TreeChange>) -> Vec<(String, String)> {
        let plan = self.plan(changes, false);
        assert_eq!(plan.conflicts, Vec::<String>::new());
        let mut left = plan.left.clone();
        left.extend(plan.carry_out(&mut self.store, &self.workspace, false).unwrap().left);
        left
    }

    /// Undoes changes and makes them again: the workspace must be as `before`, and then as it is now.
    #[track_caller]
    pub(super) fn goes_back_and_forth(
        &mut self,
        changes: &[TreeChange],
        before: &BTreeMap<String, (u32, Vec<u8>)>,
    ) {
        let after = self.all();
        assert_eq!(self.make(reverse(changes.to_vec())), []);
        assert_eq!(self.all(), *before);
        assert_eq!(self.make(changes.to_vec()), []);
        assert_eq!(self.all(), after);
    }
}

fn paths(changes: &[TreeChange]) -> Vec<&str> {
    changes.iter().map(|change| change.path.as_str()).collect()
}

const BEFORE: &str = "echo a > a; mkdir -p d/e; echo x > d/e/x; echo y > d/y; chmod 640 d/y; ln -s ../a d/l; \
    ln -s nowhere l; mkdir empty; chmod 700 empty; echo gone > .gitkeep; printf 'n\\377' > \"$(printf 'b\\377%%')\"";

#[test]
fn what_a_command_changed_goes_back_and_forth_byte_for_byte() {
    let mut scene = scene();
    scene.sh(BEFORE);
    let before = scene.all();
    let changes = scene.turn(
        "echo more >> a; rm d/e/x; rmdir d/e; echo now a file > d/e; chmod 755 d/y; rm l; mkdir l; \
         echo in > l/in; ln -sfn ../elsewhere d/l; mv empty full; echo f > full/f; chmod 500 full; \
         rm .gitkeep; mkdir -p new/deep; echo n > new/deep/n; mv \"$(printf 'b\\377%%')\" c; chmod 711 d",
    );
    assert_ne!(before, scene.all());
    for _ in 0..2 {
        scene.goes_back_and_forth(&changes, &before);
    }
}

#[test]
fn what_is_unchanged_is_not_read_again() {
    let mut scene = scene();
    scene.sh("echo one > a; echo two > b; touch -d '1 hour ago' a");
    // Young files are read once more.
    std::thread::sleep(std::time::Duration::from_millis(2_100));
    scene.turn("true");
    let marked = fs::read_to_string(scene.dir.path().join("checkpoints/scanned")).unwrap();
    let reads = READS.get();
    assert_eq!(scene.turn("true"), []);
    assert_eq!(READS.get(), reads);
    assert_eq!(fs::read_to_string(scene.dir.path().join("checkpoints/scanned")).unwrap(), marked);
    // A change that keeps the size and the modification time is detected.
    let changes = scene.turn("echo One > a; touch -d '1 hour ago' a");
    assert_eq!(paths(&changes), ["a"]);
    // Another process knows the results of this scan.
    scene.store = scene.new_store(100_000);
    let reads = READS.get();
    assert_eq!(scene.turn("true"), []);
    assert_eq!(READS.get(), reads + 2, "the young one, before and after");
    // If its pack is missing, the content is stored again.
    fs::remove_dir_all(scene.dir.path().join("checkpoints/packs")).unwrap();
    scene.store = scene.new_store(100_000);
    assert_eq!(scene.turn("true"), []);
    assert!(scene.has(b"two\n"));
}

#[test]
fn nothing_is_removed_whose_content_cannot_be_read_again() {
    let mut scene = scene();
    let changes = scene.turn("echo a > a");
    fs::remove_dir_all(scene.dir.path().join("checkpoints/packs")).unwrap();
    let plan = scene.store.plan(&scene.workspace, reverse(changes), false).unwrap();
    let left = [("a".to_owned(), "its current content is not stored".to_owned())];
    assert_eq!((plan.changes, plan.left), (vec![], left.to_vec()));
}

#[test]
fn operations_need_no_walk() {
    let mut scene = scene();
    scene.sh("echo a > a; mkdir d; echo x > d/x; ln -s x d/l; mkdir d/empty");
    let before = scene.all();
    let path = |text: &str| RelPath::parse(text).unwrap();
    let Scene { workspace, store, .. } = &mut scene;
    let mut recorder = Recorder::new(store);
    let plan = workspace.plan_create(&path("new/deep/n"), b"n", Existing::Replace, false).unwrap();
    recorder.before_files(workspace, [plan.effect()]).unwrap();
    plan.execute(workspace).unwrap();
    let plan = workspace.plan_create(&path("a"), b"b", Existing::Replace, false).unwrap();
    recorder.before_files(workspace, [plan.effect()]).unwrap();
    plan.execute(workspace).unwrap();
    let plan = workspace.plan_move(&path("d"), &path("to/e"), false).unwrap();
    recorder.before_move(workspace, plan.effect()).unwrap();
    plan.execute().unwrap();
    let plan = workspace.plan_delete(&path("to/e/x"), false).unwrap();
    // The file is the one from d/x, and nothing existed at this path.
    assert!(recorder.before_files(workspace, [plan.effect()]).is_none());
    plan.execute(workspace).unwrap();
    let done = recorder.finish(workspace);
    let changes = done.changes.unwrap();
    assert_eq!(
        paths(&changes),
        [
            "a",
            "d",
            "d/empty",
            "d/l",
            "d/x",
            "new",
            "new/deep",
            "new/deep/n",
            "to",
            "to/e",
            "to/e/empty",
            "to/e/l"
        ]
    );
    assert!(!scene.dir.path().join("checkpoints/scanned").exists());
    assert!(changes.iter().all(|change| !change.by_command));
    scene.goes_back_and_forth(&changes, &before);
}

#[test]
fn the_rules_are_those_from_before_the_turn() {
    let mut scene = scene();
    scene.sh("echo out/ > .gitignore; mkdir out; echo o > out/o; echo a > a");
    let path = RelPath::parse(".gitignore").unwrap();
    let Scene { workspace, store, dir } = &mut scene;
    let mut recorder = Recorder::new(store);
    // This file is no longer ignored, but the command then ignores a file that it makes.
    let plan = workspace.plan_create(&path, b"a\n", Existing::Replace, false).unwrap();
    recorder.before_files(workspace, [plan.effect()]).unwrap();
    plan.execute(workspace).unwrap();
    recorder.before_command(workspace).unwrap();
    let script =
        "echo a > .ignore; echo b > b; echo b >> .ignore; echo more > out/more; echo A > a";
    let root = dir.path().join("w");
    Command::new("/bin/sh").args(["-ec", script]).current_dir(root).status().unwrap();
    let walk = recorder.after_commands(workspace).unwrap();
    let listed: Vec<_> = walk.files().map(|file| file.path.to_owned()).collect();
    assert_eq!(listed, [".gitignore", ".ignore", "out/more", "out/o"]);
    let changes = recorder.finish(workspace).changes.unwrap();
    assert_eq!(paths(&changes), [".gitignore", ".ignore", "a", "b"]);
    assert_eq!(scene.make(reverse(changes)), []);
    let names: Vec<String> = scene.all().into_keys().collect();
    assert_eq!(names, ["", ".gitignore", "a", "out", "out/more", "out/o"]);
}

#[test]
fn the_root_is_as_it_was_and_what_it_was_before_is_no_change() {
    let mut scene = scene();
    scene.sh("chmod 751 .; echo a > a; mkdir d");
    assert_eq!(paths(&scene.turn("true")), Vec::<&str>::new());
    let before = scene.all();
    let changes = scene.turn("echo A > a; chmod 500 d; chmod 2570 .");
    assert_eq!((paths(&changes), changes[0].shown()), (vec!["", "a", "d"], ".".to_owned()));
    scene.goes_back_and_forth(&changes, &before);
    // The person's own change is a conflict, as for any folder.
    scene.sh("chmod 711 .");
    assert_eq!(scene.plan(reverse(changes.clone()), false).conflicts, ["."]);
    let plan = scene.plan(reverse(changes), true);
    assert_eq!(plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left, []);
    assert_eq!(scene.all(), before);
}

#[test]
fn what_somebody_changed_in_between_and_a_turn_moved_on_is_refused() {
    let mut scene = scene();
    scene.sh("echo a > a");
    let first = scene.turn("mv a b");
    scene.sh("echo mine > b");
    let second = scene.turn("mv b c");
    let both = reverse(compose([first, second]));
    assert_eq!(scene.plan(both.clone(), false).conflicts, ["b"]);
    let plan = scene.plan(both, true);
    assert_eq!(plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left, []);
    assert_eq!(fs::read_to_string(scene.dir.path().join("w/a")).unwrap(), "a\n");
    assert!(!scene.dir.path().join("w/c").exists());
}

#[test]
fn what_is_not_kept_is_left_alone_and_named() {
    let mut scene = scene();
    scene.sh("head -c 2000 /dev/zero > big; echo a > a; mkdir .husky; echo h > .husky/h");
    let changes = scene.turn(
        "echo more >> big; head -c 3000 /dev/zero > large; mkfifo f; echo A > a; echo x >> .husky/h",
    );
    assert_eq!(paths(&changes), [".husky/h", "a", "big", "f", "large"]);
    let left = scene.make(reverse(changes));
    let named: Vec<&str> = left.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(named, [".husky/h", "big", "f", "large"]);
    assert!(left[0].1.contains("protected") && left[1].1.contains("checkpoint_file_bytes"));
    let all = scene.all();
    assert_eq!(
        (all["a"].1.as_slice(), all["big"].1.len(), all["large"].1.len()),
        (&b"a\n"[..], 2005, 3000)
    );
    assert!(all.contains_key("f"));
}

#[test]
fn beyond_the_room_files_are_named_and_nothing_is_deleted_that_is_not_kept() {
    let mut scene = scene();
    scene.store = CheckpointStore::new(&scene.dir.path().join("checkpoints"), 1000, IGNORED, 1500);
    scene.sh("head -c 900 /dev/zero > a; head -c 900 /dev/urandom > b; echo c > c");
    let changes = scene.turn("rm c; echo x > b; head -c 800 /dev/urandom > n");
    let kept = |n: usize| matches!(changes[n].before, Some(TreeEntry::File { .. }));
    assert_eq!(paths(&changes), ["b", "c", "n"]);
    assert!(!kept(0) && kept(1), "{changes:?}");
    let left = scene.make(reverse(changes));
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|(_, why)| why.contains("checkpoint_max_bytes")), "{left:?}");
    let all = scene.all();
    assert!(all.contains_key("n") && all.contains_key("c"));
}

#[test]
fn what_the_person_changed_since_is_refused_and_kept_where_forced() {
    let mut scene = scene();
    scene.sh("echo a > a; echo b > b");
    let changes = scene.turn("echo A > a; echo B > b; echo n > n; mkdir d; echo in > d/in");
    scene.sh("echo mine > a; rm n; echo mine > d/mine");
    let plan = scene.plan(reverse(changes.clone()), false);
    assert_eq!(plan.conflicts, ["a"]);
    let plan = scene.plan(reverse(changes), true);
    let left = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left;
    assert_eq!(left, [("d".to_owned(), "it is not empty: 'mine' stays".to_owned())]);
    assert_eq!(fs::read_to_string(scene.dir.path().join("w/a")).unwrap(), "a\n");
    // Overwritten content can be restored.
    scene.make(reverse(plan.changes));
    assert_eq!(fs::read_to_string(scene.dir.path().join("w/a")).unwrap(), "mine\n");
}

#[test]
fn a_link_that_takes_a_folders_place_leads_nowhere() {
    let mut scene = scene();
    scene.sh("mkdir d; echo x > d/x; mkdir ../outside; echo theirs > ../outside/x");
    let changes = scene.turn("echo y > d/x; echo n > d/n");
    let plan = scene.plan(reverse(changes.clone()), false);
    scene.sh("mv d e; ln -s ../outside d; echo y > ../outside/x; echo n > ../outside/n");
    let left = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap().left;
    assert!(!left.is_empty());
    let outside = all(&scene.dir.path().join("outside"));
    assert_eq!((outside["x"].1.as_slice(), outside["n"].1.as_slice()), (&b"y\n"[..], &b"n\n"[..]));
    // The same if the link already exists when the undo is planned.
    assert_eq!(scene.plan(reverse(changes), false).conflicts, ["d/x"]);
}

#[test]
fn a_turn_that_is_taken_up_again_knows_what_was_before_it() {
    let mut scene = scene();
    scene.sh("echo a > a; echo b > b");
    let path = RelPath::parse("a").unwrap();
    let Scene { workspace, store, .. } = &mut scene;
    let mut recorder = Recorder::new(store);
    let plan = workspace.plan_create(&path, b"A", Existing::Replace, false).unwrap();
    let mut noted: Vec<CheckpointNote> =
        recorder.before_files(workspace, [plan.effect()]).into_iter().collect();
    plan.execute(workspace).unwrap();
    noted.push(recorder.before_command(workspace).unwrap().0);
    scene.sh("echo B > b; echo c > c");
    // The first process ends here, perhaps after its last scan.
    Recorder::resumed(&mut scene.store, noted.clone(), &[])
        .after_commands(&scene.workspace)
        .unwrap();
    scene.store.sync().unwrap();
    scene.store =
        CheckpointStore::new(&scene.dir.path().join("checkpoints"), 1000, IGNORED, 100_000);
    let recorder = Recorder::resumed(&mut scene.store, noted.clone(), &[]);
    assert_eq!(recorder.failed(), None);
    let changes = recorder.finish(&scene.workspace).changes.unwrap();
    assert_eq!(paths(&changes), ["a", "b", "c"]);
    assert_eq!(changes[0].before, Some(file(b"a\n")));
    // Without the cache file, no changes are invented.
    fs::remove_file(scene.dir.path().join("checkpoints/scanned")).unwrap();
    let recorder = Recorder::resumed(&mut scene.store, noted, &[]);
    assert!(recorder.finish(&scene.workspace).changes.unwrap_err().contains("is gone"));
}

fn file(bytes: &[u8]) -> TreeEntry {
    TreeEntry::File { blob: BlobId::of(bytes), mode: 0o644, size: bytes.len() as u64 }
}

#[test]
fn a_repository_is_left_out_wherever_it_lies() {
    let mut scene = scene();
    scene.sh("mkdir -p .git sub/.git; echo r > .git/HEAD; echo s > sub/.git/HEAD; echo x > sub/x");
    let changes = scene.turn("echo R > .git/HEAD; echo S > sub/.git/HEAD; echo X > sub/x");
    assert_eq!(paths(&changes), ["sub/x"]);
}

#[test]
fn what_nobody_needs_is_swept_and_the_rest_stays() {
    let mut scene = scene();
    scene.sh("echo a > a");
    let first = scene.turn("echo b > a");
    scene.turn("echo c > a");
    assert!(scene.has(b"a\n") && scene.has(b"b\n"));
    let needed = scene.store.cache.blobs();
    scene.store.retain(&needed).unwrap();
    assert!(!scene.has(b"a\n") && !scene.has(b"b\n") && scene.has(b"c\n"));
    scene.sh("echo b > a");
    let left = scene.make(reverse(first));
    assert_eq!(left, [("a".to_owned(), "its earlier content is not stored".to_owned())]);
}

#[test]
fn what_was_looked_through_is_not_at_once_looked_through_again() {
    let mut scene = scene();
    scene.store = scene.new_store(10_000);
    scene.sh("for n in $(seq 18); do head -c 500 /dev/urandom > f$n; done");
    scene.turn("true");
    assert!(scene.store.is_full());
    let needed = scene.store.cache.blobs();
    scene.store.retain(&needed).unwrap();
    // All of it is needed, so another process would not find anything more to remove.
    scene.store = scene.new_store(10_000);
    assert!(scene.store.size() > 9_000 && !scene.store.is_full());
    scene.store.add_json(&"x".repeat(600)).unwrap();
    assert!(scene.store.is_full());
}
