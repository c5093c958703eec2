//! The table of all settings. Flags, variables, the parsing of settings files, errors, `config`, consent and
//! docs/settings.md are derived from it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::policy::Policy;
use crate::error::{Error, Result};
use crate::text::{capitalized, nearest};

/// The prefix of all environment variables of deaddrop.
const PREFIX: &str = "DEADDROP_";
/// `sandbox` is a string, or a table in which `mode` is that string.
pub(super) const SANDBOX_MODE: [&str; 2] = ["sandbox", "mode"];

/// One setting.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The full name. A dot separates the table, and `*` stands for the name of a policy.
    pub name: String,
    pub(super) kind: SettingKind,
    /// The default, written as in the environment variable.
    #[serde(default)]
    pub default: String,
    /// The purpose.
    pub about: String,
    /// Whether there is also a command-line flag.
    #[serde(default)]
    pub flag: bool,
    /// The consent that a project's file needs to set it.
    pub(super) consent: Option<NeedsConsent>,
}

/// When a setting in a project's file needs consent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeedsConsent {
    /// The strictest value. It needs no consent.
    pub(super) unless: Option<Value>,
    /// The effect that the person consents to.
    pub(super) does: String,
}

/// The type of a setting.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum SettingKind {
    /// A folder, relative to the project.
    Folder,
    /// An integer. With `or_none`, 0 means no limit.
    Number {
        least: u64,
        most: u64,
        #[serde(default)]
        or_none: bool,
    },
    Switch,
    /// One of these words.
    Choice(Vec<String>),
    /// The name of a policy, or an empty string.
    Policy,
    /// Files and folders outside the workspace.
    Paths,
    /// Environment variables, with or without a value.
    Variables,
    /// Names of files and folders, at any depth.
    Names,
    /// Patterns of files in the workspace.
    Patterns,
    /// Patterns of paths, or prefixes of commands.
    Rules,
    /// A program and its arguments.
    Command,
    /// The path of a socket.
    Socket,
}

/// All settings, in the order in which they are shown.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let table = toml::from_str(include_str!("data/settings.toml"));
    let mut table: BTreeMap<String, Vec<Setting>> = table.expect("a table in order");
    table.remove("setting").unwrap_or_default()
});

/// The default of `protected_names`.
#[cfg(test)]
pub(crate) fn protected_by_default() -> impl Iterator<Item = &'static str> {
    find("protected_names").map_or("", |setting| &setting.default).split(',')
}

impl SettingKind {
    pub(super) fn is_list(&self) -> bool {
        use SettingKind::{Command, Names, Paths, Patterns, Rules, Variables};
        matches!(self, Paths | Variables | Names | Patterns | Rules | Command)
    }

    /// Describes the valid values, for an error.
    pub(super) fn form(&self) -> String {
        let form = match self {
            Self::Folder => "a folder, as a string",
            Self::Number { least, most, or_none } => {
                let none = if *or_none { "0 (no limit) or " } else { "" };
                return format!("{none}a whole number from {least} to {most}");
            }
            Self::Switch => "true or false",
            Self::Choice(names) => return format!("one of {}", names.join(", ")),
            Self::Policy => "the name of a policy, as a string; [policies.NAME] changes one",
            Self::Paths => "a list of files and folders, as strings",
            Self::Variables => "a list of strings NAME or NAME=VALUE",
            Self::Names => "a list of names of files and folders, as strings",
            Self::Patterns => "a list of patterns of files, as strings",
            Self::Rules => "a list of patterns, as strings",
            Self::Command => "a list of strings, a program and its arguments",
            Self::Socket => "the path of a socket, as a string",
        };
        form.to_owned()
    }

    /// Parses a value from a variable, a flag or the table of settings. In lists of paths `:` separates the items, in
    /// other lists a comma.
    pub(super) fn value_of(&self, text: &str) -> Value {
        let separator = if matches!(self, Self::Paths) { ':' } else { ',' };
        let value = match self {
            Self::Number { .. } => text.trim().parse::<i64>().ok().map(Value::from),
            Self::Switch => text.trim().parse::<bool>().ok().map(Value::from),
            kind if kind.is_list() => {
                let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
                Some(items.collect())
            }
            _ => None,
        };
        value.unwrap_or_else(|| text.into())
    }

    /// Describes what is wrong with a value; None if it is valid. The targets of paths are not checked.
    pub(super) fn fault(&self, value: &Value) -> Option<String> {
        let is_valid = match (self, value) {
            (Self::Switch, Value::Bool(_)) | (Self::Policy, Value::String(_)) => true,
            (Self::Number { least, most, or_none }, Value::Number(number)) => number
                .as_u64()
                .is_some_and(|n| (*least..=*most).contains(&n) || (*or_none && n == 0)),
            (Self::Choice(words), Value::String(text)) => words.contains(text),
            (Self::Folder | Self::Socket, Value::String(text)) => is_text(text),
            (Self::Command, Value::Array(items)) => {
                items.iter().all(Value::is_string)
                    && items.first().is_some_and(|program| program.as_str().is_some_and(is_text))
            }
            (kind, Value::Array(items)) if kind.is_list() => {
                return items.iter().find_map(|item| {
                    let form = match item.as_str() {
                        Some(text) => self.item_fault(text)?,
                        None => "a string",
                    };
                    Some(format!("contains {} but each item must be {form}", shown(item)))
                });
            }
            _ => false,
        };
        (!is_valid).then(|| format!("is {} but must be {}", shown(value), self.form()))
    }

    /// If an item of a list is invalid, describes what it must be.
    fn item_fault(&self, item: &str) -> Option<&'static str> {
        let (is_right, form) = match self {
            Self::Paths => (is_text(item), "the path of a file or folder"),
            Self::Variables => {
                let name = item.split('=').next().unwrap_or_default();
                let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && name.starts_with(|c: char| !c.is_ascii_digit());
                (
                    is_text(item) && is_name,
                    "NAME or NAME=VALUE, where NAME consists of letters, digits and _, and does not begin with a digit",
                )
            }
            Self::Names => (
                is_text(item) && ![".", ".."].contains(&item) && !item.contains('/'),
                "the name of a file or folder, without '/'",
            ),
            Self::Patterns => (
                is_text(item) && !item.starts_with('/') && item.split('/').all(|part| part != ".."),
                "a path in the workspace without '..', in which * and ? match characters and ** matches folders",
            ),
            Self::Rules => (
                is_text(item) && !item.contains(char::is_control) && item.trim() == item,
                "a pattern in one line, without blanks around it",
            ),
            _ => (!item.contains('\0'), "a text without NUL"),
        };
        (!is_right).then_some(form)
    }
}

fn is_text(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\0')
}

/// Formats a value for an error.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
        other => other.to_string(),
    }
}

impl Setting {
    /// Whether only a settings file can set it.
    pub(super) fn is_of_file(&self) -> bool {
        self.name.starts_with("guest.") || self.name.contains('*')
    }

    /// The name of the environment variable, if there is one.
    pub fn variable(&self) -> Option<String> {
        let name = self.name.to_uppercase().replace('.', "_");
        (!self.is_of_file()).then(|| format!("{PREFIX}{name}"))
    }

    /// The name of the flag, without `--`.
    pub fn flag_name(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The placeholder for the value in help texts.
    pub fn placeholder(&self) -> &'static str {
        match &self.kind {
            SettingKind::Folder => "DIR",
            SettingKind::Number { .. } => "N",
            SettingKind::Choice(_) => "MODE",
            SettingKind::Policy => "NAME",
            _ => "VALUE",
        }
    }

    /// The text for `--help`: purpose, choices and default.
    pub fn help(&self) -> String {
        let mut help = capitalized(&self.about);
        if !self.choices().is_empty() {
            help += &format!(": {}", self.choices().join(", "));
        }
        if matches!(self.kind, SettingKind::Policy) {
            help += " or one of your own";
        }
        if !self.default.is_empty() {
            help += &format!(" [{}]", self.default);
        }
        help
    }

    /// Whether the setting is a boolean.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, SettingKind::Switch)
    }

    /// Whether the value is a path or a list of paths.
    pub(super) fn has_paths(&self) -> bool {
        matches!(self.kind, SettingKind::Folder | SettingKind::Paths)
    }

    /// Whether the setting is a folder of the project.
    pub fn is_folder(&self) -> bool {
        matches!(self.kind, SettingKind::Folder)
    }

    /// The possible values, if they can be listed.
    pub fn choices(&self) -> Vec<&str> {
        match &self.kind {
            SettingKind::Choice(names) => names.iter().map(String::as_str).collect(),
            SettingKind::Policy => Policy::PRESETS.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// The names of all settings, except those of the tables `[guest]` and `[policies]`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|setting| !setting.is_of_file()).map(|setting| setting.name.as_str())
}

/// The main name of a setting that has two names.
pub fn canonical(name: &str) -> &str {
    if name.split('.').eq(SANDBOX_MODE) { SANDBOX_MODE[0] } else { name }
}

/// Finds a setting by name.
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = canonical(name);
    SETTINGS.iter().find(|setting| {
        name.split('.').count() == setting.name.split('.').count() && begins(setting, name)
    })
}

/// Finds a setting by name. The error suggests the nearest name.
pub(super) fn named(origin: &str, name: &str) -> Result<&'static Setting> {
    find(name).ok_or_else(|| unknown(origin, name))
}

/// The header of the table with this name, such as `[policies.NAME]`, if such a table can exist.
pub(super) fn header(name: &str) -> Option<String> {
    let deeper = |setting: &&Setting| {
        name.split('.').count() < setting.name.split('.').count() && begins(setting, name)
    };
    let (table, _) = SETTINGS.iter().find(deeper)?.name.rsplit_once('.')?;
    Some(format!("[{}]", table.replace('*', "NAME")))
}

/// Whether the name of a setting begins with the components of `name`.
fn begins(setting: &Setting, name: &str) -> bool {
    let mut parts = setting.name.split('.');
    name.split('.').all(|part| parts.next().is_some_and(|known| known == "*" || known == part))
}

/// Finds the setting that an environment variable sets; None for variables of other programs.
pub(super) fn of_variable(variable: &str, origin: &str) -> Result<Option<&'static Setting>> {
    let Some(bare) = variable.strip_prefix(PREFIX) else { return Ok(None) };
    let is_meant = |setting: &&Setting| setting.variable().as_deref() == Some(variable);
    let known = SETTINGS.iter().find(is_meant);
    known.map(Some).ok_or_else(|| {
        let names: Vec<String> = names().map(|name| name.replace('.', "_")).collect();
        let meant = nearest(&bare.to_lowercase(), names.iter().map(String::as_str));
        no_such(origin, variable, meant.map(|meant| PREFIX.to_owned() + &meant.to_uppercase()))
    })
}

/// The error for the name of an unknown setting.
pub(super) fn unknown(origin: &str, name: &str) -> Error {
    fn parts(name: &str) -> (&str, &str) {
        name.rsplit_once('.').unwrap_or(("", name))
    }
    if let Some(header) = header(name) {
        return Error::config(origin, format!("{name} must be a table, as {header}"));
    }
    let plain = name.replace('"', "");
    let policy = plain.strip_prefix("policies.").and_then(|rest| rest.split('.').next());
    let known = SETTINGS.iter().map(|setting| setting.name.replace('*', policy.unwrap_or("NAME")));
    let known: Vec<String> = known.chain([SANDBOX_MODE.join(".")]).collect();
    let (table, last) = parts(&plain);
    // Only the last components are compared: the shared table name would make all names similar.
    let mut beside = known.iter().filter(|name| parts(name).0 == table).map(|name| parts(name).1);
    let meant = known.iter().find(|name| parts(name).1 == last).cloned().or_else(|| {
        if beside.clone().next().is_none() {
            return nearest(&plain, known.iter().map(String::as_str)).map(str::to_owned);
        }
        let meant = nearest(last, beside.by_ref())?;
        Some(if table.is_empty() { meant.to_owned() } else { format!("{table}.{meant}") })
    });
    no_such(origin, name, meant)
}

fn no_such(origin: &str, name: &str, meant: Option<String>) -> Error {
    let rest = match meant {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => "`deaddrop config show` lists all settings".to_owned(),
    };
    Error::config(origin, format!("unknown setting '{name}'; {rest}"))
}
