//! Applies a change to a file's bytes, and describes the result or the failure. Pure.

use super::edit::{self, EditError, count_lines};
use super::excerpt::{Place, around};
use super::search_edit::{self, SearchEdited};
use super::{bom, closest, lines_left_out};
use crate::protocol::{
    Change, Detail, Excerpt, Failure, FileVersion, FuzzyMatch, Likeness, Mistake, PresentFile,
    RelPath, Replacement, Revision, diff_line, elision, is_code, may_be_patch,
};
use crate::text::{count, visible_line};

/// How many bytes all edits of one operation may read and move together. Handling this many bytes takes a second or
/// two, and the edits cannot be interrupted during that time.
const EDITS_LIMIT: u64 = 1 << 30;

/// A changed place with more lines than this is shown only at its beginning and end.
const MAX_CHANGED: usize = 10;
/// The same limit for a place that is shown so that the model can send its edit again.
const MAX_ASKED: usize = 30;

/// Applies a change to a file's bytes; returns the new bytes and a description.
pub fn changed(real: &RelPath, old: &[u8], change: &Change) -> Result<(Vec<u8>, Detail), Failure> {
    make(real, old, change).map_err(|failure| Failure { real_path: Some(real.clone()), ..failure })
}

fn make(real: &RelPath, old: &[u8], change: &Change) -> Result<(Vec<u8>, Detail), Failure> {
    match change {
        Change::Lines { start, end, with, seen } => {
            if seen.as_ref().is_some_and(|seen| !seen.is(old)) {
                return Err(stale(real, old, (*start, *end)));
            }
            lines(real, old, (*start, *end), with)
        }
        Change::First(replacements) => first(real, old, replacements),
        Change::Once(replacements) => once(real, old, replacements),
    }
}

fn lines(
    real: &RelPath,
    old: &[u8],
    (start, end): (usize, usize),
    with: &str,
) -> Result<(Vec<u8>, Detail), Failure> {
    let edited = edit::replace_lines(old, start, end, with).map_err(|total| {
        Failure::execution(format!(
            "Invalid line range {start}-{end}: '{real}' has {}",
            count(total, "line")
        ))
        .as_a(Mistake::NoSuchLines)
    })?;
    let may_hold_a_diff = !is_code(real) || may_be_patch(real);
    if !may_hold_a_diff && let Some((line, text)) = diff_line(with, &edited.replaced) {
        return Err(Failure::execution(format!(
            "Line {line} of the new lines, `{}`, is a line of a diff to lines {start}-{end} of '{real}'; nothing was changed. Send only the new lines, without the signs of a diff (if they are meant literally, write them with RUN_COMMAND)",
            visible_line(text)
        ))
        .as_a(Mistake::Diff));
    }
    if let Some((_, line, text)) = elision::left_out([(with, &*edited.replaced)], old, real) {
        let instead = format!(
            "Send all of the lines from {start} to {end}, or a range for each change (if it is meant literally, write it with RUN_COMMAND)"
        );
        let which = format!("Line {line} of the new lines");
        return Err(lines_left_out(real, &which, text, &instead));
    }
    let excerpt = around(&edited.bytes, &[(start, edited.inserted)], MAX_CHANGED);
    let detail = Detail::Edited {
        path: real.clone(),
        lines: (start, end),
        inserted: edited.inserted,
        total: edited.total,
        revision: Some(revision(old, &edited.bytes, excerpt, Vec::new())),
    };
    Ok((edited.bytes, detail))
}

fn revision(
    old: &[u8],
    new: &[u8],
    excerpt: Excerpt,
    fuzzy_matches: Vec<FuzzyMatch>,
) -> Box<Revision> {
    let (before, after) = (FileVersion::whole(old), FileVersion::whole(new));
    Box::new(Revision { before, after, excerpt, fuzzy_matches })
}

/// The failure for an edit by line numbers if the file has changed since the model saw it. Shows the current lines.
fn stale(real: &RelPath, now: &[u8], (start, end): (usize, usize)) -> Failure {
    let total = count_lines(now);
    let asked = match total {
        0 => (1, 0),
        _ => {
            let first = start.clamp(1, total);
            (first, end.clamp(first, total) + 1 - first)
        }
    };
    let excerpt = around(now, &[asked], MAX_ASKED);
    let lines = match (excerpt.lines.first(), excerpt.lines.last()) {
        (Some((first, _)), Some((last, _))) if first == last => {
            format!("Below is line {first} of {total} as it is now")
        }
        (Some((first, _)), Some((last, _))) => {
            format!("Below are lines {first}-{last} of {total} as they are now")
        }
        _ => "The file is empty now".to_owned(),
    };
    // A line that is cut does not count as seen by the model.
    let asked = asked.0..asked.0 + asked.1;
    let cut = |(n, text): &(usize, String)| asked.contains(n) && Excerpt::is_cut(text);
    let advice = match excerpt.lines.iter().find(|line| cut(line)) {
        Some((n, _)) => format!(
            "Line {n} is too long to be shown completely here: READ_FILE it first (start_line=\"{n}\" end_line=\"{n}\"); if that shows only a part, change it with RUN_COMMAND"
        ),
        None => {
            "Send the edit again with the line numbers as they are now, or with SEARCH and REPLACE"
                .to_owned()
        }
    };
    let range = if start == end {
        format!("line {start} may not be the line")
    } else {
        format!("lines {start}-{end} may not be the lines")
    };
    let reason = format!(
        "'{real}' has changed since you last saw it, or was shown to you only in part, so {range} you mean. Nothing was changed. {advice}. {lines}"
    );
    with_excerpt(excerpt, real, now, Failure::execution(reason).as_a(Mistake::StaleLines))
}

/// Adds an excerpt of a file to a failure.
fn with_excerpt(excerpt: Excerpt, real: &RelPath, bytes: &[u8], failure: Failure) -> Failure {
    let file = PresentFile { path: real.clone(), seen: FileVersion::whole(bytes) };
    Failure { excerpt, present_file: Some(Box::new(file)), ..failure }
}

fn first(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
) -> Result<(Vec<u8>, Detail), Failure> {
    let edits = replacements.len();
    if let Some((n, line, text)) = elision::left_out_of_pairs(replacements, old, real) {
        let which = format!("{}Line {line} of newContent", EDITS.prefix(edits, n));
        return Err(lines_left_out(real, &which, text, COMPLETE_EDIT));
    }
    let bytes = edit::replace_first(old, replacements, EDITS_LIMIT)
        .map_err(|error| edit_failure(real, old, replacements, error, &EDITS))?;
    let revision = Some(revision(old, &bytes, Excerpt::default(), Vec::new()));
    Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
}

/// The failure for an edit error. `old` is the file's content before the first edit.
fn edit_failure(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
    error: EditError,
    words: &EditWords,
) -> Failure {
    let edits = replacements.len();
    match error {
        EditError::Empty { n } => empty(real, words, edits, n),
        EditError::NotFound { n } if replacements[n].old.is_empty() => empty(real, words, edits, n),
        EditError::NotFound { n } => text_not_found(real, old, replacements, n, words),
        EditError::NotUnique { n, lines, count, all, likeness } => {
            not_unique(real, &words.prefix(edits, n), &lines, (count, all), likeness)
        }
        EditError::TooMuch => Failure::execution(format!(
            "{edits} edits are too many for '{real}' at once ({} bytes): send them in several operations, or send the whole file again",
            old.len()
        )),
    }
}

/// What to do instead of sending a newContent that contains a placeholder.
const COMPLETE_EDIT: &str = "Send all of the lines, or an edit for each change (if it is meant literally, write it with a shell operation)";

/// What to do instead of sending a REPLACE text that contains a placeholder.
const COMPLETE_PAIR: &str = "Send all of the lines, or a pair for each change (if it is meant literally, write it with RUN_COMMAND)";

fn once(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
) -> Result<(Vec<u8>, Detail), Failure> {
    let edits = replacements.len();
    let SearchEdited { bytes, places, more, fuzzy_matches } =
        search_edit::replace_once(old, replacements, EDITS_LIMIT)
            .map_err(|error| edit_failure(real, old, replacements, error, &PAIRS))?;
    if let Some((n, line, text)) = elision::left_out_of_pairs(replacements, old, real) {
        let which = format!("{}Line {line} of the REPLACE text", PAIRS.prefix(edits, n));
        return Err(lines_left_out(real, &which, text, COMPLETE_PAIR));
    }
    let mut excerpt = around(&bytes, &places, MAX_CHANGED);
    excerpt.more += more;
    let revision = Some(revision(old, &bytes, excerpt, fuzzy_matches));
    Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
}

/// A dialect's words for an edit, for its texts, and for reading a file.
struct EditWords {
    edit: &'static str,
    old: &'static str,
    new: &'static str,
    read: &'static str,
    /// Whether failures show lines as JSON, which makes different white space visible.
    are_json: bool,
}

const PAIRS: EditWords = EditWords {
    edit: "pair",
    old: "the SEARCH text",
    new: "the REPLACE text",
    read: "READ_FILE",
    are_json: false,
};
const EDITS: EditWords = EditWords {
    edit: "edit",
    old: "oldContent",
    new: "newContent",
    read: "readFile",
    are_json: true,
};

impl EditWords {
    /// The beginning of a message about edit `n`; empty if there is only one edit.
    fn prefix(&self, edits: usize, n: usize) -> String {
        if edits == 1 { String::new() } else { format!("In {} {} of {edits}: ", self.edit, n + 1) }
    }
}

fn empty(real: &RelPath, words: &EditWords, edits: usize, n: usize) -> Failure {
    let (prefix, old) = (words.prefix(edits, n), words.old);
    Failure::execution(format!("{prefix}{old} is empty, so '{real}' was not changed"))
        .as_a(Mistake::TextNotFound)
}

/// The failure if the file does not contain the text of edit `n`. `old` is the content before the first edit.
fn text_not_found(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
    n: usize,
    words: &EditWords,
) -> Failure {
    const WITHHELD: &str =
        "[withheld: ...] stands for a secret in the file: choose lines without it";
    let Replacement { old: wanted, new } = &replacements[n];
    let edit = words.edit;
    let prefix = words.prefix(replacements.len(), n);
    let after = if n > 0 { format!(" after the previous {edit}s") } else { String::new() };
    let reason =
        format!("{prefix}'{real}'{after} does not contain {}; nothing was changed", words.old);
    let not_found = |reason: String| Failure::execution(reason).as_a(Mistake::TextNotFound);
    let with_place = |place: Place, reason: String| {
        with_excerpt(around(old, &[place], MAX_ASKED), real, old, not_found(reason))
    };
    if let Some(line) = search_edit::line_of(old, wanted).filter(|_| n > 0) {
        let reason = format!(
            "{reason}. Before them it is at line {line}: combine the {edit}s that change it, or search for the lines as the previous {edit} leaves them"
        );
        return with_place((line, wanted.lines().count()), reason);
    }
    let is_done = new.contains(char::is_alphanumeric);
    if let Some(line) = search_edit::line_of(old, new).filter(|_| is_done) {
        let reason = format!(
            "{reason}. The change seems to have been made already: {} is at line {line}",
            words.new
        );
        return with_place((line, new.lines().count()), reason);
    }
    let (mark, text) = bom::split(old);
    let bare = bom::without(wanted);
    let has_mark = !mark.is_empty() && bare.len() < wanted.len();
    let is_first_line = has_mark && closest::closest(text, bare).is_some_and(|place| place.0 == 1);
    let wanted = if is_first_line { bare } else { wanted };
    let is_withheld = elision::has_secret_placeholder(wanted);
    let Some((first, lines)) = closest::closest(text, wanted) else {
        let copy = format!("Read it with {}, and copy lines exactly", words.read);
        let advice = if is_withheld { WITHHELD } else { &copy };
        return not_found(format!("{reason}, and nothing in it is similar. {advice}"));
    };
    let last = (first + lines - 1).clamp(first, count_lines(old).max(first));
    let place =
        if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
    let differs = match closest::equals_ignoring_blanks(text, wanted, first) {
        true if words.are_json => {
            format!("; only the white space differs: {}", closest::as_json(text, first, lines))
        }
        true => "; only the white space differs".to_owned(),
        false => String::new(),
    };
    let advice = if is_withheld {
        WITHHELD
    } else if first == last {
        "Copy it exactly, without the line number"
    } else {
        "Copy them exactly, without the line numbers"
    };
    with_place(
        (first, last + 1 - first),
        format!("{reason}. The closest match is {place}, shown below{differs}. {advice}"),
    )
}

/// The failure if a text occurs several times: how many occurrences were counted, and whether those are all.
fn not_unique(
    real: &RelPath,
    prefix: &str,
    lines: &[Option<usize>],
    (count, all): (usize, bool),
    likeness: Option<Likeness>,
) -> Failure {
    let times = format!("{}{count} times", if all { "" } else { "at least " });
    let known: Vec<String> = lines.iter().flatten().map(ToString::to_string).collect();
    let (inserted, more) = (lines.len() - known.len(), count - lines.len());
    let mut places = Vec::new();
    if !known.is_empty() {
        let lines = if known.len() == 1 { "line" } else { "lines" };
        let of = if inserted > 0 { " of the file" } else { "" };
        places.push(format!("at {lines} {}{of}", known.join(", ")));
    }
    if inserted > 0 {
        let times = if inserted == 1 { "once".to_owned() } else { format!("{inserted} times") };
        places.push(format!("{times} in the text inserted by previous pairs"));
    }
    if more > 0 {
        places.push(format!("{more} more"));
    }
    let last = places.pop().unwrap_or_default();
    let and = if places.is_empty() { "" } else { " and " };
    let places = format!("{}{and}{last}", places.join(", "));
    let found = likeness.map(|likeness| format!(" (found {})", likeness.in_words()));
    let found = found.unwrap_or_default();
    Failure::execution(format!(
        "{prefix}'{real}' contains the SEARCH text {times}{found}, {places}; nothing was changed. Add lines before or after it until it occurs only once"
    ))
    .as_a(Mistake::TextNotOnce)
}

#[cfg(test)]
mod tests;
