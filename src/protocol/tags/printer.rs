//! Writes operations as blocks: the inverse of the reader.

use std::borrow::Cow;
use std::fmt::Write;

use super::catalogue::name;
use crate::protocol::{Change, Operation, RelPath, ShellCommand};

/// A reply that asks for `operations`, in canonical form. Reading it gives the same operations,
/// as long as no body holds what reading takes for none of it: its own closing tag on a line, a fence
/// around all of it, a gutter of line numbers. What this dialect has no words for is left out.
pub fn print<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> String {
    let mut out = String::new();
    for operation in operations {
        let name = name(operation.kind());
        // The reader trims a path; a name that begins with a blank keeps it behind `./`.
        let guard = match operation.path() {
            Some(path) if path.as_str().starts_with(char::is_whitespace) => "./",
            _ => "",
        };
        // A quote would end the value, and entities are read wherever they stand in it.
        let path = match operation.path().map_or("", RelPath::as_str) {
            path if path.contains(['"', ';']) => {
                Cow::from(path.replace('&', "&amp;").replace('"', "&quot;"))
            }
            path => Cow::from(path),
        };
        // Writing to a String cannot fail.
        let _ = match operation {
            Operation::Create { content, .. } => {
                writeln!(out, "[{name} path=\"{guard}{path}\"]\n{}[/{name}]", content.to_text())
            }
            Operation::Edit { change: Change::Lines { start, end, with }, .. } => writeln!(
                out,
                "[{name} path=\"{guard}{path}\" start_line=\"{start}\" end_line=\"{end}\"]\n{with}[/{name}]"
            ),
            Operation::Edit { change: Change::First(_), .. } => Ok(()),
            Operation::Delete { .. } | Operation::Read { .. } => {
                writeln!(out, "[{name} path=\"{guard}{path}\"]")
            }
            Operation::Run(ShellCommand { command: text, .. })
            | Operation::Message { text }
            | Operation::Done { summary: text, .. } => writeln!(out, "[{name}]\n{text}\n[/{name}]"),
        };
    }
    out
}
