//! The files of a plain agent's guest, listed folder by folder, those nearest to the root first, and
//! within bounds: links are not told from folders, so there may be a circle, and each folder costs a
//! question. What is left out is named; ignored folders and build products are not counted.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Guest;
use super::files::{content, entry, list};
use crate::error::Result;
use crate::protocol::jsonrpc::FileEntry;
use crate::protocol::{Detail, RelPath, Warning, WarningKind};
use crate::text::{count, visible_line};
use crate::workspace::products::is_named_product;
use crate::workspace::walk::ignoring::{self, Budget, Rules};
use crate::workspace::walk::{Count, EntryKind, LeftOut, Walk};
use crate::workspace::{lines_of, nothing_found};

/// How far is looked.
pub(super) struct Bounds {
    pub(super) folders: usize,
    pub(super) entries: usize,
    /// How many folders deep.
    pub(super) depth: usize,
    /// So long: a folder costs a way there and back.
    pub(super) time: Duration,
}

const BOUNDS: Bounds =
    Bounds { folders: 2_000, entries: 100_000, depth: 64, time: Duration::from_secs(30) };

/// So many folders are named that were not looked into.
const NAMED: usize = 10;

/// Which files are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// All, whatever the rules say.
    All,
    /// Those that no rules leave out, and nothing of git's own.
    NotIgnored,
}

/// A folder still to be listed.
struct Job {
    /// Its path with a `/` at the end; empty for the root.
    prefix: String,
    depth: usize,
    rules: Option<Arc<Rules>>,
}

/// The files below a folder, whatever rules say, or the line of one file; with what could not be
/// listed.
pub(super) fn listed(guest: &Guest, path: Option<&RelPath>) -> Result<(Detail, Vec<Warning>)> {
    let folder = path.map_or("", RelPath::as_str);
    let first = list(guest, folder)?.ok();
    if let Some(path) = path
        && first.is_none()
    {
        let Some(found) = entry(guest, path)?.filter(|found| !found.is_dir) else {
            return Ok((nothing_found(path).into(), Vec::new()));
        };
        let one = Walk::of([(path.as_str(), found.size)]);
        let shown = lines_of(&one, 0);
        return Ok((Detail::Listed { path: Some(path.clone()), files: 1, shown }, Vec::new()));
    }
    let first = Cell::new(Some(first));
    let list = |folder: &str| match first.take() {
        Some(found) => Ok(found),
        None => Ok(list(guest, folder)?.ok()),
    };
    let walk = within(&BOUNDS, folder, Which::All, list, |_| Ok(None))?;
    let above = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let (files, shown) = (walk.files().len(), lines_of(&walk, above));
    let told = |folder: &String| format!("not listed: {}", visible_line(folder));
    let mut told: Vec<String> = walk.unreadable().iter().map(told).collect();
    let left_out = walk.left_out();
    if !left_out.is_empty() {
        let named = left_out.iter().take(NAMED).map(|one| visible_line(&one.folder));
        let more =
            (left_out.len() > NAMED).then(|| format!("{} more", left_out.len() - NAMED).into());
        told.push(format!(
            "not looked into, since each folder costs a question to this guest: {}; LIST_FILES such a folder by itself",
            named.chain(more).collect::<Vec<_>>().join(", ")
        ));
    }
    let warnings = told.into_iter().map(|told| Warning::new(WarningKind::Search, told)).collect();
    Ok((Detail::Listed { path: path.cloned(), files, shown }, warnings))
}

/// Lists the files.
pub(in super::super) fn walk(guest: &Guest) -> Result<Walk> {
    within(
        &BOUNDS,
        "",
        Which::NotIgnored,
        |folder| Ok(list(guest, folder)?.ok()),
        |path| Ok(content(guest, path)?.ok()),
    )
}

/// The same below a folder, of whoever `list`s folders and `read`s files.
pub(super) fn within(
    bounds: &Bounds,
    folder: &str,
    which: Which,
    list: impl Fn(&str) -> Result<Option<Vec<FileEntry>>>,
    read: impl Fn(&str) -> Result<Option<String>>,
) -> Result<Walk> {
    let (begun, budget) = (Instant::now(), Budget::new());
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    let (mut ignored_files, mut ignored) = (Count::NONE, Vec::new());
    let (mut folders, mut entries) = (0, 0);
    let mut left_out: (usize, Option<String>) = (0, None);
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let mut queue = VecDeque::from([Job { prefix, depth: 0, rules: None }]);
    while let Some(Job { prefix, depth, rules }) = queue.pop_front() {
        let is_beyond = folders >= bounds.folders
            || entries >= bounds.entries
            || depth > bounds.depth
            || begun.elapsed() > bounds.time;
        if is_beyond {
            left_out = (left_out.0 + 1, left_out.1.or(Some(prefix)));
            continue;
        }
        folders += 1;
        let folder = prefix.trim_end_matches('/');
        let Some(mut found) = list(folder)? else {
            unreadable.push(if folder.is_empty() { ".".to_owned() } else { prefix });
            continue;
        };
        let room = bounds.entries - entries;
        if found.len() > room {
            unreadable.push(format!(
                "{}, in part: {} more",
                if prefix.is_empty() { "." } else { &prefix },
                found.len() - room
            ));
            found.truncate(room);
        }
        entries += found.len();
        let names = found.iter().map(|entry| entry.name.as_bytes());
        // A guest that goes away has not said that there are no rules.
        let gone = Cell::new(None);
        let own = ignoring::here(&prefix, rules.as_ref(), names, &budget, |name| {
            match read(&format!("{prefix}{}", String::from_utf8_lossy(name))) {
                Ok(text) => Ok(text.ok_or(io::ErrorKind::NotFound)?.into_bytes()),
                Err(error) => {
                    gone.set(Some(error));
                    Err(io::ErrorKind::NotConnected.into())
                }
            }
        });
        if let Some(error) = gone.into_inner() {
            return Err(error);
        }
        let rules = own.or(rules);
        for FileEntry { name, is_dir, size } in found {
            if which == Which::NotIgnored && matches!(&*name, ".git" | ".gitkeep") {
                continue;
            }
            let is_ignored =
                rules.as_ref().is_some_and(|rules| rules.ignores(&prefix, &name, is_dir));
            let path = format!("{prefix}{name}");
            if is_dir && (is_ignored || is_named_product(&name) || name == ".git") {
                // Each folder in it would cost a question.
                ignored.push(LeftOut { folder: path + "/", count: Count::UNKNOWN });
            } else if is_ignored {
                ignored_files.file(size);
            } else if is_dir {
                let rules = rules.clone();
                queue.push_back(Job { prefix: path + "/", depth: depth + 1, rules });
            } else {
                files.push((path, size, EntryKind::File));
            }
        }
    }
    if let (n, Some(first)) = left_out {
        unreadable.push(format!(
            "{first} and all further folders, {} in all: more than is listed of such a guest",
            count(n, "folder")
        ));
    }
    Ok(Walk::told(files, unreadable).leaving_out(ignored_files, ignored))
}
