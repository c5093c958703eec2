//! `## Workspace Files`: every file with its size, within bounds.

use std::fmt::Write;

use crate::protocol::Dialect;
use crate::text::{count, visible_line};
use crate::workspace::walk::{EntryKind, Listed, Walk};

/// As many files are listed; of more, those nearest to the root.
const LIMIT: usize = 1_000;

/// Lists the files in `room` bytes, but for the lines that count what is left out.
pub(super) fn render(walk: &Walk, dialect: Dialect, room: usize, out: &mut String) {
    if walk.files().len() == 0 {
        out.push_str("(empty workspace)\n");
    }
    let deepest = deepest_listed(walk);
    let (mut left_out, mut bytes) = (0, 0);
    let (mut unseen, begin) = (0, out.len());
    for (file, listed) in walk.files().zip(chosen(walk, deepest)) {
        if !listed {
            left_out += 1;
            bytes += file.size;
            continue;
        }
        let path = visible_line(file.path);
        // With its size, and what is around both.
        if unseen > 0 || out.len() - begin + path.len() + 30 > room {
            unseen += 1;
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match file.kind {
            EntryKind::File => writeln!(out, "  {path} ({} bytes)", file.size),
            EntryKind::Link => writeln!(out, "  {path} (link)"),
            EntryKind::Other => writeln!(out, "  {path} (not a regular file)"),
        };
    }
    if unseen > 0 {
        let files = if unseen == 1 { "file" } else { "files" };
        let _ = writeln!(out, "  … and {unseen} more {files}");
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
    for (n, folder) in walk.unreadable().iter().enumerate() {
        let folder = visible_line(folder);
        if out.len() - begin + folder.len() + 30 > room {
            let more = walk.unreadable().len() - n;
            let _ = writeln!(out, "  … and {} that cannot be read", count(more, "folder"));
            break;
        }
        let _ = writeln!(out, "  {folder} (cannot be read)");
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
        render(&Walk::of(files), Dialect::Tags, usize::MAX, &mut out);
        assert_eq!(out.lines().count(), LIMIT + 1);
        assert!(out.contains("  z.txt (1 bytes)\n"));
        assert!(out.ends_with("  ... and 1001 more files (10010 bytes), deeper in folders; RUN_COMMAND with ls or find lists them\n"));
    }

    #[test]
    fn lines_are_left_out_whole_where_there_is_no_room() {
        let files: Vec<String> = (0..10).map(|n| format!("file{n}")).collect();
        let walk = Walk::of(files.iter().map(|path| (path.as_str(), 1)));
        for room in 0..300 {
            let mut out = String::new();
            render(&walk, Dialect::Tags, room, &mut out);
            let listed = out.lines().filter(|line| line.starts_with("  file")).count();
            let rest = match 10 - listed {
                0 => String::new(),
                1 => "  … and 1 more file\n".to_owned(),
                n => format!("  … and {n} more files\n"),
            };
            assert!(out.ends_with(&rest) && out.len() - rest.len() <= room, "{room}: {out}");
        }
    }

    #[test]
    fn names_are_shown_on_one_line() {
        let mut out = String::new();
        render(&Walk::of([("a\n=== PROMPT ===", 3)]), Dialect::Operations, usize::MAX, &mut out);
        assert_eq!(out, "  a␊=== PROMPT === (3 bytes)\n");
    }
}
