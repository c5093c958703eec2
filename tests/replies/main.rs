//! Replies as they arrive, row by row of docs/replies.md. Each file `NN_name.txt` beside this one is
//! a row; what touches files is among the scenarios.
//!
//! ```text
//! %% what the case shows
//! the reply, line by line
//! ---
//! what it is read as
//! ```
//!
//! In a reply `\u{200B}` stands for that character, `\r` for a carriage return, and a last line that
//! is `\c` for none, so that the reply ends without a newline. What it is read as is a line for each
//! block: its line, `+` and what it asks for (a body as a string with `\n`), or `!` with the code of the
//! error, `!!` if nothing after it is read, and `, held` if it does not end the session because a tag was
//! read as prose; then, indented, `~` with the code of each warning. Sentences are tested by the scenarios.
//! `REPLIES=overwrite cargo test --test replies` writes the readings anew: read every line that changed.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use deaddrop::protocol::{Change, Operation, Reading, ReplyAddress, Step, StepContent, tags};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::json;
use similar::TextDiff;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replies");
    let mut files: Vec<PathBuf> = fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    files.sort();
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        Trial::test(name, move || check(&file))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Reads every case of a file, and compares what it is read as.
fn check(file: &Path) -> Result<(), Failed> {
    let expected = fs::read_to_string(file)?;
    let told = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scripting.md"))?;
    let mut actual = String::new();
    let mut cases = 0;
    for case in expected.split("%% ").skip(1) {
        let (title, rest) = case.split_once('\n').ok_or("a case without a reply")?;
        let written = match rest.split_once("\n---\n") {
            Some((written, _)) => written,
            None => rest.trim_end_matches('\n').trim_end_matches("\n---"),
        };
        cases += 1;
        let read = tags::parse(&unescaped(&format!("{written}\n"))?);
        actual.push_str(&format!("%% {title}\n{written}\n---\n"));
        if let Some(ReplyAddress { session, sequence, key }) = &read.answers {
            let key = key.as_deref().unwrap_or("-");
            actual.push_str(&format!("answers {session} {sequence} {key}\n"));
        }
        for step in &read.steps {
            actual.push_str(&shown(step));
            if let Some(sort) = sorts(step).find(|sort| !told.contains(&format!("`{sort}`"))) {
                return Err(
                    format!("%% {title}: docs/scripting.md does not tell of `{sort}`").into()
                );
            }
        }
        actual.push('\n');
    }
    if cases < 3 {
        return Err(format!("{cases} cases are too few").into());
    }
    let actual = actual.trim_end().to_owned() + "\n";
    if actual == expected {
        return Ok(());
    }
    if std::env::var("REPLIES").is_ok_and(|value| value == "overwrite") {
        fs::write(file, actual)?;
        return Ok(());
    }
    let diff = TextDiff::from_lines(&expected, &actual);
    Err(diff.unified_diff().header("expected", "actual").to_string().into())
}

fn unescaped(written: &str) -> Result<String, Failed> {
    let mut text = String::new();
    let mut rest = written.strip_suffix("\n\\c\n").unwrap_or(written);
    while let Some((before, after)) = rest.split_once("\\u{") {
        let (code, after) = after.split_once('}').ok_or("no } after \\u{")?;
        let code = u32::from_str_radix(code, 16)?;
        text.push_str(before);
        text.push(char::from_u32(code).ok_or("no character")?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text.replace("\\r\n", "\r\n"))
}

/// The sorts of all that is told of a step, as they are counted by.
fn sorts(step: &Step) -> impl Iterator<Item = String> {
    let mistake = match &step.asks {
        StepContent::Operation(_) => None,
        StepContent::Invalid(invalid) => Some(json!(invalid.mistake)),
    };
    let warnings = step.warnings.iter().map(|warning| json!(warning.kind));
    mistake.into_iter().chain(warnings).map(|sort| sort.as_str().unwrap().to_owned())
}

fn shown(step: &Step) -> String {
    let mut out = match &step.asks {
        StepContent::Operation(operation) => {
            let held = if step.passes_over { ", held" } else { "" };
            format!("{} + {}{held}\n", step.line, asked(operation))
        }
        StepContent::Invalid(invalid) => {
            let mark = if step.ends { "!!" } else { "!" };
            let sort = if invalid.rejected { " rejected" } else { "" };
            let code = json!(invalid.mistake);
            format!("{} {mark}{sort} {:?} {}\n", step.line, invalid.kind, code.as_str().unwrap())
        }
    };
    for warning in &step.warnings {
        out.push_str(&format!("    ~ {}\n", json!(warning.kind).as_str().unwrap()));
    }
    out
}

fn asked(operation: &Operation) -> String {
    match operation {
        Operation::Message { text } => format!("message {text:?}"),
        Operation::Create { path, content, existing } => {
            let whole = if existing.must_compare_with(content.as_bytes()) { " whole" } else { "" };
            format!("create{whole} {path} {:?}", content.to_text())
        }
        Operation::Edit { path, change: Change::Lines { start, end, with, .. } } => {
            format!("edit {path} {start}-{end} {with:?}")
        }
        Operation::Delete { path } => format!("delete {path}"),
        Operation::Edit { path, change: Change::First(_) } => format!("edit {path}"),
        Operation::Edit { path, change: Change::Once(pairs) } => {
            let pairs = pairs.iter().map(|pair| format!(" {:?} -> {:?}", pair.old, pair.new));
            format!("edit {path}{}", pairs.collect::<String>())
        }
        Operation::Read { path, reading: Reading::Later(part) } if !part.is_whole() => {
            let line = |line: Option<usize>| line.map_or(String::new(), |line| line.to_string());
            let numbered = if part.numbered { " numbered" } else { "" };
            format!("read {path} {}-{}{numbered}", line(part.start), line(part.end))
        }
        Operation::Read { path, .. } => format!("read {path}"),
        Operation::List { path } => {
            format!("list {}", path.as_ref().map_or(".", |path| path.as_str()))
        }
        Operation::Search { pattern, path } => {
            format!("search {pattern:?} {}", path.as_ref().map_or(".", |path| path.as_str()))
        }
        Operation::Move { path, to } => format!("move {path} to {to}"),
        Operation::Done { summary, if_ok: true } => format!("done if ok {summary:?}"),
        Operation::Run(run) => format!("run {:?}", run.command),
        Operation::Done { summary, .. } => format!("done {summary:?}"),
    }
}
