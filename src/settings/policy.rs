//! Policies: what operations may do, as presets and as the person changed them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RawSettings;
use super::layers::SettingValue;
use super::table::SETTINGS;
use crate::error::{Error, Result};
use crate::text::{capitalized, nearest};

/// The default policy of sessions.
pub const SESSION_POLICY: &str = "workspace";
/// The default policy of runs, which nobody reviews first.
pub const RUN_POLICY: &str = "standard";

/// The longest time limit of a command, in seconds, if the policy sets none.
const LONGEST_SECONDS: u64 = 3_600;

/// What operations may do without a question, after one, and never.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// A preset's name, or the one that the person gave it.
    pub name: String,
    /// For operations on files.
    pub files: FilePolicy,
    /// For commands.
    pub shell: ShellPolicy,
    /// Whether commands have the network; None leaves it to the sandbox's settings.
    pub network: Option<bool>,
}

/// What operations on files may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePolicy {
    /// Whether there are such operations.
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
pub struct ShellPolicy {
    /// Whether there are such operations.
    pub enabled: bool,
    /// The beginnings of the only commands that run; empty: all.
    pub allowed: Vec<String>,
    /// Beginnings of commands that do not run.
    pub blocked: Vec<String>,
    /// Beginnings of commands that the person is asked about.
    pub approval: Vec<String>,
    /// Texts that no line may contain, as Agent Spaces has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_texts: Vec<String>,
    /// Texts in a line that the person is asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approval_texts: Vec<String>,
    /// The default and highest time limit of a command, in seconds.
    pub timeout_seconds: Option<u64>,
    /// The highest time limit that a command may ask for without `timeout_seconds`.
    pub max_timeout_seconds: Option<u64>,
}

impl ShellPolicy {
    /// The time limit of a command that asks for `asked`; `default` is that of the settings.
    pub fn timeout(&self, asked: Option<Duration>, default: Duration) -> Duration {
        let own = self.timeout_seconds.map(Duration::from_secs);
        let most = Duration::from_secs(self.max_timeout_seconds.unwrap_or(LONGEST_SECONDS));
        asked.unwrap_or(own.unwrap_or(default)).min(own.unwrap_or(most))
    }
}

/// The policies that are always there.
static PRESETS: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let table = toml::from_str(include_str!("data/policies.toml"));
    let mut table: BTreeMap<String, Vec<Policy>> = table.expect("a table in order");
    table.remove("preset").unwrap_or_default()
});

impl Policy {
    /// The names of all presets, the strictest first and the default of `new` last.
    pub const PRESETS: [&'static str; 5] =
        ["restrictive", "standard", "permissive", "ask", "workspace"];

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|preset| preset.name == name).cloned()
    }

    /// Whether this policy may allow something that `other` denies or asks about. Time limits do not count.
    pub fn allows_more(&self, other: &Self) -> bool {
        // The order of presets is known. `ask` allows more files and fewer commands than others.
        let rank = |policy: &Self| {
            let ranked = PRESETS.iter().filter(|preset| preset.name != "ask");
            ranked.clone().position(|preset| preset == policy)
        };
        if let (Some(mine), Some(theirs)) = (rank(self), rank(other)) {
            return mine > theirs;
        }
        // A network that is left to the sandbox's settings may be open.
        let network = |policy: &Self| policy.network.map_or(1, |is_open| 2 * u8::from(is_open));
        network(self) > network(other)
            || self.files.allow_more(&other.files)
            || self.shell.allows_more(&other.shell)
    }
}

impl FilePolicy {
    fn allow_more(&self, other: &Self) -> bool {
        let most = |files: &Self| files.max_bytes.unwrap_or(u64::MAX);
        self.enabled
            && (!other.enabled
                || (other.read_only && !self.read_only)
                || lacks(&self.blocked, &other.blocked)
                || opens(&self.allowed, &other.allowed)
                || most(self) > most(other))
    }
}

impl ShellPolicy {
    fn allows_more(&self, other: &Self) -> bool {
        let stops = |asked: &[String], blocked: &[String]| [asked, blocked].concat();
        self.enabled
            && (!other.enabled
                || lacks(&self.blocked, &other.blocked)
                || lacks(&stops(&self.approval, &self.blocked), &other.approval)
                || lacks(&self.blocked_texts, &other.blocked_texts)
                || lacks(&stops(&self.approval_texts, &self.blocked_texts), &other.approval_texts)
                || opens(&self.allowed, &other.allowed))
    }
}

/// Whether a list lacks an item of another.
fn lacks(list: &[String], other: &[String]) -> bool {
    other.iter().any(|item| !list.contains(item))
}

/// Whether an allow list allows something that another does not; an empty one allows everything.
fn opens(list: &[String], other: &[String]) -> bool {
    !other.is_empty() && (list.is_empty() || lacks(other, list))
}

/// All policies: the presets with their changes, and the person's own.
pub(super) fn resolve(raw: &RawSettings) -> Result<BTreeMap<String, Policy>> {
    let presets = Policy::PRESETS.iter().filter_map(|name| Policy::preset(name));
    let mut policies: BTreeMap<String, Policy> =
        presets.map(|policy| (policy.name.clone(), policy)).collect();
    for (table, origin) in &raw.tables {
        let name = table.strip_prefix("policies.").filter(|name| !name.contains('.'));
        let Some(name) = name else { continue };
        let preset = raw.setting(&format!("{table}.preset"));
        let is_preset = Policy::PRESETS.contains(&name);
        if !preset.is_default() && preset.text() != name && is_preset {
            let problem = format!(
                "{table}.preset is '{}', but '{name}' is itself a preset; remove the line, or choose another name for the policy",
                preset.text()
            );
            return Err(Error::config(preset.origin, problem));
        }
        let based_on = if preset.is_default() { name } else { preset.text() };
        let Some(mut policy) = Policy::preset(based_on) else {
            let presets = Policy::PRESETS.join(", ");
            let meant = nearest(name, Policy::PRESETS)
                .map(|meant| format!("; or did you mean '[policies.{meant}]'?"));
            let problem = format!(
                "{table} needs a preset that it changes: preset = \"standard\" (there are {presets}){}",
                meant.unwrap_or_default()
            );
            return Err(Error::config(origin.as_str(), problem));
        };
        name.clone_into(&mut policy.name);
        let set = raw.within(table).filter(|setting| setting.name != preset.name);
        policies.insert(name.to_owned(), policy.with(set)?);
    }
    Ok(policies)
}

/// The JSON pointer of a policy's setting in a [`Policy`].
fn pointer(key: &str) -> String {
    let (first, second) = key.split_once('_').unwrap_or((key, ""));
    format!("/{}{}", first.replace('.', "/"), capitalized(second))
}

impl Policy {
    /// The policy with these settings.
    fn with<'a>(self, settings: impl Iterator<Item = &'a SettingValue>) -> Result<Self> {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        for setting in settings {
            let key = setting.name.splitn(3, '.').nth(2).unwrap_or_default();
            if let Some(value) = json.pointer_mut(&pointer(key)) {
                *value = setting.value.clone();
            }
        }
        serde_json::from_value(json).map_err(|e| Error::config("policies", e.to_string()))
    }

    /// The policy as a table of `deaddrop.toml` that says all of it.
    pub fn to_toml(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        // `workspace` sets the least of all presets, so it adds nothing to what is written here.
        let is_own = !Self::PRESETS.contains(&self.name.as_str());
        let preset = if is_own { "preset = \"workspace\"\n" } else { "" };
        // Always quoted in one way: consent is bound to a digest of this text.
        let written = |value: &Value| match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Value::to_string).collect();
                format!("[{}]", items.join(", "))
            }
            value => value.to_string(),
        };
        let keys = SETTINGS.iter().filter_map(|setting| setting.name.strip_prefix("policies.*."));
        let lines = keys.filter_map(|key| {
            let value = json.pointer(&pointer(key)).filter(|value| !value.is_null())?;
            Some(format!("{key} = {}\n", written(value)))
        });
        format!("[policies.{}]\n{preset}{}", self.name, lines.collect::<String>())
    }
}
