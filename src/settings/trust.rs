//! Which settings of a project need the person's consent, and whether they have it.
//!
//! `deaddrop.toml` may have come with a repository, or a reply may have left it where somebody starts
//! deaddrop later. What it weakens counts only once the person has agreed: a note in their own folder, one
//! for each project, says to exactly what. Flags, variables and the person's own file need none.
//! The same holds for what stands in deaddrop's folders there without deaddrop having made it, and for what
//! git tracks in them: a pull puts it there, and whoever can push has written it.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::git::ask_git;
use super::in_force::toml_of;
use super::own::{make_folder, name_of, state_home};
use super::policy::{self, Policy};
use super::raw::{Given, Value};
use super::registry::folder_of;
use super::table::{SETTINGS, Weakens, canonical, find};
use super::{
    Config, FILE, FOLDER, Guest, Layers, Mode, Name, RUN_POLICY, Raw, SESSION_POLICY, SecretsMode,
    folded, real,
};
use crate::atomic;
use crate::error::{Error, Result};
use crate::program::Programs;
use crate::text::{count, shell_word, visible_line};

/// The folder of notes.
const NOTES: &str = "allowed";
/// A note is smaller.
const LIMIT: u64 = 64 << 10;
/// So many characters of a value are shown; longer ones nobody looks at.
const SHOWN: usize = 4_000;

/// What is noted of a project.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    /// For whoever looks at it; its file's name is what counts.
    project: String,
    /// A digest of what its settings opened.
    settings: String,
}

/// What the settings of a project open, and whether the person has agreed to that.
#[derive(Debug, Clone)]
#[must_use]
pub struct Consent {
    project: PathBuf,
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
    /// Of a project with these settings.
    pub(super) fn of(config: &Config, layers: &Layers) -> Self {
        let project = &config.project;
        let mut openings = openings(project, layers);
        openings.extend(tracked(config));
        // What a flag or a variable says is what counts, and said by the person.
        let is_over = |name: &str| layers.environment.sets(name) || layers.flags.sets(name);
        let in_force = openings.iter().filter(|opening| !is_over(&opening.name));
        let mut consent = Self {
            project: project.to_owned(),
            lacks: in_force.cloned().collect(),
            openings,
            led_away: led_away(project, layers),
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

    /// All that the settings of the project open, whether that is in force or not.
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
    /// A link in the project leads one out of there: to agree to that is to name the place.
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
        let project = shell_word(&self.project.display().to_string());
        let rest = match &self.unknown {
            None => format!("If you trust it, run `deaddrop -C {project} config allow` once."),
            Some(why) => format!(
                "Your consents cannot be read: {why}. Flags, variables (DEADDROP_…) and your own settings file need none."
            ),
        };
        let what = match &self.found {
            Some(_) if self.lacks.len() == 1 => {
                "this folder contains deaddrop data that you have not trusted yet (was it moved or copied?)"
            }
            Some(_) => {
                "these settings weaken the defaults, and this folder contains deaddrop data that you have not trusted yet"
            }
            None => "these settings weaken the defaults and need your consent",
        };
        let problem = format!("{what}:{lines}\n{rest}");
        Err(Error::config(self.whose(), problem).with_code("consent-needed"))
    }

    /// What is in force and not agreed to, a line each.
    pub fn lines(&self) -> Vec<String> {
        self.lacks.iter().map(Opening::line).collect()
    }

    /// The settings file, or the project where only its folders lead away.
    pub fn whose(&self) -> String {
        let has_file = self.openings.iter().any(|opening| opening.origin.is_some());
        let whose = if has_file { self.project.join(FILE) } else { self.project.clone() };
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
                Some(_) => "shorten it, or move it to your own settings file",
                None if name == TRACKED => "have git track less of it (`git rm -r --cached`)",
                None => "check it, and move away what is not yours",
            };
            let problem = format!(
                "{} is longer than the {SHOWN} characters that can be shown for consent; {what_to_do}",
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
        let other = "flags, variables (DEADDROP_…) and your own settings file need no consent";
        let path = self.path().map_err(|why| Error::usage(format!("{why}; {other}")))?;
        let note = Note { project: self.project.display().to_string(), settings: self.digest() };
        let text = serde_json::to_string(&note).unwrap_or_default() + "\n";
        let folder = path.parent().unwrap_or(&path);
        let made = make_folder(folder).map_err(|e| Error::io("make the folder", folder, e));
        made.and_then(|()| atomic::write_private(&path, text.as_bytes())).map_err(|e| {
            Error::usage(format!(
                "your consent cannot be recorded ({e}): make room there, or set XDG_STATE_HOME to a folder of yours; {other}"
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
        let text = serde_json::to_string(&(exact, folder_of(&self.project))).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// Where the note is, or would be; or why there can be none.
    fn path(&self) -> Result<PathBuf, String> {
        let home = state_home().ok_or(
            "without HOME there is no place for them; set HOME or XDG_STATE_HOME to a folder of yours",
        )?;
        Ok(home.join(NOTES).join(name_of(&self.project)))
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

/// The policies that sessions and runs have where none is set.
const UNSET: [&str; 2] = [SESSION_POLICY, RUN_POLICY];

/// What opens something: a setting of a project, or what stands or is tracked in its own folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The setting's name, as in `sandbox.network`; or what it is.
    pub name: String,
    /// Its value as a settings file has it; of files and folders also where they lead.
    pub value: String,
    /// Where it was made: a file with its line. Of what no file sets there is none: where a link leads out
    /// what the person set themselves, what is found, what git tracks.
    pub origin: Option<String>,
    /// What it does, in a few words.
    pub does: &'static str,
    /// All that was agreed to with it, whatever is shown.
    pub(super) exact: String,
}

impl Opening {
    /// A text that differs wherever the person would have to be asked anew.
    fn exact(&self) -> (&str, &str) {
        (&self.name, &self.exact)
    }

    /// Whether a change of the setting `key` is one of this.
    fn is_of(&self, key: &str) -> bool {
        let key = canonical(key);
        // What one line of a policy says may weigh otherwise for the sake of another.
        let policy = |name: &str| {
            let mut parts = name.split('.');
            (parts.next() == Some("policies")).then(|| parts.next().map(str::to_owned)).flatten()
        };
        let is_within = key != "sandbox" && self.name.starts_with(&format!("{key}."));
        self.name == key
            || is_within
            || (policy(key).is_some() && policy(key) == policy(&self.name))
            || (self.name == "policy" && policy(key).is_some())
    }
}

/// What the settings file of the project opens, by its canonical path; `layers` are in order.
fn openings(project: &Path, layers: &Layers) -> Vec<Opening> {
    let table = SETTINGS.iter().filter_map(|setting| {
        let (name, consent) = (&setting.name, setting.consent.as_ref()?);
        let (value, exact) = opening(name, consent.when, project, layers)?;
        let origin = layers.file.sets(name).then(|| layers.file.setting(name).origin);
        Some(Opening { name: name.clone(), value, origin, does: &consent.does, exact })
    });
    table.chain(of_guest(project, layers)).chain(of_policies(layers)).collect()
}

/// The value of a setting that opens something, and all that it comes to.
fn opening(
    name: &str,
    weakens: Weakens,
    project: &Path,
    layers: &Layers,
) -> Option<(String, String)> {
    let Layers { own, file, .. } = layers;
    match weakens {
        Weakens::Outside => return outside(name, project, layers),
        Weakens::Beside => return beside(name, project, layers),
        Weakens::Guest | Weakens::Policies => return None,
        _ if !file.sets(name) => return None,
        _ => {}
    }
    let set = file.setting(name);
    // What is wrong in the person's own file holds nothing, and the default counts.
    let written = own.setting(name);
    let default = Raw::default().setting(name);
    let beneath = if written.check().is_ok() { &written } else { &default };
    let more = |list: &Value, other: &Value| match (list, other) {
        (Value::List(list), Value::List(other)) => list.iter().any(|item| !other.contains(item)),
        _ => false,
    };
    let opened = match weakens {
        Weakens::Outside | Weakens::Beside | Weakens::Guest | Weakens::Policies => false,
        Weakens::Weaker => can_be_weaker(set.choice().ok()?, beneath.choice().ok()?),
        Weakens::On => set.switch().ok()? && !beneath.switch().ok()?,
        Weakens::Off => set.to_json() == "off" && beneath.to_json() != "off",
        Weakens::Items => more(&set.value, &beneath.value),
        // One wrong item in the person's list takes nothing from the others.
        Weakens::Lacking => more(&beneath.value, &set.value) || more(&written.value, &set.value),
        Weakens::Shown => {
            let shown = |setting: &Given| {
                setting.choice::<SecretsMode>().is_ok_and(|mode| mode == SecretsMode::Warn)
            };
            shown(&set) && !shown(beneath)
        }
        Weakens::Policy => {
            let all = policies(&Raw::merged([own, file]));
            let (name, beneath) = (set.policy(), beneath.policy());
            if name.is_none() && beneath.is_none() {
                return None;
            }
            // An empty name takes the person's own away, and leaves what is chosen without any.
            let chosen = name.as_deref().map_or(UNSET.to_vec(), |name| vec![name]);
            let chosen: Vec<&Policy> =
                chosen.into_iter().filter_map(|name| all.get(name)).collect();
            let without = policies(own);
            let beneath = without.get(beneath.as_deref().unwrap_or(RUN_POLICY));
            let allows_more =
                |chosen: &&Policy| beneath.is_none_or(|beneath| chosen.allows_more(beneath));
            let written = toml_of(&name.as_deref().unwrap_or_default().into());
            // The same name can come to mean another.
            let exact = || chosen.iter().map(|policy| policy.to_toml()).collect();
            return chosen.iter().any(allows_more).then(|| (written, exact()));
        }
    };
    let value = toml_of(&set.to_json());
    opened.then(|| (value.clone(), value))
}

/// Whether there are machines on which one confines commands less than the other. Each but `auto` is one
/// way alone, and confines nothing where that is not to be had: under `bwrap` where the program is missing.
fn can_be_weaker(mode: Mode, than: Mode) -> bool {
    mode != than && mode != Mode::Auto && than != Mode::Off
}

/// Whether a folder lies under a protected name: one of the usual ones, or of the person's own. deaddrop's
/// own folder is right for what is its own.
fn is_protected(name: &str, within: &Path, layers: &Layers) -> bool {
    let usual = Raw::default();
    let said = [&usual, &layers.own, &layers.environment, &layers.flags];
    let names = said.into_iter().filter_map(|raw| raw.setting("protected_names").list().ok());
    let names: Vec<Name> = names.flatten().filter_map(|name| Name::new(&name)).collect();
    let within = match within.strip_prefix(FOLDER) {
        Ok(rest) if name != "workspace_dir" => rest,
        _ => within,
    };
    let is_protected = |part: &OsStr| {
        let part = folded(&part.to_string_lossy());
        names.iter().any(|name| name.is(&part))
    };
    within.iter().any(is_protected)
}

/// Whether a place is in the project, and under no protected name there.
fn is_within(name: &str, project: &Path, place: &Path, layers: &Layers) -> bool {
    place.strip_prefix(project).is_ok_and(|within| !is_protected(name, within, layers))
}

/// What is set of one by a file, be it the project's or the person's own, or else the default.
fn set_of(name: &str, Layers { own, file, .. }: &Layers) -> Given {
    if file.sets(name) { file.setting(name) } else { own.setting(name) }
}

/// A folder that lies outside.
fn outside(name: &str, project: &Path, layers: &Layers) -> Option<(String, String)> {
    let (set, own) = (set_of(name, layers), &layers.own);
    let folder = set.folder(project).ok()?;
    let is_own = own.sets(name) && set.value == own.setting(name).value;
    let place = real(&folder);
    let is_within = is_within(name, project, &place, layers);
    // Where no link leads it elsewhere, their own word is followed to the letter.
    if is_within || (is_own && (folder == place || !goes_through(project, &folder))) {
        return None;
    }
    let written = toml_of(&set.to_json());
    Some((written + &leads(&folder, &place), exactly(&[place])))
}

/// What a flag or a variable names, where a link in the project leads it out of there: said of the
/// first. The name is the person's word; where it leads is that of whoever made the link.
fn led_away(project: &Path, layers: &Layers) -> Option<String> {
    let home = env::var_os("HOME").map(PathBuf::from);
    SETTINGS.iter().find_map(|setting| {
        let (name, weakens) = (&setting.name, setting.consent.as_ref()?.when);
        let raw = [&layers.flags, &layers.environment].into_iter().find(|raw| raw.sets(name))?;
        let set = raw.setting(name);
        let paths = match weakens {
            Weakens::Outside => vec![set.folder(project).ok()?],
            Weakens::Beside => set.paths(project, home.as_deref()).ok()?,
            _ => return None,
        };
        let (path, place) = paths.into_iter().find_map(|path| {
            let place = real(&path);
            let is_within = is_within(name, project, &place, layers);
            (!is_within && path != place && goes_through(project, &path)).then_some((path, place))
        })?;
        Some(format!(
            "{}: {} leads through a link in the project to {}; the link may have come with the folder. If you mean that place, name it directly",
            set.origin,
            path.display(),
            place.display()
        ))
    })
}

/// Files and folders beside the workspace.
fn beside(name: &str, project: &Path, layers: &Layers) -> Option<(String, String)> {
    let (set, own) = (set_of(name, layers), layers.own.setting(name));
    let home = env::var_os("HOME").map(PathBuf::from);
    let paths = set.paths(project, home.as_deref()).ok()?;
    let places: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    let (Value::List(items), Value::List(own)) = (&set.value, &own.value) else { return None };
    let opens = |((item, path), place): ((_, &PathBuf), &PathBuf)| {
        !own.contains(item) || (goes_through(project, path) && !place.starts_with(project))
    };
    if !items.iter().zip(&paths).zip(&places).any(opens) {
        return None;
    }
    let written = items.iter().map(|item| toml_of(&item.to_string_lossy().into()));
    let shown: Vec<String> = written
        .zip(&paths)
        .zip(&places)
        .map(|((written, path), place)| written + &leads(path, place))
        .collect();
    Some((format!("[{}]", shown.join(", ")), exactly(&places)))
}

/// Whether something in the project decides where a path leads: what comes with it, a link too, is
/// nobody's word yet.
fn goes_through(project: &Path, path: &Path) -> bool {
    let is_in_base =
        |part: &Path| part.parent().is_some_and(|above| real(above).starts_with(project));
    path.ancestors().any(|part| part.file_name().is_some() && is_in_base(part))
}

/// Where a path leads, if that is elsewhere.
fn leads(path: &Path, place: &Path) -> String {
    if path == place { String::new() } else { format!(" -> {}", place.display()) }
}

/// A text for these places, and for no others.
fn exactly(places: &[PathBuf]) -> String {
    let places = places.iter().map(|place| place.as_os_str().as_encoded_bytes().escape_ascii());
    places.map(|place| place.to_string()).collect::<Vec<_>>().join("\n")
}

fn of_guest(project: &Path, layers: &Layers) -> Vec<Opening> {
    let of = |raw: &Raw| Guest::resolve(raw, project).ok().flatten();
    let (Some(guest), Some(origin)) = (of(&layers.file), layers.file.tables.get("guest")) else {
        return Vec::new();
    };
    if of(&layers.own).as_ref() == Some(&guest) {
        return Vec::new();
    }
    let settings = guest.settings().into_iter();
    settings
        .map(|(name, value)| {
            let (name, value) = (format!("guest.{name}"), toml_of(&value));
            let does = does(&name);
            Opening { name, exact: value.clone(), value, origin: Some(origin.clone()), does }
        })
        .collect()
}

/// What a setting does where it weakens something.
fn does(name: &str) -> &'static str {
    find(name).and_then(|setting| setting.consent.as_ref()).map_or("", |consent| &consent.does)
}

/// What is changed of policies, where it allows more than without. One of a new name is nobody's
/// before it is chosen: it is measured by the one that leaves all to the sandbox.
fn of_policies(layers: &Layers) -> Vec<Opening> {
    let Layers { own, file, .. } = layers;
    let (all, without) = (policies(&Raw::merged([own, file])), policies(own));
    let opens = |name: &str| {
        let beneath = without.get(name).or_else(|| without.get("workspace"));
        let changed = all.get(name);
        changed.zip(beneath).is_none_or(|(changed, beneath)| changed.allows_more(beneath))
    };
    let policy = |given: &Given| given.name().split('.').nth(1).is_some_and(opens);
    let settings = file.within("policies").filter(policy);
    settings
        .map(|given| {
            let (name, value) = (given.name().to_owned(), toml_of(&given.to_json()));
            let does = does(&name);
            Opening { name, exact: value.clone(), value, origin: Some(given.origin), does }
        })
        .collect()
}

/// The policies that there are by some settings; of those that are not in order by themselves, the
/// presets.
fn policies(raw: &Raw) -> BTreeMap<String, Policy> {
    policy::resolve(raw).or_else(|_| policy::resolve(&Raw::default())).unwrap_or_default()
}

/// So many names of what a folder holds are shown.
const NAMES: usize = 20;
/// Files that only keep a folder in a repository.
const KEEPERS: [&str; 4] = [".gitkeep", ".keep", ".gitignore", "README.md"];

/// What stands in folders of a project that are to be deaddrop's own and were not before: whoever
/// put it there can have written it, also where a flag says the name. Those elsewhere are openings
/// themselves.
fn found(config: &Config) -> Option<Opening> {
    let project = &config.project;
    let foreign = config.roles().into_iter().filter(|(role, folder)| {
        real(folder).starts_with(project) && !config.is_own(*role, folder)
    });
    let told = foreign.filter_map(|(_, folder)| {
        let held = held(folder)?;
        Some(format!("{} ({held})", folder.strip_prefix(project).unwrap_or(folder).display()))
    });
    let names: Vec<String> = told.collect();
    (!names.is_empty()).then(|| Opening {
        name: "found here".to_owned(),
        value: names.join(", "),
        origin: None,
        does: "this data is used as your sessions, replies and approvals",
        exact: String::new(),
    })
}

/// What stands in a folder beside what keeps it in a repository, the first of it by name; None where there
/// is nothing else.
fn held(folder: &Path) -> Option<String> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(format!("which cannot be read: {e}")),
    };
    let keeps = |entry: &fs::DirEntry| {
        is_keeper(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| match entry {
            Ok(entry) if keeps(&entry) => None,
            Ok(entry) => Some(entry.file_name().to_string_lossy().into_owned()),
            Err(e) => Some(e.to_string()),
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| names.join(", ") + &more)
}

/// Whether that is the name of a file that only keeps a folder in a repository.
fn is_keeper(name: &OsStr) -> bool {
    KEEPERS.iter().any(|keeper| name == *keeper)
}

/// What that is called among what opens something.
const TRACKED: &str = "tracked by git";
/// What a regular file is to git, whatever its rights.
const REGULAR: &str = "100";

/// What repositories track in deaddrop's own folders, with what each file is in them, so that another one
/// has to be agreed to anew. Where there is no git, nobody pulls.
fn tracked(config: &Config) -> Option<Opening> {
    let folders = config.roles().map(|(_, folder)| real(folder));
    let folders: Vec<&Path> = folders
        .iter()
        .map(PathBuf::as_path)
        .filter(|folder| folder.starts_with(&config.project))
        .collect();
    // One may lie in another, which tracks what it does not.
    let around: BTreeSet<&Path> = folders.iter().flat_map(|folder| folder.ancestors()).collect();
    let repositories = around.into_iter().filter(|folder| folder.join(".git").exists());
    let programs = Programs::of(config);
    let all: Vec<(String, String)> = repositories
        .flat_map(|repository| tracked_in(&programs, repository, &folders, &config.project))
        .collect();
    let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
    (!names.is_empty()).then(|| Opening {
        name: TRACKED.to_owned(),
        value: names.join(", "),
        origin: None,
        does: "whoever can push there can write your sessions, replies and approvals",
        exact: all.iter().flat_map(|(what, name)| [what, "\t", name, "\n"]).collect(),
    })
}

/// What a repository tracks of these folders: what each file is, and its path in the project; or why
/// that is not known.
/// It is asked at its root: further down, what lies there could pass for another.
fn tracked_in(
    programs: &Programs,
    repository: &Path,
    folders: &[&Path],
    project: &Path,
) -> Vec<(String, String)> {
    let within = folders.iter().filter_map(|folder| folder.strip_prefix(repository).ok());
    let within = within.map(|folder| match folder.as_os_str() {
        whole if whole.is_empty() => OsStr::new("."),
        folder => folder,
    });
    let asked = ["--literal-pathspecs", "ls-files", "-s", "-z", "--"].map(OsStr::new);
    let listed = match ask_git(programs, repository, asked.into_iter().chain(within)) {
        Ok(Some(listed)) => listed,
        Ok(None) => return Vec::new(),
        Err(why) => {
            let told = format!("git does not list {} ({why})", repository.display());
            return vec![(String::new(), told)];
        }
    };
    let listed = String::from_utf8_lossy(&listed);
    let files = listed.split('\0').filter_map(|line| line.split_once('\t'));
    let is_keeper = |what: &str, path: &str| {
        // Links to elsewhere keep no folder in a repository.
        what.starts_with(REGULAR) && Path::new(path).file_name().is_some_and(is_keeper)
    };
    let files = files.filter(|(what, path)| !is_keeper(what, path));
    files
        .map(|(what, path)| {
            let path = repository.join(path);
            let path = path.strip_prefix(project).unwrap_or(&path);
            (what.to_owned(), path.display().to_string())
        })
        .collect()
}
