//! Changes of files and links as patches: in exactly git's format, so that `git apply -R` and `patch -R -p1` accept
//! them, and in a readable form for a person.

use similar::udiff::UnifiedHunkHeader;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::output::{green, red};
use super::rows::{BAR, pieces};
use crate::executor::{FileState, PreviewedChange};
use crate::terminal::Styled;
use crate::text::{count, visible, visible_line};
use crate::workspace::unescaped;

/// The number of unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// The number of bytes in which git searches for a NUL to recognise a binary file.
const BINARY_CHECK_LENGTH: usize = 8_000;

/// git's mode of an ordinary file.
const ORDINARY_MODE: &str = "100644";
/// git's abbreviated object IDs of an empty file and of a missing file.
const EMPTY_ID: &str = "e69de29";
const MISSING_ID: &str = "0000000";

/// A file or a link on one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// The contents of a file, or the target of a link.
    pub(super) bytes: Vec<u8>,
    pub(super) kind: GitKind,
}

/// The kinds of files that git distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitKind {
    File { executable: bool },
    Link,
}

impl Side {
    /// Returns None if the contents are not stored.
    pub(super) fn of(state: FileState, executable: bool) -> Option<Self> {
        match state {
            FileState::File(bytes) => Some(Self { bytes, kind: GitKind::File { executable } }),
            FileState::Link(target) => {
                Some(Self { bytes: unescaped(&target).into_encoded_bytes(), kind: GitKind::Link })
            }
            FileState::Large => None,
        }
    }
}

impl GitKind {
    /// git's mode for this kind.
    fn mode(self) -> &'static str {
        match self {
            Self::File { executable: false } => ORDINARY_MODE,
            Self::File { executable: true } => "100755",
            Self::Link => "120000",
        }
    }
}

/// Whether git treats these bytes as binary. Only a NUL counts.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_CHECK_LENGTH)].contains(&0)
}

/// The patch of a path (bytes relative to the root). None is a missing file. The patch is empty if git sees no change.
pub(super) fn patch(path: &[u8], before: Option<&Side>, after: Option<&Side>) -> Vec<u8> {
    match (before, after) {
        // If a file becomes a link, or a link a file, git writes two patches.
        (Some(old), Some(new)) if (old.kind == GitKind::Link) != (new.kind == GitKind::Link) => {
            [entry_patch(path, before, None), entry_patch(path, None, after)].concat()
        }
        _ => entry_patch(path, before, after),
    }
}

fn entry_patch(path: &[u8], before: Option<&Side>, after: Option<&Side>) -> Vec<u8> {
    if before == after {
        return Vec::new();
    }
    let head = |side: &str| {
        let name = quoted_name(side, path);
        // In this line, `patch` accepts names with spaces only in quotes.
        if name.starts_with(b"\"") || !name.contains(&b' ') {
            name
        } else {
            [b"\"", &*name, b"\""].concat()
        }
    };
    let mut out = [b"diff --git ", &*head("a"), b" ", &*head("b"), b"\n"].concat();
    let modes = match (before.map(|side| side.kind.mode()), after.map(|side| side.kind.mode())) {
        (None, Some(new)) => format!("new file mode {new}\n"),
        (Some(old), None) if old == ORDINARY_MODE => format!("deleted file mode {old}\n"),
        // Without the second line, some versions of git (such as 2.47) restore an ordinary file.
        (Some(old), None) => format!("deleted file mode {old}\nnew mode {old}\n"),
        // The contents do not show whether it is a link.
        (Some(old), Some(new)) if old != new || new == GitKind::Link.mode() => {
            format!("old mode {old}\nnew mode {new}\n")
        }
        _ => String::new(),
    };
    out.extend(modes.into_bytes());
    let (old, new) = (bytes(before), bytes(after));
    if old == new {
        // Without this line, `patch` does not undo the creation of an empty file.
        let id = |side: Option<&Side>| if side.is_some() { EMPTY_ID } else { MISSING_ID };
        if before.is_none() || after.is_none() {
            let index = format!("index {}..{}\n", id(before), id(after));
            out.extend(index.into_bytes());
        }
        return out;
    }
    let name = |side: &str, there: Option<&Side>| match there {
        Some(_) => quoted_name(side, path),
        None => b"/dev/null".to_vec(),
    };
    let (a, b) = (name("a", before), name("b", after));
    if is_binary(old) || is_binary(new) {
        out.extend([b"Binary files ", &*a, b" and ", &*b, b" differ\n"].concat());
        return out;
    }
    for (sign, name) in [("--- ", a), ("+++ ", b)] {
        // Without the tab, `patch` would end the name at its first space.
        let end: &[u8] = if name.contains(&b' ') { b"\t\n" } else { b"\n" };
        out.extend([sign.as_bytes(), &*name, end].concat());
    }
    out.extend(hunks(&lines(old), &lines(new)));
    out
}

fn bytes(side: Option<&Side>) -> &[u8] {
    side.map_or(&[], |side| &side.bytes)
}

/// The lines of a file, each with its line feed. Only a line feed ends a line.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// The hunks of a diff. `similar` itself treats a carriage return as a line end, and replaces bytes that are not UTF-8.
fn hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for ops in group_diff_ops(capture_diff_slices(Algorithm::Myers, old, new), CONTEXT_LINES) {
        out.extend(format!("{}\n", UnifiedHunkHeader::new(&ops)).into_bytes());
        for op in &ops {
            if let DiffOp::Equal { .. } = op {
                old[op.old_range()].iter().for_each(|line| push_line(&mut out, b' ', line));
                continue;
            }
            old[op.old_range()].iter().for_each(|line| push_line(&mut out, b'-', line));
            new[op.new_range()].iter().for_each(|line| push_line(&mut out, b'+', line));
        }
    }
    out
}

fn push_line(out: &mut Vec<u8>, sign: u8, line: &[u8]) {
    out.push(sign);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}

/// A name after the prefix of its side, quoted like in git.
fn quoted_name(side: &str, path: &[u8]) -> Vec<u8> {
    let name = [side.as_bytes(), b"/", path].concat();
    if name.iter().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte)) {
        return name;
    }
    let mut out = b"\"".to_vec();
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            _ => out.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    out.push(b'"');
    out
}

/// The change of a file, as printed by `--json`.
pub(super) fn to_json(file: &PreviewedChange) -> serde_json::Value {
    let change = match (&file.before, &file.after) {
        (None, _) => "created",
        (_, None) => "deleted",
        _ => "changed",
    };
    serde_json::json!({
        "path": file.path.as_str(), "change": change, "before": file.by_step, "diff": diff(file),
    })
}

/// The change that a reply would make to a file, as a patch for a person.
pub(super) fn diff(file: &PreviewedChange) -> String {
    let states = [&file.before, &file.after];
    if states.into_iter().any(|state| matches!(state, Some(FileState::Large))) {
        let path = visible_line(file.path.as_str());
        return format!("--- a/{path}\n+++ b/{path}\n(too large to show)\n");
    }
    let side = |state: &Option<FileState>| Side::of(state.clone()?, false);
    let [before, after] = states.map(side);
    let patch = patch(file.path.as_str().as_bytes(), before.as_ref(), after.as_ref());
    readable(&patch) + &sizes(before.as_ref(), after.as_ref())
}

/// The sizes of both sides, if one is binary. Then a patch shows nothing else.
pub(super) fn sizes(before: Option<&Side>, after: Option<&Side>) -> String {
    let size = |side: Option<&Side>| {
        side.map_or("nothing".to_owned(), |side| count(side.bytes.len(), "byte"))
    };
    if [before, after].into_iter().flatten().any(|side| is_binary(&side.bytes)) {
        format!("# {} -> {}\n", size(before), size(after))
    } else {
        String::new()
    }
}

/// A patch as text for a person: bytes that are not UTF-8 are shown like `<E9>`.
pub(super) fn readable(patch: &[u8]) -> String {
    let mut text = String::with_capacity(patch.len());
    for chunk in patch.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("<{byte:02X}>")));
    }
    text
}

/// A text with all characters visible, including carriage returns at the ends of lines.
fn visible_lines(text: &str) -> String {
    visible(&text.replace('\r', "␍")).into_owned()
}

/// A diff in rows of this width, each after the bar. Rows that continue a line begin with `…`.
pub(super) fn diff_rows(diff: &str, width: usize) -> Styled {
    let room = width - BAR.len() - 2;
    let mut rows = Styled::default();
    for line in visible_lines(diff).trim_end_matches('\n').split('\n') {
        for (n, piece) in pieces(line, room, false).into_iter().enumerate() {
            let piece = if n == 0 { piece } else { format!("…{piece}") };
            rows = rows + BAR + painted(line, &piece) + "\n";
        }
    }
    rows
}

/// A diff in colours, with all characters visible.
pub(super) fn coloured(diff: &str) -> Styled {
    let (shown, mut text) = (visible_lines(diff), Styled::default());
    for (n, line) in shown.trim_end().split('\n').enumerate() {
        text.push(if n == 0 { "" } else { "\n" });
        text.push(painted(line, line));
    }
    text
}

/// A part of a diff line, in the colour of the line.
fn painted(line: &str, part: &str) -> Styled {
    match line.as_bytes().first() {
        Some(b'+') => green(part),
        Some(b'-') => red(part),
        _ => part.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch_of(
        path: &str,
        before: Option<(&str, GitKind)>,
        after: Option<(&str, GitKind)>,
    ) -> String {
        let side = |(bytes, kind): (&str, GitKind)| Side { bytes: bytes.as_bytes().to_vec(), kind };
        let (before, after) = (before.map(side), after.map(side));
        String::from_utf8(patch(path.as_bytes(), before.as_ref(), after.as_ref())).unwrap()
    }

    const FILE: GitKind = GitKind::File { executable: false };
    const PROGRAM: GitKind = GitKind::File { executable: true };

    #[test]
    fn what_git_would_write_is_written() {
        assert_eq!(
            patch_of("a", Some(("1\r\n", FILE)), Some(("1\r\n\u{1b}2", PROGRAM))),
            "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 1\r\n+\u{1b}2\n\\ No newline at end of file\n"
        );
        assert_eq!(
            patch_of("a", None, Some(("", FILE))),
            "diff --git a/a b/a\nnew file mode 100644\nindex 0000000..e69de29\n"
        );
        assert_eq!(
            patch_of("x y", Some(("1\n", FILE)), None),
            "diff --git \"a/x y\" \"b/x y\"\ndeleted file mode 100644\n--- a/x y\t\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"
        );
        assert_eq!(
            patch_of("é\t\"", None, Some(("to", GitKind::Link))),
            "diff --git \"a/\\303\\251\\t\\\"\" \"b/\\303\\251\\t\\\"\"\nnew file mode 120000\n--- /dev/null\n+++ \"b/\\303\\251\\t\\\"\"\n@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n"
        );
        assert_eq!(
            patch_of("b", Some(("\0", FILE)), None),
            "diff --git a/b b/b\ndeleted file mode 100644\nBinary files a/b and /dev/null differ\n"
        );
        let kinds = patch_of("k", Some(("f\n", FILE)), Some(("to", GitKind::Link)));
        assert!(kinds.contains("deleted file mode 100644\n"), "{kinds}");
        assert!(kinds.contains("new file mode 120000\n"), "{kinds}");
        assert_eq!(patch_of("a", Some(("1", FILE)), Some(("1", FILE))), "");
    }
}
