//! Whether what a setting, an address or an argument is set to can be a secret.

use memchr::memmem;

use super::MARK;
use super::shape::{Mix, encodes, entropy, is_sample, reads};

/// What people write where a password is to stand, in small letters, and what programs have by
/// themselves.
const USUAL: [&str; 44] = [
    "pass",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "pw",
    "psw",
    "secret",
    "token",
    "user",
    "username",
    "name",
    "test",
    "testing",
    "foo",
    "bar",
    "baz",
    "changeme",
    "admin",
    "root",
    "postgres",
    "mysql",
    "guest",
    "example",
    "hunter",
    "letmein",
    "qwerty",
    "welcome",
    "default",
    "null",
    "none",
    "nil",
    "undefined",
    "true",
    "false",
    "value",
    "string",
    "todo",
    "hidden",
    "redacted",
    "removed",
    "withheld",
    "masked",
    "dummy",
];

/// Whether a value stands for a secret: a place to fill in, a variable, a usual word.
pub(super) fn is_stand_in(value: &[u8]) -> bool {
    let has = |part: &[u8]| memmem::find(value, part).is_some();
    if value.is_empty()
        || matches!(value[0], b'$' | b'<' | b'{' | b'[' | b'(' | b'*' | b'@')
        || [
            &b"${"[..],
            b"$(",
            b"{{",
            b"%(",
            b"%s",
            b"%d",
            b"%v",
            b"%q",
            b"***",
            b"...",
            b"xxx",
            b"XXX",
        ]
        .into_iter()
        .any(has)
        || "…".as_bytes() == value
        || value.contains(&b'<') && value.contains(&b'>')
        || value.contains(&b'{') && value.contains(&b'}')
    {
        return true;
    }
    let plain = plain(value);
    USUAL.iter().any(|word| word.as_bytes() == plain.trim_ascii_end())
        || USUAL[..3].iter().any(|word| memmem::find(&plain, word.as_bytes()).is_some())
            && !is_disguised(value, &plain)
}

/// Whether usual words stand in a password in other letters only, and beside them there is enough that
/// nobody writes in a document: in `S3cr3tP4ssn19q` that is `n19q`.
fn is_disguised(value: &[u8], plain: &[u8]) -> bool {
    let mut rest = value.to_vec();
    for word in ["password", "passwd", "pass", "secret", "word", "admin", "root", "test", "user"] {
        let mut at = 0;
        while let Some(next) = memmem::find(&plain[at..], word.as_bytes()) {
            let found = at + next..at + next + word.len();
            if value[found.clone()].eq_ignore_ascii_case(word.as_bytes()) {
                return false;
            }
            rest[found.clone()].fill(0);
            at = found.end;
        }
    }
    rest.retain(|byte| *byte != 0);
    let last = rest.iter().rposition(u8::is_ascii_alphabetic);
    let digit = rest.iter().position(u8::is_ascii_digit);
    rest.len() >= 4 && digit.zip(last).is_some_and(|(digit, last)| digit < last)
}

/// A word without what people put in the place of letters and after them: `P@ssw0rd1!` is
/// `password`.
fn plain(value: &[u8]) -> Vec<u8> {
    let end = value
        .iter()
        .rposition(|byte| !matches!(byte, b'0'..=b'9' | b'!' | b'.' | b'?' | b'*' | b'#'));
    value[..end.map_or(0, |n| n + 1)]
        .iter()
        .map(|byte| match byte.to_ascii_lowercase() {
            b'0' => b'o',
            b'1' => b'l',
            b'3' => b'e',
            b'4' | b'@' => b'a',
            b'5' | b'$' => b's',
            other => other,
        })
        .collect()
}

/// Whether a short text is a password that somebody took pains with: of eight characters and more,
/// mixed, and no word.
pub(super) fn is_strong(password: &[u8]) -> bool {
    let (mix, bits) = (Mix::of(password), entropy(password));
    (8..=64).contains(&password.len())
        && mix.kinds() >= 3
        && mix.digits >= 1
        && mix.upper + mix.lower >= 2
        && mix.other <= 4
        && (mix.changes >= 3 || password.len() >= 12 && bits >= 3.2)
        && bits >= 2.75
        && !is_stand_in(password)
        && !is_sample(password)
        && !reads(password)
        && !encodes(password)
}

/// Whether a value is a text that nobody would keep to themselves: a number, a switch, a path, a
/// name of a machine without a password, or a variable.
pub(super) fn is_harmless(value: &[u8]) -> bool {
    const WORDS: [&str; 34] = [
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "null",
        "none",
        "nil",
        "default",
        "auto",
        "development",
        "dev",
        "production",
        "prod",
        "staging",
        "test",
        "testing",
        "local",
        "debug",
        "info",
        "warn",
        "warning",
        "error",
        "trace",
        "verbose",
        "localhost",
        "utf-8",
        "utf8",
        "utc",
        "en",
        "json",
        "all",
        "smtp",
    ];
    let lower = value.to_ascii_lowercase();
    let numeric = |byte: &u8| {
        byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'_' | b':' | b',' | b'%')
    };
    value.iter().all(numeric)
        || WORDS.iter().any(|word| word.as_bytes() == lower)
        || is_number_with_unit(&lower)
        || is_variable(value)
        || (is_path(value) && !looks_like_base64(value))
        || is_local_address(&lower)
        || is_withheld(value)
}

/// `30s`, `512mb`.
fn is_number_with_unit(lower: &[u8]) -> bool {
    let digits = lower.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0
        && [&b"s"[..], b"ms", b"m", b"h", b"d", b"k", b"kb", b"mb", b"gb", b"g"]
            .contains(&&lower[digits..])
}

/// Nothing but a variable: `$HOME`, `${TOKEN}`, `<your key>`.
pub(super) fn is_variable(value: &[u8]) -> bool {
    let inside = |open: &[u8], close: &[u8]| {
        value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).is_some()
    };
    inside(b"${", b"}")
        || inside(b"$(", b")")
        || inside(b"<", b">")
        || inside(b"{", b"}")
        || value.strip_prefix(b"$").is_some_and(|name| {
            !name.is_empty()
                && name
                    .iter()
                    .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9'))
        })
}

/// What stands in the place of a secret already.
pub(super) fn is_withheld(value: &[u8]) -> bool {
    value.starts_with(MARK.as_bytes()) && value.ends_with(b"]")
}

fn is_path(value: &[u8]) -> bool {
    let starts =
        [&b"/"[..], b"./", b"../", b"~/"].into_iter().any(|start| value.starts_with(start));
    let drive = value.len() > 2 && value[0].is_ascii_alphabetic() && value[1..].starts_with(b":\\");
    (starts || drive) && !value.contains(&b'@') && !value.contains(&b'=')
}

/// A path of random parts is more likely base64 that begins with `/`.
fn looks_like_base64(value: &[u8]) -> bool {
    let part = value.split(|byte| matches!(byte, b'/' | b'.' | b'-' | b'_')).map(<[u8]>::len).max();
    part.unwrap_or(0) >= 20 && !reads(value)
}

/// An address of this machine, without a password in it.
fn is_local_address(lower: &[u8]) -> bool {
    let rest = lower.windows(3).position(|part| part == b"://").map_or(lower, |n| &lower[n + 3..]);
    let authority =
        rest.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().unwrap_or_default();
    let beyond = &rest[authority.len()..];
    is_local(authority) && !beyond.contains(&b'=') && !beyond.contains(&b'@')
}

/// Whether a machine is this one, or one of those that stand in documents; it may have a port.
pub(super) fn is_local(host: &[u8]) -> bool {
    let host = host.to_ascii_lowercase();
    let end = host.iter().rposition(|byte| *byte == b':').filter(|_| !host.ends_with(b"]"));
    let name = &host[..end.unwrap_or(host.len())];
    [&b"localhost"[..], b"127.0.0.1", b"0.0.0.0", b"[::1]", b"host.docker.internal"].contains(&name)
}
