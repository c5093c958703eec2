//! All that lies below a folder that is moved, whatever rules leave out.

use std::io;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use crate::workspace::Workspace;
use crate::workspace::names::escaped_os;

/// Deeper folders are not looked at: each one on the way is held open.
const DEPTH: usize = 200;

/// The paths of all that lies below a folder, escaped; but for git's own and deaddrop's.
pub(super) fn below(workspace: &Workspace, path: &str) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    collect(workspace, &workspace.folder_at(path)?, path, 0, &mut all)?;
    Ok(all)
}

fn collect(
    workspace: &Workspace,
    folder: &Dir,
    path: &str,
    depth: usize,
    all: &mut Vec<String>,
) -> io::Result<()> {
    for entry in folder.entries()? {
        let name = entry?.file_name();
        let below = format!("{path}/{}", escaped_os(&name));
        let found = folder.symlink_metadata(&name)?;
        if name == ".git" || workspace.is_state(&below, &found) {
            continue;
        }
        all.push(below.clone());
        if found.is_dir() && depth < DEPTH {
            collect(workspace, &folder.open_dir_nofollow(&name)?, &below, depth + 1, all)?;
        }
    }
    Ok(())
}
