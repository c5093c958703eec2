//! `check`: previews replies, and counts their errors and warnings by kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tempfile::TempDir;

use super::patch::{self, coloured, diff};
use super::{CliContext, SessionFlag, output, replies};
use crate::admission::{self, Admission, Refusal, ReplyOptions};
use crate::engine;
use crate::error::{Error, Result};
use crate::executor::{Executor, OpaquePreview, PreviewExecutor};
use crate::outbox::{self, Files};
use crate::protocol::{
    Detail, Dialect, Kind, Operation, Outcome, ParsedReply, Part, RelPath, Step, StepContent,
    WarningKind, code,
};
use crate::session::Session;
use crate::session::store::SessionStore;
use crate::settings::SESSION_POLICY;
use crate::terminal::Styled;
use crate::text::{count, visible_line};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub(super) struct Check {
    /// The replies [default: standard input]
    #[arg(default_value = "-", hide_default_value = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    session: SessionFlag,
    /// Preview the reply without step N of the list (repeatable)
    #[arg(long, value_name = "N[=REASON]", value_parser = replies::parse_left_out)]
    leave_out: Vec<(usize, String)>,
}

pub(super) fn check(context: &CliContext, arguments: &Check) -> Result<ExitCode> {
    let files = &arguments.files;
    if files.iter().filter(|file| *file == Path::new("-")).count() > 1 {
        return Err(Error::usage("standard input can be read only once; give `-` only once"));
    }
    let preview_context =
        PreviewContext::new(context, context.session_id(&arguments.session)?.as_deref())?;
    let mut failed = 0;
    for (n, file) in files.iter().enumerate() {
        let named = visible_line(&file.to_string_lossy()).into_owned();
        if files.len() > 1 && !output::wants_json() {
            let heading = output::bold(&format!("{named}:"));
            output::result(Styled::from(if n == 0 { "" } else { "\n" }) + heading);
        }
        let is_right = match replies::read(file) {
            Ok((text, _)) => preview_context.preview_reply(&text, &named, &arguments.leave_out)?,
            Err(e) => {
                if output::wants_json() {
                    output::json(&json!({ "file": named, "unreadable": e.to_string() }));
                }
                output::error(&e.to_string());
                false
            }
        };
        failed += usize::from(!is_right);
    }
    if files.len() > 1 {
        output::say(format!("\n{}, {failed} with errors.", count(files.len(), "file")));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The session and the workspace in which replies are previewed. Nothing in them is changed.
struct PreviewContext<'a> {
    context: &'a CliContext,
    store: SessionStore,
    /// The session named by --session.
    named: Option<Session>,
    workspace: Workspace,
    /// An empty folder that replaces a missing workspace.
    _missing: TempDir,
}

impl<'a> PreviewContext<'a> {
    /// The session and workspace that `apply` would use.
    fn new(context: &'a CliContext, session: Option<&str>) -> Result<Self> {
        let config = &context.config;
        let store = SessionStore::new(&config.sessions);
        let named = session.map(|id| store.choose(Some(id))).transpose()?;
        // A missing workspace counts as empty.
        let missing = tempfile::tempdir()
            .map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
        let folder = if config.workspace.exists() { &*config.workspace } else { missing.path() };
        let workspace = Workspace::open(folder, &config.state(), &config.protected_names)?;
        Ok(Self { context, store, named, workspace, _missing: missing })
    }

    /// The session that `apply` would choose for a reply, if any, and the reason why `apply` would not execute it.
    fn chosen(&self, reply: &ParsedReply) -> Result<(Option<Session>, Option<Error>)> {
        let config = &self.context.config;
        let named = self.named.as_ref().map(|named| &*named.id);
        match admission::choose_session(&self.store, reply.answers(), named, false) {
            Ok(session) => {
                let workspace = config.guest.is_none().then(|| config.workspace_name());
                let ready = admission::check_ready(&session, workspace.as_deref());
                let held = ready.err().or_else(|| held(reply, &session));
                Ok((Some(session), held))
            }
            // The session may be complete. If it cannot be loaded, the reply is previewed as if it named no session.
            Err(e) => match reply.answers() {
                Some(answers) => {
                    let known = self.store.load(&answers.session);
                    let session = known.or_else(|_| self.store.choose(None)).ok();
                    Ok((session, Some(e)))
                }
                None if e.is_no_open_session() => Ok((None, None)),
                None => Err(e),
            },
        }
    }

    /// Prints what a reply would do, and returns whether it has no errors.
    fn preview_reply(&self, text: &str, file: &str, left_out: &[(usize, String)]) -> Result<bool> {
        let config = &self.context.config;
        let mut parsed = ParsedReply::new(text.to_owned());
        let (mut session, held) = self.chosen(&parsed)?;
        if let Some(session) = &mut session {
            session.keep_unread_words(parsed.answers());
        }
        let policy = config.policy.as_deref().unwrap_or(SESSION_POLICY).to_owned();
        let judged = session.clone().unwrap_or(Session { policy, ..Session::default() });
        let dialect = judged.dialect;
        let is_in_guest = config.guest.is_some();
        let mut reply = parsed.read_in(dialect, (!is_in_guest).then(|| self.workspace.path()));
        let state = engine::state_of(config, &self.workspace, &judged, text, &reply.steps)?;
        let left_out = left_out.iter().cloned().collect();
        let held = held.or(engine::leave_out(&mut reply.steps, &left_out).err().map(refused));
        let mut preview = PreviewExecutor::new(&self.workspace);
        let mut unseen = OpaquePreview::new(&config.protected_names);
        let executor: &mut dyn Executor = if is_in_guest { &mut unseen } else { &mut preview };
        let outcomes = engine::preview(config, &judged, &reply.steps, executor)?;
        let files = requested(&outcomes, executor)?;
        let withheld = outbox::withheld(&files, &config.secrets);
        // Files in a guest are unknown here.
        let rewritten = (!is_in_guest).then(|| preview.into_changes());
        let errors = outcomes.iter().filter(|outcome| outcome.failed()).count();
        let warnings: Vec<WarningKind> = outcomes.iter().flat_map(warnings).collect();
        if output::wants_json() {
            let in_operations = reply.dialect == Some(Dialect::Operations);
            let blocks = reply.steps.iter().map(Step::kind).filter(|kind| *kind != Kind::Reply);
            let files = rewritten.map(|files| files.iter().map(patch::to_json).collect::<Vec<_>>());
            let commands = outcomes.iter().zip(&reply.steps).map(|(outcome, step)| {
                let mut value = output::preview_json(outcome);
                if let StepContent::Operation(Operation::Run(run)) = &step.asks {
                    value["script"] = run.command.as_str().into();
                }
                value
            });
            output::json(&json!({
                "file": file,
                "session": session.map(|session| session.id),
                "held": held.as_ref().map(Error::to_string),
                "heldCode": held.as_ref().map(Error::code),
                "dialect": reply.dialect,
                "state": state,
                "blocks": tally(blocks.map(|kind| output::operation_name(kind, in_operations).to_owned())),
                "errors": errors,
                "errorsByKind": tally(outcomes.iter().filter(|o| o.failed()).filter_map(Outcome::code)),
                "warnings": warnings.len(),
                "warningsByKind": tally(warnings.into_iter().map(code)),
                "endsEarly": reply.unclosed,
                "commands": commands.collect::<Vec<_>>(),
                "withheld": withheld,
                "files": files,
            }));
            return Ok(errors == 0);
        }
        if let Some(why) = &held {
            output::prose(format!("Would be held: {why}"));
        }
        output::say("What `apply` would do, and tell the model:");
        for outcome in &outcomes {
            let line = Styled::from(format!("{:>5}  ", outcome.line));
            output::prose(line + output::preview(outcome));
        }
        let paths: BTreeSet<&RelPath> = rewritten.iter().flatten().map(|file| &file.path).collect();
        let is_repeated = rewritten.iter().flatten().count() > paths.len();
        for file in rewritten.iter().flatten() {
            if let Some(step) = file.by_step.filter(|_| is_repeated) {
                output::prose(format!("\nBefore command {step}:"));
            }
            output::result(Styled::from("\n") + coloured(&diff(file)));
        }
        withheld.iter().for_each(|told| output::prose(format!("Would be {told}")));
        let changed =
            rewritten.as_ref().map(|_| format!(", {} would change", count(paths.len(), "file")));
        output::say(format!(
            "\n{}, {}, {}{}. Nothing was done.",
            count(outcomes.len(), "command"),
            count(errors, "error"),
            count(warnings.len(), "warning"),
            changed.unwrap_or_default()
        ));
        Ok(errors == 0)
    }
}

/// The kinds of an outcome's warnings. A `[DONE]` without effect counts as a warning.
fn warnings(outcome: &Outcome) -> impl Iterator<Item = WarningKind> {
    let is_ineffective = matches!(outcome.detail, Detail::Ineffective { .. });
    let kinds = outcome.warnings.iter().map(|warning| warning.kind);
    kinds.chain(is_ineffective.then_some(WarningKind::Done))
}

/// Why `apply` would not execute a reply to this session; None if it would.
fn held(reply: &ParsedReply, session: &Session) -> Option<Error> {
    match admission::admit(reply, session, ReplyOptions::default()) {
        Admission::Accepted => None,
        Admission::Held(refusal) | Admission::Rejected(refusal) => Some(refused(refusal)),
    }
}

fn refused(Refusal { code, why, flag }: Refusal) -> Error {
    let flag = flag.map(|flag| format!("; `apply {flag}` executes it"));
    Error::relayed(why + &flag.unwrap_or_default(), code, 1)
}

/// The files whose contents the next outbox would show. Files that are shown in part are also read completely.
fn requested(outcomes: &[Outcome], executor: &dyn Executor) -> Result<Files> {
    let mut files = Files::default();
    for outcome in outcomes {
        let (path, part) = match &outcome.detail {
            Detail::ReadLater { path, part } => (path, *part),
            Detail::Read { path, .. } => (path, Part::default()),
            _ => continue,
        };
        let contents = executor.read(path, part)?;
        let is_part = contents.as_ref().is_ok_and(|contents| contents.lines.is_some());
        if is_part && files.wholes.iter().all(|whole| whole.path != *path) {
            files.wholes.extend(executor.read(path, Part::default())?);
        }
        files.requested.push(contents);
    }
    Ok(files)
}

/// Counts how often each word occurs.
fn tally(words: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    words.fold(BTreeMap::new(), |mut all, word| {
        *all.entry(word).or_default() += 1;
        all
    })
}
