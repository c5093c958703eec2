//! The check alone: which changes it attributes to the person, and which to a command.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

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
    let mut protection = Protection::new(Quarantine::new(root.join("state"), "state", "turn"));
    assert_eq!(protection.read_only(&workspace, false), ReadOnly::default());
    assert!(!protection.has_begun());
    assert!(protection.begin(&workspace, None).unwrap().is_some());
    // There is one snapshot per turn.
    assert!(protection.begin(&workspace, None).unwrap().is_none());
    let ReadOnly { mut places, pinned } = protection.read_only(&workspace, false);
    assert_eq!(pinned, [""; 0].map(PathBuf::from));
    places.sort();
    let expected = [".envrc", ".git", "a/b/.VSCode", "a/b/.git"];
    assert_eq!(places, expected.map(|path| root.join(path)));
    assert!(protection.check(&workspace).is_empty());
}

#[test]
fn deaddrops_own_files_under_such_a_name_change_as_they_please() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join(".idea/state")).unwrap();
    let state = root.join(".idea/state");
    let workspace = Workspace::open(&root, std::slice::from_ref(&state), &defaults()).unwrap();
    let mut protection = Protection::new(Quarantine::new(state.clone(), "state", "turn"));
    protection.begin(&workspace, None).unwrap();
    fs::write(state.join("journal"), "x").unwrap();
    assert!(protection.check(&workspace).is_empty());
    fs::write(root.join(".idea/x"), "x").unwrap();
    assert_eq!(protection.check(&workspace).len(), 1);
    assert!(state.join("quarantine/turn/1_x").exists() && state.join("journal").exists());
}

/// A check of a repository after a reboot, from a snapshot in the journal that `alter` has changed.
fn after_a_new_start(alter: impl Fn(&mut serde_json::Value)) -> (tempfile::TempDir, Protection) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
    fs::write(dir.path().join(".git/config"), "[core]\n").unwrap();
    // This file is too large for a digest, so its time and inode are compared.
    let large = fs::File::create(dir.path().join(".git/hooks/large")).unwrap();
    large.set_len(5 << 20).unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let place = || Quarantine::new(dir.path().join(".."), "..", "never-made");
    let mut protection = Protection::new(place());
    let mut kept =
        serde_json::to_value(protection.begin(&workspace, None).unwrap().unwrap()).unwrap();
    alter(&mut kept);
    let protection = Protection::resumed(place(), serde_json::from_value(kept).unwrap());
    (dir, protection)
}

fn each_item(kept: &mut serde_json::Value, alter: impl Fn(&mut serde_json::Value)) {
    kept["roots"][0]["items"].as_object_mut().unwrap().values_mut().for_each(alter);
}

#[test]
fn a_machine_that_numbers_its_devices_anew_makes_nobodys_repository_another() {
    // As in older journals, which contain device numbers.
    let (dir, mut protection) = after_a_new_start(|kept| {
        kept.as_object_mut().unwrap().remove("inode");
        each_item(kept, |item| item["device"] = 99_999.into());
    });
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    assert_eq!(protection.check(&workspace), []);
    assert_eq!(protection.finish(&workspace, &workspace.walk().unwrap()), []);
    assert!(dir.path().join(".git/config").exists());
}

#[test]
fn where_files_are_numbered_anew_contents_are_compared() {
    let renumbered = |kept: &mut serde_json::Value| {
        kept["inode"] = 1.into();
        each_item(kept, |item| item["inode"] = 2.into());
    };
    let (dir, mut protection) = after_a_new_start(renumbered);
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    assert_eq!(protection.check(&workspace), []);
    // If the root's inode is the same, another inode means another folder.
    let (dir, mut protection) =
        after_a_new_start(|kept| each_item(kept, |i| i["inode"] = 2.into()));
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let found = protection.untouched(&workspace);
    assert!(found.iter().any(|(key, change)| key == ".git" && *change == EntryChange::Changed));
    // A change by a command is still found, because the contents differ.
    let (dir, mut protection) = after_a_new_start(renumbered);
    fs::write(dir.path().join(".git/config"), "[evil]\n").unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let found = protection.untouched(&workspace);
    assert_eq!(found, [(".git/config".to_owned(), EntryChange::Changed)]);
}

impl Protection {
    /// The differences that a check would find at the root. Repairs nothing.
    fn untouched(&mut self, workspace: &Workspace) -> Vec<(String, EntryChange)> {
        let known = self.known.as_mut().unwrap();
        known.drop_inodes_if_renumbered(workspace.inode());
        let now = ProtectedScan::again(workspace, &known.folders[0]).unwrap();
        known.folders[0].differences(&now)
    }
}

#[test]
fn without_a_place_for_it_nothing_is_watched() {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path(), &[], &defaults()).unwrap();
    let mut protection = Protection::default();
    assert!(protection.begin(&workspace, None).unwrap().is_none() && !protection.has_begun());
    fs::create_dir(dir.path().join(".git")).unwrap();
    assert!(protection.check(&workspace).is_empty() && dir.path().join(".git").exists());
}

/// A workspace in which a command runs, its protection, and the snapshot as the journal stores it.
fn with_a_command() -> (tempfile::TempDir, Workspace, Protection, String) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("workspace");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    fs::write(root.join(".git/config"), "old\n").unwrap();
    fs::write(root.join(".envrc"), "old\n").unwrap();
    let workspace = Workspace::open(&root, &[], &defaults()).unwrap();
    let mut protection = Protection::new(quarantine(&dir));
    let kept = serde_json::to_string(protection.begin(&workspace, None).unwrap().unwrap()).unwrap();
    (dir, workspace, protection, kept)
}

#[test]
fn of_an_opened_repository_what_is_compared_is_kept() {
    let (_dir, workspace, mut protection, _) = with_a_command();
    let root = workspace.path();
    for (file, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/hooks/deep/x", ""),
        (".git/objects/info/alternates", ""),
        (".git/modules/lib/HEAD", ""),
        (".git/modules/lib/config", ""),
        (".git/worktrees/w/gitdir", ""),
        (".git/refs/heads/main", ""),
        ("lib/.git/config", ""),
        ("tree/.git", "gitdir: ../.git/worktrees/w\n"),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    protection.known = None;
    protection.begin(&workspace, None).unwrap();
    let names = |paths: Vec<PathBuf>| -> Vec<String> {
        let below = |path: PathBuf| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = paths.into_iter().map(below).collect();
        names.sort();
        names
    };
    let ReadOnly { places, pinned } = protection.read_only(&workspace, true);
    assert_eq!(
        names(places),
        [
            ".envrc",
            ".git/config",
            ".git/hooks",
            ".git/modules/lib/config",
            ".git/objects/info/alternates",
            ".git/worktrees/w/gitdir",
            "lib/.git/config",
            "tree/.git",
        ]
    );
    let at = |name: &str| pinned.iter().position(|path| *path == root.join(name)).unwrap();
    assert!(at(".git") < at(".git/objects") && at(".git/objects") < at(".git/objects/info"));
    assert_eq!(pinned.len(), 8, "{pinned:?}");
    // A repository that contains deaddrop's own state stays read-only.
    let state = [root.join(".git/state")];
    let workspace = Workspace::open(root, &state, &defaults()).unwrap();
    let kept = protection.read_only(&workspace, true);
    assert!(kept.places.contains(&root.join(".git")) && !kept.pinned.contains(&root.join(".git")));
}

/// Turns a folder into one that git treats as a repository.
fn make_repository(folder: &Path) {
    for part in ["objects", "refs"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
}

/// A workspace with a repository in the folder `name`, and its protection with a place for quarantines.
fn with_repository(name: &str) -> (tempfile::TempDir, Workspace, Protection) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("workspace");
    make_repository(&root.join(name));
    fs::create_dir(dir.path().join("state")).unwrap();
    let workspace = Workspace::open(&root, &[], &defaults()).unwrap();
    let protection = Protection::new(quarantine(&dir));
    (dir, workspace, protection)
}

fn quarantine(dir: &tempfile::TempDir) -> Quarantine {
    Quarantine::new(dir.path().join("state"), "state", "turn")
}

#[test]
fn what_git_knows_a_repository_by_is_set_right_after_a_stop() {
    let (dir, workspace, mut protection) = with_repository(".git");
    let root = workspace.path();
    let kept = serde_json::to_value(protection.begin(&workspace, None).unwrap().unwrap()).unwrap();
    fs::remove_file(root.join(".git/HEAD")).unwrap();
    fs::remove_dir(root.join(".git/refs")).unwrap();
    for folder in ["objects", "refs"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("HEAD"), "ref: refs/heads/main\n").unwrap();

    // A journal of an older version does not contain these parts.
    let mut older = kept.clone();
    older["roots"][0].as_object_mut().unwrap().remove("isBare").unwrap();
    let items = older["roots"][0]["items"].as_object_mut().unwrap();
    for part in ["HEAD", "objects", "refs"] {
        items.remove(&format!(".git/{part}")).unwrap();
    }
    let mut protection =
        Protection::resumed(quarantine(&dir), serde_json::from_value(older).unwrap());
    assert_eq!(protection.check(&workspace), []);

    let mut protection =
        Protection::resumed(quarantine(&dir), serde_json::from_value(kept).unwrap());
    assert_eq!(protection.check(&workspace).len(), 3);
    assert_eq!(fs::read(root.join(".git/HEAD")).unwrap(), b"ref: refs/heads/main\n");
    assert!(root.join(".git/refs").is_dir() && !root.join("HEAD").exists());
    assert!(dir.path().join("state/quarantine/turn/1_HEAD").exists());
    assert_eq!(protection.check(&workspace), []);
}

#[test]
fn what_git_knows_a_bare_repository_by_is_put_back_and_what_it_may_change_is_taken_in() {
    let (_dir, workspace, mut protection) = with_repository("b");
    let root = workspace.path();
    protection.begin(&workspace, None).unwrap().unwrap();
    // Git may switch to another branch.
    fs::write(root.join("b/HEAD"), "ref: refs/heads/other\n").unwrap();
    assert_eq!(protection.check(&workspace), []);
    fs::write(root.join("b/HEAD"), "nothing\n").unwrap();
    fs::remove_dir(root.join("b/refs")).unwrap();
    assert_eq!(protection.check(&workspace).len(), 2);
    assert_eq!(fs::read_to_string(root.join("b/HEAD")).unwrap(), "ref: refs/heads/other\n");
    assert!(root.join("b/refs").is_dir());
    assert_eq!(protection.finish(&workspace, &workspace.walk().unwrap()), []);
}

#[test]
fn a_workspace_that_a_person_replaced_stays_where_it_is() {
    let (dir, workspace, mut protection) = with_repository("lib/.git");
    let root = workspace.path();
    protection.begin(&workspace, None).unwrap().unwrap();
    fs::remove_dir_all(root).unwrap();
    make_repository(&root.join(".git"));
    protection.check(&workspace);
    let found = protection.finish(&workspace, &workspace.walk().unwrap());
    assert!(root.join(".git/HEAD").exists(), "{found:?}");
    assert!(!dir.path().join("state/quarantine").exists(), "{found:?}");
}

#[test]
fn a_repository_where_a_setting_leads_to_a_missing_folder_is_put_away() {
    let (dir, workspace, mut protection) = with_repository(".git");
    let root = workspace.path();
    fs::write(root.join(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
    protection.begin(&workspace, None).unwrap().unwrap();
    make_repository(&root.join("tools"));
    assert_eq!(protection.check(&workspace).len(), 1);
    assert!(!root.join("tools/HEAD").exists());
    assert!(dir.path().join("state/quarantine/turn/1_HEAD").exists());
    assert_eq!(protection.finish(&workspace, &workspace.walk().unwrap()), []);
    assert!(!root.join("tools/HEAD").exists());
}

#[test]
fn a_head_that_a_setting_names_is_put_away_once_it_makes_a_repository() {
    let (dir, workspace, mut protection) = with_repository(".git");
    let root = workspace.path();
    fs::write(root.join(".git/config"), "[alias]\n\tundo = reset HEAD\n").unwrap();
    fs::write(root.join("HEAD"), "ref: refs/heads/x\n").unwrap();
    protection.begin(&workspace, None).unwrap().unwrap();
    assert_eq!(protection.check(&workspace), []);
    for part in ["objects", "refs"] {
        fs::create_dir(root.join(part)).unwrap();
    }
    assert_eq!(protection.check(&workspace).len(), 1);
    assert!(!root.join("HEAD").exists());
    assert!(dir.path().join("state/quarantine/turn/1_HEAD").exists());
    assert_eq!(protection.check(&workspace), []);
    assert_eq!(protection.finish(&workspace, &workspace.walk().unwrap()), []);
    assert!(!root.join("HEAD").exists());
}

#[test]
fn a_folder_to_which_a_repository_moves_is_no_bare_one() {
    let (dir, workspace, mut protection) = with_repository("lib/.git");
    let root = workspace.path();
    protection.begin(&workspace, None).unwrap().unwrap();
    make_repository(&root.join("other"));
    fs::rename(root.join("lib/.git"), root.join("other/.git")).unwrap();
    assert_eq!(protection.check(&workspace), []);
    assert_eq!(protection.finish(&workspace, &workspace.walk().unwrap()).len(), 2);
    assert!(dir.path().join("state/quarantine/turn/1_HEAD").exists());
    // The folder does not become one later, either.
    assert_eq!(protection.check(&workspace), []);
    assert!(!root.join("other/HEAD").exists() && root.join("other/.git/HEAD").exists());
}

#[test]
fn a_head_that_could_not_be_put_back_is_when_it_can() {
    let (dir, workspace, mut protection) = with_repository(".git");
    let head = workspace.path().join(".git/HEAD");
    protection.begin(&workspace, None).unwrap().unwrap();
    fs::remove_file(&head).unwrap();
    fs::remove_dir(dir.path().join("state")).unwrap();
    let found = protection.check(&workspace);
    assert!(found[0].text.ends_with("so check its folder before you use git there"));
    fs::create_dir(dir.path().join("state")).unwrap();
    assert_eq!(protection.check(&workspace).len(), 1);
    assert!(head.exists());
    assert_eq!(protection.check(&workspace), []);
}

#[test]
fn contents_of_files_with_a_set_user_id_bit_are_not_stored() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, workspace, mut protection) = with_repository(".git");
    let file = workspace.path().join("program");
    fs::write(&file, "content\n").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o4755)).unwrap();
    let kept = protection.begin(&workspace, None).unwrap().unwrap();
    assert_eq!(kept.set_ids.as_ref().unwrap().len(), 1);
    assert!(!serde_json::to_string(kept).unwrap().contains("content"));
}
