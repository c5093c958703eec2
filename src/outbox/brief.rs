//! The brief form of an outbox, for the chat that its last reply came from: all that only this outbox says, byte for
//! byte, but of the protocol one line, and of Environment and the listing what changed.
//!
//! It is derived from the texts of two outboxes. Of the sections before the results, nothing that data contains is
//! flush left, so the first heading of each name is deaddrop's own.

use std::collections::HashSet;

use super::budget::clipped;
use crate::protocol::Dialect;
use crate::session::Session;
use crate::tokens;

/// How many characters are shown of HEADER, which contains the task.
const HEADER: usize = 600;

/// In which form an outbox is shown or copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutboxForm {
    /// Whether it is the brief form.
    pub is_brief: bool,
    /// The number of its tokens, as in [`tokens::about`].
    pub tokens: usize,
    /// The number of tokens of the other form, if there is one.
    pub other: Option<usize>,
}

impl OutboxForm {
    /// Chooses the brief form if there is one and it is wanted. `limit` is that of [`tokens::about`].
    pub fn choose(
        complete: String,
        brief: Option<String>,
        wants_brief: bool,
        limit: usize,
    ) -> (String, Self) {
        let is_brief = wants_brief && brief.is_some();
        let (text, other) = match brief {
            Some(brief) if wants_brief => (brief, Some(complete)),
            brief => (complete, brief),
        };
        let other = other.map(|other| tokens::about(&other, limit));
        let form = Self { is_brief, tokens: tokens::about(&text, limit), other };
        (text, form)
    }
}

/// The sections of an outbox; `rest` is all after the listing.
#[derive(Default)]
struct Sections<'t> {
    header: &'t str,
    protocol: &'t str,
    environment: &'t str,
    listing: &'t str,
    rest: &'t str,
}

impl<'t> Sections<'t> {
    /// None if the text is not an outbox.
    fn of(text: &'t str) -> Option<Self> {
        let (header, text) = text.split_once("\n=== PROTOCOL ===\n")?;
        let (protocol, text) = text.split_once("\n=== CONTEXT ===\n## Environment\n")?;
        let at = text.find("\n## Workspace Files\n")? + 1;
        let (environment, text) = text.split_at(at);
        let (_, text) = text.split_once('\n')?;
        let (listing, rest) = text.split_at(text.find("\n\n")? + 1);
        Some(Self { header, protocol, environment, listing, rest })
    }
}

/// The brief form of an outbox of a session, for whoever has read outbox `read`, which is `previous` if it is still
/// known. None if `complete` is not an outbox any more.
pub fn brief(
    session: &Session,
    complete: &str,
    read: u32,
    previous: Option<&str>,
) -> Option<String> {
    let now = Sections::of(complete)?;
    let before = previous.and_then(Sections::of);
    let how = match session.dialect {
        Dialect::Tags => {
            "the [REPLY ...] line, then commands such as [EDIT_FILE path=\"...\"], each tag at the start of a line. [DONE if=\"ok\"] ends the work"
        }
        Dialect::Operations => {
            "the [REPLY ...] line, then ONE JSON object with \"protocolVersion\" and \"operations\". A message with the id \"done\" ends the work"
        }
    };
    let protocol = match &before {
        // Another version of deaddrop wrote it.
        Some(before) if before.protocol != now.protocol => now.protocol.to_owned(),
        _ => format!(
            "As in message {read}: ONE code block with {how}. If you cannot see message {read}, ask the user for this message in full.\n"
        ),
    };
    let before = before.unwrap_or_default();
    let environment = changes(before.environment, now.environment, |line| line.split_once(": "));
    let listing = changes(before.listing, now.listing, |line| {
        line.rsplit_once(" (").filter(|(_, what)| *what != "not listed)")
    });
    let sections = [("## Environment", environment), ("## Workspace Files", listing)];
    let sections: String = sections
        .into_iter()
        .filter(|(_, changes)| !changes.is_empty())
        .map(|(heading, changes)| format!("{heading}\n{changes}"))
        .collect();
    let but = if sections.is_empty() { "." } else { ", except for:" };
    let (header, rest) = (clipped(now.header.trim_end(), HEADER), now.rest);
    Some(format!(
        "{header}\n\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\nAs in message {read}{but}\n{sections}{rest}"
    ))
}

/// The lines of a section that are new, and those that are gone; all lines if that is shorter. `name` finds what a line
/// is about.
fn changes(before: &str, now: &str, name: fn(&str) -> Option<(&str, &str)>) -> String {
    let known: HashSet<&str> = before.lines().collect();
    let names: Vec<&str> = now.lines().filter_map(|line| Some(name(line)?.0)).collect();
    // A line that stands for a folder replaces those below it, and the other way round.
    let covers = |folder: &str, path: &str| {
        path.starts_with(folder) && folder.ends_with('/') || folder == "  ./" || folder == path
    };
    let is_gone = |line: &&str| {
        let name = name(line).map(|(name, _)| name);
        name.is_some_and(|gone| !names.iter().any(|it| covers(it, gone) || covers(gone, it)))
    };
    let lines = |lines: Vec<&str>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let mut changes = lines(now.lines().filter(|line| !known.contains(line)).collect());
    let gone = lines(before.lines().filter(is_gone).collect());
    if !gone.is_empty() {
        changes += &format!("No longer listed:\n{gone}");
    }
    if changes.len() < now.len() { changes } else { now.to_owned() }
}

#[cfg(test)]
mod tests;
