//! A project whose repository holds `deaddrop.toml`: commands see it as it is, and cannot change it.

use crate::scene::Scene;
use crate::support::ID;

#[test]
fn settings_that_git_tracks_are_as_they_are_for_commands() {
    for scene in Scene::full() {
        let base = &scene.base;
        scene.becomes_a_project("git init -q .");
        // It may be another user's by now.
        base.sh(
            "git() { command git -c safe.directory='*' -c user.name=x -c user.email=x \"$@\"; }; git add -f deaddrop.toml; git commit -q -m x",
        );
        scene.hand_over();
        let look = "test -s deaddrop.toml && git -c safe.directory='*' diff --quiet && echo clean; ln deaddrop.toml l || echo no link; rm deaddrop.toml || echo kept; (echo x >> deaddrop.toml) || echo unwritten";
        let settings = base.read("deaddrop.toml");
        let output = scene.applies_in_project(&[look]);
        let outbox = base.read(&format!(".deaddrop/outbox/{ID}_seq0002.txt"));
        for told in ["clean\n", "no link\n", "kept\n", "unwritten\n"] {
            assert!(outbox.contains(told), "{} {told}: {outbox} {output:?}", scene.name());
        }
        assert_eq!(base.read("deaddrop.toml"), settings);
        // A reply's own operations reach it no more than before.
        let read = "[READ_FILE path=\"deaddrop.toml\"]\n";
        base.run_with(&["-C", ".", "apply", "-"], read).ok();
        let outbox = base.read(&format!(".deaddrop/outbox/{ID}_seq0003.txt"));
        assert!(outbox.contains("[FAILED] READ_FILE: Path is part of"), "{outbox}");
    }
}
