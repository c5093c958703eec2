//! Ignored files that git tracks, for example after `git add -f`. They are stored like files that are not ignored.
//!
//! The list of these files is part of a turn's ignore rules, under the path of git's index. So a command that makes git
//! track one of the person's files does not make that file part of the turn. The index is read again only if its
//! metadata or the ignore rules have changed, so that an unchanged repository adds no cost to a turn. The index of a
//! linked worktree is in another place and is not considered.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::Workspace;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::names::ancestors;
use crate::workspace::walk::detailed::{
    DetailedWalk, INDEX, IgnoreSource, Ignoring, Texts, WalkEntry, tracked,
};
use crate::workspace::walk::tracked::{REPOSITORIES, files};

/// Adds the tracked files of these repositories to a detailed walk; `earlier` are the rules of the last scan.
pub(super) fn add_tracked<'a>(
    workspace: &Workspace,
    repositories: impl Iterator<Item = &'a str>,
    by: &IgnoreSource,
    earlier: &Texts,
    walk: &mut DetailedWalk,
) {
    let known: Texts = match by {
        IgnoreSource::Given(texts) => {
            let gits = texts.iter().filter(|(place, _)| is_git_folder(place));
            gits.map(|(place, names)| (place.clone(), names.clone())).collect()
        }
        IgnoreSource::Disk(_) => {
            let same = earlier.iter().filter(|(place, _)| !is_git_folder(place)).eq(&walk.rules);
            let found = repositories.take(REPOSITORIES).filter_map(|folder| {
                let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                let place = format!("{prefix}.git/");
                let identity = workspace.identity_at(&format!("{place}{INDEX}")).ok()?;
                let identity = format!("{identity:?}");
                let was = earlier.get(&place).and_then(|names| names.get(INDEX)).filter(|_| same);
                let text = match was.filter(|was| was.split('\0').next() == Some(&identity)) {
                    Some(was) => was.clone(),
                    None => ignored_in_index(workspace, &prefix, identity, &walk.rules),
                };
                Some((place, BTreeMap::from([(INDEX.to_owned(), text)])))
            });
            found.collect()
        }
    };
    let paths: Vec<String> = tracked(&known).collect();
    walk.rules.extend(known);
    add_paths(workspace, walk, &paths);
}

fn is_git_folder(place: &str) -> bool {
    place == ".git/" || place.ends_with("/.git/")
}

/// The ignored files in an index with this identity, in the form in which the ignore rules contain them.
fn ignored_in_index(
    workspace: &Workspace,
    prefix: &str,
    identity: String,
    rules: &Texts,
) -> String {
    let mut ignoring = Ignoring::by(rules);
    let mut text = identity;
    files(workspace, prefix, |path| {
        if ignoring.leaves_out(path, false) {
            text.push('\0');
            text.push_str(&path[prefix.len()..]);
        }
    });
    text
}

/// Adds these paths to the walk's entries, along with the ignored folders that contain them.
fn add_paths(workspace: &Workspace, walk: &mut DetailedWalk, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let left_out: BTreeSet<String> = walk.left_out.iter().map(|met| met.path.clone()).collect();
    let (mut met, mut folders) = (BTreeSet::new(), FolderCache::new(workspace));
    for path in paths {
        let is_below = |place: &&str| left_out.contains(*place);
        let Some(first) = ancestors(path).find(is_below).map(str::len) else { continue };
        for place in ancestors(path).filter(|place| place.len() >= first) {
            if met.contains(place) {
                continue;
            }
            let Ok((_, found)) = folders.entry(place) else { break };
            let is_on_the_way = place.len() < path.len();
            if is_on_the_way && !found.is_dir() || workspace.is_state(place, &found) {
                break;
            }
            walk.met.push(WalkEntry::of(place.to_owned(), &found));
            met.insert(place.to_owned());
        }
    }
    // All other entries of such a folder are still ignored.
    walk.left_out.retain(|one| one.kind.is_none() || !met.contains(&one.path));
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::super::tests::{Scene, scene};
    use super::*;
    use crate::workspace::walk::tracked::tests::written;

    /// Writes an index with these paths.
    fn track(scene: &Scene, paths: &[&str]) {
        let index = scene.dir.path().join("w/.git/index");
        // As git does, write a new file and rename it.
        fs::write(index.with_extension("lock"), written(2, paths, *b"TREE")).unwrap();
        fs::rename(index.with_extension("lock"), index).unwrap();
    }

    fn known(scene: &mut Scene) -> Vec<String> {
        scene.turn("true");
        tracked(&scene.store.cache.rules).collect()
    }

    #[test]
    fn an_index_is_read_anew_where_it_or_rules_are_others() {
        let mut scene = scene();
        scene.sh("mkdir .git sub; echo '*.log' > .gitignore; for n in a b sub/c; do echo x > $n.log; done");
        track(&scene, &["a.log", "gone.log", "kept", "sub/c.log"]);
        assert_eq!(known(&mut scene), ["a.log", "gone.log", "sub/c.log"]);
        // The cached list is not checked.
        let text = scene.store.cache.rules.get_mut(".git/").and_then(|names| names.get_mut(INDEX));
        text.unwrap().push_str("\0b.log");
        assert_eq!(known(&mut scene).last().unwrap(), "b.log");
        assert!(scene.store.cache.get("b.log").is_some());
        scene.sh("echo kept > sub/.ignore");
        assert_eq!(known(&mut scene), ["a.log", "gone.log", "sub/c.log"]);
        assert!(scene.store.cache.get("b.log").is_none());
        track(&scene, &["b.log"]);
        assert_eq!(known(&mut scene), ["b.log"]);
        // A file that was not scanned before is not reported; from then on, it is scanned.
        let changes = scene.turn("echo y | tee a.log b.log; rm sub/c.log");
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["b.log", "sub/c.log"]);
    }

    #[test]
    fn an_index_names_nothing_that_no_walk_would_meet() {
        let mut scene = scene();
        scene.sh("mkdir .git d; printf '*.log\nd/\n' > .gitignore; echo x > a.log; ln -s .. d/up; echo x > d/f");
        fs::write(scene.dir.path().join("out.log"), "x").unwrap();
        let deep = format!("{}x.log", "d/".repeat(300));
        let paths = [
            "../out.log",
            "/a.log",
            "a.log",
            ".git/x.log",
            "d/up/out.log",
            "d/f/x.log",
            "d//f",
            "",
        ];
        track(&scene, &[&paths[..], &[&deep[..250]]].concat());
        assert_eq!(known(&mut scene), ["a.log", "d/up/out.log", "d/f/x.log"]);
        let seen = scene.store.cache.seen.iter().filter(|(_, known)| known.is_scanned());
        let seen: Vec<&str> = seen.map(|(path, _)| path).collect();
        assert_eq!(seen, ["", ".gitignore", "a.log", "d"]);
    }
}
