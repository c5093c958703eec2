//! Sandbox tiers. In each tier, a probe runs in place of a command and tries to get around the restrictions. The first
//! tier that keeps all its promises is used. A command that cannot be run in that tier does not run.

use std::fmt;

use super::report::{Mechanism, MechanismSet};
use super::request::Backend;
use crate::settings::SandboxMode;

/// The strength of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Namespaces, a root built from an allow list, Landlock and seccomp.
    Full,
    /// Like `Full`, but `bwrap` makes the namespaces.
    FullBwrap,
    /// Landlock and seccomp.
    Partial,
    /// No sandbox, because the person chose that.
    Off,
    /// No sandbox is available.
    None,
}

/// What confines commands on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The tier.
    pub tier: Tier,
    /// The mechanisms that work.
    pub facts: MechanismSet,
    /// The stronger tiers that are not available, and the reasons.
    pub missing: Vec<(Tier, String)>,
    /// Whether commands can use the network.
    pub network: bool,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::FullBwrap => "full (bwrap)",
            Self::Partial => "partial",
            Self::Off => "off",
            Self::None => "none",
        })
    }
}

impl Tier {
    /// The tiers to try for a setting, the strongest first.
    pub(in crate::runner) fn candidates(mode: SandboxMode) -> &'static [Self] {
        match mode {
            SandboxMode::Auto => &[Self::Full, Self::FullBwrap, Self::Partial],
            SandboxMode::Bwrap => &[Self::FullBwrap],
            SandboxMode::Partial => &[Self::Partial],
            SandboxMode::Off => &[Self::Off],
        }
    }

    /// How the helper implements this tier; None if no sandbox is available.
    pub(in crate::runner) fn backend(self) -> Option<Backend> {
        match self {
            Self::Full => Some(Backend::Full),
            Self::FullBwrap => Some(Backend::Bwrap),
            Self::Partial => Some(Backend::Partial),
            Self::Off => Some(Backend::Open),
            Self::None => None,
        }
    }

    /// The mechanisms that this tier must provide.
    fn promises(self, network: bool) -> &'static [Mechanism] {
        use Mechanism as M;
        const FULL: &[M] = &[
            M::PidNamespace,
            M::Root,
            M::Ipc,
            M::Capabilities,
            M::NoNewPrivileges,
            M::Seccomp,
            M::Hidden,
            M::Network,
        ];
        match self {
            Self::Full | Self::FullBwrap if network => &FULL[..FULL.len() - 1],
            Self::Full | Self::FullBwrap => FULL,
            Self::Partial => &[
                M::Landlock,
                M::Seccomp,
                M::Capabilities,
                M::NoNewPrivileges,
                M::Subreaper,
                M::Hidden,
            ],
            Self::Off | Self::None => &[],
        }
    }

    /// Describes which promised mechanisms do not work; None if all work.
    pub(in crate::runner) fn shortfall(self, facts: MechanismSet, network: bool) -> Option<String> {
        let missing: Vec<String> = self
            .promises(network)
            .iter()
            .filter(|mechanism| !facts.has(**mechanism))
            .map(ToString::to_string)
            .collect();
        (!missing.is_empty()).then(|| format!("does not hold: {}", missing.join(", ")))
    }

    /// Whether commands have their own root.
    pub fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::FullBwrap)
    }

    /// Whether the tier confines commands at all.
    pub fn confines(self) -> bool {
        self.is_full() || self == Self::Partial
    }
}

impl Confinement {
    /// A line that describes the sandbox, for the outbox, `status` and `doctor`.
    pub fn line(&self) -> String {
        let scope = if self.facts.has(Mechanism::LandlockScope) { "" } else { ", signals" };
        let second = if self.facts.has(Mechanism::Landlock) {
            ""
        } else {
            ", without Landlock as a second wall"
        };
        let mut line = match self.tier {
            Tier::Full | Tier::FullBwrap => format!(
                "{}{second}: commands are isolated. They can write the workspace, and /tmp and HOME, which are this session's own (kept from command to command, empty at first, without the user's settings and keys); of the rest they see the system and toolchains only, read-only",
                self.tier
            ),
            Tier::Partial => format!(
                "partial (Landlock and seccomp): commands can write the workspace only, and TMPDIR and HOME, which are this session's own; not covered: metadata (chmod, utime) of the user's other files, the arguments of other processes{scope}; UNIX sockets are refused; protected files are watched, not locked"
            ),
            Tier::Off => format!("off: commands have the user's own rights; {}", self.tree()),
            Tier::None => "none to be had here, so RUN_COMMAND is refused".to_owned(),
        };
        if self.tier == Tier::Off && self.facts.has(Mechanism::Hidden) {
            line.push_str("; they do not see deaddrop's own files");
        }
        line
    }

    /// Describes what happens to processes that a command leaves behind.
    fn tree(&self) -> &'static str {
        if self.facts.has(Mechanism::PidNamespace) {
            "whatever a command starts ends with it (pid namespace)"
        } else if self.facts.has(Mechanism::Subreaper) {
            "what a command starts ends with it, unless it kills deaddrop's own processes (subreaper)"
        } else {
            "what a command starts is ended with it as far as it can be found"
        }
    }

    /// A line that says whether commands in `tier` can use the network.
    pub fn network_line(&self, tier: Tier) -> &'static str {
        match tier {
            Tier::None => "off: no command runs",
            Tier::Off => "open to commands, as it is on this machine",
            _ if self.network => "open to commands",
            Tier::Partial => {
                "off: nothing can be fetched or installed unless the user opens it (sandbox.network), and no command gets a socket"
            }
            _ => {
                "off: nothing can be fetched or installed unless the user opens it (sandbox.network); a command reaches only servers that it starts itself, on localhost"
            }
        }
    }

    /// Why stronger tiers are not available, one line each.
    pub fn why(&self) -> Vec<String> {
        self.missing.iter().map(|(tier, reason)| format!("{tier}: {reason}")).collect()
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PidNamespace => "pid namespace",
            Self::Subreaper => "subreaper",
            Self::Root => "a root of its own",
            Self::Network => "network namespace",
            Self::Ipc => "ipc namespace",
            Self::Capabilities => "no capabilities",
            Self::NoNewPrivileges => "no new privileges",
            Self::Landlock => "Landlock",
            Self::LandlockScope => "Landlock for signals and abstract sockets",
            Self::Seccomp => "seccomp",
            Self::Processes => "bounded processes",
            Self::Hidden => "deaddrop's own files hidden",
        })
    }
}
