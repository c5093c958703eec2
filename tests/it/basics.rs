//! The shortest way through the program.

use crate::support::{Base, ID};

#[test]
fn a_reply_becomes_a_program_and_the_next_outbox_tells_so() {
    let base = Base::with_session();
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
    let base = Base::new();
    let mut daemon = base.serve(&["new", "--id", ID, "A task"]);
    base.write("inbox/r.txt", "[CREATE_FILE path=\"a\"]\nx\n[/CREATE_FILE]\n");
    base.wait_for_outbox(2);
    base.write("inbox/r.txt", "[DONE]\nAll well\n[/DONE]\n");
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(daemon.said().contains("All well"));
    assert_eq!(base.names("inbox/processed"), ["r-2.txt", "r.txt"]);
}
