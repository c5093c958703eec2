//! `status`, `log`, `say` and `close`: list sessions, show their state and history, add messages for the model, and end
//! sessions.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::locate::ProjectSource;
use super::serving::first_line;
use super::{CliContext, SessionFlag, SessionOperand, output, question, summary};

use crate::atomic;
use crate::engine::{Turn, TurnDiffs, TurnSpan};
use crate::error::{Error, Result};
use crate::inbox;
use crate::ipc::Request;
use crate::lock::Lock;
use crate::runner::sandbox::Tier;
use crate::session::journal;
use crate::session::log::{self, LogEntry};
use crate::session::record::History;
use crate::session::store::SessionStore;
use crate::session::{Session, run_id};
use crate::settings::Config;
use crate::text::visible_line;
use crate::watch::Stop;

#[derive(Debug, Args)]
pub(super) struct Close {
    #[command(flatten)]
    session: SessionOperand,
    /// Also remove its outboxes, its log and its undo data
    #[arg(long)]
    delete: bool,
}

#[derive(Debug, Args)]
pub(super) struct Say {
    /// Your words for the model, added to the end of the newest outbox
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    #[command(flatten)]
    session: SessionFlag,
}

fn list(context: &CliContext) -> Result<ExitCode> {
    let store = SessionStore::new(&context.config.sessions);
    let (sessions, damaged) = store.list()?;
    // Only runs that wait for a decision are listed.
    let runs: Vec<Session> =
        store.pending()?.into_iter().filter(|session| session.run.is_some()).collect();
    for session in runs.iter().chain(&sessions) {
        if output::wants_json() {
            output::json(&to_json(context, session));
            continue;
        }
        let Session { id, sequence, updated_at, task, .. } = session;
        let state = state(session);
        output::prose(if session.run.is_some() {
            format!("{}  {state}  {updated_at}", session.stem())
        } else {
            format!("{id}  {state:<13}  outbox {sequence:<3}  {updated_at}  {}", first_line(task))
        });
    }
    if runs.is_empty() && sessions.is_empty() && damaged.is_empty() {
        let what = match context.source {
            ProjectSource::Missing => "There is no project here or above",
            ProjectSource::Direct | ProjectSource::Ancestor => "There are no sessions here yet",
        };
        output::say(format!("{what}; `deaddrop new \"your task\"` starts one."));
    }
    if !output::wants_json() {
        held_replies(context).into_iter().for_each(output::prose);
    }
    for error in &damaged {
        output::error(&error.to_string());
    }
    Ok(if damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn status(context: &CliContext, flag: &SessionFlag) -> Result<ExitCode> {
    if flag.id.is_none() {
        return list(context);
    }
    let session = named_or_newest(context, flag)?;
    if output::wants_json() {
        let mut value = to_json(context, &session);
        let results = output::outcomes(&session).iter().map(output::outcome_json);
        value["results"] = results.collect::<Vec<_>>().into();
        value["sandbox"] = describe_sandbox(context, &session).into();
        value["withinTurn"] = is_interrupted(context, &session).into();
        value["toSay"] = session.words_to_say().cloned().collect::<Vec<_>>().into();
        value["added"] = session.words_added().into();
        value["held"] = inbox::held_replies(&context.config.inbox).into();
        output::json(&value);
        return Ok(ExitCode::SUCCESS);
    }
    let row = |label: &str, text: &str| {
        output::prose(format!("{:<10}{text}", format!("{label}:")));
    };
    let state = match state(&session) {
        "open" if is_interrupted(context, &session) => {
            "open, stopped within a turn: `deaddrop resume` continues it"
        }
        "open" => "open, waiting for a reply",
        state => state,
    };
    output::prose(format!("{}: {state}", question::session_label(&session)));
    if session.run.is_none() {
        row("Task", &first_line(&session.task));
    }
    row("Begun", &session.created_at.to_string());
    row("Changed", &session.updated_at.to_string());
    if session.run.is_none() {
        let outbox = context.config.outbox.join(session.outbox_name());
        let is_there = state != "open, waiting for a reply" || outbox.exists();
        let missing = if is_there { "" } else { " (missing; `deaddrop resume` writes it)" };
        row("Outbox", &format!("{}{missing}", context.display(&outbox)));
    }
    row("Policy", &session.policy);
    row("Sandbox", &describe_sandbox(context, &session));
    if let Some(summary) = &session.summary {
        row("Summary", &first_line(summary));
    }
    let outcomes = output::outcomes(&session);
    if !outcomes.is_empty() {
        output::prose("Last reply:");
        outcomes.iter().for_each(|outcome| output::prose(output::outcome(outcome)));
    }
    // These messages may have been added after the outbox was pasted.
    session.words_added().iter().for_each(|words| row("Added", &first_line(words)));
    session.words_to_say().for_each(|words| row("To say", &first_line(words)));
    held_replies(context).into_iter().for_each(output::prose);
    if session.question().is_some() {
        let preview = context.preview_question(&session);
        output::prose(question::describe(context, &session, &preview));
    }
    Ok(ExitCode::SUCCESS)
}

/// A line about the held replies of all sessions; None if there are none.
fn held_replies(context: &CliContext) -> Option<String> {
    let replies = match inbox::held_replies(&context.config.inbox).len() {
        0 => return None,
        1 => "1 reply".to_owned(),
        n => format!("{n} replies"),
    };
    let folder = context.display(&context.config.inbox.join(inbox::HELD));
    Some(format!(
        "Held:     {replies} in {folder}/; a note beside each says why, and how to execute it"
    ))
}

/// Whether a turn of the session was begun but not finished, and no process is working on it.
fn is_interrupted(context: &CliContext, session: &Session) -> bool {
    let Config { sessions, .. } = &context.config;
    // The process that holds the lock may be working on the turn.
    if Lock::is_held(&context.config) {
        return false;
    }
    let Ok(bytes) = atomic::read_own(&sessions.join("journal")) else { return false };
    let Ok(contents) = journal::read(&bytes) else { return false };
    let history = History::read(&contents.payloads).unwrap_or_default();
    history.unfinished.is_some_and(|turn| {
        // A committed turn counts as finished.
        turn.commit.is_none() && turn.begin.session.stem() == session.stem()
    })
}

/// The state of a session or a run, in a few words.
fn state(session: &Session) -> &'static str {
    match (session.is_complete, &session.pending) {
        (true, _) => "complete",
        (false, None) => "open",
        (false, Some(pending)) if pending.decision.is_some() => "decided",
        (false, Some(_)) => "waits for you",
    }
}

/// Describes the confinement of a session's commands in one line.
fn describe_sandbox(context: &CliContext, session: &Session) -> String {
    if let Some(guest) = &context.config.guest {
        return format!("the sandbox of the guest '{}'; `deaddrop doctor` asks it", guest.label());
    }
    match context.confinement() {
        Ok(confinement) if confinement.tier == Tier::None && session.unconfined => {
            "none on this machine; you allowed this session's commands to run with your rights"
                .to_owned()
        }
        Ok(confinement) => confinement.line(),
        Err(reason) => format!("could not be checked: {reason}"),
    }
}

pub(super) fn log(context: &CliContext, flag: &SessionFlag) -> Result<ExitCode> {
    let session = named_or_newest(context, flag)?;
    let entries = log::read(&context.config.sessions, &session.id)?;
    let undone = log::undone(&entries);
    let diffs = TurnDiffs::of(&context.config, &session, &entries).map_err(|e| e.to_string());
    let files = |sequence| changed_files(diffs.as_ref().map_err(Clone::clone)?, sequence);
    let waiting = waiting_entry(&session);
    if entries.is_empty() && waiting.is_none() {
        output::say(format!("No reply to session {} has been executed yet.", session.stem()));
    }
    for entry in entries.iter().chain(&waiting) {
        let waits = waiting.as_ref().is_some_and(|waiting| waiting.sequence == entry.sequence);
        let is_undone = undone.contains(&entry.sequence);
        let left = log::ignored(&entries, &entry.undid);
        if output::wants_json() {
            let mut value = json!(entry);
            value["isUndone"] = is_undone.into();
            if let Some(left) = &left {
                value["leftIgnored"] = json!(left);
            }
            if output::is_verbose() {
                value["files"] = json!(files(entry.sequence).ok());
            }
            if waits {
                value["waiting"] = question::to_json(context, &session);
            }
            output::json(&value);
            continue;
        }
        let what = entry.back().unwrap_or_else(|| entry.work());
        let LogEntry { sequence, at, reply, failed, interrupted, .. } = entry;
        let mut line = format!("{sequence:>4}  {at}  {what}");
        for (holds, words) in [
            (*failed > 0, format!(", {failed} failed")),
            (*interrupted > 0, format!(" ({interrupted} interrupted, may have run in part)")),
            (is_undone, ", undone".to_owned()),
            (entry.is_complete, ", done".to_owned()),
            (entry.recovered, ", recovered after a hard stop".to_owned()),
        ] {
            line.push_str(if holds { &words } else { "" });
        }
        if waits {
            line.push_str(" so far, ");
            line.push_str(&match session.question() {
                Some(_) => format!(
                    "waits for your decision: {}",
                    question::how_to_decide(context, &session)
                ),
                None => "decided; whoever began it continues it".to_owned(),
            });
        }
        output::prose(format!("{line}  ({})", visible_line(reply)));
        if output::is_verbose() {
            let files = files(*sequence).unwrap_or_else(|why| vec![why]);
            let unkept = summary::unkept_lines(entry, left.as_ref());
            let lines = files.iter().chain(&unkept);
            lines.for_each(|line| output::result(format!("        {line}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The files and folders that a turn changed, one per line, or the reason why they are unknown.
fn changed_files(turns: &TurnDiffs, sequence: u32) -> std::result::Result<Vec<String>, String> {
    let shown = turns.diff(TurnSpan::One(sequence)).map_err(|e| e.to_string())?;
    Ok(summary::change_lines(&shown.summary()))
}

/// A log entry for a waiting turn, with its outcomes so far.
fn waiting_entry(session: &Session) -> Option<LogEntry> {
    let pending = session.pending.as_ref()?;
    Some(LogEntry {
        sequence: session.sequence,
        at: session.updated_at,
        reply: pending.reply.clone(),
        ..LogEntry::counting(&pending.outcomes)
    })
}

pub(super) fn say(context: &CliContext, arguments: &Say) -> Result<ExitCode> {
    let request = Request::Say {
        text: arguments.text.join(" "),
        session: context.session_id(&arguments.session)?,
    };
    let turn = context.request(request, &Stop::on_signals()?, 0)?;
    if output::wants_json() {
        let mut value = to_json(context, &turn.session);
        value["saysIt"] = turn.outbox.is_some().into();
        output::json(&value);
    }
    output::say(words_message(context, &turn));
    if let (Some(path), false) = (&turn.outbox, output::wants_json()) {
        output::result(context.display(path));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn close(context: &CliContext, arguments: &Close) -> Result<ExitCode> {
    let id = context.session_id(&arguments.session.flag())?.ok_or_else(|| {
        Error::usage("name the session, as in `deaddrop close ID`; `deaddrop status` lists them")
    })?;
    if run_id(&id).is_some() {
        return Err(Error::usage(format!(
            "{id} is a run, which ends by itself; the newest hundred runs are kept"
        )));
    }
    let request = Request::Close { session: id.clone(), delete: arguments.delete };
    let turn = context.request(request, &Stop::on_signals()?, 0)?;
    if output::wants_json() {
        output::json(&to_json(context, &turn.session));
    }
    let done = if arguments.delete { "is removed" } else { "is closed" };
    output::say(format!("Session {id} {done}."));
    Ok(ExitCode::SUCCESS)
}

/// Describes which outbox contains the person's message, and what the person must do.
pub(super) fn words_message(context: &CliContext, Turn { session, outbox }: &Turn) -> String {
    match outbox {
        Some(_) => format!(
            "Your words are now at the end of the newest outbox{}. If you have already pasted it, copy it again (a reply to the older text still counts; the next outbox then repeats your words):",
            context.token_note(session)
        ),
        None => format!(
            "Outbox {} of session {} will contain your words, after {}.",
            session.sequence + 1,
            session.id,
            match session.pending {
                Some(_) => "your decision",
                None => "the next reply: the newest outbox has no room for them, or was edited",
            }
        ),
    }
}

/// The named session, otherwise the newest open one, otherwise the newest. If several are open, prints which one it is.
pub(super) fn named_or_newest(context: &CliContext, flag: &SessionFlag) -> Result<Session> {
    let store = SessionStore::new(&context.config.sessions);
    if let Some(id) = context.session_id(flag)? {
        return store.load_stem(&id);
    }
    let (sessions, damaged) = store.list()?;
    let open = || sessions.iter().filter(|session| !session.is_complete);
    let newest = open().next().or(sessions.first());
    if let (Some(newest), 2..) = (newest, open().count()) {
        output::say(format!(
            "{} sessions are open; this is about the newest, {} (`deaddrop status` lists them)",
            open().count(),
            newest.id
        ));
    }
    match (newest, damaged.into_iter().next()) {
        (Some(session), _) => Ok(session.clone()),
        (None, Some(error)) => Err(error),
        // If there are no sessions, it is a run that waits for a decision.
        (None, None) => (store.pending()?.into_iter().next())
            .ok_or_else(|| Error::no_open_session(&context.config.sessions, None)),
    }
}

fn to_json(context: &CliContext, session: &Session) -> serde_json::Value {
    let outbox = context.config.outbox.join(session.outbox_name());
    json!({
        "session": session.stem(),
        "task": session.task,
        "sequence": session.sequence,
        "isComplete": session.is_complete,
        "createdAt": session.created_at,
        "updatedAt": session.updated_at,
        "outbox": session.run.is_none().then(|| context.display(&outbox)),
        "waiting": question::to_json(context, session),
        "summary": session.summary,
    })
}
