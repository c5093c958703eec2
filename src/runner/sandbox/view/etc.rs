//! What of `/etc` is a secret: what not everybody may read, and what programs keep passwords in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use walkdir::WalkDir;

use super::credentials;

/// Far more than any system has there.
const MOST: usize = 50_000;

/// What of `/etc` commands are not to see although we could read it.
#[derive(Debug)]
pub(super) struct Etc {
    folder: PathBuf,
    /// The folders in it, and when something was made in, renamed into or removed from each.
    folders: Vec<(PathBuf, Stamp)>,
    secrets: Vec<PathBuf>,
}

/// Seconds and nanoseconds of the last change.
type Stamp = Option<(i64, i64)>;

impl Etc {
    /// Of the system's.
    pub(super) fn new() -> Self {
        Self::of("/etc".into())
    }

    fn of(folder: PathBuf) -> Self {
        let mut etc = Self { folder, folders: Vec::new(), secrets: Vec::new() };
        etc.walk();
        etc
    }

    /// The secrets as they are now. Only a folder that changed has a new one, so all files are looked
    /// at again only then: the folders alone are a tenth of them.
    pub(super) fn secrets(&mut self) -> &[PathBuf] {
        if self.folders.iter().any(|(folder, then)| stamp(folder) != *then) {
            self.walk();
        }
        &self.secrets
    }

    fn walk(&mut self) {
        self.folders = vec![(self.folder.clone(), stamp(&self.folder))];
        self.secrets.clear();
        let mut entries = WalkDir::new(&self.folder).min_depth(1).max_depth(8).into_iter();
        for _ in 0..MOST {
            let Some(entry) = entries.next() else { break };
            let Ok(entry) = entry else { continue };
            let is_folder = entry.file_type().is_dir();
            if !is_folder && !entry.file_type().is_file() {
                continue;
            }
            let path = entry.path();
            let named = credentials::is_credential_name(entry.file_name());
            if (named || !is_for_all(path)) && access(path, Access::READ_OK).is_ok() {
                self.secrets.push(path.to_path_buf());
                if is_folder {
                    entries.skip_current_dir();
                }
            } else if is_folder {
                // Before what is in it is read: what comes later changes it again.
                self.folders.push((path.to_path_buf(), stamp(path)));
            }
        }
    }
}

fn stamp(folder: &Path) -> Stamp {
    let found = fs::symlink_metadata(folder).ok()?;
    Some((found.ctime(), found.ctime_nsec()))
}

fn is_for_all(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_not_all_may_read_is_a_secret_and_so_are_passwords_also_later() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        file("passwd", 0o644);
        file("shadow", 0o640);
        file("tool/pip.conf", 0o644);
        file("private/key", 0o644);
        let private = folder.path().join("private");
        fs::set_permissions(&private, fs::Permissions::from_mode(0o710)).unwrap();
        let mut etc = Etc::of(folder.path().into());
        let mut found = |names: &[&str]| {
            let mut found = etc.secrets().to_vec();
            found.sort();
            let expected: Vec<_> = names.iter().map(|name| folder.path().join(name)).collect();
            assert_eq!(found, expected);
        };
        found(&["private", "shadow", "tool/pip.conf"]);
        file("tool/deeper/key", 0o600);
        found(&["private", "shadow", "tool/deeper/key", "tool/pip.conf"]);
        fs::remove_file(folder.path().join("shadow")).unwrap();
        found(&["private", "tool/deeper/key", "tool/pip.conf"]);
    }
}
