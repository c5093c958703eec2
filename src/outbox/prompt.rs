//! PROMPT: what is asked of the LLM. Nothing of it is ever left out.

use super::results::successes;
use super::{Requested, boundaries, changed};
use crate::protocol::{Dialect, Outcome};
use crate::session::Session;
use crate::text::{indented, visible};

/// What stands in PROMPT from the second outbox on, to the letter.
const CONTINUE: &str = "Continue working on the task based on the results above. If the task is complete, send [DONE] with a summary.";

/// The same of a session of operations.
const CONTINUE_EVENTS: &str = "Continue working on the task based on the events above. If the task is complete, send a message operation with the id \"done\" and a summary.";

/// No more runs of blocks are named by their numbers.
const NAMED: usize = 10;
/// What begins words that an outbox has said already.
const BEFORE: &str = "The user has said, and you may have read it already:";

/// Where the newest reply was cut off: what of it was carried out, and from where it is to be sent
/// again.
fn rest(session: &Session, requested: &[Requested], out: &mut String) {
    let Some(block) = session.last_results.iter().position(Outcome::is_cut_off) else { return };
    let successes = successes(session, requested, block);
    let with = |wanted: bool| {
        let numbers = successes.iter().zip(1..).filter(|(success, _)| **success == wanted);
        runs(numbers.map(|(_, number)| number))
    };
    let applied = with(true).unwrap_or_else(|| "none".to_owned());
    let failed = with(false).map(|failed| format!("; failed: {failed}")).unwrap_or_default();
    let before = match failed.as_str() {
        "" => ", and nothing before it",
        _ => ", and before that what failed (see above), corrected; all else stands",
    };
    out.push_str(&format!(
        "Your reply could not be read to its end: applied: {applied}{failed}; send again from block {} (line {} of your reply) on{before}.\n",
        block + 1,
        session.last_results[block].line
    ));
}

/// Numbers in order, as `1–3, 5`; None where there are none.
fn runs(numbers: impl Iterator<Item = usize>) -> Option<String> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let named = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    let mut told: Vec<String> = runs.iter().take(NAMED).map(named).collect();
    if runs.len() > NAMED {
        told.push("…".to_owned());
    }
    (!told.is_empty()).then(|| told.join(", "))
}

/// PROMPT, without its marker.
pub(super) fn prompt(session: &Session, requested: &[Requested], out: &mut String) {
    if session.sequence == 1 {
        let task = visible(&session.task);
        let heading = |line: &str| {
            session.dialect == Dialect::Operations && boundaries::could_be_events(line)
        };
        if task.lines().any(|line| boundaries::could_be_marker(line) || heading(line)) {
            out.push_str(&indented(&task));
        } else {
            out.push_str(&task);
            out.push('\n');
        }
    }
    let written = session.words_written();
    let (before, said) = written.split_at(session.said_before.min(written.len()));
    says(BEFORE, before, out);
    says("The user says:", said, out);
    if session.sequence > 1 {
        if session.dialect == Dialect::Operations {
            // Among the events nothing else can stand.
            out.push_str(&changed::told(session));
        }
        rest(session, requested, out);
        out.push_str(match session.dialect {
            Dialect::Tags => CONTINUE,
            Dialect::Operations => CONTINUE_EVENTS,
        });
        out.push('\n');
    }
    out.push_str(&end(session, session.added));
}

/// The end of PROMPT when only so many words of the user had been added to it.
fn end(session: &Session, added: usize) -> String {
    let mut out = String::from("\n");
    let words = session.words_added();
    says("The user adds:", &words[..added.min(words.len())], &mut out);
    let place = match session.dialect {
        Dialect::Tags => "First line of your reply, in its code block",
        Dialect::Operations => "First line of your reply, in its code block, before the JSON",
    };
    out.push_str(&format!(
        "{place}: [REPLY session=\"{}\" sequence=\"{}\" key=\"{}\"]\n",
        session.id,
        session.sequence,
        session.key_with(added)
    ));
    out
}

/// The newest outbox of a session, with all words that were added to it, made of the text that it had
/// when there were fewer: all before them stays to the byte. None where this is no such text.
pub fn with_words(text: &str, session: &Session) -> Option<String> {
    let end = |added| end(session, added);
    let rest = (0..=session.added).rev().find_map(|added| text.strip_suffix(&*end(added)))?;
    Some(format!("{rest}{}", end(session.added)))
}

/// What the user says, below a line that begins it.
fn says(begins: &str, words: &[String], out: &mut String) {
    if !words.is_empty() {
        out.push_str(&format!("{begins}\n"));
        words.iter().for_each(|words| out.push_str(&indented(&visible(words))));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_told_as_one() {
        let told = |numbers: &[usize]| runs(numbers.iter().copied());
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[4]).unwrap(), "4");
        assert_eq!(told(&[1, 2, 3, 5, 7, 8]).unwrap(), "1–3, 5, 7–8");
        let many: Vec<usize> = (0..40).map(|n| 2 * n + 1).collect();
        assert_eq!(told(&many).unwrap(), "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, …");
    }
}
