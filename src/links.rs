//! Finds the symbolic links on a path.

use std::fs;
use std::path::{Path, PathBuf};

/// The most links that are followed; the same limit as in the kernel.
const MAX_LINKS: usize = 40;

/// A symbolic link on a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The path of the link. None of its other components is a link.
    pub(crate) at: PathBuf,
    /// The target of the link.
    pub(crate) to: PathBuf,
    /// The components after the link.
    pub(crate) rest: PathBuf,
}

/// All links that resolving a path follows.
pub(crate) fn links_on_path(path: &Path) -> Vec<Link> {
    follow(path).0
}

/// All links that resolving a path follows, and the resolved path, which need not exist.
pub(crate) fn follow(path: &Path) -> (Vec<Link>, PathBuf) {
    let mut links = Vec::new();
    let mut here = PathBuf::new();
    let mut left: Vec<PathBuf> =
        path.components().rev().map(|part| part.as_os_str().into()).collect();
    while let Some(part) = left.pop() {
        if part == Path::new("..") {
            here.pop();
            continue;
        }
        here.push(&part);
        if let Ok(to) = fs::read_link(&here)
            && links.len() < MAX_LINKS
        {
            let rest = left.iter().rev().collect();
            left.extend(to.components().rev().map(|part| part.as_os_str().into()));
            links.push(Link { at: here.clone(), to, rest });
            here.pop();
        }
    }
    (links, here)
}
