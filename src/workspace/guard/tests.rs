//! The guard by itself: what it takes for its own, what for a command's.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::workspace::protected::defaults;

#[test]
fn the_places_are_those_that_exist_at_the_roots() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in [".git/hooks", "a/b/.git", "a/.vscode", "a/b/.VSCode/x", "out/c/.git", "state"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join(".gitignore"), "out\n").unwrap();
    std::os::unix::fs::symlink("nowhere", root.join(".envrc")).unwrap();
    let workspace = Workspace::open(&root, &[root.join("state")], &defaults()).unwrap();
    let mut guard = Guard::new(Quarantine::new(root.join("state"), "state", "turn"));
    assert_eq!(guard.kept(&workspace, false), Kept::default());
    assert!(!guard.has_begun());
    assert!(guard.begin(&workspace).unwrap().is_some());
    // One snapshot a turn.
    assert!(guard.begin(&workspace).unwrap().is_none());
    let Kept { mut places, pinned } = guard.kept(&workspace, false);
    assert_eq!(pinned, [""; 0].map(PathBuf::from));
    places.sort();
    let expected = [".envrc", ".git", "a/b/.VSCode", "a/b/.git"];
    assert_eq!(places, expected.map(|path| root.join(path)));
    assert!(guard.check(&workspace).is_empty());
}

#[test]
fn deaddrops_own_files_under_such_a_name_change_as_they_please() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(".idea/state")).unwrap();
    let state = root.join(".idea/state");
    let workspace = Workspace::open(&root, std::slice::from_ref(&state), &defaults()).unwrap();
    let mut guard = Guard::new(Quarantine::new(state.clone(), "state", "turn"));
    guard.begin(&workspace).unwrap();
    fs::write(state.join("journal"), "x").unwrap();
    assert!(guard.check(&workspace).is_empty());
    fs::write(root.join(".idea/x"), "x").unwrap();
    assert_eq!(guard.check(&workspace).len(), 1);
    assert!(state.join("quarantine/turn/1_x").exists() && state.join("journal").exists());
}

/// A guard over a repository as the journal gives it after a new start of the machine, altered.
fn after_a_new_start(alter: impl Fn(&mut serde_json::Value)) -> (tempfile::TempDir, Guard) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
    fs::write(dir.path().join(".git/config"), "[core]\n").unwrap();
    // Too large to have a digest: its time and number are compared.
    let large = fs::File::create(dir.path().join(".git/hooks/large")).unwrap();
    large.set_len(5 << 20).unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let place = || Quarantine::new(dir.path().join(".."), "..", "never-made");
    let mut guard = Guard::new(place());
    let mut kept = serde_json::to_value(guard.begin(&workspace).unwrap().unwrap()).unwrap();
    alter(&mut kept);
    let guard = Guard::resumed(place(), serde_json::from_value(kept).unwrap());
    (dir, guard)
}

fn each_item(kept: &mut serde_json::Value, alter: impl Fn(&mut serde_json::Value)) {
    kept["roots"][0]["items"].as_object_mut().unwrap().values_mut().for_each(alter);
}

#[test]
fn a_machine_that_numbers_its_devices_anew_makes_nobodys_repository_another() {
    // As journals were before, with devices in them.
    let (dir, mut guard) = after_a_new_start(|kept| {
        kept.as_object_mut().unwrap().remove("inode");
        each_item(kept, |item| item["device"] = 99_999.into());
    });
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    assert_eq!(guard.check(&workspace), [""; 0]);
    assert_eq!(guard.finish(&workspace, &workspace.walk().unwrap()), [""; 0]);
    assert!(dir.path().join(".git/config").exists());
}

#[test]
fn where_files_are_numbered_anew_contents_are_compared() {
    let renumbered = |kept: &mut serde_json::Value| {
        kept["inode"] = 1.into();
        each_item(kept, |item| item["inode"] = 2.into());
    };
    let (dir, mut guard) = after_a_new_start(renumbered);
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    assert_eq!(guard.check(&workspace), [""; 0]);
    // Another number where those of the root hold is another folder.
    let (dir, mut guard) = after_a_new_start(|kept| each_item(kept, |i| i["inode"] = 2.into()));
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let found = guard.untouched(&workspace);
    assert!(found.iter().any(|(key, change)| key == ".git" && *change == Change::Changed));
    // What a command wrote is found by its content all the same.
    let (dir, mut guard) = after_a_new_start(renumbered);
    fs::write(dir.path().join(".git/config"), "[evil]\n").unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let found = guard.untouched(&workspace);
    assert_eq!(found, [(".git/config".to_owned(), Change::Changed)]);
}

impl Guard {
    /// What a check would find at the root, without doing anything about it.
    fn untouched(&mut self, workspace: &Workspace) -> Vec<(String, Change)> {
        let known = self.known.as_mut().unwrap();
        known.meet(workspace.number());
        let now = look::again(workspace, "", &known.roots[0]).unwrap();
        known.roots[0].differences(&now)
    }
}

#[test]
fn without_a_place_for_it_nothing_is_watched() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let mut guard = Guard::default();
    assert!(guard.begin(&workspace).unwrap().is_none() && !guard.has_begun());
    fs::create_dir(dir.path().join(".git")).unwrap();
    assert!(guard.check(&workspace).is_empty() && dir.path().join(".git").exists());
}
