//! Finds secrets by the kind of file: the values in `.env` files and in Kubernetes Secrets.

use std::ops::Range;

use memchr::memmem;

use super::heuristics::{is_harmless, is_unset};
use super::rules::PATTERNS;
use super::{Certainty, SecretKind, SecretSpan};

pub(super) fn find(text: &str, path: Option<&str>, spans: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    if path.is_some_and(is_env) {
        for (_, value) in secret_variables(bytes) {
            spans.extend(SecretSpan::parts(lines(bytes, value), SecretKind::ENV, Certainty::File));
        }
    }
    if memmem::find(bytes, b"kind: Secret").is_some() {
        find_kubernetes(bytes, spans);
    }
}

/// Whether a file with this name or path (with `/`) contains secrets as text. Their values are also withheld in
/// other texts; see [`super::SecretSnapshot`].
pub fn is_secret_text_file(path: &str) -> bool {
    is_env(path) || PATTERNS.secret_text_file.is_match(file_name(path).as_bytes())
}

/// Whether a file with this name or path (with `/`) contains secrets in any form. An outbox shows such a file
/// only on request.
pub fn is_secret_file(path: &str) -> bool {
    is_secret_text_file(path) || PATTERNS.secret_binary_file.is_match(file_name(path).as_bytes())
}

/// The name of a file in lower case, without a backup suffix.
pub(super) fn file_name(path: &str) -> String {
    let mut name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    if let Some(ending) = PATTERNS.backup.find(name.as_bytes()).map(|ending| ending.start()) {
        name.truncate(ending);
    }
    name
}

/// Whether a file with this path sets environment variables, and is not an example file.
pub(super) fn is_env(path: &str) -> bool {
    let file = file_name(path);
    PATTERNS.env_file.is_match(file.as_bytes()) && !PATTERNS.example_file.is_match(file.as_bytes())
}

/// The names and values of the variables in a file such as `.env` that must not be shown.
pub(super) fn secret_variables(text: &[u8]) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    PATTERNS.assignment.captures_iter(text).filter_map(move |parts| {
        let (name, value) = (parts.get(1)?, parts.iter().skip(2).flatten().next()?);
        let is_secret = !may_show(name.as_bytes(), value.as_bytes());
        is_secret.then(|| (name.range(), value.range()))
    })
}

fn may_show(name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    if PATTERNS.secret_variable.is_match(name) {
        is_unset(value) || PATTERNS.switch.is_match(value)
    } else {
        is_harmless(value)
    }
}

/// Finds the values of `data` and `stringData` in YAML documents of `kind: Secret`.
fn find_kubernetes(text: &[u8], spans: &mut Vec<SecretSpan>) {
    let mut start = 0;
    for end in memmem::find_iter(text, b"\n---").chain([text.len()]) {
        if PATTERNS.kubernetes_secret.is_match(&text[start..end]) {
            find_entries(text, start..end, spans);
        }
        start = end;
    }
}

fn find_entries(text: &[u8], document: Range<usize>, spans: &mut Vec<SecretSpan>) {
    // The indentation of the `data` block, and of the current entry with a block scalar.
    let (mut data, mut scalar): (Option<usize>, Option<usize>) = (None, None);
    for line in lines(text, document) {
        let mut value = trimmed(text, line.clone());
        let (indent, content) = (value.start - line.start, &text[value.clone()]);
        if content.is_empty() || content.starts_with(b"#") {
            continue;
        }
        let begins = matches!(content, b"data:" | b"stringData:");
        if begins || data.is_none_or(|outer| indent <= outer) {
            (data, scalar) = (begins.then_some(indent), None);
            continue;
        }
        if scalar.is_none_or(|outer| indent <= outer) {
            let Some(colon) = memchr::memchr(b':', content) else { continue };
            value = trimmed(text, value.start + colon + 1..value.end);
            let is_scalar = matches!(text.get(value.start), Some(b'|' | b'>')) && !value.is_empty();
            scalar = is_scalar.then_some(indent);
            let quote = text[value.clone()].first().filter(|byte| matches!(byte, b'"' | b'\''));
            if quote.is_some_and(|quote| value.len() > 1 && text[value.end - 1] == *quote) {
                value = value.start + 1..value.end - 1;
            }
            if is_scalar {
                continue;
            }
        }
        let content = &text[value.clone()];
        let is_no_value = content.starts_with(b"{{") || content.starts_with(b"-----");
        if !is_no_value && !is_unset(content) {
            spans.push(SecretSpan::new(value, SecretKind::KUBERNETES, Certainty::File));
        }
    }
}

/// The lines in a part of the text, without line ends.
fn lines(text: &[u8], part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = part.start;
    std::iter::from_fn(move || {
        let start = at;
        let rest = text.get(at..part.end).filter(|rest| !rest.is_empty())?;
        let end = memchr::memchr(b'\n', rest).map_or(part.end, |length| start + length);
        at = end + 1;
        Some(start..end - usize::from(text[start..end].ends_with(b"\r")))
    })
}

/// The part of a range without white space around it.
fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = text[range.clone()].trim_ascii_start();
    let start = range.end - part.len();
    start..start + part.trim_ascii_end().len()
}
