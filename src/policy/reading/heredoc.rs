//! Here-documents: where the grammar and the shell could see different ends, and what runs within.

use std::ops::Range;

use super::word;

/// A here-document as the grammar has it; ranges are of the whole line.
pub(super) struct Document {
    /// The mark behind `<<`, with its quotes.
    pub(super) mark: Range<usize>,
    /// Whether tabs in front of a line do not count: `<<-`.
    pub(super) tabs: bool,
    /// From the first line of the body to the mark that ends it.
    pub(super) body: Range<usize>,
    /// The mark that ends it.
    pub(super) end: Range<usize>,
}

/// What is to be said of a here-document.
pub(super) enum Told {
    /// It is data.
    Data,
    /// What `$…` and backticks in its body give is put in.
    Filled,
    /// Its end is not certain.
    Odd,
}

impl Document {
    /// Whether the document ends for every shell where it ends for the grammar.
    pub(super) fn told(&self, text: &str) -> Told {
        let raw = &text[self.mark.clone()];
        let Ok(mark) = word::unquoted(raw, 0, &[]) else { return Told::Odd };
        let is_plain = !mark.text().is_empty() && !mark.text().contains('\n');
        if mark.is_open() || mark.is_glob() || mark.is_home() || !is_plain {
            return Told::Odd;
        }
        let filled = !raw.contains(['\'', '"', '\\']);
        let bare = |line: &'_ str| -> String {
            if self.tabs { line.trim_start_matches('\t').to_owned() } else { line.to_owned() }
        };
        let first = text[..self.body.start].rfind('\n').map_or(0, |at| at + 1);
        let last = text[..self.end.start].rfind('\n').map_or(0, |at| at + 1);
        let after = text[last..].find('\n').map_or(text.len(), |at| last + at);
        let blank = text[first..self.body.start].chars().all(|c| c == '\t');
        if !blank || first > last || first == 0 || bare(&text[last..after]) != mark.text() {
            return Told::Odd;
        }
        let mut joined = String::new();
        let mut goes_on = false;
        for line in text[first..last].split_terminator('\n') {
            if bare(line) == mark.text() {
                return Told::Odd;
            }
            joined.push_str(line);
            // A backslash takes the end of the line away, and perhaps makes the mark of two.
            goes_on = filled && line.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
            if goes_on {
                joined.pop();
            } else {
                if bare(&joined) == mark.text() {
                    return Told::Odd;
                }
                joined.clear();
            }
        }
        match (goes_on, filled) {
            (true, _) => Told::Odd,
            (false, true) => Told::Filled,
            (false, false) => Told::Data,
        }
    }
}

/// The backticks of a text that stands as if between double quotes: what is in each, with the
/// backslashes gone that only kept it from the outer shell, and where it stands. Nothing where one
/// is left open.
pub(super) fn backticks(
    text: &str,
    skip: &[Range<usize>],
    offset: usize,
) -> Option<Vec<(String, Range<usize>)>> {
    let mut found = Vec::new();
    let mut begun: Option<(usize, String)> = None;
    let mut skip = skip.iter().peekable();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        while skip.next_if(|span| span.end <= offset + at).is_some() {}
        if begun.is_none() && skip.peek().is_some_and(|span| span.start <= offset + at) {
            continue;
        }
        match (c, &mut begun) {
            ('\\', None) => drop(chars.next()),
            ('\\', Some((_, inner))) => match chars.next() {
                Some((_, c @ ('`' | '$' | '\\'))) => inner.push(c),
                Some((_, c)) => inner.extend(['\\', c]),
                None => return None,
            },
            ('`', None) => begun = Some((at, String::new())),
            ('`', Some((start, inner))) => {
                found.push((std::mem::take(inner), offset + *start..offset + at + 1));
                begun = None;
            }
            (c, Some((_, inner))) => inner.push(c),
            (_, None) => {}
        }
    }
    begun.is_none().then_some(found)
}
