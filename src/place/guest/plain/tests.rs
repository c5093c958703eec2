//! What agents may answer, without one.

use std::time::Duration;

use super::command::execution;
use super::walk::{Bounds, Which, within};
use super::{about, command};
use crate::protocol::jsonrpc::{ExecResult, FileEntry};
use crate::protocol::{Ending, Output, ShellCommand, Streams};
use crate::workspace::walk::Count;

const SECOND: Duration = Duration::from_secs(1);

fn ran(code: i32, out: &str, err: &str) -> ExecResult {
    ExecResult { exit_code: code, stdout: out.to_owned(), stderr: err.to_owned() }
}

fn entry(name: &str, is_dir: bool) -> FileEntry {
    FileEntry { name: name.to_owned(), is_dir, size: u64::from(!is_dir) }
}

#[test]
fn how_a_command_ended_is_said_as_far_as_it_is_known() {
    let run = ShellCommand::new("x");
    let ending = |ran: ExecResult, took: Duration| {
        let (execution, noticed) = execution(&run, ran, took, 10 * SECOND, 100);
        (execution.ending, noticed.len())
    };
    let begun = "deaddrop: begun\n";
    assert_eq!(ending(ran(3, "", begun), SECOND), (Ending::Exited(3), 0));
    assert_eq!(ending(ran(124, "", begun), SECOND), (Ending::Exited(124), 0));
    assert_eq!(ending(ran(124, "", begun), 10 * SECOND), (Ending::TimedOut(10 * SECOND), 1));
    assert_eq!(ending(ran(0, "", begun), 15 * SECOND), (Ending::Exited(0), 1));
    assert_eq!(ending(ran(-1, "", begun), SECOND), (Ending::Lost, 1));
    let told = Ending::NotStarted("the guest's agent could not start it: no sh".to_owned());
    assert_eq!(ending(ran(-1, "", "no sh\n"), SECOND), (told, 0));
    assert!(matches!(ending(ran(i32::MIN, "", ""), SECOND).0, Ending::NotStarted(_)));
}

#[test]
fn output_is_bounded_and_kept_as_it_was_asked_for() {
    let output = |streams, limit| {
        let run = ShellCommand { streams, ..ShellCommand::default() };
        let ran = ran(0, &"o".repeat(3_000_000), "deaddrop: begun\ne");
        execution(&run, ran, SECOND, SECOND, limit).0.output
    };
    let Output::Together(capture) = output(Streams::Together, 10) else { panic!("not together") };
    assert_eq!((&*capture.head, &*capture.tail), ("ooooo", "ooo\ne"));
    let Output::Apart { stdout, stderr } = output(Streams::Apart, 10) else { panic!("not apart") };
    assert!(stdout.left_out > 1_900_000 && !stdout.tail.is_empty());
    assert_eq!(stderr.head, "e");
    let Output::Apart { stdout, .. } = output(Streams::First, 10) else { panic!("not apart") };
    assert!(stdout.left_out > 1_900_000 && stdout.tail.is_empty());
}

#[test]
fn names_that_no_shell_takes_are_refused() {
    let mut run = ShellCommand::new("x");
    run.env.insert("A_1".to_owned(), "b'c\nd".to_owned());
    assert_eq!(command::fault_of_names(&run), None);
    let script = command::script(&run, "'.'", SECOND);
    assert!(script.contains("export A_1='b'\\''c\nd'\n"), "{script}");
    for name in ["1A", "a b", "a;b", "é", "$(x)"] {
        run.env = [(name.to_owned(), String::new())].into();
        assert!(command::fault_of_names(&run).is_some(), "{name}");
    }
}

#[test]
fn what_a_guest_is_is_read_of_whatever_is_said() {
    let about = about::read(
        "root /w x\nsystem Debian 12\nkernel Linux 6 x86_64\ntool git git version 2.39.5 \ntool make \ntool evil 1.2\nnonsense\n\u{1b}[0m\n",
    );
    assert_eq!((&*about.root, &*about.system), ("/w x", "Debian 12, Linux 6 x86_64"));
    assert_eq!(about.tools, ["make", "git 2.39.5"]);
    assert!(about.sandbox.contains("Text files only, writes are not atomic"));
    assert_eq!(about::read("").system, "an unknown system");
}

#[test]
fn a_walk_ends_also_in_a_circle_and_obeys_ignore_files() {
    let bounds = Bounds { folders: 50, entries: 1_000, depth: 5, time: 60 * SECOND };
    // Each folder holds itself.
    let circle = |_: &str| Ok(Some(vec![entry("a", false), entry("again", true)]));
    let walk = within(&bounds, "", Which::NotIgnored, circle, |_| Ok(None)).unwrap();
    assert_eq!(walk.files().len(), 6);
    assert!(walk.unreadable()[0].starts_with("again/again/again/again/again/again/ and all"));
    let wide = |_: &str| Ok(Some(vec![entry("x", true), entry("y", true)]));
    let walk = within(&bounds, "", Which::NotIgnored, wide, |_| Ok(None)).unwrap();
    assert_eq!((walk.files().len(), walk.unreadable().len()), (0, 1));
    let many = |_: &str| Ok(Some((0..2_000).map(|n| entry(&n.to_string(), false)).collect()));
    let walk = within(&bounds, "", Which::NotIgnored, many, |_| Ok(None)).unwrap();
    assert_eq!(walk.files().len(), 1_000);
    assert_eq!(walk.unreadable(), ["., in part: 1000 more"]);

    let list = |folder: &str| {
        Ok(match folder {
            "" => Some(vec![
                entry(".git", true),
                entry(".gitignore", false),
                entry("out", true),
                entry("src", true),
                entry("shut", true),
                entry("a.log", false),
                entry("node_modules", true),
            ]),
            "src" => Some(vec![entry(".ignore", false), entry("b.log", false), entry("c", false)]),
            "out" | ".git" | "node_modules" => panic!("{folder} was listed"),
            _ => None,
        })
    };
    let read = |path: &str| {
        Ok(match path {
            ".gitignore" => Some("out/\n*.log\n".to_owned()),
            "src/.ignore" => Some("!b.log\nc\n".to_owned()),
            _ => None,
        })
    };
    let walk = within(&bounds, "", Which::NotIgnored, list, read).unwrap();
    let files: Vec<_> = walk.files().map(|file| file.path).collect();
    assert_eq!(files, [".gitignore", "src/.ignore", "src/b.log"]);
    assert_eq!(walk.unreadable(), ["shut/"]);
    assert_eq!(walk.ignored_files(), Count { files: 2, bytes: 2, is_whole: true });
    let left_out: Vec<_> = walk.left_out().iter().map(|one| (&*one.folder, one.count)).collect();
    assert_eq!(left_out, [("node_modules/", Count::UNKNOWN), ("out/", Count::UNKNOWN)]);
}
