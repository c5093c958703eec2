//! The registry: the projects that the person has used, where each keeps its own files, where its replies
//! write, and which folders deaddrop has kept its files in. A project that contains another one hides the
//! other's files from its replies, without a search. Data in a folder that is not registered came with it. If the
//! registry cannot be read or written, whoever asks gets an error.
//!
//! It is one file in the person's own folder. Each field is a letter, a path in bytes and a NUL: `b` begins a
//! project, `i` is its identity, `w` a place where its replies write, `o` one of its own files or folders,
//! `f` a folder with its role (a letter), its identity and its place, and `c` a digest of the settings that
//! the person has consented to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::discovery::MARKS;
use super::own::{make_folder, state_home};
use super::{Config, FILE, FOLDER, git_directory, own_file, real};
use crate::atomic;
use crate::error::{Error, Result};
use crate::program::Programs;

/// The registry's file, in the person's own folder.
const NAME: &str = "bases";
/// Whoever writes it locks this file.
const LOCK: &str = "bases.lock";
/// Of more projects, the oldest are forgotten.
const MOST: usize = 1_000;
/// Of more places where replies of a project write or wrote, or of its folders, the oldest are forgotten.
const PLACES: usize = 32;
/// A larger file is not read.
const LIMIT: u64 = 16 << 20;

/// What one project has to know of the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The other projects in its workspace, or with files there.
    projects: Vec<PathBuf>,
    /// What must be hidden from its replies in the workspace: files of others, and former folders of its own.
    pub(super) hidden: Vec<PathBuf>,
    /// Another project, and the folder of it that contains the whole workspace.
    holder: Option<(PathBuf, PathBuf)>,
    /// Its own entry.
    entry: Option<Entry>,
    /// The folders in which deaddrop has kept its files, of all projects.
    folders: HashSet<Folder>,
    /// Why the registry cannot be read.
    problem: Option<String>,
}

/// A project that was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    project: PathBuf,
    /// Another folder may be at its path later.
    identity: String,
    /// Where its replies write: the workspace and `sandbox.writable`.
    written: Vec<PathBuf>,
    /// Its own files and folders.
    own: Vec<PathBuf>,
    /// Its inbox, outbox, sessions and approvals, now and before, the newest first.
    folders: Vec<Folder>,
    /// A digest of the settings that the person has consented to.
    consent: Option<String>,
}

/// A folder in which deaddrop has kept its files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Folder {
    /// What it was used for: replies in a former folder of approvals are no approvals.
    role: u8,
    identity: String,
    place: PathBuf,
}

impl Known {
    /// Reads the registry for a project with these settings.
    pub(super) fn of(config: &Config) -> Self {
        let all = match load() {
            Ok(all) => all,
            Err(problem) => return Self { problem: Some(problem), ..Self::default() },
        };
        let (written, mut known) = (written(config), Self::default());
        let is_inside = |place: &Path| written.iter().any(|folder| place.starts_with(folder));
        let is_around = |place: &Path| written[0].starts_with(place);
        let mut links = Links::default();
        for entry in all {
            let project = links.resolve(&entry.project);
            let mut lies = |place: &Path, there: &dyn Fn(&Path) -> bool| {
                there(place)
                    || match (place.strip_prefix(&entry.project), &project) {
                        (Ok(_), None) => false,
                        (Ok(rest), Some(project)) => there(&project.join(rest)),
                        (Err(_), _) => links.resolve(place).is_some_and(|place| there(&place)),
                    }
            };
            // Also its former folders: if settings name them again, they are trusted.
            let former = entry.folders.iter().filter(|it| lies(&it.place, &is_inside));
            let former = former.filter(|it| !is_around(&it.place) && it.stands());
            known.hidden.extend(former.map(|it| it.place.clone()));
            known.folders.extend(entry.folders.iter().cloned());
            if entry.project == config.project {
                known.entry = Some(entry);
                continue;
            }
            let whole = entry.own.iter().find(|place| lies(place, &is_around)).cloned();
            let own = entry.own.iter().filter(|place| lies(place, &is_inside));
            let own: Vec<PathBuf> =
                own.filter(|place| Some(*place) != whole.as_ref()).cloned().collect();
            if (whole.is_none() && own.is_empty()) || !entry.lives() {
                continue;
            }
            if let Some(place) = whole {
                known.holder.get_or_insert((entry.project.clone(), place));
            }
            if own.iter().any(|place| exists(place)) {
                known.projects.push(entry.project);
                known.hidden.extend(own);
            }
        }
        known.hidden = outermost(known.hidden, &config.own_state());
        known
    }
}

/// Where registered places lead now: somebody may have put a link on the way since. Each is looked at once.
#[derive(Default)]
struct Links(HashMap<PathBuf, Option<PathBuf>>);

impl Links {
    /// The real path of a place, if that is another one.
    fn resolve(&mut self, place: &Path) -> Option<PathBuf> {
        if let Some(known) = self.0.get(place) {
            return known.clone();
        }
        let (above, name) = (place.parent()?, place.file_name()?);
        let moved = self.resolve(above).map(|above| above.join(name));
        let here = moved.as_deref().unwrap_or(place);
        let now = if fs::read_link(here).is_ok() { Some(real(here)) } else { moved };
        self.0.insert(place.to_owned(), now.clone());
        now
    }
}

/// The places that are neither in another of them nor in one of `covered`.
fn outermost(mut places: Vec<PathBuf>, covered: &[PathBuf]) -> Vec<PathBuf> {
    let mut outermost: Vec<PathBuf> = Vec::new();
    places.sort();
    let covered: Vec<PathBuf> = covered.iter().map(|place| real(place)).collect();
    for place in places {
        // A folder sorts before what it contains.
        if !covered.iter().chain(&outermost).any(|above| place.starts_with(above)) {
            outermost.push(place);
        }
    }
    outermost
}

impl Config {
    /// Registers this project and the folders of it that exist as deaddrop's own (see
    /// [`Consent`](super::Consent)).
    ///
    /// # Errors
    /// It cannot be registered.
    pub(super) fn register(&self) -> Result<()> {
        if self.is_space {
            return Ok(());
        }
        let mine = entry(self);
        let known = self.known.entry.as_ref();
        if known == Some(&mine.after(known)) {
            return Ok(());
        }
        let registered = change(|all| {
            let entry = mine.after(all.iter().find(|it| it.project == self.project));
            all.retain(|it| it.project != self.project && (it.lives() || it.stands()));
            all.push(entry);
            all.drain(..all.len().saturating_sub(MOST));
        });
        match registered {
            // Its folders are registered already; `doctor` reports the rest.
            Err(_)
                if known.is_some_and(|known| !known.own.is_empty())
                    && mine.folders.iter().all(|it| self.known.folders.contains(it)) =>
            {
                Ok(())
            }
            Err(e) => Err(Error::usage(format!(
                "deaddrop cannot record that this project is yours ({e}): make room there, or set XDG_STATE_HOME to a folder of yours"
            ))),
            Ok(_) => Ok(()),
        }
    }

    /// Makes these folders and registers them before anything is in them: after a stop in between they are
    /// empty. If nothing can be registered, none is made.
    ///
    /// # Errors
    /// They cannot be registered, or a folder cannot be made.
    pub fn claim_dirs<'a>(&self, folders: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        self.register()?;
        for folder in folders {
            fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        }
        self.register()
    }

    /// Forgets the person's consent, and which folders of this project are deaddrop's own. Returns whether there
    /// was something to forget.
    ///
    /// # Errors
    /// The registry cannot be changed.
    pub fn forget(&self) -> Result<bool> {
        let mine = entry(self);
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

    /// Whether deaddrop has used this very folder in this role.
    pub(super) fn is_own(&self, role: u8, folder: &Path) -> bool {
        Folder::at(role, folder).is_some_and(|folder| self.known.folders.contains(&folder))
    }

    /// deaddrop's own folders of the project, each with its role.
    pub(super) fn roles(&self) -> [(u8, &PathBuf); 4] {
        let Self { sessions, inbox, approvals, outbox, .. } = self;
        [(b's', sessions), (b'i', inbox), (b'a', approvals), (b'o', outbox)]
    }

    /// Refuses to go on if the registry cannot be read: nobody knows then which folders are the person's, and
    /// what must be hidden from replies.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn knows_others(&self) -> Result<()> {
        self.known.problem.as_ref().map_or(Ok(()), |why| Err(unreadable(why)))
    }

    /// Refuses a workspace that another project keeps its files in, or that is git's: replies could answer and
    /// approve there, or make hooks that git runs.
    ///
    /// # Errors
    /// It is such a workspace, or the registry cannot be read.
    pub fn holds_no_others(&self) -> Result<()> {
        self.knows_others()?;
        // The folder of a regular file is out of reach.
        if let Some(own) = own_file().filter(|own| own.is_symlink())
            && Programs::of(self).are_written_at(&own)
        {
            let problem = "it is a link to where replies and commands can write: they could change your own settings. Replace the link by the file";
            return Err(Error::config(own.display(), problem));
        }
        let workspace = real(&self.workspace);
        let problem = if let Some(git) = git_directory(&workspace) {
            format!(
                "it cannot be the workspace: it is a git directory, or in one ({}), and git would run hooks that replies write there. Choose another workspace_dir: the folder with the project's files",
                git.display()
            )
        } else if let Some((project, place)) = &self.known.holder {
            format!(
                "it cannot be the workspace: the project {} keeps files of its own there ({}), according to {}. Choose another workspace_dir; if that project has moved its files, begin or resume a session there first",
                project.display(),
                place.display(),
                path()?.display()
            )
        } else {
            return Ok(());
        };
        Err(Error::config(workspace.display(), problem))
    }

    /// The registered projects that are in the workspace of this one or keep files there.
    pub fn others(&self) -> &[PathBuf] {
        &self.known.projects
    }

    /// Writes a settings file for each of those that has none: a command could write one. Where this process
    /// cannot write, commands cannot, either.
    pub fn keep_settings_of_others(&self, note: &str) {
        for file in self.known.projects.iter().map(|project| project.join(FILE)) {
            if self.known.hidden.contains(&file) && !exists(&file) {
                let _ = atomic::write(&file, note.as_bytes());
            }
        }
    }
}

/// Records that the person has consented to the settings of a project with this digest, or to none.
///
/// # Errors
/// The registry cannot be changed.
pub(super) fn record_consent(project: &Path, consent: Option<String>) -> Result<()> {
    change(|all| match all.iter_mut().find(|entry| entry.project == project) {
        Some(entry) => entry.consent = consent,
        None if consent.is_some() => {
            all.push(Entry { project: project.to_owned(), consent, ..Entry::default() });
        }
        None => {}
    })
    .map(drop)
}

/// The registered project whose replies write where this folder is; none if the folder was itself used,
/// since it was hidden from them then. The path is canonical.
///
/// A project that is gone takes no more replies. No reply can make it disappear, since its files are out of
/// reach.
///
/// # Errors
/// The registry cannot be read.
pub fn whose_replies_write(folder: &Path) -> Result<Option<PathBuf>> {
    let all = read()?;
    if all.iter().any(|entry| entry.project == folder && !entry.own.is_empty()) {
        return Ok(None);
    }
    let writes = |entry: &Entry| entry.written.iter().any(|place| folder.starts_with(place));
    Ok(all.into_iter().find(|entry| writes(entry) && entry.lives()).map(|entry| entry.project))
}

/// Where replies of registered projects write.
///
/// # Errors
/// The registry cannot be read.
pub fn written_by_replies() -> Result<BTreeSet<PathBuf>> {
    Ok(read()?.into_iter().flat_map(|entry| entry.written).collect())
}

/// The files and folders of registered projects in a folder, by its canonical path.
///
/// # Errors
/// The registry cannot be read.
pub fn known_within(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_within = |place: &PathBuf| place.starts_with(folder) && place != folder;
    let all = read()?.into_iter().filter(Entry::lives);
    let own = all.map(|entry| entry.own.into_iter().filter(is_within).collect::<Vec<_>>());
    Ok(own.filter(|own| own.iter().any(|place| exists(place))).flatten().collect())
}

/// Where replies write: the workspace first, and what commands may change besides it.
fn written(config: &Config) -> Vec<PathBuf> {
    let Config { workspace, sandbox, .. } = config;
    [workspace].into_iter().chain(&sandbox.writable).map(|place| real(place)).collect()
}

/// The entry of a project as it is now.
fn entry(config: &Config) -> Entry {
    let mut own = config.own_state();
    // Also where links among them lead.
    for place in own.clone().iter().map(|place| real(place)) {
        if !own.contains(&place) {
            own.push(place);
        }
    }
    let folders = config.roles().map(|(role, folder)| Folder::at(role, folder));
    Entry {
        identity: identity_of(&config.project),
        written: written(config),
        own,
        folders: folders.into_iter().flatten().collect(),
        project: config.project.clone(),
        consent: None,
    }
}

impl Folder {
    /// The folder at a place; None if there is none.
    fn at(role: u8, place: &Path) -> Option<Self> {
        let identity = identity_of(place);
        (!identity.is_empty()).then(|| Self { role, identity, place: real(place) })
    }

    /// Whether it is still at its place.
    fn stands(&self) -> bool {
        identity_of(&self.place) == self.identity
    }
}

impl Entry {
    /// The entry with what an older one says of places that may still exist.
    fn after(&self, before: Option<&Self>) -> Self {
        fn add<T: Clone + PartialEq>(all: &[T], before: &[T]) -> Vec<T> {
            if all.iter().all(|it| before.contains(it)) {
                return before.to_vec();
            }
            let older = before.iter().filter(|it| !all.contains(it));
            all.iter().chain(older).take(PLACES.max(all.len())).cloned().collect()
        }
        let Some(before) = before else { return self.clone() };
        Self {
            written: add(&self.written, &before.written),
            folders: add(&self.folders, &before.folders),
            consent: before.consent.clone(),
            ..self.clone()
        }
    }

    /// Whether it is still a project: one that is gone has no files, and others may be at their places.
    fn lives(&self) -> bool {
        let has_begun = || {
            let mut marks = self.own.iter().flat_map(|place| MARKS.map(|mark| place.join(mark)));
            marks.any(|mark| mark.is_file())
        };
        [FILE, FOLDER].iter().any(|name| exists(&self.project.join(name)))
            || (self.project.is_dir() && (has_begun() || self.folders.iter().any(Folder::stands)))
    }

    /// Whether the folder that was used is still there, even if empty.
    fn stands(&self) -> bool {
        !self.identity.is_empty() && identity_of(&self.project) == self.identity
    }
}

/// Changes the registry under its lock. Returns whether that changed anything.
fn change(change: impl FnOnce(&mut Vec<Entry>)) -> Result<bool> {
    let home = home()?;
    make_folder(&home).map_err(|e| Error::io("make the folder", &home, e))?;
    let lock = home.join(LOCK);
    let held = atomic::open_own(File::options().create(true).append(true), &lock);
    let held = held.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|e| Error::io("lock", &lock, e))?;
    let before = read()?;
    let mut all = before.clone();
    change(&mut all);
    let is_changed = all != before;
    if is_changed {
        atomic::write_private(&home.join(NAME), &bytes_of(&all))?;
    }
    Ok(is_changed)
}

/// Whether something is at a place, be it a link that leads nowhere.
pub(super) fn exists(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok()
}

/// The inode and birth time of the folder at a place, which no folder that is made there later has. Empty if
/// there is none.
pub(super) fn identity_of(place: &Path) -> String {
    let found = fs::metadata(place).ok().filter(fs::Metadata::is_dir);
    let Some(found) = found else { return String::new() };
    let born = found.created().ok();
    let born = born.and_then(|born| born.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{}.{}", found.ino(), born.unwrap_or_default().as_nanos())
}

fn home() -> Result<PathBuf> {
    state_home().ok_or_else(|| {
        Error::usage("without HOME there is no list of projects; set HOME or XDG_STATE_HOME")
    })
}

fn path() -> Result<PathBuf> {
    Ok(home()?.join(NAME))
}

fn read() -> Result<Vec<Entry>> {
    load().map_err(|why| unreadable(&why))
}

/// All entries, the oldest first; or why they cannot be read. Nothing is known then, so nothing is safe.
fn load() -> Result<Vec<Entry>, String> {
    let Ok(path) = path() else { return Ok(Vec::new()) };
    match atomic::read_own_within(&path, LIMIT) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(e) => Err(e.to_string()),
        Ok(bytes) => parsed(&bytes).ok_or_else(|| "it is damaged".to_owned()),
    }
}

fn unreadable(why: &str) -> Error {
    let problem = format!(
        "deaddrop cannot read its list of your projects: {why}. Restore it, or move it away: deaddrop then starts a new one and asks about each project again"
    );
    Error::config(path().unwrap_or_default().display(), problem)
}

/// The entries of a registry; None if deaddrop did not write it.
fn parsed(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut all: Vec<Entry> = Vec::new();
    for field in bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0) {
        let (letter, rest) = field.split_first()?;
        let path = of_bytes(rest);
        match (letter, all.last_mut()) {
            (b'b', _) if path.is_absolute() => {
                all.push(Entry { project: path, ..Entry::default() });
            }
            (b'i', Some(last)) => last.identity = String::from_utf8_lossy(rest).into_owned(),
            (b'c', Some(last)) => {
                last.consent = Some(String::from_utf8_lossy(rest).into_owned());
            }
            (b'w', Some(last)) => last.written.push(path),
            (b'o', Some(last)) => last.own.push(path),
            (b'f', Some(last)) => {
                let (role, rest) = rest.split_first()?;
                let (identity, place) = rest.split_at(memchr::memchr(b' ', rest)?);
                let identity = String::from_utf8_lossy(identity).into_owned();
                last.folders.push(Folder { role: *role, identity, place: of_bytes(&place[1..]) });
            }
            _ => return None,
        }
    }
    Some(all)
}

fn bytes_of(all: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |begin: &[u8], path: &Path| {
        bytes.extend_from_slice(begin);
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        bytes.push(0);
    };
    for entry in all {
        field(b"b", &entry.project);
        if !entry.identity.is_empty() {
            field(b"i", entry.identity.as_ref());
        }
        entry.consent.iter().for_each(|consent| field(b"c", consent.as_ref()));
        entry.written.iter().for_each(|place| field(b"w", place));
        entry.own.iter().for_each(|place| field(b"o", place));
        for Folder { role, identity, place } in &entry.folders {
            field(&[b"f", &[*role][..], identity.as_bytes(), b" "].concat(), place);
        }
    }
    bytes
}

fn of_bytes(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn entries_are_read_as_they_are_written() {
        let odd = of_bytes(b"/a b/\xff\n%41");
        let entry = |project: &Path| Entry {
            project: project.to_owned(),
            identity: "7.8".to_owned(),
            written: vec!["/w".into(), odd.clone()],
            own: vec![project.join("inbox"), project.join(FILE)],
            folders: vec![
                Folder { role: b'i', identity: "1.2".to_owned(), place: odd.clone() },
                Folder { role: b's', identity: "3.0".to_owned(), place: "/a".into() },
            ],
            consent: Some("abc".to_owned()),
        };
        let all = [entry(&odd), entry("/home/me".as_ref())];
        assert_eq!(parsed(&bytes_of(&all)).unwrap(), all);
    }

    #[test]
    fn places_in_use_are_never_forgotten_and_older_ones_are_the_last() {
        let entry = |places: std::ops::Range<usize>| Entry {
            written: places.map(|n| format!("/{n}").into()).collect(),
            ..Entry::default()
        };
        let many = entry(0..PLACES + 9);
        assert_eq!(many.after(Some(&many)), many);
        // Whoever uses two in turn changes nothing each time.
        let both = entry(0..1).after(Some(&entry(1..2)));
        assert_eq!(entry(1..2).after(Some(&both)), both);
        let written = entry(0..1).after(Some(&entry(1..PLACES + 9))).written;
        assert_eq!((written.len(), &*written[0]), (PLACES, Path::new("/0")));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let good = b"b/a\0w/a/w\0";
        assert_eq!(parsed(good).unwrap().len(), 1);
        assert!(
            (0..good.len()).all(|n| parsed(&good[..n]).is_none_or(|all| n == 4 && all.len() == 1))
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
            assert!(parsed(bad).is_none(), "{}", bad.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let Some(all) = parsed(&bytes) else { return Ok(()) };
            prop_assert_eq!(parsed(&bytes_of(&all)), Some(all));
        }
    }
}
