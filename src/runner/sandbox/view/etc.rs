//! What of `/etc` is a secret: what not everybody may read, and what programs keep passwords in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use walkdir::WalkDir;

/// Files that hold credentials although everybody may read them.
const NAMES: [&str; 6] = ["pip.conf", "npmrc", "netrc", ".netrc", "git-credentials", "krb5.keytab"];
/// Far more than any system has there.
const MOST: usize = 50_000;

/// What of `/etc` commands are not to see although we could read it.
pub(super) fn secrets() -> Vec<PathBuf> {
    secrets_in(Path::new("/etc"))
}

fn secrets_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries = WalkDir::new(folder).min_depth(1).max_depth(8).into_iter();
    for _ in 0..MOST {
        let Some(entry) = entries.next() else { break };
        let Ok(entry) = entry else { continue };
        let is_folder = entry.file_type().is_dir();
        if !is_folder && !entry.file_type().is_file() {
            continue;
        }
        let named = NAMES.iter().any(|name| entry.file_name() == *name);
        if (named || !is_for_all(entry.path())) && access(entry.path(), Access::READ_OK).is_ok() {
            found.push(entry.path().to_path_buf());
            if is_folder {
                entries.skip_current_dir();
            }
        }
    }
    found
}

fn is_for_all(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_not_all_may_read_is_a_secret_and_so_are_passwords() {
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
        let mut found = secrets_in(folder.path());
        found.sort();
        assert_eq!(
            found,
            ["private", "shadow", "tool/pip.conf"].map(|name| folder.path().join(name))
        );
    }
}
