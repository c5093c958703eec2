//! The command line: what a person types, and which part of the program answers it.

mod arguments;
mod check;
mod completion;
mod decisions;
mod demo;
mod dispatch;
mod doctor;
#[cfg(test)]
mod examples;
mod generate;
mod init;
mod input;
mod keyboard;
mod live;
mod locate;
mod notice;
mod opening;
mod ops;
mod output;
mod patch;
mod policy;
mod progress;
mod prompt;
mod question;
mod replies;
mod rows;
mod rpc;
#[cfg(feature = "serve")]
mod serve;
mod serving;
mod sessions;
mod settings;
mod show;
mod summary;
mod turns;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};

use crate::engine::{Clock, Engine};
use crate::error::{Error, Result};
use crate::ipc::RequestResult;
use crate::program;
use crate::runner::sandbox::Confinement;
use crate::runner::{Glimpse, Runner};
use crate::session::Session;
use crate::session::store::SessionStore;
use crate::settings::Config;
use crate::terminal;
use crate::text::visible_line;
use crate::tokens;
use crate::watch::Stop;
use arguments::{Cli, Global};
pub use completion::answer_shell;
use generate::Generate;
use locate::{By, Location};
use output::Terminal;
use progress::ProgressReporter;

/// The exit code of what waits for the person's decision.
const WAITS: u8 = 3;

#[derive(Debug, Subcommand)]
enum Command {
    /// Set up a project: create deaddrop.toml and .deaddrop/
    Init(init::Init),
    /// Start a session: write the first outbox and wait for replies
    New(serving::New),
    /// Continue a session, and execute replies that have arrived
    Resume(serving::Resume),
    /// Serve every open session of the project
    Watch(serving::WatchAll),
    /// Serve every open session, with a page in the browser
    #[cfg(feature = "serve")]
    Serve(serve::ServePage),
    /// Execute one reply
    Apply(replies::Apply),
    /// Execute the reply on the clipboard, and copy the next outbox
    Next(replies::Next),
    /// Show what a reply would do, without changing anything
    Check(check::Check),
    /// Allow an operation that waits for your decision
    Approve(decisions::Approve),
    /// Refuse an operation that waits for your decision
    Deny(decisions::Deny),
    /// Add your words to the newest outbox
    Say(sessions::Say),
    /// List sessions, or show the state of one
    Status(sessions::Status),
    /// List the turns of a session
    Log(sessions::Log),
    /// Show what a turn changed
    Diff(turns::Diff),
    /// Undo recent turns
    Undo(turns::Undo),
    /// Undo the last undo
    Redo(turns::Redo),
    /// Print, copy or open an outbox
    Show(show::Show),
    /// End a session, or remove it
    Close(sessions::Close),
    /// Check the project and this machine, and suggest fixes
    Doctor,
    /// Show and change settings
    #[command(subcommand)]
    Config(settings::Asked),
    /// Check commands against the policy, and show policies
    #[command(subcommand)]
    Policy(policy::Policies),
    /// Run, validate or describe JSON messages of operations
    #[command(subcommand)]
    Ops(ops::Ops),
    /// Serve the workspace or another folder to programs over JSON-RPC
    Rpc(rpc::Rpc),
    /// Print shell completions, manual pages or a systemd unit
    #[command(subcommand)]
    Generate(Generate),
    /// Play a whole session in a temporary folder, with explanations
    Demo(demo::Demo),
}

/// What a command needs before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Settings. They need no consent, since nothing is done by them.
    Settings,
    /// Settings that the person has agreed to.
    Consent,
    /// The same, and a project. One that is not set up yet is offered to be.
    Begin,
    /// A project that is there.
    Project,
    /// A session or a run that is there: in a folder without any, nothing is to be made.
    Session,
}

/// Which session a command is about.
#[derive(Debug, Clone, Args)]
struct SessionFlag {
    /// Session ID, or its beginning
    #[arg(long = "session", id = "session", value_name = "ID")]
    id: Option<String>,
}

/// The same of a command that is about a session as such, so that its id can stand alone.
#[derive(Debug, Clone, Args)]
struct SessionOperand {
    /// The same as --session ID
    #[arg(value_name = "ID", conflicts_with = "session")]
    id: Option<String>,
    #[command(flatten)]
    flag: SessionFlag,
}

impl SessionOperand {
    fn flag(&self) -> SessionFlag {
        SessionFlag { id: self.id.clone().or(self.flag.id.clone()) }
    }
}

/// What the commands get beside their own arguments.
struct Context {
    config: Config,
    clock: Clock,
    ui: Terminal,
    json: bool,
    /// Shows what a command writes while it runs.
    glimpse: Arc<Glimpse>,
    /// Where the person is.
    here: Option<PathBuf>,
    /// How the project was come by.
    by: By,
}

/// How a project was got at.
enum Opened {
    /// It is this process's.
    Here(Box<Engine>),
    /// Another process serves it, and has done what was wished.
    Elsewhere(Box<RequestResult>),
}

impl Context {
    fn new(config: Config, global: &Global, ui: Terminal, here: Option<PathBuf>, by: By) -> Self {
        let (clock, json) = (Clock(global.now), global.json);
        Self { config, clock, ui, json, glimpse: Arc::default(), here, by }
    }

    /// Opens the project to serve it, and tells what was found amiss.
    fn open(&self, stop: Stop) -> Result<Engine> {
        self.open_with(stop, live::is_on().then(|| Arc::clone(&self.glimpse)))
    }

    /// The same for somebody who sees what commands write while they run.
    fn open_with(&self, stop: Stop, glimpse: Option<Arc<Glimpse>>) -> Result<Engine> {
        let mut reporter = ProgressReporter::new(self);
        Engine::open(self.config.clone(), self.clock, stop, glimpse, &mut reporter)
    }

    /// The whole id that is meant, if any is named.
    ///
    /// # Errors
    /// No session and no run has it, or several begin so.
    fn session_id(&self, flag: &SessionFlag) -> Result<Option<String>> {
        let Some(begins) = flag.id.as_deref() else { return Ok(None) };
        let store = SessionStore::new(&self.config.sessions);
        let mut found = [store.ids()?, store.runs()?].concat();
        found.retain(|id| id.starts_with(begins) && !begins.is_empty());
        match found.as_slice() {
            [] => Err(Error::no_session(begins, &self.config.sessions)),
            [only] => Ok(Some(only.clone())),
            several => Err(Error::usage(format!(
                "several sessions or runs begin with '{}': {}; give more of the id",
                visible_line(begins),
                several.join(", ")
            ))),
        }
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
        session.withheld.iter().for_each(|told| self.ui.warning(told));
        let Some(tokens) = session.tokens else { return String::new() };
        let most = self.config.max_tokens;
        if tokens > most {
            self.ui.warning(&format!(
                "the next outbox is {}, more than max_tokens = {most}: the task and what you say are never left out; make them shorter, or set max_tokens to what your chat takes",
                tokens::told(tokens)
            ));
        }
        format!(" ({})", tokens::told(tokens))
    }

    /// Prints a result as one line of JSON.
    fn print_json(value: &serde_json::Value) {
        output::json(&value.to_string());
    }
}

/// Does what the arguments say. They are the process's own, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    terminal::report_panics(keyboard::restore);
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(feature = "serve")]
    if arguments.get(1).is_some_and(|first| first == crate::serve::ON_STDIN) {
        arguments.remove(1);
        arguments.extend(input::arguments());
    }
    // As with git and cargo.
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    let cli = match Cli::read(Cli::named_in(&arguments), arguments) {
        Ok(cli) => cli,
        Err(e) => {
            output::usage(&e);
            return ExitCode::from(u8::from(e.use_stderr()) * 2);
        }
    };
    let (ui, json) = (Terminal::new(&cli.global), cli.global.json);
    let answered = answer(cli, ui.clone());
    live::nothing();
    match answered {
        Ok(code) => code,
        Err(error) => {
            if !error.is_interrupted() {
                if json {
                    output::json_error(&error);
                } else {
                    ui.error(&error.to_string());
                }
            }
            error.exit_code()
        }
    }
}

fn answer(Cli { global, command }: Cli, ui: Terminal) -> Result<ExitCode> {
    let json = global.json;
    let open = |need| open(&global, ui.clone(), need);
    match command {
        Command::Init(arguments) => init::init(&arguments, &global, ui),
        Command::New(arguments) => serving::new(&open(Need::Begin)?, &arguments),
        Command::Resume(arguments) => serving::resume(&open(Need::Session)?, &arguments),
        Command::Watch(arguments) => serving::watch(&open(Need::Begin)?, &arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => {
            let need = if arguments.begins() { Need::Begin } else { Need::Project };
            serve::serve(&open(need)?, &arguments, &global.settings)
        }
        Command::Apply(arguments) => replies::apply(&open(Need::Session)?, &arguments),
        Command::Next(arguments) => replies::next(&open(Need::Session)?, &arguments),
        Command::Check(arguments) => check::check(&open(Need::Consent)?, &arguments),
        Command::Approve(arguments) => decisions::approve(&open(Need::Project)?, &arguments),
        Command::Deny(arguments) => decisions::deny(&open(Need::Project)?, &arguments),
        Command::Say(arguments) => sessions::say(&open(Need::Session)?, &arguments),
        Command::Status(arguments) => {
            let need = if arguments.is_of_one() { Need::Project } else { Need::Consent };
            sessions::status(&open(need)?, &arguments)
        }
        Command::Log(arguments) => sessions::log(&open(Need::Session)?, &arguments),
        Command::Diff(arguments) => turns::diff(&open(Need::Session)?, &arguments),
        Command::Undo(arguments) => turns::undo(&open(Need::Session)?, &arguments),
        Command::Redo(arguments) => turns::redo(&open(Need::Session)?, &arguments),
        Command::Show(arguments) => show::show(&open(Need::Session)?, &arguments),
        Command::Close(arguments) => sessions::close(&open(Need::Session)?, &arguments),
        Command::Doctor => doctor::doctor(&global, ui),
        Command::Config(arguments) => settings::settings(arguments, &global, &ui),
        Command::Policy(arguments) => policy::policy(&open(Need::Settings)?, &arguments),
        Command::Ops(ops::Ops::Run(arguments)) => {
            let need = if arguments.resumes() { Need::Consent } else { Need::Begin };
            ops::run(&open(need)?, &arguments)
        }
        Command::Ops(ops::Ops::Validate { file }) => ops::validate(&file, &ui, json),
        Command::Ops(ops::Ops::Schema { message }) => Ok(ops::schema(&message, json)),
        Command::Rpc(arguments) => {
            // Not what a file or a variable says.
            let has_policy_flag = global.settings.given().iter().any(|(name, _)| *name == "policy");
            rpc::rpc(&open(Need::Consent)?, arguments, has_policy_flag)
        }
        Command::Generate(Generate::Completions { shell }) => {
            Ok(generate::completions(shell, json))
        }
        Command::Generate(Generate::Man(arguments)) => generate::manual(&arguments, json),
        Command::Generate(Generate::SystemdUnit { clips }) => {
            generate::systemd_unit(&open(Need::Project)?, clips)
        }
        Command::Demo(arguments) => demo::demo(&arguments, &ui, json),
    }
}

/// Finds the project and reads its settings, for a command with this need.
fn open(global: &Global, ui: Terminal, need: Need) -> Result<Context> {
    let Location { project, here, by } = Location::find(global.project.clone())?;
    let (mut config, mut consent) = Config::load(&project, global.settings.raw()?)?;
    config.has_its_settings()?;
    let is_about_one = matches!(need, Need::Project | Need::Session);
    if by == By::Nothing && is_about_one && !config.sessions.exists() {
        return Err(Error::no_base(&config.project));
    }
    config.knows_others()?;
    if need == Need::Begin && locate::is_to_be_set_up(&config, &ui)? {
        init::set_up(&project, &ui)?;
        (config, consent) = Config::load(&project, global.settings.raw()?)?;
    }
    if need != Need::Settings {
        // What cannot be, nobody is asked about.
        config.holds_no_others()?;
        settings::require_consent(&config, &consent, &ui)?;
    }
    if by == By::Search && need == Need::Begin {
        ui.say(format!("In the project {}:", config.project.display()));
    }
    let context = Context::new(config, global, ui, here, by);
    if need == Need::Session && !context.has_begun() {
        return Err(Error::no_open_session(&context.config.sessions, None));
    }
    Ok(context)
}
