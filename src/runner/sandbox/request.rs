//! What a helper is told: one command, and all that it may see and do. It travels as JSON through the socket
//! that becomes the helper's report, since everybody can read a process's arguments.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a command is confined; the helper does this or fails, it never does less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) enum Backend {
    /// Namespaces and a root of their own, made by the helper.
    Full,
    /// The same made by `bwrap`.
    Bwrap,
    /// What runs inside of bwrap: the walls that bwrap does not build.
    Inside,
    /// Landlock and seccomp alone.
    Partial,
    /// Nothing: the command has its user's rights.
    Open,
}

/// A file or folder that commands are shown, and its identity when it was chosen: by its path alone,
/// whoever puts a link in its place would choose another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct IdentifiedPath {
    /// Where it is; no component of this is a link.
    #[serde(with = "os_text")]
    pub(in crate::runner) path: PathBuf,
    /// Device and inode of the folder. Of a file, those of the folder that contains it: editors and
    /// installers replace files.
    pub(in crate::runner) device: u64,
    pub(in crate::runner) inode: u64,
    pub(in crate::runner) is_folder: bool,
    /// The setting that names it; a command is not run if something else is there by now. Empty for
    /// what nobody named, which is then not shown.
    pub(in crate::runner) setting: String,
}

/// A piece of the root that a command sees. Later ones lie over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct Mount {
    /// Where it lies in the command's view.
    #[serde(with = "os_text")]
    pub(in crate::runner) at: PathBuf,
    pub(in crate::runner) kind: MountKind,
}

impl Mount {
    pub(in crate::runner) fn new(kind: MountKind, at: impl Into<PathBuf>) -> Self {
        Self { at: at.into(), kind }
    }

    /// Whether nothing is in it: what it leads to has its own name.
    pub(in crate::runner) fn is_link(&self) -> bool {
        matches!(self.kind, MountKind::Link(_))
    }
}

/// What a [`Mount`] shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) enum MountKind {
    /// This as it is, not to be written.
    Read(IdentifiedPath),
    /// This, to be written.
    Write(IdentifiedPath),
    /// This folder; what is written there is forgotten with the command.
    Overlay(IdentifiedPath),
    /// A link to this.
    Link(#[serde(with = "os_text")] PathBuf),
    /// An empty file or folder in the place of what is there, if something is.
    Cover,
    /// The file that is there, not to be written, nor anything put in its place; what is no regular file
    /// is covered.
    Show,
    /// A folder that cannot be renamed away.
    Pin,
    /// What is there, not to be written.
    Keep,
}

/// What one command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::runner) struct CommandLimits {
    /// Processes and threads; 0 for no limit.
    pub(in crate::runner) processes: u64,
    /// The size of one file in bytes; 0 for no limit.
    pub(in crate::runner) file: u64,
    /// The address space of one process in bytes; 0 for no limit.
    pub(in crate::runner) memory: u64,
}

/// A variable of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct Variable {
    #[serde(with = "os_text")]
    pub(in crate::runner) name: OsString,
    #[serde(with = "os_text")]
    pub(in crate::runner) value: OsString,
}

/// One command for a helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::runner) struct SandboxRequest {
    /// The process that makes it.
    pub(in crate::runner) parent: u32,
    /// How to confine the command.
    pub(in crate::runner) backend: Backend,
    /// The command; of no use to a probe.
    pub(in crate::runner) command: String,
    /// Where it runs, in its own view.
    #[serde(with = "os_text")]
    pub(in crate::runner) folder: PathBuf,
    /// Its whole environment.
    pub(in crate::runner) environment: Vec<Variable>,
    /// A file that stays locked while it runs; empty for none.
    #[serde(with = "os_text")]
    pub(in crate::runner) lock: PathBuf,
    /// Whom it runs as, where that is another: user and group.
    pub(in crate::runner) user: Option<(u32, u32)>,
    /// Whether it reaches the network.
    pub(in crate::runner) network: bool,
    /// What it may use up.
    pub(in crate::runner) limits: CommandLimits,
    /// What it sees.
    pub(in crate::runner) mounts: Vec<Mount>,
    /// Instead of running the command, find out whether the walls stand.
    pub(in crate::runner) probe: bool,
    /// For probes: the surroundings of the helper, which those of the command are compared with.
    pub(in crate::runner) surroundings: String,
}

impl SandboxRequest {
    /// Sends it, and no more after it.
    ///
    /// # Errors
    /// The other end is gone.
    pub(in crate::runner) fn send(&self, mut to: &UnixStream) -> io::Result<()> {
        to.write_all(&serde_json::to_vec(self)?)?;
        to.shutdown(Shutdown::Write)
    }

    /// Receives one; None where what comes is not one.
    pub(in crate::runner) fn receive(mut from: &UnixStream) -> Option<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

/// Paths and variables, which need not be UTF-8, as strings: each byte is a character.
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
