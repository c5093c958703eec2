//! Passwords in addresses: `postgres://user:password@host`.

use memchr::memmem;

use super::shape::{Mix, is_sample, looks_random};
use super::values::{is_local, is_stand_in, is_strong};
use super::{Rank, Sort, Span};

const PASSWORD: Sort = Sort("password in an address");
/// The longest user and password that are looked at.
const LONGEST: usize = 400;

/// What addresses of databases and queues begin with, before a `+` with what speaks with them.
const SERVICES: [&str; 13] = [
    "amqp",
    "amqps",
    "clickhouse",
    "mariadb",
    "mongodb",
    "mssql",
    "mysql",
    "nats",
    "postgres",
    "postgresql",
    "redis",
    "rediss",
    "sqlserver",
];

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    for at in memmem::find_iter(bytes, "://") {
        let scheme = bytes[..at]
            .iter()
            .rev()
            .take(24)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
        let scheme = &bytes[at - scheme.count()..at];
        if scheme.len() < 2 {
            continue;
        }
        let from = at + 3;
        let end = |byte: &&u8| {
            byte.is_ascii_graphic()
                && !matches!(
                    byte,
                    b'/' | b'?' | b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>' | b',' | b')' | b' '
                )
        };
        let length = bytes[from..].iter().take(LONGEST).take_while(end).count();
        let authority = &bytes[from..from + length];
        let Some(host) = memchr::memrchr(b'@', authority) else { continue };
        let (user, host) = (&authority[..host], &authority[host + 1..]);
        let Some(colon) = memchr::memchr(b':', user) else { continue };
        let (user, password) = (&user[..colon], &user[colon + 1..]);
        let kind = scheme.split(|byte| *byte == b'+').next().unwrap_or_default();
        let of_service = SERVICES.iter().any(|known| kind.eq_ignore_ascii_case(known.as_bytes()));
        if is_secret(user, password, host, of_service) {
            let start = from + colon + 1;
            spans.push(Span::new(start..start + password.len(), PASSWORD, Rank::Form));
        }
    }
}

/// Whether it is a secret; `of_service` says whether the address is one of a database or a queue, whose
/// machines have no dot in their names in a network of containers.
fn is_secret(user: &[u8], password: &[u8], host: &[u8], of_service: bool) -> bool {
    if host.is_empty() || password.len() < 5 || is_stand_in(password) || user == password {
        return false;
    }
    let host_name =
        host.split(|byte| *byte == b':').next().unwrap_or_default().to_ascii_lowercase();
    let named = |end: &[u8]| host_name.ends_with(end);
    let shown = [
        &b"example.com"[..],
        b"example.org",
        b"example.net",
        b".example",
        b".test",
        b".invalid",
        b"domain.com",
        b"host.com",
        b"foo.com",
        b"bar.com",
    ]
    .into_iter()
    .any(named)
        || host_name.starts_with(b"example.");
    let strong = looks_random(password) || is_strong(password);
    match shown || is_local(host) {
        true => strong,
        // A machine without a dot is one of a document as often as one of a network.
        false if !host_name.contains(&b'.') => strong || of_service && is_mixed(password),
        false => strong || password.len() >= 8 && !password.iter().all(u8::is_ascii_lowercase),
    }
}

/// Whether letters and digits are so mixed in a password that it is no word and no word with a number
/// behind it.
fn is_mixed(password: &[u8]) -> bool {
    let mix = Mix::of(password);
    let digit = password.iter().position(u8::is_ascii_digit);
    let letter = password.iter().rposition(u8::is_ascii_alphabetic);
    password.len() >= 10
        && mix.digits >= 2
        && mix.changes >= 4
        && digit.zip(letter).is_some_and(|(digit, letter)| digit < letter)
        && !is_sample(password)
}
