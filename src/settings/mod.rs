//! Settings: the raw ones with their origins, and the resolved [`Config`]. Flags override `DEADDROP_*`
//! variables, these override `deaddrop.toml` in the project, and that overrides the person's own file.

mod discovery;
mod edit;
mod git;
mod in_force;
mod layers;
mod names;
mod own;
mod policy;
mod registry;
mod table;
#[cfg(test)]
mod tests;
mod trust;
mod values;

use std::collections::BTreeMap;
use std::env;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::{Error, Result};
use crate::text::nearest;
pub use discovery::{above, find, has_lost_settings, has_marks, marked};
pub use edit::{Draft, check_name, set, unset};
pub(crate) use git::is_repository;
pub use git::{Texts, ask_git, git_directory, named_by_git, no_place_in_git};
pub use in_force::{InForce, in_force};
use layers::Layers;
pub use layers::{Raw, Source};
pub(crate) use names::{Name, folded, matches};
pub use own::{make_folders, own_file, state_home};
pub use policy::{Files, Policy, RUN_POLICY, SESSION_POLICY, Shell};
pub use registry::{known_within, whose_replies_write, written_by_replies};
#[cfg(test)]
pub(crate) use table::protected_by_default;
pub use table::{SETTINGS, Setting, canonical, find as find_setting, names};
pub use trust::{Consent, Opening};
pub use values::{Guest, Mode, Notify, Review, Sandbox, Secrets, SecretsMode};

/// The settings file of a project.
pub const FILE: &str = "deaddrop.toml";
/// deaddrop's own folder in a project.
pub const FOLDER: &str = ".deaddrop";

/// Settings as they are in force; all folders absolute.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Config {
    /// The folder that the others are relative to.
    #[serde(skip)]
    pub project: PathBuf,
    /// What replies may touch.
    #[serde(rename = "workspace_dir")]
    pub workspace: PathBuf,
    /// Where replies are dropped.
    #[serde(rename = "inbox_dir")]
    pub inbox: PathBuf,
    /// Where outboxes are written.
    #[serde(rename = "outbox_dir")]
    pub outbox: PathBuf,
    /// Where sessions are kept.
    #[serde(rename = "sessions_dir")]
    pub sessions: PathBuf,
    /// Where approvals are dropped.
    #[serde(rename = "approvals_dir")]
    pub approvals: PathBuf,
    /// How long a command may take.
    #[serde(rename = "command_timeout_seconds", deserialize_with = "seconds")]
    pub command_timeout: Duration,
    /// How many characters of a command's output the model sees.
    pub max_output_length: usize,
    /// The longest outbox, in tokens.
    pub max_tokens: usize,
    /// The longest first outbox, in tokens, unless the task or included files are longer.
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
    /// Names of files and folders that neither replies nor commands may write.
    pub protected_names: Vec<String>,
    /// Whether the changes of turns are kept, so that they can be undone.
    pub checkpoints: bool,
    /// The largest file that is kept for undo, in bytes.
    pub checkpoint_file_bytes: u64,
    /// The largest ignored file that is kept, in bytes.
    pub checkpoint_ignored_file_bytes: u64,
    /// How many bytes of ignored files are kept.
    pub checkpoint_ignored_bytes: u64,
    /// How many bytes are kept for undo.
    pub checkpoint_max_bytes: u64,
    /// How outboxes are screened for secrets.
    #[serde(flatten)]
    pub secrets: Secrets,
    /// How the end of a turn is announced.
    pub notify: Notify,
    /// Whether the person sees what a reply would do, and is asked, before it is executed.
    pub review: Review,
    /// The other machine on which operations are executed, if any.
    #[serde(skip)]
    pub guest: Option<Guest>,
    /// Which policy is in force, if that is set; otherwise `new` and `ops run` have defaults of their own.
    #[serde(deserialize_with = "unless_empty")]
    pub policy: Option<String>,
    /// All policies, by their names.
    #[serde(skip)]
    policies: BTreeMap<String, Policy>,
    /// Whether it is a space within another project, whose registered folders hide all of it.
    #[serde(skip)]
    is_space: bool,
    /// What is known of other projects; nothing after a [`load_untrusted`](Self::load_untrusted).
    #[serde(skip)]
    known: registry::Known,
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_secs)
}

fn unless_empty<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(|text| Some(text).filter(|text| !text.is_empty()))
}

impl Config {
    /// The settings in force in a project, to act on them.
    ///
    /// # Errors
    /// They are wrong; or they lack the person's consent; or another project keeps its own files in the
    /// workspace.
    pub fn load_trusted(project: &Path, flags: Raw) -> Result<Self> {
        let (config, consent) = Self::load(project, flags)?;
        config.holds_no_others()?;
        consent.require()?;
        Ok(config)
    }

    /// The same with the consent that they have or lack, to show them or to ask.
    ///
    /// # Errors
    /// They are invalid.
    pub fn load(project: &Path, flags: Raw) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project.clone(), &Layers::read(&project, flags)?)
    }

    /// The settings of a space of this project in `folder`: the same limits, and a sandbox that shows nothing of
    /// the project, whatever commands of the project may see.
    #[must_use]
    pub fn of_space(&self, folder: &Path) -> Self {
        let mut space = Self { is_space: true, known: registry::Known::default(), ..self.clone() };
        space.project = real(folder);
        for (own, name) in [
            (&mut space.workspace, "workspace"),
            (&mut space.inbox, "inbox"),
            (&mut space.outbox, "outbox"),
            (&mut space.sessions, "sessions"),
            (&mut space.approvals, "approvals"),
        ] {
            *own = space.project.join(name);
        }
        let [project, workspace] = [&self.project, &self.workspace].map(|place| real(place));
        let is_apart = |place: &PathBuf| {
            let place = real(place);
            let touches = |of: &PathBuf| place.starts_with(of) || of.starts_with(&place);
            !touches(&project) && !touches(&workspace)
        };
        space.sandbox.readable.retain(is_apart);
        space.sandbox.writable.clear();
        space.sandbox.env.clear();
        if space.sandbox.mode == Mode::Off {
            space.sandbox.mode = Mode::Auto;
        }
        (space.guest, space.review, space.checkpoints) = (None, Review::Off, false);
        space
    }

    fn with_consent(project: PathBuf, layers: &Layers) -> Result<(Self, Consent)> {
        let mut config = Self::of_layers(project, layers)?;
        config.known = registry::Known::of(&config);
        let consent = Consent::of(&config, layers);
        Ok((config, consent))
    }

    /// The settings in force in a project, to know only where its folders are: they may lack consent.
    ///
    /// # Errors
    /// They are invalid.
    pub fn load_untrusted(project: &Path) -> Result<Self> {
        let project = open(project)?;
        let layers = Layers::read(&project, Raw::default())?;
        Self::of_layers(project, &layers)
    }

    /// The settings that would be in force in a project without its file.
    ///
    /// # Errors
    /// They are invalid, or there is no such folder.
    pub fn load_without_file(project: &Path, flags: Raw) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project, &Layers::around_the_file(flags)?)
    }

    /// The settings of a project by its own file alone.
    ///
    /// # Errors
    /// They are invalid.
    pub fn of_file(project: &Path) -> Result<Self> {
        let project = open(project)?;
        let file = Raw::from_file(&project.join(FILE), Source::File)?;
        Self::of_layers(project, &Layers { file, ..Layers::default() })
    }

    fn of_layers(project: PathBuf, layers: &Layers) -> Result<Self> {
        let home = env::var_os("HOME").map(PathBuf::from);
        Self::resolve(project, &layers.merged(), home.as_deref())
    }

    /// What the settings mean for a person with this home folder.
    fn resolve(project: PathBuf, raw: &Raw, home: Option<&Path>) -> Result<Self> {
        let mut config: Self = serde_json::from_value(raw.to_json()).expect("checked values");
        let Self { workspace, inbox, outbox, sessions, approvals, sandbox, .. } = &mut config;
        for folder in [workspace, inbox, outbox, sessions, approvals] {
            *folder = project.join(&folder);
        }
        for (name, paths) in [
            ("sandbox.writable", &mut sandbox.writable),
            ("sandbox.readable", &mut sandbox.readable),
        ] {
            *paths = raw.setting(name).paths(&project, home)?;
        }
        config.guest = Guest::resolve(raw, &project)?;
        config.policies = policy::resolve(raw)?;
        config.project = project;
        if let Some(name) = &config.policy {
            config.policy_set_at(name, &raw.setting("policy").origin)?;
        }
        config.keep_apart(raw)?;
        Ok(config)
    }

    /// The policy of that name, a preset or one of the person's own.
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

    /// The names of all policies: the presets, then the person's own.
    pub fn policy_names(&self) -> impl Iterator<Item = &str> {
        let own = self.policies.keys().map(String::as_str);
        Policy::PRESETS.into_iter().chain(own.filter(|name| !Policy::PRESETS.contains(name)))
    }

    /// Refuses folders in each other: an outbox in the inbox would be executed as a reply.
    fn keep_apart(&self, raw: &Raw) -> Result<()> {
        let folders = [
            ("workspace_dir", &self.workspace),
            ("inbox_dir", &self.inbox),
            ("outbox_dir", &self.outbox),
            ("sessions_dir", &self.sessions),
            ("approvals_dir", &self.approvals),
        ];
        // The workspace may contain the others.
        for (outer_name, outer) in &folders[1..] {
            let is_inside = |(name, folder): &&(&str, &PathBuf)| {
                name != outer_name && real(folder).starts_with(real(outer))
            };
            if let Some((name, _)) = folders.iter().find(is_inside) {
                let [inner, outer] = [name, outer_name].map(|name| raw.setting(name));
                let set = if inner.is_default() { outer } else { inner };
                let problem =
                    format!("{name} must not lie in {outer_name}, which is deaddrop's own");
                return Err(Error::config(set.origin, problem));
            }
        }
        Ok(())
    }

    /// The name that sessions record of the workspace, with links resolved: its path in the project, so that
    /// both can be moved together, or its whole path if it is elsewhere.
    pub fn workspace_name(&self) -> String {
        let workspace = real(&self.workspace);
        let name = match workspace.strip_prefix(real(&self.project)) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Ok(inside) => inside,
            Err(_) => &workspace,
        };
        name.to_string_lossy().into_owned()
    }

    /// Whether a folder, by its canonical path, is the workspace or in it.
    pub fn works_in(&self, folder: &Path) -> bool {
        self.workspace.canonicalize().is_ok_and(|workspace| folder.starts_with(workspace))
    }

    /// deaddrop's own files and folders, and those of registered projects in the workspace: replies cannot
    /// access them.
    pub fn state(&self) -> Vec<PathBuf> {
        let others = self.known.hidden.iter().cloned();
        self.own_state().into_iter().chain(own::folders()).chain(others).collect()
    }

    /// Those of this project.
    fn own_state(&self) -> Vec<PathBuf> {
        let own = [&self.inbox, &self.outbox, &self.sessions, &self.approvals];
        let folder = self.project.join(FOLDER);
        let is_whole = own.iter().any(|own| own.starts_with(&folder))
            && !real(&self.workspace).starts_with(real(&folder));
        let mut state = Vec::new();
        if is_whole {
            state.push(folder.clone());
        }
        for own in own {
            if !is_whole || !own.starts_with(&folder) {
                state.push(own.clone());
            } else if !real(own).starts_with(real(&folder)) {
                // It is hidden with its folder, but a link leads out of that.
                state.push(real(own));
            }
        }
        state.push(self.project.join(FILE));
        state
    }
}

/// The canonical path of a project.
fn open(project: &Path) -> Result<PathBuf> {
    project.canonicalize().map_err(|e| Error::io("open the project", project, e))
}

/// The real path of a folder that may not exist: links on the way are followed as far as something exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        _ => normal(path),
    }
}

/// A path without `.` and `..`, without looking at the disk.
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
