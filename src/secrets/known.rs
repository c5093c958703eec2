//! Collects the secrets in certain files of a workspace, to find them also in the output of commands: values in `.env`
//! and similar files, passwords in `.netrc`, and lines of private keys.
//!
//! Such a value has no known format, so it must be long and mixed enough to be unmistakable. Directly after the name of
//! its variable, any value counts.

use std::collections::{BTreeMap, BTreeSet};

use regex::bytes::{Regex, RegexBuilder};

use super::files::{is_env, is_secret_text_file, secret_variables};
use super::heuristics::{Mix, entropy, is_harmless, is_placeholder, looks_random};
use super::rules::PATTERNS;
use super::{Certainty, MARK, SecretKind, SecretSpan, TextContext, find_spans, merge};

/// The most values that are searched for, and the most bytes in them.
const MOST: usize = 500;
const MOST_BYTES: usize = 32 << 10;
/// The shortest and longest values that are searched for, and the shortest line of a private key, in bytes.
const SHORTEST: usize = 8;
const LONGEST: usize = 1024;
const SHORTEST_LINE: usize = 16;
/// The length of the longest mark, in bytes.
const LONGEST_MARK: usize = 64;

/// Secrets that are known from files. They are withheld wherever they occur.
#[derive(Debug, Clone, Default)]
pub struct SecretSnapshot {
    /// Each value and its kind.
    pub(super) kinds: BTreeMap<String, SecretKind>,
    /// Matches any of the values, longest first; None if there are no values.
    values: Option<Regex>,
    /// Matches the name of a variable followed by one of its values, even if that is weak or short.
    pub(super) variables: Option<Regex>,
}

impl SecretSnapshot {
    /// Collects the secrets of these files, each a path (with `/`) and its whole text.
    pub fn of<'a, T: AsRef<str>>(files: impl IntoIterator<Item = (&'a str, T)>) -> Self {
        let (mut kinds, mut bytes) = (BTreeMap::new(), 0);
        let mut variables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut variable_bytes = 0;
        for (path, text) in files.into_iter().filter(|(path, _)| is_secret_text_file(path)) {
            let text = text.as_ref();
            let found = secret_variables(text.as_bytes()).filter(|_| is_env(path));
            for (name, value) in found.map(|(name, value)| (&text[name], text[value].trim())) {
                variable_bytes += name.len() + value.len();
                if variable_bytes <= MOST_BYTES && !value.contains('\n') {
                    variables.entry(name.to_owned()).or_default().insert(value.to_owned());
                }
            }
            let context = TextContext { file: Some(path), ..TextContext::default() };
            for span in merge(find_spans(text, &context)) {
                for value in distinct_values(text, &span) {
                    let has_room = kinds.len() < MOST && bytes + value.len() <= MOST_BYTES;
                    if has_room && !kinds.contains_key(value) {
                        bytes += value.len();
                        kinds.insert(value.to_owned(), span.kind);
                    }
                }
            }
        }
        let sign = r#"\\*["']?[ \t]*(?:=>|[=:])[ \t]*\\*["'`]?"#;
        let variables = variables.iter().map(|(name, values)| {
            format!(r"\b{}{sign}({})\b{{end-half}}", regex::escape(name), any_of(values))
        });
        let variables = regex(&variables.collect::<Vec<_>>().join("|"));
        Self { values: regex(&any_of(kinds.keys())), kinds, variables }
    }

    pub(super) fn find(&self, text: &str, spans: &mut Vec<SecretSpan>) {
        let bytes = text.as_bytes();
        for hit in self.variables.iter().flat_map(|names| names.captures_iter(bytes)) {
            let value = hit.iter().skip(1).flatten().next().map(|value| value.range());
            spans.extend(
                value.map(|value| SecretSpan::new(value, SecretKind::ENV, Certainty::File)),
            );
        }
        for hit in self.values.iter().flat_map(|values| values.find_iter(bytes)) {
            let kind = self.kinds.get(&text[hit.range()]);
            if let Some(kind) = kind.filter(|_| !is_within_mark(&bytes[..hit.start()])) {
                spans.push(SecretSpan::new(hit.range(), *kind, Certainty::File));
            }
        }
    }
}

/// A pattern for any of these words, longest first.
fn any_of<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    let mut words: Vec<&String> = words.into_iter().collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.into_iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|")
}

/// Compiles a pattern; None for an empty pattern or one that is too large.
fn regex(pattern: &str) -> Option<Regex> {
    let regex = || RegexBuilder::new(pattern).unicode(false).build().ok();
    (!pattern.is_empty()).then(regex).flatten()
}

/// Whether a text ends inside a mark. The words of a mark may be the same as a password.
fn is_within_mark(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(LONGEST_MARK)..];
    memchr::memmem::rfind(near, MARK.as_bytes())
        .is_some_and(|at| memchr::memchr(b']', &near[at..]).is_none())
}

/// The values in a span, one per line, that are unmistakable.
fn distinct_values<'a>(text: &'a str, span: &SecretSpan) -> impl Iterator<Item = &'a str> {
    let (kind, certainty) = (span.kind, span.certainty);
    let line = text[..span.range.start].rfind('\n').map_or(0, |n| n + 1);
    let name = text[line..span.range.start].split(['=', ':']).next().unwrap_or_default();
    let is_named = PATTERNS.secret_variable.is_match(name.as_bytes());
    text[span.range.clone()].lines().map(str::trim).filter(move |value| {
        let value = value.as_bytes();
        let mix = Mix::of(value);
        let is_distinct = match certainty {
            Certainty::PrivateKey => value.len() >= SHORTEST_LINE && entropy(value) >= 3.0,
            Certainty::File | Certainty::Name | Certainty::Format => {
                value.len() >= SHORTEST
                    && entropy(value) >= 2.5
                    && (kind == SecretKind::PASSWORD_HASH || !is_placeholder(value))
                    && !is_harmless(value)
                    && (is_named || mix.kinds() > 1 && mix.digits > 0 || looks_random(value))
            }
        };
        is_distinct && value.len() <= LONGEST
    })
}
