//! What stands where settings are looked for, and is none: it gives no end, waits for somebody, is too
//! long, or lies elsewhere.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::Base;

/// So many bytes may a settings file have.
const LIMIT: usize = 1 << 20;

#[test]
fn only_a_regular_file_is_read_as_settings() {
    // First those that end.
    for (made, leads) in [
        ("ln -s /dev/null deaddrop.toml", "leads to /dev/null, which is"),
        ("mkdir deaddrop.toml", "it is"),
        ("ln -s .. deaddrop.toml", "leads to /"),
        ("ln -s /dev/zero deaddrop.toml", "leads to /dev/zero, which is"),
        ("mkfifo deaddrop.toml", "it is"),
    ] {
        let base = Base::that_nobody_agrees_to();
        base.sh(made);
        for arguments in
            [&["status"][..], &["-C", ".", "new", "--no-watch", "x"], &["config", "show"]]
        {
            let run = base.run(arguments).with_code(2);
            let told = "no regular file, so no settings are read from it";
            assert!(run.stderr.contains(told) && run.stderr.contains(leads), "{made}: {run:?}");
        }
        let run = base.run(&["config", "set", "max_tokens", "9000"]).with_code(2);
        let told = ["no regular file", "a link that leads out"];
        assert!(told.iter().any(|told| run.stderr.contains(told)), "{made}: {run:?}");
        assert!(!base.exists("sessions"));
    }
}

#[test]
fn a_settings_file_has_a_largest_size() {
    let base = Base::that_nobody_agrees_to();
    let longest = format!("#{}\n", "x".repeat(LIMIT - 2));
    base.write("deaddrop.toml", &longest);
    base.run(&["config", "show"]).ok();
    let run = base.run(&["config", "set", "max_tokens", "9000"]).with_code(2);
    assert!(run.stderr.contains("larger than 1"), "{run:?}");
    assert!(run.stderr.contains("nothing was written"), "{run:?}");
    assert_eq!(base.read("deaddrop.toml"), longest);
    base.write("deaddrop.toml", longest + "\n");
    for arguments in [&["status"][..], &["config", "show"]] {
        let run = base.run(arguments).with_code(2);
        assert!(run.stderr.contains("/deaddrop.toml: it is larger than 1"), "{run:?}");
    }
    // Holes cost whoever plants them nothing.
    fs::File::create(base.at("deaddrop.toml")).unwrap().set_len(1 << 40).unwrap();
    let run = base.run(&["status"]).with_code(2);
    assert!(run.stderr.contains("it is larger than 1"), "{run:?}");
}

#[test]
fn settings_are_not_written_through_a_link_that_leads_out() {
    let elsewhere = tempfile::tempdir().unwrap();
    let theirs = elsewhere.path().join("theirs.toml");
    fs::write(&theirs, "max_tokens = 9000\n").unwrap();
    let base = Base::that_nobody_agrees_to();
    symlink(&theirs, base.at("deaddrop.toml")).unwrap();
    for arguments in [&["set", "max_tokens", "9001"][..], &["unset", "max_tokens"]] {
        let run = base.run(&[&["config"], arguments].concat()).with_code(2);
        assert!(
            run.stderr.contains("a link that leads out of the base directory, to /"),
            "{run:?}"
        );
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
