//! A folder that `config set` is about to name: whether it is there, or can be made.

use std::path::{Path, PathBuf};

use crate::atomic;
use crate::cli::broad_dir;
use crate::error::{Error, Result};
use crate::settings::{Setting, find_setting, git_directory};
use crate::text::visible_line;

/// The one that usually is there before.
const WORKSPACE: &str = "workspace_dir";

/// What the person should know of a workspace that is not there, once `key` is `words`.
///
/// # Errors
/// It names a folder that is none, or that cannot be made; or, without `force`, a workspace that is far
/// more than a project.
pub(super) fn check(
    project: Option<&Path>,
    key: &str,
    words: &[String],
    force: bool,
) -> Result<Option<String>> {
    let is_folder = find_setting(key).is_some_and(Setting::is_folder);
    let (true, [word]) = (is_folder, words) else { return Ok(None) };
    let folder = match project {
        Some(project) => project.join(word),
        // In the person's own file it is another one for each project.
        None if Path::new(word).is_absolute() => PathBuf::from(word),
        None => return Ok(None),
    };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    if let Some(why) = broad_dir::told(&real).filter(|_| key == WORKSPACE && !force) {
        return Err(Error::config(
            format!("config set {key} {word}"),
            format!("{why}, and nothing changed; choose another folder, or use --force"),
        ));
    }
    if key == WORKSPACE
        && let Some(git) = git_directory(&real)
    {
        return Err(Error::config(
            format!("config set {key} {word}"),
            format!(
                "{} is a git directory, and git would run hooks that replies write there; nothing changed: name the folder with the project's files",
                git.display()
            ),
        ));
    }
    if word.trim().is_empty() || folder.is_dir() {
        return Ok(None);
    }
    let shown = visible_line(&folder.display().to_string()).into_owned();
    let refused = |why: String| {
        Err(Error::config(
            format!("config set {key}"),
            format!("{why}, and nothing changed: name a folder, or one that can be created"),
        ))
    };
    // A link that leads nowhere stands there, too, and no folder can be made in its place.
    let stands = |path: &&Path| path.symlink_metadata().is_ok();
    match folder.ancestors().find(stands) {
        Some(there) if !there.is_dir() => {
            let there = visible_line(&there.display().to_string()).into_owned();
            refused(format!("{shown} cannot be used, because {there} is not a folder"))
        }
        Some(there) if !atomic::may_write_in(there) => {
            let there = visible_line(&there.display().to_string()).into_owned();
            refused(format!(
                "{shown} does not exist and cannot be created: you cannot write to {there}"
            ))
        }
        _ if key == WORKSPACE => {
            Ok(Some(format!("{shown} does not exist; it is created, empty, at the next start")))
        }
        _ => Ok(None),
    }
}
