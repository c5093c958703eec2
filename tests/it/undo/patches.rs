//! `diff` through a pipe is a patch: git and GNU patch take back with it what a turn changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{ID, Project};
use crate::tmux::Tmux;

/// What may stand somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    File(Vec<u8>, bool),
    Link(&'static str),
}

type Tree = BTreeMap<Vec<u8>, Thing>;

/// Names that are read in more than one way.
const NAMES: [&[u8]; 10] = [
    b"a",
    b"a b",
    b" ends ",
    b"tab\there",
    "é\u{202e}".as_bytes(),
    b"latin\xe9",
    b"q\"uo\\te",
    b"new\nline",
    b"# --- a",
    b"sub/of it/x",
];
/// What contents are made of: no NUL, which would make them binary.
const PIECES: [&[u8]; 14] = [
    b"one\n",
    b"two\r\n",
    b"three\n",
    b"\n",
    b"\r",
    b"\x1b[31m\n",
    b"caf\xe9\n",
    "\u{202e}bidi\n".as_bytes(),
    b"\t\x7f\x0c",
    b"-- minus\n",
    b"++ plus\n",
    b"@@ -1 +1 @@\n",
    b"\\ No newline at end of file\n",
    b"no end",
];

fn thing() -> impl Strategy<Value = Thing> {
    let bytes = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..14);
    prop_oneof![
        8 => (bytes, any::<bool>()).prop_map(|(pieces, is_program)| Thing::File(pieces.concat(), is_program)),
        1 => prop::sample::select(&["a", "to nowhere", "é"][..]).prop_map(Thing::Link),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    // A file may become a folder.
    let names: Vec<Vec<u8>> =
        NAMES.iter().chain([&b"d"[..], b"d/e"].iter()).map(|name| name.to_vec()).collect();
    prop::collection::btree_map(prop::sample::select(names), thing(), 0..9).prop_map(|mut tree| {
        if tree.contains_key(&b"d"[..]) {
            tree.remove(&b"d/e"[..]);
        }
        tree
    })
}

fn put(folder: &Path, tree: &Tree) {
    fs::create_dir_all(folder).unwrap();
    for (name, thing) in tree {
        let path = folder.join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match thing {
            Thing::Link(target) => symlink(target, &path).unwrap(),
            Thing::File(bytes, is_program) => {
                fs::write(&path, bytes).unwrap();
                let mode = if *is_program { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// What stands in a folder, as far as git knows of it.
fn look(folder: &Path) -> BTreeMap<Vec<u8>, (bool, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in walkdir::WalkDir::new(folder) {
        let entry = entry.unwrap();
        let name = entry.path().strip_prefix(folder).unwrap().as_os_str().as_bytes().to_vec();
        if entry.file_type().is_symlink() {
            let target = fs::read_link(entry.path()).unwrap();
            found.insert(name, (true, [b"-> ", target.as_os_str().as_bytes()].concat()));
        } else if entry.file_type().is_file() {
            let mode = entry.metadata().unwrap().permissions().mode();
            found.insert(name, (mode & 0o100 != 0, fs::read(entry.path()).unwrap()));
        }
    }
    found
}

/// A turn in which a command makes one of these out of the other; gives the patch.
fn turned(base: &Project, before: &Tree, after: &Tree) -> Vec<u8> {
    base.begin(ID);
    base.write("workspace/.ignore", "/next\n");
    put(&base.at("workspace/now"), before);
    put(&base.at("workspace/next"), after);
    base.apply("[RUN_COMMAND]\nrm -r now && cp -a next now\n[/RUN_COMMAND]\n");
    assert_eq!(look(&base.at("workspace/now")), look(&base.at("workspace/next")));
    let diff = base.command(&["diff"]).output().unwrap();
    assert!(diff.status.success(), "{diff:?}");
    diff.stdout
}

fn fed(base: &Project, program: &str, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(base.at("workspace"))
        .env("GIT_CEILING_DIRECTORIES", base.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !has {
        eprintln!("SKIPPED: patches taken by {program}, which is not installed");
    }
    has
}

#[test]
fn git_takes_back_what_a_turn_changed() {
    if !has("git") {
        return;
    }
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let property = |(before, after): (Tree, Tree)| {
        let base = Project::new();
        let patch = turned(&base, &before, &after);
        if look(&base.at("workspace/now")) != {
            put(&base.at("before"), &before);
            look(&base.at("before"))
        } {
            let git = fed(&base, "git", &["apply", "-R"], &patch);
            let told = String::from_utf8_lossy(&patch).into_owned();
            prop_assert!(git.status.success(), "{git:?}\n{told}");
        }
        let now = base.at("workspace/now");
        // Without a file in it git removes the folder.
        fs::create_dir_all(&now).unwrap();
        prop_assert_eq!(look(&now), look(&base.at("before")));
        Ok(())
    };
    TestRunner::new(config).run(&(tree(), tree()), property).unwrap();
}

fn file(text: &[u8]) -> Thing {
    Thing::File(text.to_vec(), false)
}

#[test]
fn gnu_patch_takes_back_what_a_turn_changed() {
    if !has("patch") {
        return;
    }
    let base = Project::new();
    let all = |things: [(&[u8], Thing); 7]| -> Tree {
        things.into_iter().map(|(name, thing)| (name.to_vec(), thing)).collect()
    };
    let before = all([
        (b"a b", file(b"one\r\ntwo\x1b\r\nthree\n")),
        (b"tab\t x", file(b"caf\xe9\n")),
        (b"run me", Thing::File(b"x\n".to_vec(), false)),
        (b"gone away", file(b"no end")),
        (b"empty one", file(b"")),
        (b"link to", Thing::Link("a")),
        (b"same", file(b"same\n")),
    ]);
    let after = all([
        (b"a b", file(b"one\r\nzwei\x1b\r\nthree")),
        (b"tab\t x", file(b"th\xe9\n")),
        (b"run me", Thing::File(b"x\n".to_vec(), true)),
        (b"new one", file(b"new\n")),
        (b"empty too", file(b"")),
        (b"link to", Thing::Link("nowhere")),
        (b"same", file(b"same\n")),
    ]);
    let patch = turned(&base, &before, &after);
    let told = fed(&base, "patch", &["-R", "-p1", "--no-backup-if-mismatch"], &patch);
    assert!(told.status.success(), "{told:?}\n{}", String::from_utf8_lossy(&patch));
    put(&base.at("before"), &before);
    assert_eq!(look(&base.at("workspace/now")), look(&base.at("before")));
}

#[test]
fn what_a_patch_cannot_tell_stands_beside_it() {
    let base = Project::with_session();
    base.write("deaddrop.toml", "checkpoint_file_bytes = 1000\n");
    base.apply("[RUN_COMMAND]\nprintf '\\0' > bin; printf 'caf\\351\\n' > latin; seq 1000 > large; mkdir -m 700 f; echo x > f/x; chmod 600 f/x\n[/RUN_COMMAND]\n");
    let diff = base.command(&["diff"]).output().unwrap().stdout;
    let told = String::from_utf8_lossy(&diff).into_owned();
    for line in [
        "Binary files /dev/null and b/bin differ\n",
        "# large: changed, and not kept: larger than checkpoint_file_bytes\n",
        "# new f (folder, mode 0700)\n",
        "# new f/x (file, mode 0600)\ndiff --git a/f/x b/f/x\nnew file mode 100644\n",
    ] {
        assert!(told.contains(line), "{line:?} is not in {told}");
    }
    assert!(diff.windows(6).any(|part| part == b"+caf\xe9\n"), "{told}");
    // In colours, which are for a reader, it is shown as at a terminal.
    let read = base.run(&["diff", "--color", "always"]).ok().stdout;
    assert!(read.contains("caf<E9>") && read.contains("# nothing -> 1 byte"), "{read}");
}

#[test]
fn at_a_terminal_what_acts_on_it_is_shown() {
    let base = Project::with_session();
    base.apply("[RUN_COMMAND]\nprintf 'a\\033[31mb\\r\\n' > esc; printf 'caf\\351\\n' > latin; ln -s esc link\n[/RUN_COMMAND]\n");
    let Some(tmux) = Tmux::start(&base, 80) else { return };
    tmux.types("deaddrop diff");
    tmux.shows("+a␛[31mb␍");
    tmux.shows("+caf<E9>");
    tmux.shows("new file mode 120000");
}
