//! What is written of a turn: its records in the journal, and its line in the session's log.

use std::collections::BTreeMap;

use super::Engine;
use crate::error::Result;
use crate::executor::WriteAhead;
use crate::protocol::Outcome;
use crate::session::Session;
use crate::session::journal::Journal;
use crate::session::log::{self, LogEntry};
use crate::session::record::{Begin, Record};
use crate::text::count;
use crate::turn::{Ledger, Observer};

/// The journal as a turn sees it.
pub(super) struct Notes<'a>(pub(super) &'a mut Journal);

impl Ledger for Notes<'_> {
    fn write_ahead(&mut self, step: usize, entry: WriteAhead<'_>) -> Result<()> {
        let record = match entry {
            WriteAhead::Guard(snapshot) => Record::Guard(Box::new(snapshot.clone())),
            // All that it says is stored is on disk.
            WriteAhead::Noted(noted) => Record::Noted(Box::new(noted.clone())),
            WriteAhead::Effects(effects) => {
                for (step, effect) in (step..).zip(effects) {
                    self.0.append(&Record::Intent { step, effect: effect.clone() }.to_line())?;
                }
                return self.0.sync();
            }
        };
        // It rides on the sync of the Intents that follow.
        self.0.append(&record.to_line())
    }

    fn result(&mut self, step: usize, outcome: &Outcome) -> Result<()> {
        // It rides on the next record's sync: until then the effect itself tells.
        self.0.append(&Record::Result { step, outcome: Box::new(outcome.clone()) }.to_line())
    }
}

impl Engine {
    pub(super) fn log(&self, begin: &Begin, session: &Session, recovered: bool) -> Result<()> {
        match LogEntry::of(begin, session, recovered) {
            Some(entry) => log::add(&self.config.sessions, &session.id, entry),
            None => Ok(()),
        }
    }

    /// Gives the logs what a power loss took from them: while the journal grows, they are on disk no sooner
    /// than the system likes. Each line that can be missing is of a turn that is still in the journal.
    pub(super) fn put_logs_right(
        &self,
        logged: BTreeMap<String, Vec<LogEntry>>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for (id, entries) in logged {
            let missing = log::restore(&self.config.sessions, &id, entries)?;
            if missing > 0 {
                told.push(format!(
                    "the log of session {id} lacked {}, and has {} again from the journal",
                    count(missing, "turn"),
                    if missing == 1 { "it" } else { "them" }
                ));
            }
        }
        told.iter().for_each(|told| observer.recovered(told));
        Ok(told)
    }
}
