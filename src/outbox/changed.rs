//! What the LLM is told of files that changed by other hands than its file operations: its commands, and
//! the person who took turns back. Names are data; each stands within a line of ours.

use crate::session::{Back, Changed, FileChange, Session};
use crate::text::count;

/// So many files are named.
const NAMED: usize = 30;
/// So many characters of each name.
const LENGTH: usize = 200;

/// What the newest turn is told to have changed beside its results, in whole lines; mostly nothing.
pub(super) fn told(session: &Session) -> String {
    let Some(changed) = session.changed.as_deref() else { return String::new() };
    if let Some(back) = &changed.back {
        return taken_back(changed, back);
    }
    let mut told = String::new();
    if changed.by_commands > 0 {
        let by_commands: Vec<&FileChange> =
            changed.named.iter().filter(|change| change.by_command).collect();
        let all = count(changed.by_commands, "file");
        told = format!("Commands changed {all}: {}\n", names(&by_commands, changed.by_commands));
    }
    // A build is nothing to tell, nor what is new: it takes nothing from anybody.
    if let Some(ignored) = changed.ignored.as_ref().filter(|ignored| ignored.lost.count > 0) {
        let named: Vec<String> = ignored.lost.named.iter().take(NAMED).map(|n| short(n)).collect();
        let more = rest(ignored.lost.count, named.len());
        told.push_str(&format!(
            "Commands deleted or overwrote ignored files, which the user cannot undo: {}{more}\n",
            named.join(", ")
        ));
    }
    told
}

fn taken_back(changed: &Changed, back: &Back) -> String {
    let turns: Vec<String> = back.turns.iter().map(u32::to_string).collect();
    let turns = match turns.as_slice() {
        [one] => format!("what your reply to message {one} changed"),
        _ => format!("what your replies to messages {} changed", turns.join(", ")),
    };
    let but = match (back.left.len(), back.others.count) {
        (0, 0) => "",
        (_, 0) => ", but for those that were left",
        _ => ", but for those that are named below",
    };
    let (what, beside) = match back.redid {
        Some(_) => (
            format!("The user has put back {turns}, which they had undone: it stands again{but}"),
            "No command was run again for that.",
        ),
        None => (
            format!("The user has undone {turns}: files are as they were before{but}"),
            "Only files of the workspace were put back: what commands did beside them stands, such as commits, ignored files and all that is outside the workspace.",
        ),
    };
    let named: Vec<&FileChange> = changed.named.iter().collect();
    let mut told = match changed.files {
        0 => format!("{what}.\n"),
        n => format!("{what}. {} changed by that: {}\n", count(n, "file"), names(&named, n)),
    };
    if !back.left.is_empty() {
        let left: Vec<String> = back.left.iter().take(NAMED).map(|(path, _)| short(path)).collect();
        let more = rest(back.left.len(), left.len());
        told.push_str(&format!("Left as they are: {}{more}\n", left.join(", ")));
    }
    if let Some(ignored) = back.ignored.as_ref().filter(|ignored| ignored.matters()) {
        let left: Vec<String> = ignored.named.iter().take(NAMED).map(|name| short(name)).collect();
        let more = rest(ignored.places, left.len());
        told.push_str(&format!("Ignored files were not put back: {}{more}\n", left.join(", ")));
    }
    if back.others.count > 0 {
        let others: Vec<String> = back.others.named.iter().take(NAMED).map(|p| short(p)).collect();
        let more = rest(back.others.count, others.len());
        let not = match back.redid {
            Some(_) => "Not as you left them",
            None => "Not as they were before",
        };
        told.push_str(&format!(
            "{not}, but as somebody else changed them since: {}{more}\n",
            others.join(", ")
        ));
    }
    told.push_str(beside);
    told.push_str(" Go by these files as they are now, and look at them again before you edit lines of them by number.\n");
    told
}

fn names(changes: &[&FileChange], all: usize) -> String {
    let named: Vec<String> =
        changes.iter().take(NAMED).map(|change| short(&change.told())).collect();
    format!("{}{}", named.join(", "), rest(all, named.len()))
}

fn rest(all: usize, named: usize) -> String {
    if all > named { format!(" and {} more", all - named) } else { String::new() }
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
