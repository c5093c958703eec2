//! The outbox: one text that tells a chat model all it needs, rendered from values alone (tag
//! protocol, "Outbox Format"). The same values always give the same text.
//!
//! Markers and headings stand flush left, and everything that is data is indented or stands in a
//! block whose marker it cannot forge (see `boundaries`). [`parts`] cuts a text that is longer than a
//! chat window takes.

mod boundaries;
mod contents;
mod events;
mod listing;
pub mod parts;

use crate::protocol::{Detail, Dialect, Outcome, operations, tags};
use crate::session::Session;
use crate::text::{count, indented, visible, visible_line};
use crate::workspace::walk::Walk;

pub use contents::Requested;
pub use events::{events, waiting};

/// What stands in PROMPT from the second outbox on, to the letter.
const CONTINUE: &str = "Continue working on the task based on the results above. If the task is complete, send [DONE] with a summary.";

/// The same of a session of operations.
const CONTINUE_EVENTS: &str = "Continue working on the task based on the events above. If the task is complete, send a message operation with the id \"done\" and a summary.";

/// What the Environment section tells about this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The operating system.
    pub system: String,
    /// How commands are run.
    pub shell: String,
    /// What confines commands, or that nothing does.
    pub sandbox: String,
    /// Whether commands reach the network.
    pub network: String,
    /// What may not be written although it lies in the workspace.
    pub protected: String,
    /// What the policy keeps from operations; None where that is nothing.
    pub policy: Option<String>,
    /// How long a command may take by itself, in seconds.
    pub timeout: u64,
    /// How long it may ask for, in seconds.
    pub longest: u64,
    /// How many characters of its output are kept.
    pub output_limit: usize,
}

/// Renders a session's newest outbox. `requested` answers its read requests, in their order; in a
/// session of operations there are none, since events hold what was read.
pub fn render(
    session: &Session,
    environment: &Environment,
    walk: &Walk,
    requested: &[Requested],
) -> String {
    let mut out = String::with_capacity(16 << 10);
    header(session, &mut out);
    out.push_str("\n=== PROTOCOL ===\n");
    out.push_str(match session.dialect {
        Dialect::Tags => tags::PROMPT,
        Dialect::Operations => operations::PROMPT,
    });
    out.push_str("\n=== CONTEXT ===\n");
    facts(session, environment, &mut out);
    out.push_str("\n## Workspace Files\n");
    listing::render(walk, session.dialect, &mut out);
    match session.dialect {
        Dialect::Tags => told(session, requested, &mut out),
        Dialect::Operations => events::render(session, environment.output_limit, &mut out),
    }
    out.push_str("\n=== PROMPT ===\n");
    prompt(session, requested, &mut out);
    out
}

fn header(session: &Session, out: &mut String) {
    out.push_str(&format!(
        "=== HEADER ===\nSession: {}\nSequence: {}\n",
        session.id, session.sequence
    ));
    let task = visible(&session.task);
    if task.contains('\n') {
        out.push_str("Task:\n");
        out.push_str(&indented(&task));
    } else {
        out.push_str(&format!("Task: {task}\n"));
    }
}

fn facts(session: &Session, environment: &Environment, out: &mut String) {
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

/// What came of the newest reply, and the files that it asked for.
fn told(session: &Session, requested: &[Requested], out: &mut String) {
    if !session.last_results.is_empty() {
        out.push_str("\n## Previous Command Results\n");
        results(session, requested, out);
    }
    if requested.iter().any(|file| file.contents.is_ok()) {
        out.push_str("\n## Requested File Contents\n");
        contents::render(session, requested, out);
    }
}

fn results(session: &Session, requested: &[Requested], out: &mut String) {
    let mut reads = requested.iter();
    for outcome in &session.last_results {
        let (success, summary) = match &outcome.detail {
            Detail::ReadLater { .. } => match reads.next() {
                Some(file) => file.told(),
                None => (false, "the file was not read".to_owned()),
            },
            _ => (outcome.success(), tags::summary(outcome)),
        };
        let mark = if success { "[OK]" } else { "[FAILED]" };
        out.push_str(&format!("{mark} {}: {summary}\n", tags::name(outcome.kind)));
        for warning in &outcome.warnings {
            out.push_str(&format!("  Warning: {}\n", visible_line(warning)));
        }
        if let Detail::Ran(execution) = &outcome.detail {
            let output = tags::output(&execution.output);
            if !output.is_empty() {
                // Every line but the first begins with two spaces, so none can pose as a result.
                let (first, rest) = output.split_once('\n').unwrap_or((&output, ""));
                out.push_str(format!("  Output: {first}").trim_end());
                out.push('\n');
                out.push_str(&indented(rest));
            }
        }
    }
}

/// Where the newest reply was cut off: what of it was carried out, and from where it is to be sent
/// again.
fn rest(session: &Session, requested: &[Requested], out: &mut String) {
    let Some(block) = session.last_results.iter().position(Outcome::is_cut_off) else { return };
    let read = match block {
        0 => "none".to_owned(),
        1 => "1".to_owned(),
        n => format!("1–{n}"),
    };
    let before = match failed_before(session, requested, block) {
        0 => ", and nothing before it".to_owned(),
        failed => {
            format!("; of what is before it {failed} failed (see above), and all else stands")
        }
    };
    out.push_str(&format!(
        "Your reply could not be read to its end: blocks read: {read}; send again from block {} (line {} of your reply) on{before}.\n",
        block + 1,
        session.last_results[block].line
    ));
}

/// How many of the first `count` results are failures.
fn failed_before(session: &Session, requested: &[Requested], count: usize) -> usize {
    let mut reads = requested.iter();
    let failed = |outcome: &&Outcome| match &outcome.detail {
        Detail::ReadLater { .. } => !reads.next().is_some_and(|file| file.told().0),
        _ => !outcome.success(),
    };
    session.last_results.iter().take(count).filter(failed).count()
}

fn prompt(session: &Session, requested: &[Requested], out: &mut String) {
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
    if !session.said.is_empty() {
        out.push_str("The user says:\n");
        for words in &session.said {
            out.push_str(&indented(&visible(words)));
        }
        out.push('\n');
    }
    if session.sequence > 1 {
        rest(session, requested, out);
        out.push_str(match session.dialect {
            Dialect::Tags => CONTINUE,
            Dialect::Operations => CONTINUE_EVENTS,
        });
        out.push('\n');
    }
    let place = match session.dialect {
        Dialect::Tags => "First line of your reply, in its code block",
        Dialect::Operations => "First line of your reply, in its code block, before the JSON",
    };
    out.push_str(&format!(
        "\n{place}: [REPLY session=\"{}\" sequence=\"{}\" key=\"{}\"]\n",
        session.id,
        session.sequence,
        session.key()
    ));
}
