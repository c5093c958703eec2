//! Whether an operation may be executed: what the policy says about it, and what the person decided.

use std::iter;

use super::TurnInput;
use crate::error::Result;
use crate::executor::Executor;
use crate::policy::{self, Access, Ask, Denial, Grant, NEW_REPOSITORY, Verdict};
use crate::protocol::{
    Change, Digest, Failure, FailureKind, Operation, Part, Reading, RelPath, ShellCommand, Step,
    StepContent,
};
use crate::session::{ApprovalDecision, Question, Session};
use crate::settings::Policy;
use crate::text::named;

/// Whether an operation may be executed.
pub(super) enum Permission {
    /// It may, with these rights; perhaps with a warning.
    Granted(Grant, Option<String>),
    /// It may not.
    Denied(Failure),
    /// The person is asked first.
    Asked(Box<Question>),
}

/// Whether step `n` may be executed. An approval counts only while the operation and what it would change are the same.
pub(super) fn check_permission(
    input: &TurnInput,
    n: usize,
    step: &Step,
    operation: &Operation,
    executor: &dyn Executor,
) -> Result<Permission> {
    if let Some(why) = &step.left_out {
        let colon = if why.is_empty() { "" } else { ": " };
        let why = format!("{} was left out by the user{colon}{why}", description(operation));
        return Ok(Permission::Denied(Failure::new(FailureKind::Denied, why)));
    }
    let about_reply = |decision: &&ApprovalDecision| decision.question.step.is_none();
    if let Some(decision) = input.decision.filter(about_reply).filter(|given| !given.approved) {
        return Ok(Permission::Denied(denied("this reply", decision)));
    }
    let decision = input.decision.filter(|decision| decision.question.step == Some(n));
    if let Some(decision) = decision.filter(|decision| !decision.approved) {
        return Ok(Permission::Denied(denied(&description(operation), decision)));
    }
    let ask = match (input.judge)(operation, executor)? {
        Verdict::Allow => return Ok(Permission::Granted(Grant::default(), None)),
        Verdict::Deny(Denial { reason, suggestion, .. }) => {
            let failure = Failure::new(FailureKind::Denied, reason);
            return Ok(Permission::Denied(Failure { suggestion, ..failure }));
        }
        Verdict::Ask(ask) => ask,
    };
    if let Some(denial) = input.decision.filter(|it| it.further && !it.approved) {
        let rest = "this and everything else in this reply that needs approval";
        return Ok(Permission::Denied(denied(rest, denial)));
    }
    let Some(question_id) = input.question_id else {
        let warning = format!("the user is asked before this: {}", ask.reason);
        return Ok(Permission::Granted(ask.opens, Some(warning)));
    };
    let digest = binding(operation, executor)?;
    let reason = match decision.map(|decision| &decision.question) {
        Some(approved) if approved.digest == digest && approved.ask.opens == ask.opens => {
            return Ok(Permission::Granted(ask.opens, None));
        }
        Some(_) => format!("It has changed since it was approved: {}", ask.reason),
        None => ask.reason,
    };
    Ok(Permission::Asked(Box::new(Question {
        step: Some(n),
        id: question_id(n),
        kind: step.kind(),
        ask: Ask { reason, ..ask },
        digest,
        at: (input.now)(),
    })))
}

/// Identifies a reply to a session and the present state of everything that its steps would change.
pub fn state_of(
    session: &Session,
    reply: &Digest,
    steps: &[Step],
    executor: &dyn Executor,
) -> Result<Digest> {
    let Session { id, sequence, policy, .. } = session;
    let mut bound = format!("{id}\0{sequence}\0{policy}\0{}", reply.as_str());
    for step in steps {
        if let StepContent::Operation(operation) = &step.asks {
            bound += binding(operation, executor)?.as_str();
        }
    }
    Ok(Digest::of(bound.as_bytes()))
}

/// Identifies the operation, by its serialized form, and the present state of what it would change.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn binding(operation: &Operation, executor: &dyn Executor) -> Result<Digest> {
    let mut bound = serde_json::to_string(operation).expect("texts and numbers become JSON");
    // A link may lead elsewhere later.
    let real = executor.resolved_path(operation)?;
    bound += &format!("\0{}\0", real.as_ref().map_or("", RelPath::as_str));
    if let Operation::Move { .. } = operation
        && let Some(to) = executor.path_facts(operation)?.and_then(|look| look.moved?.to)
    {
        bound += &format!("{to}\0");
    }
    if let Some(standing) = executor.content_digest(operation)? {
        bound += standing.as_str();
    }
    Ok(Digest::of(bound.as_bytes()))
}

fn description(operation: &Operation) -> String {
    match (operation, operation.path()) {
        (Operation::Run(run), _) => named(&run.command),
        (_, Some(path)) => format!("'{path}'"),
        _ => "it".to_owned(),
    }
}

fn denied(what: &str, decision: &ApprovalDecision) -> Failure {
    let why = decision.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    Failure::new(FailureKind::Denied, format!("The user denied {what}{why}"))
}

/// The decision of `policy` about an operation: about the path as written, about the file that links lead to, and about
/// protected names. `guarded` says whether protected names are guarded from commands.
pub fn judge(
    policy: &Policy,
    guarded: bool,
    operation: &Operation,
    executor: &dyn Executor,
) -> Result<Verdict> {
    if let Operation::Run(run) = operation {
        let decision = policy::run(policy, run, guarded);
        let is_about_git = matches!(&decision, Verdict::Ask(ask) if ask.opens.repository);
        let makes_repository = is_about_git && makes_repository(run, executor)?;
        return Ok(if makes_repository { Verdict::Deny(denied_repository()) } else { decision });
    }
    let access = match operation {
        Operation::Message { .. } | Operation::Done { .. } | Operation::Run(_) => {
            return Ok(Verdict::Allow);
        }
        Operation::List { path: None } | Operation::Search { path: None, .. } => {
            return Ok(policy::folder(policy, None));
        }
        Operation::Create { .. } | Operation::Edit { .. } => Access::Write,
        // A moved file is deleted in its old place and written in the new one.
        Operation::Delete { .. } | Operation::Move { .. } => Access::Delete,
        Operation::Read { .. } | Operation::List { .. } | Operation::Search { .. } => Access::Read,
    };
    let (Some(path), Some(look)) = (operation.path(), executor.path_facts(operation)?) else {
        return Ok(Verdict::Allow);
    };
    let size = match operation {
        Operation::Create { content, .. } => Some(content.as_bytes().len() as u64),
        Operation::Edit { change, .. } => look.size.map(|size| size_after(change, size)),
        _ => look.size,
    };
    let moved = look.moved.as_deref();
    let mut paths: Vec<_> = iter::once(path).chain(&look.real).map(|path| (access, path)).collect();
    if let Operation::Move { to, .. } = operation {
        let real_to = moved.and_then(|moved| moved.to.as_ref());
        paths.extend(iter::once(to).chain(real_to).map(|to| (Access::Write, to)));
    }
    // Most paths resolve to themselves.
    paths.dedup();
    let mut decision = Verdict::Allow;
    for (access, path) in paths {
        decision = decision.stricter(match operation {
            // Only a file has a size.
            Operation::List { .. } | Operation::Search { .. } if size.is_none() => {
                policy::folder(policy, Some(path))
            }
            _ => policy::path(policy, access, path, size),
        });
        for (rest, size) in moved.iter().flat_map(|moved| &moved.files) {
            // An invalid path cannot be the target of a move.
            if let Ok(file) = RelPath::parse(&format!("{path}/{rest}")) {
                decision = decision.stricter(policy::path(policy, access, &file, Some(*size)));
            }
        }
    }
    if !look.protected || access == Access::Read {
        return Ok(decision);
    }
    let leads = look.real.as_ref().filter(|real| *real != path);
    let leads = leads.map_or(String::new(), |real| format!(" leads to '{real}', which"));
    let what = match operation {
        Operation::Move { path, to } => {
            format!("Moving '{path}' to '{to}' changes a protected file")
        }
        _ => format!("'{path}'{leads} is protected"),
    };
    Ok(decision.stricter(Verdict::Ask(Ask {
        reason: format!(
            "{what}: other programs act on such files, so the user must approve the change"
        ),
        policy: "files.protected".to_owned(),
        opens: Grant { protected: true, repository: false },
        always: false,
    })))
}

/// Whether a command creates a repository where there is none. False if unknown.
fn makes_repository(run: &ShellCommand, executor: &dyn Executor) -> Result<bool> {
    let cwd = run.cwd.as_ref().map_or(".", |cwd| cwd.as_str());
    let Some(made) = policy::git::inits(&run.command) else { return Ok(false) };
    for part in [".git", ".git/HEAD"] {
        let Ok(path) = RelPath::parse(&format!("{cwd}/{made}/{part}")) else { return Ok(false) };
        let look = executor
            .path_facts(&Operation::Read { path, reading: Reading::Later(Part::default()) })?;
        // Otherwise there may be a repository, a worktree or a submodule.
        if !look.is_some_and(|it| it.protected && it.real.is_some() && it.size.is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The denial of a command that creates a repository. An approval would be useless, since the repository is removed
/// after the command.
fn denied_repository() -> Denial {
    Denial {
        reason: format!("Commands must not create a repository in the workspace: {NEW_REPOSITORY}"),
        policy: policy::REPOSITORY.to_owned(),
        suggestion: Some("Leave git init out, and ask the user to run it if a repository is wanted; git add and git commit then need the user's approval".to_owned()),
    }
}

/// The minimum size of a file after an edit.
fn size_after(change: &Change, size: u64) -> u64 {
    match change {
        // The size of the old lines is unknown without reading them.
        Change::Lines { with, .. } => with.len() as u64,
        Change::First(replacements) | Change::Once(replacements) => {
            replacements.iter().fold(size, |size, replacement| {
                (size + replacement.new.len() as u64).saturating_sub(replacement.old.len() as u64)
            })
        }
    }
}
