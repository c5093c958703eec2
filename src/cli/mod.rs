//! The command line: what a person can type, and which code handles it.

mod arguments;
mod check;
mod completion;
mod decisions;
mod demo;
mod dispatch;
mod doctor;
mod editor;
#[cfg(test)]
mod examples;
mod generate;
mod init;
mod input;
mod keyboard;
mod live;
mod locate;
mod notice;
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

use clap::{Args, ColorChoice, Subcommand};

use crate::engine::{Clock, Engine};
use crate::error::{Error, Result};
use crate::ipc::RequestResult;
use crate::program;
use crate::runner::sandbox::Confinement;
use crate::runner::{LiveOutput, Runner};
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
use locate::{Location, ProjectSource};
use progress::ProgressReporter;
use show::ClipboardFlags;

/// The exit code if the person must make a decision.
const EXIT_WAITS: u8 = 3;

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Set up a project: create deaddrop.toml and .deaddrop/
    Init(init::Init),
    /// Start a session: write the first outbox and wait for replies
    New(serving::New),
    /// Continue a session, and execute replies that have arrived
    Resume(serving::Resume),
    /// Serve every open session of the project
    Watch(ClipboardFlags),
    /// Serve every open session, with a page in the browser
    #[cfg(feature = "serve")]
    Serve(serve::ServePage),
    /// Execute one reply
    Apply(replies::ApplyReply),
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
    Status(SessionOperand),
    /// List the turns of a session
    Log(SessionOperand),
    /// Show what a turn changed
    Diff(turns::Diff),
    /// Undo recent turns
    Undo(turns::Undo),
    /// Undo the last undo
    Redo(turns::UndoFlags),
    /// Print, copy or open an outbox
    Show(show::Show),
    /// End a session, or remove it
    Close(sessions::Close),
    /// Check the project and this machine, and suggest fixes
    Doctor,
    /// Show and change settings
    #[command(subcommand)]
    Config(settings::ConfigCommand),
    /// Check commands against the policy, and show policies
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Run, validate or describe JSON messages of operations
    #[command(subcommand)]
    Ops(ops::Ops),
    /// Serve the workspace or another folder to programs over JSON-RPC
    Rpc(rpc::Rpc),
    /// Print shell completions, manual pages or a systemd unit
    #[command(subcommand)]
    Generate(Generate),
    /// Play a whole session in a temporary folder, with explanations
    Demo {
        /// Keep the folder, and print its path
        #[arg(long)]
        keep: bool,
    },
}

/// What a command requires before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Valid settings. They need no consent, because the command does not act on them.
    Settings,
    /// Settings that the person consented to.
    Consent,
    /// Consent, and a project. If the folder is not set up, the person is asked whether to set it up.
    Begin,
    /// An existing project.
    Project,
    /// An existing session or run. If the folder has none, the command must not create anything.
    Session,
}

/// Which session a command is about.
#[derive(Debug, Clone, Args)]
struct SessionFlag {
    /// Session ID, or its beginning
    #[arg(long = "session", id = "session", value_name = "ID")]
    id: Option<String>,
}

/// The same for commands whose subject is a session, so that the ID can be given without the flag.
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

/// The data that every command gets in addition to its own arguments.
struct CliContext {
    config: Config,
    clock: Clock,
    /// Shows the output of a running command.
    live_output: Arc<LiveOutput>,
    /// The person's current directory.
    current_dir: Option<PathBuf>,
    /// How the project was found.
    source: ProjectSource,
}

/// The result of opening a project for a request.
enum Opened {
    /// This process has opened the project.
    Local(Box<Engine>),
    /// Another process serves the project and has handled the request.
    HandedOver(Box<RequestResult>),
}

impl CliContext {
    fn new(
        config: Config,
        global: &Global,
        current_dir: Option<PathBuf>,
        source: ProjectSource,
    ) -> Self {
        Self { config, clock: Clock(global.now), live_output: Arc::default(), current_dir, source }
    }

    /// Opens the project, and reports its problems.
    fn open(&self, stop: Stop) -> Result<Engine> {
        let (live_output, mut reporter) =
            (Arc::clone(&self.live_output), ProgressReporter::new(self));
        Engine::open(self.config.clone(), self.clock, stop, Some(live_output), &mut reporter)
    }

    /// The complete ID of the named session or run, if the flag is given.
    ///
    /// # Errors
    /// No session or run has this ID, or the IDs of several begin with it.
    fn session_id(&self, flag: &SessionFlag) -> Result<Option<String>> {
        let Some(prefix) = flag.id.as_deref() else { return Ok(None) };
        let store = SessionStore::new(&self.config.sessions);
        let mut found = [store.ids()?, store.runs()?].concat();
        found.retain(|id| id.starts_with(prefix) && !prefix.is_empty());
        match found.as_slice() {
            [] => Err(Error::no_session(prefix, &self.config.sessions)),
            [only] => Ok(Some(only.clone())),
            several => Err(Error::usage(format!(
                "several sessions or runs begin with '{}': {}; give more of the id",
                visible_line(prefix),
                several.join(", ")
            ))),
        }
    }

    /// Probes how commands are confined here. Works without a workspace, and leaves nothing behind.
    fn confinement(&self) -> Result<Confinement, String> {
        let helper = program::own_executable().map_err(|e| e.to_string())?;
        let own = tempfile::tempdir().map_err(|e| e.to_string())?;
        let workspace = self.config.workspace.canonicalize();
        let workspace = workspace.unwrap_or_else(|_| own.path().to_owned());
        let mut runner = Runner::of(&self.config, &workspace, helper);
        // Do not wait for a command of another deaddrop.
        runner.lock = PathBuf::new();
        Ok(runner.confinement(&own.path().join("own")).clone())
    }

    /// A path relative to the person's current directory, if it is inside that.
    fn display(&self, path: &Path) -> String {
        let shown = self.current_dir.as_ref().and_then(|here| path.strip_prefix(here).ok());
        match shown {
            Some(here) if here.as_os_str().is_empty() => ".".to_owned(),
            _ => shown.unwrap_or(path).display().to_string(),
        }
    }

    /// ` (≈ 5,300 tokens)`, for a line about a session's newest outbox. Also warns if the outbox exceeds `max_tokens`,
    /// and about secrets that the outbox withholds.
    fn token_note(&self, session: &Session) -> String {
        session.withheld.iter().for_each(|withheld| output::warning(withheld));
        let Some(tokens) = session.tokens else { return String::new() };
        let most = self.config.max_tokens;
        if tokens > most {
            output::warning(&format!(
                "the next outbox is {}, more than max_tokens = {most}: the task and your words are never left out; shorten them, or set max_tokens to what your chat accepts",
                tokens::rounded(tokens)
            ));
        }
        format!(" ({})", tokens::rounded(tokens))
    }
}

/// Runs the command line. `arguments` are the arguments of the process, starting with the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    terminal::report_panics(keyboard::restore);
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(feature = "serve")]
    if arguments.get(1).is_some_and(|first| first == crate::serve::ON_STDIN) {
        arguments.remove(1);
        arguments.extend(input::passed_arguments());
    }
    // `help COMMAND` is the same as `COMMAND --help`, as in git and cargo.
    if arguments.get(1).is_some_and(|first| first == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    output::use_colors(ColorChoice::Auto);
    let cli = match Cli::read(Cli::named_in(&arguments), arguments) {
        Ok(cli) => cli,
        Err(e) => {
            output::usage(&e);
            return ExitCode::from(u8::from(e.use_stderr()) * 2);
        }
    };
    output::begin(&cli.global);
    let result = run_command(cli);
    live::clear();
    match result {
        Ok(code) => code,
        Err(error) => {
            if !error.is_interrupted() {
                if output::wants_json() {
                    output::json_error(&error);
                } else {
                    output::error(&error.to_string());
                }
            }
            error.exit_code()
        }
    }
}

fn run_command(Cli { global, command }: Cli) -> Result<ExitCode> {
    let open = |need| open(&global, need);
    match command {
        CliCommand::Init(arguments) => init::init(&arguments, &global),
        CliCommand::New(arguments) => serving::new(&open(Need::Begin)?, &arguments),
        CliCommand::Resume(arguments) => serving::resume(&open(Need::Session)?, &arguments),
        CliCommand::Watch(flags) => serving::watch(&open(Need::Begin)?, flags),
        #[cfg(feature = "serve")]
        CliCommand::Serve(arguments) => {
            let need = if arguments.sets_up_project() { Need::Begin } else { Need::Project };
            serve::serve(&open(need)?, &arguments, &global.settings)
        }
        CliCommand::Apply(arguments) => replies::apply(&open(Need::Session)?, &arguments),
        CliCommand::Next(arguments) => replies::next(&open(Need::Session)?, &arguments),
        CliCommand::Check(arguments) => check::check(&open(Need::Consent)?, &arguments),
        CliCommand::Approve(arguments) => decisions::approve(&open(Need::Project)?, &arguments),
        CliCommand::Deny(arguments) => decisions::deny(&open(Need::Project)?, &arguments),
        CliCommand::Say(arguments) => sessions::say(&open(Need::Session)?, &arguments),
        CliCommand::Status(operand) => {
            let flag = operand.flag();
            let need = if flag.id.is_some() { Need::Project } else { Need::Consent };
            sessions::status(&open(need)?, &flag)
        }
        CliCommand::Log(operand) => sessions::log(&open(Need::Session)?, &operand.flag()),
        CliCommand::Diff(arguments) => turns::diff(&open(Need::Session)?, &arguments),
        CliCommand::Undo(arguments) => turns::undo(&open(Need::Session)?, &arguments),
        CliCommand::Redo(flags) => turns::redo(&open(Need::Session)?, &flags),
        CliCommand::Show(arguments) => show::show(&open(Need::Session)?, &arguments),
        CliCommand::Close(arguments) => sessions::close(&open(Need::Session)?, &arguments),
        CliCommand::Doctor => doctor::doctor(&global),
        CliCommand::Config(arguments) => settings::settings(arguments, &global),
        CliCommand::Policy(arguments) => policy::policy(&open(Need::Settings)?, &arguments),
        CliCommand::Ops(ops::Ops::Run(arguments)) => {
            let need = if arguments.resumes() { Need::Consent } else { Need::Begin };
            ops::run(&open(need)?, &arguments)
        }
        CliCommand::Ops(ops::Ops::Validate { file }) => ops::validate(&file),
        CliCommand::Ops(ops::Ops::Schema { message }) => Ok(ops::schema(&message)),
        CliCommand::Rpc(arguments) => {
            // Only the flag counts. A policy in deaddrop.toml or the environment does not.
            let has_policy_flag = global.settings.given().iter().any(|(name, _)| *name == "policy");
            rpc::rpc(&open(Need::Consent)?, arguments, has_policy_flag)
        }
        CliCommand::Generate(Generate::Completions { shell }) => Ok(generate::completions(shell)),
        CliCommand::Generate(Generate::Man(arguments)) => generate::manual(&arguments),
        CliCommand::Generate(Generate::SystemdUnit { clipboard_flags }) => {
            generate::systemd_unit(&open(Need::Project)?, clipboard_flags)
        }
        CliCommand::Demo { keep } => demo::demo(keep),
    }
}

/// Finds the project, reads its settings, and checks the requirements of a command.
fn open(global: &Global, need: Need) -> Result<CliContext> {
    let Location { project, current_dir, source } = Location::find(global.project.clone())?;
    let (mut config, mut consent) = Config::load(&project, global.settings.raw()?)?;
    config.check_settings_file()?;
    let is_about_one = matches!(need, Need::Project | Need::Session);
    if source == ProjectSource::Missing && is_about_one && !config.sessions.exists() {
        return Err(Error::no_project(&config.project));
    }
    config.check_registry()?;
    if need == Need::Begin && locate::is_to_be_set_up(&config)? {
        init::set_up(&project)?;
        (config, consent) = Config::load(&project, global.settings.raw()?)?;
    }
    if need != Need::Settings {
        // Check this before the question: settings that cannot work need no consent.
        config.check_workspace()?;
        settings::require_consent(&config, &consent)?;
    }
    if source == ProjectSource::Ancestor && need == Need::Begin {
        output::say(format!("In the project {}:", config.project.display()));
    }
    let context = CliContext::new(config, global, current_dir, source);
    if need == Need::Session && !context.has_begun() {
        return Err(Error::no_open_session(&context.config.sessions, None));
    }
    Ok(context)
}
