//! HEADER, and `## Environment`: what is known before anything was looked at.

use super::Environment;
use super::budget::chars_within;
use crate::protocol::Dialect;
use crate::session::Session;
use crate::text::{count, indented, visible, visible_line};
use crate::tokens;

/// HEADER without a task.
const FRAME: &str = "=== HEADER ===\nSession: {}\nSequence: {}\nTask: \n";

/// So many tokens HEADER takes at most beside its task.
pub(super) fn frame_tokens() -> usize {
    // An id and a number of five digits take less.
    tokens::count(FRAME) + 12
}

/// HEADER. Of a task that is more tokens than `room` (None: as many as it has), its beginning; the
/// line before it says so.
pub(super) fn header(session: &Session, room: Option<usize>, out: &mut String) {
    let Session { id, sequence, task, .. } = session;
    out.push_str(&format!("=== HEADER ===\nSession: {id}\nSequence: {sequence}\n"));
    let task = visible(task);
    let shown = room.map_or(&*task, |room| chars_within(&task, room));
    if shown.len() < task.len() {
        let all = task.chars().count();
        let rest =
            if *sequence == 1 { "PROMPT has all of it" } else { "the first message had it all" };
        out.push_str(&format!(
            "Task (its first {} of {all} characters; {rest}):\n",
            shown.chars().count()
        ));
        out.push_str(&indented(shown));
    } else if task.contains('\n') {
        out.push_str("Task:\n");
        out.push_str(&indented(&task));
    } else {
        out.push_str(&format!("Task: {task}\n"));
    }
}

/// `## Environment`.
pub(super) fn facts(session: &Session, environment: &Environment, out: &mut String) {
    let Environment { system, shell, sandbox, network, protected, output_limit, .. } = environment;
    let timeout = match (environment.timeout, environment.longest) {
        (usual, longest) if longest > usual && session.dialect == Dialect::Operations => {
            format!("{usual} s a command, or its timeout up to {longest} s")
        }
        (usual, _) => format!("{usual} s a command"),
    };
    let tools = match session.tools.join(", ") {
        tools if tools.is_empty() => "none of the usual ones were found".to_owned(),
        tools => tools,
    };
    let output = match session.dialect {
        Dialect::Tags => "its output",
        Dialect::Operations => "its stdout and of its stderr",
    };
    let limits = format!("{timeout}, {} of {output}", count(*output_limit, "character"));
    out.push_str("## Environment\n");
    let policy = environment.policy.iter().map(|policy| ("Policy", policy));
    let all = [
        ("System", system),
        ("Shell", shell),
        ("Tools", &tools),
        ("Sandbox", sandbox),
        ("Network", network),
        ("Protected", protected),
        ("Limits", &limits),
    ];
    for (name, value) in all.into_iter().chain(policy) {
        out.push_str(&format!("  {name}: {}\n", visible_line(value)));
    }
}
