//! Settings: raw ones as the person wrote them, each with its origin, and the resolved [`Config`].
//! Flags go over `DEADDROP_*` variables over `deaddrop.toml` in the project over the
//! person's own file over the defaults.

mod discovery;
mod edit;
mod file;
mod git;
mod git_settings;
mod in_force;
mod names;
mod own;
mod policy;
mod raw;
mod registry;
mod sections;
mod table;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::BTreeMap;
use std::env;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::text::nearest;
pub use discovery::{above, find, has_lost_settings, has_marks, marked};
pub use edit::{Draft, check_name, set, unset};
pub(crate) use git::is_repository;
pub use git::{ask_git, git_directory, no_place_in_git};
pub use git_settings::{Texts, named_by_git};
pub use in_force::{InForce, Source, in_force};
pub(crate) use names::{Name, folded, matches};
pub use own::{make_folders, own_file, state_home};
pub use policy::{Files, Policy, RUN_POLICY, SESSION_POLICY, Shell};
use raw::Layers;
pub use raw::Raw;
pub use registry::{known_within, whose_replies_write, written_by_replies};
use sections::Review;
pub use sections::{Guest, Mode, Notify, Sandbox, Secrets, SecretsMode, Way};
#[cfg(test)]
pub(crate) use table::protected_by_default;
pub use table::{SETTINGS, Setting, canonical, find as find_setting, names};
pub use trust::{Consent, Opening};

/// The settings file of a project.
pub const FILE: &str = "deaddrop.toml";
/// The folder of deaddrop's own in a project that is its own project.
pub const FOLDER: &str = ".deaddrop";

/// Settings as they are in force; all folders absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The folder that the others are relative to.
    pub project: PathBuf,
    /// What replies may touch.
    pub workspace: PathBuf,
    /// Where replies are dropped.
    pub inbox: PathBuf,
    /// Where outboxes are written.
    pub outbox: PathBuf,
    /// Where sessions are kept.
    pub sessions: PathBuf,
    /// Where approvals are dropped.
    pub approvals: PathBuf,
    /// How long a command may take.
    pub command_timeout: Duration,
    /// How many characters of a command's output are kept.
    pub max_output_length: usize,
    /// How many tokens an outbox is at most.
    pub max_tokens: usize,
    /// The longest first outbox, in tokens, but for what the person asks for.
    pub context_tokens: usize,
    /// Whether the first outbox shows contents of the workspace unasked, if nobody says otherwise.
    pub first_contents: bool,
    /// Whether outboxes are copied and shown in their brief form.
    pub brief: bool,
    /// How many characters a part of an outbox may have.
    pub part_characters: usize,
    /// How commands are confined.
    pub sandbox: Sandbox,
    /// Names of files and folders that neither replies nor commands may write.
    pub protected_names: Vec<String>,
    /// Whether what turns change is kept, so that it can be taken back.
    pub checkpoints: bool,
    /// The largest file that is kept for that, in bytes.
    pub checkpoint_file_bytes: u64,
    /// The largest ignored file that is kept, in bytes.
    pub checkpoint_ignored_file_bytes: u64,
    /// How many bytes are kept of ignored files in all.
    pub checkpoint_ignored_bytes: u64,
    /// How many bytes are kept for it in all.
    pub checkpoint_max_bytes: u64,
    /// How what an outbox shows is screened.
    pub secrets: Secrets,
    /// How the end of a turn is announced.
    pub notify: Notify,
    /// Whether the person sees what each reply would do, and is asked, before anything of it is done.
    pub review: bool,
    /// The other machine that operations are carried out on, if not on this one.
    pub guest: Option<Guest>,
    /// Which policy is in force, if that is set; else `new` and `run` have defaults of their own.
    pub policy: Option<String>,
    /// All policies that there are, by their names.
    policies: BTreeMap<String, Policy>,
    /// What is known of other projects; nothing after a [`load_untrusted`](Self::load_untrusted).
    known: registry::Known,
}

impl Config {
    /// Reads all settings that are in force in the project `base`, to act on them.
    ///
    /// # Errors
    /// They are wrong; or its file opens something, and the person has not allowed that; or the workspace
    /// is what another project keeps its own files in.
    pub fn load_trusted(project: &Path, flags: Raw) -> Result<Self> {
        let (config, consent) = Self::load(project, flags)?;
        config.holds_no_others()?;
        consent.require()?;
        Ok(config)
    }

    /// The same, whatever the person has allowed: to tell of them, or to ask.
    ///
    /// # Errors
    /// They are wrong.
    pub fn load(project: &Path, flags: Raw) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project.clone(), &Layers::read(&project, flags)?)
    }

    fn with_consent(project: PathBuf, layers: &Layers) -> Result<(Self, Consent)> {
        let mut config = Self::of_layers(project, layers)?;
        config.known = registry::Known::of(&config);
        let consent = Consent::of_found(&config, layers);
        Ok((config, consent))
    }

    /// The settings in force in the project `base`, to know where it works and what it keeps: no
    /// more than that, for nobody was asked.
    ///
    /// # Errors
    /// They are wrong.
    pub fn load_untrusted(project: &Path) -> Result<Self> {
        let project = open(project)?;
        let layers = Layers::read(&project, Raw::default())?;
        Self::of_layers(project, &layers)
    }

    /// The settings that would be in force in the project `base` without its file.
    ///
    /// # Errors
    /// They are wrong, or there is no such folder.
    pub fn load_without_file(project: &Path, flags: Raw) -> Result<(Self, Consent)> {
        let project = open(project)?;
        Self::with_consent(project, &Layers::around_the_file(flags)?)
    }

    /// The settings of the project `base` as its own file says, and nothing else.
    pub fn of_file(project: &Path) -> Result<Self> {
        let project = open(project)?;
        let file = Raw::from_file(&project.join(FILE))?;
        Self::of_layers(project, &Layers { file, ..Layers::default() })
    }

    fn of_layers(project: PathBuf, layers: &Layers) -> Result<Self> {
        let home = env::var_os("HOME").map(PathBuf::from);
        Self::resolve(project, &layers.merged(), home.as_deref())
    }

    /// What the settings mean for somebody whose home folder is `home`.
    fn resolve(project: PathBuf, raw: &Raw, home: Option<&Path>) -> Result<Self> {
        let folder = |name: &str| raw.setting(name).folder(&project);
        let config = Self {
            workspace: folder("workspace_dir")?,
            inbox: folder("inbox_dir")?,
            outbox: folder("outbox_dir")?,
            sessions: folder("sessions_dir")?,
            approvals: folder("approvals_dir")?,
            command_timeout: Duration::from_secs(raw.setting("command_timeout_seconds").number()?),
            max_output_length: raw.setting("max_output_length").size()?,
            max_tokens: raw.setting("max_tokens").size()?,
            context_tokens: raw.setting("context_tokens").size()?,
            first_contents: raw.setting("first_contents").switch()?,
            brief: raw.setting("brief").switch()?,
            part_characters: raw.setting("part_characters").size()?,
            sandbox: Sandbox::resolve(raw, &project, home)?,
            protected_names: raw.setting("protected_names").list()?,
            checkpoints: raw.setting("checkpoints").switch()?,
            checkpoint_file_bytes: raw.setting("checkpoint_file_bytes").number()?,
            checkpoint_ignored_file_bytes: raw.setting("checkpoint_ignored_file_bytes").number()?,
            checkpoint_ignored_bytes: raw.setting("checkpoint_ignored_bytes").number()?,
            checkpoint_max_bytes: raw.setting("checkpoint_max_bytes").number()?,
            secrets: Secrets::resolve(raw)?,
            notify: raw.setting("notify").choice()?,
            review: raw.setting("review").choice::<Review>()? == Review::Reply,
            guest: Guest::resolve(raw, &project)?,
            policy: raw.setting("policy").policy(),
            policies: policy::resolve(raw)?,
            known: registry::Known::default(),
            project,
        };
        if let Some(name) = &config.policy {
            config.policy_set_at(name, &raw.setting("policy").origin)?;
        }
        config.keep_apart(raw)?;
        Ok(config)
    }

    /// The policy of that name, a preset or one of the person's own.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn policy(&self, name: &str) -> Result<Policy> {
        self.policy_set_at(name, "policy").cloned()
    }

    fn policy_set_at(&self, name: &str, origin: &str) -> Result<&Policy> {
        self.policies.get(name).ok_or_else(|| {
            let known = self.policy_names().collect::<Vec<_>>().join(", ");
            let meant = nearest(name, self.policy_names());
            let there_are = match meant {
                Some(meant) => format!("did you mean '{meant}'? There are"),
                None => "there are".to_owned(),
            };
            let add = if Policy::can_be_called(name) {
                format!("add [policies.{name}] to {FILE} or ")
            } else {
                String::new()
            };
            let problem = format!(
                "there is no policy '{name}'; {there_are} {known}; {add}choose one of these"
            );
            Error::config(origin, problem)
        })
    }

    /// The names of all policies: the presets, then the person's own.
    pub fn policy_names(&self) -> impl Iterator<Item = &str> {
        let own = self.policies.keys().map(String::as_str);
        Policy::PRESETS.into_iter().chain(own.filter(|name| !Policy::PRESETS.contains(name)))
    }

    /// An outbox in the inbox would be carried out as a reply.
    fn keep_apart(&self, raw: &Raw) -> Result<()> {
        let own = [
            ("inbox_dir", &self.inbox),
            ("outbox_dir", &self.outbox),
            ("sessions_dir", &self.sessions),
            ("approvals_dir", &self.approvals),
        ];
        for (name, folder) in own {
            for (other_name, other) in own {
                if name != other_name && real(folder).starts_with(real(other)) {
                    return Err(Error::config(
                        origin_of_either(raw, name, other_name),
                        format!("{name} must not lie in {other_name}"),
                    ));
                }
            }
            if real(&self.workspace).starts_with(real(folder)) {
                return Err(Error::config(
                    origin_of_either(raw, "workspace_dir", name),
                    format!("workspace_dir must not lie in {name}, which is deaddrop's own"),
                ));
            }
        }
        Ok(())
    }

    /// What the workspace is known by, links resolved: its place in the project where it lies in
    /// that, so that both can be moved together; else its whole path.
    pub fn workspace_name(&self) -> String {
        let workspace = real(&self.workspace);
        let name = match workspace.strip_prefix(real(&self.project)) {
            Ok(inside) if inside.as_os_str().is_empty() => Path::new("."),
            Ok(inside) => inside,
            Err(_) => &workspace,
        };
        name.to_string_lossy().into_owned()
    }

    /// Whether a folder, by its canonical path, is the workspace or lies in it.
    pub fn works_in(&self, folder: &Path) -> bool {
        self.workspace.canonicalize().is_ok_and(|workspace| folder.starts_with(workspace))
    }

    /// deaddrop's own files and folders, and those of other projects in the workspace that the
    /// person has used: out of reach of replies.
    pub fn state(&self) -> Vec<PathBuf> {
        let others = self.known.own.iter().cloned();
        self.own_state().into_iter().chain(own::folders()).chain(others).collect()
    }

    /// What of that is this project's alone.
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
                // What is hidden with its folder needs no name of its own, but a link leads out of it.
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

/// Where the first of two settings was made that is not a default.
fn origin_of_either(raw: &Raw, one: &str, other: &str) -> String {
    let one = raw.setting(one);
    if one.is_default { raw.setting(other).origin } else { one.origin }
}

/// Where a folder lies, or will: links on the way are followed as far as there is something.
pub(crate) fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => real(parent).join(name),
        _ => normal(path),
    }
}

/// A path without `.` and `..`, as far as that can be told without looking.
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
