//! What keeps every other command from a project: for `doctor` a row like any other, and the rest
//! is looked at all the same, with nothing run that its settings name.

use std::path::Path;

use super::{Finding, finding};
use crate::cli::locate::{By, Location};
use crate::error::{Error, Result};
use crate::settings::{Config, Consent, FILE, FOLDER, Raw, marked};

/// What was found so.
#[derive(Default)]
pub(in crate::cli) struct Amiss {
    findings: Vec<(&'static str, String)>,
}

impl Amiss {
    /// Notes why the project that was found is refused, and gives it all the same.
    ///
    /// # Errors
    /// It is not to be found at all: what is given.
    pub(in crate::cli) fn project(&mut self, why: Error) -> Result<Location> {
        let here = std::env::current_dir().ok();
        let Some(project) = here.as_deref().and_then(marked) else { return Err(why) };
        self.findings.push(("project", why.to_string()));
        Ok(Location { project, here, by: By::Search })
    }

    /// Notes why its settings cannot be had, and gives those that are in force without its file.
    ///
    /// # Errors
    /// It is not the file: what is given.
    pub(in crate::cli) fn settings(
        &mut self,
        why: Error,
        project: &Path,
        flags: Raw,
    ) -> Result<(Config, Consent)> {
        let Ok(without) = Config::load_without_file(project, flags) else { return Err(why) };
        self.findings.push((
            FILE,
            format!(
                "{why}; the rest of this report assumes defaults, and may be wrong about folders"
            ),
        ));
        Ok(without)
    }

    /// Notes that its settings are gone, but where it is refused as somebody else's: who made what looks so
    /// is not known then, and `init` is not what helps.
    pub(in crate::cli) fn lost(&mut self, why: &Error) {
        if !self.is_any() {
            self.findings.push(("project", why.to_string()));
        }
    }

    /// What is said of what the settings open, where their file is not known.
    pub(super) fn of_settings(&self) -> Option<Finding> {
        let is_unread = self.findings.iter().any(|(what, _)| *what == FILE);
        let told = "unknown, because deaddrop.toml cannot be read (see above)";
        is_unread.then(|| Finding { spare: true, ..finding("settings", Err(told.to_owned())) })
    }

    /// Whether the project is somebody else's, or its settings are not known: nothing of it is to
    /// be run then.
    pub(super) fn is_any(&self) -> bool {
        !self.findings.is_empty()
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        self.findings.iter().map(|(what, told)| finding(what, Err(told.clone())))
    }
}

/// What everybody may write of the settings of a project, and of the folder around what is
/// deaddrop's own: who can write to that can put another sessions folder into it.
pub(super) fn open_to_all(project: &Path) -> Vec<Finding> {
    let own = [(FILE, project.join(FILE)), (FOLDER, project.join(FOLDER))];
    own.into_iter()
        .filter_map(|(what, path)| Some(finding(what, Err(super::around::open_to_all(&path)?))))
        .collect()
}
