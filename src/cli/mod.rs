//! The command line: what a person types, and which part of the program answers it.

mod arguments;
mod awaited;
mod changes;
mod check;
mod checkpoints;
mod clipping;
mod columns;
mod completing;
mod consent;
mod decisions;
mod demo;
mod diff;
mod doctor;
mod doing;
mod events;
#[cfg(test)]
mod examples;
mod flow;
mod held;
mod help;
mod hints;
mod init;
mod input;
mod keyboard;
mod live;
mod manual;
mod messages;
mod nature;
mod notice;
mod opening;
mod pasting;
mod patch;
mod policy;
mod prompt;
mod question;
mod replies;
mod rows;
mod rpc;
mod run;
mod service;
mod serving;
mod sessions;
mod settings;
mod show;
mod stat;
mod summary;
mod talk;
mod teller;
mod undo;
mod uninitiated;
mod whereabouts;
mod wide;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{FromArgMatches, Subcommand};

use crate::base::{Base, Clock};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::program;
use crate::runner::Runner;
use crate::runner::sandbox::Confinement;
use crate::session::Session;
use crate::terminal;
use crate::tokens;
use crate::watch::Stop;
use arguments::{Cli, Global};
use talk::Talk;
use teller::Teller;
use whereabouts::{By, Whereabouts};

/// The exit code of what waits for the person's decision.
const WAITS: u8 = 3;

/// What is asked for.
#[derive(Debug, Subcommand)]
enum Asked {
    #[command(flatten)]
    InBase(Command),
    #[command(flatten)]
    Anywhere(messages::Command),
    #[command(flatten)]
    Manual(manual::Command),
    #[command(flatten)]
    Beforehand(Beforehand),
}

/// What is done before settings are read, since it makes them.
#[derive(Debug, Subcommand)]
enum Beforehand {
    /// Make a project ready to be worked on: deaddrop.toml, and .deaddrop/ for all else
    #[command(display_order = 0)]
    Init(init::Init),
    /// Show and change settings
    Config(settings::Settings),
    /// Watch a whole session in a temporary folder, each step explained
    Demo(demo::Demo),
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a session: write the first outbox and wait for replies
    New(serving::New),
    /// Go on with a session, and carry out replies that came in the meantime
    Resume(serving::Resume),
    /// Serve every open session of the base directory
    Watch(serving::WatchAll),
    /// Carry out one reply now
    Apply(replies::Apply),
    /// Put an outbox on the clipboard
    Copy(clipping::Copy),
    /// Carry out the reply that is on the clipboard
    Paste(clipping::Paste),
    /// Carry out the reply that is on the clipboard, and put the next outbox there
    Next(clipping::Next),
    /// Say what a reply would do, and change nothing
    Check(check::Check),
    /// Let an operation be carried out that waits for your decision
    Approve(decisions::Approve),
    /// Refuse an operation that waits for your decision
    Deny(decisions::Deny),
    /// Carry out one message of operations without a session, and print its events
    Run(run::RunOnce),
    /// Add your words to the newest outbox
    Say(sessions::Say),
    /// List the sessions
    Sessions(sessions::List),
    /// Tell the state of a session
    Status(sessions::Status),
    /// List the turns of a session, a line each
    Log(sessions::Log),
    /// Show what a turn changed
    Diff(diff::Diff),
    /// Take back what the last turns changed
    Undo(undo::Undo),
    /// Take back the last undo
    Redo(undo::Redo),
    /// List the checkpoints of turns, or remove old ones
    Checkpoints(checkpoints::Checkpoints),
    /// Say what is well with the base directory and this machine, and what to do about the rest
    Doctor(doctor::Doctor),
    /// Say what the policy says of a command, and which policies there are
    Policy(policy::Policies),
    /// Print an outbox
    Show(show::Show),
    /// Open the newest outbox in your editor
    Open(opening::Open),
    /// Have systemd serve the base directory for as long as you are logged in
    Daemon(service::Daemon),
    /// Serve the workspace, or a folder, to programs over JSON-RPC
    Rpc(rpc::Rpc),
}

/// What the commands get beside their own arguments.
struct Context {
    config: Config,
    clock: Clock,
    talk: Talk,
    json: bool,
    /// Where the person is.
    here: Option<PathBuf>,
    /// How the base directory was come by.
    by: By,
}

/// How a base directory was got at.
enum Opened<T> {
    /// It is this process's.
    Here(Box<Base>),
    /// Another process serves it, and has done what was wished.
    Elsewhere(Box<T>),
}

impl Context {
    /// Opens the base directory to serve it, and tells what was found amiss.
    fn open(&self, stop: Stop) -> Result<Base> {
        let mut teller = Teller::new(self);
        Base::open(self.config.clone(), self.clock, stop, &mut teller)
    }

    /// What confines commands here, found out anew; needs nothing to be there, and leaves nothing.
    fn confinement(&self) -> Result<Confinement, String> {
        let helper = program::own().map_err(|e| e.to_string())?;
        let own = tempfile::tempdir().map_err(|e| e.to_string())?;
        let workspace = self.config.workspace.canonicalize();
        let workspace = workspace.unwrap_or_else(|_| own.path().to_owned());
        let mut runner = Runner::of(&self.config, &workspace, helper);
        // No command is waited for that another deaddrop runs.
        runner.lock = PathBuf::new();
        Ok(runner.confinement(&own.path().join("own")).clone())
    }

    /// A path as the person would write it where they are.
    fn display(&self, path: &Path) -> String {
        let shown = self.here.as_ref().and_then(|here| path.strip_prefix(here).ok());
        match shown {
            Some(here) if here.as_os_str().is_empty() => ".".to_owned(),
            _ => shown.unwrap_or(path).display().to_string(),
        }
    }

    /// ` (≈ 5,300 tokens)`, for a line that tells of a session's newest outbox. One that is more than it
    /// may be is warned of, and so is what it does not show since it is secret.
    fn weighed(&self, session: &Session) -> String {
        session.withheld.iter().for_each(|told| self.talk.warning(told));
        let Some(tokens) = session.tokens else { return String::new() };
        let most = self.config.max_tokens;
        if tokens > most {
            self.talk.warning(&format!(
                "the next outbox is {}, more than max_tokens = {most}: the task and what you say are never left out; make them shorter, or set max_tokens to what your chat takes",
                tokens::told(tokens)
            ));
        }
        format!(" ({})", tokens::told(tokens))
    }

    /// Prints a result as one line of JSON.
    fn print_json(value: &serde_json::Value) {
        talk::json(&value.to_string());
    }
}

/// Does what the arguments say. They are the process's own, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    terminal::report_panics(keyboard::restore);
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // As with git and cargo.
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    let is_brief = arguments.len() < 2 || arguments.iter().any(|argument| argument == "-h");
    let mut command = help::at_terminal(is_brief);
    let parsed = command
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command)));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(e) => {
            talk::usage(&e);
            return ExitCode::from(u8::from(e.use_stderr()) * 2);
        }
    };
    let (talk, json) = (Talk::new(&cli.global), cli.global.json);
    let answered = answer(cli, talk.clone());
    live::nothing();
    match answered {
        Ok(code) => code,
        Err(error) => {
            if !error.is_interrupted() {
                if json {
                    talk::json_error(&error);
                } else {
                    talk.error(&error.to_string());
                }
            }
            error.exit_code()
        }
    }
}

fn answer(cli: Cli, talk: Talk) -> Result<ExitCode> {
    let command = match cli.command {
        Asked::InBase(command) => command,
        // Before the settings are read: they and the base directory may be missing or wrong.
        Asked::Anywhere(command) => return messages::answer(&command, &talk, cli.global.json),
        Asked::Manual(command) => return manual::answer(&command, cli.global.json),
        Asked::Beforehand(Beforehand::Init(arguments)) => {
            return init::init(&arguments, &cli.global, talk);
        }
        Asked::Beforehand(Beforehand::Config(arguments)) => {
            return settings::settings(arguments, cli.global, &talk);
        }
        Asked::Beforehand(Beforehand::Demo(arguments)) => {
            return demo::demo(&arguments, &talk, cli.global.json);
        }
    };
    let Global { base, json, settings, now, .. } = cli.global;
    if settings.sets("policy") && command.keeps_policy() {
        return Err(Error::usage(
            "--policy has no say here: a session keeps the policy that `deaddrop new` gave it, and a run that which it began with",
        ));
    }
    let given = settings.is_given();
    // Not what a file or a variable says.
    let flags = rpc::Flags {
        policy: settings.sets("policy"),
        timeout: settings.sets("command_timeout_seconds"),
    };
    let (mut amiss, is_doctor) = (doctor::Amiss::default(), matches!(command, Command::Doctor(_)));
    let Whereabouts { base, here, by } = match Whereabouts::find(base) {
        Err(e) if is_doctor => amiss.base(e)?,
        found => found?,
    };
    let (config, consent) = match Config::load(&base, settings.raw()?) {
        Err(e) if is_doctor => amiss.settings(e, &base, settings.raw()?)?,
        looked => looked?,
    };
    match config.has_its_settings() {
        Err(e) if is_doctor => amiss.lost(&e),
        has => has?,
    }
    if by == By::Nothing && command.needs_sessions() && !config.sessions.exists() {
        return Err(Error::no_base(&config.base));
    }
    if !is_doctor {
        config.knows_others()?;
    }
    if !command.only_looks() {
        // What cannot be, nobody is asked about.
        config.holds_no_others()?;
        consent::require(&consent, &talk)?;
    }
    if by == By::Search && command.makes_base() {
        talk.say(format!("In the base directory {}:", config.base.display()));
    }
    let context = Context { config, clock: Clock(now), talk, json, here, by };
    if command.goes_on() && !context.has_begun() {
        return Err(Error::no_open_session(&context.config.sessions, None));
    }
    match command {
        Command::New(arguments) => serving::new(&context, &arguments),
        Command::Resume(arguments) => serving::resume(&context, &arguments),
        Command::Watch(arguments) => serving::watch(&context, &arguments),
        Command::Apply(arguments) => replies::apply(&context, &arguments),
        Command::Copy(arguments) => clipping::copy(&context, &arguments),
        Command::Paste(arguments) => clipping::paste(&context, &arguments),
        Command::Next(arguments) => clipping::next(&context, &arguments),
        Command::Check(arguments) => check::check(&context, &arguments),
        Command::Approve(arguments) => decisions::approve(&context, &arguments),
        Command::Deny(arguments) => decisions::deny(&context, &arguments),
        Command::Run(arguments) => run::run(&context, &arguments),
        Command::Say(arguments) => sessions::say(&context, &arguments),
        Command::Sessions(_) => sessions::list(&context),
        Command::Status(arguments) => sessions::status(&context, &arguments),
        Command::Log(arguments) => sessions::log(&context, &arguments),
        Command::Diff(arguments) => diff::diff(&context, &arguments),
        Command::Undo(arguments) => undo::undo(&context, &arguments),
        Command::Redo(arguments) => undo::redo(&context, &arguments),
        Command::Checkpoints(arguments) => checkpoints::checkpoints(&context, &arguments),
        Command::Doctor(_) => Ok(doctor::doctor(&context, &consent, &amiss)),
        Command::Policy(arguments) => policy::policy(&context, &arguments),
        Command::Show(arguments) => show::show(&context, &arguments),
        Command::Open(arguments) => opening::open(&context, &arguments),
        Command::Daemon(arguments) => service::daemon(&context, &arguments, given),
        Command::Rpc(arguments) => rpc::rpc(&context, arguments, flags),
    }
}
