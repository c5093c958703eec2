//! Whether an operation may be executed: what the policy says about it, and what the person decided.

use super::TurnInput;
use crate::config::Policy;
use crate::error::Result;
use crate::place::Place;
use crate::policy::{self, Access, Ask, Decision, Denial, Opens};
use crate::protocol::{
    Change, Digest, Failure, FailureKind, Operation, Part, Reading, RelPath, ShellCommand, Step,
};
use crate::session::{Question, Verdict};
use crate::text::named;

/// Whether an operation may be executed.
pub(super) enum Permission {
    /// It may, with these rights; perhaps with a warning.
    Granted(Opens, Option<String>),
    /// It may not.
    Denied(Failure),
    /// The person is asked first.
    Asked(Box<Question>),
}

/// Seeks permission for step `n`. An approval is valid for the operation and the state of what it changes.
pub(super) fn seek(
    input: &TurnInput,
    n: usize,
    step: &Step,
    operation: &Operation,
    place: &dyn Place,
) -> Result<Permission> {
    let verdict = input.verdict.filter(|verdict| verdict.question.step == n);
    if let Some(verdict) = verdict.filter(|verdict| !verdict.approved) {
        return Ok(Permission::Denied(denied_by_person(verdict, operation)));
    }
    let ask = match (input.judge)(operation, place)? {
        Decision::Allow => return Ok(Permission::Granted(Opens::default(), None)),
        Decision::Deny(Denial { reason, suggestion, .. }) => {
            let failure = Failure::new(FailureKind::Denied, reason);
            return Ok(Permission::Denied(Failure { suggestion, ..failure }));
        }
        Decision::Ask(ask) => ask,
    };
    let Some(name) = input.name_question else {
        let warning = format!("the user is asked before this: {}", ask.reason);
        return Ok(Permission::Granted(ask.opens, Some(warning)));
    };
    let digest = binding(operation, place)?;
    let reason = match verdict.map(|verdict| &verdict.question) {
        Some(approved) if approved.digest == digest && approved.ask.opens == ask.opens => {
            return Ok(Permission::Granted(ask.opens, None));
        }
        Some(_) => format!("It has changed since it was approved: {}", ask.reason),
        None => ask.reason,
    };
    Ok(Permission::Asked(Box::new(Question {
        step: n,
        id: name(n),
        kind: step.kind(),
        ask: Ask { reason, ..ask },
        digest,
        at: (input.now)(),
    })))
}

/// Identifies the operation and the present state of what it would change.
///
/// # Panics
/// Never: texts and numbers always become JSON.
fn binding(operation: &Operation, place: &dyn Place) -> Result<Digest> {
    let mut bound = serde_json::to_string(operation).expect("texts and numbers become JSON");
    // Links may lead elsewhere later.
    let real = place.place_of(operation)?;
    bound += &format!("\0{}\0", real.as_ref().map_or("", RelPath::as_str));
    if let Operation::Move { .. } = operation
        && let Some(to) = place.look(operation)?.and_then(|look| look.moved?.to)
    {
        bound += &format!("{to}\0");
    }
    if let Some(standing) = place.standing(operation)? {
        bound += standing.as_str();
    }
    Ok(Digest::of(bound.as_bytes()))
}

fn denied_by_person(verdict: &Verdict, operation: &Operation) -> Failure {
    let what = match (operation, operation.path()) {
        (Operation::Run(run), _) => named(&run.command),
        (_, Some(path)) => format!("'{path}'"),
        _ => "it".to_owned(),
    };
    let why = verdict.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    Failure::new(FailureKind::Denied, format!("The user denied {what}{why}"))
}

/// The decision of `policy` about an operation in `place`: about the path as written, about the file that
/// links lead to, and about protected names. `guarded` says whether commands cannot change protected names.
pub fn judge(
    policy: &Policy,
    guarded: bool,
    operation: &Operation,
    place: &dyn Place,
) -> Result<Decision> {
    if let Operation::Run(run) = operation {
        let decision = policy::run(policy, run, guarded);
        let denied = new_repository(&decision, run, place)?;
        return Ok(denied.map_or(decision, Decision::Deny));
    }
    let access = match operation {
        Operation::Message { .. } | Operation::Done { .. } | Operation::Run(_) => {
            return Ok(Decision::Allow);
        }
        Operation::List { path: None } | Operation::Search { path: None, .. } => {
            return Ok(policy::folder(policy, None));
        }
        Operation::Create { .. } | Operation::Edit { .. } => Access::Write,
        // A moved file is deleted in its old place and written in the new one.
        Operation::Delete { .. } | Operation::Move { .. } => Access::Delete,
        Operation::Read { .. } | Operation::List { .. } | Operation::Search { .. } => Access::Read,
    };
    let (Some(path), Some(look)) = (operation.path(), place.look(operation)?) else {
        return Ok(Decision::Allow);
    };
    let size = match operation {
        Operation::Create { content, .. } => Some(content.as_bytes().len() as u64),
        Operation::Edit { change, .. } => look.size.map(|size| size_after(change, size)),
        _ => look.size,
    };
    let moved = look.moved.as_deref();
    let real = look.real.as_ref().filter(|real| *real != path);
    let mut places = vec![(access, path)];
    places.extend(real.map(|real| (access, real)));
    if let Operation::Move { to, .. } = operation {
        let real_to = moved.and_then(|moved| moved.to.as_ref()).filter(|real| *real != to);
        places.extend([to].into_iter().chain(real_to).map(|to| (Access::Write, to)));
    }
    let mut decision = Decision::Allow;
    for (access, place) in places {
        decision = decision.stricter(match operation {
            // Only a file has a size.
            Operation::List { .. } | Operation::Search { .. } if size.is_none() => {
                policy::folder(policy, Some(place))
            }
            _ => policy::path(policy, access, place, size),
        });
        for (rest, size) in moved.iter().flat_map(|moved| &moved.files) {
            // A path that is not valid cannot be moved to.
            if let Ok(file) = RelPath::parse(&format!("{place}/{rest}")) {
                decision = decision.stricter(policy::path(policy, access, &file, Some(*size)));
            }
        }
    }
    if !look.protected || access == Access::Read {
        return Ok(decision);
    }
    let leads = real.map_or(String::new(), |real| format!(" leads to '{real}', which"));
    Ok(decision.stricter(Decision::Ask(Ask {
        reason: match operation {
            Operation::Move { path, to } => format!(
                "Moving '{path}' to '{to}' changes what only the user may write, since others act on it"
            ),
            _ => format!(
                "'{path}'{leads} is for the user alone to write, since others act on such files"
            ),
        },
        policy: "files.protected".to_owned(),
        opens: Opens { protected: true, repository: false },
    })))
}

/// The denial of a command that would make a new repository in the workspace. An approval would be of no
/// use, since the repository would be removed after the command.
fn new_repository(
    decision: &Decision,
    run: &ShellCommand,
    place: &dyn Place,
) -> Result<Option<Denial>> {
    let Decision::Ask(Ask { opens: Opens { repository: true, .. }, .. }) = decision else {
        return Ok(None);
    };
    let cwd = run.cwd.as_ref().map_or(".", |cwd| cwd.as_str());
    let Some(made) = policy::git::inits(&run.command) else { return Ok(None) };
    for part in [".git", ".git/HEAD"] {
        let Ok(path) = RelPath::parse(&format!("{cwd}/{made}/{part}")) else { return Ok(None) };
        let read = Operation::Read { path, reading: Reading::Later(Part::default()) };
        // Otherwise there is a repository, a worktree or a submodule, or nobody knows.
        let is_new = place
            .look(&read)?
            .is_some_and(|look| look.protected && look.real.is_some() && look.size.is_none());
        if !is_new {
            return Ok(None);
        }
    }
    Ok(Some(Denial {
        reason: "Making a repository in the workspace is for the user: one that a command makes is put away after it"
            .to_owned(),
        policy: policy::REPOSITORY.to_owned(),
        suggestion: Some(
            "Leave git init out, and ask the user to run it where a repository is wanted; once it is there, git add and git commit are asked about"
                .to_owned(),
        ),
    }))
}

/// The least size of a file after an edit.
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
