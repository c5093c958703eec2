//! Finds secrets in a text that is about to leave this machine, and replaces each with a mark such as
//! `[withheld: AWS key]`. Pure, total and linear: each byte is read a bounded number of times.
//!
//! [`private_key`] finds private keys by their markers, [`formats`] secrets with a known format, [`files`] the values
//! in files such as `.env`, [`known`] the same values elsewhere, and [`heuristics`] random values whose name suggests
//! a secret. Placeholders (`<your-key>`, `AKIAIOSFODNN7EXAMPLE`) are not secrets. The tables are in [`rules`].
//! [`invisible`] removes terminal colours, which could hide a secret.
//!
//! Only the secret is replaced. The name before it stays, and so does every line feed, so line numbers remain valid
//! for edits. The first line of a private key becomes a mark, and its other lines become empty.

mod files;
mod formats;
mod heuristics;
mod invisible;
mod known;
mod private_key;
mod redactor;
mod rules;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

pub use files::{is_secret_file, is_secret_text_file};
use invisible::VisibleText;
pub use known::SecretSnapshot;
pub use redactor::{RedactedLine, Redactor};

/// The most times that a text is searched. One secret may obscure another.
const ROUNDS: usize = 8;

/// The kind of a secret, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretKind(&'static str);

/// The beginning of the mark that replaces a secret.
pub const MARK: &str = "[withheld: ";

impl SecretKind {
    const AWS: Self = Self("AWS key");
    const CUT_TOKEN: Self = Self("cut-off token");
    const ENV: Self = Self(".env value");
    const KUBERNETES: Self = Self("Kubernetes secret");
    const LOGIN: Self = Self("login");
    const PASSWORD: Self = Self("password");
    const PASSWORD_HASH: Self = Self("password hash");
    const SECRET_FILE: Self = Self("secret file");
    const PRIVATE_KEY: Self = Self("private key");
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A secret that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretFinding {
    /// The kind of secret.
    pub kind: SecretKind,
    /// The line on which the secret begins, from 1.
    pub line: usize,
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted {
    /// The text, with as many lines as before.
    pub text: String,
    /// The secrets that the text contained, in order.
    pub findings: Vec<SecretFinding>,
}

/// Replaces the secrets in a text. `file` is the path (with `/`) of the file if the text is its whole content; None
/// for other texts, such as the output of a command. Redact a text before you shorten it: the beginning of a file may
/// show what the rest is.
///
/// # Examples
/// ```
/// let text = format!("AWS_ACCESS_KEY_ID={}{}\n", "AKIA", "Q3EGRAZBXS4JKTPN");
/// let redacted = deaddrop::secrets::redact(&text, None);
/// assert_eq!(redacted.text, "AWS_ACCESS_KEY_ID=[withheld: AWS key]\n");
/// assert_eq!((redacted.findings.len(), redacted.findings[0].line), (1, 1));
/// ```
pub fn redact(text: &str, file: Option<&str>) -> Redacted {
    redact_part(text, 0..text.len(), &TextContext { file, ..TextContext::default() })
}

/// What is known about a text.
#[derive(Debug, Clone, Copy, Default)]
struct TextContext<'a> {
    /// The path of the file, if the text is its whole content.
    file: Option<&'a str>,
    /// Values that are known to be secret.
    snapshot: Option<&'a SecretSnapshot>,
    /// Where the text was cut, if it comes from a file that cannot be read as a whole.
    isolated: Option<CutEnds>,
    /// Whether other parts of that file looked like parts of a private key.
    has_key: bool,
}

/// Replaces the secrets in a part of a text. The rest of the text helps to recognise them. A secret across the
/// edge of the part is replaced as a whole. Lines are counted from the beginning of the part.
fn redact_part(text: &str, mut part: Range<usize>, context: &TextContext) -> Redacted {
    let (mut text, mut findings) = (Cow::Borrowed(text), Vec::new());
    for _ in 0..ROUNDS {
        let spans = merge(find_spans(&text, context));
        if spans.is_empty() {
            break;
        }
        text = Cow::Owned(replace(&text, spans, &mut part, &mut findings));
    }
    findings.sort_by_key(|finding| finding.line);
    Redacted { text: text[part].to_owned(), findings }
}

/// Which ends of a text were cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutEnds {
    /// Text before it is missing.
    pub beginning: bool,
    /// Text after it is missing.
    pub end: bool,
}

/// A part of a text that must be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretSpan {
    range: Range<usize>,
    kind: SecretKind,
    /// Whether a mark replaces the span. The further lines of a private key become empty instead.
    is_announced: bool,
    certainty: Certainty,
}

/// How certain the kind of a secret is. If spans overlap, the most certain one determines the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// Known from the file that contains it.
    File,
    /// Known from its name.
    Name,
    /// Known from its format.
    Format,
    PrivateKey,
}

impl SecretSpan {
    fn new(range: Range<usize>, kind: SecretKind, certainty: Certainty) -> Self {
        Self { range, kind, is_announced: true, certainty }
    }

    /// Makes spans of the parts of one secret. Only the first gets a mark.
    fn parts(
        ranges: impl IntoIterator<Item = Range<usize>>,
        kind: SecretKind,
        certainty: Certainty,
    ) -> impl Iterator<Item = Self> {
        let spans = ranges.into_iter().map(move |range| Self::new(range, kind, certainty));
        spans.enumerate().map(|(n, span)| Self { is_announced: n == 0, ..span })
    }
}

fn find_spans(text: &str, context: &TextContext) -> Vec<SecretSpan> {
    let mut spans = Vec::new();
    find_in(text, context, &mut spans);
    if let Some(visible) = VisibleText::of(text) {
        let mut found = Vec::new();
        find_in(&visible.text, context, &mut found);
        spans.extend(found.iter().map(|span| visible.original(span)));
    }
    spans
}

fn find_in(text: &str, context: &TextContext, spans: &mut Vec<SecretSpan>) {
    private_key::find(text, spans);
    formats::find(text, context.file, spans);
    files::find(text, context.file, spans);
    heuristics::find_named(text, context.file, spans);
    if let Some(cut) = context.isolated {
        formats::find_pieces(text, cut, spans);
        private_key::find_isolated(text, context.has_key, spans);
    }
    if let Some(snapshot) = context.snapshot {
        snapshot.find(text, spans);
    }
}

/// Sorts the spans and merges those that overlap.
fn merge(mut spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
    spans.sort_by_key(|span| (span.range.start, span.range.end));
    let mut merged: Vec<SecretSpan> = Vec::new();
    for span in spans {
        let Some(last) = merged.last_mut().filter(|last| span.range.start < last.range.end) else {
            merged.push(span);
            continue;
        };
        let is_within = span.range.end <= last.range.end;
        let is_around = span.range.start == last.range.start && !is_within;
        // A further line of a key stays empty, even if another secret is found in it.
        last.is_announced = match span.certainty.cmp(&last.certainty) {
            Ordering::Greater if is_around || span.range == last.range => span.is_announced,
            Ordering::Less if is_within => last.is_announced,
            _ => last.is_announced | span.is_announced,
        };
        last.range.end = last.range.end.max(span.range.end);
        if span.certainty > last.certainty {
            (last.certainty, last.kind) = (span.certainty, span.kind);
        }
    }
    merged
}

/// Replaces these spans and keeps line feeds. Adjusts `part` to the new text, and adds the findings within it.
fn replace(
    text: &str,
    spans: Vec<SecretSpan>,
    part: &mut Range<usize>,
    findings: &mut Vec<SecretFinding>,
) -> String {
    let line_feeds: Vec<usize> = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
    let line_feeds_before = |at: usize| line_feeds.partition_point(|feed| *feed < at);
    let mut out = String::with_capacity(text.len());
    let (mut at, old) = (0, part.clone());
    let mut is_continued = old.start > 0;
    for SecretSpan { range, kind, mut is_announced, .. } in spans {
        out.push_str(&text[at..range.start]);
        let start = out.len();
        if range.end > old.start && range.start < old.end {
            // If a private key begins before the part, its first line inside the part gets the mark.
            is_announced |= std::mem::take(&mut is_continued);
            if is_announced {
                let begin = range.start.max(old.start);
                let line = 1 + line_feeds_before(begin) - line_feeds_before(old.start);
                findings.push(SecretFinding { kind, line });
            }
        }
        if is_announced {
            out.extend([MARK, kind.0, "]"]);
        }
        let lines = line_feeds_before(range.end) - line_feeds_before(range.start);
        out.extend(std::iter::repeat_n('\n', lines));
        // The part grows to include the rest of a secret across its edge.
        for (edge, old, inside) in
            [(&mut part.start, old.start, start), (&mut part.end, old.end, out.len())]
        {
            if old >= range.end {
                *edge = out.len() + (old - range.end);
            } else if old > range.start {
                *edge = inside;
            }
        }
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}
