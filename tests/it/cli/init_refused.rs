//! An `init` that is refused leaves the folder byte for byte as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use crate::cli::command_line::not_as_root;
use crate::support::{Project, Run, has_git};

/// All that stands below the project: modes, of files when each was last changed, and contents or
/// targets.
pub fn picture(base: &Project) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let entries = walkdir::WalkDir::new(base.path()).into_iter().map(Result::unwrap);
    let told = |entry: walkdir::DirEntry| {
        let (path, found) = (entry.path(), entry.metadata().unwrap());
        let bytes = if found.is_symlink() {
            fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
        } else if found.is_file() {
            fs::read(path).unwrap()
        } else {
            Vec::new()
        };
        let (mut at, mut nanos) = (found.ctime(), found.ctime_nsec());
        if found.is_dir() {
            (at, nanos) = (0, 0);
        }
        (path.to_owned(), (found.mode(), at, nanos, bytes))
    };
    // Where settings and notes of this test's person are is no part of it.
    entries.filter(|entry| !entry.path().starts_with(base.at(".no-config"))).map(told).collect()
}

#[test]
fn a_refused_init_writes_nothing() {
    if !has_git() {
        return;
    }
    type Prepare = fn(&Project);
    let cases: [(Prepare, &[&str], &str); 10] = [
        (|base| drop(base.write(".deaddrop", "a file")), &[], ".deaddrop is not a folder"),
        (|base| symlink("src", base.at(".deaddrop")).unwrap(), &[], ".deaddrop is not a folder"),
        (|base| drop(base.write(".deaddrop/inbox", "mine")), &[], "inbox is not a folder"),
        (
            |base| {
                base.sh("mkdir .deaddrop");
                symlink("nowhere", base.at(".deaddrop/outbox")).unwrap();
            },
            &[],
            "outbox cannot be read, or leads nowhere",
        ),
        (|_| {}, &["--max-tokens", "5"], "nothing was written"),
        (|_| {}, &["new/deep", "--max-tokens", "5"], "nothing was written"),
        (|_| {}, &["src/main.rs/x"], "main.rs is not a folder"),
        (|_| {}, &["--inbox-dir", "src/main.rs"], "main.rs is not a folder"),
        (|_| {}, &["--workspace-dir", "other/sessions"], "keeps its own files there"),
        (
            |_| {},
            &["new/deep", "--workspace-dir", "../../other/sessions"],
            "keeps its own files there",
        ),
    ];
    for (prepare, arguments, told) in cases {
        let base = Project::new();
        base.sh("git init -q .; mkdir src; echo 'fn main() {}' > src/main.rs; mkdir other");
        base.run(&["-C", "other", "new", "--no-watch", "A task"]).ok();
        prepare(&base);
        let before = picture(&base);
        let run = base.run(&[&["init"], arguments].concat()).with_code(2);
        assert!(run.stderr.contains(told), "{told}: {}", run.stderr);
        assert_eq!(picture(&base), before, "{arguments:?}: {told}");
    }
}

#[test]
fn a_folder_that_the_person_may_not_write_to_is_told_before_anything_is_made() {
    let base = Project::new();
    base.sh("mkdir shut");
    fs::set_permissions(base.at("shut"), fs::Permissions::from_mode(0o555)).unwrap();
    let Some(mut init) = not_as_root(&base, &["init", "shut"]) else { return };
    let before = picture(&base);
    let run = Run::of(&mut init, "").with_code(2);
    assert!(run.stderr.contains("shut is a folder that you cannot write to"), "{run:?}");
    assert_eq!(picture(&base), before);
}
