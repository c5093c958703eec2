//! The folders that commands of one session of a host have for themselves. A session is longer than a
//! server, which may live no longer than a turn; so these stay until the host says that the session
//! is over, or nobody has used them for a month.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::own::{Broom, age, is_held, open};
use super::steps::{is_at, is_key};
use super::{Given, Served};
use crate::error::{Error, Result};
use crate::protocol::Operation;
use crate::protocol::jsonrpc::{RpcError, StepParams, Written};
use crate::runner::aside::put_aside;

/// What their names begin with.
const HOME: &str = "own_";
/// What no step has used for so long is removed.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// Those in a folder of deaddrop's own.
#[derive(Debug)]
pub(super) struct Homes {
    state: PathBuf,
    broom: Broom,
    /// Done once in a process: what nobody has used for long.
    cleared: OnceLock<()>,
}

/// What a step's commands have for themselves, held against being removed.
#[derive(Debug)]
pub(super) struct Home {
    pub(super) folder: PathBuf,
    held: Option<File>,
}

impl Homes {
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state, broom: Broom::default(), cleared: OnceLock::new() }
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.state.join(format!("{HOME}{name}"))
    }

    /// Holds the folder of this name, used from now on; made where that is wanted.
    fn enter(&self, name: &str, make: bool) -> Result<Home> {
        let folder = self.path_of(name);
        loop {
            if make {
                make_folder(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
            }
            let file = match open(&folder) {
                Err(e) if e.kind() == io::ErrorKind::NotFound && make => continue,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Ok(Home { folder, held: None });
                }
                other => other.map_err(|e| Error::io("open", &folder, e))?,
            };
            // Some file systems do not lock folders: there it is held by its age alone.
            let held = file.lock_shared().is_ok();
            // Somebody may just have put it aside.
            if is_at(&file, &folder).map_err(|e| Error::io("open", &folder, e))? {
                let _ = file.set_modified(SystemTime::now());
                return Ok(Home { folder, held: held.then_some(file) });
            }
        }
    }

    /// Puts a folder aside and begins to remove it. Nothing is done where there is none.
    fn leave(&self, name: &str) -> io::Result<()> {
        match self.put_aside(&self.path_of(name), &|_| true) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn put_aside(&self, folder: &Path, wanted: &dyn Fn(&File) -> bool) -> io::Result<()> {
        let file = open(folder)?;
        if is_held(&file) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "a step is using it"));
        }
        if wanted(&file) {
            put_aside(folder)?;
            self.broom.sweep(&self.state);
        }
        Ok(())
    }

    fn clear_old(&self) {
        self.cleared.get_or_init(|| {
            for entry in fs::read_dir(&self.state).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_str().and_then(|name| name.strip_prefix(HOME));
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_folder && name.is_some_and(is_key) {
                    // Where that fails, the next process tries it again.
                    let _ = self.put_aside(&entry.path(), &is_old);
                }
            }
        });
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A helper that is just being started has the file, too, for a moment.
        if let Some(file) = &self.held {
            let _ = file.unlock();
        }
    }
}

impl Served {
    /// What the commands of a step have for themselves: what its session has, if it is of one.
    pub(super) fn home_of(&self, asked: &StepParams) -> Result<Home> {
        self.homes.clear_old();
        let Some(name) = &asked.own else {
            return Ok(Home { folder: self.serving.own.clone(), held: None });
        };
        // Where commands have all the user's rights, they have the user's HOME.
        let is_command = matches!(asked.operation, Operation::Run(_));
        self.homes.enter(name, is_command && self.guarded)
    }

    /// A session of a host is over: what its commands have had for themselves goes.
    pub(super) fn leave(&self, name: &str) -> Result<Given, RpcError> {
        check(Some(name))?;
        match self.homes.leave(name) {
            Ok(()) => Ok(Given::Written(Written { success: true })),
            Err(e) => {
                let error = Error::io("remove", &self.homes.path_of(name), e);
                Err(RpcError::internal(error.to_string()))
            }
        }
    }
}

/// Only what can be a key can be the name of such a folder: nothing else is made, or removed.
pub(super) fn check(name: Option<&str>) -> Result<(), RpcError> {
    if name.is_none_or(is_key) {
        return Ok(());
    }
    Err(RpcError::params("a session is named by 1 to 64 letters (a-z, A-Z), digits and hyphens"))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    // As the runner makes them: whom commands run as goes through it.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o711);
    match builder.create(folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        made => made,
    }
}

fn is_old(folder: &File) -> bool {
    age(folder.metadata()).is_some_and(|age| age > KEPT)
}
