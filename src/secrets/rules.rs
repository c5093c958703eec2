//! The tables in `data/`, each read once. They define what a secret looks like; the other modules apply them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::SecretKind;

/// The formats of secrets.
pub(super) static FORMATS: LazyLock<Vec<Format>> =
    LazyLock::new(|| load::<FormatTable>(include_str!("data/formats.toml")).format);

/// Finds which of these formats a text mentions.
pub(super) static MENTIONED: LazyLock<RegexSet> = LazyLock::new(|| {
    let mentions = FORMATS.iter().map(|format| match format.mentions.as_slice() {
        [] => r"[^\s\S]".to_owned(),
        _ => format.any_mention(),
    });
    set(mentions)
});

/// The words in names that suggest a secret.
pub(super) static NAMES: LazyLock<Names> = LazyLock::new(|| load(include_str!("data/names.toml")));

/// Matches any word of [`NAMES`]. Prefixes of other words come last, because the first match counts.
pub(super) static NAME_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    let words = NAMES.words.iter().map(|(word, _)| word.replace('_', "[_. -]?"));
    let last = NAMES.last_words.iter().map(|(word, _)| word.clone());
    pattern(&format!("(?i){}", words.chain(last).collect::<Vec<_>>().join("|")))
});

/// The ways in which a value follows its name, each with a pattern. The group that matches is the value.
pub(super) static ASSIGNMENTS: LazyLock<Vec<(Regex, Assignment)>> = LazyLock::new(|| {
    let AssignmentTable { parts, ways } = load(include_str!("data/assignments.toml"));
    let value = |way: &Assignment| {
        let mut after = format!(r"\A{}", way.after);
        // Parts may contain other parts, so replace twice.
        for (name, part) in parts.iter().chain(&parts) {
            after = after.replace(&format!("{{{name}}}"), part);
        }
        pattern(&after)
    };
    ways.into_iter().map(|way| (value(&way), way)).collect()
});

/// Finds which of these patterns match. Trying each pattern on its own takes several times as long.
pub(super) static ASSIGNMENT_SET: LazyLock<RegexSet> =
    LazyLock::new(|| set(ASSIGNMENTS.iter().map(|(value, _)| value.as_str())));

/// Values, words and claims that stand for a secret, and are none.
pub(super) static STAND_INS: LazyLock<StandIns> =
    LazyLock::new(|| load(include_str!("data/stand_ins.toml")));

/// Patterns for values, markers, escape sequences and file names.
pub(super) static PATTERNS: LazyLock<Patterns> =
    LazyLock::new(|| load(include_str!("data/patterns.toml")));

fn load<T: DeserializeOwned>(table: &str) -> T {
    toml::from_str(table).expect("a table of this crate")
}

fn pattern(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("a pattern of this crate")
}

fn set(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> RegexSet {
    RegexSetBuilder::new(patterns).unicode(false).build().expect("patterns of this crate")
}

/// A regex for bytes, read from a table. It is compiled when it is needed, since most are not.
pub(super) struct BytePattern(String, OnceLock<Regex>);

impl Deref for BytePattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.1.get_or_init(|| pattern(&self.0))
    }
}

impl<'de> Deserialize<'de> for BytePattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::deserialize(deserializer)?, OnceLock::new()))
    }
}

impl<'de> Deserialize<'de> for SecretKind {
    /// Leaks the name. The tables are read only once and are never freed.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(String::leak(String::deserialize(deserializer)?)))
    }
}

#[derive(Deserialize)]
struct FormatTable {
    format: Vec<Format>,
}

/// The format of secrets; see `data/formats.toml`.
#[derive(Deserialize)]
pub(super) struct Format {
    pub(super) kind: SecretKind,
    #[serde(default)]
    pub(super) files: Vec<String>,
    #[serde(default)]
    pub(super) check: ValueCheck,
    #[serde(default)]
    pub(super) mentions: Vec<String>,
    regex: String,
    /// Compiled on first use, since most formats are not needed.
    #[serde(skip)]
    compiled: OnceLock<Regex>,
    /// The least entropy of the part `drawn`, in bits per character; by default it depends on the length.
    pub(super) entropy: Option<f64>,
    /// Whether a correct GitHub checksum is enough.
    #[serde(default)]
    pub(super) checksum: bool,
    /// Whether ordinary words end in the prefix, so that the token must begin at the start of a word.
    #[serde(default)]
    pub(super) ends_words: bool,
    /// Whether the token may follow any character except a dot.
    #[serde(default)]
    pub(super) inside_words: bool,
}

impl Format {
    pub(super) fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| pattern(&self.regex.replace("{}", &self.any_mention())))
    }

    fn any_mention(&self) -> String {
        let words: Vec<String> = self.mentions.iter().map(|word| regex::escape(word)).collect();
        format!("(?:{})", words.join("|"))
    }
}

#[derive(Deserialize)]
pub(super) struct Names {
    pub(super) words: Vec<(String, SecretKind)>,
    pub(super) last_words: Vec<(String, SecretKind)>,
    pub(super) begins_word: BytePattern,
    pub(super) may_follow: BytePattern,
    pub(super) describes: BytePattern,
    pub(super) of_a_list: BytePattern,
}

#[derive(Deserialize)]
struct AssignmentTable {
    parts: BTreeMap<String, String>,
    #[serde(rename = "way")]
    ways: Vec<Assignment>,
}

/// A way in which a value follows its name; see `data/assignments.toml`.
#[derive(Deserialize)]
pub(super) struct Assignment {
    after: String,
    pub(super) before: Option<BytePattern>,
    pub(super) name: Option<BytePattern>,
    pub(super) in_source: Option<bool>,
}

/// See `data/stand_ins.toml`.
#[derive(Deserialize)]
pub(super) struct StandIns {
    pub(super) values: Vec<String>,
    pub(super) words: Vec<String>,
    pub(super) claims: Vec<String>,
    pub(super) disguised: Vec<String>,
}

/// See `data/patterns.toml`.
#[derive(Deserialize)]
pub(super) struct Patterns {
    pub(super) template: BytePattern,
    pub(super) harmless: BytePattern,
    pub(super) variable: BytePattern,
    pub(super) path: BytePattern,
    pub(super) location: BytePattern,
    pub(super) local_address: BytePattern,
    pub(super) composed: BytePattern,
    pub(super) uuid: BytePattern,
    pub(super) escape: BytePattern,
    pub(super) example_host: BytePattern,
    pub(super) service: BytePattern,
    pub(super) key_marker: BytePattern,
    pub(super) assignment: BytePattern,
    pub(super) invisible: BytePattern,
    pub(super) kubernetes_secret: BytePattern,
    pub(super) backup: BytePattern,
    pub(super) env_file: BytePattern,
    pub(super) example_file: BytePattern,
    pub(super) secret_text_file: BytePattern,
    pub(super) secret_binary_file: BytePattern,
    pub(super) secret_variable: BytePattern,
    pub(super) switch: BytePattern,
    pub(super) source_file: BytePattern,
}

/// Which check a match of a [`Format`] must pass.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ValueCheck {
    #[default]
    Token,
    Url,
    Password,
    Login,
    Any,
}
