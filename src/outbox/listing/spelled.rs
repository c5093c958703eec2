//! Counts and sizes in words.

use crate::text::{grouped, grouped_byte_count, size};
use crate::workspace::walk::Count;

/// `1 file`, `1,234 files`.
pub(super) fn files(n: u64) -> String {
    if n == 1 { "1 file".to_owned() } else { format!("{} files", grouped(n)) }
}

/// What is said of a folder of build products.
pub(super) fn products(Count { files: n, bytes, is_whole }: Count) -> String {
    match (n, is_whole) {
        (0, false) => "build products, not counted".to_owned(),
        (_, true) => format!("build products: {}, {}", files(n), size(bytes)),
        (_, false) => format!("build products: more than {}, {}", files(n), size(bytes)),
    }
}

/// What is said of a folder that is not listed itself: of its files, of which `more` says that some
/// are listed, and of build products in it.
pub(super) fn folded(of: Count, built: Option<Count>, more: bool) -> String {
    let mut parts = Vec::new();
    let more = if more { "more " } else { "" };
    if of.files > 0 {
        let noun = if of.files == 1 { "file" } else { "files" };
        parts.push(format!("{} {more}{noun}, {}", grouped(of.files), grouped_byte_count(of.bytes)));
    }
    parts.extend(built.map(products));
    parts.join("; ")
}

/// What is said of what rules leave out: `3 ignored files (12 bytes) are`. None where that is nothing.
pub(super) fn ignored(Count { files: n, bytes, is_whole }: Count) -> Option<String> {
    let size = grouped_byte_count(bytes);
    Some(match (n, is_whole) {
        (0, true) => return None,
        (0, false) => "ignored folders, not counted, are".to_owned(),
        (1, true) => format!("1 ignored file ({size}) is"),
        (_, true) => format!("{} ignored files ({size}) are", grouped(n)),
        (_, false) => {
            format!("more than {} ignored files (more than {size}) are", grouped(n))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_sizes_rounded_down() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (4_812_000, "4,812,000")] {
            assert_eq!(grouped(n), text);
        }
        for (n, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (9_999, "9,999 bytes"),
            (10_999, "10 kB"),
            (999_999, "999 kB"),
            (1_990_000, "1.9 MB"),
            (56_700_000, "56 MB"),
            (7_000_000_000, "7.0 GB"),
            (u64::MAX, "18,446,744,073 GB"),
        ] {
            assert_eq!(size(n), text);
        }
    }

    #[test]
    fn what_was_not_counted_is_not_given_as_a_number() {
        let count = |files, bytes, is_whole| Count { files, bytes, is_whole };
        assert_eq!(products(count(1234, 56_000_000, true)), "build products: 1,234 files, 56 MB");
        assert_eq!(products(Count::UNKNOWN), "build products, not counted");
        assert_eq!(products(count(1, 2, false)), "build products: more than 1 file, 2 bytes");
        assert_eq!(ignored(Count::NONE), None);
        assert_eq!(ignored(count(1, 1, true)).unwrap(), "1 ignored file (1 byte) is");
        assert_eq!(ignored(count(2, 1234, true)).unwrap(), "2 ignored files (1,234 bytes) are");
        assert_eq!(ignored(Count::UNKNOWN).unwrap(), "ignored folders, not counted, are");
        let both = folded(count(1, 2, true), Some(count(3, 4, true)), true);
        assert_eq!(both, "1 more file, 2 bytes; build products: 3 files, 4 bytes");
    }
}
