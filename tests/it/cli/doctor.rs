//! `doctor` where something is so wrong that other commands refuse: a row of it says so, and the others
//! are there.

use std::os::unix::fs::chown;
use std::process::Command;

use serde_json::Value;

use crate::support::Project;
use crate::support::wrapper::wrap;

fn rows(base: &Project) -> Vec<Value> {
    let told = base.run(&["doctor", "--json"]).stdout;
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row<'a>(rows: &'a [Value], what: &str) -> Option<&'a Value> {
    rows.iter().find(|row| row["what"] == what)
}

fn project() -> Project {
    let base = Project::new();
    base.run(&["init"]).ok();
    base
}

#[test]
fn what_everybody_may_write_is_a_fault() {
    let base = project();
    for path in [".deaddrop", "deaddrop.toml"] {
        assert_eq!(row(&rows(&base), path), None);
        base.sh(&format!("chmod o+w {path}"));
        base.run(&["doctor"]).with_code(1);
        let rows = rows(&base);
        let found = row(&rows, path).unwrap();
        assert!(found["well"] == false, "{found}");
        let told = found["told"].as_str().unwrap();
        assert!(told.contains("is writable for everybody on this machine"), "{told}");
        // What it says to do helps.
        let (_, command) = told.split_once("; run `").unwrap();
        base.sh(command.trim_end_matches('`'));
    }
    assert!(rows(&base).iter().all(|row| row["what"] != ".deaddrop"));
}

#[test]
fn settings_that_cannot_be_had_are_a_row() {
    let base = project();
    for (spoil, why) in [
        ("echo nonsense > deaddrop.toml", "deaddrop.toml:1: "),
        ("printf 'x = 1\\n\\377\\n' > deaddrop.toml", "deaddrop.toml:2: it is not UTF-8"),
        ("rm deaddrop.toml; mkdir deaddrop.toml", "it is not a regular file"),
        (
            "rmdir deaddrop.toml; ln -s gone deaddrop.toml",
            "it is a link to a file that does not exist",
        ),
    ] {
        base.sh(spoil);
        let told = base.fails(&["status"], "invalid-setting").with_code(2).message();
        assert!(told.contains(why), "{told}");
        let told = base.run(&["doctor"]).with_code(1).stdout;
        assert!(told.starts_with("NO  deaddrop.toml ") && told.contains(why), "{told}");
        let rows = rows(&base);
        assert!(rows[0]["what"] == "deaddrop.toml" && rows[0]["well"] == false, "{rows:#?}");
        assert!(rows[0]["told"].as_str().unwrap().contains(why), "{rows:#?}");
        for what in ["project folder", "workspace", "commands", "git", "disk"] {
            assert!(row(&rows, what).is_some(), "{what} is not in {rows:#?}");
        }
        // Nobody knows what they open.
        let settings = row(&rows, "settings").unwrap();
        assert!(settings["well"] == false, "{settings:#?}");
    }
    // What the file did not do is told as everywhere.
    let wrong = base.run(&["doctor", "--sandbox", "x"]).with_code(2);
    assert!(wrong.stdout.is_empty(), "{wrong:?}");
}

#[test]
fn a_folder_of_another_user_is_a_row() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: files of another user, which only root can make");
        return;
    }
    let base = project();
    base.sh("mkdir src");
    chown(base.at(".deaddrop/inbox"), Some(60_123), None).unwrap();
    base.run(&["status"]).with_code(2);
    let rows = rows(&base);
    assert!(rows[0]["what"] == "project" && rows[0]["well"] == false, "{rows:#?}");
    let inbox = row(&rows, "inbox").unwrap();
    assert!(inbox["well"] == false, "{inbox}");
    assert!(inbox["told"].as_str().unwrap().contains("belongs to user 60123"), "{inbox}");
    assert!(row(&rows, "outbox").unwrap()["well"] == true && row(&rows, "disk").is_some());
    // Who names it has looked at it.
    let named = base.run(&["-C", ".", "doctor"]).stdout;
    assert!(!named.contains("NO  project") && named.contains("belongs to user 60123"), "{named}");
}

#[test]
fn a_workspace_that_is_the_whole_machine_is_told_with_what_helps() {
    let base = project();
    let run = base.run(&["doctor", "--workspace-dir", "/", "--sandbox", "auto"]);
    assert!(run.stdout.contains("deaddrop config set workspace_dir FOLDER"), "{run:?}");
    for vain in ["sysctl", "lsm=", "apparmor"] {
        assert!(!run.stdout.contains(vain), "{vain}: {run:?}");
    }
}

#[test]
fn a_journal_that_may_not_be_read_is_told_with_what_to_do() {
    use std::os::unix::fs::PermissionsExt;
    let base = project();
    base.run(&["new", "--no-watch", "A task"]).ok();
    let journal = base.at(".deaddrop/sessions/journal");
    std::fs::set_permissions(&journal, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::read(&journal).is_ok() {
        eprintln!("SKIPPED: a journal that may not be read: this user may read everything");
        return;
    }
    let rows = rows(&base);
    let told = row(&rows, "journal").unwrap()["told"].as_str().unwrap();
    assert!(told.ends_with("; check its owner and rights"), "{told}");
}

#[test]
fn what_lies_in_a_workspace_and_looks_as_if_its_settings_were_gone_is_told_once() {
    let base = Project::with_session();
    base.sh("mkdir -p workspace/sub/.deaddrop/sessions");
    let told = base.command(&["doctor"]).current_dir(base.at("workspace/sub")).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("is in the workspace of"), "{told}");
    assert!(!told.contains("deaddrop init"), "{told}");
}

/// What `doctor` tells in that row after this was done in namespaces of its own. None where there are none.
fn amid(base: &Project, script: &str, what: &str) -> Option<Value> {
    let mut outer = Command::new("unshare");
    outer.args(["-rm", "sh", "-ec", &format!("{script}\nexec \"$@\""), "sh"]);
    wrap(&mut outer, &base.command(&["doctor", "--json"]));
    let output = outer.output();
    let told = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout));
    let rows = told.iter().flat_map(|told| told.lines());
    let rows: Vec<Value> = rows.map(|line| serde_json::from_str(line).unwrap()).collect();
    if rows.is_empty() {
        eprintln!(
            "SKIPPED: doctor where something is scarce ({script}); cannot be had: {output:?}"
        );
    }
    row(&rows, what).cloned()
}

#[test]
fn what_is_scarce_is_told_with_what_to_do() {
    let base = project();
    base.write("few", "100");
    let limits = "/proc/sys/fs/inotify/max_user_watches";
    let full =
        "cd .deaddrop/sessions; i=0; while touch $i 2>&-; do i=$((i+1)); done; rm 0; cd ../..";
    let tmpfs = |options: &str| format!("mount -t tmpfs -o {options} none .deaddrop/sessions");
    for (script, what, why) in [
        (format!("mount --bind few {limits}"), "watching", "a user can watch only 100 folders"),
        (
            "echo 0 > /proc/sys/user/max_inotify_instances".to_owned(),
            "watching",
            "raise fs.inotify.max_user_instances",
        ),
        (tmpfs("size=1m"), "disk", "/.deaddrop/sessions has only 1 MiB free; make room"),
        (
            format!("{}; {full}", tmpfs("size=500m,nr_inodes=600")),
            "disk",
            "/.deaddrop/sessions has room for only 1 more file (inodes); remove some there",
        ),
    ] {
        let Some(found) = amid(&base, &script, what) else { continue };
        assert!(found["fault"] == true, "{found}");
        assert!(found["told"].as_str().unwrap().contains(why), "{found}");
    }
    assert!(rows(&base).iter().all(|row| row["what"] != "disk" || row["well"] == true));
}

#[test]
fn where_git_is_not_there_that_is_no_fault() {
    let base = project();
    let output = base.command(&["doctor", "--json"]).env("PATH", "/nowhere").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let found = told.lines().find(|line| line.contains("\"what\":\"git\"")).unwrap();
    assert!(found.contains("git is not installed; deaddrop does not need it"), "{found}");
    assert!(found.contains("\"fault\":false") && found.contains("\"well\":false"), "{found}");
}
