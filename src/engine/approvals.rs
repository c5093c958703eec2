//! What the person is asked before it is done: what the policy says, what waits for them, and how
//! their decision goes on its way.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use super::{ApprovedCommands, Engine, Turn};
use crate::error::{Error, Result};
use crate::event::{Event, Observer, QuestionPreview};
use crate::executor::{Executor, OpaquePreview, PreviewExecutor};
use crate::inbox::{Claimed, REJECTED, Taken};
use crate::policy::{Ask, Grant};
use crate::protocol::operations::{Decision as Said, parse_approval};
use crate::protocol::{Asks, Dialect, Digest, Kind, Operation, Outcome, Step};
use crate::session::record::{Begin, Origin};
use crate::session::{ApprovalDecision, Decided, Question, Run, RunRequest, Session};
use crate::settings::{Config, Policy, Review, SandboxMode};
use crate::text::visible_line;
use crate::turn::{self, TurnInput, TurnResult};
use crate::workspace::Workspace;
use crate::{admission, atomic, outbox};

/// What came of one file among the approvals.
#[derive(Debug)]
pub struct HandledApproval {
    /// The name it was dropped under.
    pub name: OsString,
    /// What it led to; else why it counts for nothing, and was put into `rejected/`.
    pub turn: Result<Turn, String>,
}

/// So many runs that are over are kept.
const RUNS_KEPT: usize = 100;

/// No decision is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// Why an approval counts for nothing that was there before the question.
const EARLY: &str =
    "it was there before anything was asked; a decision counts only for a question that it follows";

impl Engine {
    /// The policy of a session as it is set now, or that which a run began with.
    pub fn policy_of(&self, session: &Session) -> Result<Policy> {
        match &session.run {
            Some(run) => Ok(run.policy.clone()),
            None => self.config.policy(&session.policy),
        }
    }

    /// The policy that a turn began with; journals of earlier versions do not contain it.
    pub(super) fn policy_of_turn(&self, begin: &Begin) -> Result<Policy> {
        begin.policy.clone().map_or_else(|| self.policy_of(&begin.session), Ok)
    }

    /// What would come of what a waiting turn asks about.
    pub fn preview_question(&self, session: &Session) -> QuestionPreview {
        preview_question(&self.config, &self.workspace, session)
    }

    /// A turn that only asks about its reply as a whole, where the person wants to see all that it would do, and nothing
    /// of it is done or decided.
    pub(super) fn review(
        &self,
        begin: &Begin,
        known: &BTreeMap<usize, Outcome>,
    ) -> Option<TurnResult> {
        let does = |step: &Step| matches!(step.asks, Asks::Operation(_));
        let is_new = begin.decision.is_none() && known.is_empty() && begin.session.run.is_none();
        if self.config.review == Review::Off || !is_new || !begin.steps().iter().any(does) {
            return None;
        }
        let reason = "You want to see what a reply would do before anything of it is done";
        let question = Question {
            step: None,
            id: made_up(begin, "reply"),
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

    /// Does what follows from the person's decision about the question of a session or a run: the turn
    /// of a session goes on, that of a run when somebody resumes it.
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
        self.follow(session, decision, None, observer)
    }

    fn follow(
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
            run.decided.extend(decided.map(|(event, step)| Decided { step, event, approved }));
        }
        let begin = Begin::of(session, Vec::new(), Some(decision), claimed);
        if is_kept {
            self.transact(&begin, observer)
        } else {
            self.carry_out_steps(begin, observer)
        }
    }

    /// The session of a turn that only records the decision about a run, for whoever resumes it.
    pub(super) fn with_decision(&self, begin: &Begin) -> Session {
        let mut session = begin.session.clone();
        if let Some(pending) = &mut session.pending {
            pending.decision.clone_from(&begin.decision);
        }
        session.updated_at = self.now();
        session
    }

    /// Takes what was dropped among the approvals. Tells too whether some of it may be finished soon
    /// without any sign of it.
    pub fn handle_approvals(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<HandledApproval>, bool)> {
        let look = match self.approvals.look(&[]) {
            Ok(look) => look,
            // Somebody removed the folder: make it whole.
            Err(_) => {
                self.approvals.make()?;
                self.approvals.look(&[])?
            }
        };
        let mut heard = Vec::new();
        let mut again = look.look_again;
        for path in look.ready {
            let name = path.file_name().unwrap_or_default().to_owned();
            let turn = match self.approvals.take(&path)? {
                Taken::Gone => continue,
                Taken::NotYet => {
                    again = true;
                    continue;
                }
                Taken::Rejected(why) => Err(why),
                Taken::Reply(claimed) => match meant(claimed.reply.text(), &self.store.pending()?)
                    .and_then(|found| {
                        self.check_workspace(&found.0).map(|()| found).map_err(|e| e.to_string())
                    }) {
                    Ok((session, decision)) => {
                        let claimed = Some((Origin::Approvals, claimed));
                        Ok(self.follow(session, decision, claimed, observer)?)
                    }
                    Err(why) => {
                        self.approvals.put_away(&claimed, REJECTED, &why)?;
                        Err(why)
                    }
                },
            };
            heard.push(HandledApproval { name, turn });
        }
        Ok((heard, again))
    }

    /// Carries out one message, as a run of its own; as the one that was asked for, if it was asked for under an id.
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

    /// Goes on with a run that waited, if somebody has decided; else it stays as it is.
    pub fn resume_run(&mut self, stem: &str, observer: &mut dyn Observer) -> Result<Turn> {
        // A decision may have been dropped that nobody has heard yet.
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
            Some(decision) => self.follow(run, decision, None, observer),
            None => Ok(Turn { session: run, outbox: None }),
        }
    }

    /// Of runs that are over only the newest are kept, for whoever asks for their events again.
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

    /// What lies among the approvals when `asking` is about to ask can be no answer to that; it may
    /// be one to another session's question. Nor can what was put away before: a power loss must not
    /// bring it back after the question.
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

/// Which question of those that wait a dropped decision is about, and what it says.
fn meant(text: &str, waiting: &[Session]) -> Result<(Session, ApprovalDecision), String> {
    let approval = parse_approval(text).map_err(|faults| faults.to_string())?;
    let id = approval.operation_id.as_ref();
    let named = |session: &&Session| {
        session.question().is_some_and(|asked| id.is_none_or(|id| *id == asked.id))
    };
    let about = id.map(|id| format!(" '{id}'")).unwrap_or_default();
    let mut found = waiting.iter().filter(named);
    let (session, question) = found
        .next()
        .and_then(|session| Some((session, session.question()?.clone())))
        .ok_or_else(|| format!("no operation{about} waits for a decision"))?;
    if found.next().is_some() {
        return Err(format!(
            "several operations{about} wait for a decision; `deaddrop approve` and `deny` take --session ID"
        ));
    }
    let approved = approval.decision == Said::Approved;
    let reason = approval.reason;
    Ok((session.clone(), ApprovalDecision { question, approved, further: false, reason }))
}

/// Whether a file among the approvals names an operation that another session waits with.
fn answers_another(path: &Path, asking: &Session, waiting: &[Session]) -> bool {
    let mut text = String::new();
    let file = atomic::open_own(File::options().read(true), path);
    let read = file.and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    let meant = || meant(&text, waiting);
    read.is_ok() && meant().is_ok_and(|(session, _)| session.stem() != asking.stem())
}

/// What would come of what a waiting turn asks about, as the workspace is.
pub fn preview_question(
    config: &Config,
    workspace: &Workspace,
    session: &Session,
) -> QuestionPreview {
    let Some(pending) = &session.pending else { return QuestionPreview::default() };
    let mut executor = PreviewExecutor::new(workspace);
    // What fails will be told when it is tried.
    let outcomes = match (session.asked_operation(), pending.question.step) {
        // What is in a guest is not looked at only to be shown.
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
    QuestionPreview { outcomes, rewritten: executor.rewritten() }
}

/// What steps would come to, by the policy of a session.
pub fn preview(
    config: &Config,
    session: &Session,
    steps: &[Step],
    executor: &mut dyn Executor,
) -> Result<Vec<Outcome>> {
    let policy = config.policy(&session.policy)?;
    // A guest is taken for one whose commands are confined, as most are.
    let guarded = config.guest.is_some() || config.sandbox.mode != SandboxMode::Off;
    let approved = ApprovedCommands::of(config);
    let input = TurnInput {
        steps,
        known: &BTreeMap::new(),
        decision: None,
        session,
        judge: &|operation, executor| {
            let decision = turn::judge(&policy, guarded, operation, executor)?;
            Ok(approved.settle(decision, operation, guarded))
        },
        name_question: None,
        stopped: None,
        now: &|| session.updated_at,
    };
    Ok(turn::run(&input, executor, &mut (), &mut ())?.outcomes)
}

/// Longer IDs are not repeated to the person, in bytes.
const ID_LIMIT: usize = 1_000;

/// The ID of an operation that the person is asked about: its own, unless they were asked about
/// something under that ID before; otherwise one that cannot occur twice. So a decision about one
/// operation is about no other.
pub(super) fn name(begin: &Begin, step: usize) -> String {
    let Begin { session, .. } = begin;
    // Asked again, since it changed: then it is the same operation.
    let again =
        begin.decision.as_ref().map(|given| &given.question).filter(|q| q.step == Some(step));
    if let Some(question) = again {
        return question.id.clone();
    }
    let asked = begin.steps().get(step).and_then(|step| step.asked.as_ref());
    if let Some(id) = asked.and_then(|asked| asked.id.as_ref())
        && id.len() <= ID_LIMIT
        && !session.asked.contains(id)
    {
        return id.clone();
    }
    made_up(begin, &step.to_string())
}

/// An ID that occurs once, for this part of a reply.
fn made_up(Begin { session, .. }: &Begin, part: &str) -> String {
    let what = format!("{}-{}-{part}", session.secret, session.sequence);
    format!("op-{}", &Digest::of(what.as_bytes()).as_str()[..8])
}
