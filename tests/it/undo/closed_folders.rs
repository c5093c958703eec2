//! What could not be seen before a turn, in a folder that nobody may look into: it is unknown what it was, so
//! nothing of it is deleted, and it is named. Driven as a user for whom permissions count.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::support::json_output::{left, left_sorted, why};
use crate::support::{ID, Project, Run};

const NOBODY: u32 = 65534;

/// A project of a user who is not root.
struct Scene {
    base: Project,
    /// What is noted for him of projects.
    state: tempfile::TempDir,
    is_root: bool,
}

impl Scene {
    /// With a folder `d` of this mode that holds `x` and `k`.
    fn new(mode: u32) -> Self {
        let base = Project::with_session();
        base.write("workspace/d/x", "secret\n");
        base.write("workspace/d/k", "k\n");
        base.write("workspace/z", "z\n");
        let is_root = fs::metadata(base.path()).unwrap().uid() == 0;
        let state = tempfile::tempdir().unwrap();
        let all = [base.path(), state.path()].map(walkdir::WalkDir::new).into_iter().flatten();
        for entry in all.filter(|_| is_root) {
            chown(entry.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let scene = Self { base, state, is_root };
        scene.run(&["config", "allow"]).ok();
        scene.mode(mode);
        scene
    }

    fn mode(&self, mode: u32) {
        fs::set_permissions(self.base.at("workspace/d"), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn is(&self) -> u32 {
        fs::metadata(self.base.at("workspace/d")).unwrap().mode() & 0o777
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Run {
        let mut command = self.command(arguments);
        self.as_nobody(&mut command);
        Run::of(&mut command, input)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let named = ["-C", self.base.path().to_str().unwrap()];
        let mut command = self.base.command(&[&named, arguments].concat());
        command.env("HOME", self.base.at("home")).env("DEADDROP_SANDBOX", "off");
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn as_nobody(&self, command: &mut Command) {
        if self.is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    fn turn(&self, script: &str) -> Run {
        let reply = format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n");
        self.run_with(&["apply", "--session", ID, "-"], &reply).ok()
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(arguments, "")
    }

    /// Takes the last turn back; what is told of it.
    #[track_caller]
    fn undo(&self) -> Value {
        self.back(&["undo"])
    }

    #[track_caller]
    fn back(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).ok().json()["changed"]["back"].clone()
    }

    /// It cannot be taken back, since this was changed meanwhile.
    #[track_caller]
    fn refuses_to_undo(&self, path: &str) {
        let error = self.run(&["undo", "--json"]).with_code(1).error();
        assert_eq!(error["code"], "undo-conflict");
        let told = format!("1 file was changed since, and nothing was touched: {path}");
        assert!(error["message"].as_str().unwrap().contains(&told), "{error}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.mode(0o755);
    }
}

#[test]
fn what_lay_in_a_folder_that_could_not_be_read_is_never_deleted() {
    for mode in [0o000, 0o311, 0o444] {
        let scene = Scene::new(mode);
        scene.turn("echo y > z; chmod 755 d; sed -i s/secret/public/ d/x; echo new > d/new");
        // What the turn only let be seen is none of its changes.
        let undo = scene.undo();
        assert_eq!(left_sorted(&undo), ["d/new", "d/x"], "{mode:o}");
        for path in ["d/new", "d/x"] {
            let why = why(&undo, path);
            let told = "its earlier content is not stored: it could not be read";
            assert!(why.starts_with(told), "{mode:o} {path}: {why}");
        }
        assert_eq!((scene.is(), scene.base.read("workspace/z").as_str()), (mode, "z\n"));
        scene.mode(0o755);
        assert_eq!(scene.base.read("workspace/d/x"), "public\n", "{mode:o}");
        assert_eq!(scene.base.names("workspace/d"), ["k", "new", "x"], "{mode:o}");
    }
}

#[test]
fn what_a_turn_hides_is_not_told_as_deleted_and_is_there_after_an_undo() {
    for mode in [0o000, 0o311, 0o444] {
        let scene = Scene::new(0o755);
        let turn = scene.turn(&format!("echo y > z; chmod {mode:o} d"));
        assert!(!turn.stderr.contains("deleted"), "{mode:o}: {}", turn.stderr);
        let undo = scene.undo();
        // What stands there could not be looked at; where only the names could not be listed, it could.
        let unseen: &[&str] = if mode & 0o100 == 0 { &["d/k", "d/x"] } else { &[] };
        assert_eq!(left_sorted(&undo), unseen, "{mode:o}: {undo}");
        assert_eq!((scene.is(), scene.base.read("workspace/z").as_str()), (0o755, "z\n"));
        assert_eq!(scene.base.read("workspace/d/x"), "secret\n", "{mode:o}");
    }
}

#[test]
fn what_a_turn_hid_and_a_later_one_changed_is_looked_at_before_it_is_told() {
    let scene = Scene::new(0o755);
    scene.turn("chmod 000 d");
    scene.turn("chmod 755 d; sed -i s/secret/public/ d/x");
    let undo = scene.undo();
    assert_eq!(left(&undo), ["d/x"]);
    assert!(why(&undo, "d/x").starts_with("its earlier content is not stored"), "{undo}");
    assert_eq!(scene.is(), 0);
    // Both turns together tell what it was.
    scene.run(&["redo"]).ok();
    assert_eq!(left(&scene.back(&["undo", "--last", "2"])), [""; 0]);
    assert_eq!((scene.is(), scene.base.read("workspace/d/x").as_str()), (0o755, "secret\n"));
    scene.run(&["redo"]).ok();
    assert_eq!((scene.is(), scene.base.read("workspace/d/x").as_str()), (0o755, "public\n"));
}

#[test]
fn what_a_turn_changed_and_hid_goes_back_once_it_can_be_read() {
    let scene = Scene::new(0o755);
    scene.turn("echo evil > d/x; chmod 000 d");
    assert_eq!(left_sorted(&scene.undo()), ["d/k", "d/x"]);
    assert_eq!((scene.is(), scene.base.read("workspace/d/x").as_str()), (0o755, "evil\n"));
    scene.run(&["redo"]).ok();
    scene.mode(0o755);
    scene.refuses_to_undo("'d/x'");
    scene.run(&["undo", "--force"]).ok();
    assert_eq!((scene.is(), scene.base.read("workspace/d/x").as_str()), (0o755, "secret\n"));
    assert_eq!(scene.base.read("workspace/d/k"), "k\n");
}

#[test]
fn what_operations_do_after_a_command_where_nobody_can_list_goes_back() {
    let scene = Scene::new(0o311);
    let reply = "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n[CREATE_FILE path=\"d/new\"]\nn\n[/CREATE_FILE]\n[DELETE_FILE path=\"d/k\"]\n[CREATE_FILE path=\"d/x\"]\ny\n[/CREATE_FILE]\n";
    scene.run_with(&["apply", "--session", ID, "-"], reply).ok();
    assert_eq!(left(&scene.undo()), [""; 0]);
    assert_eq!(scene.is(), 0o311);
    scene.mode(0o755);
    assert_eq!(scene.base.names("workspace/d"), ["k", "x"]);
    assert_eq!(scene.base.read("workspace/d/x"), "secret\n");
    assert_eq!(scene.base.read("workspace/d/k"), "k\n");
}
