//! Lists the files below a folder as lines, within limits. If there are too many, folders get one line each with their
//! counts. The folders nearest to the listed folder are expanded first. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::names::split;
use super::walk::{EntryKind, Listed, Walk};
use crate::text::{byte_count, count, visible_line};

/// The most lines that are shown.
const MAX_LINES: usize = 1_000;
/// The most bytes that are shown.
const MAX_BYTES: usize = 32 << 10;

impl Listed<'_> {
    pub(super) fn line(&self) -> String {
        let path = visible_line(self.path);
        match self.kind {
            EntryKind::File => format!("{path} ({})", byte_count(self.size)),
            EntryKind::Link => format!("{path} (link)"),
            EntryKind::Other => format!("{path} (not a regular file)"),
        }
    }
}

/// A line of the tree.
#[derive(Debug, Clone)]
enum Item {
    /// The file with this index.
    File(usize),
    /// The range of a folder's files, and the length of its path including the final `/`.
    Folder(Range<usize>, usize),
}

/// The lines for the files of a walk. `folder` is the length of the path of the folder that contains all of them,
/// including the final `/`.
pub fn lines_of(walk: &Walk, folder: usize) -> String {
    bounded(walk, folder, MAX_LINES, MAX_BYTES)
}

fn bounded(files: &Walk, folder: usize, mut lines: usize, mut bytes: usize) -> String {
    let (mut shown, mut queue) = (BTreeMap::new(), VecDeque::new());
    let mut rest = 0;
    // The listed folder has no line of its own. Show as many of its entries as fit, and one line for the rest.
    for item in children(files, 0..files.files().len(), folder) {
        let size = item.line(files).len() + 1;
        if rest > 0 || lines <= 1 || size > bytes {
            rest += item.range().len();
            continue;
        }
        (lines, bytes) = (lines - 1, bytes - size);
        queue.push_back(item.clone());
        shown.insert(item.range().start, item);
    }
    while let Some(item) = queue.pop_front() {
        let Item::Folder(range, prefix) = &item else { continue };
        if is_git_folder(files, range, *prefix) {
            continue;
        }
        // The lines of a folder's entries replace the folder's own line.
        let room = (lines + 1, bytes + item.line(files).len() + 1);
        let items = children(files, range.clone(), *prefix);
        let size = items.iter().map(|item| item.line(files).len() + 1).sum::<usize>();
        if items.len() >= room.0 || size > room.1 {
            continue;
        }
        (lines, bytes) = (room.0 - items.len(), room.1 - size);
        for item in items {
            queue.push_back(item.clone());
            shown.insert(item.range().start, item);
        }
    }
    let mut text: String = shown.values().map(|item| item.line(files) + "\n").collect();
    if rest > 0 {
        let place = files.files().next().and_then(|file| file.path.get(..folder));
        let place = match place.unwrap_or_default() {
            "" => "the workspace".to_owned(),
            folder => visible_line(folder).into_owned(),
        };
        text.push_str(&format!("… and {} below {place}\n", count(rest, "more file")));
    }
    text
}

/// The files and folders directly in a folder.
fn children(files: &Walk, range: Range<usize>, prefix: usize) -> Vec<Item> {
    let mut items = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let path = files.file(at).path;
        let Some(end) = path.get(prefix..).and_then(|rest| rest.find('/')) else {
            items.push(Item::File(at));
            at += 1;
            continue;
        };
        let below = prefix + end + 1;
        let folder = &path[..below];
        let end = files.first(at..range.end, |path| path.starts_with(folder));
        items.push(Item::Folder(at..end, below));
        at = end;
    }
    items
}

/// Whether a folder is a `.git` folder, which is expanded only if the request names it.
fn is_git_folder(files: &Walk, range: &Range<usize>, prefix: usize) -> bool {
    let path = files.file(range.start).path[..prefix].trim_end_matches('/');
    split(path).1.eq_ignore_ascii_case(".git")
}

impl Item {
    fn range(&self) -> Range<usize> {
        match self {
            Self::File(at) => *at..at + 1,
            Self::Folder(range, _) => range.clone(),
        }
    }

    fn line(&self, files: &Walk) -> String {
        match self {
            Self::File(at) => files.file(*at).line(),
            Self::Folder(range, prefix) => {
                let sum: u64 = range.clone().map(|n| files.file(n).size).sum();
                let path = visible_line(&files.file(range.start).path[..*prefix]);
                format!("{path} … {} ({})", count(range.len(), "file"), byte_count(sum))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> Walk {
        Walk::of(paths.iter().map(|path| (*path, 2)))
    }

    #[test]
    fn what_fits_is_named_in_full() {
        let listed = files(&["a/x", "a/b/y", "z", "a.txt", "a/\u{1b}["]);
        let all = "a.txt (2 bytes)\na/␛[ (2 bytes)\na/b/y (2 bytes)\na/x (2 bytes)\nz (2 bytes)\n";
        assert_eq!(bounded(&listed, 0, 10, 1000), all);
        assert_eq!(bounded(&files(&[]), 0, 10, 1000), "");
    }

    #[test]
    fn folders_that_do_not_fit_are_counted() {
        let vendor: Vec<String> = (0..500).map(|n| format!("s/vendor/{n:03}")).collect();
        let mut paths: Vec<&str> = vendor.iter().map(String::as_str).collect();
        paths.extend(["s/a", "s/b/c", ".git/HEAD", ".git/config"]);
        let shown = bounded(&files(&paths), 0, 20, 1000);
        let vendor = "s/vendor/ … 500 files (1000 bytes)\n";
        let all = ".git/ … 2 files (4 bytes)\ns/a (2 bytes)\ns/b/c (2 bytes)\n".to_owned() + vendor;
        assert_eq!(shown, all);
        let shown = bounded(&files(&paths[..500]), "s/vendor/".len(), 20, 1000);
        assert_eq!(shown.lines().count(), 20);
        assert!(shown.ends_with("s/vendor/018 (2 bytes)\n… and 481 more files below s/vendor/\n"));
        let git = bounded(&files(&[".git/HEAD", ".git/refs/x"]), ".git/".len(), 20, 1000);
        assert_eq!(git, ".git/HEAD (2 bytes)\n.git/refs/x (2 bytes)\n");
    }
}
