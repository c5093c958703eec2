//! The contents that a first outbox shows unasked: chosen by name and size, and read here.

use super::Base;
use crate::error::{Error, Result};
use crate::outbox::{self, Offered};
use crate::policy::{self, Access, Decision};
use crate::protocol::RelPath;
use crate::secrets::Screen;
use crate::session::{Offer, Session};
use crate::workspace::READ_LIMIT;
use crate::workspace::picture::Picture;
use crate::workspace::walk::{EntryKind, Walk};

/// A token is rarely more bytes of a file than this.
const BYTES_PER_TOKEN: u64 = 6;

impl Base {
    /// What the newest outbox of a session may show unasked: nothing but in its first.
    pub(super) fn offered(&self, session: &Session, walk: &Walk) -> Result<Option<Offered>> {
        let Some(offer) = session.offer.as_ref().filter(|_| session.sequence == 1) else {
            return Ok(None);
        };
        let policy = self.policy_of(session)?;
        let may_read = |path: &RelPath, size: u64| {
            policy::path(&policy, Access::Read, path, Some(size)) == Decision::Allow
        };
        let mut room = (self.config.max_tokens as u64).saturating_mul(BYTES_PER_TOKEN);
        let picture = Picture::of(walk, &[]);
        let mut offered = Offered {
            listed: listed(&picture).count(),
            empty: picture
                .files()
                .filter(|file| file.kind == EntryKind::File && file.size == 0)
                .count(),
            ..Offered::default()
        };
        // Half of the room is the most that is shown of what nobody named.
        for file in outbox::candidates(listed(&picture), &session.task, offer, room / 2) {
            let Some(less) = room.checked_sub(file.size) else { continue };
            let Ok(path) = RelPath::parse(file.path) else { continue };
            // What a reply may not read is not shown unasked either, nor what has a secret for a name,
            // which would stand around it.
            let secrets = &self.config.secrets;
            if !may_read(&path, file.size) || Screen::new(secrets).name(file.path) != file.path {
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
                offered.included += usize::from(file.included.is_some());
                offered.files.push(contents);
            } else {
                offered.not_text += 1;
            }
        }
        Ok(Some(offered))
    }
}

/// The regular files of a listing that hold something.
fn listed<'w>(picture: &Picture<'w>) -> impl Iterator<Item = (&'w str, u64)> {
    let files = picture.files().filter(|file| file.kind == EntryKind::File && file.size > 0);
    files.map(|file| (file.path, file.size))
}

/// Fails where the person named files to be shown and there are none such.
pub(super) fn names_something(session: &Session, walk: &Walk) -> Result<()> {
    let Some(offer) = session.offer.as_ref().filter(|offer| !offer.include.is_empty()) else {
        return Ok(());
    };
    let picture = Picture::of(walk, &[]);
    for pattern in &offer.include {
        let only = Offer { include: vec![pattern.clone()] };
        let found = outbox::candidates(listed(&picture), "", &only, 0);
        if !found.iter().any(|file| file.included.is_some()) {
            return Err(Error::usage(format!(
                "--include '{pattern}' names no file that is listed; it is written as in a .gitignore, and what is ignored there is not listed"
            )));
        }
    }
    Ok(())
}
