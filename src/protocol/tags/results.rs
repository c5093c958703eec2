//! How outcomes are told in this dialect (tag protocol, "Previous Command Results").

use crate::protocol::{Capture, Detail, Ending, Execution, FailureKind, Outcome, Output};
use crate::text::{count, named, visible, visible_line};

/// What came of an operation, in one line without its `[OK] NAME: `.
pub fn summary(outcome: &Outcome) -> String {
    match &outcome.detail {
        Detail::Shown { .. } => "Shown to the user".to_owned(),
        Detail::Created { path, replaced, .. } => {
            format!("{} '{path}'", if *replaced { "Replaced" } else { "Created" })
        }
        Detail::Edited { path, lines: (start, end), inserted, total } => {
            let lines =
                if start == end { format!("line {start}") } else { format!("lines {start}-{end}") };
            let became = match inserted {
                0 => "removed".to_owned(),
                n => format!("replaced by {}", count(*n, "line")),
            };
            format!(
                "Edited '{path}' ({lines} {became}; the file has {} now)",
                count(*total, "line")
            )
        }
        Detail::Replaced { path, edits } => {
            format!("Edited '{path}' ({})", count(*edits, "replacement"))
        }
        Detail::Read { path, size, .. } => format!("Read '{path}' ({size} bytes)"),
        Detail::Deleted { path } => format!("Deleted '{path}'"),
        Detail::ReadLater { path } => format!("'{path}' will be shown in the next outbox"),
        Detail::Ran(execution) => ran(execution),
        Detail::Completed { .. } => "The session is complete".to_owned(),
        Detail::Unknown { reason } => visible_line(reason).into_owned(),
        Detail::Failed(failure) if failure.kind == FailureKind::Rejected => {
            format!("REJECTED: {}", visible_line(&failure.reason))
        }
        Detail::Failed(failure) if failure.kind == FailureKind::Denied => {
            let suggestion = failure.suggestion.as_deref();
            let suggestion = suggestion.map_or(String::new(), |text| format!(". {text}"));
            format!("DENIED: {}", visible_line(&(failure.reason.clone() + &suggestion)))
        }
        Detail::Failed(failure) => visible_line(&failure.reason).into_owned(),
    }
}

fn ran(execution: &Execution) -> String {
    let name = named(&execution.command);
    match &execution.ending {
        Ending::Exited(code) => format!("Ran {name} (exit code {code})"),
        Ending::Signalled(signal) => format!("Ran {name} (ended by signal {signal})"),
        Ending::TimedOut(limit) => format!(
            "Ran {name} (timed out after {} s; it and every process it had started were ended)",
            limit.as_secs_f64()
        ),
        Ending::Interrupted => {
            format!("Ran {name} (interrupted by the user; it may have partly run)")
        }
        Ending::Lost => format!(
            "Ran {name} (deaddrop, or its process that ran the command, was stopped meanwhile: it may have run in part or as a whole, and is not run again; look at what it did)"
        ),
        Ending::Stopped(why) => format!(
            "Ran {name} (ended by deaddrop with everything it had started: {})",
            visible_line(why)
        ),
        Ending::NotStarted(why) => format!("Could not run {name}: {}", visible_line(why)),
    }
}

/// A command's output as it is shown, one stream after the other where they were kept apart.
pub fn output(output: &Output) -> String {
    let shown = output.captures().into_iter().map(captured).filter(|text| !text.is_empty());
    shown.collect::<Vec<_>>().join("\n")
}

/// A stream as it is shown: head and tail, with a line between them that counts what was left out;
/// control characters made visible; no blank lines at the end.
fn captured(capture: &Capture) -> String {
    let mut shown = visible(&capture.head).into_owned();
    if capture.left_out > 0 {
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
        let n = usize::try_from(capture.left_out).unwrap_or(usize::MAX);
        shown.push_str(&format!("[... {} left out ...]\n", count(n, "character")));
        shown.push_str(&visible(&capture.tail));
    }
    shown.truncate(shown.trim_end().len());
    shown
}
