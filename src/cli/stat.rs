//! What a turn changed, in a line.

use crate::session::{Back, Changed, FileChange};
use crate::text::count;

/// So many files are named.
const NAMED: usize = 8;

/// `2 files changed: src/a.py (+3 −1), new tests/b.py (+20)`; None where nothing was.
pub(super) fn line(changed: &Changed) -> Option<String> {
    let files = (changed.files > 0).then(|| {
        let named: Vec<String> =
            changed.named.iter().take(NAMED).map(FileChange::told_with_lines).collect();
        let more = match changed.files - named.len() {
            0 => String::new(),
            n => format!(" and {n} more (`deaddrop diff --stat`)"),
        };
        format!("{} changed: {}{more}", count(changed.files, "file"), named.join(", "))
    });
    match (&changed.back, files) {
        (None, files) => files,
        (Some(back), files) => {
            let files = files.map_or(String::new(), |files| format!("; {files}"));
            Some(format!("{}{files}", back_told(back)))
        }
    }
}

fn back_told(back: &Back) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let which = if turns.len() == 1 { "Turn" } else { "Turns" };
    let what = if back.redid.is_some() { "put back" } else { "undone" };
    let left = match back.left.len() {
        0 => String::new(),
        n => format!(", but for {} (see above)", count(n, "place")),
    };
    format!("{which} {} {what}{left}", turns.join(", "))
}
