//! Reads from git's index which files git tracks, without running git. If there is no index, or its format is unknown,
//! no files are reported.

use std::ffi::OsStr;
use std::io::Read;

use memchr::memchr;

use crate::workspace::names::escaped;
use crate::workspace::{Workspace, open_regular};

/// The size of the largest index that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// The most repositories whose indexes are read.
pub(in crate::workspace) const REPOSITORIES: usize = 16;
/// Files at a greater depth are skipped.
const MAX_DEPTH: usize = 200;

/// The index of the repository in a folder. The folder's path is escaped and ends in `/`, except for the root.
fn index(workspace: &Workspace, prefix: &str) -> Option<Vec<u8>> {
    let folder = workspace.folder_at(&format!("{prefix}.git")).ok()?;
    let file = open_regular(&folder, OsStr::new("index")).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_BYTES).then_some(bytes)
}

/// Visits the files and links that the repository in a folder tracks, by their escaped paths from the workspace's root.
/// The folder's path is escaped and ends in `/`, except for the root.
pub(in crate::workspace) fn files(
    workspace: &Workspace,
    prefix: &str,
    mut visit: impl FnMut(&str),
) {
    let Some(index) = index(workspace, prefix) else { return };
    let is_name =
        |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.eq_ignore_ascii_case(b".git");
    let is_path = |path: &[u8]| {
        let mut names = path.split(|byte| *byte == b'/');
        names.clone().count() <= MAX_DEPTH && names.all(is_name)
    };
    let mut found = Vec::new();
    let whole = each(&index, |path, mode| {
        if matches!(mode, 0o100_644 | 0o100_755 | 0o120_000) && is_path(path) {
            found.push(format!("{prefix}{}", escaped(path)));
        }
    });
    found.iter().filter(|_| whole.is_some()).for_each(|path| visit(path));
}

/// Visits the paths of an index, with the type of each path as in `st_mode`. None if the index may be incomplete.
fn each(index: &[u8], mut visit: impl FnMut(&[u8], u32)) -> Option<()> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..number(8)? {
        // An entry consists of ten 4-byte numbers, the object ID, 2 bytes of flags, and the path.
        let (mode, flags) = (number(at + 24)?, *index.get(at + 60)?);
        // If the object IDs are longer than 20 bytes, this is not a valid mode.
        if !matches!(mode, 0o100_644 | 0o100_755 | 0o120_000 | 0o160_000 | 0o040_000) {
            return None;
        }
        let is_extended = version > 2 && flags & 0x40 != 0;
        let mut begin = at + if is_extended { 64 } else { 62 };
        if version == 4 {
            let (dropped, after) = varint(index, begin)?;
            path.truncate(path.len().checked_sub(dropped)?);
            begin = after;
        } else {
            path.clear();
        }
        let end = begin + memchr(0, index.get(begin..)?)?;
        path.extend_from_slice(&index[begin..end]);
        visit(&path, mode);
        at = if version == 4 { end + 1 } else { at + ((end - at) / 8 + 1) * 8 };
    }
    // A split index (extension `link`) has more entries in another file.
    let mut rest = index.get(at..index.len().checked_sub(20)?)?;
    while let Some(head) = rest.get(..8) {
        if &head[..4] == b"link" {
            return None;
        }
        let length = u32::from_be_bytes(head[4..].try_into().ok()?) as usize;
        rest = rest.get(8 + length..)?;
    }
    Some(())
}

/// Decodes a variable-length number of index version 4. Returns the number and the position after it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
pub(in crate::workspace) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An index with these paths, in git's format.
    pub(in crate::workspace) fn written(
        version: u32,
        paths: &[&str],
        extension: [u8; 4],
    ) -> Vec<u8> {
        let mut index = b"DIRC".to_vec();
        index.extend(version.to_be_bytes());
        index.extend(u32::try_from(paths.len()).unwrap().to_be_bytes());
        let mut before = "";
        for path in paths {
            let begin = index.len();
            index.extend([0; 24]);
            index.extend(0o100_644_u32.to_be_bytes());
            index.extend([7; 32]);
            index.extend([0, u8::try_from(path.len()).unwrap()]);
            if version == 4 {
                let same = before.bytes().zip(path.bytes()).take_while(|(a, b)| a == b).count();
                index.push(u8::try_from(before.len() - same).unwrap());
                index.extend(&path.as_bytes()[same..]);
                index.push(0);
            } else {
                index.extend(path.as_bytes());
                let length = ((index.len() - begin) / 8 + 1) * 8;
                index.resize(begin + length, 0);
            }
            before = path;
        }
        index.extend(extension);
        index.extend([0, 0, 0, 2, 1, 1]);
        index.extend([9; 20]);
        index
    }

    /// The paths in an index. None if the index may be incomplete.
    fn paths(index: &[u8]) -> Option<Vec<String>> {
        let mut found = Vec::new();
        each(index, |path, _| found.push(String::from_utf8_lossy(path).into_owned()))?;
        Some(found)
    }

    #[test]
    fn an_index_tells_which_files_are_tracked() {
        let wanted = ["a/dist/x/target/b", "dist", "src/targets/x", "web/dist/a", "web/dist/b"];
        for version in 2..=4 {
            assert_eq!(paths(&written(version, &wanted, *b"TREE")).unwrap(), wanted, "{version}");
            assert_eq!(paths(&written(version, &wanted, *b"link")), None);
            assert_eq!(paths(&written(version, &[], *b"TREE")), Some(Vec::new()));
        }
        assert_eq!(paths(&written(5, &wanted, *b"TREE")), None);
        assert_eq!(paths(b"DIRC"), None);
    }

    #[test]
    fn an_index_with_longer_names_of_objects_is_not_read() {
        let mut index = written(2, &["dist/a", "dist/b"], *b"TREE");
        let first = 12 + 60;
        index.splice(first..first, [7; 12]);
        assert_eq!(paths(&index), None);
    }

    proptest! {
        #[test]
        fn whatever_stands_in_an_index_is_read_or_not(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            version in 2u32..5,
            at in 12usize..150,
        ) {
            let mut index = written(version, &["a/dist/b", "a/dist/c"], *b"TREE");
            let end = (at + bytes.len()).min(index.len());
            let begin = at.min(end);
            index.splice(begin..end, bytes);
            let _ = paths(&index);
        }
    }
}
