//! What git obeys outside of `.git`: a folder that looks like a repository, whose settings and hooks count for
//! whoever runs git in it, and what git's settings name. Who may not write `.git` may not write these either.

use std::path::PathBuf;

use super::Workspace;
use super::locate::{Last, Way};
use super::overlay::{Cover, Overlay};
use crate::config::{Name, folded, is_repository, named_by_git};
use crate::links::follow;
use crate::protocol::{Failure, RelPath};

const GIT: &str = ".git";

/// How many of these names, which lead to something that is written or moved, lead to the nearest folder that git
/// takes for a repository or would then; `stands` says what is in the folder that the first of them lead to.
/// Git looks no further up than to a folder with a `.git`.
pub(crate) fn repository_around(
    names: &[&str],
    stands: impl Fn(usize, &str) -> bool,
) -> Option<usize> {
    for (n, name) in names.iter().enumerate().rev() {
        let written = folded(name);
        let is_written = |part: &str| Name::new(part).is_some_and(|part| part.is(&written));
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

impl Workspace {
    /// Refuses to write what git obeys, or would obey with it.
    pub(super) fn refuse_obeyed(
        &self,
        path: &RelPath,
        way: &Way,
        overlay: Option<&Overlay>,
    ) -> Result<(), Failure> {
        match self.obeyed_at(way, overlay) {
            None => Ok(()),
            Some((place, _)) => Err(obeyed(path, if place.is_empty() { "." } else { &place })),
        }
    }

    /// Whether git obeys what stands there, or would obey it then.
    pub(super) fn is_obeyed(&self, way: &Way, overlay: Option<&Overlay>) -> bool {
        self.obeyed_at(way, overlay).is_some()
    }

    /// Whether only the person may write at a real path.
    pub(super) fn is_kept(&self, real: &RelPath) -> bool {
        let is_obeyed =
            || self.way(real, Last::Keep, None).is_ok_and(|way| self.is_obeyed(&way, None));
        self.protected.name_in(real).is_some() || is_obeyed()
    }

    /// How many names of a real path lead to the folder in which git, or a setting of git's, makes the next one
    /// the person's.
    pub(super) fn obeyed_around(&self, real: &RelPath) -> Option<usize> {
        let way = self.way(real, Last::Keep, None).ok()?;
        let (place, is_named) = self.obeyed_at(&way, None)?;
        let names = place.split('/').filter(|name| !name.is_empty()).count();
        Some(names.saturating_sub(usize::from(is_named)))
    }

    /// The repository, or the file or folder that git's settings name, that is or holds what is at the end of a
    /// way, or lies in it; and whether it is such a file or folder.
    fn obeyed_at(&self, way: &Way, overlay: Option<&Overlay>) -> Option<(String, bool)> {
        if !self.git_obeys {
            return None;
        }
        let names: Vec<&str> = way.real.components().collect();
        let stands = |n: usize, name: &str| {
            let cover = overlay
                .and_then(|overlay| overlay.cover(&[&names[..n], &[name]].concat().join("/")));
            let found = || way.folders.get(n)?.as_ref()?.symlink_metadata(name).ok();
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
        let trees = (0..names.len()).filter(|n| stands(*n, GIT)).map(|n| names[..n].join("/"));
        let written: Vec<String> = names.iter().map(|name| folded(name)).collect();
        let place = self.named_by_git(trees).into_iter().find(|place| {
            let place: Vec<String> = place.split('/').map(folded).collect();
            place.starts_with(&written) || written.starts_with(&place)
        });
        Some((place?, true))
    }

    /// What git's settings name in the workspace, relative to it, without what lies below protected names: those of
    /// the person, those of the repository around the workspace, and of those whose files are in these folders.
    pub(super) fn named_by_git(&self, trees: impl Iterator<Item = String>) -> Vec<String> {
        if !self.git_obeys {
            return Vec::new();
        }
        let mut trees: Vec<PathBuf> = trees.map(|tree| self.path.join(tree)).collect();
        trees.extend(self.path.ancestors().find(|above| above.join(GIT).exists()).map(Into::into));
        let named = named_by_git(&trees).0;
        // Who replaces a link on the way decides what is found there.
        let named = named.iter().flat_map(|path| {
            let (links, real) = follow(path);
            links.into_iter().map(|link| link.at).chain([real])
        });
        let mut named: Vec<String> = named
            .filter_map(|path| Some(path.strip_prefix(&self.path).ok()?.to_str()?.to_owned()))
            .filter(|path| !path.is_empty() && !self.is_below_one(path))
            .collect();
        named.sort_unstable();
        named.dedup();
        named
    }
}
