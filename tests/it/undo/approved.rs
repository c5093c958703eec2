//! What the person agreed to under protected names goes back with its turn; what changed there while a
//! command ran does where that is forced.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::json_output::{left, why};
use crate::support::{Project, Run};

/// A session whose turn changed files under protected names, as the person agreed.
fn scene() -> Project {
    let base = Project::with_session();
    base.write("workspace/.vscode/settings.json", "{\"a\": 1}\n");
    base.write("workspace/.vscode/tasks.json", "{}\n");
    let hook = base.write("workspace/.git/hooks/pre-commit", "mine\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let reply = "[CREATE_FILE path=\".vscode/settings.json\"]\n{\"a\": 2}\n[/CREATE_FILE]\n\
         [CREATE_FILE path=\".git/hooks/pre-commit\"]\ntheirs\n[/CREATE_FILE]\n\
         [CREATE_FILE path=\".claude/new/x\"]\nnew\n[/CREATE_FILE]\n\
         [DELETE_FILE path=\".vscode/tasks.json\"]\n\
         [CREATE_FILE path=\"a\"]\na\n[/CREATE_FILE]\n";
    base.run_with(&["apply", "-"], reply).with_code(3);
    for _ in 0..3 {
        base.run(&["approve"]).with_code(3);
    }
    base.run(&["approve"]).ok();
    assert_eq!(base.read("workspace/.git/hooks/pre-commit"), "theirs\n");
    base
}

fn mode(base: &Project, path: &str) -> u32 {
    fs::metadata(base.at(path)).unwrap().permissions().mode() & 0o7777
}

#[track_caller]
fn is_before(base: &Project) {
    assert_eq!(base.read("workspace/.vscode/settings.json"), "{\"a\": 1}\n");
    assert_eq!(base.read("workspace/.vscode/tasks.json"), "{}\n");
    assert_eq!(base.read("workspace/.git/hooks/pre-commit"), "mine\n");
    assert_eq!(mode(base, "workspace/.git/hooks/pre-commit"), 0o755);
    assert!(!base.exists("workspace/.claude") && !base.exists("workspace/a"));
}

#[track_caller]
fn tells(run: &Run, all: &[&str]) {
    for told in all {
        assert!(run.stderr.contains(told), "{told:?} is not in {}", run.stderr);
    }
}

#[test]
fn what_was_agreed_to_goes_back_and_forth() {
    let base = scene();
    assert_eq!(left(&base.back(&["undo"])), [""; 0]);
    is_before(&base);
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/.git/hooks/pre-commit"), "theirs\n");
    assert_eq!(base.read("workspace/.claude/new/x"), "new\n");
    assert!(!base.exists("workspace/.vscode/tasks.json"));
    // What the person has changed since is theirs there as anywhere.
    base.write("workspace/.vscode/settings.json", "mine since\n");
    tells(&base.run(&["undo"]).with_code(1), &["changed since", "'.vscode/settings.json'"]);
    base.run(&["undo", "--force"]).ok();
    is_before(&base);
    base.run(&["redo"]).ok();
    assert_eq!(base.read("workspace/.vscode/settings.json"), "mine since\n");
}

#[test]
fn what_was_agreed_to_is_no_change_of_a_later_command() {
    let base = scene();
    base.run(&["undo"]).ok();
    // A look at all of the workspace passes git's own over.
    base.apply("[RUN_COMMAND]\necho b > b\n[/RUN_COMMAND]\n");
    let diff = base.run(&["diff", "--stat"]).ok();
    assert_eq!(diff.stdout, "new b (+1)\n");
    base.run(&["undo"]).ok();
    is_before(&base);
}

#[test]
fn what_changed_there_while_a_command_ran_goes_back_by_force() {
    let base = Project::with_session();
    base.write("workspace/.envrc", "mine\n");
    let apply = |script: &str| {
        let reply = format!("[RUN_COMMAND]\n{script}\n[/RUN_COMMAND]\n");
        base.run_with(&["apply", "--sandbox", "off", "-"], reply).ok();
    };
    apply("echo a > a; echo theirs > .envrc");
    let undo = base.run(&["undo", "--json"]).ok();
    let back = &undo.json()["changed"]["back"];
    assert_eq!(left(back), [".envrc"]);
    assert!(why(back, ".envrc").starts_with("its name is protected"), "{back}");
    let by_force = "`--force` puts back what changed under protected names while commands ran, too";
    tells(&undo, &[by_force]);
    assert_eq!(base.read("workspace/.envrc"), "theirs\n");
    base.run(&["redo"]).ok();
    base.run(&["undo", "--force"]).ok();
    assert!(!base.exists("workspace/a"));
    assert_eq!(base.read("workspace/.envrc"), "mine\n");
    // Where it is all that there is, nothing is touched, and it is told what can be done.
    apply("echo again > .envrc");
    let undo = base.fails(&["undo"], "nothing-to-undo").with_code(1).message();
    for told in ["nothing can be taken back", "'.envrc' (its name is protected", by_force] {
        assert!(undo.contains(told), "{told}: {undo}");
    }
    base.run(&["undo", "--force"]).ok();
    assert_eq!(base.read("workspace/.envrc"), "mine\n");
}
