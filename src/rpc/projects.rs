//! Other projects around and below a root: which of their files are hidden from clients, and which of them share
//! the root as their workspace.
//!
//! A folder is a project if it contains a settings file, or if its sessions folder contains a journal or a lock.
//! A settings file inside the root may have been written by a command. So it can only hide files inside the root; it
//! never causes anything to be created or written.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::settings::{Config, FILE, FOLDER, has_session_marks};

/// How many levels below a root are searched for projects.
const DEPTH: usize = 4;
/// The maximum number of folders searched, nearest first.
const FOLDERS: usize = 2_000;
/// The maximum number of directory entries read during the search.
const NAMES: usize = 100_000;
/// Large system folders that contain no projects.
const SYSTEM_FOLDERS: [&str; 7] = ["/boot", "/dev", "/proc", "/run", "/sys", "/usr", "/nix"];
/// The folders of a project with default settings.
const STATE_FOLDERS: [&str; 4] = ["inbox", "outbox", "sessions", "approvals"];

/// The projects around and below a root.
#[derive(Debug, Default)]
pub struct Projects {
    /// Their files and folders, which are hidden from clients. They need not exist.
    pub state: Vec<PathBuf>,
    /// The projects whose workspace is the root or contains it.
    pub around: Vec<Config>,
    /// Messages for the person, in complete sentences.
    pub messages: Vec<String>,
}

impl Projects {
    /// Searches around `root`, a canonical path, which the person gave as `asked`. Projects below the root are found
    /// up to four levels deep, within the limits above.
    ///
    /// # Errors
    /// The root belongs to the state of another project, or the settings of a project around it cannot be read.
    pub fn of(root: &Path, asked: &Path, own: &Config) -> Result<Self> {
        let mut projects = Self::default();
        if is_in_workspace(root, own) {
            projects.around.push(own.clone());
        }
        for folder in above(root, asked).into_iter().filter(|folder| *folder != own.project) {
            let Some(config) = around(&folder, root)? else { continue };
            projects.hide(root, &folder, config.state())?;
            if is_in_workspace(root, &config) {
                projects.around.push(config);
            }
        }
        for folder in below(root).into_iter().filter(|folder| *folder != own.project) {
            let state = match Config::load_untrusted(&folder) {
                Ok(config) => config.state(),
                Err(e) => {
                    projects.messages.push(format!(
                        "The settings of the project {} cannot be read ({e}), so its inbox, outbox, sessions and approvals are taken to be where they are without any.",
                        folder.display()
                    ));
                    let named = STATE_FOLDERS.iter().chain([&FILE, &FOLDER]);
                    named.map(|name| folder.join(name)).collect()
                }
            };
            projects.hide(root, &folder, state)?;
            // Taking the lock would keep a person out of every project below the root while it is served, and the lock
            // file may have been made by a command.
            if Lock::is_at_work_in(&folder) {
                projects.messages.push(format!(
                    "Another deaddrop is at work in the project {}, which lies in the root: both write in its workspace, so stop one of them.",
                    folder.display()
                ));
            }
        }
        Ok(projects)
    }

    /// Hides the state of a project.
    fn hide(&mut self, root: &Path, project: &Path, state: Vec<PathBuf>) -> Result<()> {
        let is_trusted = !project.starts_with(root);
        for place in state {
            if place.canonicalize().is_ok_and(|place| root.starts_with(place)) {
                return Err(Error::usage(format!(
                    "--root {}: it is, or is in, {}, where the project {} keeps its own files; choose another folder",
                    root.display(),
                    place.display(),
                    project.display()
                )));
            }
            // Otherwise anyone who can write in the root could hide files elsewhere that commands need.
            if (is_trusted || lies_in(&place, root)) && !self.state.contains(&place) {
                self.state.push(place);
            }
        }
        Ok(())
    }
}

/// The settings of a folder that is the root or contains it, if the folder is a project.
fn around(folder: &Path, root: &Path) -> Result<Option<Config>> {
    let is_marked = is_marked(folder);
    match Config::load_untrusted(folder) {
        Ok(config) => {
            let marked = is_marked
                || config.sessions.starts_with(folder) && has_session_marks(&config.sessions);
            Ok(marked.then_some(config))
        }
        Err(e) if is_marked => Err(Error::usage(format!(
            "--root {}: it lies in the project {}, whose settings cannot be read, so nobody knows what to keep out of reach: {e}",
            root.display(),
            folder.display()
        ))),
        Err(_) => Ok(None),
    }
}

fn is_in_workspace(root: &Path, config: &Config) -> bool {
    config.workspace.canonicalize().is_ok_and(|workspace| root.starts_with(workspace))
}

fn is_marked(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(FILE)).is_ok() || has_session_marks(&folder.join("sessions"))
}

/// Whether a path lies in the root, either by its name or after resolving links. It need not exist.
fn lies_in(place: &Path, root: &Path) -> bool {
    let real = |path: &Path| {
        let mut there = path.ancestors();
        there.find_map(|path| path.canonicalize().ok()).is_some_and(|real| real.starts_with(root))
    };
    real(place) || place.parent().is_some_and(real)
}

/// The root and all folders above it, including those above the path as the person gave it: a workspace may
/// be a link to the root.
fn above(root: &Path, asked: &Path) -> Vec<PathBuf> {
    let asked = std::path::absolute(asked).unwrap_or_default();
    let mut found: Vec<PathBuf> = root.ancestors().map(Path::to_path_buf).collect();
    for folder in asked.ancestors().filter_map(|folder| folder.canonicalize().ok()) {
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

/// The projects below a root, nearest first.
fn below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = VecDeque::from([(root.to_path_buf(), 0)]);
    let (mut folders, mut names) = (0, 0);
    while let Some((folder, depth)) = todo.pop_front() {
        if folders == FOLDERS || names >= NAMES {
            break;
        }
        folders += 1;
        if depth > 0 && is_marked(&folder) {
            found.push(folder.clone());
        }
        let entries = if depth == DEPTH { None } else { fs::read_dir(&folder).ok() };
        let mut inside: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .take(NAMES - names)
            .inspect(|_| names += 1)
            .flatten()
            // Links are not followed: their targets are found where they are, or lie outside the root.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .filter(|path| !SYSTEM_FOLDERS.iter().any(|elsewhere| path == Path::new(elsewhere)))
            .collect();
        // The disk returns entries in no particular order; sorting makes the search repeatable.
        inside.sort_unstable();
        todo.extend(inside.into_iter().map(|path| (path, depth + 1)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(folder: &Path) -> Config {
        Config::load_untrusted(folder).unwrap()
    }

    #[test]
    fn base_directories_are_found_as_deep_as_they_are_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (at, mark) in [
            ("a", "deaddrop.toml"),
            ("b/c", "sessions/journal"),
            ("1/2/3/4", "sessions/.lock"),
            ("1/2/3/4/5", "deaddrop.toml"),
        ] {
            let mark = root.join(at).join(mark);
            fs::create_dir_all(mark.parent().unwrap()).unwrap();
            fs::write(mark, "").unwrap();
        }
        fs::create_dir_all(root.join("d/sessions")).unwrap();
        std::os::unix::fs::symlink("a", root.join("e")).unwrap();
        assert_eq!(below(&root), ["a", "b/c", "1/2/3/4"].map(|at| root.join(at)));
        assert_eq!(below(&root.join("a")), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn a_base_directory_below_is_not_locked_and_who_works_there_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for base in ["busy", "idle"] {
            fs::create_dir(root.join(base)).unwrap();
            fs::write(root.join(base).join(FILE), "").unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let told = || Projects::of(&root, &root, &own(elsewhere.path())).unwrap().messages;
        let lock = Lock::take(&own(&root.join("busy"))).unwrap();
        let all = told();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("busy, which lies in the root: both write"), "{all:?}");
        drop(lock);
        // A child that another test is just starting may keep the lock for a while.
        let begun = std::time::Instant::now();
        while !told().is_empty() && begun.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(told(), [""; 0]);
        // The search has not locked the other project either.
        Lock::take(&own(&root.join("idle"))).unwrap();
    }

    #[test]
    fn a_large_tree_is_not_looked_through() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..FOLDERS {
            fs::create_dir(folder.path().join(format!("{n:04}"))).unwrap();
        }
        for at in ["0000", "1998", "1999"] {
            fs::write(folder.path().join(at).join(FILE), "").unwrap();
        }
        // The root counts as one of the folders that are searched.
        assert_eq!(below(folder.path()), ["0000", "1998"].map(|at| folder.path().join(at)));
    }

    #[test]
    fn settings_within_a_root_hide_nothing_outside_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        let text = "inbox_dir = \"/etc\"\noutbox_dir = \"../../out\"\nsessions_dir = \"../own\"\n";
        fs::write(root.join("sub").join(FILE), text).unwrap();
        let projects = Projects::of(&root, &root, &own(&base)).unwrap();
        let within = |place: &&PathBuf| lies_in(place, &root);
        assert_eq!(
            projects.state.iter().filter(within).count(),
            projects.state.len(),
            "{projects:?}"
        );
        assert!(projects.state.contains(&root.join("sub/../own")), "{projects:?}");
        assert!(projects.around.is_empty() && projects.messages.is_empty());
        // Nor can they make the root part of a project's state without an error.
        let elsewhere = ["outbox", "sessions", "approvals", "workspace"];
        let elsewhere = elsewhere.map(|name| format!("{name}_dir = \"../../{name}\"\n")).concat();
        let text = format!("inbox_dir = \"..\"\n{elsewhere}");
        fs::write(root.join("sub").join(FILE), text).unwrap();
        let told = Projects::of(&root, &root, &own(&base)).unwrap_err().to_string();
        assert!(told.contains("root/sub keeps its own files; choose another folder"), "{told}");
    }
}
