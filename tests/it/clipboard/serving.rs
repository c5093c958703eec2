//! `--copy`: each new outbox is on the clipboard by itself.

use super::{Desktop, reply, without_clipboard};
use crate::support::{ID, Project, Run};

#[test]
fn new_copies_the_first_outbox_and_each_that_follows() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::new();
    let mut daemon = desktop.serve(&base, &["new", "--copy", "--id", ID, "A task"]);
    desktop.wait_for_outbox(&base, 1);
    daemon.wait_for("_seq0001.txt is on the desktop's clipboard, over X11.");
    base.write("inbox/r.txt", reply(&base, 1, "a.txt"));
    desktop.wait_for_outbox(&base, 2);
    // What was handed over counts, too.
    base.run_with(&["apply", "-"], reply(&base, 2, "b.txt")).ok();
    desktop.wait_for_outbox(&base, 3);
    base.write("inbox/r.txt", "[DONE]\nAll is well.\n[/DONE]\n");
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(desktop.shows(), Some(base.outbox(3)));
}

#[test]
fn resume_copies_where_it_goes_on_and_nothing_is_waited_for_without_watching() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let daemon = desktop.serve(&base, &["resume", "--copy"]);
    desktop.wait_for_outbox(&base, 1);
    daemon.stop();
    base.write("inbox/r.txt", reply(&base, 1, "a.txt"));
    let run = desktop.run(&base, &["resume", "--copy", "--no-watch"]).ok();
    assert!(run.stderr.contains("Outbox 2 of session"), "{run:?}");
    assert_eq!(desktop.shows(), Some(base.outbox(2)));
    let run = desktop.run(&base, &["new", "--copy", "--no-watch", "--id", "b1b2c3d4", "More"]);
    run.ok();
    assert_eq!(desktop.shows(), Some(base.read("outbox/b1b2c3d4_seq0001.txt")));
    desktop.run(&base, &["resume", "--clipboard", "--no-watch"]).with_code(2);
}

#[test]
fn after_a_decision_the_next_outbox_is_copied_and_no_other_of_that_turn() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::new();
    base.begin_asking(ID);
    base.write("workspace/temp/a", "x\n");
    let daemon = desktop.serve(&base, &["watch", "--copy"]);
    desktop.wait_for_outbox(&base, 1);
    base.write("inbox/r.txt", "[RUN_COMMAND]\nrm -r temp\n[/RUN_COMMAND]\n");
    daemon.wait_for("waits for your decision");
    assert_eq!(desktop.shows(), Some(base.outbox(1)));
    base.run(&["approve"]).ok();
    desktop.wait_for_outbox(&base, 2);
    daemon.stop();
}

#[test]
fn a_clipboard_that_fails_costs_a_warning_and_no_turn() {
    let base = Project::with_session();
    let mut command = base.command(&["watch", "--copy"]);
    // Nothing listens there.
    without_clipboard(&mut command).env("DISPLAY", ":7654").env("PATH", "/nonexistent");
    let daemon = base.start_as(&mut command);
    daemon.wait_for("no clipboard accepts it (x11: ");
    base.write("inbox/r.txt", reply(&base, 1, "a.txt"));
    base.wait_for_outbox(2);
    daemon.wait_for("_seq0002.txt: no clipboard accepts it");
    daemon.stop();
}

#[test]
fn a_session_that_another_process_serves_is_copied_by_whoever_asks() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let daemon = base.serve(&["watch"]);
    let mut new = desktop.command(&base, &["new", "--clipboard", "--id", "b1b2c3d4", "More"]);
    Run::of(&mut new, "").ok();
    assert_eq!(desktop.shows(), Some(base.read("outbox/b1b2c3d4_seq0001.txt")));
    daemon.stop();
}

#[test]
fn the_brief_form_is_copied_where_it_is_wanted() {
    let Some(desktop) = Desktop::start() else { return };
    let base = Project::with_session();
    let daemon = desktop.serve(&base, &["watch", "--copy", "--brief"]);
    desktop.wait_for_outbox(&base, 1);
    base.write("inbox/r.txt", reply(&base, 1, "a.txt"));
    daemon.wait_for("_seq0002.txt (brief: ≈ ");
    let brief = base.run(&["show", "--brief"]).ok().stdout;
    assert!(brief.contains("As in message 1"), "{brief}");
    assert_eq!(desktop.shows(), Some(brief));
    daemon.stop();
    desktop.run(&base, &["show", "--copy"]).ok();
    assert_eq!(desktop.shows(), Some(base.outbox(2)));
    let run = desktop.run(&base, &["show", "--copy", "--part", "1/2", "--brief"]).ok();
    assert!(
        run.stderr.contains("`deaddrop show 2 --session a1b2c3d4 --copy --brief --part 2/2`\n"),
        "{run:?}"
    );
}
