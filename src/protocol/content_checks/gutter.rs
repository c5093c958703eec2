//! Checks for line numbers before the lines of a text, as outboxes and tools show them. They are removed with a warning
//! if there is no doubt. If they may be code, they are kept with a warning; in other cases the text is refused. Pure.

use std::fmt::Display;

use crate::protocol::mistake::Problem;
use crate::protocol::{Mistake, Warning, WarningKind};

/// The line number that the first line of a text must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::protocol) enum First {
    /// This number. None if the number is unknown, so that no number is correct.
    Is(Option<u64>),
    /// Any number, because only the file shows the correct one.
    Any,
}

/// A line after its number: `12| x`, `12│x`, `12→x`, or as numbered by `cat -n`.
struct Line<'a> {
    number: u64,
    sign: char,
    /// Whether the sign follows the number directly, as in `12| x`. Code is not written like this.
    is_attached: bool,
    rest: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let inner = line.trim_start_matches(' ');
        let (number, rest) = split_number(inner)?;
        if let Some(rest) = rest.strip_prefix('\t') {
            let is_padded = inner.len() < line.len();
            return is_padded.then_some(Self { number, sign: '\t', is_attached: true, rest });
        }
        let behind = rest.trim_start_matches(' ');
        let sign = behind.chars().next().filter(|c| matches!(c, '|' | '│' | '→'))?;
        let is_attached = behind.len() == rest.len();
        let rest = &behind[sign.len_utf8()..];
        (!rest.starts_with('|')).then_some(Self { number, sign, is_attached, rest })
    }

    /// Whether outboxes and tools show lines in this form: `12| x`, not `1|2`.
    fn is_as_shown(&self) -> bool {
        matches!(self.sign, '→' | '\t') || self.rest.is_empty() || self.rest.starts_with(' ')
    }

    fn blanks(&self) -> usize {
        self.rest.len() - self.rest.trim_start_matches(' ').len()
    }
}

/// The number with which a text begins, and the rest of the text.
fn split_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

/// Whether a text may contain numbered lines.
pub(in crate::protocol) fn has_numbers(text: &str) -> bool {
    text.lines().any(|line| Line::read(line).is_some())
}

/// Removes the line numbers of a text. None if it has none. `1 | 2 => x` is code, and so is a single line whose number
/// is not the expected one. `of` names the text in messages.
pub(in crate::protocol) fn strip(
    text: &str,
    first: First,
    of: &dyn Display,
    warnings: &mut Vec<Warning>,
) -> Result<Option<String>, Problem> {
    let filled = || text.lines().filter(|line| !line.trim().is_empty());
    // The first two lines are enough to exclude nearly every text.
    if !filled().take(2).any(|line| Line::read(line).is_some()) {
        return Ok(None);
    }
    let lines: Vec<Line> = text.lines().filter_map(Line::read).collect();
    let is_next = |pair: &&[Line]| pair[0].number.checked_add(1) == Some(pair[1].number);
    let steps = lines.windows(2).filter(is_next).count();
    let is_whole = lines.len() == text.lines().count();
    let in_order = is_whole
        && steps + 1 == lines.len()
        && lines.windows(2).all(|pair| pair[0].sign == pair[1].sign);
    let is_attached = lines.iter().all(|line| line.is_attached);
    let is_shown = lines.iter().all(Line::is_as_shown);
    let is_right = first == First::Is(lines.first().map(|line| line.number));
    let on_each = lines.len() == filled().count();
    let several = lines.len() > 1;
    // If `12| x` is on every line, this is not code, whatever the numbers are.
    let is_gutter = is_shown
        && (on_each && is_attached && (several || is_right)
            || several && steps * 2 > lines.len() - 1 && lines.len() * 2 >= filled().count());
    if !is_gutter {
        let counts_up = several && in_order && first == First::Any;
        if on_each && (is_right || counts_up || is_shown && is_attached) {
            warnings.push(kept(of));
        }
        return Ok(None);
    }
    if !in_order || !is_right && first != First::Any {
        let phrase = format!(
            "{of} has line numbers before its lines, but not before each, not in order, or not from the right one on: send the lines without numbers"
        );
        return Err(Problem::new(Mistake::NumberedLines, phrase));
    }
    let least = lines.iter().filter(|line| !line.rest.trim().is_empty()).map(Line::blanks).min();
    let has_blank = match (lines[0].sign, least) {
        ('\t', _) => false,
        ('→', least) => least == Some(1),
        // An even number of spaces may be indentation of the code.
        (_, Some(least)) if least > 0 && least % 2 == 0 => {
            let phrase = format!(
                "{of} has line numbers before its lines, and the blank behind their sign may belong to them or to the lines: send the lines without numbers"
            );
            return Err(Problem::new(Mistake::NumberedLines, phrase));
        }
        (_, least) => least != Some(0),
    };
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let Some(Line { rest, .. }) = Line::read(line) else { continue };
        plain.push_str(rest.strip_prefix(' ').filter(|_| has_blank).unwrap_or(rest));
    }
    let text = format!("the line numbers in {of} were removed: send it without them");
    warnings.push(Warning::new(WarningKind::NumbersTakenOff, text));
    Ok(Some(plain))
}

fn kept(of: &dyn Display) -> Warning {
    let text = format!(
        "the lines of {of} seem to begin with line numbers, which were kept: if the file has no line numbers, send the lines without them"
    );
    Warning::new(WarningKind::NumbersKept, text)
}
