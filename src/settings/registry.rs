//! The projects that the person has used: where each keeps its own files, and where its replies
//! write. They are noted in the person's own folder, so that another project, in whose workspace
//! one of them lies, keeps its replies away from what is not its own; no folder is searched for them. And
//! which folders deaddrop has kept its own files in: what lies in any other came with it.
//!
//! They are in one file of fields, each a letter, a path in bytes and a NUL: `b` begins a project,
//! `i` is which folder it was, `w` a place where its replies write, `o` one of its own, `f` what one was
//! for (a letter), which folder that was, and its place.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::discovery::MARKS;
use super::own::{make_folder, state_home};
use super::{Config, FILE, FOLDER, git_directory, own_file, real};
use crate::atomic;
use crate::error::{Error, Result};
use crate::program::Programs;

/// What is known of others, for one project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The projects that lie in its workspace, or keep something there.
    pub(super) projects: Vec<PathBuf>,
    /// What of theirs lies there.
    pub(super) own: Vec<PathBuf>,
    /// One whose own the whole workspace is, or what it lies in, and the name of that there.
    holder: Option<(PathBuf, PathBuf)>,
    /// What is noted of itself.
    noted: Option<Used>,
    /// Which folders deaddrop has kept its own files in, of whatever project.
    folders: HashSet<Folder>,
    /// Why nothing is known, where what is noted cannot be read.
    problem: Option<String>,
}

impl Known {
    /// Looks at what is noted, for a project with these settings.
    pub(super) fn of(config: &Config) -> Self {
        let all = match look() {
            Ok(all) => all,
            Err(problem) => return Self { problem: Some(problem), ..Self::default() },
        };
        let (written, mut known) = (written(config), Self::default());
        let (workspace, mut led) = (&written[0], Led::default());
        let inside = |place: &Path| written.iter().any(|in_it| place.starts_with(in_it));
        let around = |place: &Path| workspace.starts_with(place);
        for used in all {
            let now = led.of(&used.project);
            let mut lies = |place: &Path, there: &dyn Fn(&Path) -> bool| {
                there(place)
                    || match (place.strip_prefix(&used.project), &now) {
                        (Ok(_), None) => false,
                        (Ok(rest), Some(now)) => there(&now.join(rest)),
                        (Err(_), _) => led.of(place).is_some_and(|place| there(&place)),
                    }
            };
            // Also its own that it has not now: what was trusted once is trusted when settings name it again.
            let within = used.folders.iter().filter(|it| lies(&it.place, &inside));
            let within = within.filter(|it| !around(&it.place) && it.stands());
            known.own.extend(within.map(|it| it.place.clone()));
            known.folders.extend(used.folders.iter().cloned());
            if used.project == config.project {
                known.noted = Some(used);
                continue;
            }
            let whole = used.own.iter().find(|place| lies(place, &around)).cloned();
            let within = used.own.iter().filter(|place| lies(place, &inside));
            let own: Vec<PathBuf> =
                within.filter(|place| Some(*place) != whole.as_ref()).cloned().collect();
            // What is nowhere near needs no look.
            if (whole.is_none() && own.is_empty()) || !used.lives() {
                continue;
            }
            if let Some(place) = whole {
                known.holder.get_or_insert((used.project.clone(), place));
            }
            if own.iter().any(|place| is_there(place)) {
                known.projects.push(used.project);
                known.own.extend(own);
            }
        }
        known.own = outermost(known.own, &config.own_state());
        known
    }
}

/// Where noted places lie now, each looked at once: they were noted as they really were, and somebody may
/// have put a link in the way since.
#[derive(Default)]
struct Led(HashMap<PathBuf, Option<PathBuf>>);

impl Led {
    /// Where a place really lies, if that is elsewhere.
    fn of(&mut self, place: &Path) -> Option<PathBuf> {
        if let Some(known) = self.0.get(place) {
            return known.clone();
        }
        let (above, name) = (place.parent()?, place.file_name()?);
        let beside = self.of(above).map(|above| above.join(name));
        let here = beside.as_deref().unwrap_or(place);
        let now = if fs::read_link(here).is_ok() { Some(real(here)) } else { beside };
        self.0.insert(place.to_owned(), now.clone());
        now
    }
}

/// Those places that lie in no other of them, nor in one of `held`: what is in what is hidden is hidden.
fn outermost(mut places: Vec<PathBuf>, held: &[PathBuf]) -> Vec<PathBuf> {
    let mut own: Vec<PathBuf> = Vec::new();
    places.sort();
    let held: Vec<PathBuf> = held.iter().map(|place| real(place)).collect();
    for place in places {
        // A folder comes before what lies in it.
        if !held.iter().chain(&own).any(|above| place.starts_with(above)) {
            own.push(place);
        }
    }
    own
}

impl Config {
    /// Notes this project among those that the person has used, and the folders of it that are there
    /// as deaddrop's own. So what lies in them has to be the person's (see [`Consent`](super::Consent)).
    ///
    /// # Errors
    /// It cannot be noted; the next start would not know it then.
    pub fn note(&self) -> Result<()> {
        let mine = used(self);
        if self.known.noted.as_ref().is_some_and(|noted| noted.covers(&mine)) {
            return Ok(());
        }
        match self.put_down(&mine) {
            // That they are the person's is noted already; of the rest `doctor` tells.
            Err(_)
                if self.known.noted.is_some()
                    && mine.folders.iter().all(|it| self.known.folders.contains(it)) =>
            {
                Ok(())
            }
            Err(e) => Err(Error::usage(format!(
                "deaddrop cannot record that this project is yours ({e}): make room there, or set XDG_STATE_HOME to a folder of yours"
            ))),
            Ok(()) => Ok(()),
        }
    }

    /// Makes these of its folders and notes them as deaddrop's own, before anything lies in them: whoever is
    /// stopped in between finds them empty, and nobody's. Where nothing can be noted, none is made.
    ///
    /// # Errors
    /// It cannot be noted, or a folder cannot be made.
    pub fn claim_dirs<'a>(&self, folders: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        self.note()?;
        for folder in folders {
            fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        }
        self.note()
    }

    fn put_down(&self, mine: &Used) -> Result<()> {
        let mut mine = mine.clone();
        change(|all| {
            let before = all.iter().filter(|used| used.project == self.project);
            before.for_each(|before| mine.remember(before));
            all.retain(|other| other.project != mine.project && (other.lives() || other.stands()));
            all.push(mine);
            all.drain(..all.len().saturating_sub(MOST));
        })
        .map(drop)
    }

    /// Forgets which folders of this project are deaddrop's own. Returns whether something was noted.
    ///
    /// # Errors
    /// It cannot be forgotten.
    pub fn release_dirs(&self) -> Result<bool> {
        let mine = used(self);
        change(|all| {
            for used in all.iter_mut() {
                used.folders.retain(|folder| {
                    used.project != mine.project && !mine.folders.contains(folder)
                });
            }
        })
    }

    /// Whether deaddrop has used a folder for this, which is still the one that it was.
    pub(super) fn is_own(&self, role: u8, folder: &Path) -> bool {
        Folder::at(role, folder).is_some_and(|folder| self.known.folders.contains(&folder))
    }

    /// deaddrop's own folders of the project, each with the letter of what it is for.
    pub(super) fn roles(&self) -> [(u8, &PathBuf); 4] {
        let Self { sessions, inbox, approvals, outbox, .. } = self;
        [(b's', sessions), (b'i', inbox), (b'a', approvals), (b'o', outbox)]
    }

    /// Lets those pass for whom what is noted of projects can be read.
    ///
    /// # Errors
    /// It cannot: nobody knows which folders are the person's, and what is to be kept from replies.
    pub fn knows_others(&self) -> Result<()> {
        self.known.problem.as_ref().map_or(Ok(()), |why| Err(unreadable(why)))
    }

    /// Lets those pass whose workspace is not what another project keeps its own files in, and not
    /// git's.
    ///
    /// # Errors
    /// It is, or that is not known: replies could answer and approve there, or make hooks that git runs.
    pub fn holds_no_others(&self) -> Result<()> {
        self.knows_others()?;
        // A file in the folder of settings is out of reach with it, wherever the folder is.
        let is_link = |own: &PathBuf| own.is_symlink();
        if let Some(own) = own_file().filter(is_link)
            && Programs::of(self).are_written_at(&own)
        {
            let problem = "it is a link, and leads to where replies and commands can write: they could change your own settings. Put the file itself in its place";
            return Err(Error::config(own.display().to_string(), problem));
        }
        if let Some(git) = git_directory(&real(&self.workspace)) {
            let problem = format!(
                "it cannot be the workspace: it is a git directory, or lies in one ({}), and git runs what replies would write there, its hooks. Choose another workspace_dir: the folder that holds the project's files",
                git.display()
            );
            return Err(Error::config(real(&self.workspace).display().to_string(), problem));
        }
        let Some((project, place)) = &self.known.holder else { return Ok(()) };
        let noted = file()?;
        let problem = format!(
            "it cannot be the workspace: the project {} keeps files of its own there ({}), according to {}. Choose another workspace_dir; if that project has moved its files, begin or resume a session there first",
            project.display(),
            place.display(),
            noted.display()
        );
        Err(Error::config(real(&self.workspace).display().to_string(), problem))
    }

    /// The projects, used before, that lie in the workspace of this one or keep something there.
    pub fn others(&self) -> &[PathBuf] {
        &self.known.projects
    }

    /// Makes a settings file where one of those has none: a command could write one for it to obey. What
    /// this process cannot write no command can either.
    pub fn keep_settings_of_others(&self, note: &str) {
        let missing = |path: &&PathBuf| {
            path.ends_with(FILE)
                && self.known.projects.iter().any(|project| path.parent() == Some(project))
                && fs::symlink_metadata(path).is_err()
        };
        for path in self.known.own.iter().filter(missing) {
            let _ = atomic::write(path, note.as_bytes());
        }
    }
}

/// The project, used before, whose replies write where this folder lies; none if that has itself
/// been used, for then it was kept from them. Both by canonical paths.
///
/// One that is gone takes no more replies, and is forgotten with the next that is noted. No reply makes
/// one gone, since its own files are out of reach; and what it may have left here opens nothing unasked.
///
/// # Errors
/// What is noted cannot be read.
pub fn whose_replies_write(folder: &Path) -> Result<Option<PathBuf>> {
    let all = read()?;
    if all.iter().any(|used| used.project == folder) {
        return Ok(None);
    }
    let writes =
        |used: &&Used| used.written.iter().any(|place| folder.starts_with(place)) && used.lives();
    Ok(all.iter().find(writes).map(|used| used.project.clone()))
}

/// Where replies of projects write that the person has used.
///
/// # Errors
/// What is noted cannot be read.
pub fn written_by_replies() -> Result<BTreeSet<PathBuf>> {
    Ok(read()?.into_iter().flat_map(|used| used.written).collect())
}

/// What lies in a folder, by its canonical path, of projects that the person has used.
///
/// # Errors
/// What is noted cannot be read.
pub fn known_within(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = read()?.into_iter();
    let is_within = |place: &PathBuf| place.starts_with(folder) && place != folder;
    let all = all.filter(Used::lives);
    let own = all.map(|used| used.own.into_iter().filter(is_within).collect::<Vec<_>>());
    Ok(own.filter(|own| own.iter().any(|place| is_there(place))).flatten().collect())
}

/// Where its replies write: the workspace, and what its commands may change beside it.
fn written(config: &Config) -> Vec<PathBuf> {
    let Config { workspace, sandbox, .. } = config;
    [workspace].into_iter().chain(&sandbox.writable).map(|place| real(place)).collect()
}

/// Its own files and folders, also where links of its own lead.
fn own(config: &Config) -> Vec<PathBuf> {
    let named = config.own_state();
    let led = named.iter().map(|place| real(place)).filter(|place| !named.contains(place));
    let mut led: Vec<PathBuf> = led.collect();
    led.dedup();
    [named, led].concat()
}

fn used(config: &Config) -> Used {
    let project = &config.project;
    let folders = config.roles().map(|(role, folder)| Folder::at(role, folder));
    Used {
        project: project.clone(),
        folder: folder_of(project),
        written: written(config),
        own: own(config),
        folders: folders.into_iter().flatten().collect(),
    }
}

/// The file of them, in the person's own folder.
const NOTED: &str = "bases";
/// Whoever writes it holds this one.
const LOCK: &str = "bases.lock";
/// So many are remembered; the one that was noted first is forgotten first.
const MOST: usize = 1_000;
/// So many places are remembered of each where its replies write, or wrote, and so many folders that are
/// or were its own; the newest first.
const PLACES: usize = 32;
/// The file is smaller, or is not read.
const LIMIT: u64 = 16 << 20;

/// One that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    project: PathBuf,
    /// Which folder that was: another one may stand there later.
    folder: String,
    /// Where its replies write: the workspace, and what its commands may change beside it.
    written: Vec<PathBuf>,
    /// Its own files and folders.
    own: Vec<PathBuf>,
    /// Which folders its inbox, outbox, sessions and approvals are, and were before, the newest first.
    folders: Vec<Folder>,
}

/// A folder of deaddrop's own: a place, what it was for, and which folder stood there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Folder {
    role: u8,
    which: String,
    place: PathBuf,
}

impl Folder {
    /// What the folder would be noted as that stands at a place; None where none is there. What it is for
    /// is told by a letter: replies in what were approvals are no approvals.
    fn at(role: u8, place: &Path) -> Option<Self> {
        let which = folder_of(place);
        (!which.is_empty()).then(|| Self { role, which, place: real(place) })
    }

    /// Whether that folder is there still.
    fn stands(&self) -> bool {
        folder_of(&self.place) == self.which
    }
}

impl Used {
    /// Whether all that the other says of the same project is noted with this.
    fn covers(&self, other: &Self) -> bool {
        self.project == other.project
            && self.folder == other.folder
            && self.own == other.own
            && other.written.iter().all(|place| self.written.contains(place))
            && other.folders.iter().all(|folder| self.folders.contains(folder))
    }

    /// Takes over what was noted before and may still be true of something that is there.
    fn remember(&mut self, before: &Self) {
        // A flag may have said before that they write elsewhere, and what they made is there still.
        let places = before.written.iter().filter(|place| !self.written.contains(place));
        let places: Vec<PathBuf> = places.cloned().collect();
        self.written.extend(places);
        self.written.truncate(PLACES);
        let folders = before.folders.iter().filter(|folder| !self.folders.contains(folder));
        let folders: Vec<Folder> = folders.cloned().collect();
        self.folders.extend(folders);
        self.folders.truncate(PLACES);
    }

    /// Whether it is a project still: what is gone keeps nothing anywhere, and a folder that it
    /// had can be anybody's by now.
    fn lives(&self) -> bool {
        let has_begun = || {
            let marks = self.own.iter().flat_map(|place| MARKS.map(|mark| place.join(mark)));
            marks.into_iter().any(|mark| mark.is_file())
        };
        // A reply that could write in a folder that was its own would answer there.
        let stands = || self.folders.iter().any(Folder::stands);
        [FILE, FOLDER].iter().any(|name| is_there(&self.project.join(name)))
            || (self.project.is_dir() && (has_begun() || stands()))
    }

    /// Whether the folder that was used is still there, if with nothing in it.
    fn stands(&self) -> bool {
        !self.folder.is_empty() && folder_of(&self.project) == self.folder
    }
}

/// Changes what is noted, alone, and writes it where it is another then. Returns whether it is.
fn change(change: impl FnOnce(&mut Vec<Used>)) -> Result<bool> {
    let home = home()?;
    make_folder(&home).map_err(|e| Error::io("make the folder", &home, e))?;
    let lock = home.join(LOCK);
    let held = atomic::open_own(File::options().create(true).append(true), &lock);
    let held = held.and_then(|file| file.lock().map(|()| file));
    let _held = held.map_err(|e| Error::io("lock", &lock, e))?;
    let mut all = read()?;
    let before = all.clone();
    change(&mut all);
    let is_changed = all != before;
    if is_changed {
        atomic::write_private(&home.join(NOTED), &bytes_of(&all))?;
    }
    Ok(is_changed)
}

/// Of one that is gone nothing is kept from anybody.
fn is_there(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok()
}

/// Which folder stands at a place: what no other has that is made there later, where the file system tells
/// when that was. Empty where none is there.
pub(super) fn folder_of(place: &Path) -> String {
    let found = fs::metadata(place).ok().filter(fs::Metadata::is_dir);
    let Some(found) = found else { return String::new() };
    let made =
        found.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
    let made = made.unwrap_or_default().as_nanos();
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    format!("{number}.{made}")
}

fn home() -> Result<PathBuf> {
    state_home().ok_or_else(|| {
        Error::usage("without HOME there is no list of projects; set HOME or XDG_STATE_HOME")
    })
}

/// Where it is.
///
/// # Errors
/// Nobody knows where.
fn file() -> Result<PathBuf> {
    Ok(home()?.join(NOTED))
}

/// All that are noted, the oldest first; none before the first is, or where nobody knows where that would be.
///
/// # Errors
/// The file cannot be read, or is not as deaddrop writes it. Nothing is known then, so nothing is safe.
fn read() -> Result<Vec<Used>> {
    look().map_err(unreadable)
}

/// The same; or why it cannot be read, for [`unreadable`].
fn look() -> Result<Vec<Used>, String> {
    let Ok(path) = file() else { return Ok(Vec::new()) };
    let why = match atomic::read_own_within(&path, LIMIT) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(e) => e.to_string(),
        Ok(bytes) => match parsed(&bytes) {
            Some(all) => return Ok(all),
            None => "it is damaged".to_owned(),
        },
    };
    Err(why)
}

/// The list cannot be read.
fn unreadable(why: impl Display) -> Error {
    let problem = format!(
        "deaddrop cannot read its list of your projects there: {why}. Restore it, or move it away: deaddrop then starts a new one and asks about each project once more"
    );
    let path = file().unwrap_or_default();
    Error::config(path.display().to_string(), problem)
}

/// What a file of notes says; None where that is not what deaddrop writes.
fn parsed(bytes: &[u8]) -> Option<Vec<Used>> {
    let mut all: Vec<Used> = Vec::new();
    let fields = bytes.strip_suffix(b"\0")?;
    for field in fields.split(|byte| *byte == 0) {
        let (letter, path) = field.split_first()?;
        let path = of_bytes(path);
        match (letter, all.last_mut()) {
            (b'b', _) if path.is_absolute() => all.push(Used {
                project: path,
                folder: String::new(),
                written: Vec::new(),
                own: Vec::new(),
                folders: Vec::new(),
            }),
            (b'i', Some(last)) => last.folder = path.to_string_lossy().into_owned(),
            (b'w', Some(last)) => last.written.push(path),
            (b'o', Some(last)) => last.own.push(path),
            (b'f', Some(last)) => last.folders.push(folder(&field[1..])?),
            _ => return None,
        }
    }
    Some(all)
}

/// Its role, which one it is, a blank, and its place.
fn folder(field: &[u8]) -> Option<Folder> {
    let (role, rest) = field.split_first()?;
    let blank = memchr::memchr(b' ', rest)?;
    let which = String::from_utf8_lossy(&rest[..blank]).into_owned();
    Some(Folder { role: *role, which, place: of_bytes(&rest[blank + 1..]) })
}

fn bytes_of(all: &[Used]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |begin: &[u8], path: &Path| {
        bytes.extend_from_slice(begin);
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        bytes.push(0);
    };
    for used in all {
        field(b"b", &used.project);
        if !used.folder.is_empty() {
            field(b"i", used.folder.as_ref());
        }
        used.written.iter().for_each(|place| field(b"w", place));
        used.own.iter().for_each(|place| field(b"o", place));
        for Folder { role, which, place } in &used.folders {
            field(&[b"f", &[*role][..], which.as_bytes(), b" "].concat(), place);
        }
    }
    bytes
}

#[cfg(unix)]
fn of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

#[cfg(not(unix))]
fn of_bytes(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let odd = of_bytes(b"/a b/\xff\n%41");
        let used = |project: &Path| Used {
            project: project.to_owned(),
            folder: "7.8".to_owned(),
            written: vec!["/w".into(), odd.clone()],
            own: vec![project.join("inbox"), project.join(FILE)],
            folders: vec![
                Folder { role: b'i', which: "1.2".to_owned(), place: odd.clone() },
                Folder { role: b's', which: "3.0".to_owned(), place: "/a".into() },
            ],
        };
        let all = [used(&odd), used("/home/me".as_ref())];
        assert_eq!(parsed(&bytes_of(&all)).unwrap(), all);
    }

    #[test]
    fn what_is_damaged_says_nothing() {
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
