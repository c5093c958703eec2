//! What git makes of the settings that `init` writes.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::atomic::read_regular;
use crate::program::Programs;
use crate::settings::{self, FILE};

/// What git makes of the settings of a project.
pub(super) enum InGit {
    /// There is no repository, or no git.
    No,
    /// It ignores them, now by a line in this file, or by rules that were there.
    Unseen(Option<PathBuf>),
    /// It sees them, for this reason.
    Seen(String),
}

/// Has git ignore the settings, in this clone alone, unless it tracks them: they are this machine's, and a
/// command's `git add -A` would take them along.
pub(super) fn unseen_by_git(folder: &Path, programs: &Programs) -> InGit {
    let git = |arguments: &[&str]| {
        let told = settings::ask_git(programs, folder, arguments).ok()??;
        Some(String::from_utf8_lossy(&told).trim_end_matches('\n').to_owned())
    };
    let (Some(exclude), Some(prefix), Some(repository)) = (
        git(&["rev-parse", "--git-path", "info/exclude"]),
        git(&["rev-parse", "--show-prefix"]),
        git(&["rev-parse", "--git-common-dir"]),
    ) else {
        return InGit::No;
    };
    if git(&["ls-files", "--error-unmatch", "--", FILE]).is_some() {
        return InGit::Seen("it is tracked".to_owned());
    }
    let exclude = folder.join(exclude);
    if git(&["check-ignore", "--quiet", "--", FILE]).is_some() {
        return InGit::Unseen(None);
    }
    // A pattern's own characters in the names of folders above it are taken as they are.
    let mut line = String::from("/");
    for c in prefix.chars().chain(FILE.chars()) {
        if "*?[\\ ".contains(c) {
            line.push('\\');
        }
        line.push(c);
    }
    // What a link in the repository leads to is no rule of its own.
    if settings::real(&exclude) != settings::real(&folder.join(repository)).join("info/exclude") {
        return InGit::Seen(format!("{} is a link", exclude.display()));
    }
    let text = match read_regular(&exclude, 1 << 20) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => return InGit::Seen(format!("{} cannot be read ({e})", exclude.display())),
    };
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let written = exclude.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = fs::File::options().append(true).create(true).open(&exclude)?;
        file.write_all(format!("{gap}{line}\n").as_bytes())
    });
    match written {
        Ok(()) => InGit::Unseen(Some(exclude)),
        Err(e) => InGit::Seen(format!("{} cannot be written: {e}", exclude.display())),
    }
}
