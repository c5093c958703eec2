//! The base directories that the person has used: where each keeps its own files, and where its replies
//! write. They are noted in the person's own folder, so that another base directory, in whose workspace
//! one of them lies, keeps its replies away from what is not its own; no folder is searched for them.
//!
//! And which folders deaddrop has kept its own files in: what lies in any other came with it, and is
//! nothing that the person has made there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::noted::{Folder, MOST, Used, change, file, folder_of, is_there, look, read, unreadable};
use super::{Config, FILE, git_directory, own_file, real};
use crate::atomic;
use crate::error::{Error, Result};
use crate::program::Programs;

/// What is known of others, for one base directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The base directories that lie in its workspace, or keep something there.
    pub(super) bases: Vec<PathBuf>,
    /// What of theirs lies there.
    pub(super) own: Vec<PathBuf>,
    /// One whose own the whole workspace is, or what it lies in, and the name of that there.
    holder: Option<(PathBuf, PathBuf)>,
    /// What is noted of itself.
    noted: Option<Used>,
    /// Which folders deaddrop has kept its own files in, of whatever base directory.
    folders: HashSet<Folder>,
    /// Why nothing is known, where what is noted cannot be read.
    problem: Option<String>,
}

impl Known {
    /// Looks at what is noted, for a base directory with these settings.
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
            let now = led.of(&used.base);
            let mut lies = |place: &Path, there: &dyn Fn(&Path) -> bool| {
                there(place)
                    || match (place.strip_prefix(&used.base), &now) {
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
            if used.base == config.base {
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
                known.holder.get_or_insert((used.base.clone(), place));
            }
            if own.iter().any(|place| is_there(place)) {
                known.bases.push(used.base);
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
    /// Notes this base directory among those that the person has used, and the folders of it that are there
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
                "it cannot be noted that this base directory is yours ({e}): make room there, or set XDG_STATE_HOME to a folder of yours"
            ))),
            Ok(()) => Ok(()),
        }
    }

    /// Makes these of its folders and notes them as deaddrop's own, before anything lies in them: whoever is
    /// stopped in between finds them empty, and nobody's. Where nothing can be noted, none is made.
    ///
    /// # Errors
    /// It cannot be noted, or a folder cannot be made.
    pub fn take_up<'a>(&self, folders: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        self.note()?;
        for folder in folders {
            fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        }
        self.note()
    }

    fn put_down(&self, mine: &Used) -> Result<()> {
        let mut mine = mine.clone();
        change(|all| {
            let before = all.iter().filter(|used| used.base == self.base);
            before.for_each(|before| mine.remember(before));
            all.retain(|other| other.base != mine.base && (other.lives() || other.stands()));
            all.push(mine);
            all.drain(..all.len().saturating_sub(MOST));
        })
        .map(drop)
    }

    /// Forgets which folders of this base directory are deaddrop's own. Returns whether something was noted.
    ///
    /// # Errors
    /// It cannot be forgotten.
    pub fn disown(&self) -> Result<bool> {
        let mine = used(self);
        change(|all| {
            for used in all.iter_mut() {
                used.folders
                    .retain(|folder| used.base != mine.base && !mine.folders.contains(folder));
            }
        })
    }

    /// Whether deaddrop has used a folder for this, which is still the one that it was.
    pub(super) fn is_own(&self, role: u8, folder: &Path) -> bool {
        Folder::at(role, folder).is_some_and(|folder| self.known.folders.contains(&folder))
    }

    /// deaddrop's own folders of the base directory, each with the letter of what it is for.
    pub(super) fn roles(&self) -> [(u8, &PathBuf); 4] {
        let Self { sessions, inbox, approvals, outbox, .. } = self;
        [(b's', sessions), (b'i', inbox), (b'a', approvals), (b'o', outbox)]
    }

    /// Lets those pass for whom what is noted of base directories can be read.
    ///
    /// # Errors
    /// It cannot: nobody knows which folders are the person's, and what is to be kept from replies.
    pub fn knows_others(&self) -> Result<()> {
        self.known.problem.as_ref().map_or(Ok(()), |why| Err(unreadable(why)))
    }

    /// Lets those pass whose workspace is not what another base directory keeps its own files in, and not
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
        let Some((base, place)) = &self.known.holder else { return Ok(()) };
        let noted = file()?;
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
///
/// One that is gone takes no more replies, and is forgotten with the next that is noted. No reply makes
/// one gone, since its own files are out of reach; and what it may have left here opens nothing unasked.
///
/// # Errors
/// What is noted cannot be read.
pub fn whose_replies_write(folder: &Path) -> Result<Option<PathBuf>> {
    let all = read()?;
    if all.iter().any(|used| used.base == folder) {
        return Ok(None);
    }
    let writes =
        |used: &&Used| used.written.iter().any(|place| folder.starts_with(place)) && used.lives();
    Ok(all.iter().find(writes).map(|used| used.base.clone()))
}

/// Where replies of base directories write that the person has used.
///
/// # Errors
/// What is noted cannot be read.
pub fn written_by_replies() -> Result<BTreeSet<PathBuf>> {
    Ok(read()?.into_iter().flat_map(|used| used.written).collect())
}

/// What lies in a folder, by its canonical path, of base directories that the person has used.
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
    let base = &config.base;
    let folders = config.roles().map(|(role, folder)| Folder::at(role, folder));
    Used {
        base: base.clone(),
        folder: folder_of(base),
        written: written(config),
        own: own(config),
        folders: folders.into_iter().flatten().collect(),
    }
}
