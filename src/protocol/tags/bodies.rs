//! What stands around or before the lines of a body and is none of it: a fence, line numbers, the
//! signs of a quotation, taken off where that is beyond doubt, with a warning. A diff, conflict markers
//! and pairs out of place are refused, or kept with a warning where they may be content.

use super::attributes::brief;
use super::fences;
use super::gutter::{self, Begins};
use super::pairs;
use super::sorts::{Sort, is_document, sort};
use super::wrong::{Wrong, wrong};
use crate::protocol::signs as diff;
use crate::protocol::{Kind, Mistake, RelPath, Replacement, Warning, WarningSort};

/// A body, and the line of the reply that it begins on.
pub(super) struct Body<'a> {
    pub(super) kind: Kind,
    pub(super) path: Option<&'a RelPath>,
    pub(super) text: String,
    pub(super) line: usize,
    /// The number of its first line in the file.
    pub(super) first: Option<u64>,
    /// Whether it is pairs of texts to search for and to put in their place.
    pub(super) in_pairs: bool,
}

/// A body without what is none of it, and the line of the reply that it begins on.
pub(super) struct Repaired {
    pub(super) text: String,
    pub(super) line: usize,
    /// The pairs that it is, if it is any, without what is none of these; the text has it still, so that
    /// its lines are those of the reply.
    pub(super) pairs: Vec<Replacement>,
}

/// Takes off what is none of the body. An error says what is wrong with it.
pub(super) fn repaired(body: Body<'_>, warnings: &mut Vec<Warning>) -> Result<Repaired, Wrong> {
    let Body { kind, path, mut text, line, first, in_pairs } = body;
    let sort = path.map_or(Sort::Code, sort);
    let is_file = matches!(kind, Kind::Create | Kind::Edit);
    let mut begins = line;
    if (is_file && sort == Sort::Code) || kind == Kind::Run {
        let blank =
            if kind == Kind::Run { text.len() - without_blank_lines(&text).len() } else { 0 };
        let of = format!("the body from line {line} on");
        match fences::without(&text[blank..], kind == Kind::Run, &of, warnings) {
            Ok(Some(inner)) => {
                begins += 1 + text[..blank].matches('\n').count();
                text = String::from(inner);
            }
            // Between pairs lines of fences say nothing.
            _ if in_pairs => {}
            Ok(None) => warnings.extend(fences::kept(&text, line, "")),
            Err(what) => return Err(what),
        }
    }
    let whole = |text| Ok(Repaired { text, line: begins, pairs: Vec::new() });
    if !is_file {
        return whole(text);
    }
    if in_pairs {
        let mut pairs = pairs::read(&text, begins)?;
        if sort == Sort::Code {
            of_pairs(&mut pairs, &text, begins, warnings)?;
        }
        return Ok(Repaired { text, line: begins, pairs });
    }
    let may_hold_pairs = sort != Sort::Code && !path.is_some_and(is_document);
    if kind == Kind::Create && !may_hold_pairs && pairs::are_all(&text) {
        let told = "the body is pairs of SEARCH and REPLACE and not the content of the file: send all of the content, or the pairs with EDIT_FILE and no line numbers (or RUN_COMMAND, where the file is to hold such lines)";
        return Err(wrong(Mistake::PairsAsContent, told));
    }
    if sort != Sort::Code {
        return whole(text);
    }
    let of = format!("the body from line {line} on");
    if let Some(plain) = gutter::without(&text, Begins::At(first), &of, warnings)? {
        text = plain;
    } else {
        warnings.extend(gutter::kept(&text, first, &of));
    }
    let is_patch = path.is_some_and(|path| path.as_str().split('/').any(|part| part == "patches"));
    if !is_patch && is_diff(&text) {
        let told = match kind {
            Kind::Create => {
                "the body is a diff and not the content of the file: send all of the content, or EDIT_FILE the lines that change (a file that is to hold a diff has a name in .diff or .patch, or a folder patches)"
            }
            _ => {
                "the body is a diff and not the lines that are to stand there: send those without the others, and without signs before them"
            }
        };
        return Err(wrong(Mistake::Diff, told));
    }
    if kind == Kind::Edit && pairs::are_in(&text) {
        let told = "the tag gives a range of lines, and the body pairs of SEARCH and REPLACE: send one of the two (or the range with RUN_COMMAND, where such lines are to stand in the file)";
        return Err(wrong(Mistake::PairsAndRange, told));
    }
    let has_pairs = pairs::are_in(&text);
    if !has_pairs && has_conflict(&text) {
        let told = "the body holds conflict markers (<<<<<<<, =======, >>>>>>>): send the lines as they are to be";
        return Err(wrong(Mistake::ConflictMarkers, told));
    }
    if has_pairs {
        let told = format!(
            "the body from line {line} on holds a line <<<<<<< SEARCH, as an edit does; it was kept as content"
        );
        warnings.push(Warning::new(WarningSort::MarkersKept, told));
    }
    if !is_patch {
        let told = signed(&text, &of, "")?;
        let is_told = told.is_some();
        warnings.extend(told);
        let (some, all) = diff::added(&text);
        if !is_told && some > 0 && (some == all || kind == Kind::Edit) {
            warnings.extend(added(&text, &of));
        }
    }
    whole(text)
}

/// Without the `>` that stand before each of its lines, as many as before the tag, of which `lead` is
/// what stands before it; None where they do not stand before each, or where it is not clear whether
/// the blank behind them is theirs.
pub(super) fn unquoted(text: &str, depth: u8, lead: &str) -> Option<String> {
    let spaced = lead.rsplit('>').next().is_some_and(|behind| behind.starts_with(' '));
    let (mut plain, mut some, mut all_blank) = (String::with_capacity(text.len()), false, true);
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        for _ in 0..depth {
            rest = rest.trim_start_matches([' ', '\t']).strip_prefix('>')?;
        }
        let is_filled = !rest.trim().is_empty();
        let inner = rest.strip_prefix(' ');
        if is_filled && spaced && inner.is_none() {
            return None;
        }
        some |= is_filled;
        all_blank &= !is_filled || inner.is_some();
        plain.push_str(if spaced || !is_filled { inner.unwrap_or(rest) } else { rest });
    }
    (spaced || !some || !all_blank).then_some(plain)
}

fn without_blank_lines(text: &str) -> &str {
    let blank = text.len() - text.trim_start().len();
    let begin = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    &text[begin..]
}

/// Whether a text is a diff from its beginning.
pub(super) fn is_diff(text: &str) -> bool {
    let is_said = |line: &&str| {
        !line.trim().is_empty() && !line.starts_with("Index: ") && !line.starts_with("=======")
    };
    let mut lines = text.lines().filter(is_said);
    let Some(first) = lines.next() else { return false };
    if ["diff --git ", "*** Begin Patch"].iter().any(|begin| first.starts_with(begin))
        || is_hunk(first)
    {
        return true;
    }
    first.starts_with("--- ")
        && lines.next().is_some_and(|line| line.starts_with("+++ "))
        && lines.next().is_some_and(is_hunk)
}

/// What is said of lines of a diff without its head.
const HUNK: &str = "each line begins with -, + or a blank, as in a diff: send the lines as they are to stand there, without signs before them (or with RUN_COMMAND, where the file is to hold lines like these)";

/// Whether each line begins with a sign of a diff, and both are there, `-old` and `+new`; then, whether
/// there are lines with the blank that a diff has before those that stay.
fn signs(text: &str) -> Option<bool> {
    let (mut gone, mut new, mut stays) = (false, false, false);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.as_bytes()[0] {
            _ if line.starts_with("---") || line.starts_with("+++") => return None,
            b'-' => gone = true,
            b'+' => new = true,
            b' ' => stays = true,
            _ => return None,
        }
    }
    (gone && new).then_some(stays)
}

/// What is told of a text with the signs of a diff, which are kept where it may be one without
/// context; `refused` begins what is said of others.
fn signed(text: &str, of: &str, refused: &str) -> Result<Option<Warning>, Wrong> {
    match signs(text) {
        None => Ok(None),
        Some(true) => Err(wrong(Mistake::Diff, format!("{refused}{HUNK}"))),
        Some(false) => {
            let told = format!(
                "each line of {of} begins with + or -, as in a diff; the signs were kept as content"
            );
            Ok(Some(Warning::new(WarningSort::SignsKept, told)))
        }
    }
}

/// Takes the line numbers off what the pairs of a body put in; looks for a fence and for signs of a diff
/// there, where what they search for has none.
fn of_pairs(
    pairs: &mut [Replacement],
    body: &str,
    line: usize,
    warnings: &mut Vec<Warning>,
) -> Result<(), Wrong> {
    let has_signs = body.contains("\n+") || body.contains("\n-");
    let has_fence = body.contains("\n```") || body.contains("\n~~~");
    if !has_signs && !has_fence && !gutter::has_numbers(body) {
        return Ok(());
    }
    gutter::without_in_pairs(pairs, line, warnings)?;
    let of = format!("a REPLACE text in the body from line {line} on");
    let several = pairs.len() > 1;
    for (n, pair) in pairs.iter().enumerate() {
        let which = if several { format!(" of pair {}", n + 1) } else { String::new() };
        fences::around_a_part(&pair.old, &pair.new, &format!("the REPLACE text{which}"))?;
    }
    for pair in pairs.iter().filter(|pair| signs(&pair.old).is_none()) {
        if let Some(told) = signed(&pair.new, &of, "of a REPLACE text ")? {
            warnings.push(told);
        } else if let Some((_, found)) = diff::of_a_diff(&pair.new, pair.old.as_bytes()) {
            let told = format!(
                "`{}` in a REPLACE text is a line of a diff: send the lines as they are to stand there, without signs before them",
                brief(found)
            );
            return Err(wrong(Mistake::Diff, told));
        } else if diff::added(&pair.old).0 == 0 {
            warnings.extend(added(&pair.new, &of));
        }
    }
    Ok(())
}

/// What is told of lines that begin with a `+`, which is kept.
fn added(text: &str, of: &str) -> Option<Warning> {
    let (some, all) = diff::added(text);
    let which = match some {
        0 => return None,
        _ if some == all => String::from("each line"),
        1 => String::from("a line"),
        _ => format!("{some} lines"),
    };
    let verb = if some == all || some == 1 { "begins" } else { "begin" };
    let told = format!(
        "{which} of {of} {verb} with +, as in a diff; the signs were kept as content: send the lines without them if they are none of the file"
    );
    Some(Warning::new(WarningSort::SignsKept, told))
}

fn is_hunk(line: &str) -> bool {
    let Some(inner) = line.strip_prefix("@@ -") else { return false };
    inner.starts_with(|c: char| c.is_ascii_digit())
        && inner.split_once(" +").is_some_and(|(_, rest)| rest.contains(" @@"))
}

/// Whether the markers of a merge stand in it, in their order.
fn has_conflict(text: &str) -> bool {
    const MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];
    if memchr::memmem::find(text.as_bytes(), MARKERS[0].as_bytes()).is_none() {
        return false;
    }
    let mut sought = MARKERS.iter();
    let mut next = sought.next();
    for line in text.lines() {
        let Some(marker) = next else { break };
        let rest = line.strip_prefix(marker);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\r'])) {
            next = sought.next();
        }
    }
    next.is_none()
}
