//! Tests which texts are secrets. No source file contains a sample that would be found as a secret: the samples are
//! composed at run time.

mod cut;
mod forms;
mod keys;
mod known;
mod named;
mod properties;
mod redactor;

use super::heuristics::is_word;
use super::{Redacted, redact};

pub(super) const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(super) const BASE64: &[u8] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz+/";
pub(super) const HEX: &[u8] = b"0123456789abcdef";
pub(super) const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// `length` random characters. The same seed gives the same characters.
pub(super) fn drawn(of: &[u8], length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let n = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % of.len() as u64;
            char::from(of[usize::try_from(n).unwrap()])
        })
        .collect()
}

/// The kinds of the findings in a text. `name` is the file name.
pub(super) fn sorts(text: &str, name: Option<&str>) -> Vec<String> {
    redact(text, name).findings.iter().map(|finding| finding.kind.to_string()).collect()
}

/// Checks that `secret`, which occurs once in a text, is withheld, and that the rest stays.
#[track_caller]
pub(super) fn withheld(text: &str, name: Option<&str>, secret: &str, sort: &str) {
    let Redacted { text: shown, findings } = redact(text, name);
    assert_eq!(shown, text.replace(secret, &format!("[withheld: {sort}]")), "in {text}");
    assert_eq!(findings.len(), 1, "{findings:?} in {text}");
    let before = &text[..text.find(secret).unwrap()];
    assert_eq!(findings[0].line, before.matches('\n').count() + 1, "{text}");
    assert_eq!(redact(&shown, name).text, shown);
}

#[track_caller]
pub(super) fn shown(text: &str, name: Option<&str>) {
    let redacted = redact(text, name);
    assert_eq!(redacted.text, text, "{:?}", redacted.findings);
    assert!(redacted.findings.is_empty());
}

#[test]
fn what_is_drawn_is_mixed() {
    assert_eq!(drawn(HEX, 8, 1), drawn(HEX, 8, 1));
    assert_ne!(drawn(HEX, 8, 1), drawn(HEX, 8, 2));
    assert!(drawn(BASE62, 500, 3).bytes().all(is_word));
}
