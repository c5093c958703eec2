//! The table of all settings: what each is called, what it may be, and what it is by itself.

use std::ffi::OsString;

use super::notify::Notify;
use super::sandbox::Mode;
use super::secrets::SecretsMode;
use crate::error::{Error, Result};
use crate::text::nearest;

/// What the names of all environment variables of deaddrop begin with.
const PREFIX: &str = "DEADDROP_";
/// The setting that may also be a table, and what its own value is called there.
const TABLE: &str = "sandbox";
const TABLE_SELF: &str = "mode";
/// The most bytes that a limit can be set to.
const MOST_BYTES: u64 = 1 << 50;

/// One setting that a person can make. A dot in its name stands for a table.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// As it would be written into its variable.
    pub(super) default: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A folder, relative to the base directory.
    Folder,
    /// A whole number; `or_none` is set where 0 stands for no limit at all.
    Number {
        least: u64,
        most: u64,
        or_none: bool,
    },
    Switch,
    Mode,
    /// What is done about secrets.
    Secrets,
    /// How the end of a turn is announced.
    Notify,
    /// The name of a policy, or nothing.
    Policy,
    /// Files and folders outside the workspace.
    Paths,
    /// Environment variables, with or without a value.
    Variables,
    /// Names of files and folders, wherever they lie.
    Names,
    /// Patterns of files in the workspace.
    Patterns,
}

const fn bytes(least: u64) -> Kind {
    Kind::Number { least, most: MOST_BYTES, or_none: false }
}

/// The names that nobody but the person may write, without any setting.
pub(crate) const PROTECTED: &str = ".git,.gitmodules,.husky,.vscode,.idea,.cursor,.claude,.codex,\
    .mcp.json,.envrc,.bashrc,.bash_profile,.bash_login,.bash_logout,.profile,.zshrc,.zprofile,\
    .zshenv,.zlogin,.zlogout,.kshrc,.cshrc,.tcshrc,.login,.inputrc,deaddrop.toml,.deaddrop";

pub(super) static KEYS: [Key; 29] = [
    Key { name: "workspace_dir", kind: Kind::Folder, default: "workspace" },
    Key { name: "inbox_dir", kind: Kind::Folder, default: "inbox" },
    Key { name: "outbox_dir", kind: Kind::Folder, default: "outbox" },
    Key { name: "sessions_dir", kind: Kind::Folder, default: "sessions" },
    Key { name: "approvals_dir", kind: Kind::Folder, default: "approvals" },
    Key {
        name: "command_timeout_seconds",
        kind: Kind::Number { least: 1, most: 3_600, or_none: false },
        default: "30",
    },
    Key {
        name: "max_output_length",
        kind: Kind::Number { least: 100, most: 1_000_000, or_none: false },
        default: "4000",
    },
    Key {
        name: "max_tokens",
        kind: Kind::Number { least: 4_000, most: 10_000_000, or_none: false },
        default: "24000",
    },
    Key { name: "first_contents", kind: Kind::Switch, default: "true" },
    Key {
        name: "part_characters",
        kind: Kind::Number { least: 1_000, most: 10_000_000, or_none: false },
        default: "30000",
    },
    Key { name: "policy", kind: Kind::Policy, default: "" },
    Key { name: TABLE, kind: Kind::Mode, default: "auto" },
    Key { name: "sandbox.network", kind: Kind::Switch, default: "false" },
    Key { name: "sandbox.writable", kind: Kind::Paths, default: "" },
    Key { name: "sandbox.readable", kind: Kind::Paths, default: "" },
    Key { name: "sandbox.env", kind: Kind::Variables, default: "" },
    Key {
        name: "sandbox.max_processes",
        kind: Kind::Number { least: 350, most: 1_000_000, or_none: false },
        default: "4096",
    },
    Key { name: "sandbox.max_file_bytes", kind: bytes(1_000_000), default: "4294967296" },
    Key {
        name: "sandbox.max_memory_bytes",
        kind: Kind::Number { least: 100_000_000, most: MOST_BYTES, or_none: true },
        default: "0",
    },
    Key { name: "sandbox.min_free_bytes", kind: bytes(0), default: "104857600" },
    Key { name: "protected_names", kind: Kind::Names, default: PROTECTED },
    Key { name: "checkpoints", kind: Kind::Switch, default: "true" },
    Key { name: "checkpoint_file_bytes", kind: bytes(1_000), default: "16777216" },
    Key { name: "checkpoint_ignored_file_bytes", kind: bytes(0), default: "1048576" },
    Key { name: "checkpoint_ignored_bytes", kind: bytes(0), default: "67108864" },
    Key { name: "checkpoint_max_bytes", kind: bytes(1_000_000), default: "1073741824" },
    Key { name: "secrets", kind: Kind::Secrets, default: "withhold" },
    Key { name: "secrets_allow", kind: Kind::Patterns, default: "" },
    Key { name: "notify", kind: Kind::Notify, default: "off" },
];

impl Key {
    /// What the setting must be, for whoever set it to something else.
    pub(super) fn form(&self) -> String {
        match self.kind {
            Kind::Folder => "a folder, as a string".to_owned(),
            Kind::Number { least, most, or_none } => {
                let none = if or_none { "0 (no limit) or " } else { "" };
                format!("{none}a whole number from {least} to {most}")
            }
            Kind::Switch => "true or false".to_owned(),
            Kind::Mode => format!("one of {}", Mode::ALL.map(|(name, _)| name).join(", ")),
            Kind::Secrets => {
                format!("one of {}", SecretsMode::ALL.map(|(name, _)| name).join(", "))
            }
            Kind::Notify => {
                format!("one of {}", Notify::ALL.map(|(name, _)| name).join(", "))
            }
            Kind::Policy => {
                "the name of a policy, as a string; [policies.NAME] changes one".to_owned()
            }
            Kind::Paths => "a list of files and folders, as strings".to_owned(),
            Kind::Variables => "a list of strings NAME or NAME=VALUE".to_owned(),
            Kind::Names => "a list of names of files and folders, as strings".to_owned(),
            Kind::Patterns => "a list of patterns of files, as strings".to_owned(),
        }
    }

    /// The setting's environment variable.
    fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// The setting's name in the table of settings, if it is one that stands there.
    fn in_table(&self) -> Option<&'static str> {
        match self.name.strip_prefix(TABLE)? {
            "" => Some(TABLE_SELF),
            rest => rest.strip_prefix('.'),
        }
    }

    fn is_top(&self) -> bool {
        !self.name.contains('.')
    }
}

/// The names of all settings but those of a guest and of the person's own policies.
pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// Where in the table a setting stands.
pub(super) fn place(name: &str) -> Option<usize> {
    KEYS.iter().position(|key| key.name == name)
}

/// Where the setting stands that a settings file calls `name`, at its top or `in_table`.
pub(super) fn place_in_file(name: &str, in_table: bool, origin: &str) -> Result<usize> {
    let found = KEYS.iter().position(|key| {
        if in_table { key.in_table() == Some(name) } else { key.is_top() && key.name == name }
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let tables = KEYS.iter().filter_map(Key::in_table);
    let tops = KEYS.iter().filter(|key| key.is_top()).map(|key| key.name);
    let full = |name: &str| format!("{TABLE}.{name}");
    if in_table {
        let meant = if tops.clone().any(|top| top == name) {
            Some(format!("'{name}', above [{TABLE}]"))
        } else {
            nearest(name, tables.clone()).map(|name| format!("'{}'", full(name)))
        };
        return Err(unknown(origin, &full(name), meant, tables.map(full)));
    }
    let meant = tables.clone().map(full).find(|full| {
        // Written without its table, or with quotes around the whole.
        full == name || full.strip_prefix(TABLE).is_some_and(|bare| &bare[1..] == name)
    });
    let meant = meant.or_else(|| nearest(name, tops.clone()).map(str::to_owned));
    let shown = if name.contains('.') { format!("\"{name}\"") } else { name.to_owned() };
    Err(unknown(origin, &shown, meant.map(|meant| format!("'{meant}'")), tops.map(str::to_owned)))
}

/// The setting that an environment variable makes, and where it stands in the table; nothing for
/// variables that are not deaddrop's.
pub(super) fn place_of_variable(variable: &str, origin: &str) -> Result<Option<usize>> {
    let Some(bare) = variable.strip_prefix(PREFIX) else { return Ok(None) };
    if let Some(found) = KEYS.iter().position(|key| key.variable() == variable) {
        return Ok(Some(found));
    }
    // What all names begin with would make any two of them alike.
    let table = format!("{}_", TABLE.to_uppercase());
    let (bare, named): (&str, fn(&Key) -> Option<&str>) = match bare.strip_prefix(&table) {
        Some(bare) => (bare, Key::in_table),
        None => (bare, |key| key.is_top().then_some(key.name)),
    };
    let meant = nearest(bare, KEYS.iter().filter_map(named));
    let meant = KEYS.iter().find(|key| meant.is_some() && named(key) == meant);
    let meant = meant.map(|key| format!("'{}'", key.variable()));
    Err(unknown(origin, variable, meant, KEYS.iter().map(Key::variable)))
}

/// There is no setting of this name that a flag could make.
pub(super) fn unknown_flag(origin: &str, name: &str) -> Error {
    let meant = nearest(name, KEYS.iter().map(|key| key.name)).map(|meant| format!("'{meant}'"));
    unknown(origin, name, meant, KEYS.iter().map(|key| key.name.to_owned()))
}

fn unknown(
    origin: &str,
    name: &str,
    meant: Option<String>,
    known: impl Iterator<Item = String>,
) -> Error {
    let problem = match meant {
        Some(meant) => format!("unknown setting '{name}'; did you mean {meant}?"),
        None => {
            let known: Vec<String> = known.collect();
            format!("unknown setting '{name}'; there are {}", known.join(", "))
        }
    };
    Error::config(origin, problem)
}

/// A setting before it is resolved, in the shape that its kind asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<OsString>),
}

impl Value {
    /// What a variable, a flag or a default says. Lists of paths are separated as `PATH` is, others
    /// by commas; nothing between two separators, or around them, is an item.
    pub(super) fn from_text(key: &Key, text: OsString, origin: &str) -> Result<Self> {
        if matches!(key.kind, Kind::Paths) {
            let paths = std::env::split_paths(&text).map(OsString::from);
            return Ok(Self::List(paths.filter(|path| !path.is_empty()).collect()));
        }
        let text = text.into_string().map_err(|text| {
            let problem = format!("{} is not valid UTF-8: '{}'", key.name, text.to_string_lossy());
            Error::config(origin, problem)
        })?;
        Ok(match key.kind {
            Kind::Variables | Kind::Names | Kind::Patterns => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Self::List(items.map(OsString::from).collect())
            }
            _ => Self::Text(text),
        })
    }
}
