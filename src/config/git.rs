//! git, asked about a folder that may be anybody's: nothing that a repository's settings name is started
//! for it, and a repository without a folder of work, as can stand among the files of another, is none.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// What git prints, asked in a folder; None where there is none.
///
/// # Errors
/// It fails; the first line of what it says.
pub fn ask_git<T: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = T>,
) -> Result<Option<Vec<u8>>, String> {
    let settings = ["core.fsmonitor=false", "safe.bareRepository=explicit", "safe.directory=*"];
    let output = Command::new("git")
        .args(settings.into_iter().flat_map(|setting| ["-c", setting]))
        .arg("--no-optional-locks")
        .args(arguments)
        .current_dir(folder)
        // What it lacks it does not get from elsewhere, which can be by a program.
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(Some(output.stdout)),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().unwrap_or_default().to_owned())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}
