//! Replies that try to reach out of the workspace, by paths and by what they find on the file
//! system: each is refused, and nothing around has changed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::support::{ID, PATIENCE, Project, program};

const SECRET: &str = "the secret of the surroundings\n";

/// A project with something outside of its workspace that must stay as it is.
fn scene() -> Project {
    let base = Project::with_session();
    base.write("outside/secret", SECRET);
    base.write("workspace-evil/secret", SECRET);
    base.write("workspace/real.txt", "one\ntwo\n");
    base
}

/// Every file below the project but for deaddrop's own: kind, mode, link count, contents.
fn snapshot(base: &Project) -> BTreeMap<PathBuf, String> {
    let own = ["inbox", "outbox", "sessions", "approvals"].map(|name| base.at(name));
    walkdir::WalkDir::new(base.path())
        .into_iter()
        .filter_entry(|entry| !own.iter().any(|own| own == entry.path()))
        .map(|entry| {
            let path = entry.unwrap().into_path();
            let found = fs::symlink_metadata(&path).unwrap();
            let what = if found.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if found.is_file() && found.len() < 1 << 20 {
                format!("{:?}", fs::read(&path).unwrap())
            } else {
                format!("{:?} {}", found.file_type(), if found.is_dir() { 0 } else { found.len() })
            };
            (path, format!("{:o} {what}", found.mode()))
        })
        .collect()
}

/// Blocks that create, edit, delete and read a file.
fn create(path: &str) -> String {
    format!("[CREATE_FILE path=\"{path}\"]\nowned\n[/CREATE_FILE]\n")
}

fn edit(path: &str) -> String {
    format!("[EDIT_FILE path=\"{path}\" start_line=\"1\" end_line=\"1\"]\nowned\n[/EDIT_FILE]\n")
}

fn delete(path: &str) -> String {
    format!("[DELETE_FILE path=\"{path}\"]\n")
}

fn read(path: &str) -> String {
    format!("[READ_FILE path=\"{path}\"]\n")
}

/// The result lines of an outbox.
fn results(outbox: &str) -> Vec<&str> {
    let marks = |line: &&str| line.starts_with("[OK] ") || line.starts_with("[FAILED] ");
    let (_, rest) = outbox.split_once("\n## Previous Command Results\n").unwrap();
    rest.split_once("\n=== PROMPT ===").unwrap().0.lines().filter(marks).collect()
}

/// Asserts that every one of these blocks fails, with `why` in its result, and changes nothing.
#[track_caller]
fn assert_refused(base: &Project, blocks: &[String], why: &str) {
    let before = snapshot(base);
    let begun = Instant::now();
    let outbox = base.apply(&blocks.concat());
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    let results = results(&outbox);
    assert_eq!(results.len(), blocks.len(), "{results:#?}");
    for (result, block) in results.iter().zip(blocks) {
        assert!(result.starts_with("[FAILED] ") && result.contains(why), "{block}{result}");
    }
    assert!(!outbox.contains(SECRET.trim()), "{outbox}");
    assert_eq!(snapshot(base), before);
}

#[test]
fn paths_that_lead_out_or_hide_something_are_rejected() {
    let base = scene();
    let long = format!("{}/x", ["abcd"; 1000].join("/"));
    let wide = "x".repeat(256);
    let paths = [
        "../x",
        "../outside/secret",
        "a/../../outside/secret",
        "/etc/passwd",
        "..",
        "../workspace-evil/secret",
        "",
        ".",
        "a/",
        "real.txt/",
        "real.txt/..",
        "a\x1b[31mb",
        "a\u{202e}b",
        "a\u{200b}b",
        "\u{feff}a",
        "C:\\x",
        "C:/x",
        "./c:x",
        "\\\\srv\\s",
        "\\x",
        "..\\outside\\secret",
        "a\tb",
        &wide,
        &long,
    ];
    let blocks: Vec<String> = paths
        .iter()
        .flat_map(|path| [create(path), edit(path), delete(path), read(path)])
        .collect();
    assert_refused(&base, &blocks, "REJECTED: ");
    assert_eq!(base.run(&["status", ID]).code, Some(0), "the session can still be read");
}

#[test]
fn a_newline_or_a_quote_cannot_be_in_a_path() {
    let base = scene();
    let blocks = ["[DELETE_FILE path=\"real\n.txt\"]\n", "[DELETE_FILE path=\"real\".txt\"]\n"];
    assert_refused(&base, &blocks.map(str::to_owned), "Correct form: [DELETE_FILE path=");
}

#[test]
fn odd_names_that_stay_inside_are_only_names() {
    let base = scene();
    for path in ["a..b", "%2e%2e/x", "-rf", "a b/c d", "é", "$HOME", "NUL", "a;b", "~"] {
        let outbox = base.apply(&create(path));
        assert_eq!(results(&outbox), [format!("[OK] CREATE_FILE: Created '{path}'")]);
        assert_eq!(base.read(&format!("workspace/{path}")), "owned\n");
    }
}

#[test]
fn links_that_lead_out_are_rejected() {
    let base = scene();
    let link =
        |target: &Path, name: &str| symlink(target, base.at("workspace").join(name)).unwrap();
    link(Path::new("../outside/secret"), "file");
    link(&base.at("outside/secret"), "absolute");
    link(Path::new("../outside"), "folder");
    link(Path::new("folder/secret"), "chain");
    link(Path::new("/proc/self/root"), "root");
    link(Path::new("/proc/self/cwd"), "cwd");
    link(Path::new("../outside/new"), "dangling");
    link(Path::new("../workspace-evil"), "sibling");
    link(&base.at("workspace/../outside"), "through");
    fs::create_dir(base.at("workspace/in")).unwrap();
    link(Path::new("in/../../outside"), "around");

    let mut blocks: Vec<String> = [
        "file",
        "absolute",
        "chain",
        "dangling",
        "folder/secret",
        "folder/new",
        "folder/new/deep",
        "root/etc/passwd",
        "cwd/outside/secret",
        "sibling/secret",
        "through/secret",
        "around/secret",
        "in/../folder/secret",
    ]
    .iter()
    .flat_map(|path| [create(path), edit(path), read(path)])
    .collect();
    blocks.extend(["folder/secret", "root/etc/passwd", "through/secret"].map(delete));
    blocks.extend(["folder", "root"].into_iter().flat_map(|path| [create(path), read(path)]));
    assert_refused(&base, &blocks, "REJECTED: Path is outside workspace: '");
}

#[test]
fn links_in_a_circle_are_rejected_at_once() {
    let base = scene();
    symlink("b", base.at("workspace/a")).unwrap();
    symlink("a/x/../.", base.at("workspace/b")).unwrap();
    symlink("self/self", base.at("workspace/self")).unwrap();
    let blocks: Vec<String> = ["a", "b", "self", "a/x", "self/y"]
        .iter()
        .flat_map(|path| [create(path), edit(path), read(path)])
        .collect();
    assert_refused(&base, &blocks, "Path runs in a circle of links");
}

#[test]
fn links_that_stay_inside_are_followed_and_the_real_path_is_named() {
    let base = scene();
    fs::create_dir(base.at("workspace/in")).unwrap();
    symlink(base.at("workspace/real.txt"), base.at("workspace/in/absolute")).unwrap();
    symlink("../real.txt", base.at("workspace/in/relative")).unwrap();
    symlink("in/new.txt", base.at("workspace/dangling")).unwrap();
    let outbox =
        base.apply(&[edit("in/absolute"), read("in/relative"), create("dangling")].concat());
    let results = results(&outbox);
    assert!(results[0].starts_with("[OK] EDIT_FILE: Edited 'real.txt' (line 1"), "{results:?}");
    assert!(outbox.contains("---\nowned\ntwo\n--- end"), "{outbox}");
    assert_eq!(results[2], "[OK] CREATE_FILE: Created 'in/new.txt'");
    assert_eq!(base.read("workspace/in/new.txt"), "owned\n");
    for link in ["in/absolute", "in/relative", "dangling"] {
        assert!(base.at("workspace").join(link).is_symlink(), "{link}");
    }
}

#[test]
fn two_dots_after_a_link_are_resolved_by_name() {
    let base = scene();
    symlink("../outside", base.at("workspace/link")).unwrap();
    base.apply(&create("link/../x"));
    assert_eq!(base.read("workspace/x"), "owned\n");
    assert_eq!(base.names("outside"), ["secret"]);
}

#[test]
fn deleting_a_link_removes_the_link_alone() {
    let base = scene();
    symlink("../outside/secret", base.at("workspace/file")).unwrap();
    symlink("../outside", base.at("workspace/folder")).unwrap();
    symlink("real.txt", base.at("workspace/inside")).unwrap();
    symlink("nowhere", base.at("workspace/dangling")).unwrap();
    let outbox = base.apply(&["file", "folder", "inside", "dangling"].map(delete).concat());
    assert!(results(&outbox).iter().all(|result| result.starts_with("[OK] ")), "{outbox}");
    assert_eq!(base.names("workspace"), ["real.txt"]);
    assert_eq!(base.read("outside/secret"), SECRET);
}

#[test]
fn a_write_never_goes_through_a_hard_link() {
    let base = scene();
    for name in ["a", "b"] {
        fs::hard_link(base.at("outside/secret"), base.at("workspace").join(name)).unwrap();
    }
    let outbox = base.apply(&[create("a"), edit("b"), delete("b")].concat());
    assert!(results(&outbox).iter().all(|result| result.starts_with("[OK] ")), "{outbox}");
    assert_eq!(base.read("outside/secret"), SECRET);
    assert_eq!(base.read("workspace/a"), "owned\n");
}

#[test]
fn a_fifo_a_socket_and_a_device_are_rejected_at_once() {
    let base = scene();
    let make = |arguments: &[&str]| {
        Command::new(arguments[0])
            .args(&arguments[1..])
            .current_dir(base.at("workspace"))
            .status()
            .is_ok_and(|status| status.success())
    };
    // A FIFO instead of an ignore file must not hold up the listing either.
    assert!(make(&["mkfifo", "fifo"]) && make(&["mkfifo", ".gitignore"]));
    let _socket = UnixListener::bind(base.at("workspace/socket")).unwrap();
    symlink("fifo", base.at("workspace/link")).unwrap();
    let mut names = vec!["fifo", "socket", "link"];
    if make(&["mknod", "device", "c", "1", "5"]) {
        names.push("device");
    } else {
        eprintln!("SKIPPED: only root can make a device");
    }
    let blocks: Vec<String> =
        names.iter().flat_map(|path| [create(path), edit(path), read(path)]).collect();
    assert_refused(&base, &blocks, "is not a regular file");
    assert!(base.outbox(2).contains("\n  fifo (not a regular file)\n"));
}

#[test]
fn a_sparse_file_of_8_tib_is_capped() {
    let base = scene();
    let made = File::create(base.at("workspace/sparse")).and_then(|file| file.set_len(8 << 40));
    if made.is_err() {
        eprintln!("SKIPPED: the file system takes no file of 8 TiB");
        return;
    }
    assert_refused(&base, &[edit("sparse"), read("sparse")], "8796093022208 bytes");
    assert!(base.outbox(2).contains("\n  sparse (8796093022208 bytes)\n"));
}

#[test]
fn a_folder_is_no_file_and_is_never_removed() {
    let base = scene();
    fs::create_dir_all(base.at("workspace/full/empty")).unwrap();
    base.write("workspace/full/x", "x\n");
    let blocks: Vec<String> = ["full", "full/empty"]
        .iter()
        .flat_map(|path| [create(path), edit(path), delete(path), read(path)])
        .collect();
    assert_refused(&base, &blocks, "is a folder, not a file");
    let blocks = [create("real.txt/x"), edit("real.txt/x"), read("real.txt/x/y")];
    assert_refused(&base, &blocks, "'real.txt' is a file, not a folder");
}

#[test]
fn invalid_utf8_is_named_and_kept() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let base = scene();
    base.write("workspace/latin", b"one\nna\xefve\n");
    fs::write(base.at("workspace").join(OsStr::from_bytes(b"n\xffme")), "x").unwrap();
    let outbox = base.apply(&[edit("latin"), read("latin")].concat());
    assert!(outbox.contains("'latin' is not shown: it is not in UTF-8 (12 bytes; the first byte that is not is in line 2)"), "{outbox}");
    assert!(!outbox.contains("--- latin ---"), "{outbox}");
    assert!(outbox.contains("\n  n\u{fffd}me (1 byte)\n"), "{outbox}");
    assert_eq!(fs::read(base.at("workspace/latin")).unwrap(), b"owned\nna\xefve\n");
}

#[test]
fn a_replaced_file_keeps_mode_owner_and_group() {
    let base = scene();
    for name in ["a", "b"] {
        let path = base.write(&format!("workspace/{name}"), "x\n");
        if chown(&path, Some(60_123), Some(60_124)).is_err() {
            eprintln!("SKIPPED (in part): only root can give files away");
        }
        fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    }
    let before = ["a", "b"].map(|name| fs::metadata(base.at("workspace").join(name)).unwrap());
    base.apply(&[create("a"), edit("b")].concat());
    for (name, before) in ["a", "b"].into_iter().zip(before) {
        let after = fs::metadata(base.at("workspace").join(name)).unwrap();
        let kept = |of: &fs::Metadata| (of.mode(), of.uid(), of.gid());
        assert_eq!(kept(&after), kept(&before));
        assert_eq!(base.read(&format!("workspace/{name}")), "owned\n");
    }
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_temporary_one() {
    let base = scene();
    fs::create_dir(base.at("workspace/small")).unwrap();
    let large = "x".repeat(300_000);
    let reply = format!(
        "[CREATE_FILE path=\"small/old\"]\nold\n[/CREATE_FILE]\n{}{}[RUN_COMMAND]\nls -A small; cat small/old\n[/RUN_COMMAND]\n",
        create("small/new").replace("owned", &large),
        create("small/old").replace("owned", &large),
    );
    let reply = base.write("reply.txt", reply);
    let status = Command::new("unshare")
        .args([
            "-m",
            "sh",
            "-c",
            "mount -t tmpfs -o size=64k none workspace/small || exit 77; exec \"$@\"",
            "sh",
        ])
        .args([program(), Path::new("apply"), &reply])
        .current_dir(base.path())
        .env("XDG_CONFIG_HOME", base.at(".no-config"))
        .env("XDG_STATE_HOME", base.state())
        .output();
    if !status.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: only root can mount a small file system");
        return;
    }
    let outbox = base.outbox(2);
    let results = results(&outbox);
    for failed in &results[1..3] {
        assert!(failed.starts_with("[FAILED] CREATE_FILE: Cannot write 'small/"), "{failed}");
    }
    assert!(outbox.contains("  Output: old\n  old\n"), "{outbox}");
}

#[test]
fn what_root_makes_in_somebodys_workspace_is_theirs() {
    let base = Project::with_session();
    if chown(base.at("workspace"), Some(60_123), Some(60_124)).is_err() {
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    base.apply("[CREATE_FILE path=\"deep/er/a.txt\"]\nx\n[/CREATE_FILE]\n");
    for made in ["deep", "deep/er", "deep/er/a.txt"] {
        let found = fs::metadata(base.at("workspace").join(made)).unwrap();
        assert_eq!((found.uid(), found.gid()), (60_123, 60_124), "{made}");
    }
}
