//! Policies define what operations may do. There are presets, and changes of them by the person.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Layer;
use super::effective::toml_of;
use super::layers::SettingValue;
use super::table::SETTINGS;
use crate::error::{Error, Result};
use crate::text::{capitalized, nearest};

/// The default policy of sessions.
pub const SESSION_POLICY: &str = "workspace";
/// The default policy of runs. Nobody reviews a run beforehand.
pub const RUN_POLICY: &str = "standard";

/// The longest time limit that a command can request, in seconds, if the policy sets none.
const LONGEST_SECONDS: u64 = 3_600;

/// What operations may do without asking, after asking, and never.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// The name of a preset, or a name that the person chose.
    pub name: String,
    /// The rules for file operations.
    pub files: FilePolicy,
    /// The rules for commands.
    pub shell: ShellPolicy,
    /// Whether commands can use the network; None leaves it to the sandbox settings.
    pub network: Option<bool>,
}

/// What file operations may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FilePolicy {
    /// Whether file operations are allowed at all.
    pub enabled: bool,
    /// Whether file operations may only read.
    pub read_only: bool,
    /// Patterns of denied paths, or of their components.
    pub blocked: Vec<String>,
    /// Patterns of the allowed paths; empty to allow all.
    pub allowed: Vec<String>,
    /// The largest file, in bytes.
    pub max_bytes: Option<u64>,
}

/// What commands may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellPolicy {
    /// Whether commands are allowed at all.
    pub enabled: bool,
    /// Prefixes of the allowed commands; empty to allow all.
    pub allowed: Vec<String>,
    /// Prefixes of denied commands.
    pub blocked: Vec<String>,
    /// Prefixes of commands that need approval.
    pub approval: Vec<String>,
    /// Texts that no command line may contain, as in Agent Spaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_texts: Vec<String>,
    /// Texts in command lines that need approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approval_texts: Vec<String>,
    /// The default and longest time limit of a command, in seconds.
    pub timeout_seconds: Option<u64>,
    /// The longest time limit that a command may request, in seconds, if `timeout_seconds` is not set.
    pub max_timeout_seconds: Option<u64>,
}

impl ShellPolicy {
    /// The time limit of a command that requests `asked`. `default` is the time limit in the settings.
    pub fn timeout(&self, asked: Option<Duration>, default: Duration) -> Duration {
        let own = self.timeout_seconds.map(Duration::from_secs);
        let most = Duration::from_secs(self.max_timeout_seconds.unwrap_or(LONGEST_SECONDS));
        asked.unwrap_or(own.unwrap_or(default)).min(own.unwrap_or(most))
    }
}

/// The policies that always exist.
static PRESETS: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let table = toml::from_str(include_str!("data/policies.toml"));
    let mut table: BTreeMap<String, Vec<Policy>> = table.expect("a table in order");
    table.remove("preset").unwrap_or_default()
});

impl Policy {
    /// The names of all presets, strictest first. The default of `new` is the last.
    pub const PRESETS: [&'static str; 5] =
        ["restrictive", "standard", "permissive", "ask", "workspace"];

    /// Returns the preset with this name.
    pub fn preset(name: &str) -> Option<Self> {
        PRESETS.iter().find(|preset| preset.name == name).cloned()
    }

    /// Adds everything that `ceiling` forbids or asks about. Returns None if the result would still allow more than
    /// `ceiling`.
    pub fn narrowed(mut self, ceiling: &Self) -> Option<Self> {
        fn add(list: &mut Vec<String>, other: &[String]) {
            let missing: Vec<_> = other.iter().filter(|it| !list.contains(it)).cloned().collect();
            list.extend(missing);
        }
        let least = |mine: Option<u64>, theirs: Option<u64>| mine.into_iter().chain(theirs).min();
        let (mine, theirs) = (&mut self.shell, &ceiling.shell);
        add(&mut self.files.blocked, &ceiling.files.blocked);
        add(&mut mine.blocked, &theirs.blocked);
        add(&mut mine.approval, &theirs.approval);
        add(&mut mine.blocked_texts, &theirs.blocked_texts);
        add(&mut mine.approval_texts, &theirs.approval_texts);
        mine.timeout_seconds = least(mine.timeout_seconds, theirs.timeout_seconds);
        mine.max_timeout_seconds = least(mine.max_timeout_seconds, theirs.max_timeout_seconds);
        // An empty list allows everything.
        let widens = |list: &[String], other: &[String]| {
            !other.is_empty() && (list.is_empty() || list.iter().any(|item| !other.contains(item)))
        };
        let shell_widens =
            mine.enabled && (!theirs.enabled || widens(&mine.allowed, &theirs.allowed));
        let (mine, theirs) = (&self.files, &ceiling.files);
        let most = |files: &FilePolicy| files.max_bytes.unwrap_or(u64::MAX);
        let files_widen = mine.enabled
            && (!theirs.enabled
                || (theirs.read_only && !mine.read_only)
                || widens(&mine.allowed, &theirs.allowed)
                || most(mine) > most(theirs));
        // None depends on the sandbox settings, which may open the network.
        let network = |policy: &Self| policy.network.map_or(1, |is_open| 2 * u8::from(is_open));
        let widens = shell_widens || files_widen || network(&self) > network(ceiling);
        (!widens).then_some(self)
    }
}

/// Returns all policies: presets with the person's changes, and the person's own policies.
pub(super) fn resolve(raw: &Layer) -> Result<BTreeMap<String, Policy>> {
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
            let suggestion = nearest(name, Policy::PRESETS)
                .map(|preset| format!("; or did you mean '[policies.{preset}]'?"));
            let problem = format!(
                "{table} needs a preset that it changes: preset = \"standard\" (presets: {presets}){}",
                suggestion.unwrap_or_default()
            );
            return Err(Error::config(origin.as_str(), problem));
        };
        name.clone_into(&mut policy.name);
        let set = raw.within(table).filter(|setting| setting.name != preset.name);
        policies.insert(name.to_owned(), policy.with(set)?);
    }
    Ok(policies)
}

/// The JSON pointer of a setting in a [`Policy`].
fn pointer(key: &str) -> String {
    let (first, second) = key.split_once('_').unwrap_or((key, ""));
    format!("/{}{}", first.replace('.', "/"), capitalized(second))
}

impl Policy {
    /// Changes the policy according to these settings.
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

    /// The complete policy as a table of `deaddrop.toml`.
    pub fn to_toml(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        // `workspace` sets the fewest values of all presets, so it adds nothing to the following lines.
        let is_own = !Self::PRESETS.contains(&self.name.as_str());
        let preset = if is_own { "preset = \"workspace\"\n" } else { "" };
        let keys = SETTINGS.iter().filter_map(|setting| setting.name.strip_prefix("policies.*."));
        let lines = keys.filter_map(|key| {
            let value = json.pointer(&pointer(key)).filter(|value| !value.is_null())?;
            Some(format!("{key} = {}\n", toml_of(value)))
        });
        format!("[policies.{}]\n{preset}{}", self.name, lines.collect::<String>())
    }
}
