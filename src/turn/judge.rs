//! What a policy says of an operation where it is to happen: of the path as it was asked for, of the
//! file that links on the way lead to, and of names that only the person may write.

use crate::config::Policy;
use crate::error::Result;
use crate::place::Place;
use crate::policy::{self, Access, Ask, Decision, Opens};
use crate::protocol::{Change, Operation, RelPath};

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
        Operation::Run(run) => return Ok(policy::run(policy, run, guarded)),
        Operation::Create { path, .. } | Operation::Edit { path, .. } => (Access::Write, path),
        Operation::Delete { path } | Operation::Move { path, .. } => (Access::Delete, path),
        Operation::Read { path, .. }
        | Operation::List { path: Some(path) }
        | Operation::Search { path: Some(path), .. } => (Access::Read, path),
        Operation::List { path: None } | Operation::Search { path: None, .. } => {
            return Ok(Decision::Allow);
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
    Decision::Ask(Ask {
        reason: format!(
            "'{path}'{real} has a name that only the user may write, since others act on such files"
        ),
        policy: "files.protected".to_owned(),
        opens: Opens { protected: true, repository: false },
    })
}
