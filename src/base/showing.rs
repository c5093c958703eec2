//! What turns changed, for who looks at it: from the log and what is kept, without the lock.

use super::{keeping, recording};
use crate::blobs::BlobId;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::session::log;
use crate::session::{Changed, Session};
use crate::workspace::checkpoint::{Change, Store, What, composed};
use crate::workspace::overlay::Standing;

/// Which turns are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The last.
    Last,
    /// The one that answered this outbox.
    One(u32),
    /// What all of them come to that answered outboxes from the first of these to the last.
    From(u32, u32),
}

/// What turns changed.
#[derive(Debug)]
pub struct Shown {
    /// The outbox that the first of them answered.
    pub first: u32,
    /// The outbox that the last of them answered.
    pub last: u32,
    /// What they come to, by path.
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
                let bytes = self.store.blobs.read(blob)?.ok_or_else(|| gone(self.last))?;
                Some(Standing::File(bytes))
            }
        })
    }
}

/// What turns of a session changed. Of several, one list says what they come to, undos included.
///
/// # Errors
/// There is none, or nothing is kept of one of them.
pub fn shown(config: &Config, session: &Session, which: Which) -> Result<Shown> {
    if let Some(guest) = &config.guest {
        let guest = crate::place::Guest::new(guest.clone()).label();
        return Err(elsewhere(&guest));
    }
    if session.run.is_some() {
        return Err(not_of_runs(&session.stem()));
    }
    let mut turns: Vec<(u32, Option<Vec<BlobId>>)> = log::read(&config.sessions, &session.id)?
        .into_iter()
        .map(|entry| (entry.sequence, entry.changed.map(|_| entry.records)))
        .collect();
    // The part of a turn that waits for a decision.
    if let (Some(changed), Some(_)) = (&session.changed, &session.pending) {
        let records = changed.not_kept.is_none().then(|| changed.records.clone());
        turns.push((session.sequence, records));
    }
    let newest = turns.last().map(|(sequence, _)| *sequence);
    match which {
        Which::Last => turns.retain(|(sequence, _)| Some(*sequence) == newest),
        Which::One(wanted) => turns.retain(|(sequence, _)| *sequence == wanted),
        Which::From(first, last) => {
            turns.retain(|(sequence, _)| (first..=last).contains(sequence));
        }
    }
    let (Some((first, _)), Some((last, _))) = (turns.first(), turns.last()) else {
        let id = &session.id;
        return Err(Error::undo(match which {
            Which::One(n) if newest.is_some() => {
                format!("session {id} has had no turn {n}; `deaddrop log` lists them")
            }
            Which::From(..) if newest.is_some() => {
                format!("session {id} has had none of these turns; `deaddrop log` lists them")
            }
            _ => format!("session {id} has had no turn yet"),
        }));
    };
    let (first, last) = (*first, *last);
    let store = keeping::store(config);
    let mut parts = Vec::new();
    for (sequence, records) in turns {
        let records = records.ok_or_else(|| {
            Error::undo(format!(
                "nothing was kept of what turn {sequence} changed, so it cannot be shown or taken back"
            ))
        })?;
        parts.push(store.composed(&records)?.ok_or_else(|| gone(sequence))?);
    }
    let mut changes = composed(parts);
    changes.retain(|change| change.before != change.after);
    Ok(Shown { first, last, changes, store })
}

/// Said of a run.
pub(super) fn not_of_runs(stem: &str) -> Error {
    Error::undo(format!(
        "{stem} is a run: nothing is kept of what `deaddrop run` changes, so it cannot be shown or taken back; use what is there, such as git"
    ))
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
