//! Files that git tracks though rules leave them out, as after `git add -f`: they are kept like any other.
//!
//! Which they are is of the rules that a turn goes by, and stands among them under the place of git's own
//! index, so a command that has git track a file of the person's does not make it one of the turn. The index
//! is read anew only where it is another, by what the system tells of it, or rules are: so a turn does not
//! grow with a repository that has not changed. A worktree's index stands elsewhere, and is not looked for.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::ancestors;
use crate::workspace::Workspace;
use crate::workspace::walk::EntryKind;
use crate::workspace::walk::close::{By, Close, Facts, INDEX, Ignoring, Texts, tracked};
use crate::workspace::walk::tracked::{REPOSITORIES, files};

/// Has a close walk meet them, where `repositories` are; `earlier` are the rules of the last look.
pub(super) fn meet<'a>(
    workspace: &Workspace,
    repositories: impl Iterator<Item = &'a str>,
    by: &By,
    earlier: &Texts,
    close: &mut Close,
) {
    let known = match by {
        By::Given(texts) => texts,
        By::Disk(_) => earlier,
    };
    let known: Texts = known.iter().filter(|(place, _)| is_gits(place)).map(owned).collect();
    let known = match by {
        By::Given(_) => known,
        By::Disk(_) => {
            let rules = earlier.iter().filter(|(place, _)| !is_gits(place));
            let same = rules.eq(&close.rules);
            let repositories = repositories.take(REPOSITORIES);
            let found = repositories.filter_map(|folder| {
                let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                let place = format!("{prefix}.git/");
                let is = workspace.identity_at(&format!("{place}{INDEX}")).ok()?;
                let was = known.get(&place).and_then(|names| names.get(INDEX)).filter(|_| same);
                let text = match was.filter(|was| was.split('\0').next() == Some(&is)) {
                    Some(was) => was.clone(),
                    None => left_out(workspace, &prefix, is, &close.rules),
                };
                Some((place, BTreeMap::from([(INDEX.to_owned(), text)])))
            });
            found.collect()
        }
    };
    let paths: Vec<String> = tracked(&known).collect();
    close.rules.extend(known);
    meet_all(workspace, close, &paths);
}

fn owned(
    (place, names): (&String, &BTreeMap<String, String>),
) -> (String, BTreeMap<String, String>) {
    (place.clone(), names.clone())
}

fn is_gits(place: &str) -> bool {
    place == ".git/" || place.ends_with("/.git/")
}

/// What an index that `is` this has of what these rules leave out, as it stands among rules.
fn left_out(workspace: &Workspace, prefix: &str, is: String, rules: &Texts) -> String {
    let mut ignoring = Ignoring::by(rules);
    let mut text = is;
    files(workspace, prefix, |path| {
        if ignoring.leaves_out(path, false) {
            text.push('\0');
            text.push_str(&path[prefix.len()..]);
        }
    });
    text
}

/// Adds these to what was met, with the folders that were left out and hold them.
fn meet_all(workspace: &Workspace, close: &mut Close, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let left_out: BTreeSet<String> = close.left_out.iter().map(|met| met.path.clone()).collect();
    let mut met = BTreeSet::new();
    for path in paths {
        let is_below = |place: &&str| left_out.contains(*place);
        let Some(first) = ancestors(path).find(is_below).map(str::len) else { continue };
        for place in ancestors(path).filter(|place| place.len() >= first) {
            if met.contains(place) {
                continue;
            }
            let Ok((_, found)) = workspace.stands_at(place) else { break };
            let kind = match () {
                () if found.is_dir() => None,
                () if found.is_file() => Some(EntryKind::File),
                () if found.is_symlink() => Some(EntryKind::Link),
                () => Some(EntryKind::Other),
            };
            let is_on_the_way = place.len() < path.len();
            if is_on_the_way && kind.is_some() || workspace.is_state(place, &found) {
                break;
            }
            close.meet(place.to_owned(), kind, found.len(), Facts::of(&found));
            met.insert(place.to_owned());
        }
    }
    // Of such a folder the rest is left out as before.
    close.left_out.retain(|one| one.kind.is_none() || !met.contains(&one.path));
}
