//! Folders with contents where nobody ran `init`: a session there would see nothing of them.

use std::fs;

use super::output::Terminal;
use super::prompt::{Prompt, Said};
use crate::error::{Error, Result};
use crate::settings::{Config, FILE};

/// The folder that is the workspace where nothing says otherwise.
const WORKSPACE: &str = "workspace";
/// So many files and folders of its own make a folder worth working on.
const SEVERAL: usize = 2;

/// Whether the person wants to work on the folder itself, so that it is to be set up; false where that needs no question.
///
/// # Errors
/// They do not, or nobody can be asked.
pub(super) fn is_to_be_set_up(config: &Config, ui: &Terminal) -> Result<bool> {
    let Some((what, kind)) = contents(config) else { return Ok(false) };
    let prompt = Prompt::put(ui, format!("Work on this {kind}? [Y/n] "));
    match prompt.map(Prompt::answer) {
        Some(Said::Yes | Said::Blank) => Ok(true),
        Some(_) => Err(Error::usage(
            "nothing was created; run this in an empty folder, or name a project with -C",
        )),
        None => Err(Error::usage(format!(
            "{} {what}, but is not set up: run `deaddrop init` to work on it, or start in an empty folder",
            config.project.display()
        ))),
    }
}

/// What the folder is and how it is called, where deaddrop has never been in it.
fn contents(config: &Config) -> Option<(&'static str, &'static str)> {
    let Config { project, workspace, inbox, outbox, .. } = config;
    let is_there = |path: &std::path::Path| fs::symlink_metadata(path).is_ok();
    let has_been = config.has_begun() || is_there(&project.join(FILE));
    let is_made = [workspace, inbox, outbox].into_iter().any(|folder| is_there(folder));
    if has_been || is_made || config.guest.is_some() || *workspace != project.join(WORKSPACE) {
        return None;
    }
    if is_there(&project.join(".git")) {
        return Some(("is a git repository", "repository"));
    }
    let visible = |name: &std::ffi::OsStr| !name.as_encoded_bytes().starts_with(b".");
    let entries = fs::read_dir(project).ok()?.filter_map(Result::ok);
    let own = entries.filter(|entry| visible(&entry.file_name())).take(SEVERAL).count();
    (own >= SEVERAL).then_some(("contains files", "folder"))
}
