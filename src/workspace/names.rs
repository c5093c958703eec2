//! Escapes file names as text, and converts them back. `%` and bytes that are not UTF-8 become `%XX`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

/// Escapes a name or a path.
pub(super) fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

pub(super) fn escaped_os(name: &OsStr) -> String {
    escaped(name.as_encoded_bytes())
}

/// Converts an escaped text, for example from a checkpoint, back to the name or path.
pub fn unescaped(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        match part.get(..2).map(|digits| (u8::from_str_radix(digits, 16), &part[2..])) {
            Some((Ok(byte), rest)) => {
                bytes.push(byte);
                bytes.extend_from_slice(rest.as_bytes());
            }
            // This text was not made by `escaped`.
            _ => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    OsString::from_vec(bytes)
}

/// Converts an escaped name for display.
pub(super) fn shown(text: &str) -> String {
    unescaped(text).to_string_lossy().into_owned()
}

/// Splits a path into its folder and its name.
pub(super) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A path and its parent folders except the root, beginning with the highest folder.
pub(super) fn ancestors(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends =
        path.match_indices('/').map(|(at, _)| at).chain((!path.is_empty()).then_some(path.len()));
    ends.map(|end| &path[..end])
}

/// The length of the common beginning of two paths, in bytes.
pub(super) fn common_prefix(one: &str, other: &str) -> usize {
    /// How many bytes are compared at once. This is faster for long paths.
    const PIECE: usize = 64;
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let pieces = one.chunks_exact(PIECE).zip(other.chunks_exact(PIECE));
    let same = pieces.take_while(|(a, b)| a == b).count() * PIECE;
    same + one[same..].iter().zip(&other[same..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_escaped_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = escaped(&bytes);
            let name = unescaped(&text);
            prop_assert_eq!(name.as_encoded_bytes(), &bytes[..]);
        }

        #[test]
        fn any_text_can_be_turned(text in ".*") {
            let _ = unescaped(&text);
        }
    }

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(escaped("a/é b".as_bytes()), "a/é b");
        assert_eq!(escaped(b"50%\xff"), "50%25%FF");
        assert_eq!(shown("50%25%FF"), "50%\u{fffd}");
    }
}
