//! The sections HEADER, `## Environment` and PROMPT. Only the task in HEADER can be shortened.

use super::Environment;
use super::boundaries::could_be_marker;
use super::budget::beginning;
use super::layout::Material;
use crate::protocol::{Dialect, Outcome, operations, tags};
use crate::session::Session;
use crate::text::{count, indented, visible, visible_line};

/// What PROMPT asks for after the first outbox.
const CONTINUE: &str = "Continue working on the task based on the results above. If the task is complete, send [DONE] with a summary.";
/// The same in a session of operations.
const CONTINUE_EVENTS: &str = "Continue working on the task based on the events above. If the task is complete, send a message operation with the id \"done\" and a summary.";
/// The most characters of the task in the first HEADER, whose PROMPT contains all of it, and the least in others.
const TASK: usize = 2_000;

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

/// All between HEADER and the listing.
pub(super) fn before_listing(session: &Session, environment: &Environment) -> String {
    let Environment { timeout, longest, output_limit, .. } = environment;
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
    let tools = match session.tools.join(", ") {
        tools if tools.is_empty() => "none of the usual ones were found".to_owned(),
        tools => tools,
    };
    let facts = [
        ("System", &environment.system),
        ("Shell", &environment.shell),
        ("Tools", &tools),
        ("Sandbox", &environment.sandbox),
        ("Network", &environment.network),
        ("Protected", &environment.protected),
        ("Limits", &limits),
    ];
    let policy = environment.policy.iter().map(|policy| ("Policy", policy));
    let facts = facts.into_iter().chain(policy);
    let lines = facts.map(|(name, value)| format!("  {name}: {}\n", visible_line(value)));
    format!(
        "\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\n## Environment\n{}\n## Workspace Files\n",
        lines.collect::<String>()
    )
}

/// PROMPT.
pub(super) fn prompt(material: &Material<'_>) -> String {
    let session = material.session;
    let mut out = "\n=== PROMPT ===\n".to_owned();
    let is_first = session.sequence == 1;
    if is_first {
        let task = visible(&session.task);
        if task.lines().any(could_be_marker) {
            out.push_str(&indented(&task));
        } else {
            out.push_str(&task);
            out.push('\n');
        }
    }
    let written = session.words_written();
    let (before, said) = written.split_at(session.said_before.min(written.len()));
    out.push_str(&words("The user has said, and you may have read it already:", before));
    out.push_str(&words("The user says:", said));
    if !is_first {
        // There is no event for changes.
        let (changes, go_on) = match session.dialect {
            Dialect::Tags => ("", CONTINUE),
            Dialect::Operations => (&*material.changes, CONTINUE_EVENTS),
        };
        let cut_off = describe_cut_off(&material.outcomes);
        out.push_str(&[changes, &cut_off, go_on, "\n"].concat());
    }
    out + &end(session, session.added)
}

/// If the newest reply was cut off: what to send again.
fn describe_cut_off(results: &[Outcome]) -> String {
    let Some(block) = results.iter().position(Outcome::is_cut_off) else { return String::new() };
    let failed = !results[..block].iter().all(Outcome::success);
    let corrected = if failed { "corrected versions of the blocks that failed, then " } else { "" };
    let (number, line) = (block + 1, results[block].line);
    format!(
        "Your reply could not be read to its end. Send {corrected}everything from block {number} (line {line} of your reply) on, and nothing else.\n"
    )
}

/// The end of PROMPT, with the first `added` of the words that the person added after the outbox was written.
fn end(session: &Session, added: usize) -> String {
    let all = session.words_added();
    let words = words("The user adds:", &all[..added.min(all.len())]);
    let place = match session.dialect {
        Dialect::Tags => "First line of your reply, in its code block",
        Dialect::Operations => "First line of your reply, in its code block, before the JSON",
    };
    let (id, sequence, key) = (&session.id, session.sequence, session.key_with(added));
    format!("\n{words}{place}: [REPLY session=\"{id}\" sequence=\"{sequence}\" key=\"{key}\"]\n")
}

/// Updates the text of the newest outbox to contain all words that were added to it. Everything before them stays the
/// same. None if `text` is not that outbox.
pub fn with_words(text: &str, session: &Session) -> Option<String> {
    let rest =
        (0..=session.added).rev().find_map(|added| text.strip_suffix(&*end(session, added)))?;
    Some(format!("{rest}{}", end(session, session.added)))
}

/// What the person says, after an introduction; empty if they say nothing.
fn words(introduction: &str, words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let words: String = words.iter().map(|words| indented(&visible(words))).collect();
    format!("{introduction}\n{words}\n")
}
