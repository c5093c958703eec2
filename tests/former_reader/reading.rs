//! What a reader makes of a reply, as lines. The one place here that knows the library's names.

use deaddrop::protocol::{
    Change, Dialect, Existing, Operation, ParsedReply, Reading, RelPath, Step, StepContent, code,
    read,
};

/// A line for what the reply as a whole is, if there is something to say, one for each step and, indented
/// below it, one for each of its warnings. `+` means that the step can be executed; its kind, its path
/// and a digest of everything it asks for follow. `!` means an error, `!!` one that ends the reply.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let reply = read(text, Dialect::Tags);
    let mut lines = Vec::new();
    if let Some(address) = &reply.answers {
        let key = address.key.as_deref().unwrap_or("-");
        lines.push(format!("answers {:?} {} {key:?}", address.session, address.sequence));
    }
    let early = ParsedReply::new(text.to_owned()).ends_early();
    if reply.unclosed || early {
        let unclosed = if reply.unclosed { " unclosed" } else { "" };
        let early = if early { " early" } else { "" };
        lines.push(format!("may be incomplete:{unclosed}{early}"));
    }
    let is_executable = |step: &Step| matches!(step.asks, StepContent::Operation(_));
    if reply.dialect == Some(Dialect::Operations) && reply.steps.iter().any(is_executable) {
        // What a message asks for is the other dialect's business; that it counts is the reader's.
        lines.push(format!("{} + message of the operations dialect", reply.steps[0].line));
        let told = reply.steps.iter().flat_map(warnings);
        let of_tags = ["other-dialect", "tags-in-thoughts", "tags-in-element"];
        lines.extend(
            told.filter(|told| of_tags.contains(&told.as_str())).map(|told| indented(&told)),
        );
        return lines;
    }
    for step in &reply.steps {
        lines.push(match &step.asks {
            StepContent::Operation(operation) => {
                let held = if step.passes_over { ", held" } else { "" };
                format!("{} + {}{held}", step.line, described(operation))
            }
            StepContent::Invalid(invalid) => {
                let mark = if step.ends { "!!" } else { "!" };
                let rejected = if invalid.rejected { ", rejected" } else { "" };
                format!(
                    "{} {mark} {} {}{rejected}",
                    step.line,
                    code(invalid.kind),
                    code(invalid.mistake)
                )
            }
        });
        let mut told: Vec<String> = warnings(step).collect();
        told.sort();
        lines.extend(told.into_iter().map(|told| indented(&told)));
    }
    lines
}

fn warnings(step: &Step) -> impl Iterator<Item = String> {
    step.warnings.iter().map(|warning| code(warning.kind))
}

fn indented(warning: &str) -> String {
    format!("    ~ {warning}")
}

fn described(operation: &Operation) -> String {
    let at = |path: Option<&str>| path.unwrap_or(".").to_owned();
    let (kind, path, rest) = match operation {
        Operation::Message { text } => ("message", None, text.clone()),
        Operation::Create { path, content, existing } => {
            let existing = match existing {
                Existing::Fail => "fail",
                // The former reader looked itself whether lines may be left out.
                _ if existing.must_compare_with(content.as_bytes()) => "replace whole",
                _ => "replace",
            };
            ("create", Some(at(Some(path.as_str()))), format!("{existing}\n{}", content.to_text()))
        }
        Operation::Edit { path, change } => {
            let rest = match change {
                Change::Lines { start, end, with, .. } => format!("lines {start} {end}\n{with}"),
                Change::First(pairs) => pairs.iter().fold("first".to_owned(), |all, pair| {
                    format!("{all}\n{:?} {:?}", pair.old, pair.new)
                }),
                Change::Once(pairs) => pairs.iter().fold("once".to_owned(), |all, pair| {
                    format!("{all}\n{:?} {:?}", pair.old, pair.new)
                }),
            };
            ("edit", Some(at(Some(path.as_str()))), rest)
        }
        Operation::Delete { path } => ("delete", Some(at(Some(path.as_str()))), String::new()),
        Operation::Read { path, reading } => {
            let rest = match reading {
                Reading::Later(part) => {
                    format!("{:?} {:?} {}", part.start, part.end, part.numbered)
                }
                Reading::Definition(name) => format!("definition {name:?}"),
                Reading::Now(encoding) => format!("now {encoding:?}"),
            };
            ("read", Some(at(Some(path.as_str()))), rest)
        }
        Operation::List { path } => {
            ("list", Some(at(path.as_ref().map(RelPath::as_str))), String::new())
        }
        Operation::Search { pattern, path } => {
            ("search", Some(at(path.as_ref().map(RelPath::as_str))), pattern.clone())
        }
        Operation::Move { path, to } => {
            ("move", Some(at(Some(path.as_str()))), to.as_str().to_owned())
        }
        Operation::Run(run) => {
            let cwd = run.cwd.as_ref().map(RelPath::as_str);
            ("run", None, format!("{:?} {cwd:?} {:?} {:?}", run.command, run.timeout, run.env))
        }
        Operation::Done { summary, if_ok: true } => ("done if ok", None, summary.clone()),
        Operation::Done { summary, if_ok: false } => ("done", None, summary.clone()),
    };
    let path = path.map_or(String::new(), |path| format!(" {path:?}"));
    format!("{kind}{path} {}", &blake3::hash(rest.as_bytes()).to_hex()[..8])
}
