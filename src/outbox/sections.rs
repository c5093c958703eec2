//! The sections HEADER, `## Environment` and PROMPT. Only the task in HEADER can be shortened.

use super::Environment;
use super::boundaries::could_be_marker;
use super::budget::{beginning, clipped};
use super::layout::RenderInput;
use super::results::changes_within;
use crate::protocol::{Dialect, Outcome, operations, tags};
use crate::session::Session;
use crate::text::{count, indented, visible, visible_line};

/// The most characters of the task in the first HEADER (PROMPT contains all of it), and the least limit in later ones.
const TASK: usize = 2_000;

/// The instruction after an operation was denied.
const DENIED: &str = "Do not send again what was denied. Find another way, or do the rest and say in your summary what is left to the user.\n";

/// HEADER, with about `limit` characters of the task.
pub(super) fn header(session: &Session, limit: usize) -> String {
    let Session { id, sequence, task, .. } = session;
    let (limit, whole) = match sequence {
        1 => (limit.min(TASK), "PROMPT contains all of it"),
        _ => (limit.max(TASK), "the first message contained all of it"),
    };
    let task = visible(task);
    let shown = beginning(&task, limit);
    let task = if shown.len() < task.len() {
        let (first, all) = (shown.chars().count(), task.chars().count());
        format!(" (its first {first} of {all} characters; {whole}):\n{}", indented(shown))
    } else if task.contains('\n') {
        format!(":\n{}", indented(&task))
    } else {
        format!(": {task}\n")
    };
    format!("=== HEADER ===\nSession: {id}\nSequence: {sequence}\nTask{task}")
}

/// Everything between HEADER and the listing.
pub(super) fn before_listing(session: &Session, environment: &Environment) -> String {
    let Environment { timeout, longest, output_limit, max_tokens, .. } = environment;
    let kept = count(*output_limit, "character");
    let (protocol, limits) = match session.dialect {
        Dialect::Tags => (tags::PROMPT, format!("{timeout} s a command, {kept} of its output")),
        Dialect::Operations => {
            let longer = format!(", or its timeout up to {longest} s");
            let longer = if longest > timeout { &*longer } else { "" };
            let kept = format!("{kept} of its stdout and of its stderr");
            (operations::PROMPT, format!("{timeout} s a command{longer}, {kept}"))
        }
    };
    let limits = format!("{limits}, {max_tokens} tokens a message");
    let tools = session.tools.join(", ");
    let none = "none of the usual ones were found".to_owned();
    let tools = if tools.is_empty() { none } else { tools };
    let facts = [
        ("System", &environment.system),
        ("Shell", &environment.shell),
        ("Tools", &tools),
        ("Sandbox", &environment.sandbox),
        ("Network", &environment.network),
        ("Protected", &environment.protected),
        ("Limits", &limits),
    ];
    let project = session.project.iter().map(|project| ("Project", project));
    let policy = environment.policy.iter().map(|policy| ("Policy", policy));
    let line = |(name, value): (&str, &String)| format!("  {name}: {}\n", visible_line(value));
    let facts: String = facts.into_iter().chain(project).chain(policy).map(line).collect();
    format!(
        "\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\n## Environment\n{facts}\n## Workspace Files\n"
    )
}

/// The beginning of PROMPT, which is never shortened: the task and the messages from the person.
pub(super) fn prompt(session: &Session) -> String {
    let mut out = "\n=== PROMPT ===\n".to_owned();
    if session.sequence == 1 {
        let task = visible(&session.task);
        let is_unclear = task.lines().any(could_be_marker);
        out += &if is_unclear { indented(&task) } else { format!("{task}\n") };
    }
    let written = session.words_written();
    let (before, said) = written.split_at(session.said_before.min(written.len()));
    out.push_str(&words("The user has said, and you may have read it already:", before));
    out + &words("The user says:", said)
}

/// The rest of PROMPT, with lists of about `limit` characters.
pub(super) fn prompt_end(material: &RenderInput<'_>, limit: usize) -> String {
    let session = material.session;
    let end = end(session, session.added);
    if session.sequence == 1 {
        return end;
    }
    let cut_off = describe_cut_off(&material.outcomes);
    let denied = if material.outcomes.iter().any(Outcome::is_denied) { DENIED } else { "" };
    let (changes, what, done) = match session.dialect {
        Dialect::Tags => ("", "results", "[DONE] with"),
        // The protocol has no event for changes.
        Dialect::Operations => {
            (&*material.changes, "events", "a message operation with the id \"done\" and")
        }
    };
    let changes = changes_within(changes, limit);
    format!(
        "{changes}{cut_off}{denied}Continue working on the task based on the {what} above. If the task is complete, send {done} a summary.\n{end}"
    )
}

/// If the newest reply was cut off, describes what was carried out and what to send again.
fn describe_cut_off(results: &[Outcome]) -> String {
    let Some(cut) = results.iter().position(Outcome::is_cut_off) else { return String::new() };
    let (applied, failed): (Vec<usize>, Vec<usize>) =
        (1..=cut).partition(|number| results[number - 1].success());
    let told = describe_blocks(" Applied", &applied) + &describe_blocks(" Failed", &failed);
    let corrected =
        if failed.is_empty() { "" } else { "corrected versions of the blocks that failed, then " };
    let (number, line) = (cut + 1, results[cut].line);
    format!(
        "Your reply could not be read to its end.{told} Send {corrected}everything from block {number} (line {line} of your reply) on, and nothing else.\n"
    )
}

/// Describes blocks by their ascending numbers: `Applied: blocks 1-3, 5.`; empty if there are none.
fn describe_blocks(what: &str, numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    });
    let runs = clipped(&runs.collect::<Vec<_>>().join(", "), 60);
    let noun = if numbers.len() == 1 { "block" } else { "blocks" };
    if runs.is_empty() { runs } else { format!("{what}: {noun} {runs}.") }
}

/// The end of PROMPT, with the first `added` messages that the person added after the outbox was written.
fn end(session: &Session, added: usize) -> String {
    let all = session.words_added();
    let words = words("The user adds:", &all[..added.min(all.len())]);
    let json = if session.dialect == Dialect::Operations { ", before the JSON" } else { "" };
    let place = format!("First line of your reply, in its code block{json}");
    let (id, sequence) = (&session.id, session.sequence);
    let key = session.key_of(sequence, added);
    format!("\n{words}{place}: [REPLY session=\"{id}\" sequence=\"{sequence}\" key=\"{key}\"]\n")
}

/// Updates the text of the newest outbox so that it contains all added messages. The text before them stays the same.
/// None if `text` is not that outbox.
pub fn with_words(text: &str, session: &Session) -> Option<String> {
    let rest =
        (0..=session.added).rev().find_map(|added| text.strip_suffix(&*end(session, added)))?;
    Some(format!("{rest}{}", end(session, session.added)))
}

/// The messages from the person after an introduction; empty if there are none.
fn words(introduction: &str, words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let words: String = words.iter().map(|words| indented(&visible(words))).collect();
    format!("{introduction}\n{words}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_told_as_one() {
        assert_eq!(describe_blocks("Failed", &[]), "");
        assert_eq!(describe_blocks("Failed", &[4]), "Failed: block 4.");
        assert_eq!(describe_blocks("Failed", &[1, 2, 3, 5, 7, 8]), "Failed: blocks 1-3, 5, 7-8.");
        let many: Vec<usize> = (0..1000).map(|n| 2 * n + 1).collect();
        let told = describe_blocks("Failed", &many);
        assert!(
            told.starts_with("Failed: blocks 1, 3, 5, 7, 9, 11, ") && told.len() < 120,
            "{told}"
        );
    }
}
