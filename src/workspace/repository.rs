//! What git obeys outside of `.git`: a folder that looks like a repository, whose settings and hooks count for
//! whoever runs git in it, and what git's settings name. Who may not write `.git` may not write these either.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Workspace;
use super::locate::{self, FinalLink, Location};
use super::names::{escaped, shown, split};
use super::overlay::{Cover, Overlay};
use super::walk::Walk;
use crate::links::follow;
use crate::protocol::{Failure, RelPath};
use crate::settings::{CommandTexts, FileName, folded, git_references, is_repository};

const GIT: &str = ".git";
/// The settings of so many repositories are read, of those nearest to the root.
const REPOSITORIES: usize = 1_000;
/// What a walk found counts for so long, and for so many times as long as the walk took.
const COUNTS: (Duration, u32) = (Duration::from_secs(1), 20);

/// The repositories that a walk found.
#[derive(Debug)]
pub(super) struct FoundRepositories {
    folders: Vec<String>,
    until: Instant,
}

/// What git's settings name in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitNames {
    /// Files and folders, as paths from the root, without what lies below protected names.
    #[serde(skip)]
    pub(super) places: Vec<String>,
    /// Command lines, and the folders that git runs them in.
    texts: CommandTexts,
    tops: Vec<String>,
}

impl GitNames {
    /// Whether a command line of git's names the file of this path.
    pub(super) fn name(&self, path: &str) -> bool {
        let (folder, name) = split(path);
        let is_top = folder.is_empty() || self.tops.iter().any(|top| top == folder);
        let folder = split(folder).1;
        !self.texts.is_empty() && self.texts.mentions(name, folder, is_top)
    }

    /// The files among those of a walk that command lines of git's name, escaped.
    pub(super) fn among<'a>(&'a self, walk: &'a Walk) -> impl Iterator<Item = String> + 'a {
        let may_mention = self.texts.may_mention();
        let files = walk
            .files()
            .filter(move |file| may_mention(split(file.path).1) && self.name(file.path));
        files.map(|file| escaped(file.path.as_bytes()))
    }
}

/// How many of these names, which lead to something that is written or moved, lead to the nearest folder that git
/// takes for a repository or would then; `stands` says what is in the folder that the first of them lead to.
/// Git looks no further up than to a folder with a `.git`.
pub(crate) fn repository_around(
    names: &[&str],
    stands: impl Fn(usize, &str) -> bool,
) -> Option<usize> {
    for (n, name) in names.iter().enumerate().rev() {
        let written = folded(name);
        let is_written =
            |part: &str| FileName::new(part).is_some_and(|part| part.matches(&written));
        if is_repository(|part| is_written(part) || stands(n, part)) {
            return Some(n);
        }
        if stands(n, GIT) {
            return None;
        }
    }
    None
}

/// The refusal of what is for the user because of git, at `place`.
pub(super) fn obeyed(path: &RelPath, place: &str) -> Failure {
    Failure::rejected(format!(
        "Path is protected: '{path}'. git obeys '{place}', or would then, as it does .git: ask the user in a MESSAGE to make this change, with its text"
    ))
}

impl Overlay<'_> {
    /// Refuses to write what git obeys, or would obey with it.
    pub(super) fn refuse_obeyed(&self, path: &RelPath, location: &Location) -> Result<(), Failure> {
        match self.obeyed_at(location) {
            None => Ok(()),
            Some((place, _)) => Err(obeyed(path, if place.is_empty() { "." } else { &place })),
        }
    }

    /// Whether git obeys what stands there, or would obey it then.
    pub(super) fn is_obeyed(&self, location: &Location) -> bool {
        self.obeyed_at(location).is_some()
    }

    /// The repository, or the file or folder that git's settings name, that is or holds what is at the end of a
    /// way, or lies in it; and whether it is such a file or folder.
    fn obeyed_at(&self, location: &Location) -> Option<(String, bool)> {
        let workspace = self.workspace;
        if !workspace.git_obeys {
            return None;
        }
        let names: Vec<&str> = location.real.components().collect();
        let stands = |n: usize, name: &str| {
            let cover = self.cover(|| [&names[..n], &[name]].concat().join("/"));
            let found = || location.folders.get(n)?.as_ref()?.symlink_metadata(name).ok();
            match cover {
                Some(Cover::Gone) => false,
                Some(Cover::File | Cover::Folder) => true,
                // A folder of that name is none.
                None => found().is_some_and(|found| name != "HEAD" || !found.is_dir()),
            }
        };
        if let Some(n) = repository_around(&names, stands) {
            return Some((names[..n].join("/"), false));
        }
        let tops = (0..names.len()).filter(|n| stands(*n, GIT)).map(|n| names[..n].join("/"));
        let git = workspace.git_references(tops.chain(workspace.repositories()));
        let written: Vec<String> = names.iter().map(|name| folded(name)).collect();
        let place = git.places.iter().find(|place| {
            let place: Vec<String> = place.split('/').map(folded).collect();
            place.starts_with(&written) || written.starts_with(&place)
        });
        let is_folder = location.found.as_ref().is_some_and(locate::LocatedEntry::is_folder);
        let itself = || Some(location.real.to_string()).filter(|path| !is_folder && git.name(path));
        Some((place.cloned().or_else(itself)?, true))
    }
}

impl Workspace {
    /// Whether only the person may write at a real path.
    pub(super) fn is_kept(&self, real: &RelPath) -> bool {
        self.protected.name_in(real).is_some() || self.obeyed_around(real).is_some()
    }

    /// How many names of a real path lead to the folder in which git, or a setting of git's, makes the next one
    /// the person's; and whether a setting does.
    pub(super) fn obeyed_around(&self, real: &RelPath) -> Option<(usize, bool)> {
        let overlay = self.as_is();
        let (place, is_named) = overlay.obeyed_at(&overlay.resolve(real, FinalLink::Keep).ok()?)?;
        let names = place.split('/').filter(|name| !name.is_empty()).count();
        Some((names.saturating_sub(usize::from(is_named)), is_named))
    }

    /// Whether git's settings name one of these files.
    pub(super) fn git_names_one(&self, mut paths: impl Iterator<Item = String>) -> bool {
        let named = self.git_references(self.repositories().into_iter());
        !named.texts.is_empty() && paths.any(|path| named.name(&path))
    }

    /// The folders of the repositories that a walk finds, as text. No operation walks where one has just
    /// done so.
    fn repositories(&self) -> Vec<String> {
        let known = || {
            let found = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
            let found = found.as_ref().filter(|found| Instant::now() < found.until)?;
            Some(found.folders.clone())
        };
        // Of a workspace that cannot be walked none is known.
        known().or_else(|| self.walk().ok().and_then(|_| known())).unwrap_or_default()
    }

    /// Notes the repositories that a walk found.
    pub(super) fn note_repositories(&self, walk: &Walk, took: Duration) {
        let until = Instant::now() + COUNTS.0.max(took * COUNTS.1);
        let folders = walk.obeyed().map(shown).collect();
        let found = Some(FoundRepositories { folders, until });
        *self.repositories.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// What git's settings name in the workspace: those of the person, those of the repository around the
    /// workspace, and those of the repositories in these folders.
    pub(super) fn git_references(&self, tops: impl Iterator<Item = String>) -> GitNames {
        if !self.git_obeys {
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
        // Who replaces a link on the way decides what is found there.
        let places = named.places.iter().flat_map(|path| {
            let (links, real) = follow(path);
            links.into_iter().map(|link| link.at).chain([real])
        });
        let mut places: Vec<String> = places
            .filter_map(|path| Some(path.strip_prefix(&self.path).ok()?.to_str()?.to_owned()))
            .filter(|path| !path.is_empty() && !self.is_below_one(path))
            .collect();
        places.sort_unstable();
        places.dedup();
        GitNames { places, texts: named.texts, tops }
    }
}
