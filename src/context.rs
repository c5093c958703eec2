//! Which files an outbox is about: those that the first one shows unasked, those that are near to the work, and those
//! that results show. Pure.
//!
//! The first outbox shows the files that the person named, then those that words of the task name, then what says what
//! the project is, then all others: nearest to the root first, small ones before large ones. What should not leave the
//! machine unasked is never among them unless the person named it, nor what is in a folder whose name begins with a
//! dot.

use std::collections::{BTreeSet, HashMap, HashSet};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::protocol::{Detail, Failure, Outcome, RelPath};
use crate::secrets::is_secret_file;
use crate::session::{Offer, Session};
use crate::workspace::Contents;
use crate::workspace::picture::Picture;

/// As many files are tried at most: each is read, perhaps from another machine.
const TRIED: usize = 300;

/// How many paths of the newest results count as near to the work.
const NEWEST: usize = 100;
/// How many words of the task are examined, and how many files they may name without a folder.
const WORDS: usize = 2_000;
const BY_NAME: usize = 20;
/// Marks that may be part of a file's name, and may surround it in a text.
const RARE: [char; 6] = ['+', '@', '$', '#', '~', '%'];

/// Names of files that say what a project is.
const TELLING: &str = "readme cargo.toml package.json pyproject.toml requirements.txt setup.cfg go.mod \
    makefile cmakelists.txt pom.xml build.gradle gemfile composer.json";

/// Ends of the names of files that package managers write: long, and of little use to a reader.
const LOCKS: [&str; 3] = [".lock", "-lock.json", "-lock.yaml"];

/// A file to be read, and shown if it is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its path from the root.
    pub path: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// Whether the person named it.
    pub included: bool,
}

/// Files that the first outbox may show, read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered {
    /// Texts, the most wanted first.
    pub files: Vec<Contents>,
    /// How many of them, the first, the person named: these may take all the room there is.
    pub included: usize,
    /// How many files of the workspace are not empty, and not known to be something else than text.
    pub listed: usize,
}

/// Whether a pattern of the person's can be read.
///
/// # Errors
/// Why not.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    matcher(pattern).map(drop)
}

fn matcher(pattern: &str) -> Result<Gitignore, String> {
    let mut builder = GitignoreBuilder::new("");
    builder.add_line(None, pattern).map_err(|e| e.to_string())?;
    let matcher = builder.build().map_err(|e| e.to_string())?;
    match matcher.num_ignores() {
        0 => Err("it names nothing".to_owned()),
        _ => Ok(matcher),
    }
}

/// The files of `listed` (paths from the root and sizes in bytes) that the first outbox of a session
/// with this task may show, the most wanted first; those larger than `limit` bytes only if the person
/// named them.
pub fn candidates<'a>(
    listed: impl Iterator<Item = (&'a str, u64)>,
    task: &str,
    offer: &Offer,
    limit: u64,
) -> Vec<Candidate<'a>> {
    // What cannot be read was refused when the session began.
    let included: Vec<Gitignore> =
        offer.include.iter().filter_map(|pattern| matcher(pattern).ok()).collect();
    let words: HashSet<String> = words(task).map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for (path, size) in listed {
        let names =
            |matcher: &Gitignore| matcher.matched_path_or_any_parents(path, false).is_ignore();
        let included = included.iter().position(names);
        if included.is_none() && (size > limit || stays(path)) {
            continue;
        }
        let depth = path.matches('/').count();
        let rank = match included {
            Some(n) => (0, n),
            None if is_named(path, &words) => (1, 0),
            None if depth == 0 && is_telling(path) => (2, 0),
            None if LOCKS.iter().any(|end| path.ends_with(end)) => (4, depth),
            None => (3, depth),
        };
        found.push((rank, depth, size, path, included.is_some()));
    }
    if found.len() > TRIED {
        found.select_nth_unstable(TRIED);
        found.truncate(TRIED);
    }
    found.sort_unstable();
    let candidate = |(_, _, size, path, included)| Candidate { path, size, included };
    found.into_iter().map(candidate).collect()
}

/// Whether a file is shown to nobody who did not ask for it.
fn stays(path: &str) -> bool {
    let (folders, _) = path.rsplit_once('/').unwrap_or_default();
    folders.split('/').any(|folder| folder.starts_with('.')) || is_secret_file(path)
}

fn is_telling(path: &str) -> bool {
    let (name, stem) = name_and_stem(path);
    let (name, stem) = (name.to_ascii_lowercase(), stem.to_ascii_lowercase());
    TELLING.split_whitespace().any(|telling| name == telling) || stem == "readme"
}

/// The name of a file, and the same without its ending.
fn name_and_stem(path: &str) -> (&str, &str) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    (name, if stem.is_empty() { name } else { stem })
}

/// The paths of the newest results, the last ones first.
pub fn newest(session: &Session) -> Vec<&str> {
    let paths = session.last_results.iter().rev().filter_map(|outcome| match &outcome.detail {
        Detail::Created { path, .. }
        | Detail::Edited { path, .. }
        | Detail::Replaced { path, .. }
        | Detail::Deleted { path }
        | Detail::ReadLater { path, .. }
        | Detail::Moved { to: path, .. }
        | Detail::Read { path, .. } => Some(path.as_str()),
        _ => None,
    });
    paths.take(NEWEST).collect()
}

/// The paths that the person named in a session.
pub fn named_by_person<'a>(session: &'a Session, picture: &Picture<'a>) -> Vec<&'a str> {
    named(std::iter::once(&session.task).chain(&session.said).map(String::as_str), picture)
}

/// The paths that words of these texts name, in full or by a file name.
fn named<'w>(texts: impl Iterator<Item = &'w str>, picture: &Picture<'w>) -> Vec<&'w str> {
    let (mut found, mut names) = (Vec::new(), HashSet::new());
    for word in texts.flat_map(words).take(WORDS).filter(|word| word.len() > 1) {
        if picture.find(word).is_some() || !picture.below(&format!("{word}/")).is_empty() {
            found.push(word);
        } else if word.contains('.') && !word.contains('/') {
            names.insert(word);
        }
    }
    if !names.is_empty() {
        let of_name = |path: &&str| names.contains(path.rsplit('/').next().unwrap_or(path));
        found.extend(picture.files().map(|file| file.path).filter(of_name).take(BY_NAME));
    }
    found
}

/// What leads to the work, or belongs to it.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The number of the first path near to the work that it is or leads to, from 1; 0 for the root.
    pub rank: usize,
    /// How many levels it is above the nearest one.
    pub distance: usize,
}

/// What leads to these paths: themselves, and the existing folders above them.
pub fn ways(picture: &Picture<'_>, near: &[&str]) -> HashMap<String, Way> {
    let distance = if near.is_empty() { 0 } else { usize::MAX };
    let mut ways = HashMap::from([(String::new(), Way { rank: 0, distance })]);
    for (path, rank) in near.iter().zip(1..) {
        let whole = format!("{path}/");
        let folders = memchr::memchr_iter(b'/', whole.as_bytes()).map(|slash| &whole[..=slash]);
        let folders = folders.take_while(|folder| !picture.below(folder).is_empty());
        let folders: Vec<&str> = std::iter::once("").chain(folders).collect();
        for (distance, folder) in folders.into_iter().rev().enumerate() {
            let way = ways.entry(folder.to_owned()).or_insert(Way { rank, distance });
            way.distance = way.distance.min(distance);
        }
        ways.entry((*path).to_owned()).or_insert(Way { rank, distance: 0 });
    }
    ways
}

/// The files of which the newest results show lines. To remove secrets from these, the whole files are needed.
pub fn files_with_lines(session: &Session) -> BTreeSet<RelPath> {
    let paths = session.last_results.iter().flat_map(|outcome| match &outcome.detail {
        Detail::Found { hits, .. } => {
            hits.iter().filter_map(|hit| RelPath::parse(&hit.path).ok()).collect()
        }
        detail => Vec::from_iter(excerpt_path(detail).cloned()),
    });
    paths.collect()
}

/// The file of an outcome's excerpt, if there is one.
pub fn excerpt_path(detail: &Detail) -> Option<&RelPath> {
    detail.excerpt()?;
    match detail {
        Detail::Failed(Failure { of: Some(path), .. }) => Some(path),
        detail => Some(detail.shown_of()?.0),
    }
}

/// Whether the newest outbox shows file contents or command output, which may contain the values of secret files.
pub fn shows_contents(session: &Session) -> bool {
    let shows = |outcome: &Outcome| match &outcome.detail {
        Detail::Ran(_) | Detail::Read { .. } | Detail::ReadLater { .. } | Detail::Found { .. } => {
            true
        }
        Detail::Failed(failure) => failure.of.is_some() || !failure.excerpt.is_empty(),
        detail => detail.excerpt().is_some(),
    };
    session.offer.is_some() && session.sequence == 1 || session.last_results.iter().any(shows)
}

/// The words of a text that may name files, without what is around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_around = |c: char| !(c.is_alphanumeric() || "_./-".contains(c) || RARE.contains(&c));
    let words = text.split(is_around).flat_map(|word| {
        // A word such as `@src/a.rs` may mean `src/a.rs`, too.
        let parts = word.split(RARE).filter(move |part| part.len() < word.len());
        std::iter::once(word).chain(parts)
    });
    // A dot may begin a name, and one at the end ends a sentence.
    let words = words.map(|word| word.trim_end_matches(['.', '/', '-']));
    words.map(|word| word.strip_prefix("./").unwrap_or(word)).filter(|word| !word.is_empty())
}

/// Whether a word is the path of a file, its name, or that without its ending.
fn is_named(path: &str, words: &HashSet<String>) -> bool {
    let path = path.to_lowercase();
    let (name, stem) = name_and_stem(&path);
    // A word as short as "a" names no file.
    words.contains(&path) || words.contains(name) || (stem.len() > 2 && words.contains(stem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::walk::Walk;

    fn chosen(files: &[(&str, u64)], task: &str, include: &[&str]) -> Vec<String> {
        let include = include.iter().map(|&pattern| pattern.to_owned()).collect();
        let found = candidates(files.iter().copied(), task, &Offer { include }, 1000);
        found.into_iter().map(|file| file.path.to_owned()).collect()
    }

    #[test]
    fn what_is_named_comes_first_and_then_what_is_near_and_small() {
        let files = [
            ("Cargo.lock", 900),
            ("Cargo.toml", 90),
            ("README.md", 80),
            ("a.txt", 5),
            ("docs/use.md", 7),
            ("large.txt", 1001),
            ("src/calculator.py", 500),
            ("src/deep/er/x.py", 1),
            ("src/main.py", 6),
            ("z.txt", 4),
        ];
        assert_eq!(
            chosen(&files, "Add a division to the Calculator, see 'docs/use.md'.", &[]),
            [
                "docs/use.md",
                "src/calculator.py",
                "README.md",
                "Cargo.toml",
                "z.txt",
                "a.txt",
                "src/main.py",
                "src/deep/er/x.py",
                "Cargo.lock"
            ]
        );
        assert_eq!(
            chosen(&files, "z", &["src/deep/", "*.txt"])[..5],
            ["src/deep/er/x.py", "z.txt", "a.txt", "large.txt", "README.md"]
        );
    }

    #[test]
    fn what_should_stay_is_shown_only_where_the_person_names_it() {
        let files = [
            (".env", 1),
            (".ENV.local", 1),
            (".env.example", 1),
            (".github/ci.yml", 1),
            (".gitignore", 1),
            ("deploy/server.pem", 1),
            ("deploy/prod.env", 1),
            ("deploy/server.PPK", 1),
            ("deploy/store.jks", 1),
            (".pgpass", 1),
            (".htpasswd", 1),
            ("env.py", 1),
        ];
        assert_eq!(
            chosen(&files, "fix .env and ci.yml", &[]),
            [".env.example", ".gitignore", "env.py"]
        );
        assert_eq!(chosen(&files, "x", &["/.env", ".github"])[..2], [".env", ".github/ci.yml"]);
    }

    #[test]
    fn of_many_files_the_nearest_are_tried() {
        let files: Vec<(String, u64)> = (0..5000).map(|n| (format!("d{}/{n}", n % 7), n)).collect();
        let near: Vec<(String, u64)> = (0..10).map(|n| (format!("f{n}"), n)).collect();
        let all: Vec<(&str, u64)> =
            files.iter().chain(&near).map(|(path, size)| (path.as_str(), *size)).collect();
        let chosen = chosen(&all, "x", &[]);
        assert_eq!(chosen.len(), TRIED);
        assert_eq!(chosen[..2], ["f0", "f1"]);
        assert_eq!(chosen[10], "d0/0");
    }

    #[test]
    fn patterns_are_checked() {
        assert!(check_pattern("src/**/*.rs").is_ok());
        for wrong in ["", "# x", "a{b", "!src"] {
            assert!(check_pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_name_files_and_folders() {
        let walk = Walk::of([("a/b/parser.rs", 1), ("src/x.rs", 1), ("src/deep/y.rs", 1)]);
        let picture = Picture::of(&walk, &[]);
        let of = |text| named(std::iter::once(text), &picture);
        assert_eq!(
            of("Fix `parser.rs`, (src/x.rs) and ./src/deep/."),
            ["src/x.rs", "src/deep", "a/b/parser.rs"]
        );
        assert_eq!(of("a b x.r parser y.rss"), [""; 0]);
        assert_eq!(of("look at @src/x.rs #1"), ["src/x.rs"]);

        let paths =
            ["%5Bid%5D.ts", "@types/x.d.ts", "a~1/b.c", "c++/a.cc", "r/$id.tsx", "r/+page.svelte"];
        let walk = Walk::of(paths.map(|path| (path, 1)));
        let picture = Picture::of(&walk, &[]);
        for path in paths {
            let text = format!("Fix ({path}), please.");
            assert!(named(std::iter::once(&*text), &picture).contains(&path), "{path}");
            let task = format!("Fix {path}.");
            let files = paths.map(|path| (path, 1));
            assert_eq!(chosen(&files, &task, &[])[0], path);
            let name = path.rsplit('/').next().unwrap();
            assert_eq!(named(std::iter::once(name), &picture), [path]);
        }
    }
}
