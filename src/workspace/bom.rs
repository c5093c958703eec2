//! The byte order mark (U+FEFF) at the beginning of a file. It is not part of the first line: edits keep it, whether
//! they contain it or not.

const MARK: char = '\u{feff}';
/// How an outbox shows the mark.
const SHOWN: &str = "<U+FEFF>";

/// Splits a file into its byte order mark (empty if there is none) and the rest.
pub(super) fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut buffer = [0; 4];
    let mark = MARK.encode_utf8(&mut buffer).as_bytes();
    bytes.split_at(if bytes.starts_with(mark) { mark.len() } else { 0 })
}

/// Removes the mark from the beginning of a text.
pub(super) fn without(text: &str) -> &str {
    text.strip_prefix(MARK).or_else(|| text.strip_prefix(SHOWN)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_only_at_the_beginning() {
        assert_eq!(
            split("\u{feff}a\u{feff}".as_bytes()),
            ("\u{feff}".as_bytes(), "a\u{feff}".as_bytes())
        );
        assert_eq!(split(b"a"), (&b""[..], &b"a"[..]));
        assert_eq!(split(b"\xef\xbb"), (&b""[..], &b"\xef\xbb"[..]));
        assert_eq!(["\u{feff}a", "<U+FEFF>a", "a<U+FEFF>"].map(without), ["a", "a", "a<U+FEFF>"]);
    }
}
