//! The demonstration, as a person watches it.

use super::{Person, flat, holds};
use crate::support::{Project, wait_until};

/// Presses Enter at the end of a step.
fn goes_on(person: &Person, step: usize) {
    let asked = |all: String| all.matches("Enter shows the next step.").count() == step;
    wait_until(&format!("the end of step {step}"), || asked(person.tmux.all()));
    person.tmux.key("Enter");
}

#[test]
fn the_demonstration_shows_each_step_reply_and_result() {
    let base = Project::new();
    base.sh("mkdir tmp");
    if !crate::support::has_full_sandbox() {
        return;
    }
    let Some(person) = Person::sits_down(&base, 80) else { return };
    person.begins("TMPDIR=$PWD/tmp deaddrop demo");
    (1..=6).for_each(|n| goes_on(&person, n));
    let whole = |screen: &str| screen.contains("Its files are removed");
    person.tmux.wait_for("its end", whole);
    person.tmux.shows("[0] 1");
    let all = person.tmux.all();
    person.is_whole(&all);
    let mut rest = all.as_str();
    for part in [
        "1. A project",
        "$ deaddrop init",
        "2. A task",
        "$ deaddrop new --no-watch \"Write a script that greets people\"",
        "_seq0001.txt",
        "3. The first reply",
        "  │ [CREATE_FILE path=\"greet.sh\"]",
        "  │   ok    RUN_COMMAND  Ran 'sh greet.sh Ada' (exit code 0)",
        "  │           Hello, Ada.",
        "4. The second",
        "  │ [EDIT_FILE path=\"greet.sh\"]",
        "  │ REFUSED CREATE_FILE  REJECTED: ",
        "5. Second thoughts",
        "$ deaddrop diff",
        "  │ -echo \"Hello, $1.\"",
        "$ deaddrop undo",
        "  │ Turn 2 undone in session ",
        "$ deaddrop redo",
        "  │ Turn 2 put back in session ",
        "6. The third",
        "  │ export GREETING=Hello",
        "  │   Decide: `deaddrop approve`",
        "$ deaddrop approve",
        "  │   ok    CREATE_FILE  Created '.envrc'",
        "7. The last",
        "  │ [DONE]",
        "  │ Done. Session ",
        "Its files are removed.",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("'{part}', in its place, in\n{all}"));
        rest = &rest[at + part.len()..];
    }
    holds(
        &flat(&all),
        &[
            "A shell may run the file .envrc as soon as you enter the folder, so the model cannot write it without you",
        ],
    );
    assert_eq!(base.names("tmp"), [] as [&str; 0]);
    assert_eq!(base.names("."), [".tmux", "tmp"]);
}

#[test]
fn ctrl_c_ends_the_demonstration_and_leaves_nothing() {
    let base = Project::new();
    base.sh("mkdir tmp");
    let Some(person) = Person::sits_down(&base, 50) else { return };
    person.begins("TMPDIR=$PWD/tmp deaddrop demo");
    goes_on(&person, 1);
    person.tmux.shows("_seq0001.txt");
    person.tmux.key("C-c");
    person.tmux.shows("here>");
    wait_until("nothing of it", || base.names("tmp").is_empty());
}
