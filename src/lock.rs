//! One writer per base directory: a lock that the system releases when its holder ends, however
//! it ends.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use crate::config::Config;
use crate::error::{Error, Result};

/// The right to write in a base directory, for as long as this value lives.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, never used")] File);

impl Lock {
    /// Takes the lock, or says who has it.
    pub fn take(config: &Config) -> Result<Self> {
        let path = config.sessions.join(".lock");
        let fail = |e| Error::io("lock", &path, e);
        fs::create_dir_all(&config.sessions)
            .map_err(|e| Error::io("make the folder", &config.sessions, e))?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::locked(&config.base, holder(&path)));
            }
            Err(TryLockError::Error(e)) => return Err(fail(e)),
        }
        // Only for the message that another process gives.
        file.set_len(0).map_err(fail)?;
        file.write_all(std::process::id().to_string().as_bytes()).map_err(fail)?;
        Ok(Self(file))
    }
}

fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).ok()?.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
