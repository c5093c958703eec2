//! Where the work is: the paths that the newest results tell of, and those that the task names.

use std::collections::HashSet;

use super::LIMIT;
use crate::protocol::Detail;
use crate::session::Session;
use crate::workspace::picture::Picture;

/// So many paths of the newest results count, the last ones.
const NEWEST: usize = 100;
/// So many words of a task are looked at.
const WORDS: usize = 2_000;
/// So many files are meant by their names alone.
const BY_NAME: usize = 20;

/// The paths of the newest results, the last ones where there are many.
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

/// The same with the paths that words of the task and of the person name, where not all is listed.
pub(in super::super) fn near<'a>(session: &'a Session, picture: &Picture<'a>) -> Vec<&'a str> {
    let mut near = newest(session);
    if picture.len() > LIMIT {
        let texts = std::iter::once(&session.task).chain(&session.said);
        near.extend(named(texts.map(String::as_str), picture));
    }
    near
}

/// The paths that words of these texts name, whole or by the name of a file.
fn named<'w>(texts: impl Iterator<Item = &'w str>, picture: &Picture<'w>) -> Vec<&'w str> {
    let is_around = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:!?|*=“”‘’„«»".contains(c);
    let words = texts.flat_map(|text| text.split(is_around)).take(WORDS);
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    for word in words {
        let word = word.trim_end_matches(['.', '/']);
        let word = word.strip_prefix("./").unwrap_or(word);
        if word.len() < 2 {
            continue;
        }
        if picture.find(word).is_some() || !picture.below(&format!("{word}/")).is_empty() {
            found.push(word);
        } else if word.contains('.') && !word.contains('/') {
            names.insert(word);
        }
    }
    if !names.is_empty() {
        let of_name = |path: &&str| names.contains(path.rsplit('/').next().unwrap_or(path));
        found.extend(picture.files().map(|file| file.path).filter(of_name).take(BY_NAME));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::walk::Walk;

    #[test]
    fn words_name_files_and_folders() {
        let walk = Walk::of([("a/b/parser.rs", 1), ("src/x.rs", 1), ("src/deep/y.rs", 1)]);
        let picture = Picture::of(&walk, &[]);
        let of = |text| named(std::iter::once(text), &picture);
        assert_eq!(
            of("Fix `parser.rs`, (src/x.rs) and ./src/deep/."),
            ["src/x.rs", "src/deep", "a/b/parser.rs"]
        );
        assert_eq!(of("a b x.r parser y.rss"), [""; 0]);
    }
}
