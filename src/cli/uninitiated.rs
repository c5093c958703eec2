//! `new` in a project where nobody ran `init`: it would work on an empty folder there, and the model would
//! see nothing of the project.

use std::fs;

use super::Context;
use crate::error::{self, Error};
use crate::settings::{Config, FILE};

/// The folder that is the workspace where nothing says otherwise.
const WORKSPACE: &str = "workspace";
/// So many files and folders of its own make a folder a project.
const SEVERAL: usize = 2;

/// Says so before anything is made, and asks at a terminal. Nobody who cannot answer is kept from it.
///
/// # Errors
/// The person does not want it.
pub(super) fn heed(context: &Context) -> error::Result<()> {
    let Context { config, talk, .. } = context;
    let Some(what) = project(config) else { return Ok(()) };
    talk.warning(&format!(
        "{} {what}, but this session would use an empty folder in it, {WORKSPACE}/, and see none of that. `deaddrop init` makes sessions work on the folder itself",
        config.project.display()
    ));
    match talk.agreement("Start with the empty folder? [y/N] ") {
        Some(false) => {
            Err(Error::usage("nothing was created; run `deaddrop init`, then `deaddrop new` again"))
        }
        Some(true) | None => Ok(()),
    }
}

/// What the project is besides, where deaddrop has never been in it.
fn project(config: &Config) -> Option<&'static str> {
    let Config { project, workspace, inbox, outbox, .. } = config;
    let is_there = |path: &std::path::Path| fs::symlink_metadata(path).is_ok();
    let has_been = config.has_begun() || is_there(&project.join(FILE));
    let is_made = [workspace, inbox, outbox].into_iter().any(|folder| is_there(folder));
    if has_been || is_made || config.guest.is_some() || *workspace != project.join(WORKSPACE) {
        return None;
    }
    if is_there(&project.join(".git")) {
        return Some("is a git repository");
    }
    let visible = |name: &std::ffi::OsStr| !name.as_encoded_bytes().starts_with(b".");
    let entries = fs::read_dir(project).ok()?.filter_map(Result::ok);
    let own = entries.filter(|entry| visible(&entry.file_name())).take(SEVERAL).count();
    (own >= SEVERAL).then_some("has files of its own")
}
