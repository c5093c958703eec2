//! The paths that the dialect takes ("Path Validation").

/// The longest path, in UTF-16 units.
pub(super) const PATH_LIMIT: usize = 255;

/// Whether `path` is one that an operation may carry: not absolute, without `..` anywhere (so
/// `a..b` is refused too), without null characters, and of at most 255 UTF-16 units in all
/// (agent-spaces-protocol, "Path Validation", to the letter).
///
/// That is all the protocol asks of the text. Whether it names a file is seen when the operation
/// is tried: the empty path and `C:\x` pass here and are refused there (see
/// [`RelPath`](crate::protocol::RelPath)).
///
/// # Examples
/// ```
/// use deaddrop::protocol::operations::is_valid_path;
/// assert!(is_valid_path("src/utils/helper.ts"));
/// assert!(!is_valid_path("/etc/passwd"));
/// assert!(!is_valid_path("../outside.txt"));
/// assert!(!is_valid_path("file\0.txt"));
/// assert!(is_valid_path(&"é".repeat(255)) && !is_valid_path(&"😀".repeat(128)));
/// ```
pub fn is_valid_path(path: &str) -> bool {
    path_problem(path).is_none()
}

/// What is wrong with a path, if anything.
pub(super) fn path_problem(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        Some("the path is absolute")
    } else if path.contains("..") {
        Some("the path holds `..`")
    } else if path.contains('\0') {
        Some("the path holds a null character")
    } else if is_longer(path, PATH_LIMIT) {
        Some("the path is longer than 255 characters")
    } else {
        None
    }
}

/// Whether a text has more than `limit` UTF-16 units, which is what the original counts.
pub(super) fn is_longer(text: &str, limit: usize) -> bool {
    // It has at most as many units as bytes.
    text.len() > limit && text.encode_utf16().nth(limit).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_the_guide_are_told_apart() {
        for path in ["file.ts", "src/utils/helper.ts", "data/2024/report.json"] {
            assert!(is_valid_path(path), "{path}");
        }
        for path in ["/etc/passwd", "../outside.txt", "file\0.txt"] {
            assert!(!is_valid_path(path), "{path}");
        }
    }

    #[test]
    fn the_function_of_the_specification_is_followed_to_the_letter() {
        // `includes('..')`: anywhere, also where it leads nowhere.
        for path in ["..", "a/../b", "a..b", "x/..", "...", "a/..\\b"] {
            assert_eq!(path_problem(path), Some("the path holds `..`"), "{path}");
        }
        assert_eq!(path_problem("/"), Some("the path is absolute"));
        assert_eq!(path_problem("/../\0"), Some("the path is absolute"));
        assert_eq!(path_problem("\0"), Some("the path holds a null character"));
        // What it does not mention it takes.
        for path in ["", ".", "./a", "a/", "a//b", "C:\\x", "\\\\srv\\s", "%2e%2e/x", "a\nb", " "] {
            assert!(is_valid_path(path), "{path:?}");
        }
    }

    #[test]
    fn lengths_are_counted_in_utf_16_units() {
        for (unit, most) in [("a", 255), ("é", 255), ("€", 255), ("😀", 127)] {
            assert!(is_valid_path(&unit.repeat(most)), "{unit}");
            assert!(!is_valid_path(&unit.repeat(most + 1)), "{unit}");
        }
        assert!(!is_longer("", 0) && is_longer("a", 0) && is_longer("😀", 1));
        assert!(!is_longer("€€", 2) && is_longer("€€€", 2) && is_longer("€€€€€€€€€", 2));
    }
}
