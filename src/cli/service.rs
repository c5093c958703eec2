//! `daemon`: the base directory served by systemd, as a service of the person's own.

mod installing;
mod logs;
mod unit;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use etcetera::BaseStrategy;
use sd_notify::NotifyState;
use serde_json::json;

use super::clipping::Clips;
use super::talk::Talk;
use super::whereabouts::By;
use super::{Context, talk};
use crate::error::{Error, Result};
use crate::program::{self, Programs};
use crate::text::visible_line;

#[derive(Debug, Args)]
#[command(after_help = "\
The service is your own (systemctl --user), one for each base directory. It does what `deaddrop watch`
does, with the settings of deaddrop.toml and your own file.

Examples:
  deaddrop daemon install --start
  deaddrop daemon install --clipboard --start
  deaddrop -C ~/projects/calculator daemon logs --follow")]
pub(super) struct Daemon {
    #[command(subcommand)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
enum Asked {
    /// Write the service's unit, and have it started whenever you log in
    #[command(after_help = "\
What is written is printed. Done again, it writes the unit anew: as this program and PATH are now, and
with the flags given now. One that runs goes on as it was until it is stopped and started. Where no
systemd of your own answers, nothing is left of it.

With --copy or --clipboard the service starts with your desktop (graphical-session.target) instead of
at login, since the clipboard is there: your desktop has to tell systemd of DISPLAY or
WAYLAND_DISPLAY, as most do by themselves.

Examples:
  deaddrop daemon install
  deaddrop daemon install --start
  deaddrop daemon install --clipboard --start")]
    Install {
        /// Start it now, too
        #[arg(long)]
        start: bool,
        #[command(flatten)]
        clips: Clips,
    },
    /// Stop the service, and remove its unit
    #[command(after_help = "\
Where no systemd of your own answers, the unit is removed all the same, and that is said.

Examples:\n  deaddrop daemon uninstall")]
    Uninstall,
    /// Start the service
    #[command(after_help = "Examples:\n  deaddrop daemon start")]
    Start,
    /// Stop the service; what it is at is finished or taken up again at the next start
    #[command(after_help = "Examples:\n  deaddrop daemon stop")]
    Stop,
    /// Say whether the service runs: exit code 0 if it does, else 1
    #[command(after_help = "\
Examples:
  deaddrop daemon status
  deaddrop daemon status --json | jq -r .state")]
    Status,
    /// Print what the service has said
    #[command(after_help = "\
It stands in the journal of your own systemd. Where there is none, or nothing in it, that is said with
the reason, and the exit code is 1.

Examples:
  deaddrop daemon logs
  deaddrop daemon logs --lines 500
  deaddrop daemon logs --follow")]
    Logs {
        /// How many of the newest lines
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: u32,
        /// Go on with what it says from now on
        #[arg(short, long)]
        follow: bool,
    },
}

impl Daemon {
    /// Whether a deaddrop will act on the settings for it.
    pub(super) fn has_it_served(&self) -> bool {
        matches!(self.asked, Asked::Install { .. } | Asked::Start)
    }
}

/// What to do where nobody answers for the person's services.
const NO_MANAGER: &str = "no systemd of your own answers: log in at the desktop or by SSH (not by su or sudo), or have one always run with `sudo loginctl enable-linger $USER`; until then `deaddrop watch` serves the base directory at a terminal";
/// How long systemd may take: a service may take a minute and a half to start.
const PATIENCE: Duration = Duration::from_mins(3);
const NO_SYSTEMD: &str = "is not on this machine, so it has no services of that kind; `deaddrop watch` serves the base directory at a terminal";

/// Does what is asked; `given` says whether settings were given as flags.
pub(super) fn daemon(context: &Context, arguments: &Daemon, given: bool) -> Result<ExitCode> {
    if context.by == By::Nothing {
        return Err(Error::no_base(&context.config.base));
    }
    if given {
        return Err(Error::usage(
            "flags have no say in what the service does; `deaddrop config set` writes settings that it takes",
        ));
    }
    let service = Service::of(context)?;
    match arguments.asked {
        Asked::Install { start, clips } => service.install(start, &clips.flags()),
        Asked::Uninstall => service.uninstall(),
        Asked::Start => service.change("start", "is started"),
        Asked::Stop => service.change("stop", "is stopped"),
        Asked::Status => service.status(),
        Asked::Logs { lines, follow } => service.logs(lines, follow),
    }
}

/// Tells systemd, where it started this process, that replies are taken from now on.
pub(super) fn is_ready(talk: &Talk) {
    notify(talk, &NotifyState::Ready);
}

/// Tells it that they are no more.
pub(super) fn is_stopping(talk: &Talk) {
    notify(talk, &NotifyState::Stopping);
}

fn notify(talk: &Talk, state: &NotifyState<'_>) {
    if let Err(e) = sd_notify::notify(std::slice::from_ref(state)) {
        talk.warning(&format!(
            "systemd cannot be told ({e}), at the socket that NOTIFY_SOCKET names"
        ));
    }
}

/// The service of a base directory.
struct Service<'a> {
    context: &'a Context,
    name: String,
    /// Where its unit is, or would be.
    path: PathBuf,
}

impl<'a> Service<'a> {
    fn of(context: &'a Context) -> Result<Self> {
        let name = unit::name(&context.config.base);
        let home = etcetera::choose_base_strategy().map_err(|_| {
            Error::usage(
                "HOME does not say where units of your own are; set HOME or XDG_CONFIG_HOME",
            )
        })?;
        let path = home.config_dir().join("systemd/user").join(&name);
        Ok(Self { context, name, path })
    }

    fn change(&self, verb: &str, done: &str) -> Result<ExitCode> {
        self.needs_unit()?;
        self.systemctl(&[verb, &self.name]).map_err(|e| {
            let more = "; `deaddrop daemon logs` shows what it said";
            if e.is_of_the_service { Error::failed(format!("{e}{more}")) } else { e.into() }
        })?;
        self.context.talk.say(format!("{} {done}.", self.name));
        Ok(ExitCode::SUCCESS)
    }

    fn status(&self) -> Result<ExitCode> {
        let installed = self.path.exists();
        let mut state = "inactive".to_owned();
        let (mut sub, mut process, mut enabled) = (String::new(), None, false);
        if installed {
            let asked = ["ActiveState", "SubState", "MainPID", "UnitFileState"]
                .map(|p| format!("--property={p}"));
            let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
            let told = self.systemctl(&[&["show", &self.name], &*asked].concat())?;
            for (name, value) in told.lines().filter_map(|line| line.split_once('=')) {
                match name {
                    "ActiveState" => value.clone_into(&mut state),
                    "SubState" => value.clone_into(&mut sub),
                    "MainPID" => process = value.parse::<u32>().ok().filter(|pid| *pid > 0),
                    "UnitFileState" => enabled = value == "enabled",
                    _ => {}
                }
            }
        }
        let runs = state == "active";
        if self.context.json {
            Context::print_json(&json!({
                "unit": self.name,
                "installed": installed,
                "enabled": enabled,
                "state": state,
                "process": process,
            }));
        } else if !installed {
            let does = self.context.talk.in_base("`deaddrop daemon install` does that");
            talk::result(format!("{}: not installed; {does}", self.name));
        } else {
            let process = process.map_or_else(String::new, |pid| format!(", process {pid}"));
            let begins = if enabled { self.begins() } else { "does not start by itself" };
            let next = match &*state {
                "active" => "",
                "failed" => "; `deaddrop daemon logs` tells why",
                _ => "; `deaddrop daemon start` starts it",
            };
            let next = self.context.talk.in_base(next);
            let sub = visible_line(&sub).into_owned();
            let state = visible_line(&state).into_owned();
            talk::result(format!("{}: {state} ({sub}){process}, {begins}{next}", self.name));
        }
        Ok(if runs { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn needs_unit(&self) -> Result<()> {
        if self.path.exists() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "{} is not there; `deaddrop daemon install` writes it",
            self.path.display()
        )))
    }

    /// Has the person's systemd do something; gives what it says.
    fn systemctl(&self, arguments: &[&str]) -> Result<String, Refused> {
        let output =
            Programs::of(&self.context.config).command("systemctl").and_then(|mut asking| {
                asking.args(["--user", "--no-pager"]).args(arguments);
                program::output(asking, PATIENCE)
            });
        let output = output.map_err(|e| missing("systemctl", &e))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = visible_line(said.trim()).into_owned();
        // Its words for a bus that is not there, and for a machine that another system has started.
        let is_away = said.contains("connect to") || said.contains("not been booted with systemd");
        let told =
            if is_away { format!("{NO_MANAGER} ({said})") } else { format!("systemctl: {said}") };
        Err(Refused { told, is_of_the_service: !is_away })
    }
}

/// Why systemd did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{told}")]
struct Refused {
    told: String,
    /// Whether it was about the service, and not about systemd itself.
    is_of_the_service: bool,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::failed(refused.told)
    }
}

fn missing(program: &str, e: &io::Error) -> Refused {
    let told = if e.kind() == io::ErrorKind::NotFound {
        format!("{program} {NO_SYSTEMD}")
    } else {
        format!("{program} cannot be run: {e}")
    };
    Refused { told, is_of_the_service: false }
}
