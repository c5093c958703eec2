//! Ignore rules: `.gitignore`, `.ignore` and `.deaddropignore` in any folder of the workspace (never above it), with or
//! without a git repository. They limit what is listed, not what may be read. The number of rules is limited, because
//! each rule costs time and memory.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

/// The files that contain rules. A later one takes precedence.
pub(crate) const FILES: [&str; 3] = [".gitignore", ".ignore", ".deaddropignore"];

/// The most bytes of an ignore file that are used. Only whole lines are used.
pub(crate) const SIZE_LIMIT: u64 = 64 << 10;

/// How many more rules a walk accepts. A line costs 1, plus 1 for every 64 bytes.
pub(crate) struct Budget(AtomicUsize);

impl Budget {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(20_000))
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Pays for a line if enough of the budget is left; otherwise spends the rest of the budget.
    fn pay(&self, line: &str) -> bool {
        let price = 1 + line.len() / 64;
        let less = |left: usize| Some(left.saturating_sub(price));
        let paid = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        paid.is_ok_and(|left| left >= price)
    }
}

/// The most nested folders whose rules are used. Rules in deeper folders are ignored.
const LEVELS: usize = 100;
/// The longest path that is matched, in bytes relative to the folder of the rules. Git cannot open longer paths.
const LONGEST: usize = 4 << 10;

/// The ignore rules of one folder, and those of the folders above it.
///
/// In a chain of nested folders that all contain rules, matching would take quadratic time, because the entries of the
/// last folder are matched against all rules. So the number of levels is limited. Rules about names (the most common
/// kind) are not matched against paths, because paths grow with the depth.
pub(crate) struct IgnoreRules {
    /// The length of the folder's path, including the `/` at its end.
    at: usize,
    /// The rules without a `/`, which are matched against names.
    by_name: Gitignore,
    /// All rules, if some are matched against paths, and how many folders down these rules apply at most.
    by_path: Option<(Gitignore, usize)>,
    /// A digest of the ignore files.
    pub(super) digest: u64,
    above: Option<Arc<IgnoreRules>>,
    /// The number of folders that have rules: this folder and those above it.
    levels: usize,
}

/// The rules of a folder; None if it has no ignore files. `names` are its entries, and `read` reads a file in it.
pub(crate) fn here<'a>(
    prefix: &str,
    above: Option<&Arc<IgnoreRules>>,
    mut names: impl Iterator<Item = &'a [u8]>,
    budget: &Budget,
    read: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
) -> Option<Arc<IgnoreRules>> {
    let levels = above.map_or(0, |above| above.levels) + 1;
    if levels > LEVELS || !names.any(|name| FILES.iter().any(|file| file.as_bytes() == name)) {
        return None;
    }
    let mut digest = DefaultHasher::new();
    let mut lines: Vec<String> = Vec::new();
    for file in FILES {
        if budget.is_spent() {
            break;
        }
        let Ok(bytes) = read(file.as_bytes()) else { continue };
        let text = String::from_utf8_lossy(first_lines(&bytes));
        (file, &text).hash(&mut digest);
        lines.extend(text.lines().take_while(|line| budget.pay(line)).map(str::to_owned));
    }
    let compiled = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut builder = GitignoreBuilder::new("");
        for line in lines.iter().filter(|line| is_wanted(line)) {
            // An invalid pattern ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        builder.build().ok()
    };
    let by_name = compiled(&|line| reach(line) == 0)?;
    let reach_of_all = lines.iter().map(|line| reach(line)).max().unwrap_or_default();
    let by_path = match reach_of_all {
        0 => None,
        reach => Some((compiled(&|_| true)?, reach)),
    };
    let (at, above, digest) = (prefix.len(), above.cloned(), digest.finish());
    Some(Arc::new(IgnoreRules { at, by_name, by_path, digest, above, levels }))
}

/// How many folders down a rule about paths applies at most; 0 for a rule about names, which applies at any depth.
fn reach(line: &str) -> usize {
    let line = line.trim_end();
    if line.starts_with('#') {
        return 0;
    }
    let pattern = line.strip_prefix('!').unwrap_or(line);
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
    let pattern = pattern.strip_prefix("**/").unwrap_or(pattern);
    match memchr::memchr_iter(b'/', pattern.as_bytes()).count() {
        0 => 0,
        _ if line.contains("**") => usize::MAX,
        slashes => slashes + usize::from(!pattern.starts_with('/')),
    }
}

/// The complete lines within [`SIZE_LIMIT`].
pub(crate) fn first_lines(bytes: &[u8]) -> &[u8] {
    match usize::try_from(SIZE_LIMIT).ok().and_then(|limit| bytes.split_at_checked(limit)) {
        Some((first, more)) if !more.is_empty() => {
            &first[..memchr::memrchr(b'\n', first).map_or(0, |n| n + 1)]
        }
        _ => bytes,
    }
}

impl IgnoreRules {
    /// Whether the entry `name` of the folder `prefix` is ignored. The rules of the nearest folder take precedence.
    pub(crate) fn ignores(&self, prefix: &str, name: &str, is_folder: bool) -> bool {
        let mut rules = Some(self);
        while let Some(these) = rules {
            match these.matched(prefix, name, is_folder) {
                Match::None => rules = these.above.as_deref(),
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }

    /// Matches an entry against the rules of this folder only.
    fn matched(&self, prefix: &str, name: &str, is_folder: bool) -> Match<&Glob> {
        let between = &prefix[self.at..];
        if let Some((by_path, reach)) = &self.by_path
            && between.len() <= LONGEST
            && memchr::memchr_iter(b'/', between.as_bytes()).count() < *reach
        {
            return by_path.matched(Path::new(&format!("{between}{name}")), is_folder);
        }
        self.by_name.matched(Path::new(name), is_folder)
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
        // The last line within the limit is incomplete.
        let rules = format!("first\n{}cut-off\nlast\n", comment(limit - 6 - 3));
        fs::write(dir.path().join(".gitignore"), rules).unwrap();
        for name in ["first", "cut", "cut-off", "last"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(paths(dir.path()), [".gitignore", "cut", "cut-off", "last"]);
        // A file that is exactly as long as the limit is used up to its end.
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
        // Each folder costs 8,001: only a part of the third folder's rules is used, and none of the fourth's.
        assert_eq!(paths(root), ["d/d/d/d/x4", "d/d/d/x3"]);
    }

    #[test]
    fn rules_about_names_and_about_paths_hold_at_their_depths() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b/c/d")).unwrap();
        let rules = "*.o\n/top\n/a/b/x*\na/**/deep\n**/c/only\n!keep.o\n**/any\nlast/\n";
        fs::write(root.join(".gitignore"), rules).unwrap();
        fs::write(root.join("a/b/.gitignore"), "/top\n!x2\nc/*.txt\n").unwrap();
        for folder in ["", "a/", "a/b/", "a/b/c/", "a/b/c/d/"] {
            for name in ["1.o", "keep.o", "top", "x1", "x2", "deep", "only", "any", "last", "f.txt"]
            {
                fs::write(root.join(format!("{folder}{name}")), "").unwrap();
            }
        }
        let listed = paths(root);
        let left_out: Vec<String> = ["", "a/", "a/b/", "a/b/c/", "a/b/c/d/"]
            .iter()
            .flat_map(|folder| {
                ["1.o", "keep.o", "top", "x1", "x2", "deep", "only", "any", "last", "f.txt"]
                    .map(|name| format!("{folder}{name}"))
            })
            .filter(|path| !listed.contains(path))
            .collect();
        assert_eq!(
            left_out,
            [
                "1.o",
                "top",
                "any",
                "a/1.o",
                "a/deep",
                "a/any",
                "a/b/1.o",
                "a/b/top",
                "a/b/x1",
                "a/b/deep",
                "a/b/any",
                "a/b/c/1.o",
                "a/b/c/deep",
                "a/b/c/only",
                "a/b/c/any",
                "a/b/c/f.txt",
                "a/b/c/d/1.o",
                "a/b/c/d/deep",
                "a/b/c/d/any",
            ]
        );
    }

    #[test]
    fn so_many_levels_have_rules() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let mut folder = root.to_owned();
        for _ in 0..LEVELS + 2 {
            folder.push("d");
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(".ignore"), ".ignore\nx\n").unwrap();
            fs::write(folder.join("x"), "").unwrap();
            fs::write(folder.join("y"), "").unwrap();
            fs::write(folder.join(".gitignore"), "y\n.gitignore\n").unwrap();
        }
        // The rules of the higher folders also apply in deeper folders.
        assert_eq!(paths(root), Vec::<String>::new());
        // The rules in the deepest folder are not used.
        fs::write(folder.join(".deaddropignore"), "n\n").unwrap();
        fs::write(folder.join("n"), "").unwrap();
        let last = "d/".repeat(LEVELS + 2);
        assert_eq!(paths(root), [format!("{last}.deaddropignore"), format!("{last}n")]);
    }
}
