//! The folder that a session's commands have for themselves (their HOME and `/tmp`): removed when
//! the session is over, whatever commands have put there.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::Base;
use crate::session::{Session, is_id};

impl Base {
    /// The folder that the commands of a session have for themselves.
    pub(super) fn own_folder(&self, session: &Session) -> PathBuf {
        self.config.sessions.join(&session.id)
    }

    /// Removes what commands of a session that is over have left for themselves. What cannot be
    /// removed is in nobody's way, and tried again at the next start.
    pub(super) fn forget(&self, session: &Session) {
        let _ = remove(&self.own_folder(session));
    }

    /// The same for all sessions that are over or gone.
    pub(super) fn forget_all(&self) {
        let Ok(entries) = fs::read_dir(&self.config.sessions) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(id) = name.to_str().filter(|name| is_id(name)) else { continue };
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let gone = !self.config.sessions.join(format!("{id}.json")).exists();
            if is_folder && (gone || self.store.load(id).is_ok_and(|s| s.is_complete)) {
                let _ = remove(&entry.path());
            }
        }
    }
}

/// Removes a folder that commands could fill as they liked: however deep, whatever its rights. Links
/// are removed, never followed. Each folder in it is first moved to its top, so that this needs
/// neither a stack nor paths of their depth.
fn remove(folder: &Path) -> io::Result<()> {
    let top = match Dir::open_ambient_dir(folder, ambient_authority()) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let mut moved = 0_u64;
    empty(&top, &top, &mut moved)?;
    while let Some(entry) = top.entries()?.next() {
        let name = entry?.file_name();
        take_rights(&top, &name)?;
        empty(&top.open_dir_nofollow(&name)?, &top, &mut moved)?;
        top.remove_dir(&name)?;
    }
    fs::remove_dir(folder)
}

/// Removes all files of a folder, and moves its folders to the top.
fn empty(folder: &Dir, top: &Dir, moved: &mut u64) -> io::Result<()> {
    let entries: Vec<_> = folder.entries()?.collect::<io::Result<_>>()?;
    for entry in entries {
        let name = entry.file_name();
        if !entry.file_type()?.is_dir() {
            folder.remove_file(&name)?;
            continue;
        }
        take_rights(folder, &name)?;
        *moved += 1;
        folder.rename(&name, top, format!("{}-{moved}", uuid::Uuid::new_v4().simple()))?;
    }
    Ok(())
}

/// Takes back the rights on a folder that a command took away.
#[cfg(unix)]
fn take_rights(parent: &Dir, name: &OsStr) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt};
    parent.set_permissions(name, Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn take_rights(_: &Dir, _: &OsStr) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn whatever_commands_left_goes_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let (own, kept) = (base.path().join("own"), base.path().join("kept"));
        fs::create_dir_all(own.join("a/b/c")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, own.join("a/link")).unwrap();
        for folder in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(own.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let mut deep = Dir::open_ambient_dir(&own, ambient_authority()).unwrap();
        for _ in 0..3000 {
            deep.create_dir("d").unwrap();
            deep = deep.open_dir("d").unwrap();
        }
        remove(&own).unwrap();
        assert!(!own.exists());
        assert!(kept.join("file").exists());
        remove(&own).unwrap();
    }
}
