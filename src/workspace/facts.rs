//! Facts about the path of an operation before it is carried out, and complete file contents.

use super::Contents;
use super::locate::{FinalLink, LocatedEntry, PathLocation, is_own_state};
use super::overlay::Overlay;
use crate::protocol::operations::Encoding;
use crate::protocol::{Detail, Digest, Failure, Operation, PathFacts, RelPath};
use crate::text;

impl Overlay<'_> {
    /// Facts about the path of a file operation; None for other operations.
    pub fn path_facts(&self, operation: &Operation) -> Option<PathFacts> {
        if let Operation::Move { path, to } = operation {
            return Some(self.move_facts(path, to));
        }
        let (path, last) = path_of(operation)?;
        let location = match self.resolve(path, last) {
            Ok(location) => location,
            // Nobody can approve access to deaddrop's own state.
            Err(failure) if is_own_state(&failure) => {
                return Some(PathFacts::default());
            }
            Err(_) => {
                // A listing or search follows a link to a folder.
                let follows =
                    matches!(operation, Operation::List { .. } | Operation::Search { .. });
                let real = if follows { self.resolved_path(operation) } else { None };
                return Some(self.facts_of(path, real, None));
            }
        };
        let size = self.size_at(&location);
        let configures_git =
            changed_by(operation).is_some() && self.git_configuration_at(&location).is_some();
        let facts = self.facts_of(path, Some(location.real), size);
        Some(PathFacts { protected: facts.protected || configures_git, ..facts })
    }

    /// The digest of the content that a file operation would change. An approval is bound to it.
    pub fn content_digest(&self, operation: &Operation) -> Option<Digest> {
        let (path, last) = changed_by(operation)?;
        let location = self.resolve(path, last).ok()?;
        match location.found.as_ref()? {
            LocatedEntry::Folder => None,
            // A folder is moved with everything in it.
            LocatedEntry::OnDisk(found)
                if found.is_dir() && matches!(operation, Operation::Move { .. }) =>
            {
                Some(self.workspace.folder_contents(&location.real).ok()?.digest)
            }
            LocatedEntry::File | LocatedEntry::OnDisk(_) => self.digest(path, &location).ok()?,
        }
    }

    fn facts_of(&self, path: &RelPath, real: Option<RelPath>, size: Option<u64>) -> PathFacts {
        let is_protected = |path: &RelPath| self.workspace.has_protected_name(path);
        let protected = is_protected(path) || real.as_ref().is_some_and(is_protected);
        PathFacts { real, size, protected, moved: None }
    }

    /// The size of the regular file at a location; None if there is no regular file.
    pub(super) fn size_at(&self, location: &PathLocation) -> Option<u64> {
        match location.found.as_ref()? {
            LocatedEntry::OnDisk(found) => found.is_file().then(|| found.len()),
            LocatedEntry::File => Some(self.created(&location.real).len() as u64),
            LocatedEntry::Folder => None,
        }
    }
}

/// The path that an operation changes, and whether the operation follows a link at that path.
fn changed_by(operation: &Operation) -> Option<(&RelPath, FinalLink)> {
    match operation {
        Operation::Create { path, .. } | Operation::Edit { path, .. } => {
            Some((path, FinalLink::Follow))
        }
        Operation::Delete { path } | Operation::Move { path, .. } => Some((path, FinalLink::Keep)),
        Operation::Message { .. }
        | Operation::Read { .. }
        | Operation::List { .. }
        | Operation::Search { .. }
        | Operation::Run(_)
        | Operation::Done { .. } => None,
    }
}

/// The path of a file operation, and whether the operation follows a link at that path.
pub(super) fn path_of(operation: &Operation) -> Option<(&RelPath, FinalLink)> {
    match operation {
        Operation::Read { path, .. } => Some((path, FinalLink::Follow)),
        Operation::List { path } | Operation::Search { path, .. } => {
            path.as_ref().map(|path| (path, FinalLink::Follow))
        }
        _ => changed_by(operation),
    }
}

impl Contents {
    /// The complete content of a file, never a part. The caller must have tried to read one byte more than `limit` and
    /// `room` allow, so that a longer file is recognised. `room` is how many more bytes this reply may read.
    pub fn whole(self, encoding: Encoding, limit: u64, room: &mut u64) -> Result<Detail, Failure> {
        const HOW_ELSE: &str =
            "read parts of it with a shell command, such as `sed -n 1,200p` or `head -c 100000`";
        let Self { path, bytes, size, .. } = self;
        if size > limit {
            let is_one_line = bytes.len() as u64 > limit
                && encoding == Encoding::Utf8
                && !bytes.iter().any(|byte| matches!(byte, b'\n' | 0));
            let how = if is_one_line {
                "its first line alone is longer than that, so look into it with a shell command, such as `head -c 4000` or `grep -o`"
            } else {
                HOW_ELSE
            };
            return Err(Failure::execution(format!(
                "'{path}' is {size} bytes long, and only files up to {limit} bytes can be read: {how}"
            )));
        }
        if size > *room {
            return Err(Failure::execution(format!(
                "'{path}' is {size} bytes long, and the reads of this reply may give {} more: ask for it in another reply, or {HOW_ELSE}",
                text::byte_count(*room)
            )));
        }
        // The file may have become shorter in the meantime.
        let size = bytes.len() as u64;
        let content = encoding.encode(&bytes).ok_or_else(|| {
            Failure::execution(format!(
                "'{path}' is not UTF-8 text ({}): ask for it with \"encoding\": \"base64\"",
                text::byte_count(size)
            ))
        })?;
        *room -= size;
        Ok(Detail::Read { path, content, encoding, size })
    }
}
