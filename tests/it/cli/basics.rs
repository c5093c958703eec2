//! The shortest way through the program.

use crate::support::{ID, Project, Run};

#[test]
fn a_reply_becomes_a_program_and_the_next_outbox_tells_so() {
    let base = Project::with_session();
    assert!(base.outbox(1).contains("=== PROMPT ===\nA task\n"));
    let outbox = base.apply("[CREATE_FILE path=\"hi.sh\"]\necho hi\n[/CREATE_FILE]\n[RUN_COMMAND]\nsh hi.sh\n[/RUN_COMMAND]\n");
    assert!(outbox.contains("[OK] CREATE_FILE: Created 'hi.sh'\n"), "{outbox}");
    assert!(
        outbox.contains("[OK] RUN_COMMAND: Ran 'sh hi.sh' (exit code 0)\n  Output: hi\n"),
        "{outbox}"
    );
}

#[test]
fn a_daemon_carries_out_what_is_dropped_and_ends_with_done() {
    let base = Project::new();
    let mut daemon = base.serve(&["new", "--id", ID, "A task"]);
    base.write("inbox/r.txt", "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    base.wait_for_outbox(2);
    base.write("inbox/r.txt", "[DONE]\nAll well\n[/DONE]\n");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(daemon.said().contains("All well"));
    assert_eq!(base.names("inbox/processed"), ["r-2.txt", "r.txt"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_large_workspace_is_listed_where_no_thread_can_be_made() {
    let base = Project::with_session();
    base.sh("mkdir workspace/a workspace/b; seq -f workspace/a/%g 1 5100 | xargs touch; touch workspace/b/x");
    // No thread can have a stack of this size.
    let mut command = base.command(&["apply", "-"]);
    let run = Run::of(
        command.env("RUST_MIN_STACK", (1_u64 << 46).to_string()),
        "[MESSAGE]\nHi\n[/MESSAGE]\n",
    )
    .ok();
    assert!(base.read(run.stdout.trim()).contains("\n  a/ (5,100 files, 0 bytes)\n"), "{run:?}");
}

#[test]
fn nothing_is_no_reply() {
    let base = Project::with_session();
    let empty = base.write("empty.txt", "\u{feff}\n");
    for (arguments, text) in [
        (&["apply", "-"][..], ""),
        (&["apply"], " \n\n"),
        (&["apply", empty.to_str().unwrap()], ""),
    ] {
        let run = base.run_with(arguments, text).with_code(1);
        assert!(run.stderr.contains("it is empty"), "{arguments:?}: {run:?}");
        assert!(!base.exists(&format!("outbox/{ID}_seq0002.txt")), "{arguments:?}");
    }
}
