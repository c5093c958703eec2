//! The guard together with a full sandbox.

use std::fs;

use super::{assert_told, run, scene, warnings};
use crate::support::has_full_sandbox;

#[test]
fn under_a_full_sandbox_what_is_there_cannot_be_changed_and_what_is_made_goes_to_quarantine() {
    if !has_full_sandbox() {
        return;
    }
    let Some(base) = scene() else { return };
    fs::remove_file(base.at("deaddrop.toml")).unwrap();
    let turn = base.turn(&format!(
        "{}{}{}",
        run("echo evil > .git/hooks/pre-commit"),
        run("for f in .git/config nested/.git/config .envrc .vscode/settings.json; do echo evil >> $f; rm -f $f; mv $f x; done; echo tried"),
        run("mkdir .idea; mv nested moved; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x"),
    ));
    // What the shell says of it.
    assert_eq!(turn.outbox.matches("Read-only file system").count(), 11, "{turn:?}");
    assert_eq!(turn.outbox.matches("Device or resource busy").count(), 2, "{turn:?}");
    assert_told(
        &warnings(&turn),
        &[("made", ".idea"), ("changed", "nested/.git"), ("moved", "nested/.git")],
    );
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert_eq!(base.read("workspace/.git/config"), "[core]\n\tbare = false\n");
    assert_eq!(base.read("workspace/moved/.git/config"), "[core]\n\tbare = false\n");
    assert!(!base.exists("workspace/nested/.git") && !base.exists("workspace/.idea"));
}
