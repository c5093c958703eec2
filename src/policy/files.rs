//! What a policy says of an operation on a file, told from its path and size.

use super::decision::Decision;
use crate::protocol::RelPath;
use crate::settings::matches;
use crate::settings::{FilePolicy, Policy};
use crate::text::byte_count;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its contents are looked at.
    Read,
    /// It is made or changed.
    Write,
    /// It is removed.
    Delete,
}

/// What the policy says of doing that to a file. `size` is how large it is, or is to become, in
/// bytes, where that is known.
pub fn path(policy: &Policy, access: Access, path: &RelPath, size: Option<u64>) -> Decision {
    of_file(&policy.files, access, Some(path), size)
}

/// Whether a search may look into a file of that path and size: where the person would be asked, too,
/// it may not.
pub fn may_search(files: &FilePolicy) -> impl Fn(&RelPath, u64) -> bool {
    move |path, size| of_file(files, Access::Read, Some(path), Some(size)) == Decision::Allow
}

/// What the policy says of looking into a folder, or into the workspace itself. What lies in it is
/// judged file by file.
pub fn folder(policy: &Policy, folder: Option<&RelPath>) -> Decision {
    let files = FilePolicy { allowed: Vec::new(), ..policy.files.clone() };
    of_file(&files, Access::Read, folder, None)
}

/// None is the workspace itself.
fn of_file(
    files: &FilePolicy,
    access: Access,
    path: Option<&RelPath>,
    size: Option<u64>,
) -> Decision {
    if !files.enabled {
        return Decision::deny("files.enabled", "File operations are disabled", None);
    }
    if files.read_only && access != Access::Read {
        return Decision::deny(
            "files.readOnly",
            "Files are read-only",
            Some("Only read files, and tell the user what to change".to_owned()),
        );
    }
    let Some(path) = path else { return Decision::Allow };
    // Some file systems do not tell `.ENV` from `.env`.
    let lower = path.as_str().to_lowercase();
    let is_blocked = |pattern: &&String| matches(&pattern.to_lowercase(), &lower);
    if let Some(pattern) = files.blocked.iter().find(is_blocked) {
        return Decision::deny(
            "files.blockedPaths",
            format!("Path '{path}' is blocked"),
            Some(format!("Use a path that does not match {pattern}")),
        );
    }
    let is_allowed = |pattern: &String| matches(pattern, path.as_str());
    if !files.allowed.is_empty() && !files.allowed.iter().any(is_allowed) {
        return Decision::deny(
            "files.allowedPaths",
            format!("Path not in allowed list: {path}"),
            Some(format!("Allowed paths: {}", files.allowed.join(", "))),
        );
    }
    match (files.max_bytes, size) {
        (Some(most), Some(size)) if size > most && access != Access::Delete => Decision::deny(
            "files.maxFileSize",
            format!("File is too large: {}, and at most {most} are allowed", byte_count(size)),
            Some("Use smaller files".to_owned()),
        ),
        _ => Decision::Allow,
    }
}
