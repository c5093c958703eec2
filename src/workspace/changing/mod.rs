//! What a change makes of a file's bytes, how that is told, and why it is refused. Pure.

use super::edit::{self, Unfound, count_lines};
use super::excerpt::{Place, around};
use super::search_edit::{self, Searched};
use super::{bom, closest, lines_left_out};
use crate::protocol::{
    Change, Detail, Excerpt, Failure, FileVersion, Fresh, FuzzyMatch, Likeness, Mistake, RelPath,
    Replacement, Revision, diff_line, elision, is_code, may_be_patch,
};
use crate::text::{count, visible_line};

/// How many bytes all edits of one operation may look at and move together: a second or two, in
/// which nobody can interrupt them.
const EDITS_LIMIT: u64 = 1 << 30;

/// Of a longer place that was changed both ends are shown, in lines.
const CHANGED: usize = 10;
/// The same of a place that is shown so that an edit can be sent again.
const ASKED: usize = 30;

/// What a change makes of a file's bytes, and how that is told.
pub fn changed(real: &RelPath, old: &[u8], change: &Change) -> Result<(Vec<u8>, Detail), Failure> {
    make(real, old, change).map_err(|failure| Failure { of: Some(real.clone()), ..failure })
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
            "Line {line} of the new lines, `{}`, is a line of a diff to lines {start}-{end} of '{real}'; nothing was changed. Send the lines that are to stand there without the others, and without signs before them (where they are meant as they are, write them with RUN_COMMAND)",
            visible_line(text)
        ))
        .as_a(Mistake::Diff));
    }
    if let Some((_, line, text)) = elision::left_out([(with, &*edited.replaced)], old, real) {
        let instead = format!(
            "Send all of the lines from {start} to {end}, or a range for each change (where it is meant as it is, write it with RUN_COMMAND)"
        );
        let which = format!("Line {line} of the new lines");
        return Err(lines_left_out(real, &which, text, &instead));
    }
    let excerpt = around(&edited.bytes, &[(start, edited.inserted)], CHANGED);
    let detail = Detail::Edited {
        path: real.clone(),
        lines: (start, end),
        inserted: edited.inserted,
        total: edited.total,
        revision: Some(revision(old, &edited.bytes, excerpt, Vec::new())),
    };
    Ok((edited.bytes, detail))
}

fn revision(old: &[u8], new: &[u8], excerpt: Excerpt, loosely: Vec<FuzzyMatch>) -> Box<Revision> {
    let (before, after) = (FileVersion::whole(old), FileVersion::whole(new));
    Box::new(Revision { before, after, excerpt, loosely })
}

/// An edit by line numbers of a file that is not what who sent it believes: the lines that it has
/// there.
fn stale(real: &RelPath, now: &[u8], (start, end): (usize, usize)) -> Failure {
    let total = count_lines(now);
    let asked = match total {
        0 => (1, 0),
        _ => {
            let first = start.clamp(1, total);
            (first, end.clamp(first, total) + 1 - first)
        }
    };
    let excerpt = around(now, &[asked], ASKED);
    let lines = match (excerpt.lines.first(), excerpt.lines.last()) {
        (Some((first, _)), Some((last, _))) if first == last => {
            format!("Below is line {first} of {total} as it is now")
        }
        (Some((first, _)), Some((last, _))) => {
            format!("Below are lines {first}-{last} of {total} as they are now")
        }
        _ => "The file is empty now".to_owned(),
    };
    // What is shown cut does not count as seen.
    let asked = asked.0..asked.0 + asked.1;
    let cut = |(n, text): &(usize, String)| asked.contains(n) && Excerpt::is_cut(text);
    let how = match excerpt.lines.iter().find(|line| cut(line)) {
        Some((n, _)) => format!(
            "Line {n} is too long to be shown whole here: READ_FILE it first (start_line=\"{n}\" end_line=\"{n}\"); if that shows only a part, change it with RUN_COMMAND"
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
    let told = format!(
        "'{real}' has changed since you last saw it, or was shown to you only in part, so {range} you mean. Nothing was changed. {how}. {lines}"
    );
    showing(excerpt, real, now, Failure::execution(told).as_a(Mistake::StaleLines))
}

/// A failure with which lines of a file are shown as they are.
fn showing(excerpt: Excerpt, real: &RelPath, bytes: &[u8], failure: Failure) -> Failure {
    let fresh = Fresh { path: real.clone(), seen: FileVersion::whole(bytes) };
    Failure { excerpt, fresh: Some(Box::new(fresh)), ..failure }
}

fn first(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
) -> Result<(Vec<u8>, Detail), Failure> {
    let edits = replacements.len();
    if let Some((n, line, text)) = elision::left_out_of_pairs(replacements, old, real) {
        let which = format!("{}Line {line} of newContent", EDITS.which(edits, n));
        return Err(lines_left_out(real, &which, text, WHOLE));
    }
    let bytes = edit::replace_first(old, replacements, EDITS_LIMIT)
        .map_err(|why| not_replaced(real, old, replacements, why, &EDITS))?;
    let revision = Some(revision(old, &bytes, Excerpt::default(), Vec::new()));
    Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
}

/// Why the texts of edits were not replaced in a file that was `old` before the first.
fn not_replaced(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
    why: Unfound,
    words: &Words,
) -> Failure {
    let edits = replacements.len();
    match why {
        Unfound::Empty { n } => empty(real, words, edits, n),
        Unfound::Nowhere { n } if replacements[n].old.is_empty() => empty(real, words, edits, n),
        Unfound::Nowhere { n } => nowhere(real, old, replacements, n, words),
        Unfound::Often { n, lines, count, all, likeness } => {
            often(real, &words.which(edits, n), &lines, (count, all), likeness)
        }
        Unfound::TooMuch => Failure::execution(format!(
            "{edits} edits are too many for '{real}' at once ({} bytes): send them in several operations, or the whole file anew",
            old.len()
        )),
    }
}

/// What to do instead of a newContent that stands for lines.
const WHOLE: &str = "Send all of the lines, or an edit for each change (where it is meant as it is, write it with a shell operation)";

/// What to do instead of a REPLACE text that stands for lines.
const INSTEAD: &str = "Send all of the lines, or a pair for each change (where it is meant as it is, write it with RUN_COMMAND)";

fn once(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
) -> Result<(Vec<u8>, Detail), Failure> {
    let edits = replacements.len();
    let Searched { bytes, places, more, loosely } =
        search_edit::replace_once(old, replacements, EDITS_LIMIT)
            .map_err(|why| not_replaced(real, old, replacements, why, &PAIRS))?;
    if let Some((n, line, text)) = elision::left_out_of_pairs(replacements, old, real) {
        let which = format!("{}Line {line} of the REPLACE text", PAIRS.which(edits, n));
        return Err(lines_left_out(real, &which, text, INSTEAD));
    }
    let mut excerpt = around(&bytes, &places, CHANGED);
    excerpt.more += more;
    let revision = Some(revision(old, &bytes, excerpt, loosely));
    Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
}

/// What a dialect calls the texts of an edit, and how its files are read.
struct Words {
    edit: &'static str,
    old: &'static str,
    new: &'static str,
    read: &'static str,
    /// Whether they are told as JSON, which has a name for each white space.
    are_json: bool,
}

const PAIRS: Words = Words {
    edit: "pair",
    old: "the SEARCH text",
    new: "the REPLACE text",
    read: "READ_FILE",
    are_json: false,
};
const EDITS: Words =
    Words { edit: "edit", old: "oldContent", new: "newContent", read: "readFile", are_json: true };

impl Words {
    /// Which of several edits it is.
    fn which(&self, edits: usize, n: usize) -> String {
        if edits == 1 { String::new() } else { format!("In {} {} of {edits}: ", self.edit, n + 1) }
    }
}

fn empty(real: &RelPath, words: &Words, edits: usize, n: usize) -> Failure {
    let (which, old) = (words.which(edits, n), words.old);
    Failure::execution(format!("{which}{old} is empty, so '{real}' was not changed"))
        .as_a(Mistake::TextNotFound)
}

/// The text of edit `n` is not in a file that was `old` before the first.
fn nowhere(
    real: &RelPath,
    old: &[u8],
    replacements: &[Replacement],
    n: usize,
    words: &Words,
) -> Failure {
    const WITHHELD: &str =
        "[withheld: ...] stands for a secret in the file: choose lines without it";
    let Replacement { old: sought, new } = &replacements[n];
    let edit = words.edit;
    let which = words.which(replacements.len(), n);
    let after = if n > 0 { format!(", as the {edit}s before leave it,") } else { String::new() };
    let told =
        format!("{which}'{real}'{after} does not contain {}; nothing was changed", words.old);
    let not_found = |told: String| Failure::execution(told).as_a(Mistake::TextNotFound);
    let showing = |place: Place, told: String| {
        showing(around(old, &[place], ASKED), real, old, not_found(told))
    };
    if let Some(line) = search_edit::line_of(old, sought).filter(|_| n > 0) {
        let told = format!(
            "{told}. Before them it is at line {line}: make one {edit} of those that change it, or search for the lines as the {edit} before leaves them"
        );
        return showing((line, sought.lines().count()), told);
    }
    let is_done = new.contains(char::is_alphanumeric);
    if let Some(line) = search_edit::line_of(old, new).filter(|_| is_done) {
        let told = format!(
            "{told}. It looks as if this was done already: {} is at line {line}",
            words.new
        );
        return showing((line, new.lines().count()), told);
    }
    let (mark, text) = bom::split(old);
    let bare = bom::without(sought);
    let is_first = |(first, _)| first == 1;
    let is_of_mark = !mark.is_empty() && bare.len() < sought.len();
    let is_meant = is_of_mark && closest::closest(text, bare).is_some_and(is_first);
    let sought = if is_meant { bare } else { sought };
    let is_withheld = elision::has_secret_placeholder(sought);
    let Some((first, lines)) = closest::closest(text, sought) else {
        let copy = format!("Read it with {}, and copy lines exactly", words.read);
        let how = if is_withheld { WITHHELD } else { &copy };
        return not_found(format!("{told}, and nothing in it is similar. {how}"));
    };
    let last = (first + lines - 1).clamp(first, count_lines(old).max(first));
    let place =
        if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
    let differs = match closest::equals_ignoring_blanks(text, sought, first) {
        true if words.are_json => {
            format!("; only the white space differs: {}", closest::as_json(text, first, lines))
        }
        true => "; only the white space differs".to_owned(),
        false => String::new(),
    };
    let how = if is_withheld {
        WITHHELD
    } else if first == last {
        "Copy it exactly, without the line number"
    } else {
        "Copy them exactly, without the line numbers"
    };
    showing(
        (first, last + 1 - first),
        format!("{told}. The closest match is {place}, shown below{differs}. {how}"),
    )
}

/// A text stands in more than one place: so often, if that is all.
fn often(
    real: &RelPath,
    which: &str,
    lines: &[Option<usize>],
    (count, all): (usize, bool),
    likeness: Option<Likeness>,
) -> Failure {
    let times = format!("{}{count} times", if all { "" } else { "at least " });
    let known: Vec<String> = lines.iter().flatten().map(ToString::to_string).collect();
    let (put_in, more) = (lines.len() - known.len(), count - lines.len());
    let mut places = Vec::new();
    if !known.is_empty() {
        let lines = if known.len() == 1 { "line" } else { "lines" };
        let of = if put_in > 0 { " of the file" } else { "" };
        places.push(format!("at {lines} {}{of}", known.join(", ")));
    }
    if put_in > 0 {
        let times = if put_in == 1 { "once".to_owned() } else { format!("{put_in} times") };
        places.push(format!("{times} in what pairs before this one put in"));
    }
    if more > 0 {
        places.push(format!("{more} more"));
    }
    let last = places.pop().unwrap_or_default();
    let and = if places.is_empty() { "" } else { " and " };
    let places = format!("{}{and}{last}", places.join(", "));
    let how = likeness.map_or(String::new(), |likeness| format!(" {}", likeness.in_words()));
    Failure::execution(format!(
        "{which}'{real}' contains the SEARCH text {times}{how}, {places}; nothing was changed. Add lines before or after it until it occurs only once"
    ))
    .as_a(Mistake::TextNotOnce)
}

#[cfg(test)]
mod tests;
