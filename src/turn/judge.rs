//! What a policy says of an operation in its place: of the path as it was asked for, and of the file
//! that links on the way lead to.

use crate::config::Policy;
use crate::place::Place;
use crate::policy::{self, Access, Decision};
use crate::protocol::{Change, Operation, RelPath};

/// What `policy` says of an operation. `guarded`: commands are kept from protected names.
pub fn judge(policy: &Policy, guarded: bool, operation: &Operation, place: &dyn Place) -> Decision {
    let (access, path, size) = match operation {
        Operation::Message { .. } | Operation::Done { .. } => return Decision::Allow,
        Operation::Run(run) => return policy::command(policy, &run.command, guarded),
        Operation::Create { path, content, .. } => {
            (Access::Write, path, Some(content.as_bytes().len() as u64))
        }
        Operation::Edit { path, change } => (Access::Write, path, size_after(change, path, place)),
        Operation::Delete { path } => (Access::Delete, path, None),
        Operation::Read { path, .. } => (Access::Read, path, None),
    };
    policy::path(policy, access, path, size)
}

/// How large a file will be at least, as far as that can be told beforehand.
fn size_after(change: &Change, _path: &RelPath, _place: &dyn Place) -> Option<u64> {
    match change {
        Change::Lines { with, .. } => Some(with.len() as u64),
        Change::First(_) => None,
    }
}
