//! Names that only the person may write, because git, editors, shells and deaddrop run such files or use them as
//! configuration without asking. Pure.
//!
//! A name is protected at any depth, and in any spelling that a file system could treat as equal.

use crate::protocol::{Failure, RelPath};
use crate::settings::{FileName, folded};

/// A set of protected names.
#[derive(Debug, Clone, Default)]
pub struct ProtectedNames {
    names: Vec<FileName>,
}

impl ProtectedNames {
    /// Makes a set. Empty names are ignored.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.iter().filter_map(|name| FileName::new(name)).collect() }
    }

    /// The names as written in the settings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.given.as_str())
    }

    /// The protected name that a file system could treat as equal to this name.
    pub fn name_of(&self, component: &str) -> Option<&str> {
        // Folding a name is not needed if there are no protected names.
        if self.names.is_empty() {
            return None;
        }
        let folded = folded(component);
        self.names.iter().find(|name| name.matches(&folded)).map(|name| name.given.as_str())
    }

    /// The first protected name in a path.
    pub fn name_in(&self, path: &RelPath) -> Option<&str> {
        path.components().find_map(|component| self.name_of(component))
    }

    /// Refuses to write to `path`, which resolves to `real`, if `real` contains a protected name.
    pub fn refuse(&self, path: &RelPath, real: &RelPath) -> Result<(), Failure> {
        let Some(name) = self.name_in(real) else { return Ok(()) };
        let leads = if path == real { String::new() } else { format!(" leads to '{real}'") };
        Err(Failure::rejected(format!(
            "Path is protected: '{path}'{leads}. Only the user may write '{name}': ask them in a MESSAGE to make this change, with its text"
        )))
    }
}

/// The default names.
#[cfg(test)]
pub(crate) fn defaults() -> Vec<String> {
    crate::settings::protected_by_default().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn every_spelling_of_a_name_is_protected() {
        let protected = ProtectedNames::new(&defaults());
        for (spelling, name) in [
            (".git", ".git"),
            (".GIT", ".git"),
            (".gIt", ".git"),
            ("git~1", ".git"),
            ("GIT~2", ".git"),
            (".git.", ".git"),
            (".git . .", ".git"),
            (".git::$INDEX_ALLOCATION", ".git"),
            (".git:x", ".git"),
            (".g\u{200c}it", ".git"),
            ("\u{feff}.git", ".git"),
            (".gitmodules", ".gitmodules"),
            ("GITMOD~1", ".gitmodules"),
            (".vſcode", ".vscode"),
            (".\u{212a}shrc", ".kshrc"),
            ("VSCODE~1", ".vscode"),
            (".MCP.json", ".mcp.json"),
            ("mcp~1.jso", ".mcp.json"),
            (".BASH_profile", ".bash_profile"),
            ("DeadDrop.TOML", "deaddrop.toml"),
            ("DEADDR~1.TOM", "deaddrop.toml"),
            ("deaddrop.toml::$DATA", "deaddrop.toml"),
            (".DeadDrop ", ".deaddrop"),
            ("DEADDR~2", ".deaddrop"),
        ] {
            assert_eq!(protected.name_of(spelling), Some(name), "{spelling:?}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_not() {
        let protected = ProtectedNames::new(&defaults());
        for name in [
            "git",
            ".gitignore",
            ".gitattributes",
            ".github",
            ".gitkeep",
            "a.git",
            ".git2",
            "x.vscode",
            "git~",
            "git~x",
            "git~1x",
            "vscode",
            ".env",
            "mcp.json",
            "bashrc",
            "deaddrop",
            "deaddrop.toml.txt",
            ".deaddropignore",
            ".",
            " ",
            ":git",
            "~1",
        ] {
            assert_eq!(protected.name_of(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_path_is_protected_at_any_depth() {
        let protected = ProtectedNames::new(&defaults());
        let name =
            |path: &str| protected.name_in(&RelPath::parse(path).unwrap()).map(str::to_owned);
        assert_eq!(name("a/b/.Husky/x"), Some(".husky".into()));
        assert_eq!(name("a\\.git\\config"), Some(".git".into()));
        assert_eq!(name("a/.git/../x"), None);
    }

    #[test]
    fn no_names_and_empty_names_protect_nothing() {
        for names in [vec![], vec![String::new(), ".".into(), " ".into()]] {
            let protected = ProtectedNames::new(&names);
            assert!([".git", "x", "~1"].iter().all(|name| protected.name_of(name).is_none()));
        }
    }

    proptest! {
        #[test]
        fn case_and_what_windows_drops_do_not_count(
            name in select(defaults()),
            upper in any::<u32>(),
            end in "[. ]{0,3}",
        ) {
            let spelling: String = name
                .chars()
                .enumerate()
                .map(|(n, c)| if upper & (1 << n) != 0 { c.to_ascii_uppercase() } else { c })
                .collect();
            let protected = ProtectedNames::new(&defaults());
            prop_assert_eq!(protected.name_of(&(spelling + &end)), Some(name.as_str()));
        }

        #[test]
        fn any_name_can_be_judged(names in prop::collection::vec(".{0,8}", 0..4), name in ".{0,12}") {
            let protected = ProtectedNames::new(&names);
            if protected.name_of(&name).is_none() {
                prop_assert!(!names.contains(&name) || folded(&name).is_empty());
            }
        }
    }
}
