//! `apply` and `check`: one reply, carried out now or only looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::Context;
use super::changes::{change, coloured, diff};
use super::input::Input;
use super::talk;
use crate::config::Mode;
use crate::control::{Given, Wish};
use crate::error::{Error, Result};
use crate::place::{Place, Preview, Unseen};
use crate::protocol::{self, Dialect, Outcome};
use crate::session;
use crate::session::store::Store;
use crate::text::{count, visible_line};
use crate::turn::{self, Asking, Carried, Course};
use crate::watch::Stop;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the path of the next outbox. Exit code 0 says that the reply was carried out, even if a
command in it failed; 3 that it waits for your decision, see `deaddrop approve --help`.

Examples:
  deaddrop apply reply.txt
  xclip -o | deaddrop apply --session a1b2c3d4")]
pub(super) struct Apply {
    /// The reply; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
    /// For which session, where several are open
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Carry it out even if it is the same text as the reply before it
    #[arg(long)]
    again: bool,
    /// Carry it out even if it says that it answers another message than the newest
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The reply is looked at as `apply` would carry it out: for the session that is named or the only open
one, with its policy. Exit code 0: nothing wrong with it; 1: it has errors.

Examples:
  deaddrop check reply.txt
  xclip -o | deaddrop check --json")]
pub(super) struct Check {
    /// The reply; `-` or nothing reads it from standard input
    file: Option<PathBuf>,
    /// For which session, where several are open
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

pub(super) fn apply(context: &Context, arguments: &Apply) -> Result<ExitCode> {
    // A reply that lies in the inbox is taken out of it, or it would be carried out once more.
    let in_inbox = arguments.file.as_ref().filter(|file| lies_in(file, &context.config.inbox));
    // Before the lock and the handlers of signals: a person may take their time, or press Ctrl-C.
    let (reply, name) = match in_inbox {
        Some(file) => {
            let name = visible_line(&file.to_string_lossy()).into_owned();
            let name_only = file.file_name().unwrap_or_default();
            (Given::InInbox(context.config.inbox.join(name_only)), name)
        }
        None => {
            let (text, name) = read(arguments.file.as_deref())?;
            (Given::Text(text), name)
        }
    };
    let wish = Wish::Apply {
        reply,
        session: arguments.session.clone(),
        again: arguments.again,
        force: arguments.force,
    };
    let stop = Stop::on_signals()?;
    let turn = context.wish(wish, &stop, Some(&name), 0)?;
    context.conclude(turn, true, &stop)
}

pub(super) fn check(context: &Context, arguments: &Check) -> Result<ExitCode> {
    // What `apply` would carry it out for.
    let store = Store::new(&context.config.sessions);
    let session = match store.choose(arguments.session.as_deref()) {
        Ok(session) => Some(session),
        Err(e) if arguments.session.is_none() && e.is_without_session() => None,
        Err(e) => return Err(e),
    };
    let (text, _) = read(arguments.file.as_deref())?;
    let guest = context.config.guest.as_ref();
    let dialect = session.as_ref().map_or(Dialect::Tags, |session| session.dialect);
    let reply = protocol::read(&text, dialect);
    // A workspace that does not exist yet is an empty one.
    let missing =
        tempfile::tempdir().map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
    let folder =
        if context.config.workspace.exists() { &*context.config.workspace } else { missing.path() };
    let workspace =
        Workspace::open(folder, &context.config.state(), &context.config.protected_names)?;
    let mut preview = Preview::new(&workspace);
    // A guest is taken for one whose commands are confined, as most are.
    let guarded = guest.is_some() || context.config.sandbox.mode != Mode::Off;
    let name = match &session {
        Some(session) => &session.policy,
        None => context.config.policy.as_deref().unwrap_or(session::POLICY),
    };
    let policy = context.config.policy(name)?;
    let course = Course {
        steps: &reply.steps,
        known: &BTreeMap::new(),
        verdict: None,
        seen: &session.as_ref().map(|session| session.seen.clone()).unwrap_or_default(),
        judge: &|operation, place| turn::judge(&policy, guarded, operation, place),
        asking: Asking::Foretells,
        stopped: None,
        halts: false,
        now: &|| context.clock.now(),
    };
    let mut unseen = Unseen::new(&context.config.protected_names);
    let place: &mut dyn Place = if guest.is_some() { &mut unseen } else { &mut preview };
    let Carried { outcomes, .. } = turn::carry_out(&course, place, &mut (), &mut ())?;
    let rewritten = preview.rewritten();
    let errors = outcomes.iter().filter(|outcome| !outcome.success()).count();
    let warnings: usize = outcomes.iter().map(|outcome| outcome.warnings.len()).sum();

    if context.json {
        let files = rewritten.iter().map(|file| {
            json!({ "path": file.path.as_str(), "change": change(file), "diff": diff(file) })
        });
        Context::print_json(&json!({
            "commands": outcomes.iter().map(talk::foretold_json).collect::<Vec<_>>(),
            // Of a guest nothing is known.
            "files": guest.is_none().then(|| files.collect::<Vec<_>>()),
            "errors": errors,
            "warnings": warnings,
        }));
    } else {
        outcomes.iter().for_each(|outcome| talk::result(&located(context, outcome)));
        for file in &rewritten {
            let talk = context.talk.for_results();
            talk::result(&format!("\n{}", coloured(&talk, &diff(file))));
        }
        let changed = match guest {
            None => format!(", {} would change", count(rewritten.len(), "file")),
            Some(_) => String::new(),
        };
        context.talk.say(&format!(
            "\n{}, {}, {}{changed}. Nothing was done.",
            count(outcomes.len(), "command"),
            count(errors, "error"),
            count(warnings, "warning")
        ));
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn located(context: &Context, outcome: &Outcome) -> String {
    format!("{:>5}  {}", outcome.line, context.talk.for_results().foretold(outcome))
}

/// The text of a reply from a file or standard input, and what to call it.
fn read(file: Option<&Path>) -> Result<(String, String)> {
    let Input { path, name, text } = Input::read(file, "read the reply from")?;
    Ok((text.map_err(|why| Error::no_reply(&path, why))?, name))
}

/// Whether `file` lies directly in `folder`.
fn lies_in(file: &Path, folder: &Path) -> bool {
    let parent = fs::canonicalize(file).ok().and_then(|file| Some(file.parent()?.to_owned()));
    parent.is_some() && parent == fs::canonicalize(folder).ok()
}
