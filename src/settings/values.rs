//! Groups of related settings: the sandbox, secrets, notifications, reviews and the guest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::{Config, Layer, names};
use crate::error::{Error, Result};
use crate::text::visible_line;

/// How commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sandbox {
    /// The mechanism that confines commands.
    #[serde(rename = "sandbox")]
    pub mode: SandboxMode,
    /// Whether commands can use the network.
    #[serde(rename = "sandbox.network")]
    pub network: bool,
    /// The paths that commands may change besides the workspace: absolute, without `.` and `..`.
    #[serde(rename = "sandbox.writable")]
    pub writable: Vec<PathBuf>,
    /// The paths that commands may read besides the system and toolchains: absolute, without `.` and `..`.
    #[serde(rename = "sandbox.readable")]
    pub readable: Vec<PathBuf>,
    /// Additional environment variables for commands. None means deaddrop's own value of the variable.
    #[serde(rename = "sandbox.env", deserialize_with = "variables")]
    pub env: Vec<(String, Option<String>)>,
    /// The most processes and threads that a command may have at once.
    #[serde(rename = "sandbox.max_processes")]
    pub max_processes: u64,
    /// The largest file that a command may write, in bytes.
    #[serde(rename = "sandbox.max_file_bytes")]
    pub max_file_bytes: u64,
    /// The most address space of a process, in bytes; None for no limit.
    #[serde(rename = "sandbox.max_memory_bytes", deserialize_with = "limit")]
    pub max_memory_bytes: Option<u64>,
    /// A command is ended if the free disk space falls below this, in bytes. 0 means no limit.
    #[serde(rename = "sandbox.min_free_bytes")]
    pub min_free_bytes: u64,
}

/// If a variable occurs several times, its last value counts.
fn variables<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<(String, Option<String>)>, D::Error> {
    let items = Vec::<String>::deserialize(from)?.into_iter();
    Ok(items
        .map(|item| match item.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (item, None),
        })
        .collect())
}

fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(from).map(|limit| (limit > 0).then_some(limit))
}

/// The mechanism that confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The best mechanism that the machine supports.
    Auto,
    /// The program `bwrap`.
    Bwrap,
    /// Only mechanisms that work without namespaces.
    Partial,
    /// No confinement.
    Off,
}

impl SandboxMode {
    /// The network rule of a policy; None if there is no sandbox to enforce it.
    pub fn network(self, policy: Option<bool>) -> Option<bool> {
        policy.filter(|_| self != Self::Off)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Config::resolve("/".into(), &Layer::default(), None).expect("valid defaults").sandbox
    }
}

/// How outboxes are screened for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Secrets {
    /// What happens to secrets that are found.
    #[serde(rename = "secrets")]
    pub mode: SecretsMode,
    /// Patterns of workspace files whose contents are shown unredacted.
    #[serde(rename = "secrets_allow")]
    pub allow: Vec<String>,
}

/// What happens to a secret that is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretsMode {
    /// It is withheld, and the person is warned.
    #[default]
    Withhold,
    /// It is shown, and the person is warned.
    Warn,
}

impl Secrets {
    /// Whether the file at `path` (relative to the workspace, with `/`) is shown unredacted. Patterns work as in
    /// policies: a pattern without `/` matches a name at any depth, and `**` matches any number of folders.
    pub fn allows(&self, path: &str) -> bool {
        self.allow.iter().any(|allowed| names::matches(allowed, path))
    }
}

/// How the end of a turn is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// No announcement.
    #[default]
    Off,
    /// The terminal bell.
    Bell,
    /// A desktop notification from `notify-send`.
    Desktop,
}

/// What the person reviews before it is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Review {
    /// Only operations that the policy asks about.
    Off,
    /// Everything that a reply would do.
    Reply,
}

/// How to reach the machine or container that executes sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestAddress {
    /// A program that relays standard input and output.
    Command(Vec<String>),
    /// A Unix socket. The first request asks it to connect to the port.
    Socket {
        /// The absolute path.
        path: PathBuf,
        /// The port.
        port: u32,
    },
}

impl GuestAddress {
    /// Reads the table `[guest]`, if it exists. A relative socket path is in the project.
    pub(super) fn resolve(raw: &Layer, project: &Path) -> Result<Option<Self>> {
        let Some(origin) = raw.tables.get("guest") else { return Ok(None) };
        let [command, socket, port] =
            ["command", "socket", "port"].map(|name| raw.setting(&format!("guest.{name}")));
        let problem = match (command.is_default(), socket.is_default()) {
            (false, false) => "[guest] has a command and a socket; keep one of them",
            (true, true) => {
                "[guest] needs a command, such as [\"ssh\", \"build-box\", \"deaddrop\", \"rpc\"], or a socket"
            }
            (false, true) if !port.is_default() => {
                "[guest] has a port, but only a socket takes a port"
            }
            (false, true) => return Ok(Some(Self::Command(command.parse()))),
            (true, false) => {
                let path = socket.folder(project);
                return Ok(Some(Self::Socket { path, port: port.parse() }));
            }
        };
        Err(Error::config(origin.as_str(), problem))
    }

    /// The command or the socket, for display.
    pub fn label(&self) -> String {
        match self {
            Self::Command(command) => visible_line(&command.join(" ")).into_owned(),
            Self::Socket { path, port } => {
                format!("{} (port {port})", visible_line(&path.to_string_lossy()))
            }
        }
    }
}
