//! Checks of a folder before `config set` names it.

use std::path::{Path, PathBuf};

use crate::cli::broad_dir;
use crate::cli::init::can_be_used;
use crate::error::{Error, Result};
use crate::settings::{Setting, find_setting, git_directory};
use crate::text::visible_line;

/// The folder that usually exists before.
const WORKSPACE: &str = "workspace_dir";

/// A warning if the workspace does not exist with `key` set to `words`.
///
/// # Errors
/// The folder is not one, or cannot be made; or, without `force`, the workspace is far more than a project.
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
        // In the person's own file it differs between projects.
        None if Path::new(word).is_absolute() => PathBuf::from(word),
        None => return Ok(None),
    };
    let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let is_workspace = key == WORKSPACE;
    let broad = broad_dir::told(&real).filter(|_| is_workspace && !force);
    let broad = broad.map(|why| format!("{why}; choose another folder, or use --force"));
    let in_git = git_directory(&real).filter(|_| is_workspace).map(|git| {
        format!(
            "{} is a git directory, and git would run hooks that replies write there; name the folder with the project's files",
            git.display()
        )
    });
    if let Some(why) = broad.or(in_git) {
        return Err(Error::config(
            format!("config set {key} {word}"),
            format!("nothing changed: {why}"),
        ));
    }
    if word.trim().is_empty() || folder.is_dir() {
        return Ok(None);
    }
    can_be_used(&folder)
        .map_err(|e| Error::config(format!("config set {key}"), format!("{e}; nothing changed")))?;
    let shown = visible_line(&folder.display().to_string()).into_owned();
    let told = format!("{shown} does not exist; it is created, empty, at the next start");
    Ok(Some(told).filter(|_| key == WORKSPACE))
}
