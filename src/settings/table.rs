//! The table of all settings. Everything else is derived from it: flags, variables, the reading of settings
//! files, errors, `config show`, consent, and docs/settings.md.

use std::sync::LazyLock;

use serde::Deserialize;

use super::policy::Policy;
use crate::error::{Error, Result};
use crate::text::nearest;

/// The names of all environment variables of deaddrop begin with this.
const PREFIX: &str = "DEADDROP_";
/// `sandbox` is a word or a table, in which the word is called `sandbox.mode`.
pub(super) const WORD: [&str; 2] = ["sandbox", "mode"];

/// One setting.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name; a dot separates the table, and `*` stands for the name of a policy.
    pub name: String,
    pub(super) kind: Kind,
    /// Its default, as its environment variable would have it.
    #[serde(default)]
    pub default: String,
    /// What it is for.
    pub about: String,
    /// Whether it is a flag of the command line.
    #[serde(default)]
    pub flag: bool,
    /// When a project's file needs consent to set it.
    pub(super) consent: Option<NeedsConsent>,
}

/// What a project's file needs consent for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeedsConsent {
    pub(super) when: Weakens,
    /// What it does then.
    pub(super) does: String,
}

/// What a setting can be.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Kind {
    /// A folder, relative to the project.
    Folder,
    /// A whole number; with `or_none`, 0 means no limit.
    Number {
        least: u64,
        most: u64,
        #[serde(default)]
        or_none: bool,
    },
    Switch,
    /// One of these words.
    Choice(Vec<String>),
    /// The name of a policy, or nothing.
    Policy,
    /// Files and folders outside the workspace.
    Paths,
    /// Environment variables, with or without a value.
    Variables,
    /// Names of files and folders, at any depth.
    Names,
    /// Patterns of files in the workspace.
    Patterns,
    /// Patterns of paths or beginnings of commands.
    Rules,
    /// A program and its arguments.
    Command,
    /// The path of a socket.
    Socket,
}

/// When a setting in a project's file weakens what holds without that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weakens {
    /// The folder is outside the project or under a protected name, also through a link.
    Outside,
    /// It contains what the person has not set, or a link of the project leads out of it.
    Beside,
    /// It confines commands less.
    Weaker,
    /// It is on.
    On,
    /// It is off.
    Off,
    /// It contains what the person has not set.
    Items,
    /// It lacks a name.
    Lacking,
    /// Secrets are shown.
    Shown,
    /// The policy of that name allows more.
    Policy,
    /// The table as a whole differs from the person's own.
    Guest,
    /// The table as a whole allows more than without it.
    Policies,
}

/// All settings, in the order in which they are shown.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        setting: Vec<Setting>,
    }
    let table: Table =
        toml::from_str(include_str!("data/settings.toml")).expect("a table in order");
    table.setting
});

/// The names that only the person may write, by default.
#[cfg(test)]
pub(crate) fn protected_by_default() -> impl Iterator<Item = &'static str> {
    find("protected_names").map_or("", |setting| &setting.default).split(',')
}

impl Kind {
    pub(super) fn is_list(&self) -> bool {
        matches!(
            self,
            Self::Paths
                | Self::Variables
                | Self::Names
                | Self::Patterns
                | Self::Rules
                | Self::Command
        )
    }

    /// What the setting must be, for whoever set it to something else.
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

    /// What each item of a list must be, if one is not that.
    pub(super) fn wrong_item(&self, item: &str) -> Option<&'static str> {
        let is_text = !item.trim().is_empty() && !item.contains('\0');
        let (is_right, form) = match self {
            Self::Paths => (is_text, "the path of a file or folder"),
            Self::Variables => {
                let name = item.split('=').next().unwrap_or_default();
                let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                    && name.starts_with(|c: char| !c.is_ascii_digit());
                (
                    is_text && is_name,
                    "NAME or NAME=VALUE, and NAME made of letters, digits and _, without a digit first",
                )
            }
            Self::Names => (
                is_text && ![".", ".."].contains(&item) && !item.contains('/'),
                "the name of a file or folder, without '/'",
            ),
            Self::Patterns => (
                is_text && !item.starts_with('/') && item.split('/').all(|part| part != ".."),
                "a path in the workspace without '..', in which * and ? stand for other characters and ** for folders",
            ),
            Self::Rules => (is_text && !item.contains(char::is_control), "a pattern in one line"),
            _ => (!item.contains('\0'), "a text without NUL"),
        };
        (!is_right).then_some(form)
    }
}

impl Setting {
    /// Whether only settings files can set it.
    pub(super) fn is_of_file(&self) -> bool {
        self.name.starts_with("guest.") || self.name.contains('*')
    }

    /// Its environment variable, if it has one.
    pub(super) fn variable(&self) -> Option<String> {
        let name = self.name.to_uppercase().replace('.', "_");
        (!self.is_of_file()).then(|| format!("{PREFIX}{name}"))
    }

    /// Its flag, if it has one.
    pub fn flag_name(&self) -> Option<String> {
        self.flag.then(|| self.name.replace('_', "-"))
    }

    /// What its flag calls a value.
    pub fn placeholder(&self) -> &'static str {
        match &self.kind {
            Kind::Folder => "DIR",
            Kind::Number { .. } => "N",
            Kind::Choice(_) => "MODE",
            Kind::Policy => "NAME",
            _ => "VALUE",
        }
    }

    /// What `--help` says of it: what it is for, the words that it can be, and its default.
    pub fn help(&self) -> String {
        let (first, rest) = self.about.split_at(1);
        let mut help = format!("{}{rest}", first.to_uppercase());
        if !self.choices().is_empty() {
            help += &format!(": {}", self.choices().join(", "));
        }
        if matches!(self.kind, Kind::Policy) {
            help += " or one of your own";
        }
        if !self.default.is_empty() {
            help += &format!(" [{}]", self.default);
        }
        help
    }

    /// Whether it is true or false.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Switch)
    }

    /// Whether it is a folder of the project.
    pub fn is_folder(&self) -> bool {
        matches!(self.kind, Kind::Folder)
    }

    /// The words that it can be, if there are few.
    pub fn choices(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Choice(names) => names.iter().map(String::as_str).collect(),
            Kind::Policy => Policy::PRESETS.to_vec(),
            _ => Vec::new(),
        }
    }
}

/// The names of all settings, but for those of the tables `[guest]` and `[policies]`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|setting| !setting.is_of_file()).map(|setting| setting.name.as_str())
}

/// A setting's own name, where it has two.
pub fn canonical(name: &str) -> &str {
    if name.split('.').eq(WORD) { WORD[0] } else { name }
}

/// The setting of that name.
pub fn find(name: &str) -> Option<&'static Setting> {
    let name = canonical(name);
    SETTINGS.iter().find(|setting| {
        name.split('.').count() == setting.name.split('.').count() && begins(setting, name)
    })
}

/// How the table of that name is written, if there can be one.
pub(super) fn header(name: &str) -> Option<String> {
    let deeper = |setting: &&Setting| {
        name.split('.').count() < setting.name.split('.').count() && begins(setting, name)
    };
    let (table, _) = SETTINGS.iter().find(deeper)?.name.rsplit_once('.')?;
    Some(format!("[{}]", table.replace('*', "NAME")))
}

/// Whether the name of a setting begins with these parts.
fn begins(setting: &Setting, name: &str) -> bool {
    let mut parts = setting.name.split('.');
    name.split('.').all(|part| parts.next().is_some_and(|known| known == "*" || known == part))
}

/// The setting that an environment variable sets; None for variables that are not deaddrop's.
pub(super) fn of_variable(variable: &str, origin: &str) -> Result<Option<&'static Setting>> {
    let Some(bare) = variable.strip_prefix(PREFIX) else { return Ok(None) };
    let known = SETTINGS.iter().find(|setting| setting.variable().as_deref() == Some(variable));
    if known.is_some() {
        return Ok(known);
    }
    let name = bare.to_lowercase();
    let name = match name.strip_prefix("sandbox_") {
        Some(rest) => format!("{}.{rest}", WORD[0]),
        None => name,
    };
    let meant = meant(&name).and_then(|name| find(&name)?.variable());
    let variables = SETTINGS.iter().filter_map(Setting::variable);
    Err(no_such(origin, variable, meant.map(|meant| format!("'{meant}'")), variables))
}

/// The error that there is no setting of this name.
pub(super) fn unknown(origin: &str, name: &str) -> Error {
    if let Some(header) = header(name) {
        let inside = beside(&format!("{name}.")).join(", ");
        let problem = format!("'{name}' is a table ({header}); name a setting in it: {inside}");
        return Error::config(origin, problem);
    }
    let (table, _) = name.rsplit_once('.').unwrap_or_default();
    let above = |meant: &str| !table.is_empty() && !meant.contains('.') && header(table).is_some();
    let meant = meant(&name.replace('"', "")).map(|meant| {
        if above(&meant) { format!("'{meant}', above [{table}]") } else { format!("'{meant}'") }
    });
    no_such(origin, name, meant, beside(name).into_iter())
}

fn no_such(
    origin: &str,
    name: &str,
    meant: Option<String>,
    known: impl Iterator<Item = String>,
) -> Error {
    let rest = match meant {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    };
    Error::config(origin, format!("unknown setting '{name}'; {rest}"))
}

/// The full names of all settings; those of a policy as of the one that `name` is about.
fn spellings(name: &str) -> Vec<String> {
    let policy = name.strip_prefix("policies.").and_then(|rest| rest.split('.').next());
    let all = SETTINGS.iter().flat_map(|setting| {
        let word = (setting.name == WORD[0]).then(|| WORD.join("."));
        [setting.name.replace('*', policy.unwrap_or("NAME"))].into_iter().chain(word)
    });
    all.collect()
}

/// The names of settings and tables in the same table, or in the next one above that there can be.
fn beside(name: &str) -> Vec<String> {
    let table = name.rsplit_once('.').map_or(String::new(), |(table, _)| format!("{table}."));
    let mut names: Vec<String> = Vec::new();
    for other in spellings(name) {
        let Some(rest) = other.strip_prefix(&table) else { continue };
        let beside = format!("{table}{}", rest.split('.').next().unwrap_or_default());
        if !names.contains(&beside) {
            names.push(beside);
        }
    }
    match name.rsplit_once('.') {
        Some((above, _)) if names.is_empty() => beside(above),
        _ => names,
    }
}

/// The name that was most likely meant: the same one in another table, or one like it in this.
fn meant(name: &str) -> Option<String> {
    let same = spellings(name).into_iter().find(|other| last(other) == last(name));
    same.or_else(|| {
        let (table, _) = name.rsplit_once('.').unwrap_or_default();
        if !table.is_empty() && header(table).is_none() {
            return meant(table);
        }
        let beside = beside(name);
        // What all names of a table begin with would make any two of them alike.
        let meant = nearest(last(name), beside.iter().map(|other| last(other)))?;
        beside.iter().find(|other| last(other) == meant).cloned()
    })
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}
