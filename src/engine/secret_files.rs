//! The files that hold secrets by their nature: as they are, and as they were before a turn that may
//! have changed, moved or deleted them after a command showed what they hold.

use super::Engine;
use crate::error::Result;
use crate::protocol::{Asks, Operation, RelPath, Step};
use crate::secrets;
use crate::session::SecretFile;
use crate::session::record::Begin;
use crate::workspace::Contents;
use crate::workspace::walk::{EntryKind, Walk};

/// So many files are looked into for secrets, of so many bytes each.
const SECRET_FILES: usize = 32;
const SECRET_BYTES: u64 = 64 << 10;
/// Of so many bytes in all a session keeps what they were.
const HELD_BYTES: usize = 256 << 10;

impl Engine {
    /// The files that hold secrets by their nature, those nearest to the root, as far as they are not
    /// too large; released ones are not among them. A guest tells of none that is ignored, but one at
    /// its root is looked for.
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
        let mut held = Vec::new();
        for path in paths.into_iter().take(SECRET_FILES) {
            let Ok(path) = RelPath::parse(path) else { continue };
            let file = self.read(&path, SECRET_BYTES)?.ok();
            held.extend(file.filter(|file| file.bytes.len() as u64 == file.size));
        }
        Ok(held)
    }

    /// Notes in the session of a turn what such files hold before it, where one of its steps may change
    /// that and was not carried out before; the newest first, before what was noted earlier. Of a guest's
    /// files none are noted, nor of a run's, which has no outbox.
    pub(super) fn record_secrets(&self, begin: &mut Begin) -> Result<()> {
        if self.guest.is_some() || begin.session.run.is_some() {
            return Ok(());
        }
        let done = begin.known();
        let mut to_do = begin.steps().iter().enumerate().filter(|(n, _)| !done.contains_key(n));
        if !to_do.any(|(_, step)| may_change_secrets(step)) {
            return Ok(());
        }
        let found = self.secrets(&self.workspace.walk_for_secrets()?)?;
        let mut held: Vec<SecretFile> = found.iter().map(SecretFile::of).collect();
        for earlier in std::mem::take(&mut begin.session.held) {
            if !held.contains(&earlier) {
                held.push(earlier);
            }
        }
        let mut bytes = 0;
        held.truncate(SECRET_FILES);
        held.retain(|one| {
            bytes += one.text.len();
            bytes <= HELD_BYTES
        });
        begin.session.held = held;
        Ok(())
    }

    /// Those of them that are not as they were, and so are known from nothing else.
    pub(super) fn changed_secrets(&self, mut held: Vec<SecretFile>) -> Result<Vec<SecretFile>> {
        if self.guest.is_some() {
            return Ok(held);
        }
        let mut changed = Vec::new();
        for one in held.drain(..) {
            let now = self.read(&one.path, SECRET_BYTES)?.ok();
            if now.is_none_or(|now| SecretFile::of(&now).text != one.text) {
                changed.push(one);
            }
        }
        Ok(changed)
    }
}

/// Whether a step may change, move or delete a file that holds secrets by its nature.
fn may_change_secrets(step: &Step) -> bool {
    match &step.asks {
        Asks::Operation(operation) => match operation {
            Operation::Run(_) | Operation::Move { .. } => true,
            Operation::Create { path, .. }
            | Operation::Edit { path, .. }
            | Operation::Delete { path, .. } => secrets::is_secret_text_file(path.as_str()),
            _ => false,
        },
        Asks::Invalid(_) => false,
    }
}
