//! The table of all settings. Everything else is derived from it: flags, variables, the reading of settings
//! files, errors, `config show`, consent, and docs/settings.md.

use super::policy::{LONGEST_SECONDS, Policy};
use super::{Mode, Notify, SecretsMode};
use crate::error::{Error, Result};
use crate::text::nearest;

/// The names of all environment variables of deaddrop begin with this.
const PREFIX: &str = "DEADDROP_";
/// `sandbox` is a word or a table, in which the word is called `sandbox.mode`.
pub(super) const WORD: [&str; 2] = ["sandbox", "mode"];
/// The highest limit in bytes.
const MOST_BYTES: u64 = 1 << 50;
/// The names that only the person may write, by default.
pub(crate) const PROTECTED: &str = ".git,.gitmodules,.husky,.vscode,.idea,.cursor,.claude,.codex,\
    .mcp.json,.envrc,.bashrc,.bash_profile,.bash_login,.bash_logout,.profile,.zshrc,.zprofile,\
    .zshenv,.zlogin,.zlogout,.kshrc,.cshrc,.tcshrc,.login,.inputrc,deaddrop.toml,.deaddrop";

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name; a dot separates the table, and `*` stands for the name of a policy.
    pub name: &'static str,
    /// What it can be.
    pub(super) kind: Kind,
    /// Its default, as its environment variable would have it.
    pub default: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Whether it is a flag of the command line.
    pub is_flag: bool,
    /// When a project's file needs consent to set it, and what it does then.
    pub(super) consent: Option<(Weakens, &'static str)>,
}

/// What a setting can be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A folder, relative to the base directory.
    Folder,
    /// A whole number; with `or_none`, 0 means no limit.
    Number {
        least: u64,
        most: u64,
        or_none: bool,
    },
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weakens {
    /// The folder is outside the base directory or under a protected name, also through a link.
    Outside,
    /// It contains what the person has not set, or a link of the base directory leads out of it.
    Beside,
    /// It confines commands less.
    Weaker,
    /// It is on.
    On,
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

const fn bytes(least: u64) -> Kind {
    number(least, MOST_BYTES)
}

const fn number(least: u64, most: u64) -> Kind {
    Kind::Number { least, most, or_none: false }
}

const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    about: &'static str,
) -> Setting {
    Setting { name, kind, default, about, is_flag: false, consent: None }
}

impl Setting {
    const fn flag(mut self) -> Self {
        self.is_flag = true;
        self
    }

    const fn consent(mut self, weakens: Weakens, does: &'static str) -> Self {
        self.consent = Some((weakens, does));
        self
    }
}

const fn of_policy(name: &'static str, kind: Kind, about: &'static str) -> Setting {
    let does = "what this policy allows is more than without it";
    setting(name, kind, "", about).consent(Weakens::Policies, does)
}

/// All settings, in the order in which they are shown.
pub static SETTINGS: [Setting; 44] = {
    use Kind::{Choice, Command, Folder, Names, Paths, Patterns, Rules, Socket, Switch, Variables};
    use Weakens::{Beside, Items, Lacking, On, Outside, Shown, Weaker};
    [
        setting(
            "workspace_dir",
            Folder,
            "workspace",
            "the folder that replies may read and change, and where commands run",
        )
        .flag()
        .consent(Outside, "replies read and change what is in this folder"),
        setting("inbox_dir", Folder, "inbox", "where replies are dropped")
            .flag()
            .consent(Outside, "texts in this folder are carried out as replies, and moved"),
        setting("outbox_dir", Folder, "outbox", "where outboxes are written")
            .flag()
            .consent(Outside, "outboxes are written into this folder"),
        setting("sessions_dir", Folder, "sessions", "where sessions and the journal are kept")
            .flag()
            .consent(Outside, "sessions are taken from this folder, and written there"),
        setting("approvals_dir", Folder, "approvals", "where decisions may be dropped")
            .consent(Outside, "files in this folder approve for you"),
        setting(
            "command_timeout_seconds",
            number(1, 3_600),
            "30",
            "how long a command may take, in seconds",
        )
        .flag(),
        setting(
            "max_output_length",
            number(100, 1_000_000),
            "4000",
            "how many characters of a command's output the LLM sees",
        )
        .flag(),
        setting(
            "max_tokens",
            number(4_000, 10_000_000),
            "24000",
            "how many tokens an outbox is at most",
        )
        .flag(),
        setting(
            "first_contents",
            Switch,
            "true",
            "whether the first outbox shows contents of the workspace unasked",
        ),
        setting(
            "part_characters",
            number(1_000, 10_000_000),
            "30000",
            "how many characters a part of an outbox may have (`show --part`)",
        )
        .flag(),
        setting(
            "policy",
            Kind::Policy,
            "",
            "what operations may do without asking; empty: `new` and `run` choose",
        )
        .flag()
        .consent(
            Weakens::Policy,
            "operations are done that you are asked about else, or are refused",
        ),
        setting("sandbox", Choice(Mode::NAMES), "auto", "how commands are confined")
            .flag()
            .consent(Weaker, "commands can be confined less; `off`: they run with your rights"),
        setting("sandbox.network", Switch, "false", "whether commands may use the network")
            .consent(On, "commands use the network, and services of this machine"),
        setting("sandbox.writable", Paths, "", "what commands may change beside the workspace")
            .consent(Beside, "commands change this beside the workspace"),
        setting(
            "sandbox.readable",
            Paths,
            "",
            "what commands may read beside the system and toolchains",
        )
        .consent(Beside, "commands read this beside the workspace"),
        setting(
            "sandbox.env",
            Variables,
            "",
            "environment variables that commands see: yours, or with a value",
        )
        .consent(Items, "commands see your values of these, or get them so"),
        setting(
            "sandbox.max_processes",
            number(350, 1_000_000),
            "4096",
            "how many processes and threads a command may have",
        ),
        setting(
            "sandbox.max_file_bytes",
            bytes(1_000_000),
            "4294967296",
            "how large a file a command may write",
        ),
        setting(
            "sandbox.max_memory_bytes",
            Kind::Number { least: 100_000_000, most: MOST_BYTES, or_none: true },
            "0",
            "how much address space a process may take; 0 is no limit",
        ),
        setting(
            "sandbox.min_free_bytes",
            bytes(0),
            "104857600",
            "a command ends when the disk has less left; 0 is no watch",
        ),
        setting(
            "protected_names",
            Names,
            PROTECTED,
            "files and folders that only you may write, at any depth",
        )
        .consent(Lacking, "replies write what else only you do"),
        setting(
            "checkpoints",
            Switch,
            "true",
            "whether what turns change is kept, so that it can be undone",
        ),
        setting(
            "checkpoint_file_bytes",
            bytes(1_000),
            "16777216",
            "how large a file is kept at most",
        ),
        setting(
            "checkpoint_ignored_file_bytes",
            bytes(0),
            "1048576",
            "how large an ignored file is kept at most",
        ),
        setting(
            "checkpoint_ignored_bytes",
            bytes(0),
            "67108864",
            "how much is kept of all ignored files",
        ),
        setting(
            "checkpoint_max_bytes",
            bytes(1_000_000),
            "1073741824",
            "how much is kept of all turns together",
        ),
        setting(
            "secrets",
            Choice(SecretsMode::NAMES),
            "withhold",
            "what is done with secrets that an outbox would show",
        )
        .consent(Shown, "secrets in files and outputs are shown in outboxes"),
        setting("secrets_allow", Patterns, "", "files whose contents are shown whatever they hold")
            .consent(Items, "secrets in these files are shown in outboxes"),
        setting(
            "notify",
            Choice(Notify::NAMES),
            "off",
            "how `new`, `resume` and `watch` announce that a turn is done",
        ),
        setting("guest.command", Command, "", "the program that speaks for another machine")
            .consent(
                Weakens::Guest,
                "this program runs with your rights, and all is carried out by it",
            ),
        setting("guest.socket", Socket, "", "the socket that another machine is reached at")
            .consent(Weakens::Guest, "all is carried out by whoever answers at this socket"),
        setting("guest.port", number(0, u32::MAX as u64), "52", "the port of that machine")
            .consent(Weakens::Guest, "at this port of it"),
        of_policy("policies.*.preset", Choice(&Policy::PRESETS), "the policy that this changes"),
        of_policy("policies.*.network", Switch, "whether commands have the network"),
        of_policy("policies.*.files.enabled", Switch, "whether there are operations on files"),
        of_policy("policies.*.files.read_only", Switch, "whether these may only read"),
        of_policy("policies.*.files.blocked", Rules, "patterns of files that are out of reach"),
        of_policy("policies.*.files.allowed", Rules, "patterns of the only files in reach"),
        of_policy("policies.*.files.max_bytes", number(1, MOST_BYTES), "how large a file may be"),
        of_policy("policies.*.shell.enabled", Switch, "whether there are commands"),
        of_policy("policies.*.shell.allowed", Rules, "how the only commands that run begin"),
        of_policy("policies.*.shell.blocked", Rules, "how commands begin that do not run"),
        of_policy(
            "policies.*.shell.approval",
            Rules,
            "how commands begin that you are asked about",
        ),
        of_policy(
            "policies.*.shell.timeout_seconds",
            number(1, LONGEST_SECONDS),
            "how long a command may take by itself and at most",
        ),
    ]
};

impl Kind {
    pub(super) fn is_list(self) -> bool {
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
    pub(super) fn form(self) -> String {
        let form = match self {
            Self::Folder => "a folder, as a string",
            Self::Number { least, most, or_none } => {
                let none = if or_none { "0 (no limit) or " } else { "" };
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
    pub(super) fn wrong_item(self, item: &str) -> Option<&'static str> {
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
        self.is_flag.then(|| self.name.replace('_', "-"))
    }

    /// What its flag calls a value.
    pub fn placeholder(&self) -> &'static str {
        match self.kind {
            Kind::Folder => "DIR",
            Kind::Number { .. } => "N",
            Kind::Choice(_) => "MODE",
            Kind::Policy => "NAME",
            _ => "VALUE",
        }
    }

    /// The words that it can be, if there are few.
    pub fn choices(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Choice(names) => names,
            Kind::Policy => &Policy::PRESETS,
            _ => &[],
        }
    }
}

/// The names of all settings, but for those of the tables `[guest]` and `[policies]`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|setting| !setting.is_of_file()).map(|setting| setting.name)
}

/// A setting's own name, where it has two.
pub fn canonical(name: &str) -> &str {
    if name.split('.').eq(WORD) { WORD[0] } else { name }
}

/// The setting of that name.
pub(super) fn find(name: &str) -> Option<&'static Setting> {
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
    let (table, _) = name.rsplit_once('.').unwrap_or_default();
    let above = |meant: &str| !table.is_empty() && !meant.contains('.');
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

/// The names of settings and tables in the same table.
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
    names
}

/// The name that was most likely meant: the same one in another table, or one like it in this.
fn meant(name: &str) -> Option<String> {
    let same = spellings(name).into_iter().find(|other| last(other) == last(name));
    same.or_else(|| {
        let beside = beside(name);
        // What all names of a table begin with would make any two of them alike.
        let meant = nearest(last(name), beside.iter().map(|other| last(other)))?;
        beside.iter().find(|other| last(other) == meant).cloned()
    })
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or_default()
}
