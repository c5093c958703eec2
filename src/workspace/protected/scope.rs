//! Decides which entries of a protected folder are compared, and how. Most folders are compared completely. In a git
//! folder, only the entries are compared that can run code or redirect git, and those by which git recognises the
//! folder. Entries that git writes even when it only reads, such as the index, are not compared.

use serde::{Deserialize, Serialize};

/// The folders of a stopped rebase, am, cherry-pick or revert. They contain commands and options that `--continue`
/// uses. (A bisection is not included: since version 2.34, git does not run anything from its files.)
pub(super) const STOPPED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// How an entry is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The entry and everything in it.
    All,
    /// `.git` itself, or a bare repository.
    Repository,
    /// `HEAD` of a repository.
    Head,
    /// `objects` and `refs` of a repository.
    Part,
    /// The git folder of a submodule.
    Git,
    /// `objects` of a submodule's git folder, and `objects/info` of any git folder.
    Objects,
    ObjectsInfo,
    /// `modules`, or a folder in it. A submodule's name can have several components.
    Modules,
    /// `worktrees`, and one of the folders in it.
    Worktrees,
    Worktree,
}

/// How a folder is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum FolderRole {
    /// Everything in the folder is compared, so a new folder is a change.
    All,
    /// The folder's inode is compared as well, because most of its contents are not compared.
    Repository,
    /// The folder must exist, because git does not recognise the repository without it.
    Part,
    /// The folder itself is not compared. It only contains entries that are compared.
    Way,
}

impl Scope {
    /// The scope of an entry with this protected name.
    pub(super) fn of_entry(protected: &str) -> Self {
        if protected.eq_ignore_ascii_case(".git") { Self::Repository } else { Self::All }
    }

    /// Resolves the scope of a folder below `modules`: only a folder that contains a `HEAD` is a git folder.
    pub(super) fn settled(self, has_head: impl FnOnce() -> bool) -> Self {
        if self == Self::Modules && has_head() { Self::Git } else { self }
    }

    /// The scope of the entry `name` in a folder of this scope; None if it is not scanned.
    pub(super) fn below(self, name: &str, is_folder: bool) -> Option<Self> {
        match self {
            // Git also writes often to a repository in an editor's folder.
            Self::All if name == ".git" => Some(Self::Repository),
            Self::All => Some(Self::All),
            Self::Repository if name == "HEAD" => Some(Self::Head),
            Self::Repository if matches!(name, "objects" | "refs") => Some(Self::Part),
            Self::Repository | Self::Git => match name {
                // `remotes` and `branches` are old ways to configure remotes.
                "config" | "config.worktree" | "commondir" | "gitdir" | "hooks" | "info"
                | "remotes" | "branches" => Some(Self::All),
                _ if STOPPED.contains(&name) => Some(Self::All),
                "objects" => Some(Self::Objects),
                "modules" => Some(Self::Modules),
                "worktrees" => Some(Self::Worktrees),
                _ => None,
            },
            Self::Part | Self::Objects => (name == "info").then_some(Self::ObjectsInfo),
            Self::ObjectsInfo => {
                matches!(name, "alternates" | "http-alternates").then_some(Self::All)
            }
            Self::Modules => is_folder.then_some(Self::Modules),
            Self::Worktrees => Some(Self::Worktree),
            Self::Worktree => match name {
                "config.worktree" | "commondir" | "gitdir" => Some(Self::All),
                _ if STOPPED.contains(&name) => Some(Self::All),
                // Each worktree has its own submodules.
                "modules" => Some(Self::Modules),
                _ => None,
            },
            Self::Head => None,
        }
    }

    /// How a folder of this scope is compared.
    pub(super) fn role(self) -> FolderRole {
        match self {
            Self::All => FolderRole::All,
            Self::Repository => FolderRole::Repository,
            Self::Part => FolderRole::Part,
            _ => FolderRole::Way,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scope of a path below `.git`. A `*` marks a folder that contains a `HEAD`.
    fn of(path: &str) -> Option<Scope> {
        let parts: Vec<&str> = path.split('/').collect();
        let mut scope = Scope::Repository;
        for (n, part) in parts.iter().enumerate() {
            let (name, has_head) = match part.strip_suffix('*') {
                Some(name) => (name, true),
                None => (*part, false),
            };
            scope = scope.below(name, n + 1 < parts.len() || has_head)?.settled(|| has_head);
        }
        Some(scope)
    }

    #[test]
    fn of_a_git_folder_what_runs_or_redirects_is_compared() {
        for path in [
            "hooks/pre-commit",
            "hooks/deep/x",
            "config",
            "config.worktree",
            "info/attributes",
            "commondir",
            "objects/info/alternates",
            "modules/lib*/config",
            "modules/a/b*/hooks/x",
            "modules/a*/modules/b*/config",
            "modules/hooks*/config",
            "worktrees/w/gitdir",
            "worktrees/w/config.worktree",
            "rebase-merge/git-rebase-todo",
            "rebase-apply/patch",
            "sequencer/todo",
            "modules/a*/rebase-merge/done",
            "worktrees/w/rebase-merge/git-rebase-todo",
            "worktrees/w/sequencer/opts",
            "worktrees/w/modules/a*/hooks/x",
        ] {
            assert_eq!(of(path), Some(Scope::All), "{path}");
        }
        for path in [
            "index",
            "modules/lib*/HEAD",
            "modules/lib*/refs",
            "ORIG_HEAD",
            "refs/heads/main",
            "objects/aa/bb",
            "objects/pack/x",
            "objects/info/packs",
            "logs/HEAD",
            "modules/lib*/index",
            "modules/lib*/refs/x",
            "modules/hooks*/index",
            "modules/x",
            "worktrees/w/index",
            "worktrees/w/modules/a*/index",
            "packed-refs",
            "MERGE_MSG",
            "CHERRY_PICK_HEAD",
            "BISECT_START",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
        assert_eq!(of("hooks/.git"), Some(Scope::Repository));
        for (path, scope) in
            [("HEAD", Scope::Head), ("objects", Scope::Part), ("refs", Scope::Part)]
        {
            assert_eq!(of(path), Some(scope), "{path}");
        }
    }
}
