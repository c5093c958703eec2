//! Finds the repository of a workspace that is a worktree or submodule of another repository, because git commands need
//! it. A `.git` file could name any folder, so the repository must also name this workspace as its own.

use std::fs;
use std::path::{Path, PathBuf};

use super::existing;
use crate::atomic::read_regular;

/// The entries by which a git folder is recognised.
const REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];
/// The largest file that is read, in bytes. This is more than a path or a repository's settings need.
const LONGEST: u64 = 1 << 20;

/// The folder of the repository if it is outside the workspace: its real path, and the path under which it is named.
pub(super) fn repository(workspace: &Path) -> Option<(PathBuf, PathBuf)> {
    let workspace = &existing(workspace)?;
    let link = workspace.join(".git");
    let text = text(&link)?;
    let named = workspace.join(text.strip_prefix("gitdir:")?.trim());
    let folder = existing(&named).filter(|folder| !folder.starts_with(workspace))?;
    if !folder.join("HEAD").is_file() {
        return None;
    }
    if !folder.join("commondir").exists() {
        let ours =
            is_repository(&folder) && work_tree(&folder).is_some_and(|tree| tree == *workspace);
        return ours.then_some((folder, named));
    }
    // The folder is COMMON/worktrees/NAME. COMMON, which contains objects, refs and settings, is shown.
    let common = existing(&folder.join(self::text(&folder.join("commondir"))?.trim()))?;
    let back = existing(&folder.join(self::text(&folder.join("gitdir"))?.trim()))?;
    let ours = folder.parent()? == common.join("worktrees")
        && is_repository(&common)
        && Some(back) == existing(&link);
    let named = named.ancestors().nth(2)?.to_path_buf();
    ours.then_some((common, named))
}

fn is_repository(folder: &Path) -> bool {
    REPOSITORY.iter().all(|name| folder.join(name).exists())
}

/// The work tree that a submodule's settings name.
fn work_tree(folder: &Path) -> Option<PathBuf> {
    let settings = text(&folder.join("config"))?;
    let mut lines = settings.lines().filter_map(|line| line.split_once('='));
    let (_, tree) = lines.find(|(key, _)| key.trim().eq_ignore_ascii_case("worktree"))?;
    existing(&folder.join(tree.trim().trim_matches('"')))
}

/// The text of a regular file that is not too large.
fn text(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    // The file may have been replaced since the check.
    let bytes = found.is_file().then(|| read_regular(path, LONGEST).ok())??;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_shown_only_to_a_workspace_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        };
        let (main, workspace) = (root.join("main/.git"), root.join("work"));
        write("main/.git/HEAD", "ref: refs/heads/main\n");
        write("main/.git/config", "[core]\n\tbare = false\n");
        write("main/.git/refs/x", "");
        write("main/.git/objects/x", "");
        write("main/.git/worktrees/w/HEAD", "ref: refs/heads/w\n");
        write("main/.git/worktrees/w/commondir", "../..\n");
        write("main/.git/worktrees/w/gitdir", &format!("{}/work/.git\n", root.display()));
        write("work/.git", "gitdir: ../main/.git/worktrees/w\n");
        let named = workspace.join("../main/.git");
        assert_eq!(repository(&workspace), Some((main.clone(), named.clone())));

        // The same repository for a folder that the repository does not name.
        write("evil/.git", "gitdir: ../main/.git/worktrees/w\n");
        assert_eq!(repository(&root.join("evil")), None);
        write("evil/.git", "gitdir: ../main/.git\n");
        assert_eq!(repository(&root.join("evil")), None);
        // A repository that anybody who can write in the workspace could make.
        write("evil/own/worktrees/w/HEAD", "");
        write("evil/own/worktrees/w/commondir", "../../../../secret\n");
        write("evil/own/worktrees/w/gitdir", "../../../.git\n");
        write("secret/key", "");
        write("evil/.git", "gitdir: own/worktrees/w\n");
        assert_eq!(repository(&root.join("evil")), None);

        write("main/.git/config", "[core]\n\tworktree = ../../work\n");
        write("work/.git", "gitdir: ../main/.git\n");
        assert_eq!(repository(&workspace), Some((main, named)));
    }
}
