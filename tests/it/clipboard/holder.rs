//! What holds the clipboard when deaddrop has ended, and keeps nothing else.

use std::fs;
use std::process::Command;

use super::{Desktop, sees_holders, without_clipboard};
use crate::support::{Project, Run, program, wait_until};

/// What a process has open, sorted.
fn descriptors(process: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(process.join("fd")).unwrap();
    let links = entries.map(|entry| fs::read_link(entry.unwrap().path()).unwrap());
    let mut links: Vec<String> = links.map(|link| link.to_string_lossy().into_owned()).collect();
    links.sort();
    links
}

#[test]
fn the_text_stays_when_deaddrop_has_ended_and_its_holder_keeps_nothing_of_it() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let kept = base.write("kept.txt", "");
    // Whoever starts deaddrop may have left descriptors open for it.
    let mut command = Command::new("/bin/sh");
    let script =
        format!("exec 7<'{}' 8>&1; exec '{}' show --copy", kept.display(), program().display());
    command.args(["-c", &script]).current_dir(base.path());
    command.env("XDG_STATE_HOME", base.state());
    without_clipboard(&mut command).envs([("DISPLAY", &*desktop.display), ("A_TOKEN", "kept")]);
    // It ends, and with it the pipes that the test reads.
    let said = Run::of(&mut command, "").ok().stderr;
    assert!(said.contains("is on the desktop's clipboard, over X11."), "{said}");
    assert_eq!(desktop.shows(), Some(base.outbox(1)));
    // Nothing is locked.
    base.apply("[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n");
    assert_eq!(desktop.shows(), Some(base.outbox(1)));

    if sees_holders() {
        let holders = desktop.holders();
        let [holder] = holders.as_slice() else { panic!("{holders:?}") };
        assert_eq!(fs::read_link(holder.join("cwd")).unwrap(), std::path::Path::new("/"));
        let open = descriptors(holder);
        let (null, display): (Vec<String>, Vec<String>) =
            open.into_iter().partition(|link| link == "/dev/null");
        assert_eq!(null.len(), 3);
        assert!(display.iter().all(|link| link.starts_with("socket:")), "{display:?}");
        // Commands of a session may be able to look at it.
        let environment = fs::read(holder.join("environ")).unwrap();
        assert!(!String::from_utf8_lossy(&environment).contains("TOKEN"));
        let status = fs::read_to_string(holder.join("stat")).unwrap();
        let fields: Vec<&str> = status.rsplit(") ").next().unwrap().split(' ').collect();
        // It leads a session of its own, without a terminal.
        let pid = holder.file_name().unwrap().to_str().unwrap();
        assert_eq!((fields[3], fields[4]), (pid, "0"));
    }
    let _other = desktop.holds("of another program");
    wait_until("the end of the holder", || desktop.holders().is_empty());
    assert_eq!(desktop.shows().unwrap(), "of another program");
}

#[test]
fn a_holder_ends_with_its_display() {
    let Some(mut desktop) = Desktop::start() else { return };
    if !sees_holders() {
        return;
    }
    let base = Project::with_session();
    desktop.run(&base, &["show", "--copy"]).ok();
    assert_eq!(desktop.holders().len(), 1);
    // The next one takes its place.
    desktop.run(&base, &["show", "--copy"]).ok();
    wait_until("the end of the first", || desktop.holders().len() == 1);
    desktop.end();
    wait_until("the end of the holder", || desktop.holders().is_empty());
}

#[test]
fn the_daemon_waits_for_the_holders_that_it_started() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let daemon = desktop.serve(&base, &["watch", "--copy"]);
    desktop.wait_for_outbox(&base, 1);
    let _other = desktop.holds("of another program");
    let children = format!("/proc/{0}/task/{0}/children", daemon.pid());
    if !std::path::Path::new(&children).exists() {
        eprintln!("SKIPPED: this kernel does not list children");
        return;
    }
    wait_until("no child of the daemon", || {
        // Other threads start them, and the first one adopts none.
        let tasks = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
        let mut all = tasks.filter_map(|task| fs::read(task.ok()?.path().join("children")).ok());
        all.all(|children| children.is_empty())
    });
    daemon.stop();
}
