//! Writes files in another process. While this process has a file open for writing, a program that another thread starts
//! at that moment has it open, too, until it calls exec. A script then cannot be executed ("text file busy"), and a
//! reply seems to be unfinished.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::PATIENCE;

/// Writes a file.
#[track_caller]
pub fn write(path: &Path, text: &[u8]) {
    by("exec cat > \"$1\"", path, text);
}

/// Writes a program.
#[track_caller]
pub fn write_program(path: &Path, text: impl AsRef<[u8]>) {
    by("cat > \"$1\"; chmod 755 \"$1\"", path, text.as_ref());
}

#[track_caller]
fn by(script: &str, path: &Path, text: &[u8]) {
    let mut shell = Command::new("/bin/sh");
    let mut shell =
        shell.args(["-ec", script, "sh"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(text).unwrap();
    assert!(shell.wait().unwrap().success(), "{}", path.display());
}

/// Waits until what is written beside `folder` has a later time than anything there has now: the clock of a
/// file system goes by ticks, of 10 ms or less, and two changes within one cannot be told apart.
#[track_caller]
pub fn next_tick(folder: &Path) {
    let begun = Instant::now();
    let now = || -> SystemTime {
        let probe = tempfile::NamedTempFile::new_in(folder).unwrap();
        probe.as_file().metadata().unwrap().modified().unwrap()
    };
    let first = now();
    while now() <= first {
        assert!(begun.elapsed() < PATIENCE, "time stands still in {}", folder.display());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Puts a large program at a place in a project, under another inode than the one that was built,
/// which is not given away; all of a name share one copy, where a link can lead there.
pub fn put(name: &str, from: &Path, to: &Path) {
    static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let shared = {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = || {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
            let own = folder.join(format!("{name}.{}", std::process::id()));
            copy(from, &own);
            // Another run of the tests has its own, and what it has linked stays.
            fs::rename(&own, folder.join(name)).unwrap();
            folder.join(name)
        };
        made.entry(name.to_owned()).or_insert_with(copied).clone()
    };
    if fs::hard_link(shared, to).is_err() {
        copy(from, to);
    }
}

/// Copies a program that is to be run.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}
