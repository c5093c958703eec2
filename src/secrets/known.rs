//! The secrets that certain files of a workspace hold, to be found again where a command prints them:
//! values of `.env` and its like, passwords of `.netrc`, lines of private keys.
//!
//! Such a text has no form of its own, so it must be long and mixed enough to be nothing else; beside the
//! name of its variable it may be any.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::{Regex, RegexBuilder};

use super::ends::Cut;
use super::files;
use super::shape::{Mix, entropy, looks_random};
use super::values::{is_harmless, is_stand_in};
use super::{MARK, Rank, Sort, Span, settled, spans};

/// As many are looked for at most, and as many bytes of them in all.
const MOST: usize = 500;
const MOST_BYTES: usize = 32 << 10;
/// Shorter ones, and longer ones, are not looked for, in bytes.
const SHORTEST: usize = 8;
const LONGEST: usize = 1024;
/// The same of a line of a key.
const SHORTEST_LINE: usize = 16;
/// Of one that was cut off, fewer characters tell too little.
const SHORTEST_CUT: usize = 6;

/// Secrets that are known from files, to be left out wherever they stand.
///
/// # Examples
/// ```
/// use deaddrop::secrets::Known;
/// let known = Known::of([(".env", "DB_PASSWORD=plain-but-mine\nPORT=8080\n")]);
/// assert_eq!(known.len(), 1);
/// assert_eq!(Known::of([("README.md", "DB_PASSWORD=plain-but-mine\n")]).len(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The longest first: where several begin, it counts.
    all: Vec<(String, Sort)>,
    /// Where one of them stands; None where there are none.
    found: Option<Regex>,
    /// The values that variables have in files such as `.env`, by their names, be they weak or short: beside
    /// its name each is found.
    pub(super) pairs: BTreeMap<String, BTreeSet<String>>,
    /// Where such a name stands with what leads to its value.
    leads: Option<Regex>,
}

impl Known {
    /// Those of files, each with its path (with `/`) and its whole text.
    pub fn of<'a, T: AsRef<str>>(files: impl IntoIterator<Item = (&'a str, T)>) -> Self {
        let (mut found, mut bytes) = (BTreeMap::new(), 0);
        let mut pairs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut paired = 0;
        for (path, text) in files.into_iter().filter(|(path, _)| files::holds_secrets(path)) {
            let text = text.as_ref();
            for span in settled(spans(text, &super::Look::at(Some(path)))) {
                if let Some((name, value)) = files::variable(text, &span)
                    && paired + name.len() + value.len() <= MOST_BYTES
                {
                    paired += name.len() + value.len();
                    pairs.entry(name.to_owned()).or_default().insert(value.to_owned());
                }
                for (value, is_one) in values(text, &span) {
                    if is_one && found.len() < MOST && bytes + value.len() <= MOST_BYTES {
                        found.entry(value.to_owned()).or_insert_with(|| {
                            bytes += value.len();
                            span.sort
                        });
                    }
                }
            }
        }
        let mut all: Vec<(String, Sort)> = found.into_iter().collect();
        all.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        let pattern: Vec<String> = all.iter().map(|(value, _)| regex::escape(value)).collect();
        // Bounded as they are, they are far from where a pattern would be too large.
        let found = (!all.is_empty())
            .then(|| RegexBuilder::new(&pattern.join("|")).unicode(false).build().ok())
            .flatten();
        let names: Vec<String> = pairs.keys().map(|name| regex::escape(name)).collect();
        let leads = format!(r#"\b(?:{})\\*["']?[ \t]*(?:=>|[=:])[ \t]*\\*["'`]?"#, names.join("|"));
        let leads = (!pairs.is_empty())
            .then(|| RegexBuilder::new(&leads).unicode(false).build().ok())
            .flatten();
        Self { all, found, pairs, leads }
    }

    /// The values of variables where they stand beside their names.
    fn find_pairs(&self, text: &str, cut: Cut, spans: &mut Vec<Span>) {
        let Some(leads) = &self.leads else { return };
        for hit in leads.find_iter(text.as_bytes()) {
            let shown = String::from_utf8_lossy(hit.as_bytes());
            let name = shown.trim_end_matches(['"', '\'', '`', '\\', ' ', '\t', '=', ':', '>']);
            let rest = &text.as_bytes()[hit.end()..];
            let values = self.pairs.get(name).into_iter().flatten();
            let lengths = values.filter_map(|value| {
                let value = value.as_bytes();
                let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let is_whole =
                    rest.starts_with(value) && !rest.get(value.len()).is_some_and(goes_on);
                let is_cut = cut.end && !rest.is_empty() && value.starts_with(rest);
                (is_whole || is_cut).then_some(value.len().min(rest.len()))
            });
            let longest = lengths.max();
            spans.extend(
                longest.map(|n| Span::new(hit.end()..hit.end() + n, files::ENV, Rank::File)),
            );
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn find(&self, text: &str, cut: Cut, spans: &mut Vec<Span>) {
        self.find_pairs(text, cut, spans);
        let Some(regex) = &self.found else { return };
        for hit in regex.find_iter(text.as_bytes()) {
            if is_within_mark(&text[..hit.start()]) {
                continue;
            }
            let of = self.all.iter().find(|(value, _)| value.as_bytes() == hit.as_bytes());
            spans.extend(of.map(|(_, sort)| Span::new(hit.range(), *sort, Rank::File)));
        }
        // Of what was cut the longest counts.
        if cut.end {
            let left =
                |value: &str| longest(value, |n| text.ends_with(value.get(..n)?).then_some(n));
            let best = self.all.iter().filter_map(|(value, sort)| Some((left(value)?, *sort)));
            spans.extend(
                best.max_by_key(|(n, _)| *n)
                    .map(|(n, sort)| Span::new(text.len() - n..text.len(), sort, Rank::File)),
            );
        }
        if cut.beginning {
            let left = |value: &str| {
                longest(value, |n| text.starts_with(value.get(value.len() - n..)?).then_some(n))
            };
            let best = self.all.iter().filter_map(|(value, sort)| Some((left(value)?, *sort)));
            let best = best.max_by_key(|(n, _)| *n);
            spans.extend(best.map(|(n, sort)| Span::new(0..n, sort, Rank::File)));
        }
    }
}

/// The most bytes of a value, but not all, of which something holds.
fn longest(value: &str, holds: impl Fn(usize) -> Option<usize>) -> Option<usize> {
    (SHORTEST_CUT..value.len()).rev().find_map(holds)
}

/// Whether a text ends within what stands in the place of a secret: what that is called may be
/// somebody's password.
fn is_within_mark(before: &str) -> bool {
    let near = before.len().saturating_sub(64);
    let near = &before.as_bytes()[near..];
    memchr::memmem::rfind(near, MARK.as_bytes())
        .is_some_and(|at| memchr::memchr(b']', &near[at..]).is_none())
}

/// The values in a span, line by line, each with whether it is looked for.
fn values<'a>(text: &'a str, span: &Span) -> impl Iterator<Item = (&'a str, bool)> {
    let rank = span.rank;
    let begin = text[..span.range.start].rfind('\n').map_or(0, |n| n + 1);
    let name = text[begin..span.range.start].split(['=', ':']).next().unwrap_or_default();
    let is_named = files::tells_of_secret(name.as_bytes());
    text[span.range.clone()].lines().map(move |value| {
        let value = value.trim();
        let bytes = value.as_bytes();
        let mix = Mix::of(bytes);
        let is_one = match rank {
            Rank::Key => bytes.len() >= SHORTEST_LINE && entropy(bytes) >= 3.0,
            _ => {
                bytes.len() >= SHORTEST
                    && entropy(bytes) >= 2.5
                    && (span.sort == files::HTPASSWD || !is_stand_in(bytes))
                    && !is_harmless(bytes)
                    && (is_named || mix.kinds() > 1 && mix.digits > 0 || looks_random(bytes))
            }
        };
        (value, is_one && bytes.len() <= LONGEST)
    })
}
