//! No set-user-ID or set-group-ID bits leave the sandbox.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::rpc::client::Server;
use crate::scene::{Asked, Scene, Way, printed, reply};
use crate::support::{ID, Project, Run, has_sandbox, wait_until};

const PYTHON: &str = "/usr/bin/python3";
const MODES: [u32; 3] = [0o4755, 0o2755, 0o6711];
/// The number of `fchmodat2`, newer than the table of numbers.
const FCHMODAT2: i64 = 452;

/// Makes each call with each mode, and tells which did not fail as they must.
const SCRIPT: &str = r#"
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
AT = -100
def call(number, *arguments):
    values = [a if isinstance(a, bytes) else ctypes.c_long(a) for a in arguments]
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *values)
    return 0 if done >= 0 else ctypes.get_errno()
tries = json.loads(sys.argv[1])
count = 0
for mode in json.loads(sys.argv[2]):
    for n, (name, number, arguments) in enumerate(tries):
        path = ("out/%s-%o-%d" % (name, mode, n)).encode()
        if "OLD" in arguments or "FD" in arguments:
            open(path, "w").close()
        fd = os.open(path, os.O_RDONLY) if "FD" in arguments else -1
        how = bytes(ctypes.c_uint64(os.O_CREAT | os.O_WRONLY)) + bytes(ctypes.c_uint64(mode)) + bytes(8)
        values = {"OLD": path, "NEW": path, "FOLDER": b"out", "MODE": mode, "FD": fd, "HOW": how, "NODE": 0o100000 | mode, "AT": AT}
        error = call(number, *[values.get(a, a) for a in arguments])
        if fd >= 0:
            os.close(fd)
        expected = 38 if name == "openat2" else 1
        count += error == expected
        if error != expected:
            print("THROUGH", name, oct(mode), error)
print("REFUSED", count)
"#;

/// All calls that give a file a mode: name, number, arguments.
fn calls() -> Vec<Value> {
    let create = libc::O_CREAT | libc::O_WRONLY;
    let unnamed = libc::O_TMPFILE | libc::O_WRONLY;
    let mut calls = vec![
        json!(["fchmod", libc::SYS_fchmod, ["FD", "MODE"]]),
        json!(["fchmodat", libc::SYS_fchmodat, ["AT", "OLD", "MODE"]]),
        json!(["fchmodat2", FCHMODAT2, ["AT", "OLD", "MODE", 0]]),
        json!(["openat", libc::SYS_openat, ["AT", "NEW", create, "MODE"]]),
        json!(["openat-tmpfile", libc::SYS_openat, ["AT", "FOLDER", unnamed, "MODE"]]),
        json!(["openat2", libc::SYS_openat2, ["AT", "NEW", "HOW", 24]]),
        json!(["mkdirat", libc::SYS_mkdirat, ["AT", "NEW", "MODE"]]),
        json!(["mknodat", libc::SYS_mknodat, ["AT", "NEW", "NODE", 0]]),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        json!(["chmod", libc::SYS_chmod, ["OLD", "MODE"]]),
        json!(["open", libc::SYS_open, ["NEW", create, "MODE"]]),
        json!(["open-tmpfile", libc::SYS_open, ["FOLDER", unnamed, "MODE"]]),
        json!(["creat", libc::SYS_creat, ["NEW", "MODE"]]),
        json!(["mkdir", libc::SYS_mkdir, ["NEW", "MODE"]]),
        json!(["mknod", libc::SYS_mknod, ["NEW", "NODE", 0]]),
    ]);
    calls
}

fn has_python() -> bool {
    let has = Path::new(PYTHON).exists();
    if !has {
        eprintln!("SKIPPED: there is no {PYTHON}");
    }
    has
}

/// A command that makes the calls, whose script stands in the workspace.
fn attack(base: &Project) -> String {
    base.write("workspace/calls.py", SCRIPT);
    let modes = json!(MODES);
    format!("mkdir out; {PYTHON} calls.py '{}' '{modes}'", json!(calls()))
}

/// How many of them are to be refused.
fn all() -> usize {
    calls().len() * MODES.len()
}

/// What has such a bit below a folder.
fn with_bits(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let has_bit = |entry: &walkdir::DirEntry| {
        !entry.file_type().is_symlink() && entry.metadata().unwrap().mode() & 0o6000 != 0
    };
    entries.filter(has_bit).map(walkdir::DirEntry::into_path).collect()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The warnings about the newest outcomes, by sort and what they tell.
fn warnings(base: &Project) -> Vec<(String, String)> {
    let session: Value = serde_json::from_str(&base.read(&format!("sessions/{ID}.json"))).unwrap();
    let results = session["lastResults"].as_array().unwrap().clone();
    let all = results
        .iter()
        .flat_map(|result| result["outcome"]["warnings"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|warning| (text(&warning["sort"]), text(&warning["text"]))).collect()
}

#[test]
fn no_call_gives_a_file_such_a_bit() {
    if !has_python() {
        return;
    }
    for scene in Scene::confined() {
        let command = attack(&scene.base);
        scene.hand_over();
        let told = scene.run(&[&command], &[]);
        assert!(printed(&told, &format!("REFUSED {}", all())), "{}: {told}", scene.name());
        let found = with_bits(&scene.base.at("workspace"));
        assert!(found.is_empty(), "{}: {found:?}", scene.name());
    }
    // Without walls they get through, or this tests nothing.
    let Some(open) = Scene::with(Way::AsItIs, Asked::Off) else { return };
    let command = attack(&open.base);
    let told = open.run(&[&command], &[]);
    let found = with_bits(&open.base.at("workspace")).len();
    assert!(found > all() / 2, "{found}: {told}");
}

#[test]
fn no_call_of_a_client_gives_a_file_such_a_bit() {
    if !has_python() {
        return;
    }
    for sandbox in ["auto", "bwrap", "partial"] {
        if !has_sandbox(sandbox) {
            continue;
        }
        let base = Project::new();
        base.sh("mkdir workspace");
        let command = attack(&base);
        let (_server, mut client) = Server::stdio(&base, &["--sandbox", sandbox]);
        let answer = client.ask(1, "exec", &json!({ "cmd": command }));
        let told = answer["result"]["stdout"].as_str().unwrap_or_default();
        assert!(told.contains(&format!("REFUSED {}", all())), "{sandbox}: {answer}");
        assert!(with_bits(&base.at("workspace")).is_empty(), "{sandbox}");
    }
}

#[test]
fn no_capability_can_be_given_to_a_file() {
    if !has_python() {
        return;
    }
    let script = "import os\nopen(\"c\", \"w\").close()\nvalue = bytes.fromhex(\"0100000200040000000000000000000000000000\")\ntry: os.setxattr(\"c\", \"security.capability\", value); print(\"THROUGH\")\nexcept OSError: print(\"REFUSED\")";
    let command = format!("{PYTHON} -c '{script}'");
    for scene in Scene::confined() {
        let told = scene.run(&[&command], &[]);
        assert!(printed(&told, "REFUSED"), "{}: {told}", scene.name());
        let mut value = [0_u8; 64];
        let path = scene.base.at("workspace/c");
        let found = rustix::fs::getxattr(&path, "security.capability", &mut value[..]);
        assert!(found.is_err(), "{}: {found:?}", scene.name());
    }
}

/// Applies a reply with this command, and does something outside while it runs: after it has made `ready`,
/// and before it finds `go`.
fn meanwhile(scene: &Scene, command: &str, what: impl FnOnce(&Path)) -> String {
    let command =
        format!("touch ready; until [ -e go ]; do sleep 0.02; done; rm ready go; {command}");
    scene.hand_over();
    let child = scene.start(&reply(&[&command]), &[]);
    let workspace = scene.base.at("workspace");
    wait_until("the command", || workspace.join("ready").exists());
    what(&workspace);
    fs::write(workspace.join("go-"), "").unwrap();
    // Who is no root removes only their own. The command goes on when all of it is handed over.
    scene.hand_over_workspace();
    fs::rename(workspace.join("go-"), workspace.join("go")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", scene.name());
    scene.base.read(String::from_utf8(output.stdout).unwrap().trim())
}

impl Scene {
    fn hand_over_workspace(&self) {
        if self.way == Way::OrdinaryUser {
            let owner = self.base.at("workspace").metadata().unwrap().uid();
            for entry in walkdir::WalkDir::new(self.base.at("workspace")) {
                let path = entry.unwrap().into_path();
                let bits = mode(&path);
                let _ = std::os::unix::fs::lchown(&path, Some(owner), Some(owner));
                if bits & 0o6000 != 0 {
                    // A new owner loses the bits.
                    set_mode(&path, bits);
                }
            }
        }
    }
}

#[test]
fn a_bit_that_came_another_way_is_cleared_and_told() {
    const PLANTED: [(&str, u32); 6] = [
        ("planted", 0o4755),
        ("deep/er/planted", 0o2755),
        ("deep/.gitkeep", 0o6711),
        ("single.log", 0o4700),
        ("100% odd", 0o6777),
        ("shut", 0o4000),
    ];
    for scene in Scene::confined() {
        let base = &scene.base;
        base.write("workspace/.gitignore", "*.log\n");
        meanwhile(&scene, "true", |workspace| {
            fs::create_dir_all(workspace.join("deep/er")).unwrap();
            for (name, mode) in PLANTED {
                fs::write(workspace.join(name), "x").unwrap();
                set_mode(&workspace.join(name), mode);
            }
        });
        for (name, bits) in PLANTED {
            let now = mode(&base.at("workspace").join(name));
            assert_eq!(now, bits & !0o6000, "{}: {name}", scene.name());
        }
        let told = warnings(base);
        assert_eq!(told.len(), PLANTED.len(), "{told:?}");
        for (name, _) in PLANTED {
            let is_told = |(sort, text): &(String, String)| sort == "guard" && text.contains(name);
            assert!(told.iter().any(is_told), "{}: {name}: {told:?}", scene.name());
        }
    }
}

#[test]
fn a_client_is_told_of_it_too() {
    if !has_sandbox("auto") {
        return;
    }
    let base = Project::new();
    base.sh("mkdir workspace; mkfifo workspace/go");
    let (_server, mut client) = Server::stdio(&base, &[]);
    let planted = base.at("workspace/planted");
    let (at, go) = (planted.clone(), base.at("workspace/go"));
    let planting = std::thread::spawn(move || {
        // The command reads, so it runs.
        let go = fs::File::options().write(true).open(go).unwrap();
        fs::write(&at, "x").unwrap();
        set_mode(&at, 0o4755);
        drop(go);
    });
    let answer = client.ask(1, "exec", &json!({ "cmd": "cat go" }));
    planting.join().unwrap();
    assert_eq!(mode(&planted), 0o755);
    let told = answer["result"]["stderr"].as_str().unwrap();
    assert!(told.contains("planted"), "{answer}");
}

#[test]
fn what_the_person_set_before_stays_while_nobody_changes_it() {
    if !has_python() {
        return;
    }
    let mapped = format!(
        "{PYTHON} -c 'import mmap; f = open(\"mapped\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[0:1] = b\"X\"; m.flush()'"
    );
    let command =
        format!("cat kept; mv moved deep/moved; ln kept linked; {mapped}; echo more >> written");
    for scene in Scene::confined() {
        let base = &scene.base;
        base.sh("mkdir workspace/deep");
        for name in ["kept", "moved", "mapped", "written"] {
            base.write(&format!("workspace/{name}"), "content\n");
        }
        scene.hand_over();
        for name in ["kept", "moved", "mapped", "written"] {
            set_mode(&base.at("workspace").join(name), 0o4755);
        }
        let bits = |name: &str| mode(&base.at("workspace").join(name));
        scene.run_without_handing_over(&command);
        assert_eq!(base.read("workspace/mapped"), "Xontent\n", "{}", scene.name());
        for kept in ["kept", "linked", "deep/moved"] {
            assert_eq!(bits(kept), 0o4755, "{}: {kept}", scene.name());
        }
        for changed in ["mapped", "written"] {
            assert_eq!(bits(changed), 0o755, "{}: {changed}", scene.name());
        }
    }
}

impl Scene {
    /// Runs a command in files as they are.
    fn run_without_handing_over(&self, command: &str) {
        let output = self.start(&reply(&[command]), &[]).wait_with_output().unwrap();
        assert!(output.status.success(), "{}: {output:?}", self.name());
    }
}

#[test]
fn no_undo_and_no_redo_gives_a_file_such_a_bit() {
    let Some(scene) = Scene::new(Way::AsItIs) else { return };
    let base = &scene.base;
    base.write("workspace/theirs", "one\n");
    base.write("workspace/removed", "one\n");
    for name in ["theirs", "removed"] {
        set_mode(&base.at("workspace").join(name), 0o4755);
    }
    meanwhile(&scene, "echo two > theirs; rm removed", |workspace| {
        fs::write(workspace.join("planted"), "x").unwrap();
        set_mode(&workspace.join("planted"), 0o6755);
    });
    let undo = |arguments: &[&str]| Run::of(&mut scene.command(&scene.program, arguments), "").ok();
    let none = |when: &str| {
        let found = with_bits(&base.at("workspace"));
        assert!(found.is_empty(), "{when}: {found:?}");
    };
    none("after the turn");
    undo(&["undo"]);
    none("after the undo");
    assert_eq!(
        (base.read("workspace/theirs"), base.read("workspace/removed")),
        ("one\n".into(), "one\n".into())
    );
    assert_eq!(
        (mode(&base.at("workspace/theirs")), base.exists("workspace/planted")),
        (0o755, false)
    );
    undo(&["redo"]);
    none("after the redo");
    assert_eq!(
        (mode(&base.at("workspace/planted")), base.exists("workspace/removed")),
        (0o755, false)
    );
}

#[test]
fn an_operation_that_rewrites_a_file_drops_its_bits() {
    let base = Project::with_session();
    for name in ["made", "edited", "moved", "over_rpc"] {
        base.write(&format!("workspace/{name}"), "one\n");
        set_mode(&base.at("workspace").join(name), 0o6751);
    }
    base.apply(
        "[CREATE_FILE path=\"made\"]\ntwo\n[/CREATE_FILE]\n\
         [EDIT_FILE path=\"edited\"]\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n[/EDIT_FILE]\n\
         [MOVE_FILE path=\"moved\" to=\"there\"]\n",
    );
    for name in ["made", "edited"] {
        assert_eq!(base.read(&format!("workspace/{name}")), "two\n");
        assert_eq!(mode(&base.at("workspace").join(name)), 0o751, "{name}");
    }
    // Nothing of it was written.
    assert_eq!(mode(&base.at("workspace/there")), 0o6751);
    let (_server, mut client) = Server::stdio(&base, &[]);
    let params = json!({ "path": "over_rpc", "content": "two\n" });
    let answer = client.ask(1, "write_file", &params);
    assert_eq!(base.read("workspace/over_rpc"), "two\n", "{answer}");
    assert_eq!(mode(&base.at("workspace/over_rpc")), 0o751);
}

#[test]
fn tools_work_without_such_bits() {
    const TOOLS: [(&str, &str); 7] = [
        ("cp", "cp -a tree copy && test -x copy/run && test \"$(cat copy/in/a)\" = a"),
        ("tar", "tar cf a.tar tree && mkdir out && tar xf a.tar -C out && test -x out/tree/run"),
        ("install", "install -D -m 755 tree/run bin/run && test -x bin/run"),
        ("mkdir", "mkdir -p -m 1777 sticky && chmod 1755 sticky && chmod -R a+rX,go-w tree"),
        (
            "git",
            "cd \"$TMPDIR\" && git init -q r && cd r && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm a && git clone -q . ../s && test -e ../s/a",
        ),
        (
            "python3",
            "python3 -c 'import shutil, os, tempfile; shutil.copytree(\"tree\", \"py\"); os.makedirs(\"x/y\", 0o700); tempfile.mkstemp()' && test -x py/run",
        ),
        (
            "cargo",
            "cd \"$TMPDIR\" && cargo init -q --vcs none --name a c && cd c && cargo build -q --offline && test -x target/debug/a",
        ),
    ];
    for scene in Scene::confined() {
        scene.base.sh("mkdir -p workspace/tree/in; cd workspace/tree; echo a > in/a; echo true > run; chmod 755 run");
        // In files, so that no policy reads what they do.
        for (tool, script) in TOOLS {
            let script = format!(
                "if ! {tool} --version >/dev/null 2>&1; then echo {tool} lacks; elif ( {script} ); then echo {tool} works; fi"
            );
            scene.base.write(&format!("workspace/try-{tool}"), script);
        }
        scene.hand_over();
        let commands = TOOLS.map(|(tool, _)| format!("sh try-{tool}"));
        let told = scene.run(&commands.each_ref().map(String::as_str), &[]);
        for (tool, _) in TOOLS {
            if printed(&told, &format!("{tool} lacks")) {
                eprintln!("SKIPPED (in part): {}: there is no {tool} for commands", scene.name());
            } else {
                assert!(
                    printed(&told, &format!("{tool} works")),
                    "{}: {tool}: {told}",
                    scene.name()
                );
            }
        }
    }
}
