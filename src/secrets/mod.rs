//! Secrets in a text that is about to leave this machine: found, and replaced by
//! `[withheld: AWS key]`. Pure, total and linear: each byte is looked at a bounded number of times.
//!
//! What is found: private keys ([`keys`]), tokens that services have given a form of their own
//! ([`tokens`], [`composed`]), passwords in addresses ([`urls`]), random values under names such as `password`
//! ([`assigned`] and [`beside`], by [`names`]), and what files such as `.env` hold by their nature ([`files`]), also
//! where it stands elsewhere ([`known`]). What stands for a secret (`<your-key>`,
//! `AKIAIOSFODNN7EXAMPLE`) is none. Where a text was cut, [`ends`] sees what is left of one.
//! A text is also looked at without a terminal's colours ([`coloured`]).
//!
//! Only the secret goes: the name before it stays, and so does every line feed, so that the numbers
//! of lines hold for edits. Of a private key that fills several lines the first says that it is
//! withheld and the others are empty; the lines with `BEGIN` and `END` stay.

mod assigned;
mod beside;
mod coloured;
mod composed;
mod ends;
mod files;
mod forms;
mod held;
mod keys;
mod known;
mod literal;
mod names;
mod shape;
#[cfg(test)]
mod tests;
mod tokens;
mod urls;
mod values;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use coloured::Uncoloured;
pub use ends::Cut;
pub use files::{holds_secrets, is_secret_file};
pub use held::{Changed, Screen};
pub use known::Known;

/// How often a text is looked at again: what was replaced may have stood in the way of something.
const ROUNDS: usize = 8;

/// What sort of secret it is, as a person calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sort(&'static str);

/// What stands in the place of a secret begins so.
pub const MARK: &str = "[withheld: ";

impl Sort {
    /// What stands in the place of such a secret.
    fn withheld(self) -> String {
        format!("{MARK}{self}]")
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A secret that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// What it is.
    pub sort: Sort,
    /// The line that it begins on, from 1.
    pub line: usize,
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screened<'a> {
    /// The text, with as many lines as it had.
    pub text: Cow<'a, str>,
    /// What was found in it, in the order of the text.
    pub found: Vec<Found>,
}

impl Screened<'_> {
    /// The same, whose text is its own.
    pub fn into_owned(self) -> Screened<'static> {
        Screened { text: Cow::Owned(self.text.into_owned()), found: self.found }
    }
}

/// Replaces the secrets in a text. `name` is the file that it is the whole content of, a path with
/// `/`; None for what is no file, such as the output of a command. A part of a file would hide what
/// its beginning tells of the rest: screen the whole, and cut afterwards.
///
/// # Examples
/// ```
/// let text = format!("AWS_ACCESS_KEY_ID={}{}\n", "AKIA", "Q3EGRAZBXS4JKTPN");
/// let screened = deaddrop::secrets::screen(&text, None);
/// assert_eq!(screened.text, "AWS_ACCESS_KEY_ID=[withheld: AWS key]\n");
/// assert_eq!((screened.found.len(), screened.found[0].line), (1, 1));
/// ```
pub fn screen<'a>(text: &'a str, name: Option<&str>) -> Screened<'a> {
    screened(text, &Look::at(name))
}

/// How a text is looked at.
#[derive(Debug, Clone, Copy, Default)]
struct Look<'a> {
    /// The file that it is the whole content of.
    name: Option<&'a str>,
    /// What is secret beside what looks like it.
    known: Option<&'a Known>,
    /// Which of its ends were cut off.
    cut: Cut,
    /// Whether nobody knows what stands around it in its file.
    alone: bool,
}

impl<'a> Look<'a> {
    fn at(name: Option<&'a str>) -> Self {
        Self { name, ..Self::default() }
    }
}

fn screened<'a>(text: &'a str, look: &Look) -> Screened<'a> {
    let mut screened = Screened { text: Cow::Borrowed(text), found: Vec::new() };
    for _ in 0..ROUNDS {
        let spans = settled(spans(&screened.text, look));
        if spans.is_empty() {
            break;
        }
        screened.found.extend(located(&screened.text, &spans));
        screened.text = Cow::Owned(without(&screened.text, &spans));
    }
    screened.found.sort_by_key(|found| found.line);
    screened
}

/// A part of a text that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    range: Range<usize>,
    sort: Sort,
    /// Whether it says that something is withheld; what goes on from an earlier span does not.
    says: bool,
    /// How sure its sort is: of spans that overlap the surest names the whole.
    rank: Rank,
}

/// How much is known of a secret, by how it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// By the file that it stands in, or a name beside it.
    File,
    /// By the name that it has.
    Name,
    /// By its own form.
    Form,
    Key,
}

impl Span {
    fn new(range: Range<usize>, sort: Sort, rank: Rank) -> Self {
        Self { range, sort, says: true, rank }
    }
}

fn spans(text: &str, look: &Look) -> Vec<Span> {
    let mut spans = spans_as_it_is(text, look);
    if let Some(plain) = Uncoloured::of(text) {
        spans.extend(spans_as_it_is(&plain.text, look).into_iter().map(|span| plain.back(&span)));
    }
    spans
}

fn spans_as_it_is(text: &str, look: &Look) -> Vec<Span> {
    let name = look.name;
    let mut spans = Vec::new();
    keys::find(text, look.cut.beginning, &mut spans);
    tokens::find(text, &mut spans);
    composed::find(text, &mut spans);
    urls::find(text, &mut spans);
    files::find(text, name, &mut spans);
    assigned::find(text, name, &mut spans);
    ends::find(text, look.cut, &mut spans);
    if look.alone {
        let runs = keys::alone(text).into_iter();
        spans.extend(runs.map(|run| Span::new(run, keys::KEY, Rank::Key)));
    }
    if let Some(known) = look.known {
        known.find(text, look.cut, &mut spans);
    }
    spans
}

/// In the order of the text, and none overlapping another.
fn settled(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.range.start, span.range.end));
    let mut settled: Vec<Span> = Vec::new();
    for span in spans {
        match settled.last_mut().filter(|last| span.range.start < last.range.end) {
            Some(last) => {
                let is_within = span.range.end <= last.range.end;
                let is_around =
                    span.range.start == last.range.start && !is_within || span.range == last.range;
                // A line that goes on with something says nothing, whatever else is known of it.
                last.says = match span.rank.cmp(&last.rank) {
                    Ordering::Greater if is_around => span.says,
                    Ordering::Less if is_within => last.says,
                    _ => last.says | span.says,
                };
                last.range.end = last.range.end.max(span.range.end);
                if span.rank > last.rank {
                    (last.rank, last.sort) = (span.rank, span.sort);
                }
            }
            None => settled.push(span),
        }
    }
    settled
}

fn located(text: &str, spans: &[Span]) -> Vec<Found> {
    let (mut at, mut line) = (0, 1);
    let mut found = Vec::new();
    for span in spans.iter().filter(|span| span.says) {
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[at..span.range.start]).count();
        at = span.range.start;
        found.push(Found { sort: span.sort, line });
    }
    found
}

/// The text without these spans. No span ends within a character, and line feeds stay.
fn without(text: &str, spans: &[Span]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(&text[at..span.range.start]);
        if span.says {
            out.push_str(&span.sort.withheld());
        }
        let lines = &text.as_bytes()[span.range.clone()];
        out.extend(memchr::memchr_iter(b'\n', lines).map(|_| '\n'));
        at = span.range.end;
    }
    out.push_str(&text[at..]);
    out
}
