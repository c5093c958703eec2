//! Files that contain secrets by their kind, such as `.env`: their present contents, and those from before a turn that
//! may have changed, moved or deleted them after a command printed their secrets.

use super::Engine;
use crate::error::Result;
use crate::protocol::{Operation, RelPath, Step, StepContent};
use crate::secrets;
use crate::session::SecretFile;
use crate::session::record::Begin;
use crate::workspace::Contents;
use crate::workspace::walk::{EntryKind, Walk};

/// How many files are read for secrets, and the largest one in bytes.
const SECRET_FILES: usize = 32;
const SECRET_BYTES: u64 = 64 << 10;
/// How many bytes of earlier contents a session keeps in all.
const SNAPSHOT_BYTES: usize = 256 << 10;

impl Engine {
    /// The files that contain secrets by their kind, nearest to the root first, without large and released ones. A guest
    /// lists no ignored files, so `.env` at its root is always tried.
    pub(super) fn secrets(&self, walk: &Walk) -> Result<Vec<Contents>> {
        let is_one =
            |path: &&str| secrets::is_secret_text_file(path) && !self.config.secrets.allows(path);
        let listed = walk.files().filter(|file| file.kind == EntryKind::File).map(|file| file.path);
        let ignored = walk.ignored_secrets();
        let unseen = self.guest.is_some().then_some(".env");
        let mut paths: Vec<&str> =
            listed.filter(is_one).chain(ignored.chain(unseen).filter(is_one)).collect();
        paths.sort_by_key(|path| (path.matches('/').count(), *path));
        paths.dedup();
        let mut files = Vec::new();
        for path in paths.into_iter().take(SECRET_FILES) {
            let Ok(path) = RelPath::parse(path) else { continue };
            let file = self.read(&path, SECRET_BYTES)?.ok();
            files.extend(file.filter(|file| file.bytes.len() as u64 == file.size));
        }
        Ok(files)
    }

    /// Records in the session what such files contain before a turn, if a step that is still to be carried out may change
    /// them. The newest contents come before those recorded earlier. Records nothing in a guest or for a run, which has no
    /// outbox.
    pub(super) fn record_secrets(&self, begin: &mut Begin) -> Result<()> {
        if self.guest.is_some() || begin.session.run.is_some() {
            return Ok(());
        }
        let done = begin.known();
        let mut to_do = begin.steps().iter().enumerate().filter(|(n, _)| !done.contains_key(n));
        if !to_do.any(|(_, step)| may_change_secrets(step)) {
            return Ok(());
        }
        let files = self.secrets(&self.workspace.walk_for_secrets()?)?;
        let mut snapshots: Vec<SecretFile> = files.iter().map(SecretFile::of).collect();
        for earlier in std::mem::take(&mut begin.session.held) {
            if !snapshots.contains(&earlier) {
                snapshots.push(earlier);
            }
        }
        let mut bytes = 0;
        snapshots.truncate(SECRET_FILES);
        snapshots.retain(|snapshot| {
            bytes += snapshot.text.len();
            bytes <= SNAPSHOT_BYTES
        });
        begin.session.held = snapshots;
        Ok(())
    }

    /// The recorded contents that no file contains any more, so that only the record shows which secrets they contained.
    pub(super) fn changed_secrets(&self, snapshots: Vec<SecretFile>) -> Result<Vec<SecretFile>> {
        if self.guest.is_some() {
            return Ok(snapshots);
        }
        let mut changed = Vec::new();
        for snapshot in snapshots {
            let now = self.read(&snapshot.path, SECRET_BYTES)?.ok();
            if now.is_none_or(|now| SecretFile::of(&now).text != snapshot.text) {
                changed.push(snapshot);
            }
        }
        Ok(changed)
    }
}

/// Whether a step may change, move or delete a file that contains secrets by its kind.
fn may_change_secrets(step: &Step) -> bool {
    match &step.asks {
        StepContent::Operation(operation) => match operation {
            Operation::Run(_) | Operation::Move { .. } => true,
            Operation::Create { path, .. }
            | Operation::Edit { path, .. }
            | Operation::Delete { path, .. } => secrets::is_secret_text_file(path.as_str()),
            _ => false,
        },
        StepContent::Invalid(_) => false,
    }
}
