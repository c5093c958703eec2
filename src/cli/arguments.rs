//! What every command takes: where the base directory is, how results are told, and the settings as
//! flags.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use super::Asked;
use crate::clock::Timestamp;
use crate::config::Raw;
use crate::error::Error;

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
      makes the project in this folder ready to be worked on
  deaddrop new \"Write a calculator in Python, with tests\"
      writes an outbox to paste into a chat, and waits for replies in the inbox
  deaddrop resume
      goes on with the newest open session
  deaddrop check reply.txt && deaddrop apply reply.txt
      looks at a reply first, then carries it out";

/// Lets any chat window be a coding agent: paste the outbox into a chat, save the reply into the
/// inbox, and deaddrop carries it out in the workspace.
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
    /// The base directory: where the folders and deaddrop.toml are [the nearest one upwards]
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub(super) base: Option<PathBuf>,
    /// Results as JSON, an object a line
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Say only what went wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Say more: output of commands too
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
        help = "Colours on the terminal: auto, always or never"
    )]
    pub(super) color: Color,
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The time to write into sessions instead of the clock's
    #[arg(long, value_name = "TIME", hide = true, global = true)]
    pub(super) now: Option<Timestamp>,
}

/// Settings as flags; they go over DEADDROP_* variables and deaddrop.toml.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings (as in deaddrop.toml and DEADDROP_*)")]
pub(super) struct Settings {
    /// What replies may touch [workspace]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) workspace_dir: Option<String>,
    /// Where replies are dropped [inbox]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) inbox_dir: Option<String>,
    /// Where outboxes are written [outbox]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) outbox_dir: Option<String>,
    /// Where sessions are kept [sessions]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) sessions_dir: Option<String>,
    /// How long a command may take [30]
    #[arg(long, value_name = "N", global = true)]
    pub(super) command_timeout_seconds: Option<String>,
    /// How many characters of a command's output the LLM sees [4000]
    #[arg(long, value_name = "N", global = true)]
    pub(super) max_output_length: Option<String>,
    /// How many tokens an outbox is at most [24000]
    #[arg(long, value_name = "N", global = true)]
    pub(super) max_tokens: Option<String>,
    /// How many characters a part of an outbox may have, see `show --part` [30000]
    #[arg(long, value_name = "N", global = true)]
    pub(super) part_characters: Option<String>,
    /// How commands are confined: auto, bwrap, partial or off [auto]
    #[arg(long, value_name = "MODE", global = true)]
    pub(super) sandbox: Option<String>,
    /// What operations may do: restrictive, standard, permissive, workspace or one of your own
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) policy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

impl Settings {
    /// Those that were given, by their names.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = [
            ("workspace_dir", &self.workspace_dir),
            ("inbox_dir", &self.inbox_dir),
            ("outbox_dir", &self.outbox_dir),
            ("sessions_dir", &self.sessions_dir),
            ("command_timeout_seconds", &self.command_timeout_seconds),
            ("max_output_length", &self.max_output_length),
            ("max_tokens", &self.max_tokens),
            ("part_characters", &self.part_characters),
            ("sandbox", &self.sandbox),
            ("policy", &self.policy),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.clone()?)))
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
