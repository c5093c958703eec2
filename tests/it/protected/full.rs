//! The guard together with a full sandbox.

use std::fs;

use super::{run, scene, warnings};
use crate::support::has_full_sandbox;

#[test]
fn under_a_full_sandbox_what_is_there_cannot_be_changed_and_what_is_made_goes_to_quarantine() {
    if !has_full_sandbox() {
        return;
    }
    let Some(base) = scene() else { return };
    fs::remove_file(base.at("deaddrop.toml")).unwrap();
    let outbox = base.apply(&format!(
        "{}{}{}",
        run("echo evil > .git/hooks/pre-commit"),
        run("for f in .git/config nested/.git/config .envrc .vscode/settings.json; do echo evil >> $f; rm -f $f; mv $f x; done; echo tried"),
        run("mkdir .idea; mv nested moved; mkdir -p nested/.git/hooks; echo evil > nested/.git/hooks/x"),
    ));
    assert_eq!(outbox.matches("Read-only file system").count(), 11, "{outbox}");
    assert_eq!(outbox.matches("Device or resource busy").count(), 2, "{outbox}");
    let told = warnings(&outbox);
    assert_eq!(told.len(), 3, "{outbox}");
    assert!(told[0].starts_with("a command made '.idea'"), "{told:?}");
    assert!(told[1].starts_with("a command changed 'nested/.git'"), "{told:?}");
    assert!(told[2].starts_with("a command moved 'nested/.git'"), "{told:?}");
    assert_eq!(base.read("workspace/.envrc"), "export A=1\n");
    assert_eq!(base.read("workspace/.git/config"), "[core]\n\tbare = false\n");
    assert_eq!(base.read("workspace/moved/.git/config"), "[core]\n\tbare = false\n");
    assert!(!base.exists("workspace/nested/.git") && !base.exists("workspace/.idea"));
}
