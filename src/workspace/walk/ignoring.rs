//! Which files a listing leaves out: `.gitignore`, `.ignore` and `.deaddropignore`, in any folder
//! of the workspace (never above it), with or without a git repository. They bound what is listed,
//! never what may be read. How many rules there are is bounded, since each costs time and memory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The files that hold rules; a later one has the last word.
pub(crate) const FILES: [&str; 3] = [".gitignore", ".ignore", ".deaddropignore"];

/// Of a longer file only so many of its first bytes count, as whole lines.
pub(crate) const SIZE_LIMIT: u64 = 64 << 10;

/// How many more rules a walk may take. A line costs one, and one for every 64 bytes.
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(20_000))
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Pays for a line if there is enough left; else nothing more can be had.
    fn pay(&self, line: &str) -> bool {
        let price = 1 + line.len() / 64;
        let less = |left: usize| Some(left.saturating_sub(price));
        let paid = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        paid.is_ok_and(|left| left >= price)
    }
}

/// The rules that stand in one folder, and those of the folders above it.
pub(crate) struct Rules {
    matcher: Gitignore,
    above: Option<Arc<Rules>>,
}

/// The rules of a folder that has some of its own, found by the `names` of what is in it. `read` gives
/// the contents of a file in it.
pub(crate) fn here<'a>(
    prefix: &str,
    above: Option<&Arc<Rules>>,
    mut names: impl Iterator<Item = &'a [u8]>,
    budget: &Budget,
    read: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Option<Arc<Rules>> {
    if !names.any(|name| FILES.iter().any(|file| file.as_bytes() == name)) {
        return None;
    }
    let mut builder = GitignoreBuilder::new(PathBuf::from(prefix.trim_end_matches('/')));
    for file in FILES {
        if budget.is_spent() {
            break;
        }
        let Ok(bytes) = read(file.as_bytes()) else { continue };
        let text = String::from_utf8_lossy(first_lines(&bytes));
        for line in text.lines().take_while(|line| budget.pay(line)) {
            // A pattern that cannot be read ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
    }
    let matcher = builder.build().ok()?;
    Some(Arc::new(Rules { matcher, above: above.cloned() }))
}

/// The whole lines within the limit.
pub(crate) fn first_lines(bytes: &[u8]) -> &[u8] {
    match usize::try_from(SIZE_LIMIT).ok().and_then(|limit| bytes.split_at_checked(limit)) {
        Some((first, more)) if !more.is_empty() => {
            &first[..memchr::memrchr(b'\n', first).map_or(0, |n| n + 1)]
        }
        _ => bytes,
    }
}

impl Rules {
    /// Whether the entry `name` of the folder `prefix` is left out; the nearest rules decide.
    pub(crate) fn ignores(&self, prefix: &str, name: &str, is_folder: bool) -> bool {
        let path = format!("{prefix}{name}");
        let mut rules = Some(self);
        while let Some(these) = rules {
            match these.matcher.matched(Path::new(&path), is_folder) {
                Match::None => rules = these.above.as_deref(),
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::Workspace;

    fn paths(root: &Path) -> Vec<String> {
        let walk = Workspace::open(root, &[], &[]).unwrap().walk().unwrap();
        walk.files().map(|file| file.path.to_owned()).collect()
    }

    #[test]
    fn of_a_long_ignore_file_the_first_whole_lines_count() {
        let dir = tempfile::tempdir().unwrap();
        let comment = |n: usize| format!("#{}\n", "-".repeat(n - 2));
        let limit = usize::try_from(SIZE_LIMIT).unwrap();
        // The last line within the limit is cut.
        let rules = format!("first\n{}cut-off\nlast\n", comment(limit - 6 - 3));
        fs::write(dir.path().join(".gitignore"), rules).unwrap();
        for name in ["first", "cut", "cut-off", "last"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(paths(dir.path()), [".gitignore", "cut", "cut-off", "last"]);
        // One that is as long as the limit counts to its end.
        let rules = format!("{}last", comment(limit - 4));
        fs::write(dir.path().join(".gitignore"), rules).unwrap();
        assert_eq!(paths(dir.path()), [".gitignore", "cut", "cut-off", "first"]);
    }

    #[test]
    fn beyond_so_many_rules_no_more_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let rules: String = (0..8_000).map(|n| format!("n{n}\n")).collect();
        let root = dir.path();
        let mut folder = root.to_owned();
        for n in 1..=4 {
            folder.push("d");
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(".gitignore"), &rules).unwrap();
            fs::write(folder.join(".ignore"), format!("x{n}\n")).unwrap();
            fs::write(folder.join(format!("x{n}")), "").unwrap();
        }
        fs::write(root.join(".gitignore"), ".ignore\n.gitignore\n").unwrap();
        // Each folder takes 8,001: the third has only some of its own, the fourth none.
        assert_eq!(paths(root), ["d/d/d/d/x4", "d/d/d/x3"]);
    }
}
