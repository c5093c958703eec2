//! What files hold by their nature: the values of `.env` files, and the passwords of `.netrc`,
//! `.pgpass`, `.htpasswd`, Docker's settings and the Secrets of Kubernetes.

use std::ops::Range;

use super::assigned::is_login;
use super::shape::{is_word, looks_random};
use super::values::{is_harmless, is_stand_in, is_strong, is_variable, is_withheld};
use super::{MARK, Rank, Sort, Span};

pub(super) const ENV: Sort = Sort(".env value");
const NETRC: Sort = Sort("netrc password");
const PGPASS: Sort = Sort("database password");
pub(super) const HTPASSWD: Sort = Sort("password hash");
const DOCKER: Sort = Sort("registry login");
const KUBERNETES: Sort = Sort("Kubernetes secret");

/// How far before a password its machine and its user are looked for.
const NEAR: usize = 400;

pub(super) fn find(text: &str, name: Option<&str>, spans: &mut Vec<Span>) {
    let file = name.map(|name| name.rsplit(['/', '\\']).next().unwrap_or(name).to_lowercase());
    let file = file.as_deref().unwrap_or_default();
    let bytes = text.as_bytes();
    match file {
        _ if is_env(file) => env(bytes, spans),
        ".pgpass" | "pgpass.conf" => last_fields(bytes, 5, PGPASS, spans),
        ".htpasswd" => last_fields(bytes, 2, HTPASSWD, spans),
        _ => {}
    }
    let in_source = super::names::is_source(name);
    netrc(bytes, file.ends_with("netrc"), in_source, spans);
    logins(bytes, spans);
    if memchr::memmem::find(bytes, b"kind: Secret").is_some() {
        kubernetes(bytes, spans);
    }
}

/// Whether a file of that name (in small letters) sets variables of an environment, and not as an
/// example.
fn is_env(file: &str) -> bool {
    if !file.contains(".env") && !file.ends_with("env") {
        return false;
    }
    const SHOWN: [&str; 7] =
        ["example", "sample", "template", "tmpl", "dist", "defaults", "schema"];
    let parts: Vec<&str> = file.split(['.', '-', '_']).collect();
    let is_env = file == ".env"
        || file == ".envrc"
        || [".env.", ".env-", ".env_"].iter().any(|begin| file.starts_with(begin))
        || file.strip_suffix("env").is_some_and(|name| name.ends_with('.'));
    is_env && !parts.iter().any(|part| SHOWN.contains(part))
}

/// Names of files that keep secrets as text, and ends of such names, in small letters.
const NAMES: [&str; 12] = [
    ".pgpass",
    "pgpass.conf",
    ".htpasswd",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
];
const ENDS: [&str; 6] = ["netrc", ".pem", ".key", ".p8", ".pk8", ".ppk"];
/// Ends of names of files that keep them otherwise.
const STORES: [&str; 6] = [".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".gpg"];

/// Whether a file of that name (or path, with `/`) holds secrets by its nature, as text: those that
/// [`super::Known`] takes from it.
pub fn holds_secrets(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    is_env(&file) || NAMES.contains(&&*file) || ENDS.iter().any(|end| file.ends_with(end))
}

/// Whether a file of that name (or path, with `/`) holds secrets by its nature, in whatever form: it is
/// shown to nobody who did not ask for it.
pub fn is_secret_file(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    holds_secrets(&file) || STORES.iter().any(|end| file.ends_with(end))
}

/// The lines of a text, without their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < text.len()).then(|| {
            let start = at;
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
            at = end + 1;
            start..end - usize::from(end > start && text[end - 1] == b'\r')
        })
    })
}

/// The part of `range` without white space around it.
fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_ascii_start().len();
    start..start + part.trim_ascii().len()
}

/// `NAME=value`, also with `export`, quotes and a comment, and over several lines within quotes.
fn env(text: &[u8], spans: &mut Vec<Span>) {
    let mut until = 0;
    for line in lines(text) {
        if line.start < until {
            continue;
        }
        let whole = trimmed(text, line.clone());
        let bare =
            text[whole.clone()].strip_prefix(b"export ").map_or(whole.start, |_| whole.start + 7);
        let Some(sign) = memchr::memchr2(b'=', b':', &text[bare..whole.end]) else { continue };
        let name = text[bare..bare + sign].trim_ascii();
        if name.is_empty() || !name.iter().all(|byte| is_word(*byte) || matches!(byte, b'.' | b'-'))
        {
            continue;
        }
        let value = trimmed(text, bare + sign + 1..whole.end);
        let value = match text.get(value.start) {
            Some(quote @ (b'"' | b'\'' | b'`')) if !value.is_empty() => {
                let from = value.start + 1;
                match closing(text, from, *quote) {
                    Some(end) => from..end,
                    None => from..value.end.max(from),
                }
            }
            _ => {
                let comment = text[value.clone()].windows(2).position(|pair| pair == b" #");
                let end = comment.map_or(value.end, |n| value.start + n);
                trimmed(text, value.start..end)
            }
        };
        until = value.end;
        if !is_kept(name, &text[value.clone()]) {
            let mut says = true;
            for part in lines(&text[value.clone()]) {
                let range = value.start + part.start..value.start + part.end;
                spans.push(Span { says, ..Span::new(range, ENV, Rank::File) });
                says = false;
            }
        }
    }
}

/// The name and the value of a variable whose value a span of [`env`] is; None where that is another, or
/// has several lines.
pub(super) fn variable<'a>(text: &'a str, span: &Span) -> Option<(&'a str, &'a str)> {
    let begin = text[..span.range.start].rfind('\n').map_or(0, |n| n + 1);
    let before = text[begin..span.range.start].trim_end_matches(['"', '\'', '`', ' ', '\t']);
    let name = before.strip_suffix(['=', ':'])?.trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    let value = text[span.range.clone()].trim();
    let is_name = !name.is_empty() && name.bytes().all(is_word);
    (span.sort == ENV && is_name && !value.is_empty() && !value.contains('\n'))
        .then_some((name, value))
}

/// Where a quoted text ends that began before `from`.
fn closing(text: &[u8], from: usize, quote: u8) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr::memchr2(quote, b'\\', text.get(at..)?)?;
        if text[at] == quote {
            return Some(at);
        }
        at += 2;
    }
}

/// Whether a value of an environment may be shown.
fn is_kept(name: &[u8], value: &[u8]) -> bool {
    let value = value.trim_ascii();
    if value.is_empty() || is_withheld(value) || is_variable(value) {
        return true;
    }
    if tells_of_secret(name) {
        return matches!(
            value.to_ascii_lowercase().as_slice(),
            b"true" | b"false" | b"null" | b"none"
        );
    }
    is_harmless(value)
}

/// Whether the name of a variable says that its value is secret.
pub(super) fn tells_of_secret(name: &[u8]) -> bool {
    const SECRET: [&str; 12] = [
        "password",
        "passwd",
        "pass",
        "pwd",
        "passphrase",
        "secret",
        "token",
        "key",
        "pin",
        "credentials",
        "auth",
        "salt",
    ];
    let name = name.to_ascii_lowercase();
    let end = name.rsplit(|byte| matches!(byte, b'_' | b'-' | b'.')).next().unwrap_or_default();
    SECRET.iter().any(|word| end.trim_ascii_end().ends_with(word.as_bytes()))
}

/// `machine M login L password P`, in a file of that name also over lines of its own.
fn netrc(text: &[u8], is_file: bool, in_source: bool, spans: &mut Vec<Span>) {
    let mut from = 0;
    while let Some(n) = memchr::memmem::find(&text[from..], b"password ") {
        let at = from + n;
        from = at + 9;
        let far = at.saturating_sub(NEAR);
        let start = memchr::memrchr(b'\n', &text[far..at]).map_or(far, |n| far + n + 1);
        let before = &text[start..at];
        let told = is_entry(before);
        let blank = text[from..].iter().take(8).take_while(|byte| **byte == b' ').count();
        let length = text[from + blank..]
            .iter()
            .take(300)
            .take_while(|byte| byte.is_ascii_graphic())
            .count();
        let range = from + blank..from + blank + length;
        let value = &text[range.clone()];
        // The tests of programs that read such files hold many, none of them anybody's.
        let is_meant = !in_source || is_strong(value) || looks_random(value);
        if (told || is_file)
            && is_meant
            && length >= 4
            && !is_stand_in(value)
            && !is_withheld_word(value)
        {
            spans.push(Span::new(range, NETRC, Rank::File));
        }
    }
}

/// Whether a text ends with an entry as far as its password: words of its own, each with a value.
fn is_entry(text: &[u8]) -> bool {
    let Some(at) = memchr::memmem::rfind(text, b"machine ") else { return false };
    let mut words = text[at..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (mut login, mut all) = (false, true);
    while let Some(word) = words.next() {
        login |= word == b"login";
        let known: [&[u8]; 4] = [b"machine", b"login", b"account", b"port"];
        all &= known.contains(&word) && words.next().is_some();
    }
    login && all
}

/// The beginning of what stands in the place of a secret, up to its first blank.
fn is_withheld_word(value: &[u8]) -> bool {
    value == MARK.trim_end().as_bytes()
}

/// The last of the fields of each line, which colons part.
fn last_fields(text: &[u8], fields: usize, sort: Sort, spans: &mut Vec<Span>) {
    for line in lines(text) {
        let content = &text[line.clone()];
        let Some(colon) = memchr::memchr_iter(b':', content).nth(fields - 2) else { continue };
        let range = line.start + colon + 1..line.end;
        let value = &text[range.clone()];
        if !content.starts_with(b"#") && !value.is_empty() && !is_withheld(value) {
            spans.push(Span::new(range, sort, Rank::File));
        }
    }
}

/// `"auth": "…"`, with a user and a password in base64.
fn logins(text: &[u8], spans: &mut Vec<Span>) {
    for at in memchr::memmem::find_iter(text, "\"auth\"") {
        let from = at + 6;
        let blank =
            text[from..].iter().take(8).take_while(|byte| matches!(byte, b' ' | b':')).count();
        let from = from + blank;
        if text.get(from) == Some(&b'"') {
            let length =
                text[from + 1..].iter().take(600).take_while(|byte| **byte != b'"').count();
            let range = from + 1..from + 1 + length;
            if is_login(&text[range.clone()]) {
                spans.push(Span::new(range, DOCKER, Rank::Form));
            }
        }
    }
}

/// The entries of `data` and `stringData` in a YAML document that is of `kind: Secret`.
fn kubernetes(text: &[u8], spans: &mut Vec<Span>) {
    let mut document: Vec<Range<usize>> = Vec::new();
    for line in lines(text) {
        if text[line.clone()].starts_with(b"---") {
            entries(text, &document, spans);
            document.clear();
        } else {
            document.push(line);
        }
    }
    entries(text, &document, spans);
}

fn entries(text: &[u8], document: &[Range<usize>], spans: &mut Vec<Span>) {
    if !document.iter().any(|line| text[line.clone()].trim_ascii() == b"kind: Secret") {
        return;
    }
    let indent = |line: &[u8]| line.len() - line.trim_ascii_start().len();
    let (mut within, mut goes_on) = (None, None);
    for line in document {
        let content = &text[line.clone()];
        let (depth, trimmed_line) = (indent(content), content.trim_ascii());
        if trimmed_line.is_empty() || trimmed_line.starts_with(b"#") {
            continue;
        }
        if matches!(trimmed_line, b"data:" | b"stringData:") {
            (within, goes_on) = (Some(depth), None);
            continue;
        }
        if within.is_none_or(|outer| depth <= outer) {
            (within, goes_on) = (None, None);
            continue;
        }
        if goes_on.is_some_and(|outer| depth > outer) {
            let range = trimmed(text, line.clone());
            if !is_withheld(&text[range.clone()]) && !is_shown(&text[range.clone()]) {
                spans.push(Span::new(range, KUBERNETES, Rank::File));
            }
            continue;
        }
        goes_on = None;
        let Some(colon) = memchr::memchr(b':', content) else { continue };
        let value = trimmed(text, line.start + colon + 1..line.end);
        let written = &text[value.clone()];
        if written.starts_with(b"|") || written.starts_with(b">") {
            goes_on = Some(depth);
            continue;
        }
        let quote = written.first().filter(|byte| matches!(byte, b'"' | b'\''));
        let value = match quote {
            Some(quote) if written.len() > 1 && written.ends_with(&[*quote]) => {
                value.start + 1..value.end - 1
            }
            _ => value,
        };
        if !is_shown(&text[value.clone()]) {
            spans.push(Span::new(value, KUBERNETES, Rank::File));
        }
    }
}

fn is_shown(value: &[u8]) -> bool {
    value.is_empty()
        || is_withheld(value)
        || is_variable(value)
        || value.starts_with(b"{{")
        || value.starts_with(b"-----")
}
