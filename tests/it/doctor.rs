//! `doctor` where something is so wrong that other commands refuse: a row of it says so, and the others
//! are there.

use std::os::unix::fs::chown;

use serde_json::Value;

use crate::support::Base;

fn rows(base: &Base) -> Vec<Value> {
    let told = base.run(&["doctor", "--json"]).stdout;
    told.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row<'a>(rows: &'a [Value], what: &str) -> Option<&'a Value> {
    rows.iter().find(|row| row["what"] == what)
}

fn project() -> Base {
    let base = Base::new();
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
        assert!(told.contains("can be written by everybody on this machine"), "{told}");
        // What it says to do helps.
        let (_, command) = told.split_once("; `").unwrap();
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
        ("rm deaddrop.toml; mkdir deaddrop.toml", "it is no regular file"),
        ("rmdir deaddrop.toml; ln -s gone deaddrop.toml", "it is a link to gone, where nothing is"),
    ] {
        base.sh(spoil);
        let told = base.run(&["sessions"]).with_code(2).stderr;
        assert!(told.contains(why), "{told}");
        let told = base.run(&["doctor"]).with_code(1).stdout;
        assert!(told.starts_with("NO  deaddrop.toml ") && told.contains(why), "{told}");
        let rows = rows(&base);
        assert!(rows[0]["what"] == "deaddrop.toml" && rows[0]["well"] == false, "{rows:#?}");
        for what in ["base", "workspace", "commands", "git", "disk"] {
            assert!(row(&rows, what).is_some(), "{what} is not in {rows:#?}");
        }
        // Nobody knows what they open.
        let settings = row(&rows, "settings").unwrap();
        assert!(settings["well"] == false, "{settings:#?}");
    }
    // What the file did not do is told as everywhere.
    let wrong = base.run(&["doctor", "--command-timeout-seconds", "x"]).with_code(2);
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
    base.run(&["sessions"]).with_code(2);
    let rows = rows(&base);
    assert!(rows[0]["what"] == "base directory" && rows[0]["well"] == false, "{rows:#?}");
    let inbox = row(&rows, "inbox").unwrap();
    assert!(inbox["well"] == false, "{inbox}");
    assert!(inbox["told"].as_str().unwrap().contains("belongs to user 60123"), "{inbox}");
    assert!(row(&rows, "outbox").unwrap()["well"] == true && row(&rows, "disk").is_some());
    // Who names it has looked at it.
    let named = base.run(&["-C", ".", "doctor"]).stdout;
    assert!(
        !named.contains("base directory") && named.contains("belongs to user 60123"),
        "{named}"
    );
}

#[test]
fn a_workspace_that_is_the_whole_machine_is_told_with_what_helps() {
    let base = project();
    let run = base.run(&["--workspace-dir", "/", "--sandbox", "auto", "doctor"]);
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
