//! git, asked about a folder that may be anybody's: nothing that a repository's settings name is started
//! for it, and a repository without a folder of work, as can stand among the files of another, is none.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// What git prints, asked in a folder; None where it fails, or there is none.
pub fn ask_git<T: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = T>,
) -> Option<Vec<u8>> {
    let settings = ["core.fsmonitor=false", "safe.bareRepository=explicit", "safe.directory=*"];
    let output = Command::new("git")
        .args(settings.into_iter().flat_map(|setting| ["-c", setting]))
        .arg("--no-optional-locks")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}
