//! What a turn changed, for who looks at it: from the log and what is kept, without the lock.

use super::{keeping, recording};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::session::log;
use crate::session::{Changed, Session};
use crate::workspace::checkpoint::{Change, Store, What};
use crate::workspace::overlay::Standing;

/// What one turn changed.
#[derive(Debug)]
pub struct Shown {
    /// The outbox that it answered.
    pub sequence: u32,
    /// Its changes, by path.
    pub changes: Vec<Change>,
    store: Store,
}

impl Shown {
    /// What is told of its files.
    pub fn told(&self) -> Changed {
        recording::told(&self.store, &self.changes, Vec::new())
    }

    /// What stood, or stands, somewhere; None where nothing does, or a folder.
    ///
    /// # Errors
    /// The content is gone.
    pub fn standing(&self, what: Option<&What>) -> Result<Option<Standing>> {
        Ok(match what {
            None | Some(What::Folder { .. }) => None,
            Some(What::Link { target }) => Some(Standing::Link(target.clone())),
            Some(What::Unkept { .. }) => Some(Standing::Large),
            Some(What::File { blob, .. }) => {
                let bytes = self.store.blobs.read(blob)?.ok_or_else(|| gone(self.sequence))?;
                Some(Standing::File(bytes))
            }
        })
    }
}

/// What a turn of a session changed: the one that answered outbox `sequence`, or the last.
///
/// # Errors
/// There is none, or nothing is kept of it.
pub fn shown(config: &Config, session: &Session, sequence: Option<u32>) -> Result<Shown> {
    if let Some(guest) = &config.guest {
        let guest = crate::place::Guest::new(guest.clone()).label();
        return Err(elsewhere(&guest));
    }
    let entries = log::read(&config.sessions, &session.id)?;
    // The part of a turn that waits for a decision.
    let waiting = session.changed.as_ref().filter(|_| session.pending.is_some());
    let (sequence, records, is_known) = match (waiting, sequence) {
        (Some(changed), wanted) if wanted.is_none_or(|wanted| wanted == session.sequence) => {
            (session.sequence, changed.records.clone(), changed.not_kept.is_none())
        }
        (_, wanted) => {
            let entry = match wanted {
                Some(wanted) => entries.iter().rev().find(|entry| entry.sequence == wanted),
                None => entries.last(),
            };
            let entry = entry.ok_or_else(|| match wanted {
                Some(n) => Error::undo(format!(
                    "session {} has had no turn {n}; `deaddrop log` lists them",
                    session.id
                )),
                None => Error::undo(format!("session {} has had no turn yet", session.id)),
            })?;
            (entry.sequence, entry.records.clone(), entry.changed.is_some())
        }
    };
    if !is_known {
        return Err(Error::undo(format!(
            "nothing was kept of what turn {sequence} changed, so it cannot be shown or taken back"
        )));
    }
    let store = keeping::store(config);
    let changes = store.composed(&records)?.ok_or_else(|| gone(sequence))?;
    Ok(Shown { sequence, changes, store })
}

/// Said of what is changed in a guest.
pub(super) fn elsewhere(guest: &str) -> Error {
    Error::undo(format!(
        "what a session changes in the guest '{guest}' is not kept here, so it cannot be shown or taken back; use what is there, such as git"
    ))
}

/// Said where the record of a turn is not there.
pub(super) fn gone(sequence: u32) -> Error {
    Error::undo(format!(
        "the checkpoint of turn {sequence} is gone, so it can be neither shown nor taken back (`deaddrop checkpoints` lists those that are kept; checkpoint_max_bytes bounds them)"
    ))
}
