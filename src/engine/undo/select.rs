//! Which turns are meant by who takes turns back, or takes that back.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::session::Ignored;
use crate::session::log::{self, LogEntry};
use crate::text::count;

/// What is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UndoRequest {
    /// So many of the last turns that changed something.
    Turns(usize),
    /// The last undo.
    LastUndo,
    /// The undo or the redo of this number, also where turns came after it.
    Step(u32),
}

/// What is to be taken back.
pub(super) struct Selection<'a> {
    /// The turns whose changes are.
    pub(super) turns: Vec<&'a LogEntry>,
    /// The turns that stand no more then, or do again.
    pub(super) undid: Vec<u32>,
    /// The undo that they are, if they are one.
    pub(super) redid: Option<&'a LogEntry>,
    /// The summary of the session that is complete again by it.
    pub(super) completes: Option<String>,
    /// The next turn before them of which something is recorded: how many turns it is away, and which.
    pub(super) next: Option<(usize, u32)>,
    /// Turns among and after them that changed only what is left out.
    pub(super) passed: Vec<&'a LogEntry>,
}

pub(super) fn select<'a>(
    entries: &'a [LogEntry],
    request: UndoRequest,
    id: &str,
) -> Result<Selection<'a>> {
    match request {
        UndoRequest::LastUndo => {
            // A later turn makes an undo final, since a redo would restore what that turn did not build on.
            let changes = |turn: &LogEntry| turn.back().is_none() && is_undoable(turn);
            let is_last = |undo: &&LogEntry| {
                let later = entries.iter().rev().take_while(|entry| !std::ptr::eq(*entry, *undo));
                !later.into_iter().any(changes)
            };
            let undo = log::undos(entries).pop().filter(is_last).ok_or_else(|| {
                Error::undo(format!(
                    "there is nothing to redo in session {id}: an undo can be taken back until a later turn changes files; `deaddrop redo N` takes back the undo or the redo of that number in `deaddrop log`"
                ))
                .with_code("nothing-to-undo")
            })?;
            Ok(Selection::redo(entries, undo))
        }
        UndoRequest::Step(sequence) => step(entries, sequence, id),
        UndoRequest::Turns(wanted) => {
            let (mut turns, mut passed): (Vec<&LogEntry>, Vec<&LogEntry>) =
                log::done(entries).into_iter().partition(|turn| is_undoable(turn));
            passed.retain(|turn| turn.ignored.as_ref().is_some_and(|i| !i.only_products));
            if turns.is_empty() || wanted == 0 {
                let passed = passed_over(&passed).filter(|_| wanted > 0);
                let passed = passed.map(|passed| format!("; {passed}")).unwrap_or_default();
                return Err(Error::undo(format!(
                    "there is nothing to take back: no turn of session {id} that stands has changed a file that is kept{passed}"
                ))
                .with_code("nothing-to-undo"));
            }
            if turns.len() < wanted {
                return Err(Error::undo(format!(
                    "only {} of session {id} can be taken back, not {wanted}",
                    count(turns.len(), "turn")
                ))
                .with_code("no-turn"));
            }
            let chosen = turns.split_off(turns.len() - wanted);
            let next = turns.iter().rev().position(|turn| !turn.records.is_empty());
            let next = next.map(|n| (wanted + n + 1, turns[turns.len() - n - 1].sequence));
            let first = chosen.first().map(|turn| turn.sequence);
            passed.retain(|turn| Some(turn.sequence) > first);
            let undid = chosen.iter().map(|turn| turn.sequence).collect();
            Ok(Selection { turns: chosen, undid, redid: None, completes: None, next, passed })
        }
    }
}

impl<'a> Selection<'a> {
    /// This undo is taken back.
    fn redo(entries: &[LogEntry], undo: &'a LogEntry) -> Self {
        // Where a turn came after it, the session has gone on.
        let mut since = entries.iter().rev().take_while(|entry| entry.sequence > undo.sequence);
        let goes_on = !since.all(|entry| entry.back().is_some());
        let completes = undo.reopened.clone().filter(|_| !goes_on);
        let (turns, undid) = (vec![undo], undo.undid.clone());
        Self { turns, undid, redid: Some(undo), completes, next: None, passed: Vec::new() }
    }
}

/// The undo or the redo of this number, which is to be taken back.
fn step<'a>(entries: &'a [LogEntry], sequence: u32, id: &str) -> Result<Selection<'a>> {
    let undos = log::undos(entries);
    if let Some(undo) = undos.into_iter().find(|undo| undo.sequence == sequence) {
        return Ok(Selection::redo(entries, undo));
    }
    let Some(step) = entries.iter().find(|entry| entry.sequence == sequence) else {
        return Err(Error::undo(format!(
            "session {id} has no turn {sequence}; `deaddrop log` lists them"
        ))
        .with_code("no-turn"));
    };
    let Some(redid) = step.redid else {
        let by = entries.iter().rev().find(|entry| entry.redid == Some(sequence));
        return Err(Error::undo(match by {
            Some(redo) => format!(
                "undo {sequence} was taken back already, by redo {0}; `deaddrop redo {0}` takes that back",
                redo.sequence
            ),
            None => format!(
                "turn {sequence} is neither an undo nor a redo; `deaddrop undo --last N` takes the last N turns back"
            ),
        })
        .with_code("nothing-to-undo"));
    };
    // What it brought back is to stand: else it is taken back already.
    let undid = entries.iter().find(|entry| entry.sequence == redid);
    let undid = undid.map(|undo| undo.undid.clone()).unwrap_or_default();
    let undone = log::undone(entries);
    if let Some(turn) = undid.iter().find(|turn| undone.contains(turn)) {
        let mut later = entries.iter().rev();
        let by = later.find(|entry| entry.undid.contains(turn)).map_or(0, |undo| undo.sequence);
        return Err(Error::undo(format!(
            "turn {turn}, which redo {sequence} brought back, is undone again by {by}: `deaddrop redo {by}` first"
        ))
        .with_code("nothing-to-undo"));
    }
    let (turns, completes) = (vec![step], None);
    Ok(Selection { turns, undid, redid: None, completes, next: None, passed: Vec::new() })
}

/// Whether a turn is one that a person may mean who takes turns back: something of it is recorded, or
/// nothing is known of it. One whose commands changed only what rules leave out, such as a log beside what
/// it read, is passed over, and that is told.
pub(super) fn is_undoable(turn: &LogEntry) -> bool {
    turn.changed.is_none() || !turn.records.is_empty()
}

/// Which turns are passed over, and why; None where none is.
pub(super) fn passed_over(turns: &[&LogEntry]) -> Option<String> {
    let ignored = turns.iter().filter_map(|turn| turn.ignored.clone()).reduce(Ignored::and)?;
    Some(format!(
        "{} changed only ignored files, which are not kept: {}",
        self::turns(turns.iter().map(|turn| turn.sequence)),
        ignored.describe()
    ))
}

/// `turn 3`, or `turns 3, 4`.
pub(super) fn turns(sequences: impl Iterator<Item = u32>) -> String {
    let numbers: Vec<String> = sequences.map(|sequence| sequence.to_string()).collect();
    format!("turn{} {}", if numbers.len() == 1 { "" } else { "s" }, numbers.join(", "))
}
