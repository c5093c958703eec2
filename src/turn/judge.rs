//! What a policy says of an operation where it is to happen: of the path as it was asked for, of the
//! file that links on the way lead to, and of names that only the person may write.

use crate::config::Policy;
use crate::error::Result;
use crate::place::Place;
use crate::policy::{self, Access, Ask, Decision, Denial, Opens};
use crate::protocol::{Change, Operation, Part, Reading, RelPath, ShellCommand};
use crate::workspace::Look;

/// What `policy` says of an operation in `place`. `guarded`: commands are kept from protected names.
///
/// # Errors
/// The place cannot be looked at.
pub fn judge(
    policy: &Policy,
    guarded: bool,
    operation: &Operation,
    place: &dyn Place,
) -> Result<Decision> {
    let (access, path) = match operation {
        Operation::Message { .. } | Operation::Done { .. } => return Ok(Decision::Allow),
        Operation::Run(run) => {
            let decision = policy::run(policy, run, guarded);
            return Ok(match new_repository(&decision, run, place)? {
                Some(denied) => denied,
                None => decision,
            });
        }
        Operation::Create { path, .. } | Operation::Edit { path, .. } => (Access::Write, path),
        Operation::Delete { path } => (Access::Delete, path),
        Operation::Move { path, to } => {
            let Some(look) = place.look(operation)? else { return Ok(Decision::Allow) };
            return Ok(of_move(policy, path, to, &look));
        }
        Operation::Read { path, .. } => (Access::Read, path),
        Operation::List { path: None } | Operation::Search { path: None, .. } => {
            return Ok(policy::folder(policy, None));
        }
        Operation::List { path: Some(path) } | Operation::Search { path: Some(path), .. } => {
            let Some(look) = place.look(operation)? else { return Ok(Decision::Allow) };
            // A size tells that it is a file.
            let judged = |path: &RelPath| match look.size {
                Some(_) => policy::path(policy, Access::Read, path, look.size),
                None => policy::folder(policy, Some(path)),
            };
            let real = look.real.as_ref().map(judged);
            return Ok(real.into_iter().fold(judged(path), Decision::stricter));
        }
    };
    let Some(look) = place.look(operation)? else { return Ok(Decision::Allow) };
    let size = match operation {
        Operation::Create { content, .. } => Some(content.as_bytes().len() as u64),
        Operation::Edit { change, .. } => look.size.map(|size| size_after(change, size)),
        _ => look.size,
    };
    let real = look.real.as_ref().filter(|real| *real != path);
    let said = std::iter::once(path).chain(real);
    let strictest = said
        .map(|path| policy::path(policy, access, path, size))
        .reduce(Decision::stricter)
        .unwrap_or(Decision::Allow);
    if look.protected && access != Access::Read {
        return Ok(strictest.stricter(protected(path, real)));
    }
    Ok(strictest)
}

/// The refusal of a command that would make a repository in the workspace: whatever the person said, it
/// would be put away after it. One that is there is none of these.
fn new_repository(
    decision: &Decision,
    run: &ShellCommand,
    place: &dyn Place,
) -> Result<Option<Decision>> {
    let Decision::Ask(Ask { opens: Opens { repository: true, .. }, .. }) = decision else {
        return Ok(None);
    };
    let cwd = run.cwd.as_ref().map_or(".", |cwd| cwd.as_str());
    let Some(made) = policy::git::inits(&run.command) else { return Ok(None) };
    for part in [".git", ".git/HEAD"] {
        let Ok(path) = RelPath::parse(&format!("{cwd}/{made}/{part}")) else { return Ok(None) };
        let reads = Operation::Read { path, reading: Reading::Later(Part::default()) };
        match place.look(&reads)? {
            Some(look) if look.protected && look.real.is_some() && look.size.is_none() => {}
            // A worktree or a submodule, a repository, a name that is not protected, or nobody knows.
            _ => return Ok(None),
        }
    }
    Ok(Some(Decision::Deny(Denial {
        reason: "Making a repository in the workspace is for the user: one that a command makes is put away after it"
            .to_owned(),
        policy: policy::REPOSITORY.to_owned(),
        suggestion: Some(
            "Leave git init out, and ask the user to run it where a repository is wanted; once it is there, git add and git commit are asked about"
                .to_owned(),
        ),
    })))
}

/// What the policy says of a move: what goes from where it stands is deleted there, and written where
/// it comes to; all of a folder, file by file. The strictest wins.
fn of_move(policy: &Policy, path: &RelPath, to: &RelPath, look: &Look) -> Decision {
    let moved = look.moved.as_deref();
    let froms = [Some(path), look.real.as_ref()];
    let tos = [Some(to), moved.and_then(|moved| moved.to.as_ref())];
    let mut strictest = Decision::Allow;
    for (access, ends) in [(Access::Delete, froms), (Access::Write, tos)] {
        let mut ends: Vec<&RelPath> = ends.into_iter().flatten().collect();
        ends.dedup();
        for end in ends {
            strictest = strictest.stricter(policy::path(policy, access, end, look.size));
            for (rest, size) in moved.iter().flat_map(|moved| &moved.files) {
                // What no path can say is not moved.
                let Ok(file) = RelPath::parse(&format!("{end}/{rest}")) else { continue };
                strictest = strictest.stricter(policy::path(policy, access, &file, Some(*size)));
                if matches!(strictest, Decision::Deny(_)) {
                    return strictest;
                }
            }
        }
    }
    if look.protected {
        let reason = format!(
            "Moving '{path}' to '{to}' changes what only the user may write, since others act on it"
        );
        return strictest.stricter(asks(reason));
    }
    strictest
}

/// How large a file will be at least.
fn size_after(change: &Change, size: u64) -> u64 {
    match change {
        // What goes with the old lines would have to be read for it.
        Change::Lines { with, .. } => with.len() as u64,
        Change::First(replacements) | Change::Once(replacements) => {
            replacements.iter().fold(size, |size, replacement| {
                (size + replacement.new.len() as u64).saturating_sub(replacement.old.len() as u64)
            })
        }
    }
}

fn protected(path: &RelPath, real: Option<&RelPath>) -> Decision {
    let real = real.map_or(String::new(), |real| format!(" leads to '{real}', which"));
    asks(format!("'{path}'{real} is for the user alone to write, since others act on such files"))
}

fn asks(reason: String) -> Decision {
    Decision::Ask(Ask {
        reason,
        policy: "files.protected".to_owned(),
        opens: Opens { protected: true, repository: false },
    })
}
