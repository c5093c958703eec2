//! Finds the project of a command: the one named by `-C`, otherwise the nearest one upwards, otherwise the current
//! folder, which may become one.

use std::fs;
use std::path::{Path, PathBuf};

use super::init::check_folder;
use super::prompt::{Prompt, PromptAnswer};
use crate::error::{Error, Result};
use crate::settings::{self, Config, FILE};

/// How the project was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProjectSource {
    /// `-C` names it, or it is the current folder.
    Direct,
    /// It is a folder above the current one.
    Ancestor,
    /// There is no project. The current folder would become one.
    Missing,
}

/// The current folder and the project.
pub(super) struct Location {
    pub(super) project: PathBuf,
    /// The current folder, if known.
    pub(super) current_dir: Option<PathBuf>,
    pub(super) source: ProjectSource,
}

impl Location {
    /// `named` is the value of `-C`.
    ///
    /// # Errors
    /// The project may be somebody else's: see [`settings::find_project`].
    pub(super) fn find(named: Option<PathBuf>) -> Result<Self> {
        let current_dir = std::env::current_dir();
        if let Some(project) = named {
            return Ok(Self {
                project,
                current_dir: current_dir.ok(),
                source: ProjectSource::Direct,
            });
        }
        let current_dir =
            current_dir.map_err(|e| Error::io("tell where you are, in", ".".as_ref(), e))?;
        let found = settings::find_project(&current_dir)?;
        let source = match &found {
            Some(project) if current_dir.canonicalize().is_ok_and(|here| here == *project) => {
                ProjectSource::Direct
            }
            Some(_) => ProjectSource::Ancestor,
            None => ProjectSource::Missing,
        };
        Ok(Self {
            project: found.unwrap_or_else(|| current_dir.clone()),
            current_dir: Some(current_dir),
            source,
        })
    }
}

/// The default workspace.
const WORKSPACE: &str = "workspace";

/// Asks whether to set up the folder if it has contents and is not set up yet. Returns false if no question is needed.
///
/// # Errors
/// The person declines, or there is no terminal.
pub(super) fn is_to_be_set_up(config: &Config) -> Result<bool> {
    let Some((what, kind)) = contents(config) else { return Ok(false) };
    check_folder(&settings::real_path(&config.project), false)?;
    let prompt = Prompt::show(format!("Work on this {kind}? [Y/n] "));
    match prompt.map(Prompt::answer) {
        Some(PromptAnswer::Yes | PromptAnswer::Blank) => Ok(true),
        Some(_) => Err(Error::usage(
            "nothing was created; run this in an empty folder, or name a project with -C",
        )),
        None => Err(Error::usage(format!(
            "{} {what}, but is not set up: run `deaddrop init` to work on it, or start in an empty folder",
            config.project.display()
        ))),
    }
}

/// The kind of contents and a name for the folder; None if deaddrop was used there, or if it is empty.
fn contents(config: &Config) -> Option<(&'static str, String)> {
    let Config { project, workspace, inbox, outbox, sessions, approvals, .. } = config;
    let is_there = |path: &std::path::Path| fs::symlink_metadata(path).is_ok();
    let has_been = config.has_begun() || is_there(&project.join(FILE));
    let is_made =
        [workspace, inbox, outbox, sessions, approvals].into_iter().any(|folder| is_there(folder));
    if has_been || is_made || config.guest.is_some() || *workspace != project.join(WORKSPACE) {
        return None;
    }
    if is_there(&project.join(".git")) {
        return Some(("is a git repository", "repository".to_owned()));
    }
    // The output file of a shell redirection may already exist. It is empty.
    let is_content = |entry: &fs::DirEntry| {
        !entry.file_name().as_encoded_bytes().starts_with(b".")
            && entry.metadata().map_or(true, |found| found.is_dir() || found.len() > 0)
    };
    fs::read_dir(project).ok()?.filter_map(Result::ok).find(is_content)?;
    let repository = project.ancestors().find(|above| is_there(&above.join(".git")));
    let kind = match repository {
        Some(above) => format!("folder, a part of the repository {}", above.display()),
        None => "folder".to_owned(),
    };
    Some(("contains files", kind))
}

/// Why replies should not get this whole folder; None if they may. `folder` must be canonical.
pub(super) fn is_broad(folder: &Path) -> Option<&'static str> {
    let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
    if folder.parent().is_none() {
        return Some("this is the whole machine, and replies could change all of it");
    }
    let is_home = home.is_some_and(|home| home == folder);
    is_home
        .then_some("this is your home folder, and replies could read and change everything in it")
}
