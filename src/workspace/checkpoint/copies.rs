//! What may be the only copy of something that cannot go back to where it was: it is left where it is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, What};

/// Contents that do not come to be where they were, and where they may have come from there.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// How often each content is missing.
    unmade: BTreeMap<String, usize>,
    /// Where an operation has moved something.
    moved: BTreeSet<String>,
    /// Where a command has put something: whether it moved it there, nobody knows.
    by_command: BTreeSet<String>,
    /// What a turn left in a place, where somebody has changed it since.
    was: BTreeMap<String, String>,
}

/// The content of a file or a link; None of what has none, or where it is not known.
pub(super) fn content(what: &What) -> Option<String> {
    match what {
        What::File { blob, .. } => Some(blob.as_str().to_owned()),
        What::Link { target } => Some(format!("-> {target}")),
        What::Folder { .. } | What::Unkept { .. } => None,
    }
}

impl Copies {
    /// This does not come to be where it was.
    pub(super) fn miss(&mut self, what: Option<&What>) {
        if let Some(content) = what.and_then(content) {
            *self.unmade.entry(content).or_default() += 1;
        }
    }

    /// This is to be changed.
    pub(super) fn meet(&mut self, change: &Change) {
        if change.moved {
            self.moved.insert(change.path.clone());
        } else if change.by_command {
            self.by_command.insert(change.path.clone());
        }
    }

    /// Something else stands there than this says, so that it tells by its content no more where it came
    /// from.
    pub(super) fn meet_other(&mut self, change: &Change) {
        if let Some(content) = change.before.as_ref().and_then(content) {
            self.was.insert(change.path.clone(), content);
        }
    }

    /// Which of these changes are not to be made, since what they would take away is missing elsewhere:
    /// of each content so many as are missing, what was surely moved first, and of that what would go
    /// before what would become something else. An empty file tells nothing of where a command took it
    /// from. `true`: it was surely moved.
    pub(super) fn kept<'a>(&mut self, changes: &'a [Change]) -> BTreeMap<&'a str, bool> {
        let mut kept = BTreeMap::new();
        if self.unmade.is_empty() {
            return kept;
        }
        for (surely, goes) in [(true, true), (true, false), (false, true), (false, false)] {
            let came_from = if surely { &self.moved } else { &self.by_command };
            for change in changes.iter().filter(|change| change.after.is_none() == goes) {
                let Some(now) = &change.before else { continue };
                let is_empty = matches!(now, What::File { size: 0, .. });
                if !came_from.contains(&change.path) || is_empty && !surely {
                    continue;
                }
                let contents = [self.was.get(&change.path).cloned(), content(now)];
                if change.after.as_ref().and_then(content) == contents[1] {
                    continue;
                }
                for content in contents.into_iter().flatten() {
                    if let Some(missing) = self.unmade.get_mut(&content)
                        && *missing > 0
                    {
                        *missing -= 1;
                        kept.insert(change.path.as_str(), surely);
                        break;
                    }
                }
            }
        }
        kept
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::property::Act::{self, Command, Create, Delete, Move};
    use super::super::property::by_commands;
    use super::super::tests::{Scene, scene};
    use super::super::{Recorder, reversed};
    use crate::protocol::RelPath;

    /// What is left of a turn that was taken back, but for protected names, which commands are to have
    /// changed: what stands there, and what was told.
    fn left(scene: &mut Scene, acts: &[Act]) -> (Vec<String>, Vec<(String, String)>) {
        let before = scene.all();
        let changes = by_commands(scene.carry_out(acts));
        let mut told = scene.make(reversed(changes));
        told.retain(|(path, _)| !path.starts_with(".vscode"));
        let mut more: Vec<String> = scene.all().into_keys().collect();
        more.retain(|path| !before.contains_key(path));
        (more, told)
    }

    #[test]
    fn a_new_file_goes_though_a_protected_one_of_its_content_is_gone() {
        for n in [0, 1] {
            let mut scene = scene();
            scene.carry_out(&[Create(".vscode/e", n)]);
            let acts = [Create("pkg/__init__.py", n), Delete(".vscode/e")];
            assert_eq!(left(&mut scene, &acts), (vec![], vec![]), "{n} bytes");
        }
        // That it is empty tells nothing of where a command took it from.
        let mut scene = scene();
        scene.carry_out(&[Create(".vscode/e", 0)]);
        let acts = [Command("mkdir pkg; touch pkg/__init__.py".into()), Delete(".vscode/e")];
        assert_eq!(left(&mut scene, &acts), (vec![], vec![]));
    }

    #[test]
    fn what_was_moved_stays_with_its_folder_and_no_other_of_its_content() {
        for n in [0, 1] {
            let mut scene = scene();
            scene.carry_out(&[Create(".vscode/s", n)]);
            let acts = [
                Create("a", n),
                Command("printf '\\001' > b".into()),
                Move(".vscode/s", "p/s"),
                Create("z", n),
            ];
            let (more, told) = left(&mut scene, &acts);
            assert_eq!(more, ["p", "p/s"]);
            let why = |at: usize| (told[at].0.as_str(), told[at].1.as_str());
            assert_eq!(why(0), ("p/s", "where it was moved from, nothing can be put back"));
            assert_eq!(why(1), ("p", "it holds what is left as it is"));
            assert_eq!(told.len(), 2);
        }
    }

    #[test]
    fn a_turn_that_is_taken_up_again_knows_what_it_moved() {
        let mut scene = scene();
        scene.sh("mkdir .vscode; echo s > .vscode/s");
        let Scene { workspace, store, .. } = &mut scene;
        let path = |path: &str| RelPath::parse(path).unwrap();
        let plan = workspace.plan_move(&path(".vscode/s"), &path("s"), true).unwrap();
        let noted = Recorder::new(store).before_move(workspace, plan.effect()).unwrap();
        plan.execute().unwrap();
        let noted = serde_json::from_str(&serde_json::to_string(&noted).unwrap()).unwrap();
        let changes = Recorder::resumed(store, vec![noted]).finish(workspace).changes.unwrap();
        let changes = by_commands(changes);
        let told = scene.make(reversed(changes));
        assert_eq!(told.last().map(|(path, _)| path.as_str()), Some("s"), "{told:?}");
    }

    #[test]
    fn what_a_command_may_have_moved_stays_once() {
        let mut scene = scene();
        scene.carry_out(&[Create(".vscode/s", 3)]);
        let acts = [Command("cp .vscode/s a; mv .vscode/s b; echo other > c".into())];
        let (more, told) = left(&mut scene, &acts);
        assert_eq!(more, ["a"]);
        assert!(
            told.len() == 1 && told[0].1.starts_with("a command may have moved it"),
            "{told:?}"
        );
    }
}
