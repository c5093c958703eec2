//! Texts written so that a shell reads them as one word.

use crate::text::shell_word;

/// `text` as one word, with quotes where it needs them.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { shell_word(text) }
}
