//! What the person has agreed to of a base directory's settings: a note in their own folder, one for each
//! base directory, of exactly what its settings open.
//!
//! Flags, variables and the person's own file need none. `deaddrop.toml` may have come with a repository,
//! or a reply may have left it where somebody starts deaddrop later.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::found::found;
use super::noted::folder_of;
use super::opening::{Opening, led_away, openings};
use super::own::{make_folder, name_of, state_home};
use super::tracked::{TRACKED, tracked};
use super::{Config, FILE, Layers};
use crate::atomic;
use crate::error::{Error, Result};
use crate::text::{count, shell_word, visible_line};

/// The folder of notes.
const FOLDER: &str = "allowed";
/// A note is smaller.
const LIMIT: u64 = 64 << 10;
/// So many characters of a value are shown; longer ones nobody looks at.
const SHOWN: usize = 4_000;

/// What is noted of a base directory.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// For whoever looks at it; its file's name is what counts.
    base: String,
    /// A digest of what its settings opened.
    settings: String,
}

/// What the settings of a base directory open, and whether the person has agreed to that.
#[derive(Debug, Clone)]
#[must_use]
pub struct Consent {
    base: PathBuf,
    /// All that its file opens, and what others than the person may write of its own by a pull.
    openings: Vec<Opening>,
    /// What of it is in force, and not agreed to.
    lacks: Vec<Opening>,
    /// Why that could not be found out, if so.
    unknown: Option<String>,
    /// Where a flag or a variable leads away by a link that is not the person's word.
    led_away: Option<String>,
    /// What deaddrop finds of its own that it has not made for this person, and whose it becomes.
    found: Option<(Opening, Box<Config>)>,
}

impl Consent {
    /// Of a base directory with these settings.
    pub(super) fn of(config: &Config, layers: &Layers) -> Self {
        let base = &config.base;
        let mut openings = openings(base, layers);
        openings.extend(tracked(config));
        // What a flag or a variable says is what counts, and said by the person.
        let is_over = |name: &str| layers.environment.sets(name) || layers.flags.sets(name);
        let in_force = openings.iter().filter(|opening| !is_over(&opening.name));
        let mut consent = Self {
            base: base.to_owned(),
            lacks: in_force.cloned().collect(),
            openings,
            led_away: led_away(base, layers),
            unknown: None,
            found: None,
        };
        if !consent.lacks.is_empty() {
            match consent.noted() {
                Ok(noted) if noted.as_ref() == Some(&consent.digest()) => consent.lacks.clear(),
                Ok(_) => {}
                Err(why) => consent.unknown = Some(why),
            }
        }
        consent
    }

    /// The same of one with these settings, with what is found there of deaddrop's own.
    pub(super) fn of_found(config: &Config, layers: &Layers) -> Self {
        let mut consent = Self::of(config, layers);
        if let Some(opening) = found(config) {
            consent.lacks.push(opening.clone());
            consent.found = Some((opening, Box::new(config.clone())));
        }
        consent
    }

    /// What is found of deaddrop's own that it has not made for this person: sessions, replies,
    /// approvals. It came with the folder.
    pub fn found(&self) -> Option<&Opening> {
        self.found.as_ref().map(|(opening, _)| opening)
    }

    /// All that the settings of the base directory open, whether that is in force or not.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// What of it is in force, and not agreed to.
    pub fn lacks(&self) -> &[Opening] {
        &self.lacks
    }

    /// Whether all that the settings open is agreed to, also what a flag or a variable goes over now.
    pub fn is_whole(&self) -> bool {
        self.openings.is_empty() || self.noted().is_ok_and(|noted| noted == Some(self.digest()))
    }

    /// Lets flags and variables pass that lead nowhere else than they say.
    ///
    /// # Errors
    /// A link in the base directory leads one out of there: to agree to that is to name the place.
    pub fn requires_names(&self) -> Result<()> {
        self.led_away.as_ref().map_or(Ok(()), |told| Err(Error::usage(told.clone())))
    }

    /// Lets those pass that open nothing, or what was agreed to.
    ///
    /// # Errors
    /// Something is not agreed to; it is told, line by line, with what to do.
    pub fn require(&self) -> Result<()> {
        self.requires_names()?;
        if self.lacks.is_empty() {
            return Ok(());
        }
        let lines: String = self.lines().iter().map(|line| format!("\n  {line}")).collect();
        let base = shell_word(&self.base.display().to_string());
        let rest = match &self.unknown {
            None => format!(
                "Somebody else may have written that. Look at it, and if you agree: `deaddrop -C {base} config allow`, once."
            ),
            Some(why) => format!(
                "Whether you agreed cannot be told: {why}. What flags, variables (DEADDROP_…) and your own settings file say needs no such note."
            ),
        };
        let what = match &self.found {
            Some(_) if self.lacks.len() == 1 => "something came with it, and is not of your making",
            Some(_) => {
                "it opens what is closed else, and something came with it, and you have not agreed to that"
            }
            None => "it opens what is closed else, and you have not agreed to that",
        };
        let problem = format!("{what}:{lines}\n{rest}");
        Err(Error::config(self.whose(), problem).with_code("consent-needed"))
    }

    /// What is in force and not agreed to, a line each.
    pub fn lines(&self) -> Vec<String> {
        self.lacks.iter().map(Opening::line).collect()
    }

    /// The settings file, or the base directory where only its folders lead away.
    pub fn whose(&self) -> String {
        let has_file = self.openings.iter().any(|opening| opening.origin.is_some());
        let whose = if has_file { self.base.join(FILE) } else { self.base.clone() };
        visible_line(&whose.display().to_string()).into_owned()
    }

    /// Notes that the person agrees to all that the settings open, and to what is found.
    ///
    /// # Errors
    /// It cannot be noted, or is too long to be looked at.
    pub fn allow(&self) -> Result<()> {
        let long = self.openings.iter().chain(self.found()).find(|opening| opening.is_too_long());
        if let Some(Opening { name, origin, .. }) = long {
            let what_to_do = match origin {
                Some(_) => "shorten it, or say it in your own settings file",
                None if name == TRACKED => "have git track less of it (`git rm -r --cached`)",
                None => "look at it there, and move away what is not yours",
            };
            let problem = format!(
                "{} is longer than the {SHOWN} characters that are shown, so nobody can agree to it here; {what_to_do}",
                visible_line(name)
            );
            return Err(Error::config(self.whose(), problem));
        }
        if let Some((_, config)) = &self.found {
            config.note()?;
        }
        self.allow_settings()
    }

    /// The same for the settings alone.
    fn allow_settings(&self) -> Result<()> {
        if self.openings.is_empty() {
            // What was agreed to is gone, and nobody meant it for what comes later.
            return self.forget().map(drop);
        }
        let other =
            "what flags, variables (DEADDROP_…) and your own settings file say needs no such note";
        let path = self.path().map_err(|why| Error::usage(format!("{why}; {other}")))?;
        let note = Note { base: self.base.display().to_string(), settings: self.digest() };
        let text = serde_json::to_string(&note).unwrap_or_default() + "\n";
        let folder = path.parent().unwrap_or(&path);
        let made = make_folder(folder).map_err(|e| Error::io("make the folder", folder, e));
        made.and_then(|()| atomic::write_private(&path, text.as_bytes())).map_err(|e| {
            Error::usage(format!(
                "it cannot be noted that you agree ({e}): make room there, or set XDG_STATE_HOME to a folder of yours; {other}"
            ))
        })
    }

    /// Takes back what was agreed to. Returns whether there was something.
    ///
    /// # Errors
    /// It cannot be taken back.
    pub fn forget(&self) -> Result<bool> {
        let Ok(path) = self.path() else { return Ok(false) };
        match fs::remove_file(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            done => done.map(|()| true).map_err(|e| Error::io("remove", &path, e)),
        }
    }

    /// Notes that the person agrees to what they have just set: the settings `keys`, or as they were
    /// before (`before`), if they had agreed to that. Returns whether all is agreed to now.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn follow(&self, before: &Self, keys: &[&str]) -> Result<bool> {
        let is_known = |opening: &Opening| {
            before.openings.iter().any(|known| known.exact() == opening.exact())
                || keys.iter().any(|key| opening.is_of(key))
        };
        if !before.is_whole() || !self.openings.iter().all(is_known) {
            return Ok(self.is_whole());
        }
        self.allow_settings().map(|()| true)
    }

    /// A digest of all that the settings open.
    fn digest(&self) -> String {
        let mut exact: Vec<_> = self.openings.iter().map(Opening::exact).collect();
        exact.sort_unstable();
        // What is agreed to by its name (a program in it) is another where the folder is.
        let text = serde_json::to_string(&(exact, folder_of(&self.base))).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Where the note is, or would be; or why there can be none.
    fn path(&self) -> Result<PathBuf, String> {
        let home = state_home().ok_or(
            "HOME does not say where that is noted; set HOME or XDG_STATE_HOME to a folder of yours",
        )?;
        Ok(home.join(FOLDER).join(name_of(&self.base)))
    }

    /// The digest that is noted, if one is; or why that cannot be told.
    fn noted(&self) -> Result<Option<String>, String> {
        let path = self.path()?;
        let wrong = |why: String| format!("{}: {why}", path.display());
        let text = match atomic::read_own_within(&path, LIMIT) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|e| wrong(e.to_string()))?,
        };
        // One that was cut off says nothing.
        Ok(serde_json::from_slice::<Note>(&text).ok().map(|note| note.settings))
    }
}

impl Opening {
    /// Whether more than what is shown of its value has to be looked at.
    fn is_too_long(&self) -> bool {
        visible_line(&self.value).char_indices().nth(SHOWN).is_some()
    }

    /// It in a line for a terminal, with what it does.
    pub fn line(&self) -> String {
        let Self { name, value, origin, does, .. } = self;
        let value = visible_line(value);
        let value = match value.char_indices().nth(SHOWN) {
            Some((cut, _)) => {
                format!(
                    "{}… ({})",
                    &value[..cut],
                    count(value[cut..].chars().count(), "more character")
                )
            }
            None => value.into_owned(),
        };
        let line = origin.as_ref().and_then(|origin| origin.rsplit_once(':'));
        let line = line.map(|(_, line)| format!(" (line {line})")).unwrap_or_default();
        format!("{} = {value}{line}: {does}", visible_line(name))
    }
}
