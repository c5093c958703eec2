//! `new`, `resume` and `watch`: sessions begun or taken up, and served.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::input::Input;
use super::show::Clips;
use super::{Context, Opened, ProgressReporter, SessionOperand, WAITS, live, opening, output};
use crate::atomic;
use crate::context::check_pattern;
use crate::daemon::{self, Serve};
use crate::engine::{Engine, NewSession, Turn};
use crate::error::{Error, Result};
use crate::ipc::Request;
use crate::outbox;
use crate::protocol::Dialect;
use crate::runner::sandbox::Tier;
use crate::session::store::SessionStore;
use crate::session::{FilePatterns, Session, is_id};
use crate::settings::SESSION_POLICY;
use crate::text::{count, first_of, visible_line};
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct New {
    /// The task, in your words; `-` reads standard input. Without a task, your editor opens
    #[arg(value_name = "TASK")]
    task: Vec<String>,
    /// Read the task from a file
    #[arg(long, value_name = "FILE", conflicts_with = "task")]
    task_file: Option<PathBuf>,
    /// How the model answers: in tags, or in JSON operations of Agent Spaces
    #[arg(long, value_name = "DIALECT", default_value = "tags", value_parser = ["tags", "operations"])]
    dialect: String,
    /// Show these files in the first outbox, before others (a pattern as in .gitignore, or the
    /// exact path of an ignored file; repeatable)
    #[arg(long, value_name = "GLOB", conflicts_with = "no_contents")]
    include: Vec<String>,
    /// Do not show these files in the first outbox (repeatable)
    #[arg(long, value_name = "GLOB", conflicts_with = "no_contents")]
    exclude: Vec<String>,
    /// List files in the first outbox, but show none
    #[arg(long)]
    no_contents: bool,
    #[command(flatten)]
    clips: Clips,
    /// Stop after writing the outbox; `deaddrop resume` continues
    #[arg(long, conflicts_with = "clipboard")]
    no_watch: bool,
    /// Show what the first outbox would be, and begin nothing
    #[arg(long, conflicts_with_all = ["clipboard", "copy"])]
    preview: bool,
    /// The session's id instead of a random one
    #[arg(long, value_name = "ID", hide = true)]
    id: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    session: SessionOperand,
    /// Reopen a completed session, with these words for the model
    #[arg(long, value_name = "TEXT")]
    reopen: Option<String>,
    /// Continue in the workspace that is set now, although the session began in another
    #[arg(long)]
    here: bool,
    #[command(flatten)]
    clips: Clips,
    /// Execute replies that have arrived, and stop
    #[arg(long, conflicts_with = "clipboard")]
    no_watch: bool,
}

#[derive(Debug, Args)]
pub(super) struct WatchAll {
    #[command(flatten)]
    clips: Clips,
}

pub(super) fn new(context: &Context, arguments: &New) -> Result<ExitCode> {
    if let Some(id) = &arguments.id
        && (!is_id(id) || context.config.sessions.join(format!("{id}.json")).exists())
    {
        return Err(Error::usage(format!(
            "--id {id} is no free session id of 8 hexadecimal digits"
        )));
    }
    let offer = offer(context, arguments)?;
    // Last, since it may be written in an editor.
    let task = task(context, arguments)?;
    let stop = Stop::on_signals()?;
    let new = NewSession {
        task,
        id: arguments.id.clone(),
        dialect: if arguments.dialect == "tags" { Dialect::Tags } else { Dialect::Operations },
        offer,
        policy: context.config.policy.as_deref().unwrap_or(SESSION_POLICY).to_owned(),
        workspace: context.config.guest.is_none().then(|| context.config.workspace_name()),
    };
    if arguments.preview {
        return preview(context, new, &stop);
    }
    let request = Request::New(new.clone());
    let Some(mut engine) = here(context, &request, "begins", arguments.clips, &stop)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let unconfined = may_run_unconfined(context, &engine);
    let turn = engine.begin_session(&new, unconfined)?;
    announce(context, &turn, "begins")?;
    if arguments.no_watch {
        engine.shut_down()?;
        arguments.clips.copy_once(context, &turn.session)?;
        return Ok(ExitCode::SUCCESS);
    }
    serve(context, &mut engine, &Serve::One(turn.session.id), arguments.clips, &stop)
}

/// Opens the project to do this; None where the process that serves it has done it, which is told.
fn here(
    context: &Context,
    request: &Request,
    verb: &str,
    clips: Clips,
    stop: &Stop,
) -> Result<Option<Engine>> {
    let turn = match context.open_or_hand_over(request, stop)? {
        Opened::Here(engine) => return Ok(Some(*engine)),
        Opened::Elsewhere(done) => done.turn,
    };
    announce(context, &turn, verb)?;
    context.ui.say("The running deaddrop will execute the replies.");
    clips.copy_once(context, &turn.session)?;
    Ok(None)
}

/// Shows the first outbox that a session would have.
fn preview(context: &Context, new: NewSession, stop: &Stop) -> Result<ExitCode> {
    let turn = context.request(Request::Preview(new), stop, 0)?;
    let path = turn.outbox.unwrap_or_default();
    let text = atomic::read_own_text(&path).map_err(|e| Error::io("read", &path, e))?;
    fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
    if context.json {
        let [shown, outlined] = outbox::files_of_first(&text);
        Context::print_json(&json!({
            "tokens": turn.session.tokens, "shown": shown, "outlined": outlined, "text": text,
        }));
    } else {
        output::data(text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn resume(context: &Context, arguments: &Resume) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let named = context.session_id(&arguments.session.flag())?;
    let mut engine = match &arguments.reopen {
        None => context.open(stop.clone())?,
        Some(text) => {
            let session = named.clone().ok_or_else(|| Error::usage(
                "--reopen needs the session's id, as in `deaddrop resume a1b2c3d4 --reopen \"Now add division\"`; `deaddrop status` lists the sessions",
            ))?;
            let request = Request::Reopen { session, text: text.clone() };
            match here(context, &request, "goes on", arguments.clips, &stop)? {
                Some(engine) => engine,
                None => return Ok(ExitCode::SUCCESS),
            }
        }
    };
    let mut session = match named {
        Some(id) => engine.store.load(&id)?,
        None => match newest_open(context, &engine) {
            // What was left to do is done, and it was the last there was.
            Err(e) if e.is_without_session() && !engine.recovery_messages.is_empty() => {
                ProgressReporter::that_serves_once(context).repeat(&engine);
                context.ui.say("Nothing more is open.");
                return Ok(ExitCode::SUCCESS);
            }
            newest => newest?,
        },
    };
    match engine.check_workspace(&session) {
        Err(_) if arguments.here => {
            session.workspace = engine.workspace_name();
            session = engine.say(session, MOVED)?.session;
        }
        checked => checked?,
    }
    match &arguments.reopen {
        Some(text) => session = engine.reopen(&session.id, text)?.session,
        None if session.is_complete => {
            return Err(Error::complete(&session.id));
        }
        None if session.pending.is_some() => {}
        None => {
            if engine.restore_outbox(&session)? {
                context.ui.say("Its outbox was missing, and has been written again.");
            }
        }
    }
    // The outbox of one that waits was answered: it is to be decided, not pasted.
    let outbox = session.pending.is_none().then(|| engine.outbox_path(&session));
    let id = session.id.clone();
    announce(context, &Turn { session, outbox }, "goes on")?;
    if arguments.no_watch {
        let mut reporter = ProgressReporter::that_serves_once(context);
        reporter.repeat(&engine);
        daemon::serve_once(&mut engine, &Serve::One(id.clone()), &stop, &mut reporter)?;
        drop(reporter);
        let session = engine.store.load(&id)?;
        // Others may decide while the person here thinks about it.
        drop(engine);
        return match session.question() {
            _ if stop.is_asked() => Err(Error::interrupted()),
            None => arguments.clips.copy_once(context, &session).map(|()| ExitCode::SUCCESS),
            Some(_) => match context.ask(&session, &stop)? {
                Some(turn) => context.conclude(turn, true, &stop),
                None => Ok(ExitCode::from(WAITS)),
            },
        };
    }
    serve(context, &mut engine, &Serve::One(id), arguments.clips, &stop)
}

pub(super) fn watch(context: &Context, arguments: &WatchAll) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut engine = context.open(stop.clone())?;
    for session in engine.store.open_sessions()? {
        if let Err(e) = engine.check_workspace(&session) {
            context.ui.warning(&e.to_string());
            continue;
        }
        let waits = session.pending.is_some();
        if !waits {
            engine.restore_outbox(&session)?;
        }
        context.ui.say(format!("Session {}: {}", session.id, first_line(&session.task)));
        let outbox = (!waits).then(|| engine.outbox_path(&session));
        name_outbox(context, &Turn { session, outbox });
    }
    serve(context, &mut engine, &Serve::All, arguments.clips, &stop)
}

fn serve(
    context: &Context,
    engine: &mut Engine,
    whom: &Serve,
    clips: Clips,
    stop: &Stop,
) -> Result<ExitCode> {
    if let Some(guest) = engine.guest_label() {
        context.ui.say(format!("Everything is executed in the guest '{guest}'."));
    }
    let mut reporter = ProgressReporter::that_serves(context);
    live::heed(stop);
    if !live::is_on() {
        let inbox = context.display(engine.inbox.folder());
        context.ui.say(format!(
            "Waiting for replies in {inbox}/ (Ctrl-C stops, `deaddrop resume` continues)"
        ));
    }
    reporter.repeat(engine);
    if daemon::serve(engine, whom, clips.into(), stop, &mut reporter)? {
        Ok(ExitCode::SUCCESS)
    } else {
        // The line that is drawn in place has taken the `^C` with it.
        let line = if live::is_on() { "" } else { "\n" };
        context.ui.say(format!("{line}Stopped. `deaddrop resume` continues."));
        Err(Error::interrupted())
    }
}

/// What the model is told of a session that goes on in another workspace.
const MOVED: &str = "The session goes on in another folder than before: look at the files that there are now before you change any.";

/// So many names of files are said.
const NAMES: usize = 6;

/// Says which files the first outbox shows and outlines, and how to add more.
fn say_context(context: &Context, outbox: &Path) {
    let text = fs::read_to_string(outbox).unwrap_or_default();
    let [shown, outlined] = outbox::files_of_first(&text);
    let named = [("shows", &shown), ("outlines", &outlined)];
    for (verb, files) in named.into_iter().filter(|(_, files)| !files.is_empty()) {
        let named = first_of(files, NAMES, files.len());
        context.ui.say(format!("It {verb} {}: {named}", count(files.len(), "file")));
    }
    if !outlined.is_empty() {
        context.ui.say("Missing something? `deaddrop new --include PATTERN` shows more files, and context_tokens sets the room.");
    }
}

/// Prints the path of the outbox; as JSON, as an event, that the session is served from now on, as it is.
fn name_outbox(context: &Context, turn: &Turn) {
    if context.json {
        let mut value = output::turn_json(context, turn);
        value["event"] = "session".into();
        Context::print_json(&value);
    } else if let Some(path) = &turn.outbox {
        output::result(context.display(path));
    }
}

/// Says what to do with the outbox of a session.
fn announce(context: &Context, turn: &Turn, verb: &str) -> Result<()> {
    let id = &turn.session.id;
    let task = first_line(&turn.session.task);
    context.ui.say(context.ui.bold(&format!("Session {id} {verb}: {task}")));
    if let Some(path) = &turn.outbox {
        let (sessions, damaged) = SessionStore::new(&context.config.sessions).list()?;
        let open = sessions.iter().filter(|session| !session.is_complete).count() + damaged.len();
        let name = match open {
            0 | 1 => "a .txt file".to_owned(),
            _ => format!("{id}_reply.txt (other sessions are open, so its name says which)"),
        };
        if turn.session.sequence == 1 {
            say_context(context, path);
        }
        context.ui.say(format!(
            "Paste this file into a chat window{}, and save the reply as {name} in {}/:",
            context.weighed(&turn.session),
            context.display(&context.config.inbox)
        ));
    }
    name_outbox(context, turn);
    Ok(())
}

/// Where no sandbox is to be had, asks whether commands may run without one. Nobody is asked who
/// cannot answer, and no answer is a no.
fn may_run_unconfined(context: &Context, engine: &Engine) -> bool {
    // What a guest's commands may do is for its owner to say.
    if engine.guest_label().is_some() {
        return false;
    }
    let confinement = engine.confinement();
    if confinement.tier != Tier::None {
        return false;
    }
    let ui = &context.ui;
    ui.warning("this machine has no sandbox, so commands in replies are refused");
    for reason in confinement.why() {
        ui.say(format!("  {}", visible_line(&reason)));
    }
    let yes = ui.agreement(
        "Run the commands of this session with your rights? They could read and change your files and use the network [y/N] ",
    ) == Some(true);
    ui.say(if yes {
        "Commands of this session run with your rights. Check each reply with `deaddrop check` before you save it."
    } else {
        "Commands stay refused; replies can still change files. `deaddrop doctor` suggests fixes; --sandbox off allows commands."
    });
    yes
}

fn newest_open(context: &Context, engine: &Engine) -> Result<Session> {
    if let Some(newest) = engine.store.open_sessions()?.into_iter().next() {
        return Ok(newest);
    }
    let (complete, _) = engine.store.list()?;
    let complete = complete.into_iter().next().map(|session| session.id);
    Err(Error::no_open_session(&context.config.sessions, complete))
}

fn task(context: &Context, arguments: &New) -> Result<String> {
    let text = match (&arguments.task_file, arguments.task.as_slice()) {
        (Some(path), _) => {
            fs::read_to_string(path).map_err(|e| Error::io("read the task from", path, e))?
        }
        (None, [only]) if only == "-" => {
            let Input { name, text } = Input::read(Path::new(only), "read the task from")?;
            text.map_err(|why| Error::usage(format!("the task: {name}: {why}")))?
        }
        (None, []) => opening::written(context, "the task")?,
        (None, words) => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Error::usage(
            "the task is empty; describe it, as in `deaddrop new \"Write a calculator\"`",
        ));
    }
    Ok(text)
}

/// What of the workspace's contents the first outbox is to show.
fn offer(context: &Context, arguments: &New) -> Result<Option<FilePatterns>> {
    for (flag, patterns) in [("include", &arguments.include), ("exclude", &arguments.exclude)] {
        for pattern in patterns {
            check_pattern(pattern).map_err(|why| {
                Error::usage(format!("--{flag} '{pattern}' is no pattern: {why}"))
            })?;
        }
    }
    let wants = !arguments.include.is_empty() || context.config.first_contents;
    let (include, exclude) = (arguments.include.clone(), arguments.exclude.clone());
    Ok((wants && !arguments.no_contents).then_some(FilePatterns { include, exclude }))
}

/// The first line of a task, for a terminal.
pub(super) fn first_line(task: &str) -> String {
    let task = task.trim();
    let line = visible_line(task.lines().next().unwrap_or_default()).into_owned();
    let more = task.lines().count() > 1;
    match line.char_indices().nth(70) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None if more => format!("{line} …"),
        None => line,
    }
}
