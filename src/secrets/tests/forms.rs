//! Tokens of well-known services.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::*;
use crate::secrets::rules::{ASSIGNMENTS, BytePattern, FORMATS, NAMES, ValueCheck};

static FORMS: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("forms.toml")).unwrap());

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    token: Vec<Sample>,
    without_sample: Vec<WithoutSample>,
}

/// The description of a service's tokens; see `forms.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sample {
    pub(super) kind: String,
    prefixes: Vec<String>,
    alphabet: BytePattern,
    pub(super) length: (usize, usize),
    #[serde(default)]
    pub(super) before: usize,
    #[serde(default)]
    pub(super) keep_prefix: bool,
}

/// A format that other tests cover.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithoutSample {
    kind: String,
    mentions: Vec<String>,
    reason: String,
}

/// A format of tokens with one of its prefixes.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) prefix: &'static str,
    sample: &'static Sample,
}

impl std::ops::Deref for Form {
    type Target = Sample;

    fn deref(&self) -> &Sample {
        self.sample
    }
}

impl Form {
    pub(super) fn all() -> Vec<Self> {
        let forms = FORMS.token.iter();
        let all = forms
            .flat_map(|sample| sample.prefixes.iter().map(move |prefix| Self { prefix, sample }));
        all.collect()
    }

    fn has(self, byte: u8) -> bool {
        self.alphabet.is_match(&[byte])
    }

    /// The characters of which tokens are made here.
    pub(super) fn letters(self) -> Vec<u8> {
        let of = if self.has(b'%') { BASE64 } else { BASE62 };
        of.iter().copied().filter(|byte| self.has(*byte)).collect()
    }

    /// Whether a token is recognised even after a letter.
    fn is_distinct(self) -> bool {
        self.prefix.len() >= 4 && !matches!(self.prefix, "key-" | "1//0")
    }
}

#[test]
fn every_format_has_the_parts_that_its_check_needs() {
    for format in FORMATS.iter() {
        let names: Vec<&str> = format.regex().capture_names().flatten().collect();
        let needed: &[&str] = match format.check {
            ValueCheck::Token => &["drawn"],
            ValueCheck::Url => &["scheme", "user", "secret", "host"],
            ValueCheck::Password | ValueCheck::Login | ValueCheck::Any => &["secret"],
        };
        assert!(needed.iter().all(|name| names.contains(name)), "{} {names:?}", format.kind);
    }
}

#[test]
fn every_token_format_has_a_sample_or_a_reason_for_none() {
    let mut without = Vec::new();
    for format in FORMATS.iter().filter(|format| matches!(format.check, ValueCheck::Token)) {
        let kind = format.kind.to_string();
        for mention in &format.mentions {
            let is_sampled = Form::all().into_iter().any(|form| {
                let (token, _) = token(&form, 5);
                let found = format.regex().find(token.as_bytes());
                (&form.kind, form.prefix) == (&kind, mention)
                    && found.is_some_and(|found| found.len() == token.len())
            });
            if !is_sampled {
                without.push((kind.clone(), mention.clone()));
            }
        }
    }
    let mut listed = Vec::new();
    for WithoutSample { kind, mentions, reason } in &FORMS.without_sample {
        assert!(!reason.is_empty(), "{kind}");
        listed.extend(mentions.iter().map(|mention| (kind.clone(), mention.clone())));
    }
    without.sort();
    listed.sort();
    assert_eq!(without, listed);
}

fn token(form: &Form, seed: u64) -> (String, String) {
    let of = &form.letters();
    let before = drawn(of, form.before, seed + 1_000);
    let body = format!("{}{}", form.prefix, drawn(of, form.length.0, seed));
    let secret = if form.keep_prefix {
        body[form.prefix.len()..].to_owned()
    } else {
        format!("{before}{body}")
    };
    (format!("{before}{body}"), secret)
}

#[test]
fn every_drawn_token_of_every_form_is_found() {
    let (mut missed, mut all) = (0, 0);
    for form in Form::all() {
        let mut missed_here = 0;
        for seed in 0..200 {
            let (token, _) = token(&form, seed * 7 + 1);
            missed_here += u32::from(sorts(&token, None) != [form.kind.clone()]);
        }
        (missed, all) = (missed + missed_here, all + 200);
    }
    assert_eq!((missed, all), (0, 24_000));
}

#[test]
fn tokens_of_several_parts_are_found() {
    let hex = |length, seed| drawn(HEX, length, seed);
    let uuid = format!("{}-{}-{}-{}-{}", hex(8, 1), hex(4, 2), hex(4, 3), hex(4, 4), hex(12, 5));
    for (token, sort) in [
        (format!("pat{}.{}", drawn(BASE62, 14, 6), hex(64, 7)), "Airtable token"),
        (format!("{}-us6", hex(32, 8)), "Mailchimp key"),
        (format!("{}-us21", hex(32, 9)), "Mailchimp key"),
        (format!("HRKU-{uuid}"), "Heroku key"),
    ] {
        for (before, after) in [("x = \"", "\""), ("a ", "\nb"), ("", ""), ("(", ")")] {
            withheld(&format!("{before}{token}{after}"), None, &token, sort);
        }
        shown(&token[..token.len() - 4], Some("README.md"));
        shown(&format!("q{token}"), None);
        shown(&format!("{token}q"), None);
    }
    shown("path, pattern.of, pat12345678901234.5, -us, -us1, a-user, HRKU-", None);
}

#[test]
fn a_token_is_found_wherever_it_stands() {
    for form in Form::all() {
        let (token, secret) = token(&form, 5);
        let sort = form.kind.clone();
        for (before, after) in [
            ("x = \"", "\""),
            ("line one\nthen ", " and more\nline three\n"),
            ("a\r\nb ", "\r\nc\r\n"),
            ("{\\\"k\\\": \\\"", "\\\"}"),
            ("first\\n", "\\nlast"),
            ("https://x.example/?q%3D", "&r=1"),
            ("\x1b[01;31m", "\x1b[0m"),
            ("<b>", "</b>"),
            ("é", "é"),
            ("(", ")"),
            ("`", "`"),
        ] {
            withheld(&format!("{before}{token}{after}"), None, &secret, &sort);
            withheld(&format!("{before}{token}{after}"), Some("src/main.rs"), &secret, &sort);
        }
        // If the prefix can be the end of a word, this is no token.
        if !form.keep_prefix && !form.is_distinct() {
            shown(&format!("q{token}"), None);
        }
        // The token is too short.
        shown(&token[..token.len() - form.length.0 + 8], Some("a.rs"));
    }
}

#[test]
fn a_token_is_found_directly_behind_a_word() {
    let of_note = || Form::all().into_iter().filter(|form| form.is_distinct() && form.before == 0);
    for form in of_note() {
        let (token, secret) = token(&form, 5);
        for before in ["tok_", "pre_", "1", "x1_"] {
            withheld(&format!("a {before}{token} b"), None, &secret, &form.kind);
        }
    }
    // Before a suffix that cannot be a part of the token, it is also recognised.
    for form in of_note().filter(|form| !form.keep_prefix && !form.has(b'_')) {
        let (token, secret) = token(&form, 5);
        for behind in ["_", "_old", "_2"] {
            withheld(&format!("a {token}{behind} b"), None, &secret, &form.kind);
        }
    }
    let signed = of_note().find(|form| form.kind == "Azure signature").unwrap();
    let (signature, secret) = token(&signed, 5);
    withheld(&format!("a {signature}_x b"), None, &secret, &signed.kind);
    // After a letter, the rest must not look like a word. Few random tokens do.
    let (mut missed, mut all) = (0, 0);
    for form in of_note() {
        for seed in 0..50 {
            let (token, _) = token(&form, seed * 7 + 1);
            missed += u32::from(sorts(&format!("x{token}"), None) != [form.kind.clone()]);
            all += 1;
        }
    }
    assert!(missed * 100 <= all, "{missed} of {all}");
    for word in [
        "disk_test_preemptionfairness",
        "task_test_ThisIsWhatItDoesToTheQueue2",
        "mark_live_instructionsBeforeTheEnd",
        "SLOVAKIANGOVERNMENTSAYSS",
        "idempotencykey-9f8a3c1e7b2d4f6089ac13be57d2f4a6",
    ] {
        shown(word, None);
    }
}

#[test]
fn what_stands_for_a_token_is_shown() {
    for form in Form::all() {
        for stand_in in ["x", "ab", "0", "your-token-here-", "EXAMPLE", "1234567890abcdef"] {
            let body = &stand_in.repeat(form.length.0)[..form.length.0];
            shown(&format!("{}{body}", form.prefix), Some("README.md"));
        }
    }
    for text in [
        concat!("AKIA", "IOSFODNN7EXAMPLE"),
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX",
        "SKIP, task-0123, ask-for-it, key-value-store, eyJust a word",
        "sk-learn-contrib-and-some-more-words-after-it",
    ] {
        shown(text, None);
    }
}

#[test]
fn the_secret_beside_an_aws_key_goes_with_it() {
    let id = format!("AKIA{}", drawn(BASE32, 16, 9));
    let secret = drawn(BASE64, 40, 9);
    for text in [
        format!("Access key ID,Secret access key\n{id},{secret}\n"),
        format!("{id}\n{secret}\n"),
        format!("(\"{id}\", \"{secret}\")"),
    ] {
        let redacted = redact(&text, None);
        assert_eq!(redacted.findings.len(), 2, "{text}");
        assert!(!redacted.text.contains(&secret) && !redacted.text.contains(&id));
    }
    for name in ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "secretAccessKey"] {
        withheld(&format!("{name} = {secret}\n"), None, &secret, "AWS key");
        withheld(&format!("\"{name}\": \"{secret}\"\n"), Some("a.json"), &secret, "AWS key");
    }
}

#[test]
fn a_bot_of_telegram_keeps_its_number() {
    let secret = format!("AA{}", drawn(BASE62, 33, 4));
    withheld(&format!("bot 123456789:{secret}!"), None, &secret, "Telegram bot token");
    shown(&format!("12:{secret}"), None);
}

#[test]
fn a_bot_of_discord_is_found_where_discord_is_named() {
    let id = format!("M{}", drawn(BASE62, 23, 6));
    let token = format!("{id}.{}.{}", drawn(BASE62, 6, 7), drawn(BASE62, 38, 8));
    withheld(&format!("discord.login('{token}')"), None, &token, "Discord token");
    shown(&format!("f('{token}')"), None);
}

#[test]
fn a_web_token_is_found_whole() {
    use base64::Engine;
    let encode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let token = |header: &str, claims: &str| {
        format!("{}.{}.{}", encode(header), encode(claims), drawn(BASE62, 43, 11))
    };
    let header = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    let real = token(header, "{\"sub\":\"u-481\",\"exp\":1893456000}");
    let (within, after) = (["tok_@", "x@ y", "1@", "token-@"], ["t=@.", "\\n@\\n", "%22@%22"]);
    for around in ["Authorization: Bearer @", "\"@\""].into_iter().chain(within).chain(after) {
        withheld(&around.replace('@', &real), None, &real, "JWT");
    }
    shown(&token(header, "{\"sub\":\"1234567890\",\"name\":\"John Doe\"}"), None);
    shown(&format!("x.{real}"), None);
    shown(&token("{\"kid\":\"1\"}", "{\"sub\":\"u-481\"}"), None);
    shown(&format!("{}.{}", encode(header), encode("{}")), None);
}

/// They are compiled when they are needed, so a fault in one might be met by a person.
#[test]
fn every_pattern_of_a_table_can_be_compiled() {
    let patterns: BTreeMap<String, BytePattern> =
        toml::from_str(include_str!("../data/patterns.toml")).unwrap();
    let assigned = ASSIGNMENTS.iter().flat_map(|(_, way)| way.before.iter().chain(&way.name));
    let named = [&NAMES.begins_word, &NAMES.may_follow, &NAMES.describes, &NAMES.of_a_list];
    let all = patterns.values().chain(assigned).chain(named).map(|pattern| pattern.as_str());
    let all = all.chain(FORMATS.iter().map(|format| format.regex().as_str()));
    assert!(all.filter(|text| !text.is_empty()).count() > 100);
}
