//! What a turn came to, in a few rows below its operations: what ran, what failed and with which last
//! line, what was warned of, and which files changed.

use std::time::Duration;

use super::columns;
use super::output::Terminal;
use crate::protocol::{Detail, Execution, FailureKind, Outcome, tags};
use crate::runner::last_line;
use crate::secrets::Redactor;
use crate::settings::Secrets;
use crate::terminal::Styled;
use crate::text::{count, indented, named, visible_line};

/// So many rows tell what failed, was refused or was not run.
const MOST_ROWS: usize = 5;
/// So many rows tell which files changed.
const FILE_ROWS: usize = 3;
/// So many lines of the last command's output are shown at the end of a session.
const LAST_LINES: usize = 10;
/// What rows begin with is so wide, with the blanks around it.
const LABEL: usize = 12;

/// How a reader takes an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It was done.
    Done,
    /// It was tried and failed, or could not be understood.
    Failed,
    /// A policy, a person or deaddrop itself did not let it be done.
    Refused,
}

impl Mark {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match &outcome.detail {
            Detail::Failed(failure)
                if matches!(failure.kind, FailureKind::Rejected | FailureKind::Denied) =>
            {
                Self::Refused
            }
            _ if outcome.success() => Self::Done,
            _ => Self::Failed,
        }
    }

    /// The mark as `--json` has it; these stay what they are.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What the outcomes of a reply came to, in rows of at most `width` columns, but for the first, which
/// [`Terminal::say`] breaks where there is room to read it; nothing where there is
/// nothing to tell that is not seen at once. `recorded`: which files changed is told by somebody who
/// knows it of commands too, which outcomes do not tell.
pub(super) fn rows(
    ui: &Terminal,
    outcomes: &[Outcome],
    recorded: bool,
    width: usize,
) -> Vec<Styled> {
    let work: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.is_work()).collect();
    if work.is_empty() {
        return Vec::new();
    }
    let room = width.saturating_sub(LABEL).max(8);
    let mut rows = vec![row(ui.bold("Ran"), &ran(&work, room), room)];
    for (mark, label) in [(Mark::Failed, "Failed"), (Mark::Refused, "Refused")] {
        let of_mark: Vec<_> = work.iter().filter(|outcome| Mark::of(outcome) == mark).collect();
        for outcome in of_mark.iter().take(MOST_ROWS) {
            let told = with_end(&tags::summary(outcome), outcome, room);
            rows.push(row(ui.red(label), &told, room));
            if let Some(last) = last_of(outcome) {
                rows.push(row("".into(), &last, room));
            }
        }
        if let Some(more @ 1..) = of_mark.len().checked_sub(MOST_ROWS) {
            rows.push(row("".into(), &format!("and {more} more, see above"), room));
        }
    }
    let warnings: Vec<_> = work.iter().flat_map(|outcome| &outcome.warnings).collect();
    if let Some(first) = warnings.first() {
        rows.push(row(ui.yellow("Warned"), &first.text, room));
        if warnings.len() > 1 {
            let more = format!("and {} more, see above", warnings.len() - 1);
            rows.push(row("".into(), &more, room));
        }
    }
    let changed = if recorded { Vec::new() } else { changed(&work) };
    if !changed.is_empty() {
        for (n, line) in listed(&changed, room).iter().enumerate() {
            let label = if n == 0 { "Changed" } else { "" };
            rows.push(row(ui.bold(label), line, room));
        }
    }
    rows
}

/// `  Failed     what`, cut to its row.
fn row(label: Styled, text: &str, room: usize) -> Styled {
    let gap = " ".repeat(LABEL - 2 - label.as_str().len());
    Styled::from("  ") + label + gap + columns::begin(text, room)
}

/// What is told of a command, its middle left out where it does not fit: how it ended stands last.
fn with_end(told: &str, outcome: &Outcome, room: usize) -> String {
    let end = match &outcome.detail {
        Detail::Ran(_) if columns::wide(told) > room => told.rfind(" ("),
        _ => None,
    };
    let Some((command, end)) = end.map(|at| told.split_at(at)) else { return told.to_owned() };
    match room.checked_sub(columns::wide(end)) {
        Some(left @ 8..) => format!("{}{end}", columns::begin(command, left)),
        _ => told.to_owned(),
    }
}

/// `6 operations (2 commands, 4.1 s): 4 done, 1 failed, 1 refused`; where that does not fit, what they
/// came to stands before how many they are.
fn ran(work: &[&Outcome], room: usize) -> String {
    let with = |mark| work.iter().filter(|outcome| Mark::of(outcome) == mark).count();
    let mut parts = vec![format!("{} done", with(Mark::Done))];
    for mark in [Mark::Failed, Mark::Refused] {
        if let n @ 1.. = with(mark) {
            parts.push(format!("{n} {}", mark.word()));
        }
    }
    let times: Vec<Duration> = work
        .iter()
        .filter_map(|outcome| match &outcome.detail {
            Detail::Ran(execution) => Some(execution.duration),
            _ => None,
        })
        .collect();
    let time = times.iter().sum::<Duration>().as_secs_f64();
    let commands = match times.len() {
        0 => String::new(),
        n => format!(" ({}, {time:.1} s)", count(n, "command")),
    };
    let (all, came_to) = (count(work.len(), "operation"), parts.join(", "));
    let whole = format!("{all}{commands}: {came_to}");
    if columns::wide(&whole) <= room {
        return whole;
    }
    let short = format!("{all}: {came_to}");
    if columns::wide(&short) <= room { short } else { came_to }
}

/// The last line that a command wrote, on standard error if anything stands there.
pub(super) fn last_of(outcome: &Outcome) -> Option<String> {
    let Detail::Ran(Execution { output, .. }) = &outcome.detail else { return None };
    let mut captures = output.captures().into_iter().rev();
    captures.find_map(|capture| {
        let end = if capture.tail.is_empty() { &capture.head } else { &capture.tail };
        last_line(end).map(|last| last.text)
    })
}

/// The end of what the last command wrote, in at most [`LAST_LINES`] lines, below a line that names the command; None if
/// it wrote nothing. Secrets that are known by their form are withheld. It is for the person alone: what their `.env`
/// contains is shown.
pub(super) fn last_output(outcomes: &[Outcome], secrets: &Secrets) -> Option<String> {
    let ran = outcomes.iter().rev().find_map(|outcome| match &outcome.detail {
        Detail::Ran(execution) => Some(execution),
        _ => None,
    })?;
    let (name, mut redactor) = (named(&ran.command), Redactor::new(secrets));
    let captures = ran.output.captures();
    let is_cut = captures.iter().any(|it| !it.tail.is_empty());
    let ends = captures.iter().map(|it| {
        let end = if it.tail.is_empty() { &it.head } else { &it.tail };
        redactor.output(&name, None, end).into_owned()
    });
    let text: String = ends.collect();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let end = lines.get(lines.len().saturating_sub(LAST_LINES)..).filter(|end| !end.is_empty())?;
    let is_part = is_cut || end.len() < lines.len();
    let of = if is_part { "the end of the output" } else { "the output" };
    let end: Vec<_> = end.iter().map(|line| visible_line(line)).collect();
    Some(format!("This is {of} of {name}:\n{}", indented(&end.join("\n"))))
}

/// Each file that operations changed, in their order, with what became of it last.
fn changed(work: &[&Outcome]) -> Vec<String> {
    let mut files: Vec<(String, &str)> = Vec::new();
    let mut note = |path: String, what: &'static str| {
        let was_new = files.iter().any(|(known, was)| *known == path && *was == " (new)");
        files.retain(|(known, _)| *known != path);
        files.push((path, if was_new && what.is_empty() { " (new)" } else { what }));
    };
    for outcome in work {
        match &outcome.detail {
            Detail::Created { path, replaced: false, .. } => note(path.to_string(), " (new)"),
            Detail::Created { path, .. }
            | Detail::Edited { path, .. }
            | Detail::Replaced { path, .. } => note(path.to_string(), ""),
            Detail::Deleted { path } => note(path.to_string(), " (deleted)"),
            Detail::Moved { path, to, .. } => note(format!("{path} -> {to}"), ""),
            _ => {}
        }
    }
    files.into_iter().map(|(path, what)| format!("{}{what}", visible_line(&path))).collect()
}

/// Files one behind the other in few rows; those that have no room are counted.
fn listed(files: &[String], room: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for (n, file) in files.iter().enumerate() {
        let full = rows.len() == FILE_ROWS;
        match rows.last_mut() {
            Some(row) if columns::wide(row) + 2 + columns::wide(file) < room => {
                row.push_str(&format!(", {file}"));
            }
            Some(_) if full => {
                rows.push(format!("and {} more", files.len() - n));
                return rows;
            }
            _ => rows.push(columns::begin(file, room)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Capture, Ending, Failure, Kind, Output, RelPath};

    fn outcome(kind: Kind, detail: Detail) -> Outcome {
        Outcome { kind, line: 1, detail, warnings: Vec::new(), asked: None, at: None }
    }

    fn path(path: &str) -> RelPath {
        RelPath::parse(path).unwrap()
    }

    fn command(command: &str, code: i32, output: Output) -> Outcome {
        let (ending, duration) = (Ending::Exited(code), Duration::from_secs(1));
        let command = command.to_owned();
        outcome(Kind::Run, Detail::Ran(Execution { command, ending, output, duration }))
    }

    fn capture(head: &str, tail: &str) -> Capture {
        Capture::cut(head, "", u64::from(!tail.is_empty()), "", tail)
    }

    fn told(outcomes: &[Outcome], width: usize) -> String {
        let rows = rows(&Terminal::plain(), outcomes, false, width);
        rows.iter().map(Styled::as_str).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_turn_is_told_in_few_rows() {
        let create = |at: &str, replaced| {
            outcome(Kind::Create, Detail::Created { path: path(at), bytes: 1, replaced })
        };
        let mut warned = create("b", true);
        let word = crate::protocol::WarningKind::FenceTakenOff;
        warned.warnings.push(crate::protocol::Warning::new(word, "a fence was taken off"));
        let apart =
            Output::Apart { stdout: capture("out", ""), stderr: capture("a", "b\nbad\u{7}\n") };
        let refused = Failure::rejected("'../x' leads out of the workspace");
        let outcomes = [
            create("a.py", false),
            warned,
            command("true", 0, Output::default()),
            command("pytest -q", 1, Output::Together(capture("..\n1 failed, 3 passed\n\n", ""))),
            command("make", 2, apart),
            outcome(Kind::Create, refused.into()),
            outcome(Kind::Delete, Detail::Deleted { path: path("b") }),
            outcome(Kind::Message, Detail::Shown { text: "Hello".into() }),
        ];
        assert_eq!(
            told(&outcomes, 80),
            "  Ran       7 operations (3 commands, 3.0 s): 4 done, 2 failed, 1 refused
  Failed    Ran 'pytest -q' (exit code 1)
            1 failed, 3 passed
  Failed    Ran 'make' (exit code 2)
            bad␇
  Refused   '../x' leads out of the workspace
  Warned    a fence was taken off
  Changed   a.py (new), b (deleted)"
        );
        // Where there is little room, what they came to is what matters.
        let (first, failed) = (outcomes.get(..5).unwrap(), "3 done, 2 failed");
        for (width, row) in
            [(80, "5 operations (3 commands, 3.0 s): "), (44, "5 operations: "), (40, "")]
        {
            let row = format!("  Ran       {row}{failed}");
            assert_eq!(told(first, width).lines().next(), Some(&*row));
        }
        for width in 20..60 {
            for row in told(&outcomes, width).lines() {
                assert!(columns::wide(row) <= width, "{row} in {width}");
            }
        }
    }

    #[test]
    fn how_a_long_command_ended_is_told_where_it_does_not_fit() {
        let long = [command(&"python3 -m unittest ".repeat(9), 3, Output::default())];
        let told = told(&long, 60);
        let row = told.lines().nth(1).unwrap();
        assert!(row.starts_with("  Failed    Ran 'python3 -m unittest"), "{told}");
        assert!(row.ends_with("… (exit code 3)") && columns::wide(row) <= 60, "{told}");
    }

    #[test]
    fn words_alone_need_no_summary_and_many_files_are_counted() {
        assert_eq!(told(&[outcome(Kind::Message, Detail::Shown { text: "x".into() })], 80), "");
        let many: Vec<_> = (0..99)
            .map(|n| {
                let path = path(&format!("a/rather/long/name/{n}.txt"));
                outcome(Kind::Create, Detail::Created { path, bytes: 1, replaced: false })
            })
            .collect();
        let told = told(&many, 70);
        assert!(told.ends_with("\n            and 96 more"), "{told}");
        let failed: Vec<_> = (0..7).map(|_| command("false", 1, Output::default())).collect();
        let told = super::tests::told(&failed, 70);
        assert!(told.contains("7 operations (7 commands, 7.0 s): 0 done, 7 failed"), "{told}");
        assert!(told.ends_with("\n            and 2 more, see above"), "{told}");
    }
}
