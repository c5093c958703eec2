//! Random values under names that tell of a secret: `password = "…"`, `api_key: …`,
//! `Authorization: Bearer …`.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;
use regex::bytes::Regex;

use super::shape::{Mix, bounded, is_hex, is_sample, is_uuid, is_word, looks_random};
use super::tokens::{AWS, is_aws_secret};
use super::values::{is_stand_in, is_strong};
use super::{Rank, Sort, Span};

const PASSWORD: Sort = Sort("password");
const TOKEN: Sort = Sort("token");
const SECRET: Sort = Sort("secret");
const API_KEY: Sort = Sort("API key");
const KEY: Sort = Sort("private key");
const LOGIN: Sort = Sort("login");

/// The longest value, and the longest name around the word in it.
const LONGEST: usize = 600;
const LONGEST_NAME: usize = 48;

/// Words in the names of secrets, each with what it is.
const WORDS: [(&str, Sort); 21] = [
    ("passwd", PASSWORD),
    ("password", PASSWORD),
    ("passphrase", PASSWORD),
    ("passcode", PASSWORD),
    ("pwd", PASSWORD),
    ("secret", SECRET),
    ("token", TOKEN),
    ("api_key", API_KEY),
    ("api-key", API_KEY),
    ("apikey", API_KEY),
    ("access_key", API_KEY),
    ("access-key", API_KEY),
    ("accesskey", API_KEY),
    ("auth_key", API_KEY),
    ("authkey", API_KEY),
    ("account_key", API_KEY),
    ("private_key", KEY),
    ("privatekey", KEY),
    ("private-key", KEY),
    ("encryption_key", SECRET),
    ("signing_key", SECRET),
];
/// Words that a value follows which is no setting.
const SCHEMES: [(&str, Sort); 3] = [("bearer", TOKEN), ("basic", LOGIN), ("_auth", LOGIN)];

static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<&str> = WORDS.iter().chain(&SCHEMES).map(|(word, _)| *word).collect();
    Regex::new(&format!("(?i-u){}", words.join("|"))).expect("an alternation of words")
});

/// Sources, in which a value without quotes is an expression.
const SOURCES: [&str; 44] = [
    "rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "tsx", "go", "c", "h", "cc", "cpp",
    "cxx", "hpp", "java", "kt", "kts", "scala", "swift", "rb", "php", "pl", "pm", "cs", "fs", "vb",
    "lua", "zig", "dart", "ex", "exs", "erl", "hs", "ml", "clj", "s", "asm", "css", "html", "vue",
    "svelte",
];

pub(super) fn find(text: &str, name: Option<&str>, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let in_source = is_source(name);
    for hit in NAMES.find_iter(bytes) {
        let word = hit.as_bytes();
        let scheme = SCHEMES.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
        let found = match scheme {
            Some((_, sort)) => credentials(bytes, hit.start(), hit.end(), *sort),
            None => setting(bytes, hit.start(), hit.end(), in_source),
        };
        spans.extend(found);
    }
}

/// Whether a file of that name is a source of a program.
pub(super) fn is_source(name: Option<&str>) -> bool {
    let file = name.and_then(|name| name.rsplit('/').next());
    let extension = file.and_then(|file| file.rsplit_once('.')).map(|(_, end)| end.to_lowercase());
    extension.is_some_and(|end| SOURCES.contains(&&*end))
}

/// What `Bearer`, `Basic` or `_auth` is followed by.
fn credentials(text: &[u8], start: usize, end: usize, sort: Sort) -> Option<Span> {
    let rest = &text[end..];
    if rest.starts_with(b"Token") || (text[start] != b'_' && !bounded(text, start)) {
        return None;
    }
    let blank = rest.iter().take(4).take_while(|byte| matches!(byte, b' ' | b'=' | b'"')).count();
    let from = end + blank;
    let is_part =
        |byte: &&u8| is_word(**byte) || matches!(byte, b'-' | b'.' | b'~' | b'+' | b'/' | b'=');
    let length = text[from..].iter().take(LONGEST * 8).take_while(is_part).count();
    let value = &text[from..from + length];
    let is_one =
        if sort == LOGIN { is_login(value) } else { looks_random(value) && !is_uuid(value) };
    (blank > 0 && is_one).then(|| Span::new(from..from + length, sort, Rank::Name))
}

/// A user and a password in base64.
pub(super) fn is_login(value: &[u8]) -> bool {
    if value.len() < 12 || value.len() > 400 {
        return false;
    }
    let Ok(decoded) = STANDARD.decode(value) else { return false };
    let Some(colon) = memchr::memchr(b':', &decoded) else { return false };
    let (user, password) = (&decoded[..colon], &decoded[colon + 1..]);
    decoded.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && password.len() >= 5
        && user != password
        && user != b"Aladdin"
        && !is_sample(user)
        && !is_stand_in(password)
        && !is_sample(password)
}

/// The value of a setting in whose name the word at `start..end` stands, if that is a secret.
fn setting(text: &[u8], start: usize, end: usize, in_source: bool) -> Option<Span> {
    let before = text[..start].iter().rev().take(LONGEST_NAME).take_while(|b| is_name(**b)).count();
    let after = text[end..].iter().take(LONGEST_NAME).take_while(|b| is_name(**b)).count();
    let (first, last) = (start - before, end + after);
    let name = text[first..last].to_ascii_lowercase();
    let rest = &name[before + (end - start)..];
    let is_long = after == LONGEST_NAME || before == LONGEST_NAME;
    if is_long || tells_of(rest) || is_passing(&name) {
        return None;
    }
    let value = value(text, first, last, in_source)?;
    let sort = sort(&name, &text[value.clone()])?;
    Some(Span::new(value, sort, Rank::Name))
}

fn is_name(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// Whether the end of a name says that the value tells of a secret and is none: `token_type`.
fn tells_of(rest: &[u8]) -> bool {
    const ENDS: [&str; 34] = [
        "id",
        "ids",
        "name",
        "names",
        "type",
        "types",
        "url",
        "uri",
        "path",
        "file",
        "files",
        "dir",
        "hash",
        "hashed",
        "digest",
        "length",
        "len",
        "size",
        "field",
        "label",
        "header",
        "regex",
        "pattern",
        "prefix",
        "format",
        "endpoint",
        "env",
        "expires",
        "expiry",
        "policy",
        "version",
        "kind",
        "class",
        "algorithm",
    ];
    let end = rest.rsplit(|byte| matches!(byte, b'_' | b'-')).next().unwrap_or_default();
    ENDS.iter().any(|known| known.as_bytes() == end)
        // tokenizer, tokenEndpoint, passwordless, secretary
        || (!rest.is_empty()
            && rest[0].is_ascii_lowercase()
            && !(rest == b"s" || rest.starts_with(b"key") || rest.starts_with(b"value")))
}

/// Whether the name is that of a token which says where a list goes on, or which change is meant.
fn is_passing(name: &[u8]) -> bool {
    const OF: [&str; 8] =
        ["next", "page", "continuation", "starting", "cursor", "change", "update", "sync"];
    OF.iter().any(|word| {
        let at = memchr::memmem::find(name, word.as_bytes());
        at.is_some_and(|at| memchr::memmem::find(&name[at..], b"token").is_some())
    })
}

/// Where the value of a name at `first..last` stands.
fn value(
    text: &[u8],
    first: usize,
    last: usize,
    in_source: bool,
) -> Option<std::ops::Range<usize>> {
    let argument = text[first..].starts_with(b"--");
    let query = first > 0 && matches!(text[first - 1], b'?' | b'&');
    let mut at = last;
    let skip = |at: usize, most: usize, of: fn(u8) -> bool| {
        at + text[at..].iter().take(most).take_while(|byte| of(**byte)).count()
    };
    let quoted = |at: usize| {
        let quote = skip(at, 4, |byte| byte == b'\\');
        text.get(quote)
            .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))
            .map(|byte| (quote + 1, *byte))
    };
    let name_quoted = quoted(at).inspect(|(end, _)| at = *end).is_some();
    at = skip(at, 2, |byte| matches!(byte, b']' | b')'));
    at = skip(at, 24, |byte| matches!(byte, b' ' | b'\t'));
    let sign = match text.get(at)? {
        b'=' | b':' => skip(at, 3, |byte| matches!(byte, b'=' | b':' | b'>' | b'~')),
        b',' if name_quoted => at + 1,
        _ if argument && at > last => at,
        _ => return None,
    };
    // `token: &str = "…"`
    let typed = skip(sign, 40, |byte| {
        is_word(byte) || matches!(byte, b' ' | b'&' | b'\'' | b'<' | b'>' | b'[' | b']' | b':')
    });
    let sign = match text.get(typed) {
        Some(b'=') if text[at] == b':' && in_source && typed > sign => typed + 1,
        _ => sign,
    };
    let mut at = skip(sign, 24, |byte| matches!(byte, b' ' | b'\t'));
    // `String::from("…")`, `b"…"`
    let called = skip(at, 24, |byte| is_word(byte) || matches!(byte, b':' | b'.'));
    let called = match text.get(called) {
        Some(b'(') => called + 1,
        _ => skip(at, 2, |byte| matches!(byte, b'b' | b'r' | b'u' | b'f' | b'@')),
    };
    if let Some((from, quote)) = quoted(at).or_else(|| quoted(called)) {
        let inside = |byte: &&u8| byte.is_ascii_graphic() && **byte != quote && **byte != b'\\';
        let length = text[from..].iter().take(LONGEST).take_while(inside).count();
        let closed = text.get(from + length).is_some_and(|byte| *byte == quote || *byte == b'\\');
        return closed.then_some(from..from + length);
    }
    if in_source && !query {
        return None;
    }
    at += usize::from(text.get(at) == Some(&b'\''));
    let part = |byte: &&u8| {
        byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'\''
                    | b'`'
                    | b','
                    | b';'
                    | b'('
                    | b')'
                    | b'<'
                    | b'>'
                    | b'{'
                    | b'}'
                    | b'['
                    | b']'
                    | b'|'
                    | b'\\'
                    | b'&'
            )
    };
    let length = text[at..].iter().take(LONGEST).take_while(part).count();
    let ends = text.get(at + length).is_none_or(|byte| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b'\\' | b')' | b'}')
    });
    ends.then_some(at..at + length)
}

/// What a value is under that name, if it is a secret.
fn sort(name: &[u8], value: &[u8]) -> Option<Sort> {
    let has = |word: &str| memmem::find(name, word.as_bytes()).is_some();
    if value.len() < 8 || is_stand_in(value) || is_address_or_path(value) {
        return None;
    }
    if (has("secret_access_key") || has("secretaccesskey") || has("aws")) && is_aws_secret(value) {
        return Some(AWS);
    }
    if is_uuid(value) {
        let keyed = has("_authtoken") || has("heroku_api_key") || has("heroku_token");
        return (keyed && !is_sample(value)).then_some(TOKEN);
    }
    let sort = WORDS.iter().rev().find(|(word, _)| has(word)).map(|(_, sort)| *sort)?;
    let enough = looks_random(value) || (sort == PASSWORD && is_strong(value));
    // A digest under the name of what it is a digest of.
    let digest = is_hex(value) && has("sha");
    (enough && !digest).then_some(sort)
}

/// Whether it says where something is.
fn is_address_or_path(value: &[u8]) -> bool {
    let parts = value.split(|byte| *byte == b'/').count();
    let has = |part: &[u8]| memmem::find(value, part).is_some();
    let dotted = value
        .split(|byte| matches!(byte, b'.' | b':' | b'/'))
        .filter(|part| part.len() > 1 && Mix::of(part).digits == 0);
    has(b"://")
        || has(b"::")
        || value.starts_with(b"./")
        || (parts > 3 && value[0] == b'/')
        || dotted.count() > 2
}
