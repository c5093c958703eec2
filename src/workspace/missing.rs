//! What is said of a file, or a folder, that is not there: which one may have been meant. Only names that
//! anybody may list are told, and only so many are looked at.

use std::collections::VecDeque;

use super::Workspace;
use super::locate::{Last, not_found, nothing_found};
use super::overlay::Overlay;
use crate::protocol::{Failure, RelPath};

/// As many names are looked at.
const LOOKED_AT: usize = 2_000;

/// What is needed at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    File,
    Folder,
    /// Either.
    Any,
}

impl Needed {
    fn is_met_by(self, is_folder: bool) -> bool {
        match self {
            Self::File => !is_folder,
            Self::Folder => is_folder,
            Self::Any => true,
        }
    }
}

impl Workspace {
    /// The failure of something that needs a file at `path`, where none is.
    pub(super) fn missing(&self, path: &RelPath) -> Failure {
        self.missing_through(path, Needed::File, None)
    }

    /// The same of something that needs a folder there, and takes a file.
    pub(super) fn nothing_at(&self, path: &RelPath, overlay: Option<&Overlay>) -> Failure {
        self.missing_through(path, Needed::Any, overlay)
    }

    fn missing_through(
        &self,
        path: &RelPath,
        needed: Needed,
        overlay: Option<&Overlay>,
    ) -> Failure {
        let mut failure = match needed {
            Needed::File => not_found(path),
            Needed::Folder | Needed::Any => nothing_found(path),
        };
        if let Some(meant) = self.meant(path, needed, overlay) {
            failure = failure.suggesting(format!("did you mean '{meant}'?"));
        }
        failure
    }

    /// The folder that was meant by a path where none is, most likely.
    pub(super) fn meant_folder(&self, path: &RelPath) -> Option<RelPath> {
        self.meant(path, Needed::Folder, None)
    }

    /// The file that was meant by a path, most likely: the end of it, another with its name, one
    /// that is spelled nearly so in its folder.
    fn meant(&self, path: &RelPath, needed: Needed, overlay: Option<&Overlay>) -> Option<RelPath> {
        let is_there = |path: &RelPath| {
            let way = self.way(path, Last::Follow, overlay).ok();
            let found = way.and_then(|way| way.found);
            found.is_some_and(|found| needed.is_met_by(found.is_folder()))
        };
        let mut rest = path.as_str();
        while let Some((_, end)) = rest.split_once('/') {
            if let Some(end) = RelPath::parse(end).ok().filter(is_there) {
                return Some(end);
            }
            rest = end;
        }
        let mut found: Vec<RelPath> = Vec::new();
        let folder = path.as_str().rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut left = LOOKED_AT;
        let mut folders: VecDeque<Option<RelPath>> = VecDeque::from([None]);
        // Its own folder first, which may lie deep.
        folders.extend(RelPath::parse(folder).ok().map(Some));
        folders.make_contiguous().reverse();
        let own = folders.front().cloned().flatten();
        while let Some(folder) = folders.pop_front() {
            for entry in self.list_up_to(folder.as_ref(), left).unwrap_or_default() {
                left = left.saturating_sub(1);
                let Some(name) = entry.name.to_str() else { continue };
                let full = folder.as_ref().map_or(name.to_owned(), |f| format!("{f}/{name}"));
                let Ok(full) = RelPath::parse(&full) else { continue };
                let may_be = folder == own || name.eq_ignore_ascii_case(path.name());
                if may_be && needed.is_met_by(entry.is_dir) {
                    found.push(full.clone());
                }
                if entry.is_dir {
                    // What a tool keeps for itself is not meant, nor what was looked at first.
                    let skipped = name.starts_with('.') || own.as_ref() == Some(&full);
                    folders.extend((!skipped).then_some(Some(full)));
                }
            }
            if left == 0 {
                break;
            }
        }
        found.extend(overlay.into_iter().flat_map(|overlay| overlay.made_near(own.as_ref())));
        found.sort();
        found.dedup();
        found.retain(is_there);
        let is_same = |other: &RelPath| other.name().eq_ignore_ascii_case(path.name());
        let (same, near): (Vec<RelPath>, Vec<RelPath>) = found.into_iter().partition(is_same);
        let is_beside = |other: &&RelPath| {
            let folder = other.as_str().rsplit_once('/').map(|(folder, _)| folder);
            folder == own.as_ref().map(RelPath::as_str)
        };
        let near: Vec<&RelPath> = near.iter().filter(is_beside).collect();
        match same.as_slice() {
            [one] => return Some(one.clone()),
            [] => {}
            several => {
                let at = several
                    .iter()
                    .position(|other| other.as_str().eq_ignore_ascii_case(path.as_str()));
                return at.map(|at| several[at].clone());
            }
        }
        // Names of one ending and another stem are often alike.
        let is_close = |name: &str, most: usize| {
            strsim::damerau_levenshtein(name, path.name()) <= most
                && name.chars().next() == path.name().chars().next()
        };
        let nearest = crate::text::nearest(path.name(), near.iter().map(|other| other.name()));
        let swapped = || {
            // Short names that differ in the order of two letters share few that stand alike.
            let is_short = path.name().chars().count() < 3;
            let mut alike = near.iter().filter(|other| is_close(other.name(), 1));
            let one = alike.next().filter(|_| !is_short && alike.next().is_none());
            one.map(|other| other.name())
        };
        let name = nearest.filter(|name| is_close(name, 2)).or_else(swapped)?;
        near.iter().find(|other| other.name() == name).map(|other| (*other).clone())
    }
}

impl Overlay<'_> {
    /// The files that were made in it, also as they may stand in this folder.
    fn made_near(&self, folder: Option<&RelPath>) -> Vec<RelPath> {
        let is_seen = |path: &RelPath| {
            let above = path.as_str().rsplit_once('/').map_or("", |(above, _)| above);
            folder.is_some_and(|folder| folder.as_str() == above)
                || !above.split('/').any(|part| part.starts_with('.'))
        };
        let beside = |path: &RelPath| {
            let beside = folder.map(|folder| format!("{folder}/{}", path.name()));
            beside.and_then(|beside| RelPath::parse(&beside).ok())
        };
        let made = self.made_files();
        made.flat_map(|path| [is_seen(path).then(|| path.clone()), beside(path)])
            .flatten()
            .collect()
    }

    /// The same, where some changes were not made.
    pub(super) fn missing(&self, path: &RelPath) -> Failure {
        self.workspace.missing_through(path, Needed::File, Some(self))
    }
}
