//! Patterns of paths, as settings have them: `*` and `?` in a name, `**` for any number of folders.

/// Whether a pattern means a path, a folder that it lies in, or a component of it.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> =
        pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let parts: Vec<&str> = path.split('/').collect();
    match pattern.as_slice() {
        [] => false,
        [one] => parts.iter().any(|part| is_name(one, part)),
        several => (1..=parts.len()).any(|n| is_path(several, &parts[..n])),
    }
}

/// Whether a pattern of several components means a path; `**` is any number of them.
fn is_path(pattern: &[&str], parts: &[&str]) -> bool {
    // As for `*` in a name: only the last `**` is ever gone back to, so this stays quadratic.
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < parts.len() {
        if pattern.get(p) == Some(&"**") {
            back = Some((p, n));
            p += 1;
        } else if pattern.get(p).is_some_and(|pattern| is_name(pattern, parts[n])) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((star, at)) = back {
            (p, n) = (star + 1, at + 1);
            back = Some((star, at + 1));
        } else {
            return false;
        }
    }
    pattern[p.min(pattern.len())..].iter().all(|part| *part == "**")
}

/// Whether a pattern with `*` and `?` means a name.
fn is_name(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut back) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match back {
                Some((star, at)) => {
                    (p, n) = (star + 1, at + 1);
                    back = Some((star, at + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_a_path_a_folder_or_a_name() {
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
