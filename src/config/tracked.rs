//! What git tracks of deaddrop's own files: a pull puts it there, over what was ignored before too, and
//! whoever can push has written it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::found::is_keeper;
use super::git::ask_git;
use super::opening::Opening;
use super::{Config, real};
use crate::program::Programs;

/// What that is called among what opens something.
pub(super) const TRACKED: &str = "tracked by git";
/// What a regular file is to git, whatever its rights.
const FILE: &str = "100";

/// What repositories track in deaddrop's own folders, with what each file is in them, so that another one
/// has to be agreed to anew. Where there is no git, nobody pulls.
pub(super) fn tracked(config: &Config) -> Option<Opening> {
    let folders = config.roles().map(|(_, folder)| real(folder));
    let folders: Vec<&Path> = folders
        .iter()
        .map(PathBuf::as_path)
        .filter(|folder| folder.starts_with(&config.base))
        .collect();
    // One may lie in another, which tracks what it does not.
    let around: BTreeSet<&Path> = folders.iter().flat_map(|folder| folder.ancestors()).collect();
    let repositories = around.into_iter().filter(|folder| folder.join(".git").exists());
    let programs = Programs::of(config);
    let all: Vec<(String, String)> = repositories
        .flat_map(|repository| of(&programs, repository, &folders, &config.base))
        .collect();
    let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
    (!names.is_empty()).then(|| Opening {
        name: TRACKED.to_owned(),
        value: names.join(", "),
        origin: None,
        does: "whoever can push there writes your sessions, replies and approvals",
        exact: all.iter().flat_map(|(what, name)| [what, "\t", name, "\n"]).collect(),
    })
}

/// What a repository tracks of these folders: what each file is, and its path in the base directory; or why
/// that is not known.
/// It is asked at its root: further down, what lies there could pass for another.
fn of(
    programs: &Programs,
    repository: &Path,
    folders: &[&Path],
    base: &Path,
) -> Vec<(String, String)> {
    let within = folders.iter().filter_map(|folder| folder.strip_prefix(repository).ok());
    let within = within.map(|folder| match folder.as_os_str() {
        whole if whole.is_empty() => OsStr::new("."),
        folder => folder,
    });
    let asked = ["--literal-pathspecs", "ls-files", "-s", "-z", "--"].map(OsStr::new);
    let listed = match ask_git(programs, repository, asked.into_iter().chain(within)) {
        Ok(Some(listed)) => listed,
        Ok(None) => return Vec::new(),
        Err(why) => {
            let told = format!("git does not tell it of {} ({why})", repository.display());
            return vec![(String::new(), told)];
        }
    };
    let listed = String::from_utf8_lossy(&listed);
    let files = listed.split('\0').filter_map(|line| line.split_once('\t'));
    let is_keeper = |what: &str, path: &str| {
        // Links to elsewhere keep no folder in a repository.
        what.starts_with(FILE) && Path::new(path).file_name().is_some_and(is_keeper)
    };
    let files = files.filter(|(what, path)| !is_keeper(what, path));
    files
        .map(|(what, path)| {
            let path = repository.join(path);
            let path = path.strip_prefix(base).unwrap_or(&path);
            (what.to_owned(), path.display().to_string())
        })
        .collect()
}
