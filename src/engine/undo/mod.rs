//! Undo and redo, each a turn of its own.
//!
//! The plan is on disk before the turn begins. Then come Begin ⟂, a Restoring for each place ⟂, all effects, and
//! Restored; the rest is as in every turn. At any time each place is either in its old state or in its planned state,
//! so after a hard stop the plan is carried out again.
//!
//! The turn records its own changes, as every turn does. So a redo is the undo of an undo, and also restores what
//! `--force` overwrote.

mod diff;
mod gc;
mod select;

pub use diff::{TurnDiff, TurnDiffs, TurnSpan};
pub(super) use gc::store;
pub use gc::{KeptTurn, kept_turns};
pub use select::UndoRequest;

use std::collections::BTreeSet;

use super::{Engine, Turn, changes};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::protocol::{Operation, Part, Reading};
use crate::session::log::{self, LogEntry};
use crate::session::record::{Begin, JournalRecord, Undoing};
use crate::session::{self, Session};
use crate::text::{count, first_of};
use crate::workspace::checkpoint::{TreeChange, TreeEntry, UndoPlan, compose, reverse};
use select::{SelectedTurns, describe_skipped, select};

/// How to restore changes under protected names.
const ALSO_PROTECTED: &str =
    "`--force` puts back what changed under protected names while commands ran, too";
/// How many conflicting files are named.
const NAMED: usize = 20;

impl Engine {
    /// The session whose turns are undone: the named one, complete or not; otherwise the only open one, or the newest if
    /// none is open.
    pub fn session_to_undo(&self, named: Option<&str>) -> Result<Session> {
        match named {
            Some(id) if session::run_id(id).is_some() => Err(diff::not_of_runs(id)),
            Some(id) => self.store.load(id),
            None => match self.store.choose(None) {
                Err(e) if e.is_no_open_session() => match self.store.list()?.0.into_iter().next() {
                    Some(newest) => Ok(newest),
                    None => Err(self.store.runs()?.first().map_or(e, |run| diff::not_of_runs(run))),
                },
                chosen => chosen,
            },
        }
    }

    /// Undoes or redoes turns of a session. With `force` also overwrites later changes, if their contents can be stored.
    /// The next outbox contains `reason` as the person's words.
    ///
    /// # Errors
    /// There is nothing to undo, it cannot be undone, or some of it was changed since. Then nothing was touched.
    pub fn undo(
        &mut self,
        mut session: Session,
        request: UndoRequest,
        force: bool,
        reason: Option<String>,
        observer: &mut dyn Observer,
    ) -> Result<Turn> {
        if let Some(guest) = self.guest_label() {
            return Err(diff::in_guest(&guest));
        }
        if session.pending.is_some() {
            return Err(Error::waits(format!(
                "session {0} waits for your decision: `deaddrop deny --session {0}` or `deaddrop approve --session {0}` comes first; nothing was taken back",
                session.id
            )));
        }
        self.check_workspace(&session)?;
        self.ensure_folders()?;
        let entries = log::read(&self.config.sessions, &session.id)?;
        let SelectedTurns { turns, undid, redid, completes, next, skipped } =
            select(&entries, request, &session.id)?;
        // A redo does not report these changes again, because the undo has reported them.
        let ignored = log::ignored(&entries, if redid.is_none() { &undid } else { &[] });
        let changes = self.changes_of(&turns)?;
        let recovered = turns.iter().filter(|turn| turn.recovered);
        let recovered: Vec<u32> = recovered.map(|turn| turn.sequence).collect();
        let mixed = changes.iter().filter(|change| change.mixed).map(TreeChange::shown);
        let mixed: Vec<String> = mixed.filter(|_| !recovered.is_empty()).collect();
        let plan = self.checkpoints.plan(&self.workspace, reverse(changes), force)?;
        if !plan.conflicts.is_empty() && !force {
            let cut_off = plan.conflicts.iter().any(|path| mixed.contains(path));
            let cut_off = if cut_off { describe_hard_stops(&recovered) } else { String::new() };
            let why = refusal(&plan.conflicts, redid.is_none(), &cut_off);
            return Err(Error::undo(why).with_code("undo-conflict"));
        }
        if redid.is_none() && plan.changes.is_empty() && !plan.left.is_empty() {
            return Err(Error::undo(describe_nothing_undone(&undid, &plan, next))
                .with_code("nothing-to-undo"));
        }
        if let Some(skipped) = describe_skipped(&skipped) {
            observer.event(Event::Warning(&format!("{skipped}; skipped")));
        }
        if !plan.protected.is_empty() {
            let warning = format!("{ALSO_PROTECTED} (after a `redo` of this)");
            observer.event(Event::Warning(&warning));
        }
        let overwritten = describe_overwritten(&plan, &session, redid.is_none());
        let plan = self.checkpoints.add_json(&plan)?;
        self.checkpoints.sync()?;
        if let Some(overwritten) = overwritten {
            observer.event(Event::Warning(&overwritten));
        }
        // A session with words that no reply has answered stays open, so that the model reads them.
        let has_words = reason.is_some() || session.has_unread_words() || !session.said.is_empty();
        let completes = completes.filter(|_| !has_words);
        let mut reopened = None;
        if session.is_complete {
            // It is open again, with a new outbox, since its last one was answered.
            session.is_complete = false;
            session.sequence += 1;
            session.said.clear();
            reopened = Some(session.summary.take().unwrap_or_default());
        }
        let mut begin = Begin::of(session, Vec::new(), None, None);
        if redid.is_some() { "redo" } else { "undo" }.clone_into(&mut begin.name);
        let redid = redid.map(|undo| undo.sequence);
        begin.undoing =
            Some(Undoing { plan, turns: undid, redid, reason, reopened, completes, ignored });
        self.transact(&begin, observer)
    }

    /// The combined changes of these turns.
    fn changes_of(&self, turns: &[&LogEntry]) -> Result<Vec<TreeChange>> {
        let mut parts = Vec::new();
        for turn in turns {
            if turn.changed.is_none() {
                return Err(Error::undo(format!(
                    "turn {} cannot be taken back, nor any turn before it: nothing was kept of what it changed (see `deaddrop log`)",
                    turn.sequence
                ))
                .with_code("not-recorded"));
            }
            let changes = self.checkpoints.read_composed(&turn.records)?;
            parts.push(changes.ok_or_else(|| diff::gone(turn.sequence))?);
        }
        Ok(compose(parts))
    }

    /// Carries out an undo's plan, or the rest of it. Returns the session after the turn.
    pub(super) fn restore(
        &mut self,
        begin: &Begin,
        undoing: &Undoing,
        recovered: bool,
        observer: &mut dyn Observer,
    ) -> Result<Session> {
        observer.event(Event::TurnBegun { session: &begin.session, reply: begin.reply() });
        let plan = self.checkpoints.blobs.read(&undoing.plan)?;
        let plan = plan.and_then(|text| serde_json::from_slice::<UndoPlan>(&text).ok());
        let lost = plan.is_none();
        let plan = plan.unwrap_or_default();
        for (n, change) in plan.changes.iter().enumerate() {
            let record = JournalRecord::Restoring { change: n, path: change.path.clone() };
            self.journal.append(&record.to_line())?;
        }
        self.journal.sync()?;
        if recovered {
            plan.sweep(&self.workspace);
        }
        let mut left = plan.left.clone();
        if lost {
            let why = "what was to be put back is not kept any more; some may have been";
            left.push(("everything".to_owned(), why.to_owned()));
        }
        let restored = plan.carry_out(&mut self.checkpoints, &self.workspace, recovered)?;
        left.extend(restored.left.clone());
        let (turns, redid) = (undoing.turns.clone(), undoing.redid);
        let ignored = undoing.ignored.clone();
        let mut back =
            session::Reversal { turns, redid, left, ignored, ..session::Reversal::default() };
        // The report must be true of the actual files, whatever the plan was.
        for path in self.mismatches(&begin.session.id, undoing, &back.left, recovered)? {
            back.others.add(|| path);
        }
        back.describe_unrestored().for_each(|left| observer.event(Event::Warning(&left)));
        self.journal.append(&JournalRecord::Restored { left: back.left.clone() }.to_line())?;
        // A file that was restored before a stop and differs now was changed by the person. It counts as restored, so
        // that a redo reports the conflict.
        let done = restored.changes_made(plan.changes, recovered);
        let mut records = Vec::new();
        if !done.is_empty() {
            records.push(self.checkpoints.add_json(&done)?);
        }
        self.checkpoints.sync()?;
        let mut changed = changes::describe(&self.checkpoints, &done, records);
        changed.back = Some(Box::new(back));
        let mut session = begin.session.clone();
        self.mark_outdated(&mut session, &done);
        session.record_undo(changed, undoing.reason.clone(), undoing.completes.clone(), self.now());
        Ok(session)
    }

    /// The files, by their paths for people, that are not as they were before the undone turns, or after the redone ones.
    /// Without those in `left`, and those that are not stored. With `again`, unreadable records and files are skipped.
    ///
    /// # Errors
    /// A record or a file cannot be read.
    pub(super) fn mismatches(
        &mut self,
        id: &str,
        undoing: &Undoing,
        left: &[(String, String)],
        again: bool,
    ) -> Result<Vec<String>> {
        let mut parts = Vec::new();
        let entries = match log::read(&self.config.sessions, id) {
            Err(_) if again => Vec::new(),
            entries => entries?,
        };
        for entry in entries.iter().filter(|entry| undoing.turns.contains(&entry.sequence)) {
            match self.checkpoints.read_composed(&entry.records) {
                Err(_) if again => {}
                part => parts.extend(part?),
            }
        }
        let mut changes = compose(parts);
        if undoing.redid.is_none() {
            changes = reverse(changes);
        }
        let mut others = self.checkpoints.changed_since(&self.workspace, &changes, again)?;
        let left: BTreeSet<&String> = left.iter().map(|(path, _)| path).collect();
        others.retain(|path| !left.contains(path));
        Ok(others)
    }

    /// Marks restored files as outdated: the model has not seen their present contents, so it cannot edit them by line
    /// numbers before it sees them again.
    fn mark_outdated(&self, session: &mut Session, done: &[TreeChange]) {
        let files = done.iter().filter(|change| {
            matches!(change.after, Some(TreeEntry::File { .. } | TreeEntry::Link { .. }))
        });
        let places = files.filter_map(|change| {
            let path = change.place()?;
            // If the place is a link, the model saw the file that it leads to.
            let reading = Reading::Later(Part::default());
            self.workspace
                .as_is()
                .resolved_path(&Operation::Read { path: path.clone(), reading })
                .or(Some(path))
        });
        session.seen.mark_outdated(places);
    }
}

/// Describes later changes that `--force` overwrites; None if there are none.
fn describe_overwritten(plan: &UndoPlan, session: &Session, is_undo: bool) -> Option<String> {
    let planned: BTreeSet<String> = plan.changes.iter().map(TreeChange::shown).collect();
    let mut overwritten = plan.conflicts.clone();
    overwritten.retain(|path| planned.contains(path));
    if overwritten.is_empty() {
        return None;
    }
    let paths = first_paths(&overwritten);
    // A complete session is reopened with a new number.
    let number = session.sequence + u32::from(session.is_complete);
    let redo = if is_undo {
        "; `deaddrop redo` brings it back, as long as no later turn changes files"
    } else {
        ""
    };
    Some(format!(
        "what had changed since is overwritten, but kept: {paths}. `deaddrop diff {number}` shows it{redo}"
    ))
}

/// The first of these paths, and how many more there are.
fn first_paths(paths: &[String]) -> String {
    first_of(paths.iter().map(|path| format!("'{path}'")), NAMED, paths.len())
}

/// Says that nothing of these turns can be undone; `next` is an earlier turn that may be.
fn describe_nothing_undone(turns: &[u32], plan: &UndoPlan, next: Option<(usize, u32)>) -> String {
    let left = plan.left.iter().map(|(path, why)| format!("'{path}' ({why})"));
    let left = first_of(left, NAMED, plan.left.len());
    let go_on = match next {
        Some((n, sequence)) => format!("`deaddrop undo --last {n}` goes on to turn {sequence}"),
        None => "No earlier turn is left that changed files".to_owned(),
    };
    let force = match plan.protected.as_slice() {
        [] => String::new(),
        _ => format!("{ALSO_PROTECTED}. "),
    };
    format!(
        "of {} nothing can be taken back, and nothing was touched: {left}. {force}{go_on}",
        select::turns(turns.iter().copied())
    )
}

/// Says that changes around a hard stop may be the person's.
fn describe_hard_stops(turns: &[u32]) -> String {
    format!(
        ". deaddrop was stopped hard in {}, so nobody knows which of these changes its commands made and which you made",
        select::turns(turns.iter().copied())
    )
}

/// Says which files were changed since, and what to do about it.
fn refusal(conflicts: &[String], is_undo: bool, cut_off: &str) -> String {
    let (was, them) = if conflicts.len() == 1 { ("was", "it") } else { ("were", "them") };
    format!(
        "{} {was} changed since, and nothing was touched: {}. `--force` puts {them} back anyway, and keeps the present content for {}`deaddrop diff`{cut_off}",
        count(conflicts.len(), "file"),
        first_paths(conflicts),
        if is_undo { "`deaddrop redo` and " } else { "" }
    )
}
