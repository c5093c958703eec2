//! The brief form of an outbox, for the chat that the last reply came from. It repeats all new content unchanged,
//! but one line replaces the protocol, and only the changes of Environment and the listing are shown.
//!
//! It is derived from the texts of two outboxes. In the sections before the results, data is always indented, so the
//! first heading with a name is deaddrop's own.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::budget::clipped;
use crate::protocol::Dialect;
use crate::session::Session;

/// The most characters of HEADER that are shown. HEADER contains the task.
const HEADER_LIMIT: usize = 600;

/// The form of an outbox that is shown or copied, and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxForm {
    /// Whether it is the brief form.
    pub is_brief: bool,
    /// The number of tokens.
    pub tokens: usize,
    /// The number of tokens of the other form, if there is one.
    pub other: Option<usize>,
}

/// The brief form of the outbox `complete`, for a chat that contains outbox number `read`. `previous` is the text of
/// that outbox, if it still exists. None if `complete` does not have the form of an outbox.
pub fn brief(
    session: &Session,
    complete: &str,
    read: u32,
    previous: Option<&str>,
) -> Option<String> {
    let [header, protocol, environment, listing, rest] = sections(complete)?;
    let [_, known, environment_before, listing_before, _] =
        previous.and_then(sections).unwrap_or(["", protocol, "", "", ""]);
    let how = match session.dialect {
        Dialect::Tags => {
            "the [REPLY ...] line, then commands such as [EDIT_FILE path=\"...\"], each tag at the start of a line. [DONE if=\"ok\"] ends the work"
        }
        Dialect::Operations => {
            "the [REPLY ...] line, then ONE JSON object with \"protocolVersion\" and \"operations\". A message with the id \"done\" ends the work"
        }
    };
    let reminder = format!(
        "As in message {read}: ONE code block with {how}. If you cannot see message {read}, ask the user for this message in full.\n"
    );
    // Another version of deaddrop may have another protocol text.
    let protocol = if protocol == known { &reminder } else { protocol };
    let changes =
        changes("## Environment", environment_before, environment, |line| line.split_once(": "))
            + &changes("## Workspace Files", listing_before, listing, |line| {
                line.rsplit_once(" (").filter(|(_, what)| *what != "not listed)")
            });
    let but = if changes.is_empty() { "." } else { ", except for these lines:" };
    let header = clipped(header.trim_end(), HEADER_LIMIT);
    Some(format!(
        "{header}\n\n=== PROTOCOL ===\n{protocol}\n=== CONTEXT ===\nAs in message {read}{but}\n{changes}{rest}"
    ))
}

/// Splits an outbox into HEADER, PROTOCOL, Environment, the listing, and the rest.
fn sections(outbox: &str) -> Option<[&str; 5]> {
    let (header, text) = outbox.split_once("\n=== PROTOCOL ===\n")?;
    let (protocol, text) = text.split_once("\n=== CONTEXT ===\n## Environment\n")?;
    let (environment, text) = text.split_once("\n## Workspace Files\n")?;
    let (listing, rest) = text.split_at(text.find("\n\n")? + 1);
    Some([header, protocol, environment, listing, rest])
}

/// The new and removed lines of a section; all lines if that is shorter, none if nothing changed. `name` finds the
/// name in a line. If a line stood for all files of a folder, only their number is compared.
fn changes(
    heading: &str,
    before: &str,
    now: &str,
    name: fn(&str) -> Option<(&str, &str)>,
) -> String {
    let [known, current] = [before, now].map(|text| text.lines().collect::<HashSet<&str>>());
    let names = |text| -> Vec<&str> { str::lines(text).filter_map(name).map(|it| it.0).collect() };
    let (names_before, names) = (names(before), names(now));
    // A line for a whole folder replaces the lines of its files, and vice versa.
    let covers = |folder: &str, path: &str| {
        folder == path || folder == "  ./" || folder.ends_with('/') && path.starts_with(folder)
    };
    let folders = before.lines().filter(|line| !current.contains(line)).filter_map(name);
    let folders = folders.filter(|(path, what)| path.ends_with('/') && file_count(what).is_some());
    let mut folders: Vec<(&str, [u64; 2])> = folders.map(|(path, _)| (path, [0; 2])).collect();
    // A file belongs to the innermost folder.
    folders.sort_by_key(|(folder, _)| (*folder == "  ./", Reverse(folder.len())));
    let mut new = Vec::new();
    let sides = [(before, &current, &names), (now, &known, &names_before)];
    for (side, (text, other, names_of_other)) in sides.into_iter().enumerate() {
        for line in text.lines().filter(|line| !other.contains(line)) {
            let (path, what) = name(line).unwrap_or((line, ""));
            let is_in_both = !path.ends_with('/') && names_of_other.contains(&path);
            let folder = folders.iter_mut().find(|(it, _)| !is_in_both && covers(it, path));
            match (folder, file_count(what)) {
                (Some((_, counts)), Some(count)) => counts[side] += count,
                _ if side == 1 => new.push(line.to_owned()),
                _ => {}
            }
        }
    }
    folders.retain(|(_, [before, now])| *now > 0 && now != before);
    let counts = |(folder, [before, now]): &(&str, [u64; 2])| {
        format!("{folder} ({before} files before, {now} now)")
    };
    new.extend(folders.iter().map(counts));
    let is_gone = |line: &&str| {
        let is_known = |gone| names.iter().any(|it| covers(it, gone) || covers(gone, it));
        name(line).is_some_and(|(gone, _)| !is_known(gone))
    };
    let mut gone = before.lines().filter(is_gone).peekable();
    let more = gone.peek().map(|_| "No longer listed:");
    let new = new.iter().map(String::as_str);
    let changes: String = new.chain(more).chain(gone).map(|line| format!("{line}\n")).collect();
    match changes.as_str() {
        "" => changes,
        _ if changes.len() < now.len() => format!("{heading}\n{changes}"),
        _ => format!("{heading}\n{}\n", now.trim_end()),
    }
}

/// The number of files that a line of the listing stands for; None if it is inexact, or for build products.
fn file_count(what: &str) -> Option<u64> {
    match what.split_once(' ') {
        Some(("build" | "more", _)) => None,
        Some((count, unit)) if unit.trim_start_matches("more ").starts_with("file") => {
            count.replace(',', "").parse().ok()
        }
        _ => Some(1),
    }
}

#[cfg(test)]
mod tests;
