//! What settings mean that belong together: the sandbox, secrets, how a turn is announced, the guest.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Raw, names};
use crate::error::{Error, Result};
use crate::text::visible_line;

/// How commands are to be confined, as the person set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// By which means.
    pub mode: Mode,
    /// Whether commands have the network.
    pub network: bool,
    /// What commands may change beside the workspace: absolute, without `.` and `..`.
    pub writable: Vec<PathBuf>,
    /// What commands may read beside the system's own and toolchains: absolute, without `.` and `..`.
    pub readable: Vec<PathBuf>,
    /// What is added to the environment of commands: with deaddrop's own value of it, or with this.
    pub env: Vec<(String, Option<String>)>,
    /// How many processes and threads a command may have at once.
    pub max_processes: u64,
    /// How large a file a command may write.
    pub max_file_bytes: u64,
    /// How much address space a process may take, if that is limited.
    pub max_memory_bytes: Option<u64>,
    /// A command ends when less than this is free on the disk; 0 is no watch.
    pub min_free_bytes: u64,
}

/// The means by which commands are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The best that the machine has.
    Auto,
    /// Through `bwrap`.
    Bwrap,
    /// By what needs no namespaces.
    Partial,
    /// Not at all.
    Off,
}

impl Mode {
    /// What counts of what a policy says about the network: whoever takes the walls away wants none,
    /// and then a policy is advice alone.
    pub fn network(self, policy: Option<bool>) -> Option<bool> {
        policy.filter(|_| self != Self::Off)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::resolve(&Raw::default(), Path::new("/"), None).expect("defaults in order")
    }
}

impl Sandbox {
    pub(super) fn resolve(raw: &Raw, project: &Path, home: Option<&Path>) -> Result<Self> {
        let setting = |name: &str| raw.setting(&format!("sandbox.{name}"));
        let memory = setting("max_memory_bytes").number()?;
        Ok(Self {
            mode: raw.setting("sandbox").choice()?,
            network: setting("network").switch()?,
            writable: setting("writable").paths(project, home)?,
            readable: setting("readable").paths(project, home)?,
            env: setting("env").variables()?,
            max_processes: setting("max_processes").number()?,
            max_file_bytes: setting("max_file_bytes").number()?,
            max_memory_bytes: (memory > 0).then_some(memory),
            min_free_bytes: setting("min_free_bytes").number()?,
        })
    }
}

/// How what an outbox shows is screened for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    /// What is done with those that are found.
    pub mode: SecretsMode,
    /// Patterns of files whose contents are shown as they are, beneath the workspace.
    pub allow: Vec<String>,
}

/// What is done with a secret that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretsMode {
    /// It is left out, and the person is told.
    #[default]
    Withhold,
    /// It is shown, and the person is told.
    Warn,
}

impl Secrets {
    pub(super) fn resolve(raw: &Raw) -> Result<Self> {
        let (mode, allow) = (raw.setting("secrets"), raw.setting("secrets_allow"));
        Ok(Self { mode: mode.choice()?, allow: allow.list()? })
    }

    /// Whether the file at `path` (relative to the workspace, with `/`) is released. Patterns are
    /// as those of policies: one without `/` means a name at any depth, `**` any number of folders.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::settings::Secrets;
    /// let allow = vec!["tests/fixtures/*.pem".to_owned()];
    /// let secrets = Secrets { allow, ..Secrets::default() };
    /// assert!(secrets.releases("tests/fixtures/server.pem"));
    /// assert!(!secrets.releases("server.pem"));
    /// ```
    pub fn releases(&self, path: &str) -> bool {
        self.allow.iter().any(|allowed| names::matches(allowed, path))
    }
}

/// How the end of a turn is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// Not at all.
    #[default]
    Off,
    /// The terminal rings its bell.
    Bell,
    /// `notify-send` shows a message on the desktop.
    Desktop,
}

/// What the person sees before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Review {
    /// Only what the policy asks about.
    Off,
    /// All that a reply would do.
    Reply,
}

/// Another machine, or a container, that sessions are carried out in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// How it is reached.
    pub way: Way,
}

/// How a guest is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Through a program that speaks for it on its standard input and output.
    Command(Vec<String>),
    /// Through a Unix socket, which is asked to be connected with the port first.
    Socket {
        /// Where it is: absolute.
        path: PathBuf,
        /// The port.
        port: u32,
    },
}

impl Guest {
    /// What the table `[guest]` says, if there is one; sockets are relative to `base`.
    pub(super) fn resolve(raw: &Raw, project: &Path) -> Result<Option<Self>> {
        let Some(origin) = raw.tables.get("guest") else { return Ok(None) };
        let set = |name: &str| Some(raw.setting(name)).filter(|setting| !setting.is_default);
        let port = raw.setting("guest.port");
        let problem = match (set("guest.command"), set("guest.socket")) {
            (Some(_), Some(_)) => "[guest] has a command and a socket; keep one of them",
            (None, None) => {
                "[guest] says nowhere how it is reached; give it a command, such as [\"ssh\", \"build-box\", \"deaddrop\", \"rpc\"], or a socket"
            }
            (Some(_), None) if !port.is_default => {
                "[guest] has a port, and only a socket can be asked for one"
            }
            (Some(command), None) => {
                return Ok(Some(Self { way: Way::Command(command.list()?) }));
            }
            (None, Some(socket)) => {
                let (path, port) = (project.join(socket.text()), port.number()?);
                let port = u32::try_from(port).unwrap_or_default();
                return Ok(Some(Self { way: Way::Socket { path, port } }));
            }
        };
        Err(Error::config(origin.as_str(), problem))
    }

    /// What its table says, by the names of its settings.
    pub(super) fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        match &self.way {
            Way::Command(command) => vec![("command", command.as_slice().into())],
            Way::Socket { path, port } => {
                vec![("socket", path.to_string_lossy().into()), ("port", (*port).into())]
            }
        }
    }

    /// Which guest it is, for people: its command or its socket.
    pub fn label(&self) -> String {
        match &self.way {
            Way::Command(command) => visible_line(&command.join(" ")).into_owned(),
            Way::Socket { path, port } => {
                format!("{} (port {port})", visible_line(&path.to_string_lossy()))
            }
        }
    }
}
