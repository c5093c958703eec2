//! Where the value of a name stands that no sign leads to: a default (`env.TOKEN || "…"`), a pair of
//! `name` and `value`, an argument, a cell of a table, a line of settings.

use std::ops::Range;

use memchr::memmem;

use super::literal::{bare, element, literal, quoted, skip};

/// A name that tells of a secret, in its text.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) text: &'a [u8],
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether a value without quotes is an expression.
    pub(super) in_source: bool,
}

/// How far on a line a default is looked for, and a value in the lines behind its name.
const NEAR: usize = 160;
/// As many bytes of blanks and signs at most stand between two words.
const GAP: usize = 40;

/// Where the value of a name stands, if it stands that way.
type Way = fn(Name) -> Option<Range<usize>>;

const WAYS: [Way; 12] = [
    default_of,
    argument,
    placeholder,
    typed,
    called,
    pair,
    attribute,
    within_literal,
    in_sql,
    behind_header,
    alone_on_line,
    cell,
];

/// Where values of that name may stand.
pub(super) fn all(name: Name<'_>) -> impl Iterator<Item = Range<usize>> + '_ {
    WAYS.into_iter().filter_map(move |way| way(name))
}

impl<'a> Name<'a> {
    /// What stands before it, without blanks and quotes.
    fn before(&self) -> &'a [u8] {
        let from = self.first.saturating_sub(GAP);
        let before = &self.text[from..self.first];
        let is_around = |byte: &u8| is_blank(*byte) || is_quote(*byte) || *byte == b'\\';
        &before[..before.iter().rposition(|byte| !is_around(byte)).map_or(0, |n| n + 1)]
    }

    /// Behind the quote that closes it, if it stands in quotes.
    fn behind_quote(&self) -> Option<usize> {
        quoted(self.text, self.last).map(|(at, _)| at)
    }

    /// Behind it and what closes around it.
    fn behind(&self) -> usize {
        let at = self.behind_quote().unwrap_or(self.last);
        blanks(self.text, skip(self.text, at, 2, |byte| matches!(byte, b']' | b')')))
    }

    /// The rest of its line behind `at`.
    fn rest(&self, at: usize) -> &'a [u8] {
        let rest = &self.text[at..self.text.len().min(at + NEAR)];
        &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

fn blanks(text: &[u8], at: usize) -> usize {
    skip(text, at, GAP, is_blank)
}

/// Behind that word, if it stands at `at` in whatever letters.
fn word(text: &[u8], at: usize, known: &[u8]) -> Option<usize> {
    let there = text.get(at..at + known.len())?;
    there.eq_ignore_ascii_case(known).then_some(at + known.len())
}

fn ends_with(text: &[u8], known: &[u8]) -> bool {
    text.len() >= known.len() && text[text.len() - known.len()..].eq_ignore_ascii_case(known)
}

/// `env.TOKEN || "…"`, `getenv('TOKEN') ?: '…'`, `os.getenv("TOKEN") or "…"`.
fn default_of(name: Name) -> Option<Range<usize>> {
    const SIGNS: [&[u8]; 6] = [b"||=", b"||", b"??=", b"??", b"?:", b"or "];
    let at = name.behind();
    let sign = SIGNS.into_iter().find(|sign| name.text[at..].starts_with(sign))?;
    literal(name.text, blanks(name.text, at + sign.len()), false)
}

/// `add_argument("--token", default="…")`, `buildConfigField("String", "TOKEN", "\"…\"")`.
fn argument(name: Name) -> Option<Range<usize>> {
    let at = name.behind_quote()?;
    if name.text.get(at) != Some(&b',') {
        return None;
    }
    const DEFAULT: &[u8] = b"default";
    let from = memmem::find(name.rest(at), DEFAULT).map(|n| at + n + DEFAULT.len())?;
    let sign = blanks(name.text, from);
    let is_set = matches!(name.text.get(sign), Some(b'=' | b':'));
    is_set.then(|| literal(name.text, blanks(name.text, sign + 1), false)).flatten()
}

/// `${api.key:…}`, a default of Spring's.
fn placeholder(name: Name) -> Option<Range<usize>> {
    let opens = name.text[..name.first].ends_with(b"${");
    (opens && name.text.get(name.last) == Some(&b':'))
        .then(|| bare(name.text, name.last + 1))
        .flatten()
}

/// `var token string = "…"`.
fn typed(name: Name) -> Option<Range<usize>> {
    let text = name.text;
    let from = blanks(text, name.last);
    let of_type =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'*' | b'[' | b']' | b'.');
    let end = skip(text, from, GAP, of_type);
    let sign = blanks(text, end);
    let is_one = name.in_source
        && name.last < from
        && from < end
        && text.get(sign) == Some(&b'=')
        && text.get(sign + 1) != Some(&b'=');
    is_one.then(|| literal(text, blanks(text, sign + 1), false)).flatten()
}

/// `.api_key("…")`, `setApiKey("…")`.
fn called(name: Name) -> Option<Range<usize>> {
    let before = name.text[..name.first].last();
    let of_something = before.is_some_and(|byte| matches!(byte, b'.' | b'>' | b':'));
    let sets = word(name.text, name.first, b"set").is_some();
    ((of_something || sets) && name.text.get(name.last) == Some(&b'('))
        .then(|| literal(name.text, name.last + 1, false))
        .flatten()
}

/// `- name: TOKEN`, and on the next line `value: …`; `{"name": "TOKEN", "value": "…"}`.
fn pair(name: Name) -> Option<Range<usize>> {
    let before = name.before();
    let before = before.strip_suffix(b":").or_else(|| before.strip_suffix(b"="))?;
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before);
    if !ends_with(before, b"name") && !ends_with(before, b"key") {
        return None;
    }
    let text = name.text;
    let at = name.behind_quote().unwrap_or(name.last);
    let at = skip(text, at, NEAR, |byte| byte.is_ascii_whitespace() || byte == b',');
    let at = word(text, skip(text, at, 1, is_quote), b"value")?;
    let at = blanks(text, skip(text, at, 1, is_quote));
    let is_set = matches!(text.get(at), Some(b':' | b'='));
    let at = blanks(text, at + 1);
    is_set.then(|| literal(text, at, false).or_else(|| bare(text, at))).flatten()
}

/// `<string name="api_key">…</string>`.
fn attribute(name: Name) -> Option<Range<usize>> {
    let at = name.behind_quote()?;
    (name.text.get(at) == Some(&b'>')).then(|| element(name.text, at + 1)).flatten()
}

/// `"host=h password=… dbname=d"` in a source.
fn within_literal(name: Name) -> Option<Range<usize>> {
    let from = name.first.saturating_sub(NEAR * 2);
    let before = &name.text[from..name.first];
    let line = memchr::memrchr(b'\n', before).map_or(before, |at| &before[at + 1..]);
    let is_open = |quote: u8| memchr::memchr_iter(quote, line).count() % 2 == 1;
    let is_field =
        line.last().is_some_and(|byte| matches!(byte, b' ' | b';' | b'"' | b'\'' | b'('));
    (name.in_source
        && is_field
        && name.text.get(name.last) == Some(&b'=')
        && (is_open(b'"') || is_open(b'\'') || is_open(b'`')))
    .then(|| bare(name.text, name.last + 1))
    .flatten()
}

/// `IDENTIFIED BY '…'`, `WITH PASSWORD '…'`.
fn in_sql(name: Name) -> Option<Range<usize>> {
    let at = blanks(name.text, name.last);
    let itself = &name.text[name.first..name.last];
    let sets = ends_with(itself, b"identified by")
        || [&b"with"[..], b"set", b"encrypted"]
            .into_iter()
            .any(|one| ends_with(name.before(), one));
    (sets && at > name.last && name.text.get(at) == Some(&b'\''))
        .then(|| literal(name.text, at, false))
        .flatten()
}

/// `Authorization: Token …`.
fn behind_header(name: Name) -> Option<Range<usize>> {
    let before = name.before();
    let sign = before
        .iter()
        .rposition(|byte| !matches!(byte, b':' | b'=' | b',' | b'"' | b'\'' | b' '))?;
    let at = blanks(name.text, name.last);
    let is_behind = sign + 1 < before.len() && ends_with(&before[..=sign], b"authorization");
    (is_behind && at > name.last).then(|| bare(name.text, at)).flatten()
}

/// `requirepass …`, `SetEnv TOKEN …`: a line of a name and a value, with one word before at most.
fn alone_on_line(name: Name) -> Option<Range<usize>> {
    let from = name.first.saturating_sub(GAP);
    let before = &name.text[from..name.first];
    let line = match memchr::memrchr(b'\n', before) {
        Some(at) => &before[at + 1..],
        None if from > 0 => return None,
        None => before,
    };
    let is_lead =
        line.trim_ascii().iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let at = blanks(name.text, name.last);
    if !is_lead || at == name.last {
        return None;
    }
    let word = || if name.in_source { None } else { bare(name.text, at) };
    let value = literal(name.text, at, false).or_else(word)?;
    let behind = name.rest(value.end).trim_ascii();
    matches!(behind, b"" | b";" | b"\"" | b"'" | b"\";" | b"';").then_some(value)
}

/// `| API_KEY | … |`.
fn cell(name: Name) -> Option<Range<usize>> {
    let text = name.text;
    let at = blanks(text, name.behind_quote().unwrap_or(name.last));
    let is_cell = name.before().ends_with(b"|") && text.get(at) == Some(&b'|');
    let at = blanks(text, at + 1);
    is_cell.then(|| literal(text, at, false).or_else(|| bare(text, at))).flatten()
}
