//! `## Workspace Files`: every file with its size; of many files a tree with counts, in full where
//! the work is. Never longer than the room it is given.

mod tree;

use std::collections::HashSet;

use crate::protocol::{Detail, Dialect};
use crate::session::Session;
use crate::text::{byte_count, grouped, grouped_byte_count, size, visible_line};
use crate::workspace::picture::{Picture, Row};
use crate::workspace::walk::{Count, EntryKind};
use tree::Tree;

/// So many rows are listed one by one; of more a tree is shown, of as many lines.
const LIMIT: usize = 400;
/// So many folders are named that cannot be read, and the last two: a guest may give words on all others
/// in their place.
const UNREADABLE: usize = 20;
/// How many paths of the newest results count as near, the last ones.
const NEWEST: usize = 100;
/// How many words of a task are looked at, and how many files they may name without their folders.
const WORDS: usize = 2_000;
const BY_NAME: usize = 20;
/// What is shown if there is no room for anything.
const NOT_LISTED: &str = "  (not listed)\n";

/// A listing of at most `room` bytes, or [`NOT_LISTED`] if that is less. If there are more than [`LIMIT`]
/// rows, or they do not fit, folders stand for what is in them, except for those nearest to the `touched`
/// paths.
pub(super) fn render(
    picture: &Picture<'_>,
    dialect: Dialect,
    touched: &[&str],
    room: usize,
) -> String {
    let closing = closing(picture);
    if picture.is_empty() {
        let is_empty = picture.ignored().files == 0 && picture.ignored().is_whole;
        let empty = if is_empty { "(empty workspace)\n" } else { "" };
        return match [empty, &closing].concat() {
            text if text.len() <= room => text,
            _ if is_empty && empty.len() <= room => empty.to_owned(),
            _ => NOT_LISTED.to_owned(),
        };
    }
    if picture.len() <= LIMIT {
        let mut text = String::new();
        for n in 0..picture.len() {
            text.push_str(&line(picture.row(n)));
            if text.len() > room {
                break;
            }
        }
        if text.len() + closing.len() <= room {
            return text + &closing;
        }
    }
    let mut tree = Tree::new(picture);
    let how = match dialect {
        Dialect::Tags => "[LIST_FILES path=\"FOLDER\"]",
        Dialect::Operations => "a shell operation with ls or find",
    };
    let hint = format!("  … folders with a count are not listed in full; {how} lists one\n");
    let ends = [[hint.as_str(), &closing].concat(), hint, String::new()];
    match ends.iter().find(|end| tree.bytes() + end.len() <= room) {
        Some(end) => {
            tree.grow(touched, (room - end.len(), LIMIT));
            tree.into_text() + end
        }
        None => NOT_LISTED.to_owned(),
    }
}

/// One row, as a line.
fn line(row: Row<'_>) -> String {
    let (path, what) = match row {
        Row::Product(product) => (product.folder, products(product.count)),
        Row::File(file) => (
            file.path,
            match file.kind {
                EntryKind::File => byte_count(file.size),
                EntryKind::Link => "link".to_owned(),
                EntryKind::Other => "not a regular file".to_owned(),
            },
        ),
    };
    format!("  {} ({what})\n", visible_line(path))
}

/// What is said after the files.
fn closing(picture: &Picture<'_>) -> String {
    let ignored = ignored(picture.ignored()).map(|what| format!("  … and {what} not listed\n"));
    let mut text = ignored.unwrap_or_default();
    let folders = picture.unreadable();
    let hidden = match folders.len() {
        all if all <= UNREADABLE + 2 => 0..0,
        all => UNREADABLE..all - 2,
    };
    for (n, folder) in folders.iter().enumerate() {
        if n == hidden.start && !hidden.is_empty() {
            let more = grouped(hidden.len() as u64);
            text.push_str(&format!("  … and {more} more (cannot be read)\n"));
        }
        if !hidden.contains(&n) {
            text.push_str(&format!("  {} (cannot be read)\n", visible_line(folder)));
        }
    }
    text
}

/// A folder of build products in words.
fn products(Count { files: n, bytes, is_whole }: Count) -> String {
    let files = if n == 1 { "1 file".to_owned() } else { format!("{} files", grouped(n)) };
    match (n, is_whole) {
        (0, false) => "build products, not counted".to_owned(),
        (_, true) => format!("build products: {files}, {}", size(bytes)),
        (_, false) => format!("build products: more than {files}, {}", size(bytes)),
    }
}

/// A folder that is not listed itself, in words: its files, of which `more` says that some are listed, and
/// build products in it.
fn folded(of: Count, built: Option<Count>, more: bool) -> String {
    let mut parts = Vec::new();
    let more = if more { "more " } else { "" };
    if of.files > 0 {
        let noun = if of.files == 1 { "file" } else { "files" };
        parts.push(format!("{} {more}{noun}, {}", grouped(of.files), grouped_byte_count(of.bytes)));
    }
    parts.extend(built.map(products));
    parts.join("; ")
}

/// What rules leave out, in words: `3 ignored files (12 bytes) are`. None if that is nothing.
fn ignored(Count { files: n, bytes, is_whole }: Count) -> Option<String> {
    let size = grouped_byte_count(bytes);
    Some(match (n, is_whole) {
        (0, true) => return None,
        (0, false) => "ignored folders, not counted, are".to_owned(),
        (1, true) => format!("1 ignored file ({size}) is"),
        (_, true) => format!("{} ignored files ({size}) are", grouped(n)),
        (_, false) => {
            format!("more than {} ignored files (more than {size}) are", grouped(n))
        }
    })
}

/// The paths of the newest results, the last ones if there are many.
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

/// The same with the paths that words of the task and of the person name, if not all is listed.
pub(super) fn near<'a>(session: &'a Session, picture: &Picture<'a>) -> Vec<&'a str> {
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
mod tests;
