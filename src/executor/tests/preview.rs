//! The preview of a reply matches its results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::executor::{Executor, FileState, LocalExecutor, PreviewExecutor, PreviewedChange};
use crate::policy::Grant;
use crate::protocol::{
    Detail, Existing, Operation, Part, Reading, RelPath, ShellCommand, StepContent, tags,
};
use crate::runner::Runner;
use crate::settings::Sandbox;
use crate::workspace::Workspace;
use proptest::prelude::*;
use proptest::sample::select;

const PATHS: [&str; 15] = [
    "a",
    "a/b",
    "a/b/c",
    "d",
    "d/e",
    "d/f",
    "d/e/g",
    "l",
    "l/e",
    "l/x",
    "m",
    "m/x",
    "n",
    "up/d/e",
    "sessions/x",
];

/// Creates a small tree with links to a file, to folders, to nothing and to the root.
fn plant(root: &Path, which: u16) {
    let there = |bit: u16| which & (1 << bit) != 0;
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
    for (bit, file) in [(0, "a"), (1, "d/e"), (2, "d/f")] {
        if there(bit) {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), format!("{file}\n2\n")).unwrap();
        }
    }
    if there(3) {
        link(if there(4) { "d" } else { "d/e" }, "l");
    }
    if there(5) {
        link(if there(6) { "new/x" } else { "a/../n" }, "m");
    }
    if there(7) {
        link(if there(8) { "m" } else { "a/b" }, "n");
    }
    if there(9) {
        link(if there(10) { "." } else { "../x" }, "up");
    }
}

fn block() -> impl Strategy<Value = String> {
    (0..5, select(&PATHS[..]), 1..3, select(&["x\n", "", "d/e\n2\n"][..])).prop_map(
        |(what, path, line, text)| match what {
            0 | 1 => format!("[CREATE_FILE path=\"{path}\"]\n{text}[/CREATE_FILE]\n"),
            2 => format!("[EDIT_FILE path=\"{path}\" start_line=\"{line}\" end_line=\"{line}\"]\n{text}[/EDIT_FILE]\n"),
            3 => format!("[DELETE_FILE path=\"{path}\"]\n"),
            _ => format!("[READ_FILE path=\"{path}\"]\n"),
        },
    )
}

/// All files and links below a folder.
fn files(root: &Path) -> BTreeMap<String, FileState> {
    let entries = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    let entries = entries.filter(|entry| !entry.file_type().is_dir());
    entries
        .map(|entry| {
            let standing = if entry.path_is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                FileState::Link(target.to_string_lossy().into_owned())
            } else {
                FileState::File(fs::read(entry.path()).unwrap())
            };
            let path = entry.path().strip_prefix(root).unwrap();
            (path.to_string_lossy().into_owned(), standing)
        })
        .collect()
}

fn operations(reply: &str) -> Vec<Operation> {
    let steps = tags::parse(reply).steps.into_iter();
    steps
        .filter_map(|step| match step.asks {
            StepContent::Operation(operation) => Some(operation),
            StepContent::Invalid(_) => None,
        })
        .collect()
}

/// The result of one operation. A file to read is read at once.
fn done(executor: &mut dyn Executor, operation: &Operation) -> Detail {
    match operation {
        Operation::Read { path, .. } => match executor.read(path, Part::default()).unwrap() {
            Err(failure) => Detail::Failed(failure),
            Ok(_) => Detail::ReadLater { path: path.clone(), part: Part::default() },
        },
        _ => executor.perform(operation, Grant::default(), &mut |_| Ok(())).unwrap(),
    }
}

/// Previews a reply, carries it out, and compares results and changes.
fn agree(root: &Path, reply: &str) {
    let root = root.to_owned();
    let workspace = Workspace::open(&root, &[root.join("sessions")], &[]).unwrap();
    let runner = Runner::new("no commands".into(), root.clone(), Sandbox::default());
    let mut here = LocalExecutor::new(&workspace, &runner, &root, false, &|| false);
    let mut preview = PreviewExecutor::new(&workspace);
    let operations = operations(reply);
    let foretold: Vec<Detail> =
        operations.iter().map(|operation| done(&mut preview, operation)).collect();
    let rewritten = preview.into_changes();

    let before = files(&root);
    let done: Vec<Detail> = operations.iter().map(|operation| done(&mut here, operation)).collect();
    let after = files(&root);
    assert_eq!(foretold, done, "{reply}");
    let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = all.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let changed: Vec<PreviewedChange> = changed
        .map(|path| PreviewedChange {
            path: RelPath::parse(path).unwrap(),
            before: before.get(path).cloned(),
            after: after.get(path).cloned(),
            by_step: None,
        })
        .collect();
    assert_eq!(rewritten, changed, "{reply}");
}

fn create(path: &str) -> String {
    format!("[CREATE_FILE path=\"{path}\"]\n1\n[/CREATE_FILE]\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn a_preview_foretells_what_happens(
        which in any::<u16>(),
        blocks in prop::collection::vec(block(), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        fs::create_dir(&root).unwrap();
        plant(&root, which);
        agree(&root, &blocks.concat());
    }
}

/// All kinds of operations on this path.
fn each_at(path: &RelPath) -> Vec<Operation> {
    let path = || path.clone();
    vec![
        Operation::Create { path: path(), content: "x\n".into(), existing: Existing::Replace },
        Operation::Delete { path: path() },
        Operation::Read { path: path(), reading: Reading::default() },
        Operation::List { path: Some(path()) },
        Operation::Search { pattern: "x".to_owned(), path: Some(path()) },
        Operation::Move { path: path(), to: RelPath::parse("d").unwrap() },
        Operation::Move { path: RelPath::parse("d/e").unwrap(), to: path() },
        Operation::Run(ShellCommand { cwd: Some(path()), ..ShellCommand::new("true") }),
    ]
}

#[test]
fn a_preview_looks_at_a_place_as_the_turn_does() {
    // Links that end in `..` lead to folders without a name of their own, or out of the root.
    let paths = PATHS.iter().chain(&["w", "w/d", "v", "v/x", "out", "up", "s"]);
    let paths: Vec<RelPath> = paths.map(|path| RelPath::parse(path).unwrap()).collect();
    let mut told = 0;
    for which in (0..2_048).step_by(41).chain([2_047]) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("d/deep")).unwrap();
        fs::create_dir(root.join("sessions")).unwrap();
        plant(&root, which);
        for (to, name) in [("d/..", "w"), ("d/deep/..", "v"), ("d/../..", "out"), ("sessions", "s")]
        {
            std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        }
        let protected = ["deep".to_owned()];
        let workspace = Workspace::open(&root, &[root.join("sessions")], &protected).unwrap();
        let runner = Runner::new("no commands".into(), root.clone(), Sandbox::default());
        let here = LocalExecutor::new(&workspace, &runner, &root, false, &|| false);
        let preview = PreviewExecutor::new(&workspace);
        for operation in paths.iter().flat_map(each_at) {
            let look = here.path_facts(&operation).unwrap();
            assert_eq!(preview.path_facts(&operation).unwrap(), look, "{which} {operation:?}");
            told += usize::from(look.is_some_and(|look| look.real.is_some()));
            let place = here.resolved_path(&operation).unwrap();
            assert_eq!(preview.resolved_path(&operation).unwrap(), place, "{which} {operation:?}");
            let standing = here.content_digest(&operation).unwrap();
            assert_eq!(
                preview.content_digest(&operation).unwrap(),
                standing,
                "{which} {operation:?}"
            );
        }
        let v = Operation::List { path: Some(RelPath::parse("v").unwrap()) };
        assert_eq!(
            preview.path_facts(&v).unwrap().unwrap().real,
            Some(RelPath::parse("d").unwrap())
        );
    }
    assert!(told > 1_000, "{told}");
}

#[test]
fn a_preview_refuses_a_move_as_the_turn_does() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("d/sessions")).unwrap();
    fs::write(root.join("a"), "1\n").unwrap();
    fs::create_dir(root.join("e")).unwrap();
    std::os::unix::fs::symlink("e", root.join("link")).unwrap();
    std::os::unix::fs::symlink("e/..", root.join("up")).unwrap();
    let workspace = Workspace::open(&root, &[root.join("d/sessions")], &[]).unwrap();
    let runner = Runner::new("no commands".into(), root.clone(), Sandbox::default());
    for (from, to, why) in [
        ("a", "link", "is a folder: give the complete new path"),
        ("a", "up", "is a folder: give the complete new path"),
        ("a", "e", "is a folder: give the complete new path"),
        ("d", "f", "part of deaddrop's own state"),
        ("d", "d/f", "cannot be moved into itself"),
        ("b", "f", "Folder (or file) 'b' not found"),
    ] {
        let [path, to] = [from, to].map(|path| RelPath::parse(path).unwrap());
        let operation = Operation::Move { path, to };
        let foretold = done(&mut PreviewExecutor::new(&workspace), &operation);
        let mut here = LocalExecutor::new(&workspace, &runner, &root, false, &|| false);
        assert_eq!(foretold, done(&mut here, &operation), "{operation:?}");
        let Detail::Failed(failure) = foretold else { panic!("{foretold:?}") };
        assert!(failure.reason.contains(why), "{why}: {failure:?}");
    }
}

#[test]
fn files_and_folders_of_the_same_reply_are_seen() {
    for paths in [["a", "a/b"], ["d/e", "d"], ["d-x", "d"], ["a/b/c/d", "a/b"]] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        fs::create_dir(&root).unwrap();
        agree(&root, &paths.map(create).concat());
    }
}
