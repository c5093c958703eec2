//! What settings mean that belong together: the sandbox, secrets, how a turn is announced, the guest.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::{Config, Raw, names};
use crate::error::{Error, Result};
use crate::text::visible_line;

/// How commands are confined.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Sandbox {
    /// By which means.
    #[serde(rename = "sandbox")]
    pub mode: Mode,
    /// Whether commands have the network.
    #[serde(rename = "sandbox.network")]
    pub network: bool,
    /// What commands may change besides the workspace: absolute, without `.` and `..`.
    #[serde(rename = "sandbox.writable")]
    pub writable: Vec<PathBuf>,
    /// What commands may read besides the system's own and toolchains: absolute, without `.` and `..`.
    #[serde(rename = "sandbox.readable")]
    pub readable: Vec<PathBuf>,
    /// What is added to the environment of commands: deaddrop's own value of it, or this one.
    #[serde(rename = "sandbox.env", deserialize_with = "variables")]
    pub env: Vec<(String, Option<String>)>,
    /// How many processes and threads a command may have at once.
    #[serde(rename = "sandbox.max_processes")]
    pub max_processes: u64,
    /// The largest file that a command may write, in bytes.
    #[serde(rename = "sandbox.max_file_bytes")]
    pub max_file_bytes: u64,
    /// The most address space of a process, in bytes, if that is limited.
    #[serde(rename = "sandbox.max_memory_bytes", deserialize_with = "limit")]
    pub max_memory_bytes: Option<u64>,
    /// A command is stopped when fewer bytes than this are free on the disk; 0 is no limit.
    #[serde(rename = "sandbox.min_free_bytes")]
    pub min_free_bytes: u64,
}

/// The last of several values of a variable counts.
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
    /// What a policy's word on the network counts for: nothing without a sandbox.
    pub fn network(self, policy: Option<bool>) -> Option<bool> {
        policy.filter(|_| self != Self::Off)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Config::resolve("/".into(), &Raw::default(), None).expect("valid defaults").sandbox
    }
}

/// How outboxes are screened for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Secrets {
    /// What is done with those that are found.
    #[serde(rename = "secrets")]
    pub mode: SecretsMode,
    /// Patterns of files whose contents are shown as they are, in the workspace.
    #[serde(rename = "secrets_allow")]
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
    /// Whether the file at `path` (relative to the workspace, with `/`) is released. Patterns are
    /// as those of policies: one without `/` means a name at any depth, `**` any number of folders.
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
pub enum Review {
    /// Only what the policy asks about.
    Off,
    /// All that a reply would do.
    Reply,
}

/// Another machine, or a container, in which sessions are executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guest {
    /// It is reached through a program that speaks for it on its standard input and output.
    Command(Vec<String>),
    /// It is reached through a Unix socket, which is asked to be connected with the port first.
    Socket {
        /// Where it is: absolute.
        path: PathBuf,
        /// The port.
        port: u32,
    },
}

impl Guest {
    /// What the table `[guest]` says, if there is one; sockets are relative to the project.
    pub(super) fn resolve(raw: &Raw, project: &Path) -> Result<Option<Self>> {
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
            (false, true) => return Ok(Some(Self::Command(command.to()))),
            (true, false) => {
                let path = socket.folder(project);
                return Ok(Some(Self::Socket { path, port: port.to() }));
            }
        };
        Err(Error::config(origin.as_str(), problem))
    }

    /// Which guest it is, for people: its command or its socket.
    pub fn label(&self) -> String {
        match self {
            Self::Command(command) => visible_line(&command.join(" ")).into_owned(),
            Self::Socket { path, port } => {
                format!("{} (port {port})", visible_line(&path.to_string_lossy()))
            }
        }
    }
}
