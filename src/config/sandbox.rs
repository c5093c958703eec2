//! What a person sets about the sandbox of commands.

use std::path::{Path, PathBuf};

use super::Raw;
use crate::error::Result;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// All of them, as a person writes them.
    pub(crate) const ALL: [(&'static str, Self); 4] = [
        ("auto", Self::Auto),
        ("bwrap", Self::Bwrap),
        ("partial", Self::Partial),
        ("off", Self::Off),
    ];

    /// What counts of what a policy says about the network: whoever takes the walls away wants none,
    /// and then a policy is advice alone.
    pub fn network(self, policy: Option<bool>) -> Option<bool> {
        policy.filter(|_| self != Self::Off)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self {
            mode: Mode::Auto,
            network: false,
            writable: Vec::new(),
            readable: Vec::new(),
            env: Vec::new(),
            max_processes: 4096,
            max_file_bytes: 4 << 30,
            max_memory_bytes: None,
            min_free_bytes: 100 << 20,
        }
    }
}

impl Sandbox {
    pub(super) fn resolve(raw: &Raw, base: &Path, home: Option<&Path>) -> Result<Self> {
        let memory = raw.setting("sandbox.max_memory_bytes").number()?;
        Ok(Self {
            mode: raw.setting("sandbox").mode()?,
            network: raw.setting("sandbox.network").switch()?,
            writable: raw.setting("sandbox.writable").paths(base, home)?,
            readable: raw.setting("sandbox.readable").paths(base, home)?,
            env: raw.setting("sandbox.env").variables()?,
            max_processes: raw.setting("sandbox.max_processes").number()?,
            max_file_bytes: raw.setting("sandbox.max_file_bytes").number()?,
            max_memory_bytes: (memory > 0).then_some(memory),
            min_free_bytes: raw.setting("sandbox.min_free_bytes").number()?,
        })
    }
}
