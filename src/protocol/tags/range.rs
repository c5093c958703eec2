//! Numbers of lines, as attributes give them.

/// Whether a text is a number and nothing else.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}
