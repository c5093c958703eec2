//! Decides which settings of a project need the person's consent, and whether they have it.
//!
//! `deaddrop.toml` may have come with a repository. If it weakens the defaults, the person must consent first. The
//! registry contains, for each project, a digest of exactly what the person consented to. Flags, variables and the
//! person's own file need no consent. Data in deaddrop's folders that deaddrop did not write also needs consent, and so
//! do files there that git tracks, since anybody who can push can write them.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::effective::toml_of;
use super::git::run_git;
use super::layers::SettingValue;
use super::registry::{identity_of, record_consent};
use super::table::{NeedsConsent, SETTINGS, canonical};
use super::{Config, FILE, FOLDER, FileName, Layer, Layers, folded, real_path};
use crate::error::{Error, Result};
use crate::links::follow;
use crate::program::Programs;
use crate::text::{first_of, shell_word, visible_line};

/// The longest value that is shown, in characters. Consent to a longer value is impossible.
const MAX_VALUE: usize = 4_000;

/// What a project weakens, and whether the person has consented.
#[derive(Debug, Clone)]
#[must_use]
pub struct Consent {
    project: PathBuf,
    /// Everything that the project's file weakens, and the files in deaddrop's folders that git tracks.
    weakenings: Vec<Weakening>,
    /// The weakenings that are in force without consent.
    missing: Vec<Weakening>,
    /// The digest of what the person consented to.
    recorded: Option<String>,
    /// The error if a link in the project leads a path from a flag or variable out of the project.
    link_problem: Option<String>,
    /// Data in deaddrop's folders that deaddrop did not write for this person.
    untrusted_data: Option<Weakening>,
}

impl Consent {
    /// Determines the consent for a project with these settings.
    pub(super) fn of(config: &Config, layers: &Layers) -> Self {
        let project = &config.project;
        let mut weakenings = weakenings(project, layers);
        weakenings.extend(tracked(config));
        // Flags and variables are set by the person.
        let is_over = |name: &str| layers.environment.sets(name) || layers.flags.sets(name);
        let in_force = weakenings.iter().filter(|weakening| !is_over(&weakening.name));
        let mut consent = Self {
            project: project.to_owned(),
            missing: in_force.cloned().collect(),
            weakenings,
            link_problem: link_problem(project, layers),
            recorded: config.recorded_consent(),
            untrusted_data: untrusted_data(config),
        };
        if consent.is_complete() {
            consent.missing.clear();
        }
        consent.missing.extend(consent.untrusted_data.clone());
        consent
    }

    /// Data in deaddrop's folders that came with the project. It would be used as sessions, replies and approvals.
    pub fn untrusted_data(&self) -> Option<&Weakening> {
        self.untrusted_data.as_ref()
    }

    /// Everything that the project's settings weaken, even if another layer overrides it.
    pub fn weakenings(&self) -> &[Weakening] {
        &self.weakenings
    }

    /// The weakenings that are in force without consent.
    pub fn missing(&self) -> &[Weakening] {
        &self.missing
    }

    /// Whether the person consented to everything that the settings weaken, even if another layer overrides it.
    pub fn is_complete(&self) -> bool {
        self.weakenings.is_empty() || self.recorded == Some(self.digest())
    }

    /// Rejects paths from flags and variables that a link in the project leads out of the project. The person can name
    /// the target directly.
    pub fn check_links(&self) -> Result<()> {
        self.link_problem.as_ref().map_or(Ok(()), |problem| Err(Error::usage(problem.clone())))
    }

    /// Rejects settings that are in force without consent. The error lists them and suggests what to do.
    pub fn require(&self) -> Result<()> {
        self.check_links()?;
        if self.missing.is_empty() {
            return Ok(());
        }
        let lines: String = self.lines().iter().map(|line| format!("\n  {line}")).collect();
        let project = shell_word(&self.project.display().to_string());
        let what = match &self.untrusted_data {
            Some(_) if self.missing.len() == 1 => {
                "this folder contains deaddrop data that you have not trusted yet (was it moved or copied?)"
            }
            _ => "this can weaken the defaults and needs your consent",
        };
        let problem = format!(
            "{what}:{lines}\nIf you trust it, run `deaddrop -C {project} config allow` once."
        );
        Err(Error::config(self.subject(), problem).with_code("consent-needed"))
    }

    /// Describes the weakenings that are in force without consent, one line each.
    pub fn lines(&self) -> Vec<String> {
        self.missing.iter().map(Weakening::line).collect()
    }

    /// The settings file, or the project if only its folders need consent.
    pub fn subject(&self) -> String {
        let has_file = self.weakenings.iter().any(|weakening| weakening.origin.is_some());
        let subject = if has_file { self.project.join(FILE) } else { self.project.clone() };
        visible_line(&subject.display().to_string()).into_owned()
    }

    /// Records that the person consents to everything.
    ///
    /// # Errors
    /// Consent cannot be recorded, or a value is too long to be shown.
    pub fn allow(&self, config: &Config) -> Result<()> {
        let mut all = self.weakenings.iter().chain(self.untrusted_data());
        if let Some(Weakening { name, .. }) = all.find(|weakening| weakening.is_long()) {
            let problem = format!(
                "{} is longer than the {MAX_VALUE} characters that can be shown for consent; shorten it, or move it away",
                visible_line(name)
            );
            return Err(Error::config(self.subject(), problem));
        }
        if self.untrusted_data.is_some() {
            config.register()?;
        }
        self.allow_settings()
    }

    fn allow_settings(&self) -> Result<()> {
        // If nothing is weakened, an earlier consent is removed, so that it does not apply to later settings.
        let digest = (!self.weakenings.is_empty()).then(|| self.digest());
        if digest == self.recorded {
            return Ok(());
        }
        record_consent(&self.project, digest.as_ref()).map_err(|e| {
            Error::usage(format!(
                "your consent cannot be recorded ({e}): make room there, or set XDG_STATE_HOME to a folder of yours; flags, variables (DEADDROP_…) and your own settings file need no consent"
            ))
        })
    }

    /// If the consent was complete `before`, extends it to the settings that the person has just changed (`keys`).
    /// Returns whether it is complete now.
    ///
    /// # Errors
    /// Consent cannot be recorded.
    pub fn extend_to(&self, before: &Self, keys: &[&str]) -> Result<bool> {
        let is_known = |weakening: &Weakening| {
            before.weakenings.iter().any(|known| known.exact() == weakening.exact())
                || keys.iter().any(|key| weakening.may_result_from(key))
        };
        if !before.is_complete() || !self.weakenings.iter().all(is_known) {
            return Ok(self.is_complete());
        }
        self.allow_settings().map(|()| true)
    }

    /// A digest of everything that the settings weaken.
    fn digest(&self) -> String {
        let mut exact: Vec<_> = self.weakenings.iter().map(Weakening::exact).collect();
        exact.sort_unstable();
        // In another folder, the same name may refer to another program.
        let text = serde_json::to_string(&(exact, identity_of(&self.project))).unwrap_or_default();
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}

impl Weakening {
    /// Whether the value is too long to be shown.
    fn is_long(&self) -> bool {
        visible_line(&self.value).chars().count() > MAX_VALUE
    }

    /// A line for a terminal.
    pub fn line(&self) -> String {
        let Self { name, value, origin, does, .. } = self;
        let mut value: String = visible_line(value).chars().take(MAX_VALUE).collect();
        if self.is_long() {
            value.push('…');
        }
        let line = origin.as_ref().and_then(|origin| origin.rsplit_once(':'));
        let line = line.map(|(_, line)| format!(" (line {line})")).unwrap_or_default();
        format!("{} = {value}{line}: {does}", visible_line(name))
    }
}

/// Something that needs consent: a setting of a project, or data or tracked files in deaddrop's folders there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakening {
    /// The name of the setting, such as `sandbox.network`, or what else needs consent.
    pub name: String,
    /// The value in TOML. For files and folders it includes the targets of links.
    pub value: String,
    /// The file and line. None for data and tracked files, and for a value that is not set by the project's file, but
    /// led elsewhere by a link in the project.
    pub origin: Option<String>,
    /// The effect, in a few words.
    pub does: &'static str,
    /// The exact value to which the consent is bound.
    pub(super) exact: String,
}

impl Weakening {
    /// The name and value to which the consent is bound.
    fn exact(&self) -> (&str, &str) {
        (&self.name, &self.exact)
    }

    /// Whether a change of the setting `key` can be the cause.
    fn may_result_from(&self, key: &str) -> bool {
        let key = canonical(key);
        self.name == key || (key != "sandbox" && self.name.starts_with(&format!("{key}.")))
    }
}

/// Everything that the project's settings file weakens. `project` is canonical.
fn weakenings(project: &Path, layers: &Layers) -> Vec<Weakening> {
    let in_table = SETTINGS.iter().map(|setting| &*setting.name).filter(|name| !name.contains('*'));
    let of_policies = layers.file.within("policies").map(|given| &*given.name);
    in_table.chain(of_policies).filter_map(|name| weakening(name, project, layers)).collect()
}

/// Returns a setting if it needs consent: because of its paths (see [`outside`]), or because the project's file gives
/// it a value that is neither the strictest nor the one that applies without that file.
fn weakening(name: &str, project: &Path, layers: &Layers) -> Option<Weakening> {
    let Layers { own, file, .. } = layers;
    let (set, beneath) = (file.setting(name), own.setting(name));
    let NeedsConsent { unless, does } = set.setting.consent.as_ref()?;
    let (value, exact) = if set.setting.has_paths() {
        outside(name, project, layers)?
    } else {
        // A setting in a table has no default that applies without the table.
        let applies = own.sets(name) || !set.setting.is_of_file();
        let is_same = applies && set.value == beneath.value;
        if !file.sets(name) || is_same || unless.as_ref() == Some(&set.value) {
            return None;
        }
        let value = toml_of(&set.value);
        (value.clone(), value)
    };
    let origin = file.sets(name).then_some(set.origin);
    Some(Weakening { name: name.to_owned(), value, origin, does, exact })
}

/// A path in a setting.
struct LocatedPath<'a> {
    item: &'a str,
    path: PathBuf,
    /// The real path.
    place: PathBuf,
    /// Whether `place` is in the project, and not under a protected name.
    is_inside: bool,
    /// Whether a link in the project, which may have come with it, leads the path out of the project.
    is_led_out: bool,
}

/// The paths of a setting; None if a path is invalid.
fn located<'a>(
    set: &'a SettingValue,
    project: &Path,
    layers: &Layers,
) -> Option<Vec<LocatedPath<'a>>> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let paths = if set.setting.is_folder() {
        vec![(set.text(), set.folder(project))]
    } else {
        set.items().zip(set.paths(project, home.as_deref()).ok()?).collect()
    };
    let located = paths.into_iter().map(|(item, path)| {
        let (links, place) = follow(&path);
        let within = place.strip_prefix(project);
        let is_inside = within.is_ok_and(|within| !is_protected(&set.name, within, layers));
        let is_led_out = !is_inside && links.iter().any(|link| link.at.starts_with(project));
        LocatedPath { item, path, place, is_inside, is_led_out }
    });
    Some(located.collect())
}

/// Whether a folder is under a protected name (a default name, or one that the person added). deaddrop's own folder
/// counts as protected only for the workspace, since its state belongs there.
fn is_protected(name: &str, within: &Path, layers: &Layers) -> bool {
    let default = Layer::default();
    let layers = [&default, &layers.own, &layers.environment, &layers.flags];
    let lists = layers.map(|raw| raw.setting("protected_names"));
    let names: Vec<FileName> =
        lists.iter().flat_map(SettingValue::items).filter_map(FileName::new).collect();
    let within = match within.strip_prefix(FOLDER) {
        Ok(rest) if name != "workspace_dir" => rest,
        _ => within,
    };
    let is_protected = |part: &OsStr| {
        let part = folded(&part.to_string_lossy());
        names.iter().any(|name| name.matches(&part))
    };
    within.iter().any(is_protected)
}

/// Returns the paths of a setting, shown and exact, if one of them needs consent: a folder outside the project, or any
/// path of a list. Paths that the person's own file names need none, unless a link in the project leads elsewhere.
fn outside(name: &str, project: &Path, layers: &Layers) -> Option<(String, String)> {
    let own = layers.own.setting(name);
    let set = if layers.file.sets(name) { layers.file.setting(name) } else { own.clone() };
    let is_folder = set.setting.is_folder();
    let is_own = |item: &str| {
        own.items().any(|own| own == item) || (!own.is_default() && own.text() == item)
    };
    let needs_consent =
        |it: &LocatedPath| !(is_folder && it.is_inside) && (!is_own(it.item) || it.is_led_out);
    let all = located(&set, project, layers)?;
    if !all.iter().any(needs_consent) {
        return None;
    }
    let shown: Vec<String> = all
        .iter()
        .map(|LocatedPath { item, path, place, .. }| {
            let item = toml_of(&(*item).into());
            if path == place { item } else { format!("{item} -> {}", place.display()) }
        })
        .collect();
    let shown = shown.join(", ");
    let exact = all.iter().map(|it| it.place.as_os_str().as_encoded_bytes().escape_ascii());
    let exact: Vec<String> = exact.map(|place| place.to_string()).collect();
    Some((if is_folder { shown } else { format!("[{shown}]") }, exact.join("\n")))
}

/// The error for the first path from a flag or variable that a link in the project leads out of the project. The person
/// chose the path, but not the link's target.
fn link_problem(project: &Path, layers: &Layers) -> Option<String> {
    SETTINGS.iter().find_map(|setting| {
        let raw = [&layers.flags, &layers.environment].into_iter().find(|raw| raw.sets(&setting.name))?;
        let set = Some(raw.setting(&setting.name)).filter(|_| setting.has_paths())?;
        let led_out = located(&set, project, layers)?.into_iter().find(|it| it.is_led_out)?;
        Some(format!(
            "{}: {} leads through a link in the project to {}, and the link may have come with the project. If you want that place, name it directly",
            set.origin,
            led_out.path.display(),
            led_out.place.display()
        ))
    })
}

/// The most file names that are shown.
const MAX_NAMES: usize = 20;
/// Files whose only purpose is to keep an empty folder in a repository.
const KEEPERS: [&str; 4] = [".gitkeep", ".keep", ".gitignore", "README.md"];

/// Data in deaddrop's folders in the project that deaddrop has not used before, even if a flag names the folder.
/// Somebody else may have written it. Folders outside the project need consent themselves.
fn untrusted_data(config: &Config) -> Option<Weakening> {
    let project = &config.project;
    let found = config.roles().into_iter().filter_map(|(role, folder)| {
        let is_foreign = real_path(folder).starts_with(project) && !config.is_own(role, folder);
        let contents = is_foreign.then(|| contents(folder)).flatten()?;
        let folder = folder.strip_prefix(project).unwrap_or(folder);
        Some(format!("{} ({contents})", folder.display()))
    });
    let found: Vec<String> = found.collect();
    (!found.is_empty()).then(|| Weakening {
        name: "found here".to_owned(),
        value: found.join(", "),
        origin: None,
        does: "this data is used as your sessions, replies and approvals",
        exact: String::new(),
    })
}

/// The first names in a folder, except files that only keep it in a repository; None if there are none.
fn contents(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = match entries {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => return Some(format!("which cannot be read: {e}")),
    };
    let keeps = |entry: &fs::DirEntry| {
        is_keeper(&entry.file_name()) && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let names = entries.iter().filter(|entry| !keeps(entry)).map(fs::DirEntry::file_name);
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    (!names.is_empty()).then(|| first_of(&names, MAX_NAMES, names.len()))
}

fn is_keeper(name: &OsStr) -> bool {
    KEEPERS.iter().any(|keeper| name == *keeper)
}

/// The prefix of git's modes of regular files.
const REGULAR_FILE: &str = "100";

/// The files that repositories track in deaddrop's own folders, with mode and content, so that a changed file needs new
/// consent. Without git there is nothing to check, since nobody pulls.
fn tracked(config: &Config) -> Option<Weakening> {
    let folders = config.roles().map(|(_, folder)| real_path(folder)).into_iter();
    let folders: Vec<PathBuf> =
        folders.filter(|folder| folder.starts_with(&config.project)).collect();
    // A repository may be inside another one that tracks other files.
    let around: BTreeSet<&Path> = folders.iter().flat_map(|folder| folder.ancestors()).collect();
    let repositories = around.into_iter().filter(|folder| folder.join(".git").exists());
    let programs = Programs::of(config);
    let all: Vec<(String, String)> = repositories
        .flat_map(|repository| tracked_in(&programs, repository, &folders, &config.project))
        .collect();
    let names: Vec<&str> = all.iter().map(|(_, name)| name.as_str()).collect();
    (!names.is_empty()).then(|| Weakening {
        name: "tracked by git".to_owned(),
        value: names.join(", "),
        origin: None,
        does: "whoever can push there can write your sessions, replies and approvals",
        exact: all.iter().flat_map(|(what, name)| [what, "\t", name, "\n"]).collect(),
    })
}

/// The files that a repository tracks in these folders: mode and content, and the path in the project; or why they are
/// unknown. Git runs at the root, since another repository could be planted further down.
fn tracked_in(
    programs: &Programs,
    repository: &Path,
    folders: &[PathBuf],
    project: &Path,
) -> Vec<(String, String)> {
    let within = folders.iter().filter(|folder| folder.starts_with(repository));
    let asked = ["--literal-pathspecs", "ls-files", "-s", "-z", "--"].map(OsStr::new);
    let listed = match run_git(
        programs,
        repository,
        asked.into_iter().chain(within.map(|folder| folder.as_os_str())),
    ) {
        Ok(Some(listed)) => listed,
        Ok(None) => return Vec::new(),
        Err(why) => {
            let problem = format!("git does not list {} ({why})", repository.display());
            return vec![(String::new(), problem)];
        }
    };
    let listed = String::from_utf8_lossy(&listed);
    let files = listed.split('\0').filter_map(|line| line.split_once('\t'));
    let is_keeper = |what: &str, path: &str| {
        // A link does not keep a folder in a repository.
        what.starts_with(REGULAR_FILE) && Path::new(path).file_name().is_some_and(is_keeper)
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
