//! What stands where settings are looked for, and is none: it gives no end, waits for somebody, is too
//! long, or lies elsewhere.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::{Project, Run};

/// So many bytes may a settings file have.
const LIMIT: usize = 1 << 20;

#[test]
fn only_a_regular_file_is_read_as_settings() {
    // First those that end.
    for made in [
        "ln -s /dev/null deaddrop.toml",
        "mkdir deaddrop.toml",
        "ln -s .. deaddrop.toml",
        "ln -s /dev/zero deaddrop.toml",
        "mkfifo deaddrop.toml",
    ] {
        let base = Project::that_nobody_agrees_to();
        base.sh(made);
        for arguments in
            [&["status"][..], &["-C", ".", "new", "--no-watch", "x"], &["config", "show"]]
        {
            let told = base.fails(arguments, "invalid-setting").with_code(2).message();
            let unread = "it is not a regular file, so no settings are read from it";
            assert!(told.contains(unread), "{made}: {told}");
        }
        let set = base.fails(&["config", "set", "max_tokens", "9000"], "invalid-setting");
        let told = set.with_code(2).message();
        let why = ["not a regular file", "a link that leads out"];
        assert!(why.iter().any(|why| told.contains(why)), "{made}: {told}");
        assert!(!base.exists("sessions"));
    }
}

#[track_caller]
fn is_too_large(run: Run) -> String {
    let told = run.with_code(2).message();
    assert!(told.contains("/deaddrop.toml: it is larger than 1"), "{told}");
    told
}

#[test]
fn a_settings_file_has_a_largest_size() {
    let base = Project::that_nobody_agrees_to();
    let longest = format!("#{}\n", "x".repeat(LIMIT - 2));
    base.write("deaddrop.toml", &longest);
    base.run(&["config", "show"]).ok();
    let set = base.fails(&["config", "set", "max_tokens", "9000"], "invalid-setting");
    let told = is_too_large(set);
    assert!(told.contains("nothing was written"), "{told}");
    assert_eq!(base.read("deaddrop.toml"), longest);
    base.write("deaddrop.toml", longest + "\n");
    for arguments in [&["status"][..], &["config", "show"]] {
        is_too_large(base.fails(arguments, "invalid-setting"));
    }
    // Holes cost whoever plants them nothing.
    fs::File::create(base.at("deaddrop.toml")).unwrap().set_len(1 << 40).unwrap();
    is_too_large(base.fails(&["status"], "invalid-setting"));
}

#[test]
fn settings_are_not_written_through_a_link_that_leads_out() {
    let elsewhere = tempfile::tempdir().unwrap();
    let theirs = elsewhere.path().join("theirs.toml");
    fs::write(&theirs, "max_tokens = 9000\n").unwrap();
    let base = Project::that_nobody_agrees_to();
    symlink(&theirs, base.at("deaddrop.toml")).unwrap();
    for arguments in [&["set", "max_tokens", "9001"][..], &["unset", "max_tokens"]] {
        let run = base.fails(&[&["config"], arguments].concat(), "invalid-setting").with_code(2);
        let told = "a link that leads out of the project, to /";
        assert!(run.message().contains(told), "{run:?}");
    }
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "max_tokens = 9000\n");
    // One within stays a link.
    fs::remove_file(base.at("deaddrop.toml")).unwrap();
    base.write("etc/mine.toml", "max_tokens = 9000\n");
    symlink("etc/mine.toml", base.at("deaddrop.toml")).unwrap();
    base.run(&["config", "set", "max_tokens", "9001"]).ok();
    assert!(base.at("deaddrop.toml").is_symlink());
    assert_eq!(base.read("etc/mine.toml"), "max_tokens = 9001\n");
}
