//! Settings: raw values with their origins, and the resolved [`Config`]. Flags override `DEADDROP_*` variables,
//! which override the project's `deaddrop.toml`, which overrides the person's own file.

mod discovery;
mod edit;
mod effective;
mod git;
mod layers;
mod names;
mod policy;
mod registry;
mod table;
#[cfg(test)]
mod tests;
mod trust;
mod user_folders;
mod values;

use std::collections::BTreeMap;
use std::env;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::{Error, Result};
use crate::links::follow;
use crate::text::nearest;
pub use discovery::{
    find_project, has_lost_settings, has_session_marks, nearest_candidate, projects_above,
};
pub use edit::{SettingsDraft, check_name, set, unset};
pub use effective::{EffectiveSetting, effective_settings};
pub(crate) use git::is_repository;
pub use git::{CommandTexts, git_references, problem_in_git_directory, run_git};
use layers::Layers;
pub use layers::{Layer, Source};
pub(crate) use names::{FileName, folded, matches};
pub use policy::{FilePolicy, Policy, RUN_POLICY, SESSION_POLICY, ShellPolicy};
pub use registry::{project_writing_to, registered_within, reply_writable_places};
#[cfg(test)]
pub(crate) use table::protected_by_default;
pub use table::{SETTINGS, Setting, canonical, find as find_setting, names};
pub use trust::{Consent, Weakening};
pub use user_folders::{create_user_folders, user_settings_file, user_state_folder};
pub use values::{GuestAddress, Notify, Review, Sandbox, SandboxMode, Secrets, SecretsMode};

/// The settings file of a project.
pub const FILE: &str = "deaddrop.toml";
/// deaddrop's own folder in a project.
pub const FOLDER: &str = ".deaddrop";

/// The resolved settings. All folders are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Config {
    /// The project folder. The other folders are relative to it.
    #[serde(skip)]
    pub project: PathBuf,
    /// The folder that replies may read and change.
    #[serde(rename = "workspace_dir")]
    pub workspace: PathBuf,
    /// The folder in which replies are dropped.
    #[serde(rename = "inbox_dir")]
    pub inbox: PathBuf,
    /// The folder for outboxes.
    #[serde(rename = "outbox_dir")]
    pub outbox: PathBuf,
    /// The folder for sessions.
    #[serde(rename = "sessions_dir")]
    pub sessions: PathBuf,
    /// The folder in which approvals are dropped.
    #[serde(rename = "approvals_dir")]
    pub approvals: PathBuf,
    /// The time limit of a command.
    #[serde(rename = "command_timeout_seconds", deserialize_with = "seconds")]
    pub command_timeout: Duration,
    /// The longest output of a command that the model sees, in characters.
    pub max_output_length: usize,
    /// The longest outbox, in tokens.
    pub max_tokens: usize,
    /// The longest first outbox, in tokens. The task and the files that the person includes may exceed it.
    pub context_tokens: usize,
    /// Whether the first outbox shows contents of the workspace by default.
    pub first_contents: bool,
    /// Whether outboxes are copied and shown in their brief form.
    pub brief: bool,
    /// The longest part of an outbox, in characters.
    pub part_characters: usize,
    /// How commands are confined.
    #[serde(flatten)]
    pub sandbox: Sandbox,
    /// Names of files and folders that replies and commands may not write.
    pub protected_names: Vec<String>,
    /// Whether turns can be undone.
    pub checkpoints: bool,
    /// The largest file to keep for undo, in bytes.
    pub checkpoint_file_bytes: u64,
    /// The largest ignored file to keep for undo, in bytes.
    pub checkpoint_ignored_file_bytes: u64,
    /// The most space for ignored files kept for undo, in bytes.
    pub checkpoint_ignored_bytes: u64,
    /// The most space for undo, in bytes.
    pub checkpoint_max_bytes: u64,
    /// How outboxes are screened for secrets.
    #[serde(flatten)]
    pub secrets: Secrets,
    /// How the end of a turn is announced.
    pub notify: Notify,
    /// Whether the person reviews a reply before it is executed.
    pub review: Review,
    /// The machine that executes operations instead of this one.
    #[serde(skip)]
    pub guest: Option<GuestAddress>,
    /// The policy's name, if set. Otherwise `new` and `ops run` use their own defaults.
    #[serde(deserialize_with = "unless_empty")]
    pub policy: Option<String>,
    /// All policies by name.
    #[serde(skip)]
    policies: BTreeMap<String, Policy>,
    /// Whether this is a space of another project. That project's registered folders hide all of it.
    #[serde(skip)]
    is_space: bool,
    /// What the registry contains about other projects. Empty after [`load_untrusted`](Self::load_untrusted).
    #[serde(skip)]
    known: registry::RegistryView,
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_secs)
}

fn unless_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(|text| Some(text).filter(|text| !text.is_empty()))
}

impl Config {
    /// Loads the settings of a project in order to act on them.
    ///
    /// # Errors
    /// A setting is invalid or lacks the person's consent, or another project keeps its own files in the workspace.
    pub fn load_trusted(project: &Path, flags: Layer) -> Result<Self> {
        let (config, consent) = Self::load(project, flags)?;
        config.check_workspace()?;
        consent.require()?;
        Ok(config)
    }

    /// Loads the settings of a project and the state of their consent, in order to show them or to ask for consent.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn load(project: &Path, flags: Layer) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project.clone(), &Layers::read(&project, flags)?)
    }

    /// The settings for a space of this project in `folder`: the same limits, but a sandbox that shows nothing of the
    /// project, not even what commands of the project may see.
    #[must_use]
    pub fn for_space(&self, folder: &Path) -> Self {
        let mut space =
            Self { is_space: true, known: registry::RegistryView::default(), ..self.clone() };
        space.project = real_path(folder);
        let of_space = space.project.clone();
        for (name, own) in space.folders() {
            *own = of_space.join(name.trim_end_matches("_dir"));
        }
        let [project, workspace] = [&self.project, &self.workspace].map(|place| real_path(place));
        let is_apart = |place: &PathBuf| {
            let place = real_path(place);
            let touches = |of: &PathBuf| place.starts_with(of) || of.starts_with(&place);
            !touches(&project) && !touches(&workspace)
        };
        space.sandbox.readable.retain(is_apart);
        space.sandbox.writable.clear();
        space.sandbox.env.clear();
        if space.sandbox.mode == SandboxMode::Off {
            space.sandbox.mode = SandboxMode::Auto;
        }
        (space.guest, space.review, space.checkpoints) = (None, Review::Off, false);
        space
    }

    fn with_consent(project: PathBuf, layers: &Layers) -> Result<(Self, Consent)> {
        let mut config = Self::of_layers(project, layers)?;
        config.known = registry::RegistryView::of(&config);
        let consent = Consent::of(&config, layers);
        Ok((config, consent))
    }

    /// Loads the settings of a project without checking consent. Use them only to find the project's folders.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn load_untrusted(project: &Path) -> Result<Self> {
        let project = open(project)?;
        let layers = Layers::read(&project, Layer::default())?;
        Self::of_layers(project, &layers)
    }

    /// Loads the settings of a project as if it had no settings file.
    ///
    /// # Errors
    /// A setting is invalid, or the folder does not exist.
    pub fn load_without_file(project: &Path, flags: Layer) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project, &Layers::around_the_file(flags)?)
    }

    fn of_layers(project: PathBuf, layers: &Layers) -> Result<Self> {
        let home = env::var_os("HOME").map(PathBuf::from);
        Self::resolve(project, &layers.merged(), home.as_deref())
    }

    /// Resolves the settings for a person with this home folder.
    fn resolve(project: PathBuf, raw: &Layer, home: Option<&Path>) -> Result<Self> {
        let mut config: Self = serde_json::from_value(raw.to_json()).expect("checked values");
        for (_, folder) in config.folders() {
            *folder = project.join(&*folder);
        }
        config.sandbox.writable = raw.setting("sandbox.writable").paths(&project, home)?;
        config.sandbox.readable = raw.setting("sandbox.readable").paths(&project, home)?;
        config.guest = GuestAddress::resolve(raw, &project)?;
        config.policies = policy::resolve(raw)?;
        config.project = project;
        if let Some(name) = &config.policy {
            config.policy_set_at(name, &raw.setting("policy").origin)?;
        }
        config.keep_apart(raw)?;
        Ok(config)
    }

    /// Returns a policy: a preset, or one of the person's own policies.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn policy(&self, name: &str) -> Result<Policy> {
        self.policy_set_at(name, "policy").cloned()
    }

    fn policy_set_at(&self, name: &str, origin: &str) -> Result<&Policy> {
        self.policies.get(name).ok_or_else(|| {
            let known = self.policy_names().collect::<Vec<_>>().join(", ");
            let there_are = match nearest(name, self.policy_names()) {
                Some(meant) => format!("did you mean '{meant}'? There are"),
                None => "there are".to_owned(),
            };
            let problem = format!(
                "there is no policy '{name}'; {there_are} {known}; [policies.NAME] in {FILE} adds one"
            );
            Error::config(origin, problem)
        })
    }

    /// The names of all policies, presets first.
    pub fn policy_names(&self) -> impl Iterator<Item = &str> {
        let own = self.policies.keys().map(String::as_str);
        Policy::PRESETS.into_iter().chain(own.filter(|name| !Policy::PRESETS.contains(name)))
    }

    /// The folders, each with the name of its setting. The workspace comes first.
    fn folders(&mut self) -> [(&'static str, &mut PathBuf); 5] {
        [
            ("workspace_dir", &mut self.workspace),
            ("inbox_dir", &mut self.inbox),
            ("outbox_dir", &mut self.outbox),
            ("sessions_dir", &mut self.sessions),
            ("approvals_dir", &mut self.approvals),
        ]
    }

    /// Rejects nested folders. For example, an outbox in the inbox would be executed as a reply.
    fn keep_apart(&mut self, raw: &Layer) -> Result<()> {
        let folders = self.folders().map(|(name, folder)| (name, real_path(folder)));
        // The workspace may contain the others.
        for (outer_name, outer) in &folders[1..] {
            let is_inside =
                |(name, folder): &&(&str, PathBuf)| name != outer_name && folder.starts_with(outer);
            if let Some((name, _)) = folders.iter().find(is_inside) {
                let [inner, outer] = [name, outer_name].map(|name| raw.setting(name));
                let set = if inner.is_default() { outer } else { inner };
                let problem =
                    format!("{name} must not be in {outer_name}, which is deaddrop's own");
                return Err(Error::config(set.origin, problem));
            }
        }
        Ok(())
    }

    /// The name under which sessions record the workspace, with links resolved. In the project it is a relative path,
    /// so that both can be moved together; elsewhere it is the absolute path.
    pub fn workspace_name(&self) -> String {
        let workspace = real_path(&self.workspace);
        let name = match workspace.strip_prefix(real_path(&self.project)) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Ok(inside) => inside,
            Err(_) => &workspace,
        };
        name.to_string_lossy().into_owned()
    }

    /// Whether a folder (a canonical path) is the workspace or in the workspace.
    pub fn works_in(&self, folder: &Path) -> bool {
        self.workspace.canonicalize().is_ok_and(|workspace| folder.starts_with(workspace))
    }

    /// The files and folders that replies cannot access: deaddrop's own, and the files of registered projects in the
    /// workspace.
    pub fn state(&self) -> Vec<PathBuf> {
        let others = self.known.hidden.iter().cloned();
        self.own_state().into_iter().chain(user_folders::folders()).chain(others).collect()
    }

    /// deaddrop's own files and folders in this project.
    fn own_state(&self) -> Vec<PathBuf> {
        let own = [&self.inbox, &self.outbox, &self.sessions, &self.approvals];
        let folder = self.project.join(FOLDER);
        let is_complete = own.iter().any(|own| own.starts_with(&folder))
            && !real_path(&self.workspace).starts_with(real_path(&folder));
        let is_covered = |place: &PathBuf| is_complete && place.starts_with(&folder);
        // If a link leads out of the folder, hiding the folder does not hide the link's target.
        let places = own.map(|own| if is_covered(own) { real_path(own) } else { own.clone() });
        let places = places.into_iter().filter(|place| !is_covered(place));
        let mut state: Vec<PathBuf> = is_complete.then(|| folder.clone()).into_iter().collect();
        state.extend(places);
        state.push(self.project.join(FILE));
        state
    }
}

/// The canonical path of a project.
fn open(project: &Path) -> Result<PathBuf> {
    project.canonicalize().map_err(|e| Error::io("open the project", project, e))
}

/// The real path of a folder that may not exist.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    follow(path).1
}

/// Removes `.` and `..` from a path without accessing the disk.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
