//! Folders that commands could fill as they liked, removed whatever is in them: a million files, a
//! tree of any depth, folders without rights, links that lead elsewhere.
//!
//! That can take long, so it has two steps: a folder is put aside at once, by a rename, and what lies
//! aside is removed later, as far as there is time for it. What is left is gone on with by anybody.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, Permissions, PermissionsExt};

/// What lies aside has a name that begins with this.
const ASIDE: &str = ".gone-";

/// Puts a folder aside, where it stands: [`remove_aside`] finds it in its parent.
///
/// # Errors
/// It cannot be renamed, or is not there.
pub fn put_aside(folder: &Path) -> io::Result<()> {
    let name = format!("{ASIDE}{}", uuid::Uuid::new_v4().simple());
    std::fs::rename(folder, folder.with_file_name(name))
}

/// Removes what lies aside in a folder. Returns whether it was enough before that was done; that is
/// asked before each entry.
///
/// # Errors
/// The folder cannot be read. What cannot be removed is left without a word.
pub fn remove_aside(place: &Path, is_enough: &dyn Fn() -> bool) -> io::Result<bool> {
    let place = Dir::open_ambient_dir(place, ambient_authority())?;
    for entry in place.entries()? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(ASIDE) {
            match remove(&place, &name, is_enough) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
                // The others may go.
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Removes a folder that commands could fill as they liked: however deep, whatever its rights. Links
/// are removed, never followed. Fails with `Interrupted` when it is enough; what is left can be gone
/// on with, and each step leaves less.
///
/// Each folder in it that is not empty is moved to its top under a number, so that this needs neither
/// a stack nor paths of its depth; and numbers are all that is kept in mind, so that the top, where
/// many may stand, is not read again for each.
fn remove(parent: &Dir, name: &OsStr, is_enough: &dyn Fn() -> bool) -> io::Result<()> {
    take_rights(parent, name)?;
    let top = parent.open_dir_nofollow(name)?;
    loop {
        let mark = format!("{}-", uuid::Uuid::new_v4().simple());
        let mut removal =
            FolderRemoval { top: &top, mark, moved: 0, waiting: Vec::new(), removed: 0, is_enough };
        removal.all()?;
        match parent.remove_dir(name) {
            // Some file systems leave entries out of a listing while others are removed.
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && removal.removed > 0 => {}
            done => return done,
        }
    }
}

struct FolderRemoval<'a> {
    top: &'a Dir,
    /// What the names of moved folders begin with, which nobody has guessed.
    mark: String,
    moved: u64,
    /// The numbers of folders that were moved to the top.
    waiting: Vec<u64>,
    removed: u64,
    is_enough: &'a dyn Fn() -> bool,
}

impl FolderRemoval<'_> {
    /// Fails only when it is enough, as do the others: what cannot be removed does not keep the rest.
    fn all(&mut self) -> io::Result<()> {
        let Ok(entries) = self.top.entries() else { return Ok(()) };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // The listing may show what was moved here since.
            if name.to_string_lossy().starts_with(&self.mark) || self.goes(self.top, &entry)? {
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

    /// Removes a folder at the top.
    fn folder(&mut self, name: &OsStr) -> io::Result<()> {
        let Ok(folder) = self.top.open_dir_nofollow(name) else { return Ok(()) };
        for entry in folder.entries().into_iter().flatten().flatten() {
            if self.goes(&folder, &entry)? {
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

    /// Removes an entry, unless it is a folder that is not empty. Returns whether there is nothing
    /// more to do for it.
    fn goes(&mut self, parent: &Dir, entry: &DirEntry) -> io::Result<bool> {
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

/// Takes back the rights on a folder that a command took away.
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

    /// The steps of removing this many folders with something in each.
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
