//! What every command takes: where the project is, how results are told, and the settings as
//! flags.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, ValueEnum};

use super::Asked;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::settings::{Raw, SETTINGS, Setting};

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    failed
  2    wrong usage or settings
  3    waits for your decision
  4    another deaddrop serves the folder
  5    no such session, or nothing to decide
  130  interrupted";

const EXAMPLES: &str = "\
Examples:
  deaddrop init
      sets up the current folder
  deaddrop new \"Write a calculator in Python, with tests\"
      writes an outbox to paste into a chat, and waits for replies
  deaddrop resume
      continues the newest open session
  deaddrop check reply.txt && deaddrop apply reply.txt
      inspects a reply first, then executes it";

/// Turns any chat window into a coding agent: paste the outbox into a chat, save the reply in the
/// inbox, and deaddrop executes it in the workspace.
#[derive(Debug, Parser)]
#[command(
    name = "deaddrop",
    bin_name = "deaddrop",
    version,
    propagate_version = true,
    disable_help_subcommand = true
)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Asked,
}

/// What every command takes, before or after its name.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The project folder [default: the nearest one upwards]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) project: Option<PathBuf>,
    /// Print results as JSON, one object per line
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print only errors and warnings
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Print more, such as the output of commands
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
    /// Colours on the terminal
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        global = true,
        help = "Use colours: auto, always or never"
    )]
    pub(super) color: Color,
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The time to write into sessions instead of the clock's
    #[arg(long, value_name = "TIME", hide = true, global = true)]
    pub(super) now: Option<Timestamp>,
}

/// Settings as flags, each by its name; they go over DEADDROP_* variables and deaddrop.toml.
#[derive(Debug, Default)]
pub(super) struct Settings(Vec<(&'static str, String)>);

/// The settings that are flags.
fn flags() -> impl Iterator<Item = (&'static Setting, String)> {
    SETTINGS.iter().filter_map(|setting| Some((setting, setting.flag_name()?)))
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = flags().filter_map(|(setting, _)| {
            Some((&*setting.name, matches.get_one::<String>(&setting.name)?.clone()))
        });
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        command.args(flags().map(|(setting, flag)| {
            // A switch that is given without a value is on.
            let values = if setting.is_switch() { 0..=1 } else { 1..=1 };
            Arg::new(&*setting.name)
                .num_args(values)
                .require_equals(setting.is_switch())
                .default_missing_value("true")
                .long(flag)
                .value_name(setting.placeholder())
                .help(setting.help())
                .help_heading("Settings (as in deaddrop.toml and DEADDROP_*)")
                .global(true)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

impl Settings {
    /// Whether the one of that name was given.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }

    /// Those that were given, by their names.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().cloned()
    }

    /// As settings, each with the flag it came from.
    pub(super) fn raw(&self) -> Result<Raw, Error> {
        let mut raw = Raw::default();
        for (name, value) in self.given() {
            raw.set(name, value, format!("--{}", name.replace('_', "-")))?;
        }
        Ok(raw)
    }
}
