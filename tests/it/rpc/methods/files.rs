//! `read_file`, `write_file` and `list_dir`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use deaddrop::protocol::jsonrpc::READ_LIMIT;
use serde_json::json;

use super::{Scene, Setup, assert_fault};

#[test]
fn paths_are_relative_or_absolute_and_never_outside_of_the_root() {
    let scene = Scene::new();
    let root = scene.root();
    scene.base.write("root/sub/file", "text\n");
    scene.base.write("outside", "hunter2");
    symlink(&root, scene.base.at("alias")).unwrap();
    symlink("../outside", scene.base.at("root/out")).unwrap();
    let alias = scene.base.at("alias/sub/file");
    for path in [
        "sub/file",
        "./sub//x/../file",
        &format!("{root}/sub/file"),
        &format!("{root}/../root/sub/file"),
        alias.to_str().unwrap(),
    ] {
        assert_eq!(scene.read(path).unwrap(), "text\n", "{path}");
    }
    let outside = scene.base.at("outside").canonicalize().unwrap();
    for path in [
        "../outside",
        "sub/../../outside",
        outside.to_str().unwrap(),
        &format!("{root}/../outside"),
        &format!("{root}-evil/x"),
        "/etc/passwd",
    ] {
        let told = format!("Path is outside workspace: '{path}'");
        assert_fault(scene.read(path), &[&told]);
        assert_fault(scene.write(path, "owned"), &[&told]);
        assert_fault(scene.list(path), &[&told]);
    }
    assert_fault(scene.read("out"), &["Path is outside workspace: 'out'"]);
    assert_fault(scene.write("out", "owned"), &["Path is outside workspace: 'out'"]);
    assert_eq!(scene.base.read("outside"), "hunter2");
    for path in ["", ".", "/", "sub/", root.as_str()] {
        assert_fault(scene.read(path), &[&format!("'{path}'")]);
        assert_fault(scene.write(path, "x"), &[&format!("'{path}'")]);
    }
}

#[test]
fn files_of_a_whole_machine_are_read_also_those_of_no_size() {
    let scene = Setup { root: Some("/".into()), ..Setup::default() }.serve();
    // Its own process is out of reach.
    assert_fault(scene.read("/proc/self/status"), &["deaddrop's own state"]);
    for path in ["/etc/hostname", "/proc/version", "proc/sys/kernel/ostype", "/proc/1/status"] {
        let path = path.trim_start_matches('/');
        let Ok(content) = fs::read_to_string(Path::new("/").join(path)) else {
            eprintln!("SKIPPED: this machine has no /{path}");
            continue;
        };
        // The state of a process is never the same twice.
        let read = scene.read(&format!("/{path}")).unwrap();
        assert_eq!(read.lines().next(), content.lines().next(), "{path}");
    }
    // The end of the specification's example, in a folder that is ours.
    let file = scene.base.at("test.txt");
    let file = file.to_str().unwrap();
    assert_eq!(scene.write(file, "Hello, World!").unwrap(), json!({ "success": true }));
    assert_eq!(scene.read(file).unwrap(), "Hello, World!");
    for (path, told) in [
        ("/dev/null", "is not a regular file"),
        ("/dev/zero", "is not a regular file"),
        ("/etc", "is a folder"),
        ("/nowhere/at/all", "not found"),
    ] {
        assert_fault(scene.read(path), &[path, told]);
    }
    assert_fault(scene.write("/dev/null", "x"), &["/dev/null", "is not a regular file"]);
    // Its own state is nobody's, there too.
    let state = scene.base.at("state/steps").canonicalize();
    assert!(state.is_err());
    let state = scene.base.at("state").canonicalize().unwrap().join("steps");
    assert_fault(scene.write(state.to_str().unwrap(), "x"), &["deaddrop's own state"]);
}

#[test]
fn files_of_ten_mebibytes_are_read_and_longer_ones_are_not() {
    let scene = Scene::new();
    let limit = usize::try_from(READ_LIMIT).unwrap();
    assert_eq!(limit, 10_485_760);
    scene.base.write("root/whole", vec![b'a'; limit]);
    scene.base.write("root/more", vec![b'a'; limit + 1]);
    assert_eq!(scene.read("whole").unwrap().len(), limit);
    assert_fault(scene.read("more"), &["'more'", "10485761 bytes", "up to 10485760 bytes"]);
    let sparse = fs::File::create(scene.base.at("root/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    assert_fault(scene.read("sparse"), &["'sparse'", "1099511627776 bytes"]);
}

#[test]
fn what_is_no_text_or_no_file_is_told_and_never_waited_for() {
    let scene = Scene::new();
    scene.base.write("root/binary", b"abc\xff");
    scene.base.write("root/nul", "a\0b");
    scene.base.write("root/empty", "");
    fs::create_dir(scene.base.at("root/folder")).unwrap();
    scene.base.sh("mkfifo root/fifo; ln -s fifo root/to-fifo");
    assert_fault(scene.read("binary"), &["'binary'", "not UTF-8", "4 bytes"]);
    assert_eq!(scene.read("nul").unwrap(), "a\0b");
    assert_eq!(scene.read("empty").unwrap(), "");
    for (path, told) in [
        ("folder", "is a folder"),
        ("fifo", "not a regular file"),
        ("to-fifo", "not a regular file"),
        ("nothing", "not found"),
        ("empty/x", "is a file, not a folder"),
    ] {
        let absolute = format!("{}/{path}", scene.root());
        for path in [path, &absolute] {
            assert_fault(scene.read(path), &[&format!("'{path}'"), told]);
        }
    }
}

#[test]
fn files_are_written_with_their_parents_and_keep_their_mode() {
    let scene = Scene::new();
    let success = Ok(json!({ "success": true }));
    assert_eq!(scene.write("a/b/c.txt", "one"), success);
    assert_eq!(scene.base.read("root/a/b/c.txt"), "one");
    assert_eq!(scene.write(&format!("{}/a/new/d", scene.root()), ""), success);
    assert_eq!(scene.base.read("root/a/new/d"), "");
    let script = scene.base.write("root/script", "old");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).unwrap();
    assert_eq!(scene.write("script", "é\0\n"), success);
    assert_eq!(scene.base.read("root/script"), "é\0\n");
    assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o751);
    let large = "0123456789abcde\n".repeat(31 << 16);
    assert_eq!(scene.write("large", &large), success);
    assert!(scene.base.read("root/large") == large);

    scene.base.sh("mkfifo root/fifo; mkdir root/folder");
    for (path, told) in [
        ("folder", "is a folder"),
        ("fifo", "not a regular file"),
        ("script/x", "is a file, not a folder"),
        ("a/b/", "names no file"),
    ] {
        assert_fault(scene.write(path, "x"), &[&format!("'{path}'"), told]);
    }
    assert_eq!(scene.base.names("root"), ["a", "fifo", "folder", "large", "script"]);
}

#[test]
fn protected_names_are_written_only_where_commands_may_write_them_too() {
    let scene = Scene::new();
    for path in [".git/hooks/pre-commit", ".bashrc"] {
        scene.write(path, "x").unwrap();
        assert_eq!(scene.base.read(&format!("root/{path}")), "x");
    }
    let Some(setup) = Setup::confined() else { return };
    let scene = setup.serve();
    scene.base.write("root/.git/config", "");
    symlink(".git", scene.base.at("root/link")).unwrap();
    for path in [".git/hooks/pre-commit", ".bashrc", "sub/.GIT/config", "link/config"] {
        let absolute = format!("{}/{path}", scene.root());
        for path in [path, &absolute] {
            assert_fault(scene.write(path, "x"), &[path, "protected_names"]);
        }
    }
    assert_eq!(scene.base.names("root"), [".git", "link"]);
    assert_eq!(scene.read(".git/config").unwrap(), "");
}

#[test]
fn a_folder_is_listed_as_the_specification_says() {
    let scene = Scene::new();
    scene.base.write("root/tmp/test.txt", "Hello, World!");
    scene.base.write("root/tmp/scripts/x", "x");
    symlink("scripts", scene.base.at("root/tmp/link")).unwrap();
    let name = OsString::from_vec(b"z\xff".to_vec());
    fs::write(scene.base.at("root/tmp").join(name), "12").unwrap();
    let entry = |name: &str, is_dir: bool, size: u64| json!({ "name": name, "is_dir": is_dir, "size": size });
    let all = json!({ "entries": [
        entry("link", false, 7),
        entry("scripts", true, 0),
        entry("test.txt", false, 13),
        entry("z\u{fffd}", false, 2),
    ] });
    let root = scene.root();
    for path in ["tmp", "tmp/", "./tmp/.", &format!("{root}/tmp"), &format!("{root}/tmp/")] {
        assert_eq!(scene.list(path).unwrap(), all, "{path}");
    }
    assert_eq!(scene.list("tmp/link").unwrap(), json!({ "entries": [entry("x", false, 1)] }));
    let only = json!({ "entries": [entry("tmp", true, 0)] });
    for path in ["", ".", "tmp/..", &root, &format!("{root}/")] {
        assert_eq!(scene.list(path).unwrap(), only, "{path:?}");
    }
    for (path, told) in [
        ("nothing", "No folder"),
        ("tmp/nothing", "No folder"),
        ("tmp/test.txt", "not a folder"),
        ("tmp/test.txt/x", "cannot be there"),
    ] {
        let absolute = format!("{root}/{path}");
        for path in [path, &absolute] {
            assert_fault(scene.list(path), &[&format!("'{path}'"), told]);
        }
    }
}

#[test]
fn the_root_of_a_machine_is_listed_by_its_name_and_state_is_not() {
    let scene = Setup { root: Some("/".into()), ..Setup::default() }.serve();
    let listed = scene.list("/").unwrap();
    let names: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"etc") && names.contains(&"proc"), "{names:?}");
    let listed = scene.list(scene.base.path().to_str().unwrap()).unwrap();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["entries"][0]["name"], "root");
}

#[test]
fn a_large_folder_is_listed_whole_and_in_order() {
    let scene = Scene::new();
    let script = "mkdir root/many && cd root/many && seq -f f%g 20000 | xargs touch";
    scene.base.sh(script);
    let listed = scene.list("many").unwrap();
    let names: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 20_000);
    assert!(names.is_sorted());
}

#[test]
fn a_policy_judges_what_is_done_to_files() {
    let scene = Setup::with_policy("restrictive").serve();
    scene.base.write("root/.env", "SECRET=1");
    scene.base.write("root/.hidden/x", "");
    scene.base.write("root/plain", "text");
    scene.base.write("root/long", "x".repeat((1 << 20) + 1));
    assert_eq!(scene.read("plain").unwrap(), "text");
    assert_fault(scene.read(".env"), &["'.env'", "is blocked", "files.blockedPaths"]);
    assert_fault(scene.read("long"), &["'long'", "1048577 bytes", "1048576"]);
    assert_fault(scene.write("plain", "x"), &["'plain'", "read-only", "restrictive"]);
    assert_fault(scene.list(".hidden"), &["'.hidden'", "is blocked"]);
    assert!(scene.list("").is_ok(), "the root is nobody's path");
    assert_eq!(scene.base.read("root/plain"), "text");

    // What somebody would be asked about is refused.
    let scene = Setup::with_policy("workspace").serve();
    scene.write("plain", "x").unwrap();
    assert_fault(scene.write(".git/config", "x"), &[".git/config", "nobody can be asked"]);
    assert!(!scene.base.exists("root/.git"));
}

#[test]
fn under_a_policy_files_of_no_size_are_no_longer_than_it_says() {
    let mut setup = Setup { root: Some("/".into()), ..Setup::with_policy("workspace") };
    setup.policy.as_mut().unwrap().files.max_bytes = Some(4);
    let scene = setup.serve();
    if !Path::new("/proc/version").exists() {
        eprintln!("SKIPPED: this machine has no /proc/version");
        return;
    }
    assert_fault(scene.read("/proc/version"), &["/proc/version", "up to 4 bytes"]);
}
