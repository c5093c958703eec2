//! What git tracks of deaddrop's own files: a pull puts it there, over what was ignored before too, and
//! whoever can push has written it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use super::found::is_keeper;
use super::opening::Opening;
use super::{Config, real};

/// What that is called among what opens something.
pub(super) const TRACKED: &str = "tracked by git";
/// So many names are shown.
const SHOWN: usize = 3;

/// What the repository around a base directory tracks in deaddrop's own folders, with what each file is in
/// it, so that another one has to be agreed to anew. Where there is no git, nobody pulls.
pub(super) fn tracked(config: &Config) -> Option<Opening> {
    let Config { base, inbox, outbox, sessions, approvals, .. } = config;
    base.ancestors().find(|folder| folder.join(".git").exists())?;
    let folders = [inbox, outbox, sessions, approvals].map(|folder| real(folder));
    let within: Vec<&Path> =
        folders.iter().filter_map(|folder| folder.strip_prefix(base).ok()).collect();
    let listed = in_index(base, &within)?;
    let all: Vec<(&str, &str)> = listed
        .split('\0')
        .filter_map(|line| line.split_once('\t'))
        .filter(|(what, path)| {
            // Links to elsewhere keep no folder in a repository.
            let name = Path::new(path).file_name().unwrap_or_default();
            !(what.starts_with("100") && is_keeper(name))
        })
        .collect();
    let names: Vec<&str> = all.iter().take(SHOWN).map(|(_, path)| *path).collect();
    let more = match all.len().checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| Opening {
        name: TRACKED.to_owned(),
        value: names.join(", ") + &more,
        origin: None,
        does: "whoever can push there writes your sessions, replies and approvals",
        exact: all.iter().flat_map(|(what, path)| [what, "\t", path, "\n"]).collect(),
    })
}

/// Mode, digest and path of the files in these folders, as `git ls-files -s -z` has them. Nothing that the
/// repository's own settings name is started for it.
fn in_index(base: &Path, folders: &[&Path]) -> Option<String> {
    if folders.is_empty() {
        return None;
    }
    let settings = ["core.fsmonitor=false", "safe.directory=*"];
    let output = Command::new("git")
        .args(settings.into_iter().flat_map(|setting| ["-c", setting]))
        .args(["--literal-pathspecs", "--no-optional-locks", "ls-files", "-s", "-z", "--"])
        .args(folders.iter().map(|folder| {
            if folder.as_os_str().is_empty() { OsStr::new(".") } else { folder.as_os_str() }
        }))
        .current_dir(base)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
