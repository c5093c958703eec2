//! A shell command with all that a dialect can say of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RelPath;

/// What a shell is to be given, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellCommand {
    /// The text.
    pub command: String,
    /// The folder it begins in; the workspace's root where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RelPath>,
    /// How long it asks for; what it gets is never longer than the policy allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// The timeout of its dialect if it asks for none; None leaves that to the policy and the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_timeout: Option<Duration>,
    /// Variables of its environment, besides those that every command has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// How its output is kept.
    #[serde(default)]
    pub streams: Streams,
}

impl ShellCommand {
    /// A command at the workspace's root, with nothing special about it.
    pub fn new(command: impl Into<String>) -> Self {
        Self { command: command.into(), ..Self::default() }
    }

    /// Returns the timeout that it asks for, or that of its dialect.
    pub fn wanted_timeout(&self) -> Option<Duration> {
        self.timeout.or(self.default_timeout)
    }
}

/// How the output of a command is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Streams {
    /// Both streams in the order written, as many characters as the settings say.
    #[default]
    Together,
    /// Each by itself, up to a megabyte.
    Apart,
    /// Each by itself, its first megabyte.
    First,
}
