//! What stands around or before the lines of a body and is none of it: a fence, line numbers, the
//! signs of a quotation, taken off where that is beyond doubt, with a warning. A diff, conflict markers
//! and pairs out of place are refused, or kept with a warning where they may be content.

use super::diffs;
use super::fences;
use super::gutter::{self, Begins};
use super::pairs;
use super::sorts::{Sort, is_document, is_patch, sort};
use super::wrong::{Wrong, wrong};
use crate::protocol::{Kind, Mistake, RelPath, Replacement, Warning, WarningSort, signs};

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
    let is_patch = path.is_some_and(is_patch);
    if !is_patch && diffs::is_diff(&text) {
        let told = match kind {
            Kind::Create => format!(
                "the body is a diff and not the content of the file: send all of the content, or EDIT_FILE the lines that change {}",
                diffs::KEPT
            ),
            _ => "the body is a diff and not the lines that are to stand there: send those without the others, and without signs before them".to_owned(),
        };
        return Err(wrong(Mistake::Diff, told));
    }
    if kind == Kind::Edit && pairs::are_in(&text) {
        let told = "the tag gives a range of lines, and the body pairs of SEARCH and REPLACE: send one of the two (or the range with RUN_COMMAND, where such lines are to stand in the file)";
        return Err(wrong(Mistake::PairsAndRange, told));
    }
    let has_pairs = pairs::are_in(&text);
    if !has_pairs && diffs::has_conflict(&text) {
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
        let told = diffs::signed(&text, &of, "")?;
        let is_told = told.is_some();
        warnings.extend(told);
        let (some, all) = signs::added(&text);
        if !is_told && some > 0 && (some == all || kind == Kind::Edit) {
            warnings.extend(diffs::added(&text, &of));
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
    for pair in pairs.iter() {
        let told = diffs::in_place_of(&pair.old, &pair.new, &of, "a REPLACE text");
        warnings.extend(told?);
    }
    Ok(())
}
