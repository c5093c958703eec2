//! The base directories that the person has used: where each keeps its own files, and where its replies
//! write. They are noted in the person's own folder, so that another base directory, in whose workspace
//! one of them lies, keeps its replies away from what is not its own; no folder is searched for them.
//!
//! And what lies in one that is not noted came with it, and is nothing that the person has made there.
//!
//! A note is a file of fields, each a letter, a path in bytes and a NUL: `b` begins a base directory, `i`
//! is which folder it was, `w` a place where its replies write, `o` one of its own.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::finding::MARKS;
use super::own::{make_folder, state_home};
use super::{Config, FILE, FOLDER, real};
use crate::atomic;
use crate::error::{Error, Result};

/// The file of them, in the person's own folder.
const NOTED: &str = "bases";
/// Whoever writes it holds this one.
const LOCK: &str = "bases.lock";
/// So many are remembered; the one that was noted first is forgotten first.
const MOST: usize = 1_000;
/// So many places are remembered of each where its replies write, or wrote; the newest first.
const PLACES: usize = 32;
/// The file is smaller, or is not read.
const LIMIT: u64 = 16 << 20;

/// One that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    base: PathBuf,
    /// Which folder that was: another one may stand there later.
    folder: String,
    /// Where its replies write: the workspace, and what its commands may change beside it.
    written: Vec<PathBuf>,
    /// Its own files and folders.
    own: Vec<PathBuf>,
}

impl Used {
    /// Whether all that the other says of the same base directory is noted with this.
    fn covers(&self, other: &Self) -> bool {
        self.base == other.base
            && self.folder == other.folder
            && self.own == other.own
            && other.written.iter().all(|place| self.written.contains(place))
    }

    /// Whether it is a base directory still: what is gone keeps nothing anywhere, and a folder that it
    /// had can be anybody's by now.
    fn lives(&self) -> bool {
        let has_begun = || {
            let marks = self.own.iter().flat_map(|place| MARKS.map(|mark| place.join(mark)));
            self.base.is_dir() && marks.into_iter().any(|mark| mark.is_file())
        };
        [FILE, FOLDER].iter().any(|name| is_there(&self.base.join(name))) || has_begun()
    }

    /// Whether the folder that was used is still there, if with nothing in it.
    fn stands(&self) -> bool {
        !self.folder.is_empty() && folder_of(&self.base) == self.folder
    }
}

/// What is known of others, for one base directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The base directories that lie in its workspace, or keep something there.
    pub(super) bases: Vec<PathBuf>,
    /// What of theirs lies there.
    pub(super) own: Vec<PathBuf>,
    /// One whose own the whole workspace is, or what it lies in, and the name of that there.
    holder: Option<(PathBuf, PathBuf)>,
    /// Whether it is noted itself, as it is.
    is_noted: bool,
    /// Whether this very folder is noted, whatever its settings were.
    is_mine: bool,
}

impl Known {
    /// Looks at what is noted, for a base directory with these settings. What cannot be read is not known.
    pub(super) fn of(config: &Config) -> Self {
        let Ok(all) = read() else { return Self::default() };
        let mine = used(config);
        let is_noted = all.iter().any(|other| other.covers(&mine));
        let is_mine =
            all.iter().any(|other| other.base == mine.base && other.folder == mine.folder);
        let mut known = Self { is_noted, is_mine, ..Self::default() };
        let workspace = real(&config.workspace);
        let is_other = |other: &Used| other.base != config.base && other.lives();
        for other in all.into_iter().filter(is_other) {
            let inside = |place: &PathBuf| {
                place.starts_with(&workspace) || real(place).starts_with(&workspace)
            };
            let holds = |place: &PathBuf| {
                workspace.starts_with(place) || workspace.starts_with(real(place))
            };
            let (whole, own): (Vec<PathBuf>, Vec<PathBuf>) =
                other.own.into_iter().filter(inside).partition(holds);
            if let Some(place) = whole.into_iter().next() {
                known.holder.get_or_insert((other.base.clone(), place));
            }
            if own.iter().any(|place| is_there(place)) {
                known.bases.push(other.base);
                known.own.extend(own);
            }
        }
        known
    }
}

impl Config {
    /// Notes this base directory among those that the person has used.
    ///
    /// # Errors
    /// It cannot be noted; the next start would not know it then.
    pub fn note(&self) -> Result<()> {
        if self.known.is_noted {
            return Ok(());
        }
        match self.put_down() {
            // That it is the person's is noted already; of the rest `doctor` tells.
            Err(_) if self.known.is_mine => Ok(()),
            Err(e) => Err(Error::usage(format!(
                "it cannot be noted that this base directory is yours ({e}): make room there, or set XDG_STATE_HOME to a folder of yours"
            ))),
            Ok(()) => Ok(()),
        }
    }

    fn put_down(&self) -> Result<()> {
        let home = home()?;
        make_folder(&home).map_err(|e| Error::io("make the folder", &home, e))?;
        let lock = home.join(LOCK);
        let held = File::options().create(true).append(true).open(&lock);
        let held = held.and_then(|file| file.lock().map(|()| file));
        let _held = held.map_err(|e| Error::io("lock", &lock, e))?;
        // One that cannot be read is begun anew: it would keep others from being noted for ever.
        let mut all = read().unwrap_or_default();
        let mut mine = used(self);
        // A flag may have said before that they write elsewhere, and what they made is there still.
        for place in all.iter().filter(|old| old.base == mine.base).flat_map(|old| &old.written) {
            if mine.written.len() < PLACES && !mine.written.contains(place) {
                mine.written.push(place.clone());
            }
        }
        all.retain(|other| other.base != mine.base && (other.lives() || other.stands()));
        all.push(mine);
        all.drain(..all.len().saturating_sub(MOST));
        atomic::write_private(&home.join(NOTED), &written(&all))
    }

    /// Whether the person has used this base directory, which is still the folder that it was.
    pub(super) fn is_mine(&self) -> bool {
        self.known.is_mine
    }

    /// Lets those pass whose workspace is not what another base directory keeps its own files in.
    ///
    /// # Errors
    /// It is: replies could answer and approve there.
    pub fn holds_no_others(&self) -> Result<()> {
        let Some((base, place)) = &self.known.holder else { return Ok(()) };
        let noted = home()?.join(NOTED);
        let problem = format!(
            "it cannot be the workspace: the base directory {} keeps files of its own there ({}), as is noted in {}. Choose another workspace_dir; or, if that keeps them elsewhere by now, begin or resume a session there, which notes that",
            base.display(),
            place.display(),
            noted.display()
        );
        Err(Error::config(real(&self.workspace).display().to_string(), problem))
    }

    /// The base directories, used before, that lie in the workspace of this one or keep something there.
    pub fn others(&self) -> &[PathBuf] {
        &self.known.bases
    }

    /// Makes a settings file where one of those has none: a command could write one for it to obey. What
    /// this process cannot write no command can either.
    pub fn keep_settings_of_others(&self, note: &str) {
        let missing = |path: &&PathBuf| {
            path.ends_with(FILE)
                && self.known.bases.iter().any(|base| path.parent() == Some(base))
                && fs::symlink_metadata(path).is_err()
        };
        for path in self.known.own.iter().filter(missing) {
            let _ = atomic::write(path, note.as_bytes());
        }
    }
}

/// The base directory, used before, whose replies write where this folder lies; none if that has itself
/// been used, for then it was kept from them. Both by canonical paths.
pub fn whose_replies_write(folder: &Path) -> Option<PathBuf> {
    let all = read().ok()?;
    if all.iter().any(|used| used.base == folder) {
        return None;
    }
    let writes = |used: &&Used| used.written.iter().any(|place| folder.starts_with(place));
    all.iter().find(writes).map(|used| used.base.clone())
}

/// What lies in a folder, by its canonical path, of base directories that the person has used.
pub fn known_within(folder: &Path) -> Vec<PathBuf> {
    let all = read().unwrap_or_default().into_iter();
    let is_within = |place: &PathBuf| place.starts_with(folder) && place != folder;
    let all = all.filter(Used::lives);
    let own = all.map(|used| used.own.into_iter().filter(is_within).collect::<Vec<_>>());
    own.filter(|own| own.iter().any(|place| is_there(place))).flatten().collect()
}

/// Of one that is gone nothing is kept from anybody.
fn is_there(place: &Path) -> bool {
    fs::symlink_metadata(place).is_ok()
}

fn used(config: &Config) -> Used {
    let Config { base, workspace, sandbox, .. } = config;
    let written = [workspace].into_iter().chain(&sandbox.writable).map(|place| real(place));
    let (folder, own) = (folder_of(base), config.own_state());
    Used { base: base.clone(), folder, written: written.collect(), own }
}

/// Which folder stands at a place: what no other has that is made there later.
fn folder_of(place: &Path) -> String {
    let Ok(found) = fs::metadata(place) else { return String::new() };
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
        Error::usage("HOME does not say where it is noted which base directories there are; set HOME or XDG_STATE_HOME")
    })
}

/// All that are noted, the oldest first.
fn read() -> Result<Vec<Used>> {
    let path = home()?.join(NOTED);
    match fs::metadata(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Ok(found) if found.is_file() && found.len() <= LIMIT => {}
        Ok(_) => {
            let problem = "it is none of the notes that deaddrop writes; move it away";
            return Err(Error::config(path.display().to_string(), problem));
        }
        Err(e) => return Err(Error::io("look at", &path, e)),
    }
    fs::read(&path).map(|bytes| parsed(&bytes)).map_err(|e| Error::io("read", &path, e))
}

/// What a file of notes says; what has no meaning is passed over.
fn parsed(bytes: &[u8]) -> Vec<Used> {
    let mut all: Vec<Used> = Vec::new();
    for field in bytes.split(|byte| *byte == 0) {
        let Some((letter, path)) = field.split_first() else { continue };
        let path = of_bytes(path);
        match (letter, all.last_mut()) {
            (b'b', _) => all.push(Used {
                base: path,
                folder: String::new(),
                written: Vec::new(),
                own: Vec::new(),
            }),
            (b'i', Some(last)) => last.folder = path.to_string_lossy().into_owned(),
            (b'w', Some(last)) => last.written.push(path),
            (b'o', Some(last)) => last.own.push(path),
            _ => {}
        }
    }
    all.retain(|used| used.base.is_absolute());
    all
}

fn written(all: &[Used]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |letter: u8, path: &Path| {
        bytes.push(letter);
        bytes.extend_from_slice(path.as_os_str().as_encoded_bytes());
        bytes.push(0);
    };
    for used in all {
        field(b'b', &used.base);
        if !used.folder.is_empty() {
            field(b'i', used.folder.as_ref());
        }
        used.written.iter().for_each(|place| field(b'w', place));
        used.own.iter().for_each(|place| field(b'o', place));
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
        let used = |base: &Path| Used {
            base: base.to_owned(),
            folder: "7.8".to_owned(),
            written: vec!["/w".into(), odd.clone()],
            own: vec![base.join("inbox"), base.join(FILE)],
        };
        let all = [used(&odd), used("/home/me".as_ref())];
        assert_eq!(parsed(&written(&all)), all);
        assert_eq!(parsed(b""), []);
        assert_eq!(
            parsed(b"o/before\0brelative\0o/x\0b/cut"),
            [Used { base: "/cut".into(), folder: String::new(), written: vec![], own: vec![] }]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let all = parsed(&bytes);
            prop_assert_eq!(parsed(&written(&all)), all);
        }
    }
}
