//! Taking turns back, and doing that again: a turn of its own.
//!
//! The plan is on disk before the turn begins. Then Begin ⟂, a Restoring for each place ⟂, all that is to
//! be done, Restored, and from there on as every turn. A place that was to be put back is as it was or
//! as it was to become, so after a hard stop the plan is gone through once more.
//!
//! The turn records what it changed itself, as every turn does. So a redo is the undo of an undo, and
//! brings back what a person lost who forced it.

mod conflicts;
mod diff;
mod gc;
mod select;

pub use diff::{TurnDiff, TurnDiffs, Which};
pub(super) use gc::store;
pub use gc::{KeptTurn, kept_turns};
pub use select::UndoRequest;

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, Turn, changes};
use crate::error::{Error, Result};
use crate::event::{Event, Observer};
use crate::protocol::{Operation, Part, Reading};
use crate::session::log::{self, LogEntry};
use crate::session::record::{Begin, Record, Undoing};
use crate::session::{self, Session};
use crate::text::count;
use crate::workspace::checkpoint::{TreeChange, TreeEntry, UndoPlan, compose, reverse};
use conflicts::ConflictOwners;
use select::{Selection, passed_over, select};

/// What can be done about what changed under protected names.
const ALSO_PROTECTED: &str =
    "`--force` puts back what changed under protected names while commands ran, too";
/// So many files are named that keep an undo from being done.
const NAMED: usize = 20;

impl Engine {
    /// The session whose turns are to be taken back: the one that is named, complete or not, or the only
    /// open one; where none is open, the newest.
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

    /// Takes turns of a session back; with `force` also what the person has changed since, if that can
    /// be kept. `reason` is said in the next outbox in their words.
    ///
    /// # Errors
    /// There is nothing to take back, it cannot be, or the person has changed some of it since. Then
    /// nothing was touched.
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
        let Selection { turns, undid, redid, completes, next, passed } =
            select(&entries, request, &session.id)?;
        // A redo comes after an undo that has told it, and changes nothing of it either.
        let ignored = log::ignored(&entries, if redid.is_none() { &undid } else { &[] });
        let mut changes = self.changes_of(&turns)?;
        let recovered = turns.iter().filter(|turn| turn.recovered);
        let recovered: Vec<u32> = recovered.map(|turn| turn.sequence).collect();
        let mixed = changes.iter().filter(|change| change.mixed).map(TreeChange::shown);
        let mixed: Vec<String> = mixed.filter(|_| !recovered.is_empty()).collect();
        changes = reverse(changes);
        let plan = self.checkpoints.plan(&self.workspace, changes.clone(), force)?;
        let owners = match plan.conflicts.as_slice() {
            [] => ConflictOwners::default(),
            conflicts => self.conflict_owners(&session.id, &turns, &changes, conflicts),
        };
        if !plan.conflicts.is_empty() && !force {
            let cut_off = plan.conflicts.iter().any(|path| mixed.contains(path));
            let cut_off = if cut_off { cut_off_in(&recovered) } else { String::new() };
            let again = brings_back(&session, matches!(request, UndoRequest::Turns(_)));
            let why = refusal(&plan.conflicts, &owners, &again, &cut_off);
            return Err(Error::undo(why).with_code("undo-conflict"));
        }
        if redid.is_none() && plan.changes.is_empty() && !plan.left.is_empty() {
            return Err(Error::undo(nothing_of(&undid, &plan, next)).with_code("nothing-to-undo"));
        }
        if let Some(passed) = passed_over(&passed) {
            observer.event(Event::Warning(&format!("{passed}; passed over")));
        }
        if !plan.protected.is_empty() {
            let warning = format!("{ALSO_PROTECTED} (after a `redo` of this)");
            observer.event(Event::Warning(&warning));
        }
        let aside = put_aside(&plan, &owners, &brings_back(&session, redid.is_none()), &session);
        let plan = self.checkpoints.add_json(&plan)?;
        self.checkpoints.sync()?;
        if let Some(aside) = aside {
            observer.event(Event::Warning(&aside));
        }
        // Who has something to say wants it to be read: all that was said since the session was taken up
        // again, since no reply came after that.
        let says = reason.is_some() || session.has_unread_words() || !session.said.is_empty();
        let completes = completes.filter(|_| !says);
        let mut reopened = None;
        if session.is_complete {
            // It is taken up again: its last outbox was answered.
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

    /// All that these turns changed, as one list.
    fn changes_of(&self, turns: &[&LogEntry]) -> Result<Vec<TreeChange>> {
        let mut parts = Vec::new();
        for turn in turns {
            if turn.changed.is_none() {
                return Err(Error::undo(format!(
                    "turn {} cannot be taken back: nothing was kept of what it changed (see `deaddrop log`)",
                    turn.sequence
                ))
                .with_code("not-recorded"));
            }
            let changes = self.checkpoints.read_composed(&turn.records)?;
            parts.push(changes.ok_or_else(|| diff::gone(turn.sequence))?);
        }
        Ok(compose(parts))
    }

    /// Puts back what the plan of a turn says, or what is left of it. Returns the session after the turn.
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
            let record = Record::Restoring { change: n, path: change.path.clone() };
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
        let mut back = session::Back { turns, redid, left, ignored, ..session::Back::default() };
        // What is told has to be so of the files that there are, whatever was planned.
        for path in self.mismatches(&begin.session.id, undoing, &back.left, recovered)? {
            back.others.add(|| path);
        }
        back.describe_unrestored().for_each(|left| observer.event(Event::Warning(&left)));
        self.journal.append(&Record::Restored { left: back.left.clone() }.to_line())?;
        // What was put back before a stop and is another now, the person has changed since. It counts as
        // put back, so that a redo names it.
        let done = restored.changes_made(plan.changes, recovered);
        let mut records = Vec::new();
        if !done.is_empty() {
            records.push(self.checkpoints.add_json(&done)?);
        }
        self.checkpoints.sync()?;
        self.checkpoints.save_size();
        let mut changed = changes::describe(&self.checkpoints, &done, records);
        changed.back = Some(Box::new(back));
        let mut session = begin.session.clone();
        self.mark_outdated(&mut session, &done);
        session.record_undo(changed, undoing.reason.clone(), undoing.completes.clone(), self.now());
        Ok(session)
    }

    /// What was put back is another file than the model has seen, whenever it saw it: no edit goes by its
    /// lines before it has seen them again.
    fn mark_outdated(&self, session: &mut Session, done: &[TreeChange]) {
        let files = done.iter().filter(|change| {
            matches!(change.after, Some(TreeEntry::File { .. } | TreeEntry::Link { .. }))
        });
        let places = files.filter_map(|change| {
            let path = change.place()?;
            // A link is another file that it leads to.
            let reading = Reading::Later(Part::default());
            self.workspace
                .as_is()
                .place_of(&Operation::Read { path: path.clone(), reading })
                .or(Some(path))
        });
        session.seen.mark_outdated(places);
    }
}

/// How what an undo or a redo of this session puts aside comes back: after a plain undo until later turns
/// change files, and by its number as long as it is kept.
fn brings_back(session: &Session, is_undo: bool) -> String {
    let number = number(session);
    if is_undo {
        format!("`deaddrop redo` brings it back, and after later turns `deaddrop redo {number}`")
    } else {
        format!("`deaddrop redo {number}` brings it back")
    }
}

/// The number of the undo or the redo that this session is about to come to: that of one that is complete is
/// taken up again.
fn number(session: &Session) -> u32 {
    session.sequence + u32::from(session.is_complete)
}

/// Said of what the person or other turns had changed, and force puts aside; None where there is none.
fn put_aside(
    plan: &UndoPlan,
    owners: &ConflictOwners,
    again: &str,
    session: &Session,
) -> Option<String> {
    let planned: BTreeSet<String> = plan.changes.iter().map(TreeChange::shown).collect();
    let aside: Vec<&String> =
        plan.conflicts.iter().filter(|path| planned.contains(*path)).collect();
    if aside.is_empty() {
        return None;
    }
    let what = if owners.is_none() { "what you had changed" } else { "what had changed since" };
    Some(format!(
        "{what} is put aside and kept: {}. {again} (`deaddrop diff {}` shows it)",
        named_with(aside.into_iter(), |path| owners.whose(path)),
        number(session)
    ))
}

/// The first of these paths, with what this says behind each, and how many more there are.
fn named_with<'a>(
    paths: impl ExactSizeIterator<Item = &'a String>,
    told: impl Fn(&str) -> String,
) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let mut names: Vec<String> =
        paths.take(NAMED).map(|path| format!("'{path}'{}", told(path))).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Said where nothing of turns can be taken back; `next` is one before them of which something may be.
fn nothing_of(turns: &[u32], plan: &UndoPlan, next: Option<(usize, u32)>) -> String {
    let whys: BTreeMap<&str, &str> = plan.left.iter().map(|(p, why)| (&**p, &**why)).collect();
    let left =
        named_with(plan.left.iter().map(|(path, _)| path), |path| format!(" ({})", whys[path]));
    let go_on = match next {
        Some((n, sequence)) => format!("`deaddrop undo --last {n}` goes on to turn {sequence}"),
        None => "No earlier turn that stands has changed a file that is kept".to_owned(),
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

/// Said where what was changed in turns that were cut off may be the person's.
fn cut_off_in(turns: &[u32]) -> String {
    format!(
        ". deaddrop was stopped hard in {}, so nobody knows which of these changes its commands made and which you made",
        select::turns(turns.iter().copied())
    )
}

fn refusal(conflicts: &[String], owners: &ConflictOwners, again: &str, cut_off: &str) -> String {
    let (was, them) = if conflicts.len() == 1 { ("was", "it") } else { ("were", "them") };
    format!(
        "{} {was} changed since, and nothing was touched: {}. {}`--force` puts {them} back all the same; what stands there now is kept, and {again}{cut_off}",
        count(conflicts.len(), "file"),
        named_with(conflicts.iter(), |path| owners.whose(path)),
        owners.instead()
    )
}
