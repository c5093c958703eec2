//! Writes and moves whole files. A file of deaddrop's own appears under its name complete and synced, or not at all. A
//! moved file never replaces another one.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, linkat, renameat, statat, unlinkat};
#[cfg(target_os = "linux")]
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use crate::error::{Error, Result};

/// Whether files can be created in a folder, according to its permissions. A full disk is not detected.
pub fn may_write_in(folder: &Path) -> bool {
    accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// Reads a regular file of at most `limit` bytes. Follows links. Never blocks, whatever kind of file it is.
///
/// # Errors
/// The file cannot be read, is longer than `limit`, or is not a regular file.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    read_within(file, limit)?.ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}

/// Reads a whole file; None if it has more than `limit` bytes.
fn read_within(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    // With this capacity, one read is enough for most files.
    let length = file.metadata()?.len().min(limit).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit))
}

/// Writes `bytes` to `path`: writes and syncs a temporary file next to it, renames it, and syncs the folder. An
/// existing file is replaced. Everybody can read the file.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    persist(temporary(path, bytes, 0o644)?, path)
}

/// Like [`write()`], but only the user can read the file.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    persist(temporary(path, bytes, 0o600)?, path)
}

/// Like [`write_private()`], but without waiting for the disk. Use it for files that can be created again.
pub fn write_soon(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = temporary(path, bytes, 0o600)?;
    file.persist(path).map_err(|e| Error::io("write", path, e.error))?;
    Ok(())
}

/// Writes `bytes` to a temporary file next to `path`, to be renamed later, and syncs it. Returns its path.
pub fn write_beside(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let fail = |e| Error::io("write", path, e);
    let file = temporary(path, bytes, 0o644)?;
    file.as_file().sync_data().map_err(fail)?;
    let (_, path) = file.keep().map_err(|e| fail(e.error))?;
    Ok(path)
}

fn temporary(path: &Path, bytes: &[u8], mode: u32) -> Result<NamedTempFile> {
    let fail = |e| Error::io("write", path, e);
    let mut file = new_file(path.parent().unwrap_or(Path::new(".")), mode).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    Ok(file)
}

fn new_file(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.suffix(".tmp").permissions(Permissions::from_mode(mode)).tempfile_in(folder)
}

/// Creates a file with a temporary name in a folder. Only the user can read it. It is removed when it is dropped,
/// unless it was passed to [`persist`].
///
/// # Errors
/// The file cannot be created.
pub fn new_private(folder: &Path) -> Result<NamedTempFile> {
    new_file(folder, 0o600).map_err(|e| Error::io("write", folder, e))
}

/// Syncs a new file, and renames it to `path` in the same folder.
///
/// # Errors
/// The file may or may not exist at `path`.
pub fn persist(file: NamedTempFile, path: &Path) -> Result<()> {
    let fail = |e| Error::io("write", path, e);
    file.as_file().sync_data().map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// Moves the file `from` into `folder` as `name` or, if that exists, as `name` with `-2`, `-3`… before its extension.
/// Never overwrites a file. Returns the new path. Both places must be in the same file system.
pub fn move_into(from: &Path, folder: &Path, name: &OsStr) -> Result<PathBuf> {
    let name = Path::new(name);
    let stem = name.file_stem().unwrap_or_default().to_string_lossy();
    let extension = name.extension().map(|e| format!(".{}", e.to_string_lossy()));
    let mut to = folder.join(name);
    for n in 2.. {
        match rename_new(CWD, from.as_os_str(), CWD, to.as_os_str()) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let ending = format!("-{n}{}", extension.as_deref().unwrap_or_default());
                to = folder
                    .join(format!("{}{ending}", shortened(&stem, 255 - ending.len().min(255))));
            }
            Err(e) => return Err(Error::io("move", from, e)),
            Ok(()) => break,
        }
    }
    Ok(to)
}

/// Writes a new file `name` into `folder`, with a suffix if the name is taken.
pub fn write_into(folder: &Path, name: &OsStr, bytes: &[u8]) -> Result<PathBuf> {
    let temporary = write_beside(&folder.join("new"), bytes)?;
    move_into(&temporary, folder, name)
}

/// The longest beginning of `name` that has at most `limit` bytes.
pub fn shortened(name: &str, limit: usize) -> &str {
    &name[..name.floor_char_boundary(limit)]
}

/// Renames `name` in one folder to `new` in another, and never replaces a file: the error is `AlreadyExists` if `new`
/// exists.
///
/// # Errors
/// The file was not renamed.
pub fn rename_new(from: impl AsFd, name: &OsStr, to: impl AsFd, new: &OsStr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match renameat_with(&from, name, &to, new, RenameFlags::NOREPLACE) {
        // Some file systems (NFS, 9p) lack the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        done => return Ok(done?),
    }
    match linkat(&from, name, &to, new, AtFlags::empty()) {
        Ok(()) => Ok(unlinkat(&from, name, AtFlags::empty())?),
        Err(Errno::EXIST) => Err(Errno::EXIST.into()),
        // This is a folder, or the file system has no hard links. No other call can rename it atomically.
        Err(_) => match statat(&to, new, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST.into()),
            Err(Errno::NOENT) => Ok(renameat(&from, name, &to, new)?),
            Err(e) => Err(e.into()),
        },
    }
}

/// Whether [`sync_all_of`] works on this system.
pub const SYNCS_ALL: bool = cfg!(target_os = "linux");

/// Syncs the whole file system that contains an open file or folder. For many files, this is faster than syncing each
/// one, but it also waits for data that other processes have written.
#[cfg(target_os = "linux")]
pub fn sync_all_of(file: impl std::os::fd::AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(file)?)
}

/// Does nothing on this system; elsewhere it syncs the whole file system.
#[cfg(not(target_os = "linux"))]
pub fn sync_all_of<T>(_: T) -> io::Result<()> {
    Ok(())
}

/// Opens one of deaddrop's own files. It must be a regular file, and not a link, which could lead to somebody else's
/// file. A new file is accessible only to the user.
///
/// # Errors
/// It is not a regular file, or cannot be opened.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
    let other = || {
        io::Error::other(
            "it is not a regular file, as deaddrop's own are; check it, then move it away",
        )
    };
    let is_other = || path.symlink_metadata().is_ok_and(|found| !found.is_file());
    // A link cannot be opened here, but a device can, so the type is checked after opening.
    let file = options.open(path).map_err(|e| if is_other() { other() } else { e })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(other()) }
}

/// Reads one of deaddrop's own files. See [`open_own`].
///
/// # Errors
/// As for [`open_own`].
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    read_own_within(path, u64::MAX)
}

/// Like [`read_own`], for a file of at most `limit` bytes.
///
/// # Errors
/// As for [`open_own`], or the file is larger.
pub fn read_own_within(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = read_within(open_own(File::options().read(true), path)?, limit)?;
    let large = "it is larger than any file that deaddrop writes here";
    bytes.ok_or_else(|| io::Error::other(large))
}

/// Like [`read_own`], for text.
///
/// # Errors
/// As for [`open_own`], or the file is not UTF-8.
pub fn read_own_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_own(path)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Removes all permissions of other users for one of deaddrop's own folders and the files in it. With `passable`,
/// others can still traverse the folder.
///
/// # Errors
/// The permissions cannot be changed, although the folder is the user's and its file system has permissions.
pub fn keep_private(folder: &Path, passable: bool) -> io::Result<()> {
    let narrow = |file: &File, keep: u32| {
        let mode = file.metadata()?.permissions().mode() & 0o7777;
        if mode & 0o077 & !keep == 0 {
            return Ok(());
        }
        let unsupported = [Errno::PERM, Errno::NOTSUP, Errno::NOSYS, Errno::ROFS];
        let done = file.set_permissions(Permissions::from_mode(mode & keep));
        done.or_else(|e| match e.raw_os_error() {
            Some(code) if unsupported.contains(&Errno::from_raw_os_error(code)) => Ok(()),
            _ => Err(e),
        })
    };
    let opened = File::open(folder)?;
    // Other users cannot access files in a private folder.
    if !passable && opened.metadata()?.permissions().mode() & 0o7077 == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        if let Ok(file) = open_own(File::options().read(true), &entry?.path()) {
            narrow(&file, 0o700)?;
        }
    }
    // This comes last, so that the next start completes an interrupted one.
    narrow(&opened, if passable { 0o711 } else { 0o700 })
}

/// Creates a folder and its missing parents. Returns the created folders, innermost first.
///
/// # Errors
/// A folder cannot be created.
pub fn make_folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists());
    let missing = missing.map(Path::to_owned).collect();
    fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
    Ok(missing)
}

/// Makes the entries of `folder` durable.
pub fn sync_folder(folder: &Path) -> Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Error::io("sync", folder, e))
}

/// Removes files with the extension `.tmp` from `folder`, which an interrupted [`write()`] may have left. Use it only
/// for folders in which nobody else keeps files.
pub fn sweep(folder: &Path) -> Result<()> {
    for entry in walkdir::WalkDir::new(folder).min_depth(1).max_depth(1) {
        let entry = entry.map_err(|e| Error::io("list", folder, e.into()))?;
        if entry.file_type().is_file() && entry.path().extension() == Some(OsStr::new("tmp")) {
            fs::remove_file(entry.path()).map_err(|e| Error::io("remove", entry.path(), e))?;
        }
    }
    Ok(())
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

    #[cfg(unix)]
    #[test]
    fn what_is_private_is_only_for_the_user() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
        write(&path, b"x").unwrap();
        let open = mode();
        write_private(&path, b"x").unwrap();
        assert_eq!(mode(), 0o600);
        // The umask may remove the other permissions.
        assert_eq!(open & 0o600, 0o600);
        write(&path, b"x").unwrap();
        assert_eq!(mode(), open);
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
