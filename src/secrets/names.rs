//! Names that tell of secrets: the words in them, and what only looks like one.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::Sort;
use super::shape::is_word;

pub(super) const PASSWORD: Sort = Sort("password");
pub(super) const TOKEN: Sort = Sort("token");
const SECRET: Sort = Sort("secret");
const API_KEY: Sort = Sort("API key");
const KEY: Sort = Sort("private key");
pub(super) const LOGIN: Sort = Sort("login");

/// The longest name around the word in it.
pub(super) const LONGEST_NAME: usize = 48;

/// Words in the names of secrets, each with what it is. In place of `_` may stand `-`, `.`, a blank or
/// nothing.
const WORDS: [(&str, Sort); 32] = [
    ("identified_by", PASSWORD),
    ("passwd", PASSWORD),
    ("password", PASSWORD),
    ("passphrase", PASSWORD),
    ("passcode", PASSWORD),
    ("pwd", PASSWORD),
    ("secret", SECRET),
    ("token", TOKEN),
    ("api_key", API_KEY),
    ("access_key", API_KEY),
    ("auth_key", API_KEY),
    ("account_key", API_KEY),
    ("service_key", API_KEY),
    ("deploy_key", API_KEY),
    ("license_key", API_KEY),
    ("private_key", KEY),
    ("encryption_key", SECRET),
    ("signing_key", SECRET),
    ("signature_key", SECRET),
    ("session_key", SECRET),
    ("cookie_key", SECRET),
    ("master_key", SECRET),
    ("app_key", SECRET),
    ("crypto_key", SECRET),
    ("cipher_key", SECRET),
    ("hmac_key", SECRET),
    ("jwt_key", SECRET),
    ("aes_key", SECRET),
    ("shared_key", SECRET),
    ("storage_key", SECRET),
    ("webhook_key", SECRET),
    ("admin_key", SECRET),
];
/// Words that tell of a secret only where a name is one or ends in one: `AUTH`, `DB_PASS`.
const LAST_WORDS: [(&str, Sort); 8] = [
    ("credentials", SECRET),
    ("credential", SECRET),
    ("creds", SECRET),
    ("requirepass", PASSWORD),
    ("bindpw", PASSWORD),
    ("psk", PASSWORD),
    ("pass", PASSWORD),
    ("auth", TOKEN),
];
/// Words that a value follows which is no setting.
pub(super) const SCHEMES: [(&str, Sort); 3] =
    [("bearer", TOKEN), ("basic", LOGIN), ("_auth", LOGIN)];

pub(super) static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    let mut words: Vec<String> =
        WORDS.iter().map(|(word, _)| word.replace('_', "[_. -]?")).collect();
    // The first that fits counts, so those come last that others begin with.
    words.extend(SCHEMES.iter().chain(&LAST_WORDS).map(|(word, _)| (*word).to_owned()));
    Regex::new(&format!("(?i-u){}", words.join("|"))).expect("an alternation of words")
});

/// Sources, in which a value without quotes is an expression.
const SOURCES: [&str; 44] = [
    "rs", "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "mts", "tsx", "go", "c", "h", "cc", "cpp",
    "cxx", "hpp", "java", "kt", "kts", "scala", "swift", "rb", "php", "pl", "pm", "cs", "fs", "vb",
    "lua", "zig", "dart", "ex", "exs", "erl", "hs", "ml", "clj", "s", "asm", "css", "html", "vue",
    "svelte",
];

/// Whether a file of that name is a source of a program.
pub(super) fn is_source(name: Option<&str>) -> bool {
    let file = name.and_then(|name| name.rsplit('/').next());
    let extension = file.and_then(|file| file.rsplit_once('.')).map(|(_, end)| end.to_lowercase());
    extension.is_some_and(|end| SOURCES.contains(&&*end))
}

/// A name that tells of a secret.
pub(super) struct Named {
    /// Where it stands.
    pub(super) first: usize,
    pub(super) last: usize,
    /// In small letters.
    pub(super) name: Vec<u8>,
    /// How much of it stands before the word that tells.
    pub(super) before: usize,
}

/// The name in which the word at `start..end` stands, if it tells of a secret by that word.
pub(super) fn named(text: &[u8], start: usize, end: usize) -> Option<Named> {
    let before = text[..start].iter().rev().take(LONGEST_NAME).take_while(|b| is_name(**b)).count();
    let after = text[end..].iter().take(LONGEST_NAME).take_while(|b| is_name(**b)).count();
    let (first, last) = (start - before, end + after);
    let name = text[first..last].to_ascii_lowercase();
    let (word, rest) = name[before..].split_at(end - start);
    let is_long = after == LONGEST_NAME || before == LONGEST_NAME;
    if is_long || tells_of(rest) || is_passing(&name) {
        return None;
    }
    let is_last = LAST_WORDS.iter().any(|(known, _)| known.as_bytes() == word);
    if is_last && !(rest.is_empty() && begins_word(text, first, start)) {
        return None;
    }
    Some(Named { first, last, name, before })
}

/// Whether a word begins at `start` in a name that begins at `first`: `DB_PASS`, `dbPass`, not
/// `compass`.
fn begins_word(text: &[u8], first: usize, start: usize) -> bool {
    let is_capital = text[start].is_ascii_uppercase();
    start == first || !text[start - 1].is_ascii_alphabetic() || {
        is_capital && text[start - 1].is_ascii_lowercase()
    }
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

/// A name without what parts its words.
pub(super) fn joined(name: &[u8]) -> Vec<u8> {
    name.iter().copied().filter(|byte| !matches!(byte, b'_' | b'-' | b'.' | b' ')).collect()
}

/// Whether a joined name holds a word, which may have a `_` where its own words meet.
pub(super) fn holds(name: &[u8], word: &str) -> bool {
    let word = word.replace('_', "");
    name.windows(word.len()).any(|part| part == word.as_bytes())
}

/// What the word in a joined name says that its value is.
pub(super) fn told_by(name: &[u8]) -> Option<Sort> {
    let ends = |word: &str| name.ends_with(word.as_bytes());
    let within = WORDS.iter().rev().find(|(word, _)| holds(name, word));
    within.or_else(|| LAST_WORDS.iter().find(|(word, _)| ends(word))).map(|(_, sort)| *sort)
}
