//! Links that came with a folder, on the way of what its settings or the person's own name.

use std::fs;
use std::os::unix::fs::symlink;

use super::is_refused;
use crate::support::Project;

/// Two folders outside of every project.
fn elsewhere() -> (tempfile::TempDir, [String; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().canonicalize().unwrap();
    let made = ["one", "two"].map(|name| {
        fs::create_dir(at.join(name)).unwrap();
        at.join(name).display().to_string()
    });
    (folder, made)
}

fn link(base: &Project, to: &str) {
    let path = base.at("build");
    let _ = fs::remove_file(&path);
    symlink(to, path).unwrap();
}

fn set_for_all(base: &Project, text: &str) {
    base.write(".no-config/deaddrop/config.toml", text);
}

#[test]
fn what_commands_reach_is_agreed_to_with_where_it_leads() {
    let (_folder, [one, two]) = elsewhere();
    for name in ["writable", "readable"] {
        let base = Project::that_nobody_agrees_to();
        let setting = format!("sandbox.{name}");
        base.write("deaddrop.toml", format!("[sandbox]\n{name} = [\"src\", \"build\"]\n"));
        let refused = || is_refused(base.run(&["--json", "status"]), &[&setting]);
        let allowed = || {
            base.run(&["config", "allow"]).ok();
            base.run(&["new", "--no-watch", "A task"]).ok();
        };
        link(&base, &one);
        let told = refused();
        assert!(told.contains(&format!("[\"src\", \"build\" -> {one}] (line 2)")), "{told}");
        allowed();
        link(&base, &two);
        let told = refused();
        assert!(told.contains(&format!("\"build\" -> {two}]")), "{told}");
        allowed();
        // Where nothing was, a link can be put too.
        symlink(&one, base.at("src")).unwrap();
        let told = refused();
        assert!(told.contains(&format!("[\"src\" -> {one}, \"build\"")), "{told}");
        fs::remove_file(base.at("src")).unwrap();
        base.run(&["status"]).ok();
    }
}

#[test]
fn the_persons_own_word_is_not_for_a_link_that_came_with_the_folder() {
    let (_folder, [at, _]) = elsewhere();
    for name in ["workspace", "inbox", "outbox", "sessions", "approvals"] {
        let base = Project::that_nobody_agrees_to();
        let setting = format!("{name}_dir");
        set_for_all(&base, &format!("{setting} = \"build\"\n"));
        link(&base, &at);
        let told = is_refused(
            base.run(&["--json", "-C", ".", "new", "--no-watch", "A task"]),
            &[&setting],
        );
        assert!(told.contains(&format!("\"build\" -> {at}: ")), "{told}");
        assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
        // The same where the folder's settings say what the person's say.
        base.write("deaddrop.toml", format!("{setting} = \"build\"\n"));
        is_refused(base.run(&["--json", "status"]), &[&setting]);
        fs::remove_file(base.at("deaddrop.toml")).unwrap();
        // What nobody else can lead elsewhere is theirs.
        set_for_all(&base, &format!("{setting} = \"{at}\"\n"));
        base.run(&["-C", ".", "status"]).ok();
        let depth = base.path().canonicalize().unwrap().components().count() - 1;
        let up = "../".repeat(depth) + at.trim_start_matches('/');
        set_for_all(&base, &format!("{setting} = \"{up}\"\n"));
        base.run(&["-C", ".", "status"]).ok();
    }
    for name in ["writable", "readable"] {
        let base = Project::that_nobody_agrees_to();
        let setting = format!("sandbox.{name}");
        set_for_all(&base, &format!("{setting} = [\"build\", \"{at}\"]\n"));
        base.run(&["-C", ".", "status"]).ok();
        link(&base, &at);
        let told = is_refused(base.run(&["--json", "-C", ".", "status"]), &[&setting]);
        assert!(told.contains(&format!("[\"build\" -> {at}, ")), "{told}");
    }
}
