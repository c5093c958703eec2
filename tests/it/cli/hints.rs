//! What deaddrop says is to be typed next can be typed so.

use crate::clipboard::without_clipboard;
use crate::support::{ID, Project, Run};

const REPLY: &str = "[CREATE_FILE path=\"a.txt\"]\none\n[/CREATE_FILE]\n";

/// Runs a command where no clipboard is in reach.
fn run(base: &Project, arguments: &[&str], input: &str) -> Run {
    Run::of(without_clipboard(&mut base.command(arguments)), input)
}

#[test]
fn a_path_is_printed_once() {
    let base = Project::with_session();
    let next = run(&base, &["next", "-"], REPLY).ok();
    assert_eq!(next.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    assert!(next.stderr.contains("is the file named above."), "{next:?}");
    let copy = run(&base, &["show", "--copy"], "").ok();
    assert_eq!(copy.stdout, format!("outbox/{ID}_seq0002.txt\n"));
    let base = Project::new();
    let new = run(&base, &["new", "--no-watch", "--copy", "--id", ID, "A task"], "").ok();
    assert_eq!(new.stdout, format!("outbox/{ID}_seq0001.txt\n"));
    let resumed = run(&base, &["resume", "--no-watch", "--copy"], "").ok();
    assert_eq!(resumed.stdout, format!("outbox/{ID}_seq0001.txt\n"));
}
