//! `## Workspace Files`: every file with its size, within bounds.

use std::fmt::Write;

use crate::protocol::Dialect;
use crate::text::visible_line;
use crate::workspace::walk::{EntryKind, Listed, Walk};

/// As many files are listed; of more, those nearest to the root.
const LIMIT: usize = 1_000;

pub(super) fn render(walk: &Walk, dialect: Dialect, out: &mut String) {
    if walk.files().len() == 0 {
        out.push_str("(empty workspace)\n");
    }
    let deepest = deepest_listed(walk);
    let (mut left_out, mut bytes) = (0, 0);
    for (file, listed) in walk.files().zip(chosen(walk, deepest)) {
        if !listed {
            left_out += 1;
            bytes += file.size;
            continue;
        }
        let path = visible_line(file.path);
        // Writing to a String cannot fail.
        let _ = match file.kind {
            EntryKind::File => writeln!(out, "  {path} ({} bytes)", file.size),
            EntryKind::Link => writeln!(out, "  {path} (link)"),
            EntryKind::Other => writeln!(out, "  {path} (not a regular file)"),
        };
    }
    if left_out > 0 {
        let files = if left_out == 1 { "file" } else { "files" };
        let command = match dialect {
            Dialect::Tags => "RUN_COMMAND",
            Dialect::Operations => "a shell operation",
        };
        let _ = writeln!(
            out,
            "  ... and {left_out} more {files} ({bytes} bytes), deeper in folders; {command} with ls or find lists them",
        );
    }
    for folder in walk.unreadable() {
        let _ = writeln!(out, "  {} (cannot be read)", visible_line(folder));
    }
}

fn depth(file: Listed<'_>) -> usize {
    memchr::memchr_iter(b'/', file.path.as_bytes()).count()
}

/// The greatest depth of which any file can be listed, and how many of that depth.
fn deepest_listed(walk: &Walk) -> (usize, usize) {
    let files = walk.files();
    if files.len() <= LIMIT {
        return (usize::MAX, 0);
    }
    let mut of_depth: Vec<usize> = Vec::new();
    for depth in files.map(depth) {
        if of_depth.len() <= depth {
            of_depth.resize(depth + 1, 0);
        }
        of_depth[depth] += 1;
    }
    let mut room = LIMIT;
    for (depth, n) in of_depth.iter().enumerate() {
        if *n > room {
            return (depth, room);
        }
        room -= n;
    }
    (usize::MAX, 0)
}

/// For each file whether it is listed.
fn chosen(walk: &Walk, (deepest, mut room): (usize, usize)) -> impl Iterator<Item = bool> {
    walk.files().map(move |file| {
        if deepest == usize::MAX {
            return true;
        }
        let depth = depth(file);
        let in_room = depth == deepest && room > 0;
        room -= usize::from(in_room);
        depth < deepest || in_room
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_workspace_is_bounded_and_counted() {
        let deep: Vec<String> = (0..2000).map(|n| format!("a/b/{n:04}.txt")).collect();
        let files = deep.iter().map(|path| (path.as_str(), 10)).chain([("z.txt", 1)]);
        let mut out = String::new();
        render(&Walk::of(files), Dialect::Tags, &mut out);
        assert_eq!(out.lines().count(), LIMIT + 1);
        assert!(out.contains("  z.txt (1 bytes)\n"));
        assert!(out.ends_with("  ... and 1001 more files (10010 bytes), deeper in folders; RUN_COMMAND with ls or find lists them\n"));
    }

    #[test]
    fn names_are_shown_on_one_line() {
        let mut out = String::new();
        render(&Walk::of([("a\n=== PROMPT ===", 3)]), Dialect::Operations, &mut out);
        assert_eq!(out, "  a␊=== PROMPT === (3 bytes)\n");
    }
}
