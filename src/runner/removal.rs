//! Removes folders that commands could fill with anything: a million files, trees of any depth, folders without
//! permissions, links that lead outside.
//!
//! Removing can take a long time, so there are two steps: a folder is renamed at once, and removed later as time
//! allows. Each later call continues where the previous one stopped.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, Permissions, PermissionsExt};

/// The prefix of the names of folders that were put aside.
const ASIDE: &str = ".gone-";

/// Renames a folder within its parent, so that [`remove_aside`] finds it there.
///
/// # Errors
/// The folder cannot be renamed, or does not exist.
pub fn put_aside(folder: &Path) -> io::Result<()> {
    let name = format!("{ASIDE}{}", uuid::Uuid::new_v4().simple());
    std::fs::rename(folder, folder.with_file_name(name))
}

/// Removes the folders that were put aside in `place`. Calls `is_enough` before each entry, and stops if it returns
/// true. Returns whether it stopped early.
///
/// # Errors
/// `place` cannot be read. Entries that cannot be removed are skipped silently.
pub fn remove_aside(place: &Path, is_enough: &dyn Fn() -> bool) -> io::Result<bool> {
    let place = Dir::open_ambient_dir(place, ambient_authority())?;
    for entry in place.entries()? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(ASIDE) {
            match remove(&place, &name, is_enough) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
                // Continue with the other folders.
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Removes a folder of any depth, whatever its permissions. Links are removed, never followed. Fails with `Interrupted`
/// if `is_enough` returns true. Every step removes something, so a later call can continue.
///
/// Each nonempty folder inside is moved to the top of the tree, with a number as its name. So the removal needs neither
/// a stack nor paths as deep as the tree. The numbers are kept in memory, so that the top, which may have many entries,
/// is not read again for each folder.
fn remove(parent: &Dir, name: &OsStr, is_enough: &dyn Fn() -> bool) -> io::Result<()> {
    take_rights(parent, name)?;
    let top = parent.open_dir_nofollow(name)?;
    loop {
        let mark = format!("{}-", uuid::Uuid::new_v4().simple());
        let mut removal =
            FolderRemoval { top: &top, mark, moved: 0, waiting: Vec::new(), removed: 0, is_enough };
        removal.all()?;
        match parent.remove_dir(name) {
            // Some file systems omit entries from a listing while other entries are removed.
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && removal.removed > 0 => {}
            done => return done,
        }
    }
}

struct FolderRemoval<'a> {
    top: &'a Dir,
    /// The random prefix of the names of moved folders.
    mark: String,
    moved: u64,
    /// The numbers of the folders that were moved to the top and are not removed yet.
    waiting: Vec<u64>,
    removed: u64,
    is_enough: &'a dyn Fn() -> bool,
}

impl FolderRemoval<'_> {
    /// Removes everything in the top folder. Like the other methods, fails only if `is_enough` returns true: an entry
    /// that cannot be removed does not stop the removal of the others.
    fn all(&mut self) -> io::Result<()> {
        let Ok(entries) = self.top.entries() else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // The listing may include folders that were moved here after it began.
            if name.to_string_lossy().starts_with(&self.mark)
                || self.remove_entry(self.top, &entry)?
            {
                continue;
            }
            if take_rights(self.top, &name).is_ok() {
                self.folder(&name)?;
            }
            while let Some(number) = self.waiting.pop() {
                let name = format!("{}{number}", self.mark);
                self.folder(name.as_ref())?;
            }
        }
        Ok(())
    }

    /// Removes a folder in the top folder.
    fn folder(&mut self, name: &OsStr) -> io::Result<()> {
        let Ok(folder) = self.top.open_dir_nofollow(name) else { return Ok(()) };
        for entry in folder.entries().into_iter().flatten().flatten() {
            if self.remove_entry(&folder, &entry)? {
                continue;
            }
            let name = entry.file_name();
            let new = format!("{}{}", self.mark, self.moved);
            let taken = take_rights(&folder, &name);
            if taken.and_then(|()| folder.rename(&name, self.top, new)).is_ok() {
                self.waiting.push(self.moved);
                self.moved += 1;
            }
        }
        self.removed += u64::from(self.top.remove_dir(name).is_ok());
        Ok(())
    }

    /// Removes an entry, unless it is a nonempty folder. Returns whether nothing more can be done for the entry.
    fn remove_entry(&mut self, parent: &Dir, entry: &DirEntry) -> io::Result<bool> {
        if (self.is_enough)() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let gone = if is_folder { parent.remove_dir(name) } else { parent.remove_file(name) };
        self.removed += u64::from(gone.is_ok());
        Ok(gone.is_ok() || !is_folder)
    }
}

/// Restores the permissions of a folder that a command may have changed.
fn take_rights(parent: &Dir, name: &OsStr) -> io::Result<()> {
    parent.set_permissions(name, Permissions::from_mode(0o700))
}

#[cfg(all(test, unix))]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    fn removal(base: &Path, name: &str) -> PathBuf {
        let path = base.join(format!("{ASIDE}{name}"));
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn whatever_commands_left_goes_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let (own, kept) = (removal(base.path(), "1"), base.path().join("kept"));
        fs::create_dir_all(own.join("a/b/c")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        symlink(&kept, own.join("a/link")).unwrap();
        for folder in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(own.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        let other = removal(base.path(), "2");
        let mut deep = Dir::open_ambient_dir(&other, ambient_authority()).unwrap();
        for _ in 0..3000 {
            deep.create_dir("d").unwrap();
            deep = deep.open_dir("d").unwrap();
        }
        assert!(!remove_aside(base.path(), &|| false).unwrap());
        assert!(!own.exists() && !other.exists());
        assert!(kept.join("file").exists());
        assert!(!remove_aside(base.path(), &|| false).unwrap());
    }

    /// The number of steps for removing this many folders that are not empty.
    fn steps(folders: usize) -> usize {
        let base = tempfile::tempdir().unwrap();
        let own = removal(base.path(), "1");
        for n in 0..folders {
            fs::create_dir_all(own.join(format!("tmp/{n}/in"))).unwrap();
        }
        let asked = Cell::new(0);
        let count = || {
            asked.set(asked.get() + 1);
            false
        };
        assert!(!remove_aside(base.path(), &count).unwrap());
        assert!(!own.exists());
        asked.get()
    }

    #[test]
    fn twice_as_much_takes_twice_as_long() {
        let (few, many) = (steps(500), steps(1000));
        assert!(many <= few * 2 && many < 5000, "{few} and {many} entries were looked at");
    }

    #[test]
    fn it_stops_when_it_is_enough_and_goes_on_later() {
        let base = tempfile::tempdir().unwrap();
        let own = removal(base.path(), "1");
        for n in 0..100 {
            fs::create_dir_all(own.join(format!("{n}/in"))).unwrap();
        }
        let mut rounds = 0;
        loop {
            rounds += 1;
            let left = Cell::new(50);
            let is_enough = || {
                left.set(left.get() - 1);
                left.get() == 0
            };
            if !remove_aside(base.path(), &is_enough).unwrap() {
                break;
            }
            assert!(own.exists() && rounds < 100);
        }
        assert!(rounds > 1 && !own.exists());
    }
}
