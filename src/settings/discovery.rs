//! Finds the project if there is no `-C`: the nearest folder upwards, as git finds a repository. A project's settings
//! can name programs, so the project must belong to the person.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::registry::{exists, project_writing_to};
use super::{Config, FILE, FOLDER};
use crate::error::{Error, Result};
use crate::text::shell_word;

/// The default folders. They identify a project that has no settings file.
const FOLDERS: [&str; 3] = ["inbox", "outbox", "sessions"];
/// Files that a sessions folder contains after its first use.
pub(super) const SESSION_MARKS: [&str; 2] = ["journal", ".lock"];

/// Finds the nearest project from `here` upwards. A folder is a project if it contains `deaddrop.toml`, or if it
/// contains `inbox`, `outbox` and `sessions`, and `sessions` has a journal or a lock. Like git, the search does not
/// leave the file system.
///
/// # Errors
/// `here` cannot be read. Or the project belongs to another user, or replies of another project can write to it. Then
/// the person must name the project.
pub fn find_project(here: &Path) -> Result<Option<PathBuf>> {
    let here = here.canonicalize().map_err(|e| Error::io("open the folder", here, e))?;
    let Some(project) = nearest_candidate(&here) else { return Ok(None) };
    check_owner(&project)?;
    check_not_written_by_replies(&project)?;
    Ok(Some(project))
}

/// The nearest folder from `here` upwards that looks like a project, regardless of its owner.
pub fn nearest_candidate(here: &Path) -> Option<PathBuf> {
    let device = |folder: &Path| fs::metadata(folder).ok().map(|found| found.dev());
    let here = here.canonicalize().ok()?;
    let mut within_one = here.ancestors().take_while(|folder| device(folder) == device(&here));
    within_one.find(|folder| is_project(folder)).map(Path::to_owned)
}

/// Whether a folder looks like a project. deaddrop's own folder in a project also does.
fn looks_like_project(folder: &Path) -> bool {
    let is_folder = |name: &&str| folder.join(name).is_dir();
    let has = |mark: &&str| folder.join("sessions").join(mark).is_file();
    exists(&folder.join(FILE))
        || (FOLDERS.iter().all(is_folder) && SESSION_MARKS.iter().any(has))
        || has_lost_settings(folder)
}

/// Whether a folder looks like a project and is not deaddrop's own folder in a project.
fn is_project(folder: &Path) -> bool {
    let holds = |above: &Path| above.join(FILE).is_file() || has_lost_settings(above);
    let is_own = folder.file_name() == Some(FOLDER.as_ref()) && folder.parent().is_some_and(holds);
    !is_own && looks_like_project(folder)
}

/// Whether a folder contains everything that `init` makes except the settings file, as after `git clean -x`. Only that
/// file says where the sessions are.
pub fn has_lost_settings(folder: &Path) -> bool {
    let own = folder.join(FOLDER);
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    // Either of these means that the folder is a project with the name `.deaddrop`.
    let is_project = [FILE, "workspace"].iter().any(|name| exists(&own.join(name)));
    !exists(&folder.join(FILE))
        && is_folder(&own)
        && is_folder(&own.join("sessions"))
        && !is_project
}

/// Whether this sessions folder has been used.
pub fn has_session_marks(sessions: &Path) -> bool {
    SESSION_MARKS.iter().any(|mark| exists(&sessions.join(mark)))
}

impl Config {
    /// Whether a session or a run has begun with these settings.
    pub fn has_begun(&self) -> bool {
        has_session_marks(&self.sessions)
    }

    /// Rejects a project that lost the settings file with the place of its sessions. Otherwise a second sessions folder
    /// would be created next to the first.
    pub fn check_settings_file(&self) -> Result<()> {
        let project = &self.project;
        if !has_lost_settings(project) || self.sessions == project.join(FOLDER).join("sessions") {
            return Ok(());
        }
        let problem = format!(
            "its {FILE} is gone (`git clean -x` removes it), but its sessions are still in {FOLDER}/: `deaddrop init {}` writes {FILE} again and keeps them; repeat your other settings",
            shell_word(&project.display().to_string())
        );
        Err(Error::config(project.display(), problem))
    }
}

/// The projects above `folder`, nearest first, regardless of owner and file system. Their replies may be able to write
/// here.
///
/// # Errors
/// The settings of such a project cannot be read, so its workspace is unknown.
pub fn projects_above(folder: &Path) -> Result<Vec<Config>> {
    let marked = folder.ancestors().skip(1).filter(|above| is_project(above));
    marked.map(Config::load_untrusted).collect()
}

/// Rejects a project that a reply may have created.
fn check_not_written_by_replies(project: &Path) -> Result<()> {
    let works_here = |above: &Config| above.works_in(project);
    let why = match projects_above(project).map(|above| above.into_iter().find(works_here)) {
        Err(e) => format!("is below another one, whose settings cannot be read ({e})"),
        Ok(found) => {
            let found = found.map(|above| above.project);
            let Some(other) =
                found.map_or_else(|| project_writing_to(project), |it| Ok(Some(it)))?
            else {
                return Ok(());
            };
            format!("is in the workspace of {}, where replies and commands write", other.display())
        }
    };
    Err(Error::config(
        project.display(),
        format!("it looks like a project, but {why}; name a project with -C"),
    ))
}

/// Rejects a project with files of other users, except root.
fn check_owner(project: &Path) -> Result<()> {
    let trusted = trusted_users();
    let settings = project.join(FILE);
    let mut places = vec![project.to_owned(), settings];
    places.extend(FOLDERS.iter().chain(&["approvals"]).map(|name| project.join(name)));
    // Invalid settings are reported later.
    if let Ok(Config { inbox, outbox, sessions, approvals, .. }) = Config::load_untrusted(project) {
        places.extend([inbox, outbox, sessions, approvals]);
    }
    // A link and its target can belong to different users.
    let looked_at = places
        .iter()
        .flat_map(|path| [(path, fs::symlink_metadata(path)), (path, fs::metadata(path))]);
    for (path, found) in looked_at {
        let owner = match found {
            Ok(found) => found.uid(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            // Other unreadable files are reported when they are used.
            Err(_) if path.file_name() != Some(FILE.as_ref()) => continue,
            Err(e) => return Err(Error::io("look at", path, e)),
        };
        if !trusted.contains(&owner) {
            return Err(Error::config(
                path.display(),
                format!(
                    "it belongs to another user ({owner}), and its settings can name programs that run with your rights; if you trust it, use -C {}",
                    shell_word(&project.display().to_string())
                ),
            ));
        }
    }
    Ok(())
}

/// The users whose files count as the person's: the current user, root, and with `sudo` the user who called it.
fn trusted_users() -> Vec<u32> {
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
    fn the_nearest_project_is_found_by_its_settings_or_its_sessions() {
        let (_folder, path) = scene();
        let (project, deep) = (path.join("p"), path.join("p/a/b"));
        assert_eq!(find_project(&deep).unwrap(), None);
        for name in FOLDERS {
            fs::create_dir(path.join(name)).unwrap();
        }
        assert_eq!(find_project(&deep).unwrap(), None, "folders with these names are common");
        fs::write(path.join("sessions/journal"), "").unwrap();
        assert_eq!(find_project(&deep).unwrap(), Some(path.clone()));
        fs::write(project.join(FILE), "").unwrap();
        assert_eq!(find_project(&deep).unwrap(), Some(project.clone()));
        assert_eq!(find_project(&project).unwrap(), Some(project));
        assert_eq!(find_project(&path).unwrap(), Some(path));
    }

    #[test]
    fn in_its_own_folder_the_project_around_it_is_found() {
        let (_folder, path) = scene();
        let own = path.join("p").join(FOLDER);
        for name in FOLDERS {
            fs::create_dir_all(own.join(name)).unwrap();
        }
        fs::write(own.join("sessions/.lock"), "").unwrap();
        assert_eq!(find_project(&own.join("inbox")).unwrap(), Some(path.join("p")));
        fs::create_dir(own.join("workspace")).unwrap();
        assert_eq!(
            find_project(&own.join("inbox")).unwrap(),
            Some(own.clone()),
            "one of that name"
        );
        fs::write(path.join("p").join(FILE), "workspace_dir = '.'").unwrap();
        for name in ["inbox", "sessions", "."] {
            assert_eq!(find_project(&own.join(name)).unwrap(), Some(path.join("p")));
        }
    }

    #[test]
    fn what_replies_may_have_made_is_refused() {
        let (_folder, path) = scene();
        let project = path.join("p");
        fs::write(project.join(FILE), "workspace_dir = '.'").unwrap();
        fs::write(project.join("a").join(FILE), "").unwrap();
        let told = find_project(&project.join("a/b")).unwrap_err();
        assert_eq!(told.exit_status(), 2);
        let told = told.to_string();
        assert!(told.starts_with(&project.join("a").display().to_string()), "{told}");
        assert!(told.contains(&format!("the workspace of {}", project.display())), "{told}");
        assert_eq!(find_project(&project).unwrap().as_deref(), Some(&*project));

        fs::write(project.join(FILE), "workspace_dir = 'b'").unwrap();
        assert_eq!(find_project(&project.join("a/b")).unwrap(), Some(project.join("a")));
        fs::write(project.join(FILE), "nonsense").unwrap();
        let told = find_project(&project.join("a/b")).unwrap_err().to_string();
        assert!(told.contains("cannot be read") && told.contains("p/deaddrop.toml:1"), "{told}");
    }

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
            let told = find_project(&path.join("p/a")).unwrap_err();
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
        assert!(find_project(&path.join("p/a")).unwrap().is_some());
        lchown(&settings, Some(60_123), None).unwrap();
        refused();
        lchown(&settings, Some(0), None).unwrap();
        chown(path.join("p"), Some(60_123), None).unwrap();
        refused();
    }
}
