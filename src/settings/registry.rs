//! The registry contains the projects that the person has used, the places of their own files, the places where their
//! replies write, and the folders in which deaddrop has kept its files. So a project that contains another one can hide
//! the other's files from its replies without a search, and data in an unregistered folder is known to have come with
//! the folder. If the registry cannot be read or written, callers get an error.
//!
//! The registry is one file in the person's own folder. Each field is a letter, a path in bytes and a NUL: `b` begins a
//! project, `w` is a place where its replies write, `o` is one of its own files or folders, `f` is a folder with its
//! role (a letter), identity and place, and `c` is a digest of the settings that the person consented to.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::discovery::SESSION_MARKS;
use super::user_folders::{create_private_folder, user_state_folder};
use super::{Config, FILE, FOLDER, problem_in_git_directory, real_path, user_settings_file};
use crate::atomic;
use crate::error::{Error, Result};
use crate::program::Programs;

/// The name of the registry's file, in the person's own folder.
const REGISTRY_FILE: &str = "bases";
/// The file that writers lock.
const LOCK: &str = "bases.lock";
/// The most projects that are kept. The oldest is forgotten first.
const MAX_PROJECTS: usize = 1_000;
/// The most places that are kept per project: places where its replies write or wrote, and its folders. The oldest is
/// forgotten first.
const MAX_PLACES: usize = 32;
/// The size of the largest registry that is read, in bytes.
const LIMIT: u64 = 16 << 20;

/// The content of the registry that matters to one project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RegistryView {
    /// Places in the workspace that are hidden from replies: other projects' files, and former folders of this one.
    pub(super) hidden: Vec<PathBuf>,
    /// Another project, and its folder that contains the whole workspace of this one.
    enclosing: Option<(PathBuf, PathBuf)>,
    /// This project's own entry.
    entry: Option<ProjectEntry>,
    /// The folders of all projects that deaddrop has used for its files.
    folders: HashSet<StateFolder>,
    /// Why the registry cannot be read.
    problem: Option<String>,
}

/// A project that the person has used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProjectEntry {
    project: PathBuf,
    /// Where replies write: the workspace and `sandbox.writable`.
    written: Vec<PathBuf>,
    /// deaddrop's files and folders in the project.
    own: Vec<PathBuf>,
    /// The current and former folders for inbox, outbox, sessions and approvals, newest first.
    folders: Vec<StateFolder>,
    /// A digest of the settings that the person consented to.
    consent: Option<String>,
}

/// A folder that deaddrop has used for its files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StateFolder {
    /// The use of the folder. Replies in a former inbox must not count as approvals.
    role: u8,
    identity: String,
    place: PathBuf,
}

impl RegistryView {
    /// Reads the registry for a project with these settings.
    pub(super) fn of(config: &Config) -> Self {
        let all = match load() {
            Ok(all) => all,
            Err(problem) => return Self { problem: Some(problem), ..Self::default() },
        };
        let (written, mut known) = (writable_places(config), Self::default());
        let is_around = |place: &Path| written[0].starts_with(place);
        let is_inside = |place: &Path| {
            !is_around(place) && written.iter().any(|folder| place.starts_with(folder))
        };
        for entry in all {
            // A component of a registered path may have become a link.
            let project = real_path(&entry.project);
            let lies = |place: &Path, there: &dyn Fn(&Path) -> bool| {
                there(place)
                    || match place.strip_prefix(&entry.project) {
                        Ok(rest) => there(&project.join(rest)),
                        Err(_) => there(&real_path(place)),
                    }
            };
            // Former folders are also hidden: if settings name them again, they are trusted.
            let former = entry.folders.iter().filter(|it| lies(&it.place, &is_inside));
            let former = former.filter(|it| it.is_unmoved());
            known.hidden.extend(former.map(|it| it.place.clone()));
            known.folders.extend(entry.folders.iter().cloned());
            if entry.project == config.project {
                known.entry = Some(entry);
                continue;
            }
            let whole = entry.own.iter().find(|place| lies(place, &is_around)).cloned();
            let own = entry.own.iter().filter(|place| lies(place, &is_inside));
            let own: Vec<PathBuf> = own.cloned().collect();
            if (whole.is_none() && own.is_empty()) || !entry.exists() {
                continue;
            }
            if let Some(place) = whole {
                known.enclosing.get_or_insert((entry.project.clone(), place));
            }
            if own.iter().any(|place| exists(place)) {
                known.hidden.extend(own);
            }
        }
        known.hidden = outermost(known.hidden, &config.own_state());
        known
    }
}

/// Removes places that are inside another place or inside one of `covered`.
fn outermost(mut places: Vec<PathBuf>, covered: &[PathBuf]) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    places.sort();
    let covered: Vec<PathBuf> = covered.iter().map(|place| real_path(place)).collect();
    for place in places {
        // A folder sorts before its contents.
        if !covered.iter().chain(&outermost).any(|above| place.starts_with(above)) {
            outermost.push(place);
        }
    }
    outermost
}

impl Config {
    /// Registers this project and its existing state folders as deaddrop's own (see [`Consent`](super::Consent)).
    ///
    /// # Errors
    /// The project cannot be registered. The next start would not recognise it.
    pub(super) fn register(&self) -> Result<()> {
        if self.is_space {
            return Ok(());
        }
        let mine = current_entry(self);
        let known = self.known.entry.as_ref();
        if known == Some(&mine.merged_with(known)) {
            return Ok(());
        }
        let registered = change(|all| {
            let entry = mine.merged_with(all.iter().find(|it| it.project == self.project));
            all.retain(|it| it.project != self.project && it.project.is_dir());
            all.push(entry);
            all.drain(..all.len().saturating_sub(MAX_PROJECTS));
        });
        registered.map(drop).map_err(|e| Error::usage(format!(
            "deaddrop cannot record that this project is yours ({e}): make room there, or set XDG_STATE_HOME to a folder of yours"
        )))
    }

    /// Creates these folders, and registers them while they are empty. If deaddrop stops in between, they contain
    /// nothing. If registration fails, no folder is created.
    ///
    /// # Errors
    /// The folders cannot be registered or created.
    pub fn claim_dirs<'a>(&self, folders: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        self.register()?;
        for folder in folders {
            fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        }
        self.register()
    }

    /// Removes the person's consent and this project's state folders from the registry. Returns whether the registry
    /// changed.
    ///
    /// # Errors
    /// The registry cannot be changed.
    pub fn forget(&self) -> Result<bool> {
        let mine = current_entry(self);
        change(|all| {
            for entry in all {
                let is_other = entry.project != mine.project;
                entry.consent = entry.consent.take().filter(|_| is_other);
                entry.folders.retain(|folder| is_other && !mine.folders.contains(folder));
            }
        })
    }

    pub(super) fn recorded_consent(&self) -> Option<String> {
        self.known.entry.as_ref().and_then(|entry| entry.consent.clone())
    }

    /// Whether deaddrop has used this very folder (identified by inode and birth time) in this role.
    pub(super) fn is_own(&self, role: u8, folder: &Path) -> bool {
        StateFolder::at(role, folder).is_some_and(|folder| self.known.folders.contains(&folder))
    }

    /// The project's state folders, each with its role.
    pub(super) fn roles(&self) -> [(u8, &PathBuf); 4] {
        let Self { sessions, inbox, approvals, outbox, .. } = self;
        [(b's', sessions), (b'i', inbox), (b'a', approvals), (b'o', outbox)]
    }

    /// Fails if the registry could not be read. Then it is unknown which folders are the person's, and what must be
    /// hidden from replies.
    pub fn check_registry(&self) -> Result<()> {
        self.known.problem.as_ref().map_or(Ok(()), |why| Err(unreadable(why)))
    }

    /// Rejects a workspace in which another project keeps its files, since replies could answer and approve there. Also
    /// rejects a workspace in a git directory, where replies could create hooks that git runs.
    ///
    /// # Errors
    /// The workspace is rejected, or the registry cannot be read.
    pub fn check_workspace(&self) -> Result<()> {
        self.check_registry()?;
        // If the settings file is not a link, replies and commands cannot access its folder.
        if let Some(own) = user_settings_file().filter(|own| own.is_symlink())
            && Programs::of(self).is_writable_by_replies(&own)
        {
            let problem = "it is a link to a place where replies and commands can write, so they could change your own settings. Replace the link with the file";
            return Err(Error::config(own.display(), problem));
        }
        let workspace = real_path(&self.workspace);
        let problem = if let Some(why) = problem_in_git_directory(&workspace) {
            format!("it cannot be the workspace: {why}")
        } else if let Some((project, place)) = &self.known.enclosing {
            format!(
                "it cannot be the workspace: according to {2}, the project {0} keeps its own files there ({1}). Choose another workspace_dir; if that project has moved its files, begin or resume a session there first",
                project.display(),
                place.display(),
                registry_file()?.display()
            )
        } else {
            return Ok(());
        };
        Err(Error::config(workspace.display(), problem))
    }

    /// Writes a settings file into each nested project that has none. Otherwise a command could write one. Failures are
    /// ignored: where this process cannot write, commands cannot write either.
    pub fn create_settings_of_nested(&self, note: &str) {
        for file in self.known.hidden.iter().filter(|place| place.ends_with(FILE)) {
            if !exists(file) {
                let _ = atomic::write(file, note.as_bytes());
            }
        }
    }
}

/// Records the digest of the settings that the person consented to, or that there is no consent.
///
/// # Errors
/// The registry cannot be changed.
pub(super) fn record_consent(project: &Path, consent: Option<&String>) -> Result<()> {
    change(|all| {
        if all.iter().all(|entry| entry.project != project) {
            all.push(ProjectEntry { project: project.to_owned(), ..ProjectEntry::default() });
        }
        let entries = all.iter_mut().filter(|entry| entry.project == project);
        entries.for_each(|entry| entry.consent = consent.cloned());
    })
    .map(drop)
}

/// The registered project whose replies can write to this folder (a canonical path). None if the folder is itself a
/// registered project, since it was hidden from them.
///
/// A project that no longer exists accepts no replies. No reply can remove a project, since replies cannot access its
/// files.
///
/// # Errors
/// The registry cannot be read.
pub fn project_writing_to(folder: &Path) -> Result<Option<PathBuf>> {
    let all = read()?;
    if all.iter().any(|entry| entry.project == folder && !entry.own.is_empty()) {
        return Ok(None);
    }
    let writes = |entry: &ProjectEntry| entry.written.iter().any(|place| folder.starts_with(place));
    Ok(all.into_iter().find(|entry| writes(entry) && entry.exists()).map(|entry| entry.project))
}

/// The places where replies of registered projects can write.
///
/// # Errors
/// The registry cannot be read.
pub fn reply_writable_places() -> Result<BTreeSet<PathBuf>> {
    Ok(read()?.into_iter().flat_map(|entry| entry.written).collect())
}

/// The files and folders of registered projects that are deaddrop's own and in this folder (a canonical path).
///
/// # Errors
/// The registry cannot be read.
pub fn registered_within(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_within = |place: &PathBuf| place.starts_with(folder) && place != folder;
    let all = read()?.into_iter().filter(ProjectEntry::exists);
    let own = all.map(|entry| entry.own.into_iter().filter(is_within).collect::<Vec<_>>());
    Ok(own.filter(|own| own.iter().any(|place| exists(place))).flatten().collect())
}

/// The places where replies of a project can write: the workspace first, then other places that commands may change.
fn writable_places(config: &Config) -> Vec<PathBuf> {
    let Config { workspace, sandbox, .. } = config;
    [workspace].into_iter().chain(&sandbox.writable).map(|place| real_path(place)).collect()
}

/// The current entry of a project.
fn current_entry(config: &Config) -> ProjectEntry {
    let mut own = config.own_state();
    let targets = own.iter().map(|place| real_path(place)).filter(|place| !own.contains(place));
    own.extend(targets.collect::<Vec<_>>());
    let folders = config.roles().map(|(role, folder)| StateFolder::at(role, folder));
    ProjectEntry {
        written: writable_places(config),
        own,
        folders: folders.into_iter().flatten().collect(),
        project: config.project.clone(),
        consent: None,
    }
}

impl StateFolder {
    /// Identifies the folder at a path; None if there is none.
    fn at(role: u8, place: &Path) -> Option<Self> {
        let identity = identity_of(place);
        (!identity.is_empty()).then(|| Self { role, identity, place: real_path(place) })
    }

    /// Whether the same folder is still at its place.
    fn is_unmoved(&self) -> bool {
        identity_of(&self.place) == self.identity
    }
}

impl ProjectEntry {
    /// Adds the consent of an older entry, and its places that may still exist.
    fn merged_with(&self, before: Option<&Self>) -> Self {
        fn add<T: Clone + PartialEq>(all: &[T], before: &[T]) -> Vec<T> {
            if all.iter().all(|it| before.contains(it)) {
                return before.to_vec();
            }
            let older = before.iter().filter(|it| !all.contains(it));
            all.iter().chain(older).take(MAX_PLACES.max(all.len())).cloned().collect()
        }
        let Some(before) = before else { return self.clone() };
        Self {
            written: add(&self.written, &before.written),
            folders: add(&self.folders, &before.folders),
            consent: before.consent.clone(),
            ..self.clone()
        }
    }

    /// Whether the project still exists. Otherwise other files may be in its places.
    fn exists(&self) -> bool {
        let has_begun = || {
            let mut marks =
                self.own.iter().flat_map(|place| SESSION_MARKS.map(|mark| place.join(mark)));
            marks.any(|mark| mark.is_file())
        };
        [FILE, FOLDER].iter().any(|name| exists(&self.project.join(name)))
            || (self.project.is_dir()
                && (has_begun() || self.folders.iter().any(StateFolder::is_unmoved)))
    }
}

/// Changes the registry while holding its lock. Returns whether the content changed.
fn change(change: impl FnOnce(&mut Vec<ProjectEntry>)) -> Result<bool> {
    let home = state_folder()?;
    create_private_folder(&home).map_err(|e| Error::io("make the folder", &home, e))?;
    let lock = home.join(LOCK);
    let held = atomic::open_own(File::options().create(true).append(true), &lock);
    let held = held.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|e| Error::io("lock", &lock, e))?;
    let before = read()?;
    let mut all = before.clone();
    change(&mut all);
    let is_changed = all != before;
    if is_changed {
        atomic::write_private(&home.join(REGISTRY_FILE), &serialize(&all))?;
    }
    Ok(is_changed)
}

/// Whether a path exists, even as a dangling link.
pub(super) fn exists(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok()
}

/// The inode and birth time of the folder at a path. A folder that replaces it has different ones. Empty if there is no
/// folder.
pub(super) fn identity_of(place: &Path) -> String {
    let found = fs::metadata(place).ok().filter(fs::Metadata::is_dir);
    let Some(found) = found else { return String::new() };
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{}.{}", found.ino(), born.unwrap_or_default().as_nanos())
}

fn state_folder() -> Result<PathBuf> {
    user_state_folder().ok_or_else(|| {
        Error::usage("without HOME there is no list of projects; set HOME or XDG_STATE_HOME")
    })
}

fn registry_file() -> Result<PathBuf> {
    Ok(state_folder()?.join(REGISTRY_FILE))
}

fn read() -> Result<Vec<ProjectEntry>> {
    load().map_err(|why| unreadable(&why))
}

/// Reads all entries, oldest first. The error is the reason why they cannot be read. Then nothing is safe.
fn load() -> Result<Vec<ProjectEntry>, String> {
    let Ok(path) = registry_file() else { return Ok(Vec::new()) };
    match atomic::read_own_within(&path, LIMIT) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(e) => Err(e.to_string()),
        Ok(bytes) => parse(&bytes).ok_or_else(|| "it is damaged".to_owned()),
    }
}

fn unreadable(why: &str) -> Error {
    let problem = format!(
        "deaddrop cannot read its list of your projects: {why}. Restore it, or move it away: deaddrop then starts a new one and asks about each project again"
    );
    Error::config(registry_file().unwrap_or_default().display(), problem)
}

/// Parses a registry; None if it does not have the form that deaddrop writes.
fn parse(bytes: &[u8]) -> Option<Vec<ProjectEntry>> {
    let mut all: Vec<ProjectEntry> = Vec::new();
    for field in bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0) {
        let (letter, rest) = field.split_first()?;
        let path = path_from(rest);
        match (letter, all.last_mut()) {
            (b'b', _) if path.is_absolute() => {
                all.push(ProjectEntry { project: path, ..ProjectEntry::default() });
            }
            // Older versions wrote the project's identity.
            (b'i', Some(_)) => {}
            (b'c', Some(last)) => {
                last.consent = Some(String::from_utf8_lossy(rest).into_owned());
            }
            (b'w', Some(last)) => last.written.push(path),
            (b'o', Some(last)) => last.own.push(path),
            (b'f', Some(last)) => {
                let (role, rest) = rest.split_first()?;
                let (identity, place) = rest.split_at(memchr::memchr(b' ', rest)?);
                let identity = String::from_utf8_lossy(identity).into_owned();
                last.folders.push(StateFolder {
                    role: *role,
                    identity,
                    place: path_from(&place[1..]),
                });
            }
            _ => return None,
        }
    }
    Some(all)
}

fn serialize(all: &[ProjectEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |begin: &[u8], path: &Path| {
        bytes.extend_from_slice(begin);
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        bytes.push(0);
    };
    for entry in all {
        field(b"b", &entry.project);
        entry.consent.iter().for_each(|consent| field(b"c", consent.as_ref()));
        entry.written.iter().for_each(|place| field(b"w", place));
        entry.own.iter().for_each(|place| field(b"o", place));
        for StateFolder { role, identity, place } in &entry.folders {
            field(&[b"f", &[*role][..], identity.as_bytes(), b" "].concat(), place);
        }
    }
    bytes
}

fn path_from(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_are_read_as_they_are_written() {
        let odd = path_from(b"/a b/\xff\n%41");
        let entry = |project: &Path| ProjectEntry {
            project: project.to_owned(),
            written: vec!["/w".into(), odd.clone()],
            own: vec![project.join("inbox"), project.join(FILE)],
            folders: vec![
                StateFolder { role: b'i', identity: "1.2".to_owned(), place: odd.clone() },
                StateFolder { role: b's', identity: "3.0".to_owned(), place: "/a".into() },
            ],
            consent: Some("abc".to_owned()),
        };
        let all = [entry(&odd), entry("/home/me".as_ref())];
        assert_eq!(parse(&serialize(&all)).unwrap(), all);
    }

    #[test]
    fn places_in_use_are_never_forgotten_and_older_ones_are_the_last() {
        let entry = |places: std::ops::Range<usize>| ProjectEntry {
            written: places.map(|n| format!("/{n}").into()).collect(),
            ..ProjectEntry::default()
        };
        let many = entry(0..MAX_PLACES + 9);
        assert_eq!(many.merged_with(Some(&many)), many);
        // Using two folders alternately changes nothing.
        let both = entry(0..1).merged_with(Some(&entry(1..2)));
        assert_eq!(entry(1..2).merged_with(Some(&both)), both);
        let written = entry(0..1).merged_with(Some(&entry(1..MAX_PLACES + 9))).written;
        assert_eq!((written.len(), &*written[0]), (MAX_PLACES, Path::new("/0")));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let good = b"b/a\0w/a/w\0";
        assert_eq!(parse(good).unwrap().len(), 1);
        assert!(
            (0..good.len()).all(|n| parse(&good[..n]).is_none_or(|all| n == 4 && all.len() == 1))
        );
        for bad in [
            &b""[..],
            b"\0",
            b"o/before\0",
            b"brelative\0",
            b"b/a\0\0",
            b"b/a\0x/a\0",
            b"b/a\0fi\0",
        ] {
            assert!(parse(bad).is_none(), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let Some(all) = parse(&bytes) else { return Ok(()) };
            prop_assert_eq!(parse(&serialize(&all)), Some(all));
        }
    }
}
