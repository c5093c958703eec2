//! What is written of a turn: its records in the journal, and its line in the session's log.

use super::Base;
use crate::error::Result;
use crate::protocol::{Effect, Outcome};
use crate::session::Session;
use crate::session::journal::Journal;
use crate::session::log::{self, Entry};
use crate::session::record::{Begin, Record};
use crate::turn::Ledger;
use crate::workspace::checkpoint::Noted;
use crate::workspace::guard::Snapshot;

/// The journal as a turn sees it.
pub(super) struct Notes<'a>(pub(super) &'a mut Journal);

impl Ledger for Notes<'_> {
    fn guard(&mut self, snapshot: &Snapshot) -> Result<()> {
        // It rides on the sync of the Intent that follows.
        self.0.append(&Record::Guard(Box::new(snapshot.clone())).to_line())
    }

    fn noted(&mut self, noted: &Noted) -> Result<()> {
        // The same; all that it says is kept is on disk.
        self.0.append(&Record::Noted(Box::new(noted.clone())).to_line())
    }

    fn intent(&mut self, step: usize, effect: &Effect) -> Result<()> {
        self.0.append(&Record::Intent { step, effect: effect.clone() }.to_line())?;
        self.0.sync()
    }

    fn result(&mut self, step: usize, outcome: &Outcome) -> Result<()> {
        // It rides on the next record's sync: until then the effect itself tells.
        self.0.append(&Record::Result { step, outcome: Box::new(outcome.clone()) }.to_line())
    }
}

impl Base {
    pub(super) fn log(&self, begin: &Begin, session: &Session, recovered: bool) -> Result<()> {
        let failed = session.last_results.iter().filter(|outcome| !outcome.success()).count();
        let changed = session.changed.as_ref();
        let (turns, redid) = begin
            .undoing
            .as_ref()
            .map_or_else(Default::default, |undoing| (undoing.turns.clone(), undoing.redid));
        let entry = Entry {
            sequence: begin.session.sequence,
            at: session.updated_at,
            reply: begin.reply().0.to_owned(),
            commands: session.last_results.len(),
            operations: Some(session.last_results.iter().filter(|o| o.is_work()).count()),
            ran: session.last_results.iter().filter(|o| o.ran()).count(),
            failed,
            interrupted: session.last_results.iter().filter(|o| o.is_lost()).count(),
            is_complete: session.is_complete,
            recovered,
            changed: changed.filter(|changed| changed.not_kept.is_none()).map(|c| c.files),
            records: changed.map(|changed| changed.records.clone()).unwrap_or_default(),
            ignored: changed.and_then(|changed| changed.ignored.clone()),
            undid: if redid.is_none() { turns } else { Vec::new() },
            redid,
            reopened: begin.undoing.as_ref().and_then(|undoing| undoing.reopened.clone()),
        };
        log::add(&self.config.sessions, &session.id, &entry)
    }
}
