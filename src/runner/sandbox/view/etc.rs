//! Finds the secrets in `/etc`: files that not everybody may read, and files in which programs store passwords.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use walkdir::WalkDir;

use super::credentials;

/// The most entries that are read. No system has nearly as many.
const MOST: usize = 50_000;

/// The files in `/etc` that this process can read but commands must not see.
#[derive(Debug)]
pub(super) struct Etc {
    folder: PathBuf,
    /// The folders in `/etc`, each with the time when an entry in it was last created, renamed or removed.
    folders: Vec<(PathBuf, Stamp)>,
    secrets: Vec<PathBuf>,
}

/// Seconds and nanoseconds of the last change.
type Stamp = Option<(i64, i64)>;

impl Etc {
    /// Scans `/etc`.
    pub(super) fn new() -> Self {
        Self::of("/etc".into())
    }

    fn of(folder: PathBuf) -> Self {
        let mut etc = Self { folder, folders: Vec::new(), secrets: Vec::new() };
        etc.walk();
        etc
    }

    /// The current secrets. Creating a secret changes its folder, so all files are scanned again only if a folder has
    /// changed. Only a tenth of the entries are folders.
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
                // Read the time before the folder's entries, so that later changes are noticed.
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
