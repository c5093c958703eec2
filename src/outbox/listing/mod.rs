//! `## Workspace Files`: every file with its size; of many files a tree with counts, in full where
//! the work is. Never longer than the room it is given.

mod near;
mod spelled;
mod tree;

use crate::protocol::Dialect;
use crate::text::{byte_count, grouped, visible_line};
use crate::workspace::picture::{Picture, Row};
use crate::workspace::walk::EntryKind;

pub(super) use near::near;
pub use near::newest;
use spelled::{ignored, products};
use tree::Tree;

/// So many rows are listed one by one; of more a tree is given, of as many lines.
const LIMIT: usize = 400;
/// So many folders are named that cannot be read, beside the last two: of a guest these may be words
/// on all others.
const UNREADABLE: usize = 20;
/// What stands where there is no room for anything.
const NOT_LISTED: &str = "  (not listed)\n";

/// Renders a listing of at most `room` bytes, or [`NOT_LISTED`] where that is less. Of more than
/// [`LIMIT`] rows, or where they do not fit, folders stand for what is in them, and those nearest to
/// the `touched` paths are listed in full.
pub(super) fn render(
    picture: &Picture<'_>,
    dialect: Dialect,
    touched: &[&str],
    room: usize,
    out: &mut String,
) {
    let closing = closing(picture);
    if picture.is_empty() {
        let empty = if picture.ignored().files == 0 && picture.ignored().is_whole {
            "(empty workspace)\n"
        } else {
            ""
        };
        return match [empty, &closing].concat() {
            text if text.len() <= room => out.push_str(&text),
            _ => out.push_str(if empty.len() <= room && !empty.is_empty() {
                empty
            } else {
                NOT_LISTED
            }),
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
            out.push_str(&text);
            out.push_str(&closing);
            return;
        }
    }
    let mut tree = Tree::new(picture);
    let hint = hint(dialect);
    let wanted = [[hint.as_str(), &closing].concat(), hint.clone(), String::new()];
    match wanted.iter().find(|end| tree.bytes() + end.len() <= room) {
        Some(end) => {
            tree.grow(touched, room - end.len(), LIMIT);
            tree.write(out);
            out.push_str(end);
        }
        None => out.push_str(NOT_LISTED),
    }
}

/// One row, as a line.
fn line(row: Row<'_>) -> String {
    match row {
        Row::Product(product) => {
            format!("  {} ({})\n", visible_line(product.folder), products(product.count))
        }
        Row::File(file) => {
            let path = visible_line(file.path);
            match file.kind {
                EntryKind::File => format!("  {path} ({})\n", byte_count(file.size)),
                EntryKind::Link => format!("  {path} (link)\n"),
                EntryKind::Other => format!("  {path} (not a regular file)\n"),
            }
        }
    }
}

/// How what is not listed can be seen.
fn hint(dialect: Dialect) -> String {
    let how = match dialect {
        Dialect::Tags => "[LIST_FILES path=\"FOLDER\"]",
        Dialect::Operations => "a shell operation with ls or find",
    };
    format!("  … folders with a count are not listed in full; {how} lists one\n")
}

/// What is told after the files.
fn closing(picture: &Picture<'_>) -> String {
    let mut text = String::new();
    if let Some(told) = ignored(picture.ignored()) {
        text.push_str(&format!("  … and {told} not listed\n"));
    }
    let folders = picture.unreadable();
    let cannot = |folder: &String| format!("  {} (cannot be read)\n", visible_line(folder));
    if folders.len() <= UNREADABLE + 2 {
        folders.iter().for_each(|folder| text.push_str(&cannot(folder)));
        return text;
    }
    let (first, rest) = folders.split_at(UNREADABLE);
    let (between, last) = rest.split_at(rest.len() - 2);
    first.iter().for_each(|folder| text.push_str(&cannot(folder)));
    let n = grouped(between.len() as u64);
    text.push_str(&format!("  … and {n} more (cannot be read)\n"));
    last.iter().for_each(|folder| text.push_str(&cannot(folder)));
    text
}

#[cfg(test)]
mod tests;
