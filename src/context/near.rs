//! The files near the work of a session: files in the newest results, and files that the person named.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::protocol::{Detail, Failure, Outcome, RelPath};
use crate::session::Session;
use crate::workspace::overview::Overview;

/// The most paths from the newest results that count as near the work.
const NEWEST: usize = 100;
/// The most words of the task that are examined, and the most files that a word without a folder may name.
const WORDS: usize = 2_000;
const BY_NAME: usize = 20;
/// Characters that may be part of a file's name, and may also surround it in a text.
const RARE: [char; 6] = ['+', '@', '$', '#', '~', '%'];

/// The paths in the newest results, last ones first.
pub fn newest(session: &Session) -> Vec<&str> {
    let paths = session.last_results.iter().rev().filter_map(|outcome| match &outcome.detail {
        Detail::Created { path, .. }
        | Detail::Edited { path, .. }
        | Detail::Replaced { path, .. }
        | Detail::Deleted { path }
        | Detail::ReadLater { path, .. }
        | Detail::Moved { to: path, .. }
        | Detail::Read { path, .. } => Some(path.as_str()),
        _ => None,
    });
    paths.take(NEWEST).collect()
}

/// The paths that the person's words in a session name, in full or by file name.
pub fn named_by_person<'a>(session: &'a Session, overview: &Overview<'a>) -> Vec<&'a str> {
    let texts = std::iter::once(&session.task).chain(&session.said);
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    for word in texts.flat_map(|text| words(text)).take(WORDS).filter(|word| word.len() > 1) {
        if overview.find(word).is_some() || !overview.below(&format!("{word}/")).is_empty() {
            found.push(word);
        } else if word.contains('.') && !word.contains('/') {
            names.insert(word);
        }
    }
    if !names.is_empty() {
        let of_name = |path: &&str| names.contains(path.rsplit('/').next().unwrap_or(path));
        found.extend(overview.files().map(|file| file.path).filter(of_name).take(BY_NAME));
    }
    found
}

/// A path near the work, or a folder above it.
#[derive(Debug, Clone, Copy)]
pub struct NearPlace {
    /// The rank of the first path near the work that this is or contains, from 1; 0 for the root.
    pub rank: usize,
    /// How many levels this is above the nearest of these paths.
    pub distance: usize,
}

/// These paths themselves, and the existing folders above them.
pub fn near_places(overview: &Overview<'_>, near: &[&str]) -> HashMap<String, NearPlace> {
    let distance = if near.is_empty() { 0 } else { usize::MAX };
    let mut near_places = HashMap::from([(String::new(), NearPlace { rank: 0, distance })]);
    for (path, rank) in near.iter().zip(1..) {
        let whole = format!("{path}/");
        let folders = memchr::memchr_iter(b'/', whole.as_bytes()).map(|slash| &whole[..=slash]);
        let folders = folders.take_while(|folder| !overview.below(folder).is_empty());
        let folders: Vec<&str> = std::iter::once("").chain(folders).collect();
        for (distance, folder) in folders.into_iter().rev().enumerate() {
            let way = near_places.entry(folder.to_owned()).or_insert(NearPlace { rank, distance });
            way.distance = way.distance.min(distance);
        }
        near_places.entry((*path).to_owned()).or_insert(NearPlace { rank, distance: 0 });
    }
    near_places
}

/// The files whose lines the newest results show. Redacting these lines needs the whole files.
pub fn files_with_lines(session: &Session) -> BTreeSet<RelPath> {
    let paths = session.last_results.iter().flat_map(|outcome| match &outcome.detail {
        Detail::Found { hits, .. } => {
            hits.iter().filter_map(|hit| RelPath::parse(&hit.path).ok()).collect()
        }
        detail => Vec::from_iter(excerpt_path(detail).cloned()),
    });
    paths.collect()
}

/// The file of an outcome's excerpt, if the outcome has one.
pub fn excerpt_path(detail: &Detail) -> Option<&RelPath> {
    detail.excerpt()?;
    match detail {
        Detail::Failed(Failure { real_path: Some(path), .. }) => Some(path),
        detail => Some(detail.shown_of()?.0),
    }
}

/// Whether the newest outbox shows file contents or command output, which may contain the values of secret files.
pub fn shows_contents(session: &Session) -> bool {
    let shows = |outcome: &Outcome| match &outcome.detail {
        Detail::Ran(_) | Detail::Read { .. } | Detail::ReadLater { .. } | Detail::Found { .. } => {
            true
        }
        Detail::Failed(failure) => failure.real_path.is_some() || !failure.excerpt.is_empty(),
        detail => detail.excerpt().is_some(),
    };
    session.offer.is_some() && session.sequence == 1 || session.last_results.iter().any(shows)
}

/// The words of a text that may name files, without the characters around them.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| !(c.is_alphanumeric() || "_./-".contains(c) || RARE.contains(&c));
    let words = text.split(is_around).flat_map(|word| {
        // A word such as `@src/a.rs` may mean `src/a.rs`, too.
        let parts = word.split(RARE).filter(move |part| part.len() < word.len());
        std::iter::once(word).chain(parts)
    });
    // A dot at the beginning may be part of a name. A dot at the end is the end of a sentence.
    let words = words.map(|word| word.trim_end_matches(['.', '/', '-']));
    words.map(|word| word.strip_prefix("./").unwrap_or(word)).filter(|word| !word.is_empty())
}
