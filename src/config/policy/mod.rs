//! Policies: what operations may do, as presets and as the person changed them.

mod compared;
mod presets;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(super) use table::{Tables, resolve};

/// The policy of sessions where nobody says otherwise.
pub const SESSION_POLICY: &str = "workspace";
/// The policy of runs where nobody says otherwise: nobody looks at what they do before it is done.
pub const RUN_POLICY: &str = "standard";

/// The longest that a command may take where a policy sets no limit of its own, in seconds.
const LONGEST_SECONDS: u64 = 3_600;

/// What operations may do without asking, with asking, and not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// A preset's name, or the one that the person gave it.
    pub name: String,
    /// For operations on files.
    pub files: Files,
    /// For commands.
    pub shell: Shell,
    /// Whether commands have the network; where nothing is said, as the sandbox's settings say.
    pub network: Option<bool>,
}

impl Policy {
    /// Whether the person can give a policy this name.
    pub(super) fn can_be_called(name: &str) -> bool {
        let may_hold = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !name.is_empty() && name.chars().all(may_hold)
    }
}

/// What operations on files may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Files {
    /// Whether there are any.
    pub enabled: bool,
    /// Whether they may only read.
    pub read_only: bool,
    /// Patterns of paths, or of a component of them, that are out of reach.
    pub blocked: Vec<String>,
    /// Patterns of the only paths that are in reach; empty: all.
    pub allowed: Vec<String>,
    /// How large a file may be, in bytes.
    pub max_bytes: Option<u64>,
}

/// What commands may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shell {
    /// Whether there are any.
    pub enabled: bool,
    /// The beginnings of the only commands that run; empty: all.
    pub allowed: Vec<String>,
    /// Beginnings of commands that do not run.
    pub blocked: Vec<String>,
    /// Beginnings of commands that the person is asked about.
    pub approval: Vec<String>,
    /// How long a command may take by itself and at most, in seconds, if the policy says.
    pub timeout_seconds: Option<u64>,
    /// How long a command may ask for where `timeout_seconds` says nothing.
    pub max_timeout_seconds: Option<u64>,
}

impl Shell {
    /// How long a command may take that asks for `asked`, where the settings say `default`.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use deaddrop::config::Policy;
    /// let seconds = Duration::from_secs;
    /// let standard = Policy::preset("standard").unwrap().shell;
    /// assert_eq!(standard.timeout(Some(seconds(300)), seconds(60)), seconds(30));
    /// let workspace = Policy::preset("workspace").unwrap().shell;
    /// assert_eq!(workspace.timeout(Some(seconds(300)), seconds(60)), seconds(300));
    /// assert_eq!(workspace.timeout(None, seconds(60)), seconds(60));
    /// ```
    pub fn timeout(&self, asked: Option<Duration>, default: Duration) -> Duration {
        let own = self.timeout_seconds.map(Duration::from_secs);
        let most = Duration::from_secs(self.max_timeout_seconds.unwrap_or(LONGEST_SECONDS));
        let most = own.unwrap_or(most);
        asked.unwrap_or(own.unwrap_or(default)).min(most)
    }
}
