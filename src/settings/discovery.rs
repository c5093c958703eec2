//! Which project is meant where none is named: the nearest one upwards, as git looks for a
//! repository. Its settings can name programs, so it must be the person's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::registry::whose_replies_write;
use super::{Config, FILE, FOLDER, real};
use crate::error::{Error, Result};
use crate::text::shell_word;

/// The folders of a project without settings, as they are called then.
const FOLDERS: [&str; 3] = ["inbox", "outbox", "sessions"];
/// What stands in the folder of sessions once somebody has been at work there.
pub(super) const MARKS: [&str; 2] = ["journal", ".lock"];

/// The nearest project from `here` upwards; None where there is none. A folder is one if it
/// holds `deaddrop.toml`, or `inbox`, `outbox` and `sessions` with a journal or a lock in the last.
/// The search ends where another file system begins, as git's does.
///
/// # Errors
/// `here` cannot be looked at; or what was found belongs to somebody else, keeps its sessions elsewhere
/// behind a link, or lies where replies of another project may write: then nobody knows who made
/// it, and it has to be named.
pub fn find(here: &Path) -> Result<Option<PathBuf>> {
    let here = here.canonicalize().map_err(|e| Error::io("open the folder", here, e))?;
    let Some(project) = nearest(&here) else { return Ok(None) };
    own(project)?;
    unlinked(project)?;
    unwritten(project)?;
    Ok(Some(project.to_owned()))
}

/// The nearest folder from `here` upwards that looks like a project, whoever it belongs to.
pub fn marked(here: &Path) -> Option<PathBuf> {
    nearest(&here.canonicalize().ok()?).map(Path::to_owned)
}

/// The nearest folder from `here` upwards, a canonical path, that looks like a project, whoever it
/// belongs to.
pub(super) fn nearest(here: &Path) -> Option<&Path> {
    within_one_file_system(here).find(|folder| is_base(folder))
}

/// Whether a folder looks like a project.
fn is_marked(folder: &Path) -> bool {
    let is_folder = |name: &&str| folder.join(name).is_dir();
    let has = |mark: &&str| folder.join("sessions").join(mark).is_file();
    fs::symlink_metadata(folder.join(FILE)).is_ok()
        || (FOLDERS.iter().all(is_folder) && MARKS.iter().any(has))
        || has_lost_settings(folder)
}

/// The same, but for deaddrop's own folder in a project, which looks like one.
fn is_base(folder: &Path) -> bool {
    let holds = |above: &Path| above.join(FILE).is_file() || has_lost_settings(above);
    let is_own = folder.file_name() == Some(FOLDER.as_ref()) && folder.parent().is_some_and(holds);
    !is_own && is_marked(folder)
}

/// Whether a folder holds what `init` makes but for the settings, as `git clean -x` leaves it: they alone
/// say that it is a project, and where its sessions are.
pub fn has_lost_settings(folder: &Path) -> bool {
    let own = folder.join(FOLDER);
    let is_there = |path: PathBuf| fs::symlink_metadata(path).is_ok();
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    // A project of that name has these in itself.
    let is_base = [FILE, "workspace"].iter().any(|name| is_there(own.join(name)));
    !is_there(folder.join(FILE)) && is_folder(&own) && is_folder(&own.join("sessions")) && !is_base
}

/// Whether somebody has been at work with this folder of sessions.
pub fn has_marks(sessions: &Path) -> bool {
    MARKS.iter().any(|mark| fs::symlink_metadata(sessions.join(mark)).is_ok())
}

impl Config {
    /// Whether a session or a run has begun with these settings.
    pub fn has_begun(&self) -> bool {
        has_marks(&self.sessions)
    }

    /// Lets those pass that have not lost the settings which say where their sessions are: another project would begin beside these.
    ///
    /// # Errors
    /// They have.
    pub fn has_its_settings(&self) -> Result<()> {
        let project = &self.project;
        if !has_lost_settings(project) || self.sessions == project.join(FOLDER).join("sessions") {
            return Ok(());
        }
        let problem = format!(
            "its {FILE} is gone (`git clean -x` removes it), but its sessions are in {FOLDER}/: `deaddrop init {}` writes {FILE} again and keeps them; repeat your other settings",
            shell_word(&project.display().to_string())
        );
        Err(Error::config(project.display().to_string(), problem))
    }
}

/// The projects further up than `folder`, the nearest first, whoever they belong to: replies to
/// anybody's sessions write. Here the end of a file system is none: a workspace can be another.
///
/// # Errors
/// One of them has settings that cannot be read, so nobody knows what its workspace is.
pub fn above(folder: &Path) -> Result<Vec<Config>> {
    let marked = folder.ancestors().skip(1).filter(|above| is_base(above));
    marked.map(Config::load_untrusted).collect()
}

/// A folder and those above it that lie in the same file system.
#[cfg(unix)]
fn within_one_file_system(here: &Path) -> impl Iterator<Item = &Path> {
    use std::os::unix::fs::MetadataExt;
    let device = |folder: &Path| fs::metadata(folder).ok().map(|found| found.dev());
    let at = device(here);
    here.ancestors().take_while(move |folder| device(folder) == at)
}

#[cfg(not(unix))]
fn within_one_file_system(here: &Path) -> impl Iterator<Item = &Path> {
    here.ancestors()
}

/// Refuses a project that a reply may have made.
fn unwritten(project: &Path) -> Result<()> {
    // What this shell sets need not be what the one further up is served with.
    let by_file =
        |above: &Config| Config::of_file(&above.project).is_ok_and(|own| own.works_in(project));
    let works_here = |above: &Config| above.works_in(project) || by_file(above);
    let found = above(project).map(|above| above.into_iter().find(works_here));
    let found = match found {
        Ok(None) => Ok(whose_replies_write(project)?),
        found => found.map(|above| above.map(|above| above.project)),
    };
    let why = match found {
        Ok(None) => return Ok(()),
        Ok(Some(other)) => {
            format!(
                "lies in the workspace of {}, where replies and commands write",
                other.display()
            )
        }
        Err(e) => format!("lies below another, whose settings cannot be read ({e})"),
    };
    Err(Error::config(
        project.display().to_string(),
        format!("it looks like a project, but {why}: name one with -C"),
    ))
}

/// Refuses one whose sessions are others' behind a link.
fn unlinked(project: &Path) -> Result<()> {
    let sessions = project.join("sessions");
    let leads =
        sessions.is_symlink().then(|| real(&sessions)).filter(|to| !to.starts_with(project));
    let Some(to) = leads else { return Ok(()) };
    Err(Error::config(
        sessions.display().to_string(),
        format!(
            "it is a link that leads out of the folder, to {}, so it is unclear whose sessions are meant: name the project with -C",
            to.display()
        ),
    ))
}

/// Refuses a project that others than the person and root have a hand in.
#[cfg(unix)]
fn own(project: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let trusted = trusted();
    let settings = project.join(FILE);
    let mut places = vec![project.to_owned(), settings];
    places.extend(FOLDERS.iter().chain(&["approvals"]).map(|name| project.join(name)));
    // Wrong settings are told by whoever reads them.
    if let Ok(Config { inbox, outbox, sessions, approvals, .. }) = Config::of_file(project) {
        let set = [inbox, outbox, sessions, approvals];
        places.extend(set.into_iter().filter(|place| place.parent() != Some(project)));
    }
    // A link belongs to whoever made it, and what it leads to to somebody else.
    let looked_at = places
        .iter()
        .flat_map(|path| [(path, fs::symlink_metadata(path)), (path, fs::metadata(path))]);
    for (path, found) in looked_at {
        let owner = match found {
            Ok(found) => found.uid(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            // What cannot be looked at cannot be used, and is told then.
            Err(_) if path.file_name() != Some(FILE.as_ref()) => continue,
            Err(e) => return Err(Error::io("look at", path, e)),
        };
        if !trusted.contains(&owner) {
            return Err(Error::config(
                path.display().to_string(),
                format!(
                    "it belongs to another user ({owner}), and its settings can name programs that run with your rights; if you trust it, use -C {}",
                    shell_word(&project.display().to_string())
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn own(_base: &Path) -> Result<()> {
    Ok(())
}

/// Whose files count as the person's: theirs, root's, and, as root through `sudo`, those of whoever
/// called it.
#[cfg(unix)]
fn trusted() -> Vec<u32> {
    let me = rustix::process::geteuid();
    let mut trusted = vec![0, me.as_raw()];
    if me.is_root() {
        let caller = std::env::var("SUDO_UID").ok().and_then(|id| id.parse::<u32>().ok());
        trusted.extend(caller);
    }
    trusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::create_dir_all(path.join("p/a/b")).unwrap();
        (folder, path)
    }

    #[test]
    fn the_nearest_base_directory_is_found_by_its_settings_or_its_sessions() {
        let (_folder, path) = scene();
        let (project, deep) = (path.join("p"), path.join("p/a/b"));
        assert_eq!(find(&deep).unwrap(), None);
        for name in FOLDERS {
            fs::create_dir(path.join(name)).unwrap();
        }
        assert_eq!(find(&deep).unwrap(), None, "folders of that name are many a person's");
        fs::write(path.join("sessions/journal"), "").unwrap();
        assert_eq!(find(&deep).unwrap(), Some(path.clone()));
        fs::write(project.join(FILE), "").unwrap();
        assert_eq!(find(&deep).unwrap(), Some(project.clone()));
        assert_eq!(find(&project).unwrap(), Some(project));
        assert_eq!(find(&path).unwrap(), Some(path));
    }

    #[test]
    fn within_its_own_folder_the_base_directory_around_it_is_meant() {
        let (_folder, path) = scene();
        let own = path.join("p").join(FOLDER);
        for name in FOLDERS {
            fs::create_dir_all(own.join(name)).unwrap();
        }
        fs::write(own.join("sessions/.lock"), "").unwrap();
        assert_eq!(find(&own.join("inbox")).unwrap(), Some(path.join("p")));
        fs::create_dir(own.join("workspace")).unwrap();
        assert_eq!(find(&own.join("inbox")).unwrap(), Some(own.clone()), "one of that name");
        fs::write(path.join("p").join(FILE), "workspace_dir = '.'").unwrap();
        for name in ["inbox", "sessions", "."] {
            assert_eq!(find(&own.join(name)).unwrap(), Some(path.join("p")));
        }
    }

    #[test]
    fn what_replies_may_have_made_is_refused() {
        let (_folder, path) = scene();
        let project = path.join("p");
        fs::write(project.join(FILE), "workspace_dir = '.'").unwrap();
        fs::write(project.join("a").join(FILE), "").unwrap();
        let told = find(&project.join("a/b")).unwrap_err();
        assert_eq!(told.exit_status(), 2);
        let told = told.to_string();
        assert!(told.starts_with(&project.join("a").display().to_string()), "{told}");
        assert!(told.contains(&format!("the workspace of {}", project.display())), "{told}");
        assert_eq!(find(&project).unwrap().as_deref(), Some(&*project));

        fs::write(project.join(FILE), "workspace_dir = 'b'").unwrap();
        assert_eq!(find(&project.join("a/b")).unwrap(), Some(project.join("a")));
        fs::write(project.join(FILE), "nonsense").unwrap();
        let told = find(&project.join("a/b")).unwrap_err().to_string();
        assert!(told.contains("cannot be read") && told.contains("p/deaddrop.toml:1"), "{told}");
    }

    #[cfg(unix)]
    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        use std::os::unix::fs::{chown, lchown, symlink};
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: files of another user, which only root can make");
            return;
        }
        let (_folder, path) = scene();
        let settings = path.join("p").join(FILE);
        let refused = || {
            let told = find(&path.join("p/a")).unwrap_err();
            assert_eq!(told.exit_status(), 2);
            assert!(told.to_string().contains("belongs to another user (60123)"), "{told}");
            assert!(told.to_string().contains("-C "), "{told}");
        };
        fs::write(&settings, "").unwrap();
        chown(&settings, Some(60_123), None).unwrap();
        refused();
        fs::rename(&settings, path.join("theirs")).unwrap();
        symlink(path.join("theirs"), &settings).unwrap();
        refused();
        chown(path.join("theirs"), Some(0), None).unwrap();
        assert!(find(&path.join("p/a")).unwrap().is_some());
        lchown(&settings, Some(60_123), None).unwrap();
        refused();
        lchown(&settings, Some(0), None).unwrap();
        chown(path.join("p"), Some(60_123), None).unwrap();
        refused();
    }
}
