//! What git tracks of deaddrop's own files: a pull puts it there, over what was ignored before too, and
//! whoever can push has written it.

use std::ffi::OsStr;
use std::path::Path;

use super::found::is_keeper;
use super::git::ask_git;
use super::opening::Opening;
use super::{Config, real};

/// So many names are shown.
const SHOWN: usize = 3;
/// What a folder is to git that is another repository.
const SUBMODULE: &str = "160000";
/// What a regular file is to it, whatever its rights.
const FILE: &str = "100";

/// What the repository around a base directory tracks in deaddrop's own folders, with what each file is in
/// it, so that another one has to be agreed to anew. Where there is no git, nobody pulls.
pub(super) fn tracked(config: &Config) -> Option<Opening> {
    let Config { base, inbox, outbox, sessions, approvals, .. } = config;
    base.ancestors().find(|folder| folder.join(".git").exists())?;
    let folders = [inbox, outbox, sessions, approvals].map(|folder| real(folder));
    let within: Vec<&Path> =
        folders.iter().filter_map(|folder| folder.strip_prefix(base).ok()).collect();
    let listed = String::from_utf8_lossy(&listed(base, &within)?).into_owned();
    let is_own = |what: &str, path: &Path| {
        // Links to elsewhere keep no folder in a repository.
        let keeps = what.starts_with(FILE) && path.file_name().is_some_and(is_keeper);
        let lies_in = || within.iter().any(|folder| path.starts_with(folder));
        let holds = || within.iter().any(|folder| folder.starts_with(path));
        (lies_in() && !keeps) || (what.starts_with(SUBMODULE) && holds())
    };
    let all: Vec<(&str, &str)> = listed
        .split('\0')
        .filter_map(|line| line.split_once('\t'))
        .filter(|(what, path)| is_own(what, path.as_ref()))
        .collect();
    let names: Vec<&str> = all.iter().take(SHOWN).map(|(_, path)| *path).collect();
    let more = match all.len().checked_sub(SHOWN) {
        None | Some(0) => String::new(),
        Some(more) => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| Opening {
        name: "tracked by git".to_owned(),
        value: names.join(", ") + &more,
        origin: None,
        does: "whoever can push there writes your sessions, replies and approvals",
        exact: all.iter().flat_map(|(what, path)| [what, "\t", path, "\n"]).collect(),
    })
}

/// Mode, digest and path of the files in these folders and in those where they begin, which can be
/// repositories of their own, as `git ls-files -s -z` has them.
fn listed(base: &Path, folders: &[&Path]) -> Option<Vec<u8>> {
    let mut begin: Vec<&OsStr> = folders.iter().filter_map(|folder| folder.iter().next()).collect();
    begin.sort_unstable();
    begin.dedup();
    if begin.is_empty() {
        return None;
    }
    let asked = ["--literal-pathspecs", "ls-files", "-s", "-z", "--"].map(OsStr::new);
    ask_git(base, asked.into_iter().chain(begin))
}
