//! Which settings of a base directory's own file open something that is closed without them: they name
//! programs, take walls away, or lead out of the base directory. Whoever wrote that file decides with
//! them what may be done with the rights of whoever starts deaddrop there.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::in_force::toml_of;
use super::policy::{self, Policy};
use super::raw::{Given, Value};
use super::table::{SETTINGS, Weakens, canonical, find};
use super::{
    FOLDER, Guest, Layers, Mode, Name, RUN_POLICY, Raw, SESSION_POLICY, SecretsMode, folded, real,
};

/// The policies that sessions and runs have where none is set.
const UNSET: [&str; 2] = [SESSION_POLICY, RUN_POLICY];

/// What opens something: a setting of a base directory, or what stands or is tracked in its own folders.
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
    pub(super) fn exact(&self) -> (&str, &str) {
        (&self.name, &self.exact)
    }

    /// Whether a change of the setting `key` is one of this.
    pub(super) fn is_of(&self, key: &str) -> bool {
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

/// What the settings file of the base directory opens, by its canonical path; `layers` are in order.
pub(super) fn openings(base: &Path, layers: &Layers) -> Vec<Opening> {
    let table = SETTINGS.iter().filter_map(|setting| {
        let (name, consent) = (&setting.name, setting.consent.as_ref()?);
        let (value, exact) = opening(name, consent.when, base, layers)?;
        let origin = layers.file.sets(name).then(|| layers.file.setting(name).origin);
        Some(Opening { name: name.clone(), value, origin, does: &consent.does, exact })
    });
    table.chain(of_guest(base, layers)).chain(of_policies(layers)).collect()
}

/// The value of a setting that opens something, and all that it comes to.
fn opening(name: &str, weakens: Weakens, base: &Path, layers: &Layers) -> Option<(String, String)> {
    let Layers { own, file, .. } = layers;
    match weakens {
        Weakens::Outside => return outside(name, base, layers),
        Weakens::Beside => return beside(name, base, layers),
        Weakens::Guest | Weakens::Policies => return None,
        _ if !file.sets(name) => return None,
        _ => {}
    }
    let set = file.setting(name);
    // What is wrong in the person's own file holds nothing, and the default counts.
    let beneath = Some(own.setting(name)).filter(|own| own.check().is_ok());
    let beneath = beneath.unwrap_or_else(|| Raw::default().setting(name));
    let more = |list: &Value, other: &Value| match (list, other) {
        (Value::List(list), Value::List(other)) => list.iter().any(|item| !other.contains(item)),
        _ => false,
    };
    let opened = match weakens {
        Weakens::Outside | Weakens::Beside | Weakens::Guest | Weakens::Policies => false,
        Weakens::Weaker => can_be_weaker(set.choice().ok()?, beneath.choice().ok()?),
        Weakens::On => set.switch().ok()? && !beneath.switch().ok()?,
        Weakens::Items => more(&set.value, &beneath.value),
        Weakens::Lacking => more(&beneath.value, &set.value),
        Weakens::Shown => {
            let shown = |setting: &Given| {
                setting.choice::<SecretsMode>().is_ok_and(|mode| mode == SecretsMode::Warn)
            };
            shown(&set) && !shown(&beneath)
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

/// Whether a place is in the base directory, and under no protected name there.
fn is_within(name: &str, base: &Path, place: &Path, layers: &Layers) -> bool {
    place.strip_prefix(base).is_ok_and(|within| !is_protected(name, within, layers))
}

/// What is set of one by a file, be it the base directory's or the person's own, or else the default.
fn set_of(name: &str, Layers { own, file, .. }: &Layers) -> Given {
    if file.sets(name) { file.setting(name) } else { own.setting(name) }
}

/// A folder that lies outside.
fn outside(name: &str, base: &Path, layers: &Layers) -> Option<(String, String)> {
    let (set, own) = (set_of(name, layers), &layers.own);
    let folder = set.folder(base).ok()?;
    let is_own = own.sets(name) && set.value == own.setting(name).value;
    let place = real(&folder);
    let is_within = is_within(name, base, &place, layers);
    // Where no link leads it elsewhere, their own word is followed to the letter.
    if is_within || (is_own && (folder == place || !goes_through(base, &folder))) {
        return None;
    }
    let written = toml_of(&set.to_json());
    Some((written + &leads(&folder, &place), exactly(&[place])))
}

/// What a flag or a variable names, where a link in the base directory leads it out of there: said of the
/// first. The name is the person's word; where it leads is that of whoever made the link.
pub(super) fn led_away(base: &Path, layers: &Layers) -> Option<String> {
    let home = env::var_os("HOME").map(PathBuf::from);
    SETTINGS.iter().find_map(|setting| {
        let (name, weakens) = (&setting.name, setting.consent.as_ref()?.when);
        let raw = [&layers.flags, &layers.environment].into_iter().find(|raw| raw.sets(name))?;
        let set = raw.setting(name);
        let paths = match weakens {
            Weakens::Outside => vec![set.folder(base).ok()?],
            Weakens::Beside => set.paths(base, home.as_deref()).ok()?,
            _ => return None,
        };
        let (path, place) = paths.into_iter().find_map(|path| {
            let place = real(&path);
            let is_within = is_within(name, base, &place, layers);
            (!is_within && path != place && goes_through(base, &path)).then_some((path, place))
        })?;
        Some(format!(
            "{}: {} leads by a link in the base directory to {}; whoever made the folder may have made the link, too. Name that place itself, if you mean it",
            set.origin,
            path.display(),
            place.display()
        ))
    })
}

/// Files and folders beside the workspace.
fn beside(name: &str, base: &Path, layers: &Layers) -> Option<(String, String)> {
    let (set, own) = (set_of(name, layers), layers.own.setting(name));
    let home = env::var_os("HOME").map(PathBuf::from);
    let paths = set.paths(base, home.as_deref()).ok()?;
    let places: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    let (Value::List(items), Value::List(own)) = (&set.value, &own.value) else { return None };
    let opens = |((item, path), place): ((_, &PathBuf), &PathBuf)| {
        !own.contains(item) || (goes_through(base, path) && !place.starts_with(base))
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

/// Whether something in the base directory decides where a path leads: what comes with it, a link too, is
/// nobody's word yet.
fn goes_through(base: &Path, path: &Path) -> bool {
    let is_in_base = |part: &Path| part.parent().is_some_and(|above| real(above).starts_with(base));
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

fn of_guest(base: &Path, layers: &Layers) -> Vec<Opening> {
    let of = |raw: &Raw| Guest::resolve(raw, base).ok().flatten();
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

#[cfg(test)]
mod tests;
