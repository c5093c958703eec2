//! Writes operations as blocks: the inverse of the reader.

use std::fmt::Write;

use super::catalogue::name;
use crate::protocol::{Change, Operation, ShellCommand};

/// A reply that asks for `operations`, in canonical form. Reading it gives the same operations,
/// as long as no body holds its own closing tag on a line; none that was read does. What this
/// dialect has no words for is left out.
pub fn print<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> String {
    let mut out = String::new();
    for operation in operations {
        let name = name(operation.kind());
        // The reader trims a path; a name that begins with a blank keeps it behind `./`.
        let guard = match operation.path() {
            Some(path) if path.as_str().starts_with(char::is_whitespace) => "./",
            _ => "",
        };
        // Writing to a String cannot fail.
        let _ = match operation {
            Operation::Create { path, content, .. } => {
                writeln!(out, "[{name} path=\"{guard}{path}\"]\n{}[/{name}]", content.to_text())
            }
            Operation::Edit { path, change: Change::Lines { start, end, with } } => writeln!(
                out,
                "[{name} path=\"{guard}{path}\" start_line=\"{start}\" end_line=\"{end}\"]\n{with}[/{name}]"
            ),
            Operation::Edit { change: Change::First(_), .. } => Ok(()),
            Operation::Delete { path } | Operation::Read { path, .. } => {
                writeln!(out, "[{name} path=\"{guard}{path}\"]")
            }
            Operation::Run(ShellCommand { command: text, .. })
            | Operation::Message { text }
            | Operation::Done { summary: text, .. } => writeln!(out, "[{name}]\n{text}\n[/{name}]"),
        };
    }
    out
}
