//! Turns in which operations and commands alternate, and turns in several parts: who changed what, and which ignore
//! rules apply.

use std::process::Command;

use super::tests::{Scene, scene};
use super::*;
use crate::protocol::{Existing, RelPath};
use crate::workspace::Workspace;

/// An action of a turn.
#[derive(Clone, Copy)]
enum Act<'a> {
    Write(&'a str, &'a str),
    Move(&'a str, &'a str),
    Delete(&'a str),
    Run(&'a str),
}
use Act::{Delete, Move, Run, Write};

/// Carries out actions, as `LocalExecutor` does. Returns the notes for the journal.
fn act(
    recorder: &mut Recorder<'_>,
    workspace: &Workspace,
    root: &Path,
    acts: &[Act<'_>],
) -> Vec<CheckpointNote> {
    let path = |text: &str| RelPath::parse(text).unwrap();
    let mut noted = Vec::new();
    for act in acts {
        match act {
            Write(at, text) => {
                let plan =
                    workspace.plan_create(&path(at), text.as_bytes(), Existing::Replace, false);
                let plan = plan.unwrap();
                noted.extend(recorder.before_files(workspace, [plan.effect()]));
                plan.execute(workspace).unwrap();
            }
            Delete(at) => {
                let plan = workspace.plan_delete(&path(at), false).unwrap();
                noted.extend(recorder.before_files(workspace, [plan.effect()]));
                plan.execute(workspace).unwrap();
            }
            Move(from, to) => {
                let plan = workspace.plan_move(&path(from), &path(to), false).unwrap();
                noted.extend(recorder.before_move(workspace, plan.effect()));
                plan.execute().unwrap();
            }
            Run(script) => {
                noted.extend(recorder.before_command(workspace).map(|(noted, _)| noted));
                let mut sh = Command::new("/bin/sh");
                let done = sh.args(["-ec", script]).current_dir(root).status().unwrap();
                assert!(done.success(), "{script}");
            }
        }
    }
    noted
}

impl Scene {
    /// A part of a turn, with the ignore rules from an earlier part.
    fn part(&mut self, rules: Option<KeptRules>, acts: &[Act<'_>]) -> RecordedChanges {
        let root = self.dir.path().join("w");
        let recorder = Recorder::new(&mut self.store);
        let mut recorder = recorder.with_rules(Ok(rules.unwrap_or_default()));
        act(&mut recorder, &self.workspace, &root, acts);
        recorder.after_commands(&self.workspace);
        recorder.finish(&self.workspace)
    }
}

/// The changed files. A `*` marks those that a command changed.
fn told(changes: &[TreeChange]) -> String {
    let files = changes.iter().filter(|change| {
        let folder =
            |what: &Option<TreeEntry>| what.as_ref().is_none_or(|w| matches!(w, TreeEntry::Folder { .. }));
        !(folder(&change.before) && folder(&change.after))
    });
    let told =
        |change: &TreeChange| format!("{}{}", change.path, if change.by_command { "*" } else { "" });
    files.map(told).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_an_operation_changed_after_a_command_is_not_the_commands() {
    let before = "echo a > a; echo b > b; echo c > c; mkdir f; echo g > f/g";
    let cases: [(&[Act<'_>], &str); 11] = [
        (&[Run("true"), Write("a", "A")], "a"),
        (&[Run("echo x > x"), Write("a", "A"), Delete("b"), Write("n", "n")], "a b n x*"),
        (&[Run("echo x > a"), Write("a", "A")], "a*"),
        (&[Run("true"), Write("a", "A"), Run("true")], "a"),
        (&[Run("true"), Write("a", "A"), Run("echo B > b")], "a b*"),
        (&[Run("true"), Write("a", "A"), Run("echo x >> a")], "a*"),
        (&[Run("true"), Write("a", "A"), Run("echo x >> a"), Write("a", "B")], "a*"),
        (&[Write("a", "A"), Run("true"), Write("a", "B")], "a"),
        (&[Write("a", "A"), Run("echo x >> a")], "a*"),
        (&[Run("true"), Move("f", "h"), Run("true")], "f/g h/g"),
        (&[Run("echo x > f/g"), Move("f", "h"), Write("c", "C")], "c f/g* h/g"),
    ];
    for (n, (acts, expected)) in cases.into_iter().enumerate() {
        let mut scene = scene();
        scene.sh(before);
        let changes = scene.part(None, acts).changes.unwrap();
        assert_eq!(told(&changes), expected, "{n}");
        // The result is the same if the turn was cut off at its end, or before its last action.
        for left in [0, 1] {
            let mut scene = super::tests::scene();
            scene.sh(before);
            let root = scene.dir.path().join("w");
            let mut recorder = Recorder::new(&mut scene.store);
            let (first, last) = acts.split_at(acts.len() - left);
            let noted = act(&mut recorder, &scene.workspace, &root, first);
            let mut recorder = Recorder::resumed(&mut scene.store, noted, &[]);
            act(&mut recorder, &scene.workspace, &root, last);
            let changes = recorder.finish(&scene.workspace).changes.unwrap();
            assert_eq!(told(&changes), expected, "{n}, taken up again");
        }
    }
}

#[test]
fn folders_that_a_turn_made_go_also_where_they_are_ignored() {
    let mut scene = scene();
    scene.sh("echo out/ > .gitignore; mkdir -p gone/deep");
    let before = scene.all();
    let acts = [Run("mkdir -p a/b; rmdir gone/deep"), Write("out/deep/x", "x"), Write("n/m", "m")];
    let changes = scene.part(None, &acts).changes.unwrap();
    scene.goes_back_and_forth(&changes, &before);
}

#[test]
fn the_rest_of_a_turn_goes_by_the_rules_from_before_all_of_it() {
    // The action of the first part: an operation or a command changes the rules.
    for first in [Write(".gitignore", "a\n"), Run("echo a > .gitignore; echo made > made")] {
        let mut scene = scene();
        scene.sh("echo out/ > .gitignore; mkdir out; echo o > out/o; echo a > a");
        let part = scene.part(None, &[first]);
        let json = serde_json::to_string(&part.rules.unwrap()).unwrap();
        let rules: KeptRules = serde_json::from_str(&json).unwrap();
        let mut parts = vec![part.changes.unwrap()];
        let part = scene.part(Some(rules), &[Write("a", "1"), Write(".ignore", "b")]);
        parts.push(part.changes.unwrap());
        let third = scene.part(part.rules, &[Run("echo A > a; rm out/o; echo b > b")]);
        parts.push(third.changes.unwrap());
        let changes = compose(parts);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(
            paths.into_iter().filter(|path| *path != "made").collect::<Vec<_>>(),
            [".gitignore", ".ignore", "a", "b"]
        );
        assert_eq!(scene.make(reverse(changes)), []);
        let names: Vec<String> = scene.all().into_keys().collect();
        assert_eq!(names, ["", ".gitignore", "a", "out"]);
    }
}

#[test]
fn many_files_go_back_together_and_what_is_changed_meanwhile_stays() {
    let mut scene = scene();
    // Another hard link of the same file is restored in the same batch.
    scene.sh(
        "for n in $(seq 120); do echo $n > f$n; done; chmod 600 f7; echo x > x; ln x y; ln -s x l",
    );
    let before = scene.all();
    let script = "for n in $(seq 120); do echo N$n >> f$n; done; chmod 644 f7; chmod 755 f8; echo X >> x; ln -sfn y l";
    let changes = scene.part(None, &[Run(script)]).changes.unwrap();
    scene.goes_back_and_forth(&changes, &before);
    let plan = scene.plan(reverse(changes), false);
    scene.sh("echo mine > f50; rm f51");
    let restored = plan.carry_out(&mut scene.store, &scene.workspace, false).unwrap();
    let left: Vec<&str> = restored.left.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(left, ["f50", "f51"]);
    assert_eq!((restored.met.len(), restored.undone.len()), (2, 2));
    let now = scene.all();
    assert!(now["f50"].1 == b"mine\n" && !now.contains_key("f51") && now["f52"] == before["f52"]);
    assert!(now.keys().all(|path| !path.contains(".tmp")), "{:?}", now.keys());
}

#[test]
fn what_is_kept_and_cannot_be_read_stops_an_undo_that_is_under_way() {
    let mut scene = scene();
    scene.sh("echo a > a; echo b > b");
    let changes = scene.part(None, &[Run("echo A > a; echo B > b")]).changes.unwrap();
    let plan = scene.plan(reverse(changes), false);
    // A shortened pack cannot be read, like one that the disk has lost.
    let packs = std::fs::read_dir(scene.dir.path().join("checkpoints/packs")).unwrap();
    let mut packs = packs.map(|pack| pack.unwrap().path());
    let pack = packs.find(|pack| std::fs::read(pack).unwrap().starts_with(b"a\nb\n")).unwrap();
    std::fs::write(pack, "a\n").unwrap();
    let gone = plan.carry_out(&mut scene.store, &scene.workspace, false);
    assert!(gone.unwrap_err().to_string().starts_with("cannot read"));
    // The next start continues, and reports what it cannot restore.
    let left = plan.carry_out(&mut scene.store, &scene.workspace, true).unwrap().left;
    assert!(left.len() == 1 && left[0].0 == "b" && left[0].1.contains("cannot read"), "{left:?}");
    let now = scene.all();
    assert_eq!((now["a"].1.as_slice(), now["b"].1.as_slice()), (&b"a\n"[..], &b"B\n"[..]));
}
