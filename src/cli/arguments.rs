//! The command line: what every command takes, and which settings each takes as flags.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};

use crate::clock::Timestamp;
use crate::error::Error;
use crate::settings::{Raw, SETTINGS, Setting, find_setting};

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
    disable_help_subcommand = true,
    // Wider rows are hard to read.
    max_term_width = 100
)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: super::Command,
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
    #[arg(skip)]
    pub(super) settings: Settings,
    /// The time to write into sessions instead of the clock's
    #[arg(long, value_name = "TIME", hide = true, global = true)]
    pub(super) now: Option<Timestamp>,
}

/// Settings that were given as flags, each by its name.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings(Vec<(&'static str, String)>);

/// A project's folders.
const FOLDERS: &[&str] = &["workspace_dir", "inbox_dir", "outbox_dir", "sessions_dir"];
/// What decides how commands run, and what the outbox after them says.
const TURN: &[&str] = &["command_timeout_seconds", "max_output_length", "max_tokens", "sandbox"];
/// What decides how commands of a run, which has no outbox, run.
const RUN: &[&str] = &["command_timeout_seconds", "max_output_length", "sandbox"];
/// What decides what the first outbox shows, and which form of the others is shown or copied.
const FIRST: &[&str] = &["context_tokens"];
const BRIEF: &[&str] = &["brief"];
const PARTS: &[&str] = &["part_characters"];
const POLICY: &[&str] = &["policy"];
const REVIEW: &[&str] = &["review"];
const SANDBOX: &[&str] = &["sandbox"];

/// The settings that each command reads, and so takes as flags. Other commands take none.
const FLAGS: &[(&[&str], &[&[&str]])] = &[
    (&["new"], &[FOLDERS, FIRST, TURN, BRIEF, POLICY, REVIEW]),
    (&["resume"], &[FOLDERS, TURN, BRIEF, REVIEW]),
    (&["watch"], &[FOLDERS, TURN, BRIEF, REVIEW]),
    #[cfg(feature = "serve")]
    (&["serve"], &[FOLDERS, FIRST, TURN, BRIEF, POLICY, REVIEW]),
    (&["apply"], &[FOLDERS, TURN, BRIEF, REVIEW]),
    (&["next"], &[FOLDERS, TURN, BRIEF, REVIEW]),
    (&["check"], &[FOLDERS, POLICY, SANDBOX]),
    (&["approve"], &[FOLDERS, TURN]),
    (&["deny"], &[FOLDERS, TURN]),
    (&["say"], &[FOLDERS, TURN, BRIEF]),
    (&["undo"], &[FOLDERS, TURN]),
    (&["redo"], &[FOLDERS, TURN]),
    (&["status"], &[FOLDERS, SANDBOX]),
    (&["log"], &[FOLDERS]),
    (&["diff"], &[FOLDERS]),
    (&["show"], &[FOLDERS, BRIEF, PARTS]),
    (&["close"], &[FOLDERS]),
    (&["doctor"], &[FOLDERS, SANDBOX]),
    (&["init"], &[FOLDERS, FIRST, TURN, BRIEF, PARTS, POLICY, REVIEW]),
    (&["policy", "check"], &[FOLDERS, POLICY, SANDBOX]),
    (&["policy", "show"], &[FOLDERS, POLICY]),
    (&["policy", "list"], &[FOLDERS, POLICY]),
    (&["policy", "approved"], &[FOLDERS]),
    (&["policy", "forget"], &[FOLDERS]),
    (&["ops", "run"], &[FOLDERS, RUN, POLICY]),
    (&["rpc"], &[FOLDERS, POLICY, SANDBOX]),
];

/// What `init` says of the folders, which it puts elsewhere by default.
const OF_INIT: [(&str, &str); 4] = [
    ("workspace_dir", "The folder that replies may read and change [this folder]"),
    ("inbox_dir", "The folder in which you save replies [.deaddrop/inbox]"),
    ("outbox_dir", "The folder for outboxes [.deaddrop/outbox]"),
    ("sessions_dir", "The folder for sessions and the journal [.deaddrop/sessions]"),
];

impl Cli {
    /// The whole command line, with the settings that each command takes as flags.
    pub(super) fn all() -> Command {
        FLAGS.iter().fold(Self::command(), |all, (words, groups)| {
            let is_init = *words == ["init"];
            let names = groups.iter().copied().flatten();
            with_flags(all, words, names.map(|name| flag(name, is_init)).collect())
        })
    }

    /// What these arguments ask for.
    pub(super) fn read<T: Into<OsString> + Clone>(
        mut all: Command,
        arguments: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let matches = all.try_get_matches_from_mut(arguments)?;
        let mut cli = Self::from_arg_matches(&matches).map_err(|e| e.format(&mut all))?;
        cli.global.settings = Settings::given_in(&matches);
        Ok(cli)
    }
}

/// The command line with these flags for the command of these words.
fn with_flags(command: Command, words: &[&'static str], flags: Vec<Arg>) -> Command {
    match words {
        [] => command.args(flags),
        [first, rest @ ..] => command.mut_subcommand(first, |inner| with_flags(inner, rest, flags)),
    }
}

/// The flag of a setting.
fn flag(name: &'static str, is_init: bool) -> Arg {
    let setting = find_setting(name).expect("a name in the table");
    let of_init = OF_INIT.iter().find(|(known, _)| is_init && *known == name);
    // A switch that is given without a value is on.
    let values = if setting.is_switch() { 0..=1 } else { 1..=1 };
    Arg::new(name)
        .num_args(values)
        .require_equals(setting.is_switch())
        .default_missing_value("true")
        .long(setting.flag_name())
        .value_name(setting.placeholder())
        .help(of_init.map_or_else(|| setting.help(), |(_, help)| (*help).to_owned()))
        .help_heading("Settings (as in deaddrop.toml and DEADDROP_*)")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

impl Settings {
    fn given_in(matches: &ArgMatches) -> Self {
        let mut matches = matches;
        while let Some((_, inner)) = matches.subcommand() {
            matches = inner;
        }
        let value = |name| matches.try_get_one::<String>(name).ok().flatten().cloned();
        let flags = SETTINGS.iter().filter(|setting| setting.flag);
        let given = flags.filter_map(|Setting { name, .. }| Some((name.as_str(), value(name)?)));
        Self(given.collect())
    }

    /// Whether the one of that name was given.
    pub(super) fn sets(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }

    /// Those that were given, by their names.
    pub(super) fn given(&self) -> &[(&'static str, String)] {
        &self.0
    }

    /// As variables of the environment, for another process.
    #[cfg(feature = "serve")]
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let variable = |name: &str| find_setting(name).and_then(Setting::variable);
        self.0.iter().filter_map(|(name, value)| Some((variable(name)?, value.clone()))).collect()
    }

    /// As settings, each with the flag it came from.
    pub(super) fn raw(&self) -> Result<Raw, Error> {
        let mut raw = Raw::default();
        for (name, value) in &self.0 {
            raw.set(name, value, format!("--{}", name.replace('_', "-")))?;
        }
        Ok(raw)
    }
}
