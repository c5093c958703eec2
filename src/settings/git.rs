//! git, asked about a folder that may be anybody's: nothing that settings name is started for it, and a repository without a folder of work, as can stand among the files of another, is none.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::git_settings::named_by_git;
use crate::program::{self, Programs};

/// What a repository's settings could have git start, and where git asks nobody; each goes over theirs.
const SETTINGS: [&str; 12] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=none",
    "core.alternateRefsCommand=false",
    "credential.helper=",
    "diff.external=",
    "safe.bareRepository=explicit",
    "safe.directory=*",
];
/// How long it may take: a repository can lead it to read what never ends.
const PATIENCE: Duration = Duration::from_secs(30);

/// What git prints, asked in a folder; None where there is none.
///
/// # Errors
/// It fails, or takes too long; the first line of what it says.
pub fn ask_git<T: AsRef<OsStr>>(
    programs: &Programs,
    folder: &Path,
    arguments: impl IntoIterator<Item = T>,
) -> Result<Option<Vec<u8>>, String> {
    // Git would wait for a FIFO in the place of a file of its own.
    let tree = folder.ancestors().find(|above| above.join(".git").exists());
    let trees: Vec<PathBuf> = tree.into_iter().map(Path::to_owned).collect();
    if let Some(odd) = named_by_git(&trees).odd {
        return Err(format!("{} is not a regular file", odd.display()));
    }
    let output = programs.command("git").and_then(|mut git| {
        git.args(SETTINGS.into_iter().flat_map(|setting| ["-c", setting]));
        git.args(["--no-optional-locks", "--no-pager", "-C"]).arg(folder).args(arguments);
        // What it lacks it does not get from elsewhere, which can be by a program.
        git.envs([
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", ""),
            ("GIT_TERMINAL_PROMPT", "0"),
        ]);
        program::output(git, PATIENCE)
    });
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

/// Why a folder can be no place for replies to work in: it is a git directory, or lies in one. None where it is
/// none.
pub fn no_place_in_git(folder: &Path) -> Option<String> {
    let git = git_directory(folder)?;
    let project = match git.parent() {
        Some(project) if git.ends_with(".git") => project.display().to_string(),
        _ => "a clone of it".to_owned(),
    };
    Some(format!(
        "this is a git directory, or lies in one, and git runs what replies would write there, its hooks; choose the folder with the project's files: {project}"
    ))
}

/// What git keeps in a git directory, where that is not told by its name. Who has another folder there
/// reaches nothing of git's.
const PARTS: [&str; 12] = [
    "branches",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "remotes",
    "worktrees",
];

/// Whether git could take a folder for a repository, by what it `has`: a `HEAD`, and `objects` and `refs` or, as
/// in a worktree's, `commondir`, which says where those are. What these hold is not asked: it can change.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// The git directory that a folder is or is a part of, by its canonical path: a `.git`, or a bare
/// repository. What stands there git runs and obeys. None within a folder of work, wherever that lies.
pub fn git_directory(folder: &Path) -> Option<PathBuf> {
    let mut part: Option<&OsStr> = None;
    for place in folder.ancestors() {
        // A folder of work of its own, also one that somebody put into a bare repository.
        if place.join(".git").symlink_metadata().is_ok() {
            return None;
        }
        let name = place.file_name();
        let is_one = || is_repository(|name| place.join(name).symlink_metadata().is_ok());
        let is_part = part.is_none_or(|part| PARTS.iter().any(|known| part == *known));
        if name.is_some_and(|name| name.eq_ignore_ascii_case(".git")) || (is_part && is_one()) {
            return Some(place.to_owned());
        }
        part = name;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_git_directory_is_known_by_its_name_or_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let made = |path: &str| {
            fs::create_dir_all(top.join(path)).unwrap();
            top.join(path)
        };
        for path in ["p/.git/hooks", "bare/objects", "bare/refs/heads", "w/.git/worktrees/x/deep"] {
            made(path);
        }
        for path in ["bare/HEAD", "w/.git/worktrees/x/HEAD", "w/.git/worktrees/x/commondir"] {
            fs::write(top.join(path), "x").unwrap();
        }
        for (path, git) in [
            ("p/.git", "p/.git"),
            ("p/.git/hooks", "p/.git"),
            ("p/.git/new", "p/.git"),
            ("bare", "bare"),
            ("bare/refs/heads", "bare"),
            ("w/.git/worktrees/x/deep", "w/.git"),
        ] {
            assert_eq!(git_directory(&top.join(path)), Some(top.join(git)), "{path}");
        }
        // Where one works in it.
        fs::write(made("bare/main").join(".git"), "gitdir: x").unwrap();
        made("bare/main/src");
        for path in
            [".", "p", "p/src", "bare/main", "bare/main/src", "bare/workspace", "bare/new/x"]
        {
            assert_eq!(git_directory(&top.join(path)), None, "{path}");
        }
    }
}
