//! What one folder holds, as somebody sees it who looks into it: nothing is ignored, links are what
//! they are, and of deaddrop's own files none is named.

use std::ffi::{OsStr, OsString};
use std::io;

use cap_std::fs::{DirEntry, Metadata};

use super::Workspace;
use super::locate::failed;
use super::names::escaped;
use crate::protocol::{Failure, FailureKind, RelPath};

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, whatever its bytes.
    pub name: OsString,
    /// Whether it is a folder itself, and no link to one.
    pub is_dir: bool,
    /// Its size in bytes, of a link its own; 0 for folders.
    pub size: u64,
}

impl Workspace {
    /// The entries of the folder that `path` names, or of the root, sorted by the bytes of their
    /// names. Links on the way are followed within the workspace.
    pub fn list(&self, path: Option<&RelPath>) -> Result<Vec<Entry>, Failure> {
        self.list_up_to(path, usize::MAX)
    }

    /// The same of `limit` entries at most, whichever the disk gives first.
    pub(super) fn list_up_to(
        &self,
        path: Option<&RelPath>,
        limit: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let fail = |e: io::Error| match path {
            Some(path) => failed("list", path, &e),
            None => Failure::new(FailureKind::Execution, format!("Cannot list the root: {e}")),
        };
        let (folder, inside) = match path {
            Some(path) => self.open_folder(path)?,
            None => (self.root.try_clone().map_err(fail)?, Vec::new()),
        };
        let above = inside.join("/");
        let mut entries = Vec::new();
        for entry in folder.entries().map_err(fail)?.take(limit) {
            let entry = entry.map_err(fail)?;
            if let Some(entry) = self.entry(&above, &entry).map_err(fail)? {
                entries.push(entry);
            }
        }
        entries.sort_unstable_by(|a, b| a.name.as_encoded_bytes().cmp(b.name.as_encoded_bytes()));
        Ok(entries)
    }

    /// What an entry of the folder `above` is; None where it is deaddrop's own, or gone meanwhile.
    fn entry(&self, above: &str, entry: &DirEntry) -> io::Result<Option<Entry>> {
        let name = entry.file_name();
        let found = match entry.metadata() {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            // What is mounted there may not answer, and has its name all the same.
            Err(_) => {
                let is_dir = entry.file_type()?.is_dir();
                return Ok(Some(Entry { name, is_dir, size: 0 }));
            }
        };
        if self.is_own(above, &name, &found) {
            return Ok(None);
        }
        let is_dir = found.is_dir();
        Ok(Some(Entry { name, is_dir, size: if is_dir { 0 } else { found.len() } }))
    }

    /// Whether an entry of the folder `above` is deaddrop's own.
    pub(super) fn is_own(&self, above: &str, name: &OsStr, found: &Metadata) -> bool {
        match name.to_str() {
            Some(name) if above.is_empty() => self.is_state(&escaped(name.as_bytes()), found),
            Some(name) if !self.state.is_empty() => {
                self.is_state(&escaped(format!("{above}/{name}").as_bytes()), found)
            }
            // What no reply could spell is known by its number.
            _ => self.is_state("", found),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        fs::create_dir_all(root.join("sub/state")).unwrap();
        fs::create_dir_all(root.join("state")).unwrap();
        fs::write(root.join("state/secret"), "x").unwrap();
        fs::write(root.join("sub/file"), "text\n").unwrap();
        symlink("deep", root.join("sub/link")).unwrap();
        symlink("nowhere at all", root.join("sub/broken")).unwrap();
        symlink("..", root.join("sub/up")).unwrap();
        symlink("state", root.join("own")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("sub/fifo"), 0o600.into()).unwrap();
        let state = [root.join("state"), root.join("later"), root.join("sub/journal")];
        let workspace = Workspace::open(&root, &state, &[]).unwrap();
        fs::write(root.join("later"), "made after it was opened").unwrap();
        fs::write(root.join("sub/journal"), "so was this").unwrap();
        (folder, workspace)
    }

    fn names(listed: &[Entry]) -> Vec<&str> {
        listed.iter().map(|entry| entry.name.to_str().unwrap()).collect()
    }

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    #[test]
    fn entries_are_sorted_and_links_are_not_followed() {
        let (_folder, workspace) = workspace();
        let listed = workspace.list(Some(&path("sub"))).unwrap();
        let entry = |name: &str, is_dir, size| Entry { name: name.into(), is_dir, size };
        assert_eq!(
            listed,
            [
                entry("broken", false, "nowhere at all".len() as u64),
                entry("deep", true, 0),
                entry("fifo", false, 0),
                entry("file", false, 5),
                entry("link", false, "deep".len() as u64),
                entry("state", true, 0),
                entry("up", false, 2),
            ]
        );
        assert_eq!(workspace.list(Some(&path("sub/link"))).unwrap(), []);
    }

    #[test]
    fn deaddrops_own_state_is_never_listed() {
        let (_folder, workspace) = workspace();
        assert_eq!(names(&workspace.list(None).unwrap()), ["out", "own", "sub"]);
        assert_eq!(names(&workspace.list(Some(&path("sub/up"))).unwrap()), ["out", "own", "sub"]);
        for own in ["state", "own", "sub/up/state"] {
            let failure = workspace.list(Some(&path(own))).unwrap_err();
            assert!(failure.reason.contains("deaddrop's own state"), "{own}: {failure:?}");
        }
    }

    #[test]
    fn deaddrops_own_state_is_known_by_its_path_whatever_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let (state, other) = (root.join("a%b/state"), root.join("a%b/other"));
        let workspace = Workspace::open(root, &[state], &[]).unwrap();
        fs::create_dir_all(&other).unwrap();
        let found = cap_std::fs::Metadata::from_just_metadata(fs::metadata(other).unwrap());
        assert!(workspace.is_own("a%b", "state".as_ref(), &found));
        assert!(workspace.is_state("a%25b/state", &found));
        assert!(!workspace.is_own("a%25b", "state".as_ref(), &found));
        assert!(!workspace.is_own("a%b", "other".as_ref(), &found));
    }

    #[test]
    fn what_is_no_folder_here_is_told_with_its_path() {
        let (_folder, workspace) = workspace();
        for (at, why) in [
            ("nowhere", "No folder 'nowhere'"),
            ("nowhere/deep", "No folder 'nowhere/deep'"),
            ("sub/broken", "No folder 'sub/broken'"),
            ("sub/file", "'sub/file' is not a folder"),
            ("sub/fifo", "'sub/fifo' is not a folder"),
            ("sub/file/x", "'sub/file/x' cannot be there"),
            ("out", "outside workspace: 'out'"),
        ] {
            let failure = workspace.list(Some(&path(at))).unwrap_err();
            assert!(failure.reason.contains(why), "{at}: {failure:?}");
        }
    }

    #[test]
    fn names_are_sorted_by_their_bytes_and_need_be_no_text() {
        let (folder, workspace) = workspace();
        let all = folder.path().join("root/all");
        fs::create_dir(&all).unwrap();
        for name in [&b"b"[..], b"B", b"a", b"\xc3\xa9", b"\xff", b".hidden"] {
            fs::write(all.join(OsString::from_vec(name.to_vec())), "").unwrap();
        }
        let listed = workspace.list(Some(&path("all"))).unwrap();
        let names: Vec<&[u8]> = listed.iter().map(|e| e.name.as_encoded_bytes()).collect();
        assert_eq!(names, [&b".hidden"[..], b"B", b"a", b"b", b"\xc3\xa9", b"\xff"]);
    }
}
