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
}

/// The turns that an undo or a redo is about.
pub(super) struct SelectedTurns<'a> {
    /// The turns whose changes are reversed.
    pub(super) turns: Vec<&'a LogEntry>,
    /// The numbers of the turns that are undone or redone.
    pub(super) undid: Vec<u32>,
    /// The undo that is reversed, if this is a redo.
    pub(super) redid: Option<&'a LogEntry>,
    /// The summary of the session if a redo completes it again.
    pub(super) completes: Option<String>,
    /// The nearest earlier turn with recorded changes: the number of turns to undo to reach it, and its number.
    pub(super) next: Option<(usize, u32)>,
    /// The turns after the first of them that changed only ignored files.
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
                    "there is nothing to redo in session {id}: an undo can be taken back until a later turn changes files"
                ))
                .with_code("nothing-to-undo")
            })?;
            Ok(SelectedTurns::redo(entries, undo))
        }
        UndoRequest::Turns(wanted) => {
            let (mut turns, mut skipped): (Vec<&LogEntry>, Vec<&LogEntry>) =
                log::done(entries).into_iter().partition(|turn| is_undoable(turn));
            skipped.retain(|turn| turn.ignored.as_ref().is_some_and(|i| !i.only_products));
            if turns.is_empty() || wanted == 0 {
                let skipped = describe_skipped(&skipped).filter(|_| wanted > 0);
                let skipped = skipped.map(|skipped| format!("; {skipped}")).unwrap_or_default();
                return Err(Error::undo(format!(
                    "there is nothing to take back: no turn of session {id} is left that changed files{skipped}"
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
