//! Whole files only: a file of deaddrop's own appears under its name complete and synced, or not
//! at all, and a file that is moved never lands on another.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Writes `bytes` to `path`: temporary name beside it, sync, rename, sync of the folder.
/// A file that stood there is replaced.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = write_beside(path, bytes)?;
    fs::rename(&temporary, path).map_err(|e| Error::io("write", path, e))?;
    sync_folder(folder)
}

/// Writes `bytes` to a temporary file beside `path`, synced, to be renamed later. Returns its path.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let fail = |e| Error::io("write", path, e);
    let mut file = temporary().tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_data().map_err(fail)?;
    let (_, path) = file.keep().map_err(|e| fail(e.error))?;
    Ok(path)
}

/// Like [`write()`], without waiting for the disk: for what can be made again.
pub fn write_soon(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let fail = |e| Error::io("write", path, e);
    let mut file = temporary().tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.persist(path).map(drop).map_err(|e| fail(e.error))
}

/// Moves the file `from` into `folder` under `name`, or, where that is taken, under
/// `name` with `-2`, `-3`… before its extension. Never overwrites. Returns the path it got.
/// Both must be on one file system.
pub fn move_into(from: &Path, folder: &Path, name: &OsStr) -> Result<PathBuf> {
    free_name(folder, name, |to| rename_new(from, to)).map_err(|e| Error::io("move", from, e))
}

/// Writes a new file `name` into `folder`, with a suffix where the name is taken.
pub fn write_into(folder: &Path, name: &OsStr, bytes: &[u8]) -> Result<PathBuf> {
    let temporary = write_beside(&folder.join("new"), bytes)?;
    move_into(&temporary, folder, name)
}

fn free_name(
    folder: &Path,
    name: &OsStr,
    put: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let name = Path::new(name);
    let stem = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = name.extension().map(|e| format!(".{}", e.to_string_lossy()));
    let mut to = folder.join(name);
    for n in 2.. {
        match put(&to) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let ending = format!("-{n}{}", extension.as_deref().unwrap_or_default());
                to = folder
                    .join(format!("{}{ending}", shortened(&stem, 255 - ending.len().min(255))));
            }
            Err(e) => return Err(e),
            Ok(()) => break,
        }
    }
    Ok(to)
}

/// As much of the beginning of `name` as fits into `limit` bytes.
pub fn shortened(name: &str, limit: usize) -> &str {
    &name[..name.floor_char_boundary(limit)]
}

/// Renames without replacing: `AlreadyExists` where `to` is taken.
#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems (NFS, 9p) lack the flag.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => link_new(from, to),
        other => Ok(other?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    link_new(from, to)
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Makes the entries of `folder` durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io("sync", folder, e))?;
    }
    Ok(())
}

/// Removes what an interrupted [`write()`] left in `folder`: files that end in `.tmp`.
/// Only for folders that are deaddrop's alone.
pub fn sweep(folder: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(folder).min_depth(1).max_depth(1) {
        let entry = entry.map_err(|e| Error::io("list", folder, e.into()))?;
        if entry.file_type().is_file() && entry.path().extension() == Some(OsStr::new("tmp")) {
            fs::remove_file(entry.path()).map_err(|e| Error::io("remove", entry.path(), e))?;
        }
    }
    Ok(())
}

/// A temporary file with the mode that an ordinary new file has.
fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o644));
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_whole_and_leaves_no_temporary() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_move_never_overwrites() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("done");
        fs::create_dir(&target).unwrap();
        let mut paths = vec![];
        for text in ["1", "2", "3"] {
            let from = dir.path().join("r.txt");
            fs::write(&from, text).unwrap();
            paths.push(move_into(&from, &target, OsStr::new("r.txt")).unwrap());
        }
        let names: Vec<_> = paths.iter().map(|p| p.file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["r.txt", "r-2.txt", "r-3.txt"]);
        assert_eq!(fs::read_to_string(&paths[1]).unwrap(), "2");
    }

    #[test]
    fn sweeping_removes_only_temporary_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.json.x1.tmp"), "").unwrap();
        fs::write(dir.path().join("a.json"), "").unwrap();
        sweep(dir.path()).unwrap();
        assert!(dir.path().join("a.json").exists());
        assert!(!dir.path().join("a.json.x1.tmp").exists());
    }
}
