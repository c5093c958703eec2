//! What can be told of a place before anything is done there, and files that are given whole.

use super::Contents;
use super::locate::{LocatedEntry, FinalLink, Location, is_own_state};
use super::overlay::Overlay;
use crate::protocol::operations::Encoding;
use crate::protocol::{Detail, Digest, Failure, MoveLook, Operation, RelPath};
use crate::text;

/// What can be told of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Where it leads, links resolved; None where that cannot be told, or is out of reach.
    pub real: Option<RelPath>,
    /// The size of the regular file that stands there.
    pub size: Option<u64>,
    /// Whether the path, as it was asked for or as it really is, has a protected name in it.
    pub protected: bool,
    /// What a move would take with it, and where to; None of other operations.
    pub moved: Option<Box<MoveLook>>,
}

impl Overlay<'_> {
    /// What could be told of the path of a file operation; None for other operations.
    pub fn look(&self, operation: &Operation) -> Option<Look> {
        if let Operation::Move { path, to } = operation {
            return Some(self.look_at_move(path, to));
        }
        let (path, last) = meant_by(operation)?;
        let way = match self.way(path, last) {
            Ok(way) => way,
            // Nobody is asked about what nobody can open.
            Err(failure) if is_own_state(&failure) => {
                return Some(Look { real: None, size: None, protected: false, moved: None });
            }
            Err(_) => {
                // A link may lead to a folder, which is looked into.
                let real = Some(operation).filter(|operation| is_of_folders(operation));
                return Some(self.looked(path, real.and_then(|one| self.place_of(one)), None));
            }
        };
        let size = self.size_at(&way);
        let is_obeyed = changed_by(operation).is_some() && self.is_obeyed(&way);
        let look = self.looked(path, Some(way.real), size);
        Some(Look { protected: look.protected || is_obeyed, ..look })
    }

    /// The digest of what would stand where a file operation would change something: what an approval is bound to.
    pub fn standing(&self, operation: &Operation) -> Option<Digest> {
        let (path, last) = changed_by(operation)?;
        let way = self.way(path, last).ok()?;
        match way.found.as_ref()? {
            LocatedEntry::Folder => None,
            // A folder moves with all that is in it.
            LocatedEntry::OnDisk(found)
                if found.is_dir() && matches!(operation, Operation::Move { .. }) =>
            {
                Some(self.workspace.below(&way.real).ok()?.digest)
            }
            LocatedEntry::File | LocatedEntry::OnDisk(_) => self.digest(path, &way).ok()?,
        }
    }

    fn looked(&self, path: &RelPath, real: Option<RelPath>, size: Option<u64>) -> Look {
        let is_protected = |path: &RelPath| self.workspace.protected.name_in(path).is_some();
        let protected = is_protected(path) || real.as_ref().is_some_and(is_protected);
        Look { real, size, protected, moved: None }
    }

    /// The size of the regular file at the end of a way.
    pub(super) fn size_at(&self, way: &Location) -> Option<u64> {
        match way.found.as_ref()? {
            LocatedEntry::OnDisk(found) => found.is_file().then(|| found.len()),
            LocatedEntry::File => Some(self.made(&way.real).len() as u64),
            LocatedEntry::Folder => None,
        }
    }
}

/// The place that an operation changes, and whether a link there is followed.
fn changed_by(operation: &Operation) -> Option<(&RelPath, FinalLink)> {
    match operation {
        Operation::Create { path, .. } | Operation::Edit { path, .. } => Some((path, FinalLink::Follow)),
        Operation::Delete { path } | Operation::Move { path, .. } => Some((path, FinalLink::Keep)),
        Operation::Message { .. }
        | Operation::Read { .. }
        | Operation::List { .. }
        | Operation::Search { .. }
        | Operation::Run(_)
        | Operation::Done { .. } => None,
    }
}

/// Whether an operation looks into folders.
fn is_of_folders(operation: &Operation) -> bool {
    matches!(operation, Operation::List { .. } | Operation::Search { .. })
}

/// The path that a file operation is about, and whether a link there is followed.
pub(super) fn meant_by(operation: &Operation) -> Option<(&RelPath, FinalLink)> {
    match operation {
        Operation::Read { path, .. } => Some((path, FinalLink::Follow)),
        Operation::List { path } | Operation::Search { path, .. } => {
            path.as_ref().map(|path| (path, FinalLink::Follow))
        }
        _ => changed_by(operation),
    }
}

impl Contents {
    /// All of a file, of which one byte more than `limit` and `room` allow was read where it has so
    /// many; never a part. `room` is how many bytes may be given yet.
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
        // Somebody may have made it shorter meanwhile.
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
