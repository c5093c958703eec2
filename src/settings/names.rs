//! File names and patterns. Pure.
//!
//! A name matches all its spellings that some file system accepts for the same file: upper and lower case, short names
//! of Windows (`GIT~1`), dots and spaces at the end, streams (`.git::$INDEX_ALLOCATION`), and characters that HFS+
//! ignores. In patterns, `*` and `?` match characters of a name, and `**` matches any number of folders.

/// A file name that matches all its spellings.
#[derive(Debug, Clone)]
pub(crate) struct FileName {
    /// The name as the person wrote it.
    pub(crate) given: String,
    folded: String,
    /// The short name in Windows: the parts before and after the number.
    short: (String, String),
}

impl FileName {
    /// Returns None if no file system accepts the name.
    pub(crate) fn new(given: &str) -> Option<Self> {
        let folded = folded(given);
        let short = short(&folded);
        (!folded.is_empty()).then(|| Self { given: given.to_owned(), folded, short })
    }

    /// Whether a file system could treat another name (as returned by [`folded`]) as this one.
    pub(crate) fn matches(&self, folded: &str) -> bool {
        self.folded == folded || is_short(folded, &self.short)
    }
}

/// Normalizes a name like the most tolerant file system.
pub(crate) fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !is_ignored(*c)).collect();
    // Some letters, such as `ſ`, equal others only in upper case.
    name.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase()
}

/// Whether HFS+ ignores a character in names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// The beginning and end of a short name in Windows: `gitmod` and nothing, or `mcp` and `.jso`.
fn short(folded: &str) -> (String, String) {
    let name = folded.trim_start_matches('.');
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let take = |text: &str, n: usize| -> String {
        text.chars().filter(|c| !matches!(c, '.' | ' ')).take(n).collect()
    };
    let extension =
        if extension.is_empty() { String::new() } else { format!(".{}", take(extension, 3)) };
    (take(stem, 6), extension)
}

fn is_short(folded: &str, (begin, end): &(String, String)) -> bool {
    let number = folded.strip_prefix(&**begin).and_then(|rest| rest.strip_suffix(&**end));
    let number = number.and_then(|rest| rest.strip_prefix('~'));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether a pattern matches a path, a folder above it, or one of its components.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let parts: Vec<&str> = path.split('/').collect();
    match pattern.as_slice() {
        [] => false,
        [one] => parts.iter().any(|part| matches_name(one, part)),
        several => (1..=parts.len()).any(|n| matches_path(several, &parts[..n])),
    }
}

/// Whether a pattern of several components matches a path. `**` matches any number of components.
fn matches_path(pattern: &[&str], parts: &[&str]) -> bool {
    matches_wildcard(
        pattern,
        parts,
        |part| *part == "**",
        |pattern, part| matches_name(pattern, part),
    )
}

/// Whether a pattern with `*` and `?` matches a name.
fn matches_name(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    matches_wildcard(&pattern, &name, |c| *c == '*', |pattern, c| *pattern == '?' || pattern == c)
}

/// Whether a pattern matches a sequence of items. A star matches any number of items.
fn matches_wildcard<P, T>(
    pattern: &[P],
    items: &[T],
    is_star: impl Fn(&P) -> bool,
    matches: impl Fn(&P, &T) -> bool,
) -> bool {
    // Only the last star is retried, so the time is at most quadratic.
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < items.len() {
        match (pattern.get(p), back) {
            (Some(star), _) if is_star(star) => {
                back = Some((p, n));
                p += 1;
            }
            (Some(one), _) if matches(one, &items[n]) => (p, n) = (p + 1, n + 1),
            (_, Some((star, at))) => {
                (p, n) = (star + 1, at + 1);
                back = Some((star, at + 1));
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(is_star)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_a_path_a_folder_or_a_name() {
        for (pattern, path) in [
            ("*.pem", "a/b/key.pem"),
            ("tests/fixtures/*.pem", "tests/fixtures/a.pem"),
            ("tests/fixtures", "tests/fixtures/deep/a.pem"),
            ("./tests/**/k?y", "tests/a/b/key"),
            ("**/k", "k"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("*.pem", "a.pem.txt"),
            ("fixtures/*.pem", "tests/fixtures/a.pem"),
            ("tests/*", "a/tests/b"),
            ("", "a"),
            ("/", "a"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }
}
