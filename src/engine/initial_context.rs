//! The contents that a first outbox shows unasked: chosen by name and size, and read here.

use super::Engine;
use crate::context;
use crate::context::Offered;
use crate::error::{Error, Result};
use crate::policy::{self, Access, Decision};
use crate::protocol::RelPath;
use crate::secrets::Redactor;
use crate::session::{Offer, Session};
use crate::workspace::READ_LIMIT;
use crate::workspace::picture::Picture;
use crate::workspace::walk::{EntryKind, Walk};

/// A token is rarely more bytes of a file than this.
const BYTES_PER_TOKEN: u64 = 6;

impl Engine {
    /// What the newest outbox of a session may show unasked: nothing but in its first.
    pub(super) fn offered(&self, session: &Session, walk: &Walk) -> Result<Offered> {
        let Some(offer) = session.offer.as_ref().filter(|_| session.sequence == 1) else {
            return Ok(Offered::default());
        };
        let policy = self.policy_of(session)?;
        let may_read = |path: &RelPath, size: u64| {
            policy::path(&policy, Access::Read, path, Some(size)) == Decision::Allow
        };
        let mut room = (self.config.max_tokens as u64).saturating_mul(BYTES_PER_TOKEN);
        let picture = Picture::of(walk, &[]);
        let besides = self.besides(offer, &picture)?;
        let besides = || besides.iter().map(|(path, size)| (path.as_str(), *size));
        let mut offered =
            Offered { listed: listed(&picture).count() + besides().count(), ..Offered::default() };
        // Half of the room is the most that is shown of what nobody named.
        let all = listed(&picture).chain(besides());
        for file in context::candidates(all, &session.task, offer, room / 2) {
            let Some(less) = room.checked_sub(file.size) else { continue };
            let Ok(path) = RelPath::parse(file.path) else { continue };
            // What a reply may not read is not shown unasked either, nor what has a secret for a name,
            // which would stand around it.
            let secrets = &self.config.secrets;
            if !may_read(&path, file.size) || Redactor::new(secrets).name(file.path) != file.path {
                continue;
            }
            // What is gone, or may not be read, is not offered.
            let Ok(contents) = self.read(&path, READ_LIMIT)? else { continue };
            let is_whole = contents.size == contents.bytes.len() as u64;
            if !is_whole || !may_read(&contents.path, contents.size) {
                continue;
            }
            if contents.is_text() {
                room = less;
                offered.included += usize::from(file.included);
                offered.files.push(contents);
            } else {
                offered.listed -= 1;
            }
        }
        Ok(offered)
    }

    /// The files that the person named by their whole paths and that are not listed, such as ignored
    /// ones: that keeps them out of the listing, and not from being read.
    fn besides(&self, offer: &Offer, picture: &Picture<'_>) -> Result<Vec<(RelPath, u64)>> {
        let mut found: Vec<(RelPath, u64)> = Vec::new();
        for pattern in &offer.include {
            let Ok(path) = RelPath::parse(pattern.trim_start_matches('/')) else { continue };
            if picture.files().any(|file| file.path == path.as_str())
                || found.iter().any(|(other, _)| *other == path)
            {
                continue;
            }
            // As a pattern it may mean other files than the one of that name.
            let only = Offer { include: vec![pattern.clone()] };
            let mut itself = context::candidates(std::iter::once((path.as_str(), 1)), "", &only, 0);
            itself.retain(|file| file.included);
            if itself.is_empty() {
                continue;
            }
            if let Some(contents) = self.read(&path, READ_LIMIT)?.ok().filter(|file| file.size > 0)
            {
                found.push((path, contents.size));
            }
        }
        Ok(found)
    }

    /// Fails where the person named files to be shown and there are none such.
    pub(super) fn check_patterns(&self, session: &Session, walk: &Walk) -> Result<()> {
        let Some(offer) = session.offer.as_ref().filter(|offer| !offer.include.is_empty()) else {
            return Ok(());
        };
        let picture = Picture::of(walk, &[]);
        for pattern in &offer.include {
            let only = Offer { include: vec![pattern.clone()] };
            let found = context::candidates(listed(&picture), "", &only, 0);
            let is_listed = found.iter().any(|file| file.included);
            if !is_listed && self.besides(&only, &picture)?.is_empty() {
                return Err(Error::usage(format!(
                    "--include '{pattern}' names no file that is listed; it is written as in a .gitignore, and what is ignored there is not listed; name an ignored file by its exact path from the workspace's root"
                )));
            }
        }
        Ok(())
    }
}

/// The regular files of a listing that hold something.
fn listed<'w>(picture: &Picture<'w>) -> impl Iterator<Item = (&'w str, u64)> {
    let files = picture.files().filter(|file| file.kind == EntryKind::File && file.size > 0);
    files.map(|file| (file.path, file.size))
}
