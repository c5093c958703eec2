//! Selects the turns that an undo or a redo is about.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::session::Ignored;
use crate::session::log::{self, LogEntry};
use crate::text::count;

/// What to undo or redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UndoRequest {
    /// Undo this number of the last turns that changed something.
    Turns(usize),
    /// Redo the last undo.
    LastUndo,
    /// Reverse the undo or the redo of this number, even if turns came after it.
    Step(u32),
}

/// The turns that an undo or a redo is about.
pub(super) struct SelectedTurns<'a> {
    /// The turns whose changes are reversed.
    pub(super) turns: Vec<&'a LogEntry>,
    /// The turns that are undone then, or done again.
    pub(super) undid: Vec<u32>,
    /// The undo that is reversed, if this is a redo.
    pub(super) redid: Option<&'a LogEntry>,
    /// The summary of the session if a redo completes it again.
    pub(super) completes: Option<String>,
    /// The nearest earlier turn with recorded changes: the number of turns to undo to reach it, and its number.
    pub(super) next: Option<(usize, u32)>,
    /// Turns among and after them that changed only ignored files.
    pub(super) skipped: Vec<&'a LogEntry>,
}

pub(super) fn select<'a>(
    entries: &'a [LogEntry],
    request: UndoRequest,
    id: &str,
) -> Result<SelectedTurns<'a>> {
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
            Ok(SelectedTurns::redo(entries, undo))
        }
        UndoRequest::Step(sequence) => step(entries, sequence, id),
        UndoRequest::Turns(wanted) => {
            let (mut turns, mut skipped): (Vec<&LogEntry>, Vec<&LogEntry>) =
                log::done(entries).into_iter().partition(|turn| is_undoable(turn));
            skipped.retain(|turn| turn.ignored.as_ref().is_some_and(|i| !i.only_products));
            if turns.is_empty() || wanted == 0 {
                let skipped = describe_skipped(&skipped).filter(|_| wanted > 0);
                let skipped = skipped.map(|skipped| format!("; {skipped}")).unwrap_or_default();
                return Err(Error::undo(format!(
                    "there is nothing to take back: no turn of session {id} that stands has changed a file that is kept{skipped}"
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
            skipped.retain(|turn| Some(turn.sequence) > first);
            let undid = chosen.iter().map(|turn| turn.sequence).collect();
            Ok(SelectedTurns { turns: chosen, undid, redid: None, completes: None, next, skipped })
        }
    }
}

impl<'a> SelectedTurns<'a> {
    /// Selects this undo, to reverse it.
    fn redo(entries: &[LogEntry], undo: &'a LogEntry) -> Self {
        // After a later turn, the session stays open.
        let mut since = entries.iter().rev().take_while(|entry| entry.sequence > undo.sequence);
        let goes_on = !since.all(|entry| entry.back().is_some());
        let completes = undo.reopened.clone().filter(|_| !goes_on);
        let (turns, undid) = (vec![undo], undo.undid.clone());
        Self { turns, undid, redid: Some(undo), completes, next: None, skipped: Vec::new() }
    }
}

/// Selects the undo or the redo of this number, to reverse it.
fn step<'a>(entries: &'a [LogEntry], sequence: u32, id: &str) -> Result<SelectedTurns<'a>> {
    let undos = log::undos(entries);
    if let Some(undo) = undos.into_iter().find(|undo| undo.sequence == sequence) {
        return Ok(SelectedTurns::redo(entries, undo));
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
    // The turns that it restored must not be undone again.
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
    Ok(SelectedTurns { turns, undid, redid: None, completes, next: None, skipped: Vec::new() })
}

/// Whether a turn counts for an undo: it has recorded changes, or its changes are unknown. A turn whose commands changed
/// only ignored files, such as a log, is skipped with a warning.
pub(super) fn is_undoable(turn: &LogEntry) -> bool {
    turn.changed.is_none() || !turn.records.is_empty()
}

/// Says which turns are skipped, and why; None if none are.
pub(super) fn describe_skipped(turns: &[&LogEntry]) -> Option<String> {
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
