//! `new`, `resume` and `watch`: begin or continue sessions, and serve them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tempfile::NamedTempFile;

use super::input::TextInput;
use super::show::ClipboardFlags;
use super::{
    CliContext, EXIT_WAITS, Opened, ProgressReporter, SessionOperand, editor, live, output, rows,
};
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
    clipboard_flags: ClipboardFlags,
    /// Stop after writing the outbox; `deaddrop resume` continues
    #[arg(long, conflicts_with = "clipboard")]
    no_watch: bool,
    /// Show the first outbox without beginning a session
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
    clipboard_flags: ClipboardFlags,
    /// Execute replies that have arrived, and stop
    #[arg(long, conflicts_with = "clipboard")]
    no_watch: bool,
}

pub(super) fn new(context: &CliContext, arguments: &New) -> Result<ExitCode> {
    if let Some(id) = &arguments.id
        && (!is_id(id) || context.config.sessions.join(format!("{id}.json")).exists())
    {
        return Err(Error::usage(format!(
            "--id {id} must be 8 hexadecimal digits that no session has yet"
        )));
    }
    let offer = offer(context, arguments)?;
    // This comes last, because the person may write the task in an editor.
    let (task, mut written) = read_task(context, arguments)?;
    let mut keep = |error| keep_task(error, written.as_mut());
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
        return preview(context, new, &stop).map_err(keep);
    }
    let request = Request::New(new.clone());
    let opened = open_or_hand_over(context, &request, "begins", arguments.clipboard_flags, &stop);
    let Some(mut engine) = opened.map_err(&mut keep)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let unconfined = may_run_unconfined(&engine);
    let turn = engine.begin_session(&new, unconfined).map_err(&mut keep)?;
    announce(context, &turn, "begins")?;
    if arguments.no_watch {
        engine.shut_down()?;
        arguments.clipboard_flags.copy_once(context, &turn.session)?;
        return Ok(ExitCode::SUCCESS);
    }
    serve(context, &mut engine, &Serve::One(turn.session.id), arguments.clipboard_flags, &stop)
}

/// Opens the project for a request. None if the serving process has handled the request; its result is reported.
fn open_or_hand_over(
    context: &CliContext,
    request: &Request,
    verb: &str,
    clipboard_flags: ClipboardFlags,
    stop: &Stop,
) -> Result<Option<Engine>> {
    let turn = match context.open_or_hand_over(request, stop)? {
        Opened::Local(engine) => return Ok(Some(*engine)),
        Opened::HandedOver(done) => done.turn,
    };
    announce(context, &turn, verb)?;
    output::say("The running deaddrop will execute the replies.");
    clipboard_flags.copy_once(context, &turn.session)?;
    Ok(None)
}

/// Shows the first outbox that a session would have.
fn preview(context: &CliContext, new: NewSession, stop: &Stop) -> Result<ExitCode> {
    let turn = context.request(Request::Preview(new), stop, 0)?;
    let path = turn.outbox.unwrap_or_default();
    let text = atomic::read_own_text(&path).map_err(|e| Error::io("read", &path, e))?;
    fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
    if output::wants_json() {
        let [shown, outlined] = outbox::files_of_first(&text);
        output::json(&json!({
            "tokens": turn.session.tokens, "shown": shown, "outlined": outlined, "text": text,
        }));
    } else {
        output::data(text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn resume(context: &CliContext, arguments: &Resume) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let named = context.session_id(&arguments.session.flag())?;
    let reopening = arguments.reopen.as_ref().map(|text| match named.clone() {
        Some(session) => Ok(Request::Reopen { session, text: text.clone() }),
        None => Err(Error::usage(
            "--reopen needs the session's id, as in `deaddrop resume a1b2c3d4 --reopen \"Now add division\"`; `deaddrop status` lists the sessions",
        )),
    });
    let flags = arguments.clipboard_flags;
    let opened = match reopening.transpose()? {
        None => Some(context.open(stop.clone())?),
        Some(request) => open_or_hand_over(context, &request, "continues", flags, &stop)?,
    };
    let Some(mut engine) = opened else { return Ok(ExitCode::SUCCESS) };
    let mut session = match named {
        Some(id) => engine.store.load(&id)?,
        None => match newest_open(context, &engine) {
            // Opening the project finished an interrupted turn, and that completed the last open session.
            Err(e) if e.is_no_open_session() && !engine.recovery_messages.is_empty() => {
                ProgressReporter::serving(context, false).report_opening(&engine);
                output::say("Nothing more is open.");
                return Ok(ExitCode::SUCCESS);
            }
            newest => newest?,
        },
    };
    match engine.check_workspace(&session) {
        Err(_) if arguments.here => {
            session.workspace = engine.workspace_name();
            session = engine.say(session, MOVED_NOTE)?.session;
        }
        checked => checked?,
    }
    match &arguments.reopen {
        Some(text) => session = engine.reopen(&session.id, text)?.session,
        None if session.is_complete => return Err(Error::complete(&session.id)),
        None if session.pending.is_none() && engine.restore_outbox(&session)? => {
            output::say("Its outbox was missing, and has been written again.");
        }
        None => {}
    }
    // If the session waits for a decision, its outbox was already answered and must not be pasted again.
    let outbox = session.pending.is_none().then(|| engine.outbox_path(&session));
    let id = session.id.clone();
    announce(context, &Turn { session, outbox }, "continues")?;
    if arguments.no_watch {
        let mut reporter = ProgressReporter::serving(context, false);
        reporter.report_opening(&engine);
        daemon::serve_once(&mut engine, &Serve::One(id.clone()), &stop, &mut reporter)?;
        drop(reporter);
        let session = engine.store.load(&id)?;
        // Release the lock, so that other processes can make decisions in the meantime.
        drop(engine);
        return match session.question() {
            _ if stop.is_asked() => Err(Error::interrupted()),
            None => flags.copy_once(context, &session).map(|()| ExitCode::SUCCESS),
            Some(_) => match context.ask(&session, &stop)? {
                Some(turn) => context.conclude(turn, true, &stop),
                None => Ok(ExitCode::from(EXIT_WAITS)),
            },
        };
    }
    serve(context, &mut engine, &Serve::One(id), flags, &stop)
}

pub(super) fn watch(context: &CliContext, flags: ClipboardFlags) -> Result<ExitCode> {
    let stop = Stop::on_signals()?;
    let mut engine = context.open(stop.clone())?;
    for session in restore_outboxes(&engine)? {
        output::say(format!("Session {}: {}", session.id, first_line(&session.task)));
        let outbox = session.pending.is_none().then(|| engine.outbox_path(&session));
        print_outbox(context, &Turn { session, outbox });
    }
    serve(context, &mut engine, &Serve::All, flags, &stop)
}

/// The open sessions of this workspace. Writes missing outboxes, and warns about sessions of other workspaces.
pub(super) fn restore_outboxes(engine: &Engine) -> Result<Vec<Session>> {
    let mut sessions = Vec::new();
    for session in engine.store.open_sessions()? {
        match engine.check_workspace(&session) {
            Err(e) => output::warning(&e.to_string()),
            Ok(()) => {
                if session.pending.is_none() {
                    engine.restore_outbox(&session)?;
                }
                sessions.push(session);
            }
        }
    }
    Ok(sessions)
}

fn serve(
    context: &CliContext,
    engine: &mut Engine,
    whom: &Serve,
    clipboard_flags: ClipboardFlags,
    stop: &Stop,
) -> Result<ExitCode> {
    if let Some(guest) = engine.guest_label() {
        output::say(format!("Everything is executed in the guest '{guest}'."));
    }
    let again = match whom {
        Serve::One(_) => "deaddrop resume",
        Serve::All => "deaddrop watch",
    };
    let mut reporter = ProgressReporter::serving(context, true);
    live::stop_drawing_on(stop);
    if !live::is_on() {
        let inbox = context.display(engine.inbox.folder());
        output::say(format!("Waiting for replies in {inbox}/ (Ctrl-C stops, `{again}` continues)"));
    }
    reporter.report_opening(engine);
    if daemon::serve(engine, whom, clipboard_flags.into(), stop, &mut reporter)? {
        let n = engine.store.open_sessions()?.len();
        if n > 0 {
            output::say(format!(
                "{} still open; `deaddrop watch` serves all.",
                count(n, "session")
            ));
        }
        Ok(ExitCode::SUCCESS)
    } else {
        drop(reporter);
        // Erasing a line drawn in place also erased the `^C`.
        let line = if live::is_on() { "" } else { "\n" };
        output::say(format!("{line}Stopped. `{again}` continues."));
        Err(Error::interrupted())
    }
}

/// The message to the model that the session continues in another workspace.
const MOVED_NOTE: &str = "The session continues in another folder than before. Look at the files that exist now before you change any.";

/// The most files that are named.
const MAX_NAMES: usize = 6;

/// Reports which files the first outbox shows and outlines, and how to include more.
fn report_contents(outbox: &Path) {
    let text = fs::read_to_string(outbox).unwrap_or_default();
    let [shown, outlined] = outbox::files_of_first(&text);
    let named = [("shows", &shown), ("outlines", &outlined)];
    for (verb, files) in named.into_iter().filter(|(_, files)| !files.is_empty()) {
        let named = first_of(files, MAX_NAMES, files.len());
        output::say(format!("The outbox {verb} {}: {named}", count(files.len(), "file")));
    }
    if !outlined.is_empty() {
        output::say(
            "Missing something? `deaddrop new --include PATTERN` shows more files, and context_tokens sets how much fits.",
        );
    }
}

/// Prints the path of the outbox. With --json, prints an event that the session is now served.
fn print_outbox(context: &CliContext, turn: &Turn) {
    if output::wants_json() {
        let mut value = output::turn_json(context, turn);
        value["event"] = "session".into();
        output::json(&value);
    } else if let Some(path) = &turn.outbox {
        output::result(context.display(path));
    }
}

/// Reports a session, and what to do with its outbox.
fn announce(context: &CliContext, turn: &Turn, verb: &str) -> Result<()> {
    let id = &turn.session.id;
    let task = first_line(&turn.session.task);
    output::say(output::bold(&format!("Session {id} {verb}: {task}")));
    if let Some(path) = &turn.outbox {
        let (sessions, damaged) = SessionStore::new(&context.config.sessions).list()?;
        let open = sessions.iter().filter(|session| !session.is_complete).count() + damaged.len();
        let name = match open {
            0 | 1 => "a .txt file".to_owned(),
            _ => format!("{id}_reply.txt (other sessions are open, so its name says which)"),
        };
        if turn.session.sequence == 1 {
            report_contents(path);
        }
        output::say(format!(
            "Paste this file into a chat window{}, and save the reply as {name} in {}/:",
            context.token_note(&turn.session),
            context.display(&context.config.inbox)
        ));
    }
    print_outbox(context, turn);
    Ok(())
}

/// If there is no sandbox, asks whether commands may run unconfined. Without a terminal or an answer, they may not.
fn may_run_unconfined(engine: &Engine) -> bool {
    // The owner of the guest decides about commands there.
    if engine.guest_label().is_some() {
        return false;
    }
    let confinement = engine.confinement();
    if confinement.tier != Tier::None {
        return false;
    }
    output::warning("this machine has no sandbox, so commands in replies are refused");
    for reason in confinement.why() {
        output::say(format!("  {}", visible_line(&reason)));
    }
    let yes = output::confirm(
        "Run the commands of this session with your rights? They could read and change your files and use the network [y/N] ",
    ) == Some(true);
    output::say(if yes {
        "Commands of this session run with your rights. Check each reply with `deaddrop check` before you save it."
    } else {
        "Commands stay refused; replies can still change files. `deaddrop doctor` suggests fixes; --sandbox off allows commands."
    });
    yes
}

fn newest_open(context: &CliContext, engine: &Engine) -> Result<Session> {
    if let Some(newest) = engine.store.open_sessions()?.into_iter().next() {
        return Ok(newest);
    }
    let (complete, _) = engine.store.list()?;
    let complete = complete.into_iter().next().map(|session| session.id);
    Err(Error::no_open_session(&context.config.sessions, complete))
}

/// The task and, if the person has just written it in an editor, the file.
fn read_task(context: &CliContext, arguments: &New) -> Result<(String, Option<NamedTempFile>)> {
    let mut written = None;
    let text = match (&arguments.task_file, arguments.task.as_slice()) {
        (Some(path), _) => {
            fs::read_to_string(path).map_err(|e| Error::io("read the task from", path, e))?
        }
        (None, [only]) if only == "-" => {
            let TextInput { name, text } = TextInput::read(Path::new(only), "read the task from")?;
            text.map_err(|why| Error::usage(format!("the task: {name}: {why}")))?
        }
        (None, []) => {
            let (text, file) = editor::write_task(context)?;
            written = Some(file);
            text
        }
        (None, words) => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(Error::usage(
            "the task is empty; describe it, as in `deaddrop new \"Write a calculator\"`",
        ));
    }
    Ok((text, written))
}

/// If the session cannot begin, keeps the file of the task, and adds its path to the error.
fn keep_task(error: Error, written: Option<&mut NamedTempFile>) -> Error {
    let Some(file) = written else { return error };
    file.disable_cleanup(true);
    let file = file.path().display();
    error.with_advice(&format!("your task is kept: `deaddrop new --task-file {file}` tries again"))
}

/// The files that the first outbox should show; None for no files.
fn offer(context: &CliContext, arguments: &New) -> Result<Option<FilePatterns>> {
    for (flag, patterns) in [("include", &arguments.include), ("exclude", &arguments.exclude)] {
        for pattern in patterns {
            check_pattern(pattern).map_err(|why| {
                Error::usage(format!("--{flag} '{pattern}' is not a valid pattern: {why}"))
            })?;
        }
    }
    let wants = !arguments.include.is_empty() || context.config.first_contents;
    let (include, exclude) = (arguments.include.clone(), arguments.exclude.clone());
    Ok((wants && !arguments.no_contents).then_some(FilePatterns { include, exclude }))
}

/// The first line of a task, shortened and with visible characters.
pub(super) fn first_line(task: &str) -> String {
    match task.trim().split_once('\n') {
        Some((first, _)) => rows::cut_end(&format!("{} …", first.trim_end()), 71),
        None => rows::cut_end(task.trim(), 71),
    }
}
