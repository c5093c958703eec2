//! Files and folders: `read_file`, `write_file` and `list_dir`.
//!
//! Paths are absolute or relative to the root, and must stay inside it. `..` is resolved in the text of the path, as
//! for all paths from outside. An absolute path must lie under the root, by any name of the root, and is then made
//! relative to it. Links on the way are handled by the workspace.

use std::path::Path;

use super::Served;
use super::served::describe_failure;
use crate::error::Error;
use crate::executor::Executor;
use crate::policy::Grant;
use crate::protocol::jsonrpc::{Entries, FileContent, FileEntry, READ_LIMIT, RpcError, Written};
use crate::protocol::{Detail, Existing, Failure, Operation, PathFault, RelPath};
use crate::text::{byte_count, visible_line};
use crate::workspace::Contents;

/// The longest path that systems accept, in bytes.
const MAX_PATH: usize = 4095;
/// How many characters of a longer path are shown in the error.
const SHOWN_PATH: usize = 200;

impl Served {
    /// Reads a whole text file.
    pub(super) fn read_file(&self, sent: &str) -> Result<FileContent, RpcError> {
        let workspace = &self.serving.workspace;
        let path = resolve_file(workspace.path(), sent)?;
        self.check_root().map_err(|reason| with_path(sent, &reason))?;
        self.may_read(sent, &path)?;
        let policy = self.serving.policy.as_ref();
        let most = policy.and_then(|policy| policy.files.max_bytes);
        let limit = most.unwrap_or(READ_LIMIT).min(READ_LIMIT);
        // One more byte reveals that a file is too long if it claims to be empty, like those in /proc.
        let read =
            workspace.read(&path, limit + 1).map_err(|failure| with_path(sent, &failure.reason))?;
        let Contents { bytes, size, .. } = read;
        let shown = visible_line(sent);
        if size > limit {
            // If only `limit + 1` bytes were read, the real size may be unknown.
            let least = if size == limit + 1 { "at least " } else { "" };
            return Err(RpcError::internal(format!(
                "'{shown}' is too long: {least}{size} bytes, and files up to {} are read; take parts of it by a command",
                byte_count(limit)
            )));
        }
        String::from_utf8(bytes).map(|content| FileContent { content }).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            RpcError::internal(format!(
                "'{shown}' is not UTF-8 text ({}, the first that is none at {at}); read it by a command, such as base64",
                byte_count(size)
            ))
        })
    }

    /// Creates or replaces a file, and creates missing parent folders.
    pub(super) fn write_file(&self, sent: &str, content: String) -> Result<Written, RpcError> {
        let path = resolve_file(self.serving.workspace.path(), sent)?;
        self.check_root().map_err(|reason| with_path(sent, &reason))?;
        let content = content.into();
        let operation = Operation::Create { path, content, existing: Existing::Replace };
        // If commands may write protected files, refusing them here would protect nothing.
        let grant = Grant { protected: !self.guarded, ..Grant::default() };
        let failed = |failure: &Failure| with_path(sent, &describe_failure(failure));
        let cannot = |e: Error| with_path(sent, &e.to_string());
        let executor = self.executor(&|| false);
        let refused = self.refused(&operation, Grant::default(), &executor).map_err(cannot)?;
        refused.map_or(Ok(()), |failure| Err(failed(&failure)))?;
        // Skipped if unguarded, because the search for repositories may have to walk the whole root.
        let look =
            if self.guarded { executor.path_facts(&operation).map_err(cannot)? } else { None };
        if look.is_some_and(|look| look.protected) {
            return Err(RpcError::internal(format!(
                "Path is protected: '{}' is only written by hand, since others act on such files: those of the names in the setting protected_names, and what git obeys elsewhere",
                visible_line(sent)
            )));
        }
        let done = self.perform(executor, &operation, grant, &mut |_| Ok(()));
        match done.map_err(cannot)?.detail {
            Detail::Failed(failure) => Err(failed(&failure)),
            _ => Ok(Written { success: true }),
        }
    }

    /// Lists a folder. Bytes of names that are not valid UTF-8 are shown as U+FFFD.
    pub(super) fn list_dir(&self, sent: &str) -> Result<Entries, RpcError> {
        let workspace = &self.serving.workspace;
        let path = resolve(workspace.path(), sent)?;
        self.check_root().map_err(|reason| with_path(sent, &reason))?;
        if let Some(path) = &path {
            self.may_read(sent, path)?;
        }
        let listed =
            workspace.list(path.as_ref()).map_err(|failure| with_path(sent, &failure.reason))?;
        let entry = |entry: crate::workspace::FolderEntry| FileEntry {
            name: entry.name.to_string_lossy().into_owned(),
            is_dir: entry.is_dir,
            size: entry.size,
        };
        Ok(Entries { entries: listed.into_iter().map(entry).collect() })
    }

    fn may_read(&self, sent: &str, path: &RelPath) -> Result<(), RpcError> {
        let refused = self.refused_read(path)?;
        refused.map_or(Ok(()), |failure| Err(with_path(sent, &describe_failure(&failure))))
    }
}

/// Resolves a path sent by a client, given the canonical path of the root; None is the root itself.
fn resolve(root: &Path, sent: &str) -> Result<Option<RelPath>, RpcError> {
    let text = visible_line(sent);
    if sent.len() > MAX_PATH {
        let begin: String = text.chars().take(SHOWN_PATH).collect();
        return Err(RpcError::internal(format!(
            "Path is too long ({} bytes): '{begin}…'",
            sent.len()
        )));
    }
    if cfg!(unix) && sent.contains('\\') {
        // In other places a backslash separates folders, so the path could name a different file.
        return Err(RpcError::internal(format!(
            "Path holds a backslash, which names of files here cannot: '{text}'"
        )));
    }
    let outside = || RpcError::internal(PathFault::Outside(sent.to_owned()).to_string());
    let is_absolute = sent.starts_with('/');
    let mut parts = Vec::new();
    for part in sent.split('/') {
        match part {
            "" | "." => {}
            // `/` is its own parent.
            ".." => drop(parts.pop().or(is_absolute.then_some("")).ok_or_else(outside)?),
            part => parts.push(part),
        }
    }
    let mut path = parts.join("/");
    if is_absolute {
        path = below(root, &format!("/{path}")).ok_or_else(outside)?;
    }
    if path.is_empty() {
        return Ok(None);
    }
    let path = RelPath::parse(&path).map(Some);
    path.map_err(|fault| with_path(sent, &fault.to_string()))
}

/// Like `resolve`, for a file. The root itself is an error.
fn resolve_file(root: &Path, sent: &str) -> Result<RelPath, RpcError> {
    let named = resolve(root, sent)?;
    if matches!(sent.rsplit('/').next(), Some("" | "." | "..") | None) {
        return Err(RpcError::internal(PathFault::NoFile(sent.to_owned()).to_string()));
    }
    let folder = || RpcError::internal(format!("'{}' is a folder, not a file", visible_line(sent)));
    named.ok_or_else(folder)
}

/// The part of an absolute path after the root, if the path lies below the root.
fn below(root: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    // The root may have other names through links. The shortest prefix that leads to the root counts.
    let ends = path.strip_prefix(root).ok().or_else(|| {
        let above: Vec<&Path> = path.ancestors().collect();
        let leads_there = |above: &&&Path| above.canonicalize().is_ok_and(|there| there == root);
        path.strip_prefix(above.iter().rev().find(leads_there)?).ok()
    });
    ends?.to_str().map(str::to_owned)
}

/// The reason for a failure, with the path as the client sent it.
fn with_path(sent: &str, reason: &str) -> RpcError {
    let shown = visible_line(sent);
    RpcError::internal(if shown.is_empty() || reason.contains(&format!("'{shown}'")) {
        reason.to_owned()
    } else {
        format!("'{shown}': {reason}")
    })
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn below_root(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    #[test]
    fn paths_are_taken_from_the_root_also_absolute_ones() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        let alias = folder.path().join("alias");
        symlink(&root, &alias).unwrap();
        let at = |path: &str| resolve(&root, path);
        for base in [root.to_str().unwrap(), alias.to_str().unwrap()] {
            assert_eq!(at(&format!("{base}/a/b")), Ok(Some(below_root("a/b"))));
            assert_eq!(at(&format!("{base}//a/./x/../b/")), Ok(Some(below_root("a/b"))));
            // `..` is resolved in the text, so a name of the root beside the alias is found.
            assert_eq!(at(&format!("{base}/sub/../../root/c")), Ok(Some(below_root("c"))));
            for path in [base.to_owned(), format!("{base}/"), format!("{base}/sub/..")] {
                assert_eq!(at(&path), Ok(None), "{path}");
            }
        }
        for (path, named) in [
            ("a", Some(below_root("a"))),
            ("./a//b", Some(below_root("a/b"))),
            ("a/../b/", Some(below_root("b"))),
            ("", None),
            (".", None),
            ("a/..", None),
        ] {
            assert_eq!(at(path), Ok(named), "{path}");
        }
        let root = root.to_str().unwrap();
        for path in [
            "..",
            "../x",
            "a/../../root/x",
            "/",
            "/etc/passwd",
            &format!("{root}/../x"),
            &format!("{root}-evil/x"),
            "/nowhere/at/all",
        ] {
            let fault = at(path).unwrap_err();
            let told = format!("Path is outside workspace: '{path}'");
            assert_eq!((fault.code, fault.message), (RpcError::INTERNAL, told));
        }
    }

    #[test]
    fn of_the_whole_machine_every_absolute_path_is_in_reach() {
        let at = |path: &str| resolve(Path::new("/"), path);
        assert_eq!(at("/etc/hostname"), Ok(Some(below_root("etc/hostname"))));
        assert_eq!(at("/../etc"), Ok(Some(below_root("etc"))));
        assert_eq!(at("/"), Ok(None));
        assert_eq!(at(""), Ok(None));
        assert!(at("..").is_err());
    }

    #[test]
    fn what_no_path_can_be_is_told_with_it() {
        let root = Path::new("/");
        let told = |path: &str| resolve(root, path).unwrap_err().message;
        assert_eq!(told("a\0b"), "Path contains the character U+0000: 'a␀b'");
        assert!(told("a\\b").ends_with("'a\\b'"));
        let long = "x".repeat(256);
        assert!(told(&format!("/{long}")).contains(&long));
        assert!(told(&"y/".repeat(3000)).starts_with("Path is too long (6000 bytes): 'y/y"));
        for path in ["a/", "a/.", "a/..", "/", "", "/a/b/"] {
            let fault = resolve_file(root, path).unwrap_err();
            assert_eq!(fault.message, format!("Path names no file: '{path}'"));
        }
        assert!(resolve_file(root, "a/./b").is_ok());
        let fault = resolve_file(Path::new("/tmp"), "/tmp").unwrap_err();
        assert_eq!(fault.message, "'/tmp' is a folder, not a file");
    }

    #[test]
    fn failures_name_the_path_as_it_was_sent() {
        let reason = "File 'a/b' not found";
        assert_eq!(with_path("a/b", reason).message, "File 'a/b' not found");
        assert_eq!(with_path("/w/a/b", reason).message, "'/w/a/b': File 'a/b' not found");
    }
}
