//! Which parts of a protected folder are compared. Of most all of it; of a git folder what can run
//! code or lead git elsewhere. What git itself writes when it only reads (the index) is left out.

use serde::{Deserialize, Serialize};

/// Where git keeps what it has yet to do of a rebase, an am, a cherry-pick or a revert that stopped:
/// lines that name commands, and options, which `--continue` obeys. (Of a bisection it runs nothing
/// that it keeps, since git 2.34.)
pub(super) const HALF_WAY: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// How a folder is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that is in it.
    All,
    /// `.git` itself.
    Repository,
    /// The git folder of a submodule.
    Git,
    /// `objects` of a git folder, and `objects/info`.
    Objects,
    ObjectsInfo,
    /// `modules`, or a folder of it: a submodule's name can have several parts.
    Modules,
    /// `worktrees`, and one of them.
    Worktrees,
    Worktree,
}

/// What a folder is for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Role {
    /// All of it is compared, so a new one is a change.
    All,
    /// It is compared by its identity too: most of what it holds is not looked at.
    Repository,
    /// Something in it may be compared; the folder itself is not.
    Way,
}

impl Scope {
    /// Of an entry with a protected name.
    pub(super) fn of_entry(protected: &str) -> Self {
        if protected == ".git" { Self::Repository } else { Self::All }
    }

    /// Of a folder below `modules`, once it is known whether it is a git folder.
    pub(super) fn settled(self, has_head: impl FnOnce() -> bool) -> Self {
        if self == Self::Modules && has_head() { Self::Git } else { self }
    }

    /// Of the entry `name` in such a folder; None where it is not looked at.
    pub(super) fn below(self, name: &str, is_folder: bool) -> Option<Self> {
        match self {
            // A repository in an editor's folder would be as busy as any.
            Self::All if name == ".git" => Some(Self::Repository),
            Self::All => Some(Self::All),
            Self::Repository | Self::Git => match name {
                // The last two are old ways to say where a remote is.
                "config" | "config.worktree" | "commondir" | "gitdir" | "hooks" | "info"
                | "remotes" | "branches" => Some(Self::All),
                _ if HALF_WAY.contains(&name) => Some(Self::All),
                "objects" => Some(Self::Objects),
                "modules" => Some(Self::Modules),
                "worktrees" => Some(Self::Worktrees),
                _ => None,
            },
            Self::Objects => (name == "info").then_some(Self::ObjectsInfo),
            Self::ObjectsInfo => {
                matches!(name, "alternates" | "http-alternates").then_some(Self::All)
            }
            Self::Modules => is_folder.then_some(Self::Modules),
            Self::Worktrees => Some(Self::Worktree),
            Self::Worktree => match name {
                "config.worktree" | "commondir" | "gitdir" => Some(Self::All),
                _ if HALF_WAY.contains(&name) => Some(Self::All),
                // Submodules of a worktree are apart from those of the others.
                "modules" => Some(Self::Modules),
                _ => None,
            },
        }
    }

    pub(super) fn role(self) -> Role {
        match self {
            Self::All => Role::All,
            Self::Repository => Role::Repository,
            _ => Role::Way,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of a path below `.git`; folders with a `HEAD` are marked by a `*`.
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
            "HEAD",
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
    }
}
