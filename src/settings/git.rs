//! Questions to git about a folder that may be anybody's: git starts nothing that its settings name, and a
//! bare repository, which can be among the files of another one, does not count.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::git_settings::named_by_git;
use crate::program::{self, Programs};

/// Settings that override those of the repository, so that git starts no program and asks nobody.
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
/// A repository can make git read without end.
const PATIENCE: Duration = Duration::from_secs(30);

/// What git prints in a folder; None if git is not installed.
///
/// # Errors
/// It fails, or takes too long; the first line of its message.
pub fn ask_git<T: AsRef<OsStr>>(
    programs: &Programs,
    folder: &Path,
    arguments: impl IntoIterator<Item = T>,
) -> Result<Option<Vec<u8>>, String> {
    // git would wait for a FIFO in place of one of its files.
    let tree = folder.ancestors().find(|above| above.join(".git").exists());
    let trees: Vec<PathBuf> = tree.into_iter().map(Path::to_owned).collect();
    if let Some(odd) = named_by_git(&trees).odd {
        return Err(format!("{} is not a regular file", odd.display()));
    }
    let output = programs.command("git").and_then(|mut git| {
        git.args(SETTINGS.into_iter().flat_map(|setting| ["-c", setting]));
        git.args(["--no-optional-locks", "--no-pager", "-C"]).arg(folder).args(arguments);
        // It does not fetch missing objects, which can start a program.
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

/// Why replies cannot work in a folder, if it is a git directory or in one.
pub fn no_place_in_git(folder: &Path) -> Option<String> {
    let git = git_directory(folder)?;
    let project = match git.parent() {
        Some(project) if git.ends_with(".git") => project.display().to_string(),
        _ => "a clone of it".to_owned(),
    };
    Some(format!(
        "this is a git directory, or in one, and git would run hooks that replies write there; choose the folder with the project's files: {project}"
    ))
}

/// The folders of git in a git directory that is not called `.git`.
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

/// Whether git could use a folder as a repository, by the names that it `has`: `HEAD` with `objects` and `refs`,
/// or with `commondir`, which says where those are. Their contents can change.
pub(crate) fn is_repository(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

/// The git directory that a folder is or is in: a `.git`, or a bare repository. Git runs and obeys what it
/// contains. None in a worktree. The path is canonical.
pub fn git_directory(folder: &Path) -> Option<PathBuf> {
    let mut part: Option<&OsStr> = None;
    for place in folder.ancestors() {
        // A worktree, which can also be in a bare repository.
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
        fs::write(made("bare/main").join(".git"), "gitdir: x").unwrap();
        made("bare/main/src");
        for path in
            [".", "p", "p/src", "bare/main", "bare/main/src", "bare/workspace", "bare/new/x"]
        {
            assert_eq!(git_directory(&top.join(path)), None, "{path}");
        }
    }
}
