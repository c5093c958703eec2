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

#[test]
fn commands_to_be_typed_say_which_base_directory_is_meant() {
    let base = Project::that_nobody_agrees_to();
    base.sh("mkdir p 'a b'");
    let told = run(&base, &["-C", "p", "undo"], "").with_code(5).stderr;
    assert!(told.contains("start one with `deaddrop -C p new \"your task\"`"), "{told}");
    let told = run(&base, &["status", "-C", "a b"], "").ok().stderr;
    assert!(told.contains("`deaddrop -C 'a b' new \"your task\"` starts one"), "{told}");

    run(&base, &["-C", "p", "new", "--no-watch", "--id", ID, "A task"], "").ok();
    let asks = "[CREATE_FILE path=\".envrc\"]\nA=1\n[/CREATE_FILE]\n";
    for (words, input, code, told) in [
        (&["show", "--copy"][..], "", 0, "then run: deaddrop -C p next -\n"),
        (&["show", "--copy", "--part", "1/2"], "", 0, ": deaddrop -C p show --copy --part 2/2\n"),
        (&["approve"], "", 5, "`deaddrop -C p status` shows"),
        (&["log", "--session", "00000000"], "", 5, "`deaddrop -C p status` lists them"),
        (&["undo", "--last", "7"], "", 1, ""),
        (
            &["apply", "-"],
            asks,
            3,
            "`deaddrop -C p approve`, or `deaddrop -C p deny --reason TEXT`",
        ),
        (&["status", ID], "", 0, "`deaddrop -C p approve`, or `deaddrop -C p deny --reason TEXT`"),
        (&["undo"], "", 3, &format!("`deaddrop -C p deny --session {ID}` or")),
    ] {
        let run = run(&base, &[&["-C", "p"], words].concat(), input).with_code(code);
        let said = [&*run.stdout, &*run.stderr].concat();
        assert!(said.contains(told), "{words:?}, {told}: {run:?}");
        assert!(!said.contains("`deaddrop approve"), "{words:?}: {run:?}");
    }
    let doctor = run(&base, &["-C", "p", "doctor"], "").stdout;
    assert!(doctor.contains("`deaddrop -C p status ID` shows the question"), "{doctor}");
    // What others wrote is theirs.
    run(&base, &["-C", "p", "deny"], "").ok();
    let reply = "[MESSAGE]\nType `deaddrop undo` now.\n[/MESSAGE]\n";
    let said = run(&base, &["-C", "p", "apply", "-v", "-"], reply).ok();
    assert!(!said.stderr.contains("`deaddrop -C p undo` now"), "{said:?}");
    // Where none was named, none is.
    let told = Run::of(base.command(&["undo"]).current_dir(base.at("a b")), "").with_code(5).stderr;
    assert!(told.contains("`deaddrop init` sets one up"), "{told}");
}
