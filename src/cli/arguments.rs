//! The command line: the options of all commands, and the settings that each command accepts as flags.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::slice;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, ColorChoice, Command, CommandFactory, FromArgMatches, Parser};
use serde::Deserialize;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::settings::{Layer, SETTINGS, Setting, find_setting};

/// Turns any chat window into a coding agent: paste the outbox into a chat, save the reply in the
/// inbox, and deaddrop executes it in the workspace.
#[derive(Debug, Parser)]
#[command(
    name = "deaddrop",
    bin_name = "deaddrop",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    // Wider lines are hard to read.
    max_term_width = 100,
    after_help = include_str!("data/help.txt").trim_end()
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: super::CliCommand,
}

/// Options of every command, before or after its name.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The project folder [default: the nearest one upwards]
    #[arg(short = 'C', value_name = "DIR", global = true, display_order = 900)]
    pub(super) project: Option<PathBuf>,
    /// Print results as JSON, one object per line
    #[arg(long, global = true, display_order = 900)]
    pub(super) json: bool,
    /// Print only results, errors and warnings
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 900)]
    pub(super) quiet: bool,
    /// Print more, such as the output of commands
    #[arg(short, long, global = true, display_order = 900)]
    pub(super) verbose: bool,
    /// Colours on the terminal
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        global = true,
        display_order = 900,
        help = "Use colours: auto, always or never"
    )]
    pub(super) color: ColorChoice,
    #[arg(skip)]
    pub(super) settings: SettingFlags,
    /// The time to write into sessions instead of the clock's
    #[arg(long, value_name = "TIME", hide = true, global = true)]
    pub(super) now: Option<Timestamp>,
}

/// Settings that were given as flags, with their names.
#[derive(Debug, Clone, Default)]
pub(super) struct SettingFlags(Vec<(&'static str, String)>);

/// The help texts and setting flags of commands, from data/commands.toml.
#[derive(Deserialize)]
struct CommandTable {
    /// Groups of settings.
    groups: BTreeMap<String, Vec<String>>,
    /// The help of the folder settings in `init`.
    init_folders: BTreeMap<String, String>,
    /// The current name of each command that older versions named differently.
    former: BTreeMap<String, String>,
    /// The commands by full name, as in `deaddrop config set`.
    commands: BTreeMap<String, CommandEntry>,
}

/// The table's entry for one command.
#[derive(Deserialize)]
struct CommandEntry {
    /// The settings (or groups of settings) that the command accepts as flags.
    #[serde(default)]
    settings: Vec<String>,
    /// The last part of the command's `--help`.
    help: Option<String>,
}

static TABLE: LazyLock<CommandTable> = LazyLock::new(|| {
    toml::from_str(include_str!("data/commands.toml")).expect("the table is valid")
});

impl Cli {
    /// The complete command line, with the table's entries for all commands.
    pub(super) fn all() -> Command {
        with_table(Self::command(), "deaddrop", &|_| true)
    }

    /// The command line with the table's entries only for commands that `arguments` name. This makes the start faster.
    pub(super) fn named_in(arguments: &[OsString]) -> Command {
        let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
        with_table(Self::command(), "deaddrop", &is_named)
    }

    /// Parses the arguments.
    pub(super) fn read<T: Into<OsString> + Clone>(
        mut all: Command,
        arguments: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let matches = all.try_get_matches_from_mut(arguments).map_err(present_name)?;
        let mut cli = Self::from_arg_matches(&matches).map_err(|e| e.format(&mut all))?;
        cli.global.settings = SettingFlags::from_matches(&matches);
        Ok(cli)
    }
}

/// Replaces an error about a former command name by an error with its current name.
fn present_name(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(former)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let Some(now) = TABLE.former.get(former) else { return error };
    let message = format!("`deaddrop {former}` is `deaddrop {now}` now\n");
    clap::Error::raw(ErrorKind::InvalidSubcommand, message)
}

/// Adds the table's entries to the subcommands with wanted names.
fn with_table(command: Command, path: &str, is_wanted: &dyn Fn(&str) -> bool) -> Command {
    command.mut_subcommands(|inner| {
        if !is_wanted(inner.get_name()) {
            return inner;
        }
        let path = format!("{path} {}", inner.get_name());
        let inner = with_table(inner, &path, is_wanted);
        let Some(CommandEntry { settings, help }) = TABLE.commands.get(&path) else { return inner };
        let inner = match help {
            Some(help) => inner.after_help(help.as_str()),
            None => inner,
        };
        let is_init = path == "deaddrop init";
        let names = settings.iter().flat_map(|name| match TABLE.groups.get(name) {
            Some(group) => &**group,
            None => slice::from_ref(name),
        });
        inner.args(names.map(|name| flag(name, is_init)))
    })
}

/// The flag of a setting.
fn flag(name: &'static str, is_init: bool) -> Arg {
    let setting = find_setting(name).expect("a name in the table");
    let of_init = TABLE.init_folders.get(name).filter(|_| is_init);
    // A switch without a value is on.
    let values = if setting.is_switch() { 0..=1 } else { 1..=1 };
    Arg::new(name)
        .num_args(values)
        .require_equals(setting.is_switch())
        .default_missing_value("true")
        .long(setting.flag_name())
        .value_name(setting.placeholder())
        .help(of_init.cloned().unwrap_or_else(|| setting.help()))
        .help_heading("Settings (as in deaddrop.toml and DEADDROP_*)")
}

impl SettingFlags {
    fn from_matches(matches: &ArgMatches) -> Self {
        let mut matches = matches;
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        let value = |name| matches.try_get_one::<String>(name).ok().flatten().cloned();
        let flags = SETTINGS.iter().filter(|setting| setting.flag);
        let given = flags.filter_map(|Setting { name, .. }| Some((name.as_str(), value(name)?)));
        Self(given.collect())
    }

    /// The names and values of the given settings.
    pub(super) fn given(&self) -> &[(&'static str, String)] {
        &self.0
    }

    /// The given settings as environment variables, for another process.
    #[cfg(feature = "serve")]
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let variable = |name: &str| find_setting(name).and_then(Setting::variable);
        self.0.iter().filter_map(|(name, value)| Some((variable(name)?, value.clone()))).collect()
    }

    /// The given settings as a layer, with their flags as origins.
    pub(super) fn raw(&self) -> Result<Layer, Error> {
        let mut raw = Layer::default();
        for (name, value) in &self.0 {
            raw.set(name, value, format!("--{}", name.replace('_', "-")))?;
        }
        Ok(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_about_commands_that_there_are() {
        let all = Cli::all();
        let is_there = |name: &str| {
            let mut words = name.split(' ').filter(|word| !word.starts_with('-'));
            words.try_fold(&all, |command, word| command.find_subcommand(word)).is_some()
        };
        let names = TABLE.commands.keys().filter_map(|name| name.strip_prefix("deaddrop "));
        for name in names.chain(TABLE.former.values().map(String::as_str)) {
            assert!(is_there(name) || name.starts_with("serve"), "{name}");
        }
        assert!(!TABLE.former.keys().any(|former| is_there(former)));
    }
}
