//! The demonstration, as a person watches it.

use std::fs;
use std::path::Path;

use super::{Person, flat, holds};
use crate::support::{Project, program, wait_until};

/// Whether the program serves a session somewhere below a folder.
fn serves_in(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let program = program().canonicalize().unwrap();
    let is_one = |process: &Path| -> std::io::Result<bool> {
        let words = fs::read(process.join("cmdline"))?;
        Ok(fs::read_link(process.join("exe"))? == program
            && fs::read_link(process.join("cwd"))?.starts_with(&folder)
            && words.split(|byte| *byte == 0).nth(1) == Some(b"new"))
    };
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    processes.any(|process| is_one(&process.path()).unwrap_or_default())
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
    // Beside it runs the program that a person would have started, and serves the project.
    wait_until("what serves the project", || serves_in(&base.at("tmp")));
    let whole = |screen: &str| screen.contains("what is to be done");
    person.tmux.wait_for("its end", whole);
    person.tmux.shows("[0] 1");
    let all = person.tmux.all();
    person.is_whole(&all);
    let mut rest = all.as_str();
    for part in [
        "1. A project",
        "$ deaddrop init project",
        "2. A task",
        "$ deaddrop new -v \"Write a script that greets people\"",
        "_seq0001.txt\n  │ Waiting for replies in .deaddrop/inbox/",
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
        "  │ Turn 2 undone; 1 file changed: greet.sh",
        "$ deaddrop redo",
        "  │ Turn 2 put back; 1 file changed: greet.sh",
        "6. The third",
        "  │ export GREETING=Hello",
        "  │   Decide: `deaddrop approve`",
        "$ deaddrop approve",
        "  │   ok    CREATE_FILE  Created '.envrc'",
        "7. The last",
        "  │ [DONE]",
        "  │ Done. Session ",
        "What is in greet.sh now:",
        "Nothing of it is left.",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("'{part}', in its place, in\n{all}"));
        rest = &rest[at + part.len()..];
    }
    holds(
        &flat(&all),
        &["A shell would run what stands in .envrc as soon as you enter the folder."],
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
    person.tmux.shows("_seq0001.txt");
    wait_until("what serves the project", || serves_in(&base.at("tmp")));
    person.tmux.key("C-c");
    person.tmux.shows("here>");
    wait_until("nothing of it", || base.names("tmp").is_empty());
    wait_until("the end of what served it", || !serves_in(&base.at("tmp")));
}
