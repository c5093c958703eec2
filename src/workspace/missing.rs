//! Errors for missing files and folders, with a suggestion for the intended path. Only names that a reply may list are
//! suggested, and only a limited number of names is searched.

use std::collections::VecDeque;

use super::locate::{FinalLink, not_found, nothing_found};
use super::names::split;
use super::overlay::Overlay;
use crate::protocol::{Failure, RelPath};

/// The most names that are searched.
const SEARCHED_NAMES: usize = 2_000;

/// The kind of entry that is needed at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    File,
    Folder,
    /// A file or a folder.
    Any,
}

impl Needed {
    fn accepts(self, is_folder: bool) -> bool {
        match self {
            Self::File => !is_folder,
            Self::Folder => is_folder,
            Self::Any => true,
        }
    }
}

impl Overlay<'_> {
    /// The error for a missing file at `path`.
    pub(super) fn missing(&self, path: &RelPath) -> Failure {
        self.suggest(path, Needed::File, not_found(path))
    }

    /// The error for a missing path at which either a folder or a file would have been accepted.
    pub(super) fn nothing_at(&self, path: &RelPath) -> Failure {
        self.suggest(path, Needed::Any, nothing_found(path))
    }

    fn suggest(&self, path: &RelPath, needed: Needed, failure: Failure) -> Failure {
        match self.guess(path, needed) {
            Some(meant) => failure.suggesting(format!("did you mean '{meant}'?")),
            None => failure,
        }
    }

    /// The entry that a path probably means: the end of the path, an entry in another folder with the same name, or an
    /// entry in the same folder with a similar name.
    pub(super) fn guess(&self, path: &RelPath, needed: Needed) -> Option<RelPath> {
        let is_there = |path: &RelPath| {
            let location = self.resolve(path, FinalLink::Follow).ok();
            let found = location.and_then(|location| location.found);
            found.is_some_and(|found| needed.accepts(found.is_folder()))
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
        let mut left = SEARCHED_NAMES;
        // Search the path's own folder first, because it can be deep.
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
                if may_be && needed.accepts(entry.is_dir) {
                    found.push(full.clone());
                }
                // Skip hidden folders, which belong to tools, and the folder that was searched first.
                if entry.is_dir && !name.starts_with('.') && own != full.as_str() {
                    folders.push_back(full.to_string());
                }
            }
        }
        found.extend(self.created_near(own));
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
        // Different names with the same extension are often similar, so only small edit distances count.
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

    /// The files created in the overlay, and paths with the same names in this folder.
    fn created_near(&self, folder: &str) -> Vec<RelPath> {
        let is_seen = |path: &RelPath| {
            let above = split(path.as_str()).0;
            folder == above || !above.split('/').any(|part| part.starts_with('.'))
        };
        let beside = |path: &RelPath| RelPath::parse(&format!("{folder}/{}", path.name())).ok();
        let made = self.created_files();
        made.flat_map(|path| [is_seen(path).then(|| path.clone()), beside(path)])
            .flatten()
            .collect()
    }
}
