//! Which files a listing leaves out: `.gitignore`, `.ignore` and `.deaddropignore`, in any folder
//! of the workspace (never above it), with or without a git repository. They bound what is listed,
//! never what may be read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::system::Entries;

/// The files that hold rules; a later one has the last word.
const FILES: [&str; 3] = [".gitignore", ".ignore", ".deaddropignore"];

/// The rules that stand in one folder, and those of the folders above it.
pub(super) struct Rules {
    matcher: Gitignore,
    above: Option<Arc<Rules>>,
}

/// The rules of a folder that has some of its own. `read` gives the contents of a file in it.
pub(super) fn here(
    prefix: &str,
    above: Option<&Arc<Rules>>,
    entries: &Entries,
    read: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Option<Arc<Rules>> {
    if !entries.iter().any(|(name, _)| FILES.iter().any(|file| file.as_bytes() == name)) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(PathBuf::from(prefix.trim_end_matches('/')));
    for file in FILES {
        let Ok(text) = read(file.as_bytes()) else { continue };
        for line in String::from_utf8_lossy(&text).lines() {
            // A pattern that cannot be read ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
    }
    let matcher = builder.build().ok()?;
    Some(Arc::new(Rules { matcher, above: above.cloned() }))
}

impl Rules {
    /// Whether the entry `name` of the folder `prefix` is left out; the nearest rules decide.
    pub(super) fn ignores(&self, prefix: &str, name: &str, is_folder: bool) -> bool {
        let path = format!("{prefix}{name}");
        let mut rules = Some(self);
        while let Some(these) = rules {
            match these.matcher.matched(Path::new(&path), is_folder) {
                Match::None => rules = these.above.as_deref(),
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}
