//! Projects that a root has to do with and that are not the server's own: what of them is
//! hidden, and whose lock is to be had.
//!
//! A folder is a project if settings stand in it, or a journal or a lock where its sessions are.
//! Settings that lie within the root may have been written by a command: they keep something from
//! being served, and have nothing made or written anywhere.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::settings::{Config, FILE, FOLDER, has_session_marks};

/// So deep below a root projects are looked for.
const DEPTH: usize = 4;
/// So many folders are looked into for that, the nearest first.
const FOLDERS: usize = 2_000;
/// So many names are read for that.
const NAMES: usize = 100_000;
/// Where nobody's project is, and much else.
const ELSEWHERE: [&str; 7] = ["/boot", "/dev", "/proc", "/run", "/sys", "/usr", "/nix"];
/// The folders of a project, as they are called where nothing else is set.
const FOLDERS_OF_A_BASE: [&str; 4] = ["inbox", "outbox", "sessions", "approvals"];

/// What there is around and below a root.
#[derive(Debug, Default)]
pub struct Projects {
    /// Files and folders of theirs, to be kept from whoever connects. They need not exist.
    pub state: Vec<PathBuf>,
    /// Those in whose workspace the root is, or lies.
    pub around: Vec<Config>,
    /// What a person should know, in whole sentences.
    pub told: Vec<String>,
}

impl Projects {
    /// Looks around `root`, which is canonical and was `asked` for by that path. Those below it are
    /// found four folders deep, as far as that is quickly done.
    ///
    /// # Errors
    /// The root is state of one of them, or the settings of one around it cannot be read.
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
                    projects.told.push(format!(
                        "The settings of the project {} cannot be read ({e}), so its inbox, outbox, sessions and approvals are taken to be where they are without any.",
                        folder.display()
                    ));
                    let named = FOLDERS_OF_A_BASE.iter().chain([&FILE, &FOLDER]);
                    named.map(|name| folder.join(name)).collect()
                }
            };
            projects.hide(root, &folder, state)?;
            // A lock would keep a person out of all of theirs for as long as somebody serves what holds
            // them, and may be one that a command has made.
            if Lock::is_at_work_in(&folder) {
                projects.told.push(format!(
                    "Another deaddrop is at work in the project {}, which lies in the root: both write in its workspace, so stop one of them.",
                    folder.display()
                ));
            }
        }
        Ok(projects)
    }

    /// Hides what is of the project `base`.
    fn hide(&mut self, root: &Path, base: &Path, state: Vec<PathBuf>) -> Result<()> {
        let is_trusted = !base.starts_with(root);
        for place in state {
            if place.canonicalize().is_ok_and(|place| root.starts_with(place)) {
                return Err(Error::usage(format!(
                    "--root {}: it is, or lies in, {}, which the project {} has for itself; choose another folder",
                    root.display(),
                    place.display(),
                    base.display()
                )));
            }
            // Else whoever writes in the root could hide from commands what they need.
            if (is_trusted || lies_in(&place, root)) && !self.state.contains(&place) {
                self.state.push(place);
            }
        }
        Ok(())
    }
}

/// The settings of a folder that the root is or lies in, if it is a project.
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

/// Whether a place lies in the root, by its name or where it really is. It need not exist.
fn lies_in(place: &Path, root: &Path) -> bool {
    let real = |path: &Path| {
        let mut there = path.ancestors();
        there.find_map(|path| path.canonicalize().ok()).is_some_and(|real| real.starts_with(root))
    };
    real(place) || place.parent().is_some_and(real)
}

/// The root and the folders above it, also those on the way by which it was asked for: a workspace may
/// be a link to it.
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

/// Projects below a root, the nearest first.
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
            // Links are not followed: what they lead to is found where it is, or not in the root.
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .filter(|path| !ELSEWHERE.iter().any(|elsewhere| path == Path::new(elsewhere)))
            .collect();
        // The disk gives them in no order, and the same are to be found each time.
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
        let told = || Projects::of(&root, &root, &own(elsewhere.path())).unwrap().told;
        let lock = Lock::take(&own(&root.join("busy"))).unwrap();
        let all = told();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("busy, which lies in the root: both write"), "{all:?}");
        drop(lock);
        // A child that another test starts at this moment can hold the lock for a while.
        let begun = std::time::Instant::now();
        while !told().is_empty() && begun.elapsed().as_secs() < 20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(told(), [""; 0]);
        // Nor does it keep anybody out meanwhile.
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
        // The root is one of the folders that are looked into.
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
        assert!(projects.around.is_empty() && projects.told.is_empty());
        // Nor do they make the root somebody's own without a word.
        let elsewhere = ["outbox", "sessions", "approvals", "workspace"];
        let elsewhere = elsewhere.map(|name| format!("{name}_dir = \"../../{name}\"\n")).concat();
        let text = format!("inbox_dir = \"..\"\n{elsewhere}");
        fs::write(root.join("sub").join(FILE), text).unwrap();
        let told = Projects::of(&root, &root, &own(&base)).unwrap_err().to_string();
        assert!(told.contains("root/sub has for itself; choose another folder"), "{told}");
    }
}
