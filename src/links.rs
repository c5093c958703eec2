//! Links on the way to a path.

use std::fs;
use std::path::{Path, PathBuf};

/// As many as the kernel follows.
const MOST: usize = 40;

/// A link on the way to a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Where it is; no part of this is a link.
    pub(crate) at: PathBuf,
    /// What it says.
    pub(crate) to: PathBuf,
    /// What comes after it.
    pub(crate) rest: PathBuf,
}

/// All links that are followed on the way to a path.
pub(crate) fn on_the_way(path: &Path) -> Vec<Link> {
    follow(path).0
}

/// The same, and where they lead, whether or not anything is there.
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
            && links.len() < MOST
        {
            let rest = left.iter().rev().collect();
            left.extend(to.components().rev().map(|part| part.as_os_str().into()));
            links.push(Link { at: here.clone(), to, rest });
            here.pop();
        }
    }
    (links, here)
}
