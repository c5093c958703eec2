//! Questions to the person: what the policy asks, which turns wait for a decision, and how a decision is carried out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::{ApprovedCommands, Engine, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Observer, QuestionPreview};
use crate::executor::{Executor, OpaquePreview, PreviewExecutor};
use crate::inbox::{ClaimOutcome, Claimed, REJECTED};
use crate::policy::{Ask, Grant};
use crate::protocol::operations::{Decision as ApprovalChoice, parse_approval};
use crate::protocol::{Dialect, Digest, Kind, Operation, Outcome, Step, StepContent};
use crate::session::record::{Begin, Origin};
use crate::session::{ApprovalDecision, DecidedQuestion, Question, Run, RunRequest, Session};
use crate::settings::{Config, Policy, Review, SandboxMode};
use crate::text::visible_line;
use crate::turn::{self, TurnInput, TurnResult};
use crate::workspace::Workspace;
use crate::{admission, atomic, outbox};

/// The result of one file in the approvals folder.
#[derive(Debug)]
pub struct HandledApproval {
    /// The file's name.
    pub name: OsString,
    /// The turn that it continued; otherwise why it was rejected and moved to `rejected/`.
    pub turn: Result<Turn, String>,
}

/// How many completed runs are kept.
const RUNS_KEPT: usize = 100;

/// The longest approval file, in bytes.
const APPROVAL_LIMIT: u64 = 1 << 20;

/// Why an approval that existed before the question is rejected.
const EARLY: &str = "it was there before the question; a decision must be given after the question";

impl Engine {
    /// The policy of a session in the present settings; for a run, the policy that it began with.
    pub fn policy_of(&self, session: &Session) -> Result<Policy> {
        match &session.run {
            Some(run) => Ok(run.policy.clone()),
            None => self.config.policy(&session.policy),
        }
    }

    /// The policy that a turn began with. Journals of earlier versions do not contain it; then the present one.
    pub(super) fn policy_of_turn(&self, begin: &Begin) -> Result<Policy> {
        begin.policy.clone().map_or_else(|| self.policy_of(&begin.session), Ok)
    }

    /// A preview of the operation or the reply that a waiting turn asks about.
    pub fn preview_question(&self, session: &Session) -> QuestionPreview {
        preview_question(&self.config, &self.workspace, session)
    }

    /// A turn that only asks about the whole reply, if the person wants to review replies, this one has operations, and it
    /// has not begun.
    pub(super) fn review(
        &self,
        begin: &Begin,
        known: &BTreeMap<usize, Outcome>,
    ) -> Option<TurnResult> {
        let acts = |step: &Step| matches!(step.asks, StepContent::Operation(_));
        let is_new = begin.decision.is_none() && known.is_empty() && begin.session.run.is_none();
        if self.config.review == Review::Off || !is_new || !begin.steps().iter().any(acts) {
            return None;
        }
        let reason = "You want to review each reply before it is carried out";
        let question = Question {
            step: None,
            id: unique_id(begin, "reply"),
            kind: Kind::Reply,
            ask: Ask {
                reason: reason.to_owned(),
                policy: "review".to_owned(),
                opens: Grant::default(),
                always: false,
            },
            digest: admission::reply_identity(begin),
            at: self.now(),
        };
        let seen = begin.session.seen.clone();
        Some(TurnResult { outcomes: Vec::new(), question: Some(question), seen })
    }

    /// Records the person's decision about the question of a session or a run. A session's turn continues at once; a run
    /// continues when it is resumed.
    pub fn decide(
        &mut self,
        stem: &str,
        decision: ApprovalDecision,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        let session = self.store.load_stem(stem)?;
        let question = &decision.question;
        if session.question() != Some(question) {
            return Err(Error::nothing_pending(&question.id));
        }
        if decision.approved && decision.further {
            let Some(Operation::Run(run)) =
                session.asked_operation().filter(|_| question.ask.always)
            else {
                return Err(Error::not_for_good());
            };
            ApprovedCommands::of(&self.config).add(run, self.is_guarded(&session)?)?;
        }
        self.continue_with(session, decision, None, observer)
    }

    fn continue_with(
        &mut self,
        mut session: Session,
        decision: ApprovalDecision,
        claimed: Option<(Origin, Claimed)>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        let is_kept = session.run.is_some() && session.question().is_some();
        if let (Some(run), Some(pending), false) = (&mut session.run, &session.pending, is_kept) {
            run.told = pending.outcomes.len();
            let decided = outbox::question(pending).zip(pending.question.step);
            let approved = decision.approved;
            let decided = decided.map(|(event, step)| DecidedQuestion { step, event, approved });
            run.decided.extend(decided);
        }
        let begin = Begin::of(session, Vec::new(), Some(decision), claimed);
        if is_kept {
            self.transact(&begin, observer)
        } else {
            self.carry_out_steps(begin, observer)
        }
    }

    /// The session after a turn that only records the decision about a run, which is resumed later.
    pub(super) fn with_decision(&self, begin: &Begin) -> Session {
        let mut session = begin.session.clone();
        if let Some(pending) = &mut session.pending {
            pending.decision.clone_from(&begin.decision);
        }
        session.updated_at = self.now();
        session
    }

    /// Handles the files in the approvals folder. Also returns whether to look again soon, since a file may be complete
    /// later without a change that is noticed.
    pub fn handle_approvals(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<HandledApproval>, bool)> {
        let scan = match self.approvals.scan(&[]) {
            Ok(scan) => scan,
            // The folder was removed.
            Err(_) => {
                self.approvals.create_folders()?;
                self.approvals.scan(&[])?
            }
        };
        let mut handled = Vec::new();
        let mut again = scan.scan_again;
        for path in scan.ready {
            let name = path.file_name().unwrap_or_default().to_owned();
            let turn = match self.approvals.claim(&path)? {
                ClaimOutcome::Gone => continue,
                ClaimOutcome::NotYet => {
                    again = true;
                    continue;
                }
                ClaimOutcome::Rejected(why) => Err(why),
                ClaimOutcome::Reply(claimed) => match match_approval(
                    claimed.reply.text(),
                    &self.store.pending()?,
                )
                .and_then(|matched| {
                    self.check_workspace(&matched.0).map(|()| matched).map_err(|e| e.to_string())
                }) {
                    Ok((session, decision)) => {
                        let claimed = Some((Origin::Approvals, claimed));
                        Ok(self.continue_with(session, decision, claimed, observer)?)
                    }
                    Err(why) => {
                        self.approvals.put_away(&claimed, REJECTED, &why)?;
                        Err(why)
                    }
                },
            };
            handled.push(HandledApproval { name, turn });
        }
        Ok((handled, again))
    }

    /// Carries out one message as a new run. `asked` is the ID and the request of a run that was requested by ID.
    pub fn run(
        &mut self,
        steps: Vec<Step>,
        policy: Policy,
        asked: Option<(String, RunRequest)>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        self.drop_old_runs()?;
        let (id, request) = asked.unzip();
        let id = id.unwrap_or_else(|| self.free_id());
        let mut run = Session::new(id, "", Vec::new(), self.now());
        run.dialect = Dialect::Operations;
        run.policy.clone_from(&policy.name);
        run.run = Some(Run { policy, told: 0, request, decided: Vec::new() });
        run.workspace = self.workspace_name();
        self.carry_out_steps(Begin::of(run, steps, None, None), observer)
    }

    /// Continues a waiting run if there is a decision; otherwise returns it unchanged.
    pub fn resume_run(&mut self, stem: &str, observer: &mut dyn Observer) -> Result<Turn> {
        // The decision may still be in the approvals folder.
        for HandledApproval { name, turn } in self.handle_approvals(observer)?.0 {
            if let Err(why) = turn {
                let name = name.to_string_lossy();
                let name = visible_line(&name);
                let warning = format!("the approval {name} was put into rejected/: {why}");
                observer.event(Event::Warning(&warning));
            }
        }
        let run = self.store.load_stem(stem)?;
        match run.pending.as_ref().and_then(|pending| pending.decision.clone()) {
            Some(decision) => self.continue_with(run, decision, None, observer),
            None => Ok(Turn { session: run, outbox: None }),
        }
    }

    /// Removes old completed runs. The newest are kept, so that their events can be requested again.
    fn drop_old_runs(&self) -> Result<()> {
        let stems = self.store.runs()?;
        let Some(excess) = stems.len().checked_sub(RUNS_KEPT) else { return Ok(()) };
        let written = |stem: &String| {
            let path = self.config.sessions.join(format!("{stem}.json"));
            path.metadata().and_then(|found| found.modified()).ok()
        };
        let mut stems: Vec<_> = stems.into_iter().map(|stem| (written(&stem), stem)).collect();
        stems.sort();
        for (_, stem) in stems.into_iter().take(excess) {
            if self.store.load_stem(&stem).is_ok_and(|run| run.is_complete) {
                self.store.remove(&stem)?;
            }
        }
        Ok(())
    }

    /// Rejects the files in the approvals folder when `asking` is about to ask, since none can answer its question; a file
    /// that answers another session's question stays. Also makes earlier removals from the folder durable, so that a power
    /// loss cannot bring a file back after the question.
    pub(super) fn refuse_early_approvals(
        &mut self,
        asking: &Session,
        observer: &mut dyn Observer,
    ) -> Result<()> {
        let folder = self.approvals.folder().to_owned();
        let waiting = self.store.pending()?;
        let Ok(entries) = fs::read_dir(&folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder || entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let path = entry.path();
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && answers_another(&path, asking, &waiting) {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.approvals.reject_file(&path, EARLY)?;
            let warning = format!("the approval {name} was put into rejected/: {EARLY}");
            observer.event(Event::Warning(&warning));
        }
        self.approvals.sync()
    }
}

/// The waiting session that an approval file is about, and its decision.
fn match_approval(text: &str, waiting: &[Session]) -> Result<(Session, ApprovalDecision), String> {
    let approval = parse_approval(text).map_err(|faults| faults.to_string())?;
    let id = approval.operation_id.as_ref();
    let is_named = |session: &&Session| {
        session.question().is_some_and(|asked| id.is_none_or(|id| *id == asked.id))
    };
    let about = id.map(|id| format!(" '{id}'")).unwrap_or_default();
    let mut matches = waiting.iter().filter(is_named);
    let (session, question) = matches
        .next()
        .and_then(|session| Some((session, session.question()?.clone())))
        .ok_or_else(|| format!("no operation{about} waits for a decision"))?;
    if matches.next().is_some() {
        return Err(format!(
            "several operations{about} wait for a decision; `deaddrop approve` and `deny` take --session ID"
        ));
    }
    let approved = approval.decision == ApprovalChoice::Approved;
    let reason = approval.reason;
    Ok((session.clone(), ApprovalDecision { question, approved, further: false, reason }))
}

/// Whether a file in the approvals folder is about an operation of another waiting session.
fn answers_another(path: &Path, asking: &Session, waiting: &[Session]) -> bool {
    let mut text = String::new();
    let file = atomic::open_own(File::options().read(true), path);
    let read = file.and_then(|file| file.take(APPROVAL_LIMIT).read_to_string(&mut text));
    read.is_ok()
        && match_approval(&text, waiting).is_ok_and(|(session, _)| session.stem() != asking.stem())
}

/// A preview, in the present workspace, of the operation or the reply that a waiting turn asks about.
pub fn preview_question(
    config: &Config,
    workspace: &Workspace,
    session: &Session,
) -> QuestionPreview {
    let Some(pending) = &session.pending else { return QuestionPreview::default() };
    let mut executor = PreviewExecutor::new(workspace);
    // A failure is reported when the operation is executed.
    let outcomes = match (session.asked_operation(), pending.question.step) {
        // A preview does not contact the guest.
        (None, None) if config.guest.is_some() => {
            let mut unseen = OpaquePreview::new(&config.protected_names);
            preview(config, session, &pending.steps, &mut unseen).unwrap_or_default()
        }
        (None, None) => preview(config, session, &pending.steps, &mut executor).unwrap_or_default(),
        (Some(operation), _) if config.guest.is_none() && operation.path().is_some() => {
            let _ = executor.perform(operation, pending.question.ask.opens, &mut |_| Ok(()));
            Vec::new()
        }
        _ => Vec::new(),
    };
    QuestionPreview { outcomes, rewritten: executor.into_changes() }
}

/// The outcomes that steps would have under the policy of a session.
pub fn preview(
    config: &Config,
    session: &Session,
    steps: &[Step],
    executor: &mut dyn Executor,
) -> Result<Vec<Outcome>> {
    let policy = config.policy(&session.policy)?;
    // Most guests confine commands, so this one is assumed to.
    let guarded = config.guest.is_some() || config.sandbox.mode != SandboxMode::Off;
    let approved = ApprovedCommands::of(config);
    let input = TurnInput {
        steps,
        known: &BTreeMap::new(),
        decision: None,
        session,
        judge: &|operation, executor| {
            let decision = turn::judge(&policy, guarded, operation, executor)?;
            Ok(approved.relax(decision, operation, guarded))
        },
        question_id: None,
        stopped: None,
        now: &|| session.updated_at,
    };
    Ok(turn::run(&input, executor, &mut (), &mut ())?.outcomes)
}

/// The longest ID of a model that is shown to the person, in bytes.
const ID_LIMIT: usize = 1_000;

/// The ID of a question about an operation: the operation's own ID, unless an earlier question had it; otherwise a
/// unique one. So a decision about one operation cannot apply to another.
pub(super) fn question_id(begin: &Begin, step: usize) -> String {
    let Begin { session, .. } = begin;
    // The same operation is asked about again, since it has changed.
    let repeated = begin.decision.as_ref().map(|decision| &decision.question);
    if let Some(question) = repeated.filter(|question| question.step == Some(step)) {
        return question.id.clone();
    }
    let asked = begin.steps().get(step).and_then(|step| step.asked.as_ref());
    if let Some(id) = asked.and_then(|asked| asked.id.as_ref())
        && id.len() <= ID_LIMIT
        && !session.asked.contains(id)
    {
        return id.clone();
    }
    unique_id(begin, &step.to_string())
}

/// A unique ID for this part of a reply.
fn unique_id(Begin { session, .. }: &Begin, part: &str) -> String {
    let what = format!("{}-{}-{part}", session.secret, session.sequence);
    format!("op-{}", &Digest::of(what.as_bytes()).as_str()[..8])
}
