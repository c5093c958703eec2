//! `check`: replies that are only looked at, and what is wrong with them by kind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::changes::{self, coloured, diff};
use super::{Context, SessionFlag, output, replies};
use crate::admission::{self, Admission, Given, Refusal};
use crate::engine;
use crate::error::{Error, Result};
use crate::executor::{Executor, OpaquePreview, PreviewExecutor, Rewritten};
use crate::outbox::{self, Files};
use crate::protocol::{
    Detail, Dialect, Kind, Outcome, ParsedReply, Part, Reply, Step, WarningKind, code,
};
use crate::session::Session;
use crate::session::store::Store;
use crate::settings::SESSION_POLICY;
use crate::terminal::Styled;
use crate::text::{count, visible_line};
use crate::workspace::Workspace;

#[derive(Debug, Args)]
#[command(after_help = "\
Shows what `apply` would do, under the policy of the reply's session. A reply that `apply` would \
hold is marked; that is no error. Each of several replies is checked as if it were the only one. \
Exit code 0: no errors; 1: a reply has errors, or cannot be read.

docs/scripting.md lists the fields of --json.

Examples:
  deaddrop check reply.txt
  xclip -selection clipboard -o | deaddrop check --json
  deaddrop check replies/*.txt --json | jq -r '[.file, .errors, .warnings] | @tsv'")]
pub(super) struct Check {
    /// The replies [default: standard input]
    files: Vec<PathBuf>,
    #[command(flatten)]
    session: SessionFlag,
}

pub(super) fn check(context: &Context, arguments: &Check) -> Result<ExitCode> {
    let is_input = |file: &&PathBuf| *file == Path::new("-");
    if arguments.files.iter().filter(is_input).count() > 1 {
        return Err(Error::usage("standard input can be read only once: give `-` once"));
    }
    let surroundings =
        Surroundings::new(context, context.session_id(&arguments.session)?.as_deref())?;
    let files: Vec<Option<&Path>> = match &*arguments.files {
        [] => vec![None],
        files => files.iter().map(|file| Some(&**file)).collect(),
    };
    let mut failed = 0;
    for (n, file) in files.iter().enumerate() {
        let named = match file {
            Some(file) => visible_line(&file.to_string_lossy()).into_owned(),
            None => "-".to_owned(),
        };
        if files.len() > 1 && !context.json {
            let heading = context.ui.for_results().bold(&format!("{named}:"));
            output::result(Styled::from(if n == 0 { "" } else { "\n" }) + heading);
        }
        let is_right = match replies::read(context, *file) {
            Ok((text, _)) => surroundings.look_at(&text)?.tell(context, &named),
            Err(e) => {
                if context.json {
                    Context::print_json(&json!({ "file": named, "unreadable": e.to_string() }));
                }
                context.ui.error(&e.to_string());
                false
            }
        };
        failed += usize::from(!is_right);
    }
    if files.len() > 1 {
        let told = format!("\n{}, {failed} with errors.", count(files.len(), "file"));
        context.ui.say(&told);
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What replies are looked at in: nothing of it is changed by them.
struct Surroundings<'a> {
    context: &'a Context,
    store: Store,
    /// The session that was named.
    named: Option<Session>,
    workspace: Workspace,
    /// The folder of a workspace that does not exist yet.
    _missing: TempDir,
}

/// What looking at a reply came to.
struct Looked {
    /// For which session.
    session: Option<String>,
    /// Why it would not be carried out as it is.
    held: Option<Error>,
    reply: Reply,
    outcomes: Vec<Outcome>,
    /// The files that would change.
    rewritten: Vec<Rewritten>,
    is_in_guest: bool,
    /// What of requested contents the next outbox would not show, or show though it is secret.
    withheld: Vec<String>,
}

impl<'a> Surroundings<'a> {
    /// Those of what `apply` would carry a reply out for.
    fn new(context: &'a Context, session: Option<&str>) -> Result<Self> {
        let config = &context.config;
        let store = Store::new(&config.sessions);
        let named = session.map(|id| store.choose(Some(id))).transpose()?;
        // A workspace that does not exist yet is an empty one.
        let missing = tempfile::tempdir()
            .map_err(|e| Error::io("make a folder in", &std::env::temp_dir(), e))?;
        let folder = if config.workspace.exists() { &*config.workspace } else { missing.path() };
        let workspace = Workspace::open(folder, &config.state(), &config.protected_names)?;
        Ok(Self { context, store, named, workspace, _missing: missing })
    }

    /// The session that `apply` would choose for a reply, and why it would not carry it out; no session
    /// where there is none.
    fn chosen(&self, reply: &ParsedReply) -> Result<(Option<Session>, Option<Error>)> {
        let config = &self.context.config;
        let named = self.named.as_ref().map(|named| &*named.id);
        match admission::choose(&self.store, reply.answers(), named, false) {
            Ok(session) => {
                let workspace = config.guest.is_none().then(|| config.workspace_name());
                let ready = admission::check_ready(&session, workspace.as_deref());
                let held = ready.err().or_else(|| held(reply, &session));
                Ok((Some(session), held))
            }
            // It may be complete; otherwise it is looked at as one that names none.
            Err(e) => match reply.answers() {
                Some(answers) => {
                    let known = self.store.load(&answers.session);
                    let session = known.or_else(|_| self.store.choose(None)).ok();
                    Ok((session, Some(e)))
                }
                None if e.is_without_session() => Ok((None, None)),
                None => Err(e),
            },
        }
    }

    fn look_at(&self, text: &str) -> Result<Looked> {
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
        let reply = parsed.read_in(dialect, (!is_in_guest).then(|| self.workspace.path()));
        let mut preview = PreviewExecutor::new(&self.workspace);
        let mut unseen = OpaquePreview::new(&config.protected_names);
        let executor: &mut dyn Executor = if is_in_guest { &mut unseen } else { &mut preview };
        let outcomes = engine::preview(config, &judged, &reply.steps, executor)?;
        let files = requested(&outcomes, executor)?;
        let withheld = outbox::withheld(&files, &config.secrets);
        let session = session.map(|session| session.id);
        let rewritten = preview.rewritten();
        Ok(Looked { session, held, reply, outcomes, rewritten, is_in_guest, withheld })
    }
}

/// Why `apply` would not carry out a reply to this session.
fn held(reply: &ParsedReply, session: &Session) -> Option<Error> {
    match admission::admit(reply, session, Given::default()) {
        Admission::Accepted => None,
        Admission::Held(Refusal { code, why, flag })
        | Admission::Rejected(Refusal { code, why, flag }) => {
            let flag = flag.map(|flag| format!("; `apply {flag}` executes it"));
            Some(Error::relayed(why + &flag.unwrap_or_default(), code, 1))
        }
    }
}

impl Looked {
    /// Tells what was found, and returns whether nothing is wrong.
    fn tell(&self, context: &Context, file: &str) -> bool {
        let errors = self.outcomes.iter().filter(|outcome| outcome.failed()).count();
        if context.json {
            Context::print_json(&self.json(file, errors));
        } else {
            self.tell_person(context, errors);
        }
        errors == 0
    }

    /// The kinds of all warnings. A `[DONE]` without effect counts as one.
    fn warnings(&self) -> impl Iterator<Item = WarningKind> {
        self.outcomes.iter().flat_map(|outcome| {
            let is_ineffective = matches!(outcome.detail, Detail::Ineffective { .. });
            let sorts = outcome.warnings.iter().map(|warning| warning.kind);
            sorts.chain(is_ineffective.then_some(WarningKind::Done))
        })
    }

    fn tell_person(&self, context: &Context, errors: usize) {
        if let Some(why) = &self.held {
            output::prose(format!("Would be held: {why}"));
        }
        self.outcomes.iter().for_each(|outcome| output::prose(located(context, outcome)));
        for file in &self.rewritten {
            let ui = context.ui.for_results();
            output::result(Styled::from("\n") + coloured(&ui, &diff(file)));
        }
        for told in &self.withheld {
            output::prose(format!("Would be {told}"));
        }
        let changed = if self.is_in_guest {
            String::new()
        } else {
            format!(", {} would change", count(self.rewritten.len(), "file"))
        };
        context.ui.say(format!(
            "\n{}, {}, {}{changed}. Nothing was done.",
            count(self.outcomes.len(), "command"),
            count(errors, "error"),
            count(self.warnings().count(), "warning")
        ));
    }

    fn json(&self, file: &str, errors: usize) -> Value {
        let in_operations = self.reply.dialect == Some(Dialect::Operations);
        let steps = self.reply.steps.iter();
        let blocks = steps.map(Step::kind).filter(|kind| *kind != Kind::Reply);
        let commands = self.outcomes.iter().map(output::preview_json);
        let failed = self.outcomes.iter().filter(|outcome| outcome.failed());
        let files = self.rewritten.iter().map(changes::to_json);
        json!({
            "file": file,
            "session": self.session,
            "held": self.held.as_ref().map(Error::to_string),
            "heldCode": self.held.as_ref().map(Error::code),
            "dialect": self.reply.dialect,
            "blocks": tally(blocks.map(|kind| output::name(kind, in_operations).to_owned())),
            "errors": errors,
            "errorsByKind": tally(failed.filter_map(Outcome::code)),
            "warnings": self.warnings().count(),
            "warningsByKind": tally(self.warnings().map(code)),
            "endsEarly": self.reply.unclosed,
            "commands": commands.collect::<Vec<_>>(),
            "withheld": self.withheld,
            // Of a guest nothing is known.
            "files": (!self.is_in_guest).then(|| files.collect::<Vec<_>>()),
        })
    }
}

/// The files whose contents the next outbox would show, those of which a part is shown also whole.
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

/// How often each is there.
fn tally(words: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    words.fold(BTreeMap::new(), |mut all, word| {
        *all.entry(word).or_default() += 1;
        all
    })
}

fn located(context: &Context, outcome: &Outcome) -> Styled {
    let line = Styled::from(format!("{:>5}  ", outcome.line));
    line + context.ui.for_results().preview(outcome)
}
