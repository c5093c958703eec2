//! What a change makes of a file's bytes, how that is told, and why it is refused. Pure.

use super::edit::{self, Unreplaced, count_lines};
use super::excerpt::{Place, around};
use super::search_edit::{self, Searched, Unfound};
use super::{bom, closest, lines_left_out, nearest};
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
        (Some((first, _)), Some((last, _))) => {
            format!("its lines {first}-{last}, of {total}, as they are now are shown with this")
        }
        _ => "it is empty now".to_owned(),
    };
    // What is shown cut does not count as seen.
    let asked = asked.0..asked.0 + asked.1;
    let cut = |(n, text): &(usize, String)| asked.contains(n) && Excerpt::is_cut(text);
    let how = match excerpt.lines.iter().find(|line| cut(line)) {
        Some((n, _)) => format!(
            "Line {n} is too long to be shown whole here: READ_FILE it (start_line=\"{n}\" end_line=\"{n}\") before you send the edit again, or change it with RUN_COMMAND, where it is too long for that, too"
        ),
        None => "Send the edit again with the line numbers as they are now".to_owned(),
    };
    let range = if start == end { format!("line {start}") } else { format!("lines {start}-{end}") };
    let verb = if start == end { "may be another" } else { "may be others" };
    let told = format!(
        "'{real}' has changed since you last saw it (a command or the user changed it), so {range} {verb} than you mean; nothing was changed: {lines}. {how}, or with SEARCH and REPLACE"
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
        let which = if edits > 1 { format!("edit {} of {edits}: ", n + 1) } else { String::new() };
        let which = format!("{which}line {line} of newContent");
        return Err(lines_left_out(real, &which, text, WHOLE));
    }
    match edit::replace_first(old, replacements, EDITS_LIMIT) {
        Ok(bytes) => {
            let revision = Some(revision(old, &bytes, Excerpt::default(), Vec::new()));
            Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
        }
        Err(Unreplaced::NotFound { n, bytes }) => Err(not_in_it(real, replacements, n, &bytes)),
        Err(Unreplaced::TooMuch) => Err(too_much(real, old, edits)),
    }
}

fn too_much(real: &RelPath, old: &[u8], edits: usize) -> Failure {
    Failure::execution(format!(
        "{edits} edits are too many for '{real}' at once ({} bytes): send them in several operations, or the whole file anew",
        old.len()
    ))
}

/// Replacement `n` finds nothing to replace in `bytes`.
fn not_in_it(real: &RelPath, replacements: &[Replacement], n: usize, bytes: &[u8]) -> Failure {
    let which = match replacements.len() {
        1 => String::new(),
        all => format!("edit {} of {all}: ", n + 1),
    };
    let old = &replacements[n].old;
    let after = if n > 0 { ", as the edits before it left the file" } else { "" };
    Failure::execution(if old.is_empty() {
        format!("{which}oldContent is empty, so there is nothing to replace in '{real}'")
    } else {
        let nearest =
            nearest::nearest(bytes, old).map_or(String::new(), |told| format!("; {told}"));
        format!(
            "{which}oldContent not found in '{real}'{after}; nothing was changed. It must stand there to the letter, with its white space: {}{nearest}",
            nearest::quoted(old)
        )
    })
    .as_a(Mistake::TextNotFound)
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
        search_edit::replace_once(old, replacements, EDITS_LIMIT).map_err(|why| match why {
            Unfound::Empty { n } => Failure::execution(format!(
                "{}The SEARCH text is empty, so there is nothing to replace in '{real}'; nothing was changed",
                which(replacements, n)
            )),
            Unfound::Nowhere { n } => nowhere(real, old, replacements, n),
            Unfound::Often { n, lines, count, all, likeness } => {
                often(real, &which(replacements, n), &lines, (count, all), likeness)
            }
            Unfound::TooMuch => too_much(real, old, edits),
        })?;
    if let Some((n, line, text)) = elision::left_out_of_pairs(replacements, old, real) {
        let which = format!("{}Line {line} of the REPLACE text", which(replacements, n));
        return Err(lines_left_out(real, &which, text, INSTEAD));
    }
    let mut excerpt = around(&bytes, &places, CHANGED);
    excerpt.more += more;
    let revision = Some(revision(old, &bytes, excerpt, loosely));
    Ok((bytes, Detail::Replaced { path: real.clone(), edits, revision }))
}

/// What to do instead of a SEARCH text in which something stands for a secret.
const WITHHELD: &str = "search for lines without [withheld: ...], which stands for a secret that the file holds, or replace the others by their numbers";

/// Which of several pairs it is.
fn which(replacements: &[Replacement], n: usize) -> String {
    match replacements.len() {
        1 => String::new(),
        all => format!("Pair {} of {all}: ", n + 1),
    }
}

/// The text of pair `n` stands nowhere in a file that was `old` before the first.
fn nowhere(real: &RelPath, old: &[u8], replacements: &[Replacement], n: usize) -> Failure {
    let Replacement { old: sought, new } = &replacements[n];
    let after = if n > 0 { ", as the pairs before it leave it" } else { "" };
    let which = which(replacements, n);
    let told = format!("{which}The SEARCH text is not in '{real}'{after}; nothing was changed");
    let not_found = |told: String| Failure::execution(told).as_a(Mistake::TextNotFound);
    let showing = |place: Place, told: String| {
        showing(around(old, &[place], ASKED), real, old, not_found(told))
    };
    if let Some(line) = search_edit::line_of(old, sought).filter(|_| n > 0) {
        let told = format!(
            "{told}. Before them it stands at line {line}: make one pair of those that change it, or search for the lines as the pair before leaves them"
        );
        return showing((line, sought.lines().count()), told);
    }
    let is_done = new.contains(char::is_alphanumeric);
    if let Some(line) = search_edit::line_of(old, new).filter(|_| is_done) {
        let told = format!(
            "{told}. It looks as if this was done already: the REPLACE text stands at line {line}"
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
        let how = if is_withheld { WITHHELD } else { "send lines as they stand there" };
        return not_found(format!("{told}, and nothing there is like it. READ_FILE it, and {how}"));
    };
    let last = (first + lines - 1).clamp(first, count_lines(old).max(first));
    let place =
        if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
    let verb = if first == last { "is" } else { "are" };
    let differs = if closest::differs_in_blanks(text, sought, first) {
        "where only the white space is another"
    } else {
        "as shown with this"
    };
    let how = if is_withheld {
        WITHHELD
    } else {
        "send the text as it stands there, without the numbers shown before it"
    };
    let told = format!("{told}. The nearest {verb} {place}, {differs}: {how}");
    showing((first, last + 1 - first), told)
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
        "{which}The SEARCH text stands in '{real}' {times}{how}, {places}; nothing was changed. Add lines before or after it until it stands there once"
    ))
    .as_a(Mistake::TextNotOnce)
}

#[cfg(test)]
mod tests;
