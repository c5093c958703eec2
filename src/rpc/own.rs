//! The folder that commands of one server have for themselves: made at its start, removed at its end,
//! whatever commands have put there. What cannot be removed soon, and what a server left that was
//! killed, is removed by those that come later.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::runner::aside::{put_aside, remove_aside};

/// What these folders begin with.
const OWN: &str = ".rpc-";
/// One that nobody holds is left over from this age on: it may have been made just now.
const OLD: Duration = Duration::from_mins(1);
/// So long the program ends later to remove what lies aside. Some disks remove a thousand folders a
/// second, and a command can make a million.
const LAST: Duration = Duration::from_secs(2);

/// The folder, locked for as long as this process lives, and put aside and removed with this: as far
/// as that can be done soon.
#[derive(Debug)]
pub struct Own {
    state: PathBuf,
    folder: PathBuf,
    _lock: Option<File>,
}

impl Own {
    /// Makes one in deaddrop's own folder for a root, and begins to remove what other servers have
    /// left there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(state: &Path) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(OWN).tempdir_in(state);
        // tempfile would remove it by a recursion as deep as a command likes.
        let folder = folder.map_err(|e| Error::io("make a folder in", state, e))?.keep();
        // Where folders cannot be locked, nothing there is removed by others either.
        let lock = File::open(&folder).ok().filter(|lock| lock.try_lock().is_ok());
        left_over(state).for_each(|left| drop(put_aside(&left)));
        Broom::default().sweep(state);
        Ok(Self { state: state.to_owned(), folder, _lock: lock })
    }

    /// Where commands have their HOME and `/tmp`. It is made by the first of them.
    #[must_use]
    pub fn for_commands(&self) -> PathBuf {
        self.folder.join("own")
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // Where this fails, it is left over.
        let _ = put_aside(&self.folder);
        let begun = Instant::now();
        let _ = remove_aside(&self.state, &|| begun.elapsed() > LAST);
    }
}

/// How long ago something was written; None where that cannot be said.
pub(super) fn age(found: io::Result<Metadata>) -> Option<Duration> {
    found.ok()?.modified().ok()?.elapsed().ok()
}

/// The folders that nobody holds any more.
fn left_over(state: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let is_own = entry.file_name().to_string_lossy().starts_with(OWN)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_left = is_own
            && age(entry.metadata()).is_some_and(|age| age > OLD)
            && open(&entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        is_left.then(|| entry.path())
    })
}

/// Opens a folder that is there, also where a command has taken away the rights on it.
pub(super) fn open(folder: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        const RIGHTS: u32 = 0o700;
        // The folder that holds it is deaddrop's: nobody else puts a link there.
        let found = fs::symlink_metadata(folder)?;
        if found.is_dir() && found.permissions().mode() & RIGHTS != RIGHTS {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o711))?;
        }
    }
    File::open(folder)
}

/// Whether somebody holds a folder.
pub(super) fn is_held(folder: &File) -> bool {
    matches!(folder.try_lock(), Err(TryLockError::WouldBlock))
}

/// Removes what lies aside, on a thread of its own, of which there is one at most.
#[derive(Debug, Default)]
pub(super) struct Broom(Arc<AtomicUsize>);

impl Broom {
    /// Begins to remove what lies aside in a folder; always the same one. Nobody waits for it: the end
    /// of the server goes on with it for a while, and the next start.
    pub(super) fn sweep(&self, place: &Path) {
        if self.0.fetch_add(1, Ordering::AcqRel) > 0 {
            // Whoever is at it looks once more.
            return;
        }
        let (asked, place) = (Arc::clone(&self.0), place.to_owned());
        let work = move || {
            loop {
                let seen = asked.load(Ordering::Acquire);
                let _ = remove_aside(&place, &|| false);
                if asked.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    break;
                }
            }
        };
        if thread::Builder::new().name("sweep".into()).spawn(work).is_err() {
            self.0.store(0, Ordering::Release);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn wait_until(what: &str, condition: impl Fn() -> bool) {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain for {what}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn made_before(folder: &Path, age: Duration) {
        File::open(folder).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn it_is_gone_with_its_server_and_whatever_is_in_it() {
        let state = tempfile::tempdir().unwrap();
        let own = Own::make(state.path()).unwrap();
        let folder = own.for_commands();
        assert_eq!(names(state.path()).len(), 1);
        fs::create_dir_all(folder.join("home/a/b")).unwrap();
        fs::write(folder.join("home/a/b/c"), "").unwrap();
        drop(own);
        assert_eq!(names(state.path()), [""; 0]);
    }

    #[test]
    fn what_others_left_goes_unless_it_is_held_or_new() {
        let state = tempfile::tempdir().unwrap();
        let old = Duration::from_secs(61);
        let made: Vec<_> = ["dead", "live", "new", "locked-up"]
            .map(|name| state.path().join(format!("{OWN}{name}")))
            .into_iter()
            .inspect(|path| fs::create_dir_all(path.join("own/home")).unwrap())
            .collect();
        let [dead, live, new, shut] = &made[..] else { unreachable!("four are made") };
        // Only what is called so is touched.
        fs::create_dir(state.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", state.path().join(".rpc-link")).unwrap();
        for folder in [dead, live, shut] {
            made_before(folder, old);
        }
        made_before(&state.path().join("other"), old);
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(shut, fs::Permissions::from_mode(0o000)).unwrap();
        }
        let held = File::open(live).unwrap();
        held.try_lock().unwrap();
        let own = Own::make(state.path()).unwrap();
        wait_until("what is left over", || {
            names(state.path()).iter().all(|name| !name.starts_with(".gone-"))
        });
        assert!(!dead.exists() && !shut.exists());
        assert!(live.join("own/home").exists() && new.join("own/home").exists());
        drop(own);
        assert_eq!(names(state.path()), [".rpc-link", ".rpc-live", ".rpc-new", "other"]);
    }

    #[test]
    fn a_broom_that_is_at_it_looks_once_more() {
        let state = tempfile::tempdir().unwrap();
        let broom = Broom::default();
        for n in 0..100 {
            let folder = state.path().join(format!("x{n}"));
            fs::create_dir_all(folder.join("a/b")).unwrap();
            put_aside(&folder).unwrap();
            broom.sweep(state.path());
        }
        wait_until("the broom", || names(state.path()).is_empty());
        wait_until("its rest", || broom.0.load(Ordering::Acquire) == 0);
    }
}
