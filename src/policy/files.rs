//! The policy's decision on a file operation, from the file's path and size.

use super::decision::Verdict;
use crate::protocol::RelPath;
use crate::settings::matches;
use crate::settings::{FilePolicy, Policy};
use crate::text::byte_count;

/// The kind of access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read the contents.
    Read,
    /// Create or change the file.
    Write,
    /// Delete the file.
    Delete,
}

/// Decides on an access to a file. `size` is the file's current or future size in bytes, if known.
pub fn path(policy: &Policy, access: Access, path: &RelPath, size: Option<u64>) -> Verdict {
    decide(&policy.files, access, Some(path), size)
}

/// Whether a search may read a file with this path and size. A search also skips files that need approval.
pub fn may_search(files: &FilePolicy) -> impl Fn(&RelPath, u64) -> bool {
    move |path, size| decide(files, Access::Read, Some(path), Some(size)) == Verdict::Allow
}

/// Decides on listing a folder; None is the workspace. Each file in the folder is decided on separately.
pub fn folder(policy: &Policy, folder: Option<&RelPath>) -> Verdict {
    let files = FilePolicy { allowed: Vec::new(), ..policy.files.clone() };
    decide(&files, Access::Read, folder, None)
}

/// Decides on an access to a path; None is the workspace itself.
fn decide(
    files: &FilePolicy,
    access: Access,
    path: Option<&RelPath>,
    size: Option<u64>,
) -> Verdict {
    if !files.enabled {
        return Verdict::deny("files.enabled", "File operations are disabled", None);
    }
    if files.read_only && access != Access::Read {
        return Verdict::deny(
            "files.readOnly",
            "Files are read-only",
            Some("Only read files, and tell the user what to change".to_owned()),
        );
    }
    let Some(path) = path else { return Verdict::Allow };
    // Some file systems treat `.ENV` and `.env` as the same file.
    let lower = path.as_str().to_lowercase();
    let is_blocked = |pattern: &&String| matches(&pattern.to_lowercase(), &lower);
    if let Some(pattern) = files.blocked.iter().find(is_blocked) {
        return Verdict::deny(
            "files.blockedPaths",
            format!("Path '{path}' is blocked"),
            Some(format!("Use a path that does not match {pattern}")),
        );
    }
    let is_allowed = |pattern: &String| matches(pattern, path.as_str());
    if !files.allowed.is_empty() && !files.allowed.iter().any(is_allowed) {
        return Verdict::deny(
            "files.allowedPaths",
            format!("Path not in allowed list: {path}"),
            Some(format!("Allowed paths: {}", files.allowed.join(", "))),
        );
    }
    match (files.max_bytes, size) {
        (Some(most), Some(size)) if size > most && access != Access::Delete => Verdict::deny(
            "files.maxFileSize",
            format!("File is too large: {}, and at most {most} are allowed", byte_count(size)),
            Some("Use smaller files".to_owned()),
        ),
        _ => Verdict::Allow,
    }
}
