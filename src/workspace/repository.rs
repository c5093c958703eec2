//! Files outside `.git` that configure git: the entries of a folder that looks like a repository (git would use its
//! settings and hooks), and files that git's settings name. Like `.git`, only the person may write them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::locate::{self, PathLocation};
use super::names::{escaped, shown, split};
use super::overlay::{Cover, Overlay};
use super::walk::Walk;
use crate::links::follow;
use crate::protocol::{Failure, RelPath};
use crate::settings::{CommandTexts, FileName, folded, git_references, is_repository};

const GIT: &str = ".git";
/// The most repositories whose settings are read, beginning with those nearest to the root.
const REPOSITORIES: usize = 1_000;
/// How long the repositories found by a walk are used: this time or this multiple of the walk's duration, if longer.
const VALIDITY: (Duration, u32) = (Duration::from_secs(1), 20);

/// The repositories found by a walk.
#[derive(Debug)]
pub(super) struct FoundRepositories {
    folders: Vec<String>,
    until: Instant,
}

/// The files and folders of the workspace that git's settings name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitNames {
    /// Files and folders, as paths from the root, except paths below protected names.
    #[serde(skip)]
    pub(super) places: BTreeSet<String>,
    /// The command lines in the settings.
    texts: CommandTexts,
    /// The folders in which git runs these command lines.
    tops: Vec<String>,
}

impl GitNames {
    /// Returns a function that reports whether a command line in git's settings names a file.
    pub(super) fn contain(&self) -> impl Fn(&str) -> bool {
        let mentions = self.texts.mentions();
        move |path| {
            let (folder, name) = split(path);
            let is_top = folder.is_empty() || self.tops.iter().any(|top| top == folder);
            mentions(name, split(folder).1, is_top)
        }
    }

    /// The escaped paths of those files of a walk that command lines in git's settings name.
    pub(super) fn among<'a>(&'a self, walk: &'a Walk) -> impl Iterator<Item = String> + 'a {
        let contain = self.contain();
        let files = walk.files().filter(move |file| contain(file.path));
        files.map(|file| escaped(file.path.as_bytes()))
    }
}

/// Finds the nearest folder on a path that git treats as a repository, or would after a write to the path. Returns how
/// many of the path's `names` lead to it. `exists(n, name)` reports whether the folder at the first `n` names contains
/// an entry. Like git's own search, the search ends at a folder that contains a `.git`.
pub(crate) fn repository_around(
    names: &[&str],
    exists: impl Fn(usize, &str) -> bool,
) -> Option<usize> {
    for (n, name) in names.iter().enumerate().rev() {
        let written = folded(name);
        let is_written =
            |part: &str| FileName::new(part).is_some_and(|part| part.matches(&written));
        if is_repository(|part| is_written(part) || exists(n, part)) {
            return Some(n);
        }
        if exists(n, GIT) {
            return None;
        }
    }
    None
}

/// The failure for a path that only the user may write, because `place` configures git.
pub(super) fn configures_git(path: &RelPath, place: &str) -> Failure {
    Failure::rejected(format!(
        "Path is protected: '{path}'. '{place}' configures git, or would after this change, as .git does: ask the user in a MESSAGE to make this change, with its text"
    ))
}

impl Overlay<'_> {
    /// Refuses to write a path that configures git or would do so after the write.
    pub(super) fn refuse_git_configuration(
        &self,
        path: &RelPath,
        location: &PathLocation,
    ) -> Result<(), Failure> {
        match self.git_configuration_at(location) {
            None => Ok(()),
            Some(place) => Err(configures_git(path, if place.is_empty() { "." } else { &place })),
        }
    }

    /// The repository, or the file or folder named by git's settings, that a write to a location would affect. The
    /// location is this place, contains it, or is in it.
    pub(super) fn git_configuration_at(&self, location: &PathLocation) -> Option<String> {
        let workspace = self.workspace;
        if !workspace.protects_git {
            return None;
        }
        let names: Vec<&str> = location.real.components().collect();
        let exists = |n: usize, name: &str| {
            let cover = self.cover(|| [&names[..n], &[name]].concat().join("/"));
            let found = || location.folders.get(n)?.as_ref()?.symlink_metadata(name).ok();
            match cover {
                Some(Cover::Gone) => false,
                Some(Cover::File | Cover::Folder) => true,
                // A folder named HEAD does not make its parent a repository.
                None => found().is_some_and(|found| name != "HEAD" || !found.is_dir()),
            }
        };
        if let Some(n) = repository_around(&names, exists) {
            return Some(names[..n].join("/"));
        }
        let tops = (0..names.len()).filter(|n| exists(*n, GIT)).map(|n| names[..n].join("/"));
        let git = workspace.git_references(tops.chain(workspace.repositories()));
        let written: Vec<String> = names.iter().map(|name| folded(name)).collect();
        let place = git.places.iter().find(|place| {
            let place: Vec<String> = place.split('/').map(folded).collect();
            place.starts_with(&written) || written.starts_with(&place)
        });
        let is_folder = location.found.as_ref().is_some_and(locate::LocatedEntry::is_folder);
        let itself =
            || Some(location.real.to_string()).filter(|path| !is_folder && git.contain()(path));
        place.cloned().or_else(itself)
    }
}

impl Workspace {
    /// Whether git's settings name one of these files.
    pub(super) fn git_names_any(&self, mut paths: impl Iterator<Item = String>) -> bool {
        let named = self.git_references(self.repositories().into_iter());
        let contain = named.contain();
        paths.any(|path| contain(&path))
    }

    /// The folders of the repositories in the workspace, as text. Uses the results of a recent walk, if there is one.
    fn repositories(&self) -> Vec<String> {
        let known = || {
            let found = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
            let found = found.as_ref().filter(|found| Instant::now() < found.until)?;
            Some(found.folders.clone())
        };
        // If the walk fails, no repositories are known.
        known().or_else(|| self.walk().ok().and_then(|_| known())).unwrap_or_default()
    }

    /// Notes the repositories that a walk found.
    pub(super) fn note_repositories(&self, walk: &Walk, took: Duration) {
        let until = Instant::now() + VALIDITY.0.max(took * VALIDITY.1);
        let folders = walk.git_folders().map(shown).collect();
        let found = Some(FoundRepositories { folders, until });
        *self.repositories.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The files and folders of the workspace that git's settings name: the settings of the person, of the repository
    /// around the workspace, and of the repositories in these folders (`tops`).
    pub(super) fn git_references(&self, tops: impl Iterator<Item = String>) -> GitNames {
        if !self.protects_git {
            return GitNames::default();
        }
        let mut tops: Vec<String> = tops.collect();
        tops.sort_by_cached_key(|top| (top.matches('/').count(), top.clone()));
        tops.dedup();
        tops.truncate(REPOSITORIES);
        let mut all: Vec<PathBuf> = tops.iter().map(|top| self.path.join(top)).collect();
        let around = self.path.ancestors().find(|above| above.join(GIT).exists());
        all.extend(around.map(Path::to_owned).filter(|around| !all.contains(around)));
        let named = git_references(&all);
        // Links in these paths count, too, because replacing one changes which file git finds.
        let places = named.places.iter().flat_map(|path| {
            let (links, real) = follow(path);
            links.into_iter().map(|link| link.at).chain([real])
        });
        let places = places
            .filter_map(|path| Some(path.strip_prefix(&self.path).ok()?.to_str()?.to_owned()))
            .filter(|path| !path.is_empty() && !self.is_below_one(path))
            .collect();
        GitNames { places, texts: named.texts, tops }
    }
}
