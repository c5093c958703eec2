//! Line numbers before the lines of a body, as outboxes and tools show them: taken off where they are
//! beyond doubt, with a warning; else refused, or kept with a warning where they may be code.

use super::wrong::{Wrong, wrong};
use crate::protocol::{Mistake, Replacement, Warning, WarningSort};

/// Which number the first line of a text must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// This; None for one that nobody knows, which none is.
    At(Option<u64>),
    /// Any: it is known only where the file is.
    Anywhere,
}

/// A line's number, the sign behind it and what follows that: `12| x`, `12│x`, `12→x`, or as
/// `cat -n` numbers.
fn numbered(line: &str) -> Option<(u64, char, &str)> {
    let inner = line.trim_start_matches(' ');
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let number = inner[..digits].parse().ok()?;
    let rest = &inner[digits..];
    if let Some(rest) = rest.strip_prefix('\t') {
        return (inner.len() < line.len()).then_some((number, '\t', rest));
    }
    let rest = rest.trim_start_matches(' ');
    let sign = rest.chars().next().filter(|c| matches!(c, '|' | '│' | '→'))?;
    let rest = &rest[sign.len_utf8()..];
    (!rest.starts_with('|')).then_some((number, sign, rest))
}

/// How many blanks behind the sign of a gutter are its own, where no line has fewer than `least`;
/// None where that is not clear.
fn own_blanks(sign: char, least: Option<usize>) -> Option<usize> {
    match (sign, least) {
        ('\t', _) => Some(0),
        ('→', least) => Some(usize::from(least == Some(1))),
        // Nothing is indented by an odd number.
        (_, Some(least)) if least > 0 && least % 2 == 0 => None,
        (_, least) => Some(usize::from(least != Some(0))),
    }
}

/// Whether the sign stands right behind the number, as no code is written: `12| x`, not `12 | x`.
fn is_attached(line: &str) -> bool {
    let rest = line.trim_start_matches(' ').trim_start_matches(|c: char| c.is_ascii_digit());
    !rest.starts_with(' ')
}

/// Whether outboxes and tools number lines with that sign and what follows it: `12| x`, not `1|2`.
fn is_shown(sign: char, rest: &str) -> bool {
    matches!(sign, '→' | '\t') || rest.is_empty() || rest.starts_with(' ')
}

/// A text without its gutter of line numbers; None where it has none. What looks like one on a single
/// line without being its number, or in no order and with a blank before its sign, is code:
/// `1 | 2 => x`. `of` says which text it is.
pub(super) fn without(
    text: &str,
    begins: Begins,
    of: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Option<String>, Wrong> {
    // Nearly every body is told by its first lines.
    let mut first = text.lines().filter(|line| !line.trim().is_empty()).take(2);
    if !first.any(|line| numbered(line).is_some()) {
        return Ok(None);
    }
    let (mut all, mut with, mut steps, mut in_order) = (0usize, 0usize, 0, true);
    let (mut attached, mut shown) = (true, true);
    let (mut last, mut begin, mut fewest, mut sign) = (None, None, None, None);
    for line in text.lines() {
        all += usize::from(!line.trim().is_empty());
        let Some((number, signed, rest)) = numbered(line) else {
            in_order = false;
            continue;
        };
        let is_step = last.is_some_and(|last: u64| last.checked_add(1) == Some(number));
        in_order &= is_step || last.is_none();
        in_order &= signed == *sign.get_or_insert(signed);
        attached &= is_attached(line);
        shown &= is_shown(signed, rest);
        steps += usize::from(is_step);
        begin.get_or_insert(number);
        if !rest.trim().is_empty() {
            let blanks = rest.len() - rest.trim_start_matches(' ').len();
            fewest = Some(fewest.map_or(blanks, |fewest: usize| fewest.min(blanks)));
        }
        last = Some(number);
        with += 1;
    }
    let is_its_own = begins == Begins::At(begin);
    // `12| x` on every line is no code, whatever the numbers are; `1|x` is a table's as well.
    let on_each = with == all && attached;
    let is_gutter = match with {
        1 => all == 1 && shown && attached && is_its_own,
        _ => shown && (on_each || steps * 2 > with - 1 && with * 2 >= all),
    };
    if !is_gutter {
        let counts_up = with > 1 && in_order && begins == Begins::Anywhere;
        if with == all && (is_its_own || counts_up || shown && attached) {
            let told =
                format!("what may be line numbers before the lines of {of} was kept as code");
            warnings.push(Warning::new(WarningSort::NumbersKept, told));
        }
        return Ok(None);
    }
    let which = if begins == Begins::Anywhere { "a REPLACE text" } else { "the body" };
    if !in_order || !is_its_own && begins != Begins::Anywhere {
        let told = format!(
            "line numbers stand before lines of {which}, but not before each, not in order, or not from its first line on: send the lines without numbers"
        );
        return Err(wrong(Mistake::NumberedLines, told));
    }
    let Some(blanks) = own_blanks(sign.unwrap_or('|'), fewest) else {
        let told = format!(
            "line numbers stand before the lines of {which}, and whether a blank behind their sign belongs to them is not clear: send the lines without numbers"
        );
        return Err(wrong(Mistake::NumberedLines, told));
    };
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let ending = if line.ends_with('\n') { "\n" } else { "" };
        let line = line.strip_suffix('\n').unwrap_or(line);
        let Some((_, _, rest)) = numbered(line) else { continue };
        plain.push_str(if blanks > 0 { rest.strip_prefix(' ').unwrap_or(rest) } else { rest });
        plain.push_str(ending);
    }
    let told =
        format!("the line numbers before each line of {of} were taken off: send it without them");
    warnings.push(Warning::new(WarningSort::NumbersTakenOff, told));
    Ok(Some(plain))
}

/// What is told of numbers that count up before the lines of a text without a bar behind them, which
/// code may have: `1: x`, `1  x`. They begin with `first`, the number of the text's first line in the file.
pub(super) fn kept(text: &str, first: Option<u64>, of: &str) -> Option<Warning> {
    let (mut begin, mut last, mut sign, mut count) = (None, None, None, 0usize);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let inner = line.trim_start_matches(' ');
        let inner = inner.strip_prefix('L').unwrap_or(inner);
        let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = inner[..digits].parse().ok()?;
        let rest = &inner[digits..];
        let signed = rest.chars().next().unwrap_or(' ');
        let is_sign = match signed {
            ':' | '\t' => true,
            '.' | ')' => rest.len() == 1 || rest[1..].starts_with(' '),
            ' ' => rest.starts_with("  ") || rest.trim().is_empty(),
            _ => rest.is_empty(),
        };
        let is_next = last.is_none_or(|last: u64| last.checked_add(1) == Some(number));
        if !is_sign || !is_next || *sign.get_or_insert(signed) != signed {
            return None;
        }
        begin.get_or_insert(number);
        (last, count) = (Some(number), count + 1);
    }
    (count > 1 && begin == first).then(|| {
        let told = format!(
            "what may be line numbers before the lines of {of} was kept as content: send the lines without numbers if they are none of the file"
        );
        Warning::new(WarningSort::NumbersKept, told)
    })
}

/// Whether line numbers may stand before lines of a text.
pub(super) fn has_numbers(text: &str) -> bool {
    text.lines().any(|line| numbered(line).is_some())
}

/// Takes the line numbers off what pairs put in, those of a body from that line on. Where lines that one searches for look numbered as well, the file is like that, or
/// does not hold them, which is told where the file is.
pub(super) fn without_in_pairs(
    pairs: &mut [Replacement],
    line: usize,
    warnings: &mut Vec<Warning>,
) -> Result<(), Wrong> {
    let several = pairs.len() > 1;
    for (n, pair) in pairs.iter_mut().enumerate() {
        if has_numbers(&pair.old) {
            continue;
        }
        let which = if several { format!(" of pair {}", n + 1) } else { String::new() };
        let of = format!("the REPLACE text{which} in the body from line {line} on");
        if let Some(plain) = without(&pair.new, Begins::Anywhere, &of, warnings)? {
            pair.new = plain;
        }
    }
    Ok(())
}
