//! What is said of a file, or a folder, that is not there: which one may have been meant. Only names that
//! anybody may list are told, and only so many are looked at.

use std::collections::VecDeque;

use super::locate::{FinalLink, not_found, nothing_found};
use super::names::split;
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

impl Overlay<'_> {
    /// The failure of something that needs a file at `path`, where none is.
    pub(super) fn missing(&self, path: &RelPath) -> Failure {
        self.suggest(path, Needed::File, not_found(path))
    }

    /// The same of something that needs a folder there, and takes a file.
    pub(super) fn nothing_at(&self, path: &RelPath) -> Failure {
        self.suggest(path, Needed::Any, nothing_found(path))
    }

    fn suggest(&self, path: &RelPath, needed: Needed, failure: Failure) -> Failure {
        match self.meant(path, needed) {
            Some(meant) => failure.suggesting(format!("did you mean '{meant}'?")),
            None => failure,
        }
    }

    /// The folder that was meant by a path where none is, most likely.
    pub(super) fn meant_folder(&self, path: &RelPath) -> Option<RelPath> {
        self.meant(path, Needed::Folder)
    }

    /// The file that was meant by a path, most likely: the end of it, another with its name, one
    /// that is spelled nearly so in its folder.
    fn meant(&self, path: &RelPath, needed: Needed) -> Option<RelPath> {
        let is_there = |path: &RelPath| {
            let way = self.way(path, FinalLink::Follow).ok();
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
        let own = split(path.as_str()).0;
        let mut left = LOOKED_AT;
        // Its own folder first, which may lie deep.
        let mut folders = VecDeque::from([own.to_owned()]);
        folders.extend((!own.is_empty()).then(String::new));
        while let Some(folder) = folders.pop_front().filter(|_| left > 0) {
            let place = RelPath::parse(&folder).ok();
            for entry in self.workspace.list_up_to(place.as_ref(), left).unwrap_or_default() {
                left = left.saturating_sub(1);
                let Some(name) = entry.name.to_str() else { continue };
                let prefix = place.as_ref().map_or(String::new(), |place| format!("{place}/"));
                let Ok(full) = RelPath::parse(&format!("{prefix}{name}")) else { continue };
                let may_be = folder == own || name.eq_ignore_ascii_case(path.name());
                if may_be && needed.is_met_by(entry.is_dir) {
                    found.push(full.clone());
                }
                // What a tool keeps for itself is not meant, nor what was looked at first.
                if entry.is_dir && !name.starts_with('.') && own != full.as_str() {
                    folders.push_back(full.to_string());
                }
            }
        }
        found.extend(self.made_near(own));
        found.sort();
        found.dedup();
        found.retain(is_there);
        let is_same = |other: &RelPath| other.name().eq_ignore_ascii_case(path.name());
        let (same, near): (Vec<RelPath>, Vec<RelPath>) = found.into_iter().partition(is_same);
        match same.as_slice() {
            [one] => return Some(one.clone()),
            [] => {}
            several => {
                let is_it = |other: &&RelPath| other.as_str().eq_ignore_ascii_case(path.as_str());
                return several.iter().find(is_it).cloned();
            }
        }
        // Names of one ending and another stem are often alike.
        let name = path.name();
        let most = (name.chars().count() / 3).min(2);
        let distance = |other: &&RelPath| strsim::damerau_levenshtein(other.name(), name);
        let is_close = |other: &&RelPath| {
            split(other.as_str()).0 == own
                && other.name().chars().next() == name.chars().next()
                && distance(other) <= most
        };
        near.iter().filter(is_close).min_by_key(distance).cloned()
    }

    /// The files that were made in it, also as they may stand in this folder.
    fn made_near(&self, folder: &str) -> Vec<RelPath> {
        let is_seen = |path: &RelPath| {
            let above = split(path.as_str()).0;
            folder == above || !above.split('/').any(|part| part.starts_with('.'))
        };
        let beside = |path: &RelPath| RelPath::parse(&format!("{folder}/{}", path.name())).ok();
        let made = self.made_files();
        made.flat_map(|path| [is_seen(path).then(|| path.clone()), beside(path)])
            .flatten()
            .collect()
    }
}
