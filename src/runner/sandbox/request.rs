//! The request for a helper: one command, and everything that it may see and do. It is sent as JSON through the socket
//! that later carries the report, because everybody can read a process's arguments.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How to confine a command. The helper does exactly this, or fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) enum Backend {
    /// Namespaces and a root, made by the helper.
    Full,
    /// Namespaces and a root, made by `bwrap`.
    Bwrap,
    /// The helper inside bwrap. It adds the restrictions that bwrap does not provide.
    Inside,
    /// Landlock and seccomp alone.
    Partial,
    /// No restrictions: the command has its user's rights.
    Open,
}

/// A file or folder that is shown to commands, and its identity when it was chosen. The path alone is not enough:
/// somebody could replace it by a link to something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct IdentifiedPath {
    /// The path. None of its components is a link.
    #[serde(with = "os_text")]
    pub(in crate::runner) path: PathBuf,
    /// The device and inode of a folder. For a file, those of its parent folder, because editors and installers replace
    /// files.
    pub(in crate::runner) device: u64,
    pub(in crate::runner) inode: u64,
    pub(in crate::runner) is_folder: bool,
    /// The setting that names the path. If something else is at the path now, the command is not run. Empty if no
    /// setting names the path; a changed path is then left out.
    pub(in crate::runner) setting: String,
}

/// A mount in the root that a command sees. Later mounts cover earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct Mount {
    /// Its path, as the command sees it.
    #[serde(with = "os_text")]
    pub(in crate::runner) at: PathBuf,
    pub(in crate::runner) kind: MountKind,
}

impl Mount {
    pub(in crate::runner) fn new(kind: MountKind, at: impl Into<PathBuf>) -> Self {
        Self { at: at.into(), kind }
    }

    /// Whether this is a link, which contains nothing itself.
    pub(in crate::runner) fn is_link(&self) -> bool {
        matches!(self.kind, MountKind::Link(_))
    }
}

/// What a [`Mount`] shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) enum MountKind {
    /// This file or folder, read-only.
    Read(IdentifiedPath),
    /// This file or folder, writable.
    Write(IdentifiedPath),
    /// This folder. Everything that the command writes in it is discarded.
    Overlay(IdentifiedPath),
    /// A link to this path.
    Link(#[serde(with = "os_text")] PathBuf),
    /// An empty file or folder that covers what exists at the path. If nothing exists, nothing is mounted.
    Cover,
    /// The file at the path, which can be neither written nor replaced. Anything except a regular file is covered.
    Show,
    /// A folder that cannot be renamed away.
    Pin,
    /// The entry at the path, read-only.
    Keep,
}

/// The resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::runner) struct CommandLimits {
    /// The most processes and threads; 0 for no limit.
    pub(in crate::runner) processes: u64,
    /// The largest file in bytes; 0 for no limit.
    pub(in crate::runner) file: u64,
    /// The address space of one process in bytes; 0 for no limit.
    pub(in crate::runner) memory: u64,
}

/// An environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct Variable {
    #[serde(with = "os_text")]
    pub(in crate::runner) name: OsString,
    #[serde(with = "os_text")]
    pub(in crate::runner) value: OsString,
}

/// The request for one command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct SandboxRequest {
    /// The process that sends the request.
    pub(in crate::runner) parent: u32,
    /// How to confine the command.
    pub(in crate::runner) backend: Backend,
    /// The command line. A probe ignores it.
    pub(in crate::runner) command: String,
    /// The working directory, as the command sees it.
    #[serde(with = "os_text")]
    pub(in crate::runner) folder: PathBuf,
    /// The command's complete environment.
    pub(in crate::runner) environment: Vec<Variable>,
    /// A file that is locked while the command runs; empty for none.
    #[serde(with = "os_text")]
    pub(in crate::runner) lock: PathBuf,
    /// The user and group that the command runs as, if they are not the helper's.
    pub(in crate::runner) user: Option<(u32, u32)>,
    /// Whether the command can use the network.
    pub(in crate::runner) network: bool,
    /// The command's resource limits.
    pub(in crate::runner) limits: CommandLimits,
    /// What the command sees, in the order of mounting.
    pub(in crate::runner) mounts: Vec<Mount>,
    /// Whether to test the restrictions instead of running the command.
    pub(in crate::runner) probe: bool,
    /// For probes: what identifies the helper's root, network and queues, for comparison with those of the command.
    pub(in crate::runner) surroundings: String,
}

impl SandboxRequest {
    /// Sends the request, and closes the channel for writing.
    ///
    /// # Errors
    /// The other end is closed.
    pub(in crate::runner) fn send(&self, mut to: &UnixStream) -> io::Result<()> {
        to.write_all(&serde_json::to_vec(self)?)?;
        to.shutdown(Shutdown::Write)
    }

    /// Receives a request. None if the received text is not a request.
    pub(in crate::runner) fn receive(mut from: &UnixStream) -> Option<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Serializes paths and variables, which may not be UTF-8, as strings in which each character stands for a byte.
mod os_text {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &impl AsRef<OsStr>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(
            &text.as_ref().as_bytes().iter().copied().map(char::from).collect::<String>(),
        )
    }

    pub(super) fn deserialize<'de, T: From<OsString>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        Ok(OsString::from_vec(bytes.map_err(D::Error::custom)?).into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn a_request_survives_its_journey() {
        let identified_path = |path: &str, setting: &str| IdentifiedPath {
            path: path.into(),
            device: 1,
            inode: u64::MAX,
            is_folder: setting.is_empty(),
            setting: setting.to_owned(),
        };
        let odd = OsString::from_vec(b"\xff\xc3\xa9\"\n".to_vec());
        let mount = |at: &str, kind| Mount { at: at.into(), kind };
        let request = SandboxRequest {
            parent: 7,
            backend: Backend::Bwrap,
            command: "run probe\nenv é".into(),
            folder: odd.clone().into(),
            environment: vec![Variable { name: "A".into(), value: odd.clone() }],
            lock: "/l".into(),
            user: Some((1000, 100)),
            network: true,
            limits: CommandLimits { processes: 9, file: 0, memory: 1 << 40 },
            mounts: vec![
                mount("/b", MountKind::Read(identified_path("/a", ""))),
                mount("/b c", MountKind::Write(identified_path("run", "sandbox.writable"))),
                mount("/o", MountKind::Overlay(identified_path("/o", ""))),
                mount("/lib", MountKind::Link(odd.into())),
                mount("/c", MountKind::Cover),
                mount("/s", MountKind::Show),
                mount("/p", MountKind::Pin),
                mount("/k", MountKind::Keep),
            ],
            probe: true,
            surroundings: "1:2".to_owned(),
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        request.send(&ours).unwrap();
        assert_eq!(SandboxRequest::receive(&theirs), Some(request.clone()));
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let sent = serde_json::to_vec(&request).unwrap();
        ours.write_all(&sent[..sent.len() - 1]).unwrap();
        drop(ours);
        assert_eq!(SandboxRequest::receive(&theirs), None);
    }
}
