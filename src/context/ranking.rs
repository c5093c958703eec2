//! Ranks files for a task: by words in paths, definitions and texts (BM25F), by references from the best files
//! (`PageRank`), and by pairs of tests and sources. Pure and deterministic.

use std::collections::HashMap;

use super::outline::shape;
use super::query::{Query, identifiers, parts};
use super::symbols::{Definition, Text, definitions};

/// The weights of a word in a path, in the name of a definition, and in the subject of a commit that changed the file.
/// A word in the text weighs 1.
const IN_PATH: f32 = 6.0;
const IN_NAME: f32 = 2.0;
const IN_SUBJECT: f32 = 0.5;
/// Commits that changed more files are ignored, since they say little about a single file.
const CHANGED: usize = 20;
/// The constants of BM25.
const K1: f32 = 1.2;
const B: f32 = 0.5;

/// How many of the best files have their references followed, and the most that these add (a share of the best score).
const SEEDS: usize = 15;
const REFERENCES: f32 = 0.2;
/// A name with more definitions than this is ambiguous and ignored.
const OWNERS: usize = 5;
/// How many steps references are followed, and the share of the score that is passed on.
const STEPS: usize = 3;
const DAMPING: f32 = 0.5;

/// The share of the score difference that a test gains from its better source, and vice versa. If more files than
/// `COMPANIONS` share a name, they are not treated as tests and sources.
const COMPANION: f32 = 0.5;
const COMPANIONS: usize = 6;

/// A file, scanned for the terms of a task.
#[derive(Debug)]
pub(super) struct ScannedFile {
    pub(super) path: String,
    pub(super) kind: PathKind,
    pub(super) definitions: Vec<Definition>,
    /// Whether the task names the file.
    pub(super) is_named: bool,
    /// The keys of a JSON file that the task names.
    pub(super) shape: Option<String>,
    /// The lines that contain terms, in order, each with its term.
    pub(super) hits: Vec<(usize, usize)>,
    /// How often each term occurs in the path, in names of definitions, in the text, and in subjects of commits.
    counts: Vec<[f32; 4]>,
    /// The size in bytes.
    length: f32,
}

/// The kind of a file, according to its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathKind {
    Source,
    Test,
    Prose,
    /// Written by programs, or append-only.
    Record,
}

/// Words in the names of changelogs.
const CHANGELOG: &str = "changelog changes history news";

/// Words in the names and folders of tests, examples and similar files.
const TESTS: &str =
    "test tests spec specs testing fixtures example examples bench benches benchmarks";

impl PathKind {
    pub(super) fn of(path: &str) -> Self {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
        let is = |text: &str, kinds: &str| {
            let mut words = identifiers(text.as_bytes()).flat_map(parts);
            words
                .any(|word| kinds.split(' ').any(|kind| kind.as_bytes().eq_ignore_ascii_case(word)))
        };
        if is(ending, "lock min map svg snap po pot log csv tsv")
            || is(stem, "lock changelogs")
            || is(stem, CHANGELOG)
        {
            Self::Record
        } else if is(folders, TESTS) || is(stem, TESTS) {
            Self::Test
        } else if is(ending, "md markdown mdx rst txt adoc html 1 3") || is(stem, "readme") {
            Self::Prose
        } else {
            Self::Source
        }
    }

    fn factor(self) -> f32 {
        match self {
            Self::Source => 1.0,
            Self::Test => 0.75,
            Self::Prose => 0.7,
            Self::Record => 0.3,
        }
    }
}

impl ScannedFile {
    /// Scans a file. `subjects` are the subjects of the commits that changed it.
    pub(super) fn new(path: &str, bytes: &[u8], subjects: &str, query: &Query) -> Self {
        let text = Text::new(bytes);
        let definitions = definitions(path, &text);
        let mut counts = vec![[0.0; 4]; query.weights().len()];
        query.find(path.as_bytes(), |term, _| counts[term][0] += 1.0);
        query.find(subjects.as_bytes(), |term, _| counts[term][3] += 1.0);
        let is_named = query.names(path);
        counts[Query::PATH][0] += f32::from(u8::from(is_named));
        for definition in &definitions {
            query.find(definition.name.as_bytes(), |term, _| counts[term][1] += 1.0);
        }
        let lines = query.lines(path).filter(|line| *line <= text.count());
        let lines = lines.map(|line| (line, Query::LINE));
        let named = definitions.iter().filter(|found| query.names_definition(&found.name));
        let named = named.map(|found| (found.line, Query::DEFINITION));
        let mut hits: Vec<(usize, usize)> = lines.chain(named).collect();
        query.find(bytes, |term, at| hits.push((text.line_at(at), term)));
        hits.sort_unstable();
        hits.iter().for_each(|(_, term)| counts[*term][2] += 1.0);
        let (kind, length) = (PathKind::of(path), bytes.len() as f32);
        let shape = is_named.then(|| shape(bytes)).flatten();
        Self { path: path.to_owned(), kind, definitions, is_named, shape, hits, counts, length }
    }

    /// Whether this is the project's changelog.
    pub(super) fn is_changelog(&self) -> bool {
        let stem = self.path.split('.').next().unwrap_or_default();
        CHANGELOG.split(' ').any(|name| name.eq_ignore_ascii_case(stem))
    }
}

/// For each file, the subjects of the commits that changed it.
pub(super) fn subjects(commits: &str) -> HashMap<&str, String> {
    let mut subjects: HashMap<&str, String> = HashMap::new();
    for commit in commits.trim_start_matches('>').split("\n>") {
        let (subject, paths) = commit.split_once("\n\n").unwrap_or_default();
        for path in paths.lines().filter(|_| paths.lines().count() <= CHANGED) {
            let of_file = subjects.entry(path).or_default();
            *of_file += subject;
            of_file.push('\n');
        }
    }
    subjects
}

/// The score of each file, and the rarity of each term.
pub(super) fn rank(files: &[ScannedFile], texts: &[&[u8]], query: &Query) -> (Vec<f32>, Vec<f32>) {
    let all = files.len() as f32;
    let rarity = query.weights().iter().enumerate().map(|(term, weight)| {
        let having =
            files.iter().filter(|file| file.counts[term].iter().any(|count| *count > 0.0)).count()
                as f32;
        weight * (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    });
    let rarity: Vec<f32> = rarity.collect();
    let average = files.iter().map(|file| file.length).sum::<f32>() / all.max(1.0);
    let score = |file: &ScannedFile| {
        let length = 1.0 - B + B * file.length / average.max(1.0);
        let terms = file.counts.iter().zip(&rarity).map(|([path, name, text, subject], rarity)| {
            let text = (IN_NAME * name + text) / length;
            let frequency = IN_PATH * path + text + IN_SUBJECT * subject;
            rarity * frequency / (K1 + frequency)
        });
        file.kind.factor() * terms.sum::<f32>()
    };
    let mut scores: Vec<f32> = files.iter().map(score).collect();
    if scores.iter().all(|score| *score == 0.0) {
        // No file contains a term of the task. Files near the root say the most about the project.
        let folders = |file: &ScannedFile| file.path.matches('/').count() as f32;
        scores = files.iter().map(|file| file.kind.factor() / (1.0 + folders(file))).collect();
    }
    add_references(files, texts, &mut scores);
    add_companions(files, &mut scores);
    (scores, rarity)
}

/// The indices of the files, best first.
pub(super) fn order(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    order
}

/// Raises files whose definitions the best files refer to (personalised `PageRank` that starts with the scores).
fn add_references(files: &[ScannedFile], texts: &[&[u8]], scores: &mut [f32]) {
    let mut owners: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (n, file) in files.iter().enumerate().filter(|(_, file)| file.kind <= PathKind::Test) {
        for definition in &file.definitions {
            let owners = owners.entry(definition.name.as_bytes()).or_default();
            if owners.last() != Some(&n) {
                owners.push(n);
            }
        }
    }
    owners.retain(|name, owners| name.len() > 3 && owners.len() <= OWNERS);
    let mut order = order(scores);
    order.truncate(SEEDS);
    let links: Vec<Vec<(usize, f32)>> =
        order.iter().map(|n| links(*n, texts[*n], &owners)).collect();
    let best = order.first().map_or(0.0, |n| scores[*n]);
    let start: HashMap<usize, f32> = order.iter().map(|n| (*n, scores[*n])).collect();
    let mut ranks = start.clone();
    let mut added = HashMap::new();
    for _ in 0..STEPS {
        added = HashMap::<usize, f32>::new();
        for (n, links) in order.iter().zip(&links) {
            for (owner, share) in links {
                *added.entry(*owner).or_default() += ranks.get(n).unwrap_or(&0.0) * share;
            }
        }
        ranks.clone_from(&start);
        added.iter().for_each(|(n, rank)| *ranks.entry(*n).or_default() += DAMPING * rank);
    }
    let most = added.values().copied().fold(f32::MIN_POSITIVE, f32::max);
    added.iter().for_each(|(n, rank)| scores[*n] += REFERENCES * best * rank / most);
}

/// The other files that a file refers to, with their shares of all its references.
fn links(file: usize, text: &[u8], owners: &HashMap<&[u8], Vec<usize>>) -> Vec<(usize, f32)> {
    let mut uses: HashMap<&[u8], f32> = HashMap::new();
    for name in identifiers(text).filter(|name| owners.contains_key(name)) {
        *uses.entry(name).or_default() += 1.0;
    }
    let mut links: HashMap<usize, f32> = HashMap::new();
    let mut uses: Vec<(&[u8], f32)> = uses.into_iter().collect();
    // The sum of floating-point numbers depends on their order.
    uses.sort_unstable_by_key(|(name, _)| *name);
    for (name, count) in uses {
        let is_compound = parts(name).nth(1).is_some();
        let weight = count.sqrt() * if is_compound { 2.0 } else { 1.0 } / owners[name].len() as f32;
        owners[name].iter().for_each(|owner| *links.entry(*owner).or_default() += weight);
    }
    let all: f32 = links.values().sum::<f32>().max(1.0);
    links.remove(&file);
    let mut links: Vec<(usize, f32)> =
        links.into_iter().map(|(n, weight)| (n, weight / all)).collect();
    links.sort_unstable_by_key(|(n, _)| *n);
    links
}

/// Raises tests together with their sources, and vice versa. Their names differ only in a test prefix or suffix.
fn add_companions(files: &[ScannedFile], scores: &mut [f32]) {
    let mut groups: HashMap<String, Vec<usize>> = HashMap::new();
    for (n, file) in files.iter().enumerate().filter(|(_, file)| file.kind <= PathKind::Test) {
        let name = file.path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let stem = name.split('.').next().unwrap_or_default();
        let stem = ["test_", "test-"].iter().fold(stem, |stem, mark| stem.trim_start_matches(mark));
        let ends = ["tests", "test", "spec", "_", "-"];
        let stem = ends.iter().fold(stem, |stem, end| stem.trim_end_matches(end));
        groups.entry(stem.to_owned()).or_default().push(n);
    }
    let before = scores.to_vec();
    for group in groups.into_values().filter(|group| group.len() <= COMPANIONS) {
        for &n in &group {
            let others = group.iter().filter(|other| files[**other].kind != files[n].kind);
            let ahead = others.map(|other| before[*other] - before[n]).fold(0.0, f32::max);
            scores[n] += COMPANION * ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths, best first.
    fn ranked(task: &str, files: &[(&str, &str)]) -> Vec<String> {
        let query = Query::new(task);
        let scans: Vec<ScannedFile> = files
            .iter()
            .map(|(path, text)| ScannedFile::new(path, text.as_bytes(), "", &query))
            .collect();
        let texts: Vec<&[u8]> = files.iter().map(|(_, text)| text.as_bytes()).collect();
        let (scores, _) = rank(&scans, &texts, &query);
        order(&scores)
            .into_iter()
            .filter(|n| scores[*n] > 0.0)
            .map(|n| files[n].0.to_owned())
            .collect()
    }

    #[test]
    fn definitions_and_paths_count_more_than_texts() {
        let files = [
            ("a.py", "# the parser is elsewhere\nx = 1\n"),
            ("b.py", "def parser():\n    pass\n"),
            ("parser.py", "x = 1\n"),
            ("z.py", "x = 1\n"),
        ];
        assert_eq!(ranked("Fix the parser", &files), ["b.py", "parser.py", "a.py"]);
        let task = "Fix src/z.py:1";
        assert_eq!(
            ranked(task, &[("src/z.py", "x = 1\n"), ("z/src.py", "x = 1\n")])[0],
            "src/z.py"
        );
    }

    #[test]
    fn what_the_best_files_refer_to_rises_and_so_do_their_tests() {
        let files = [
            (
                "app/encoder.py",
                "from x import EscapeTable\ndef encode():\n    return EscapeTable()\n",
            ),
            ("app/other.py", "class Unrelated:\n    pass\n"),
            ("app/tables.py", "class EscapeTable:\n    pass\n"),
            ("tests/test_encoder.py", "def test_it():\n    pass\n"),
            ("tests/test_other.py", "def test_other():\n    pass\n"),
        ];
        let found = ranked("The encoder fails", &files);
        assert_eq!(found[0], "app/encoder.py");
        let mut rest = found[1..].to_vec();
        rest.sort();
        assert_eq!(rest, ["app/tables.py", "tests/test_encoder.py"]);
    }

    #[test]
    fn subjects_of_commits_count_for_the_files_that_they_changed() {
        let commits = ">Fix the parser\n\na.py\nb c.py\n>Release\n\na.py\n>Empty\n>Cut\n\na.p";
        let found = subjects(commits);
        assert_eq!(found["a.py"], "Fix the parser\nRelease\n");
        assert_eq!(found["b c.py"], "Fix the parser\n");
        let many = (0..=CHANGED).map(|n| format!("{n}.py\n")).collect::<String>();
        assert!(subjects(&format!(">Reformat\n\n{many}")).is_empty());
        let query = Query::new("Let the parser stop");
        let scans = [("x.py", ""), ("y.py", found["b c.py"].as_str())];
        let scans =
            scans.map(|(path, subjects)| ScannedFile::new(path, b"x = 1\n", subjects, &query));
        let (scores, _) = rank(&scans, &[&b"x = 1\n"[..]; 2], &query);
        assert_eq!(order(&scores), [1, 0]);
    }

    #[test]
    fn kinds_of_files() {
        for (path, kind) in [
            ("src/lib.rs", PathKind::Source),
            ("tests/lib.rs", PathKind::Test),
            ("src/lib_test.go", PathKind::Test),
            ("GsonTest.java", PathKind::Test),
            ("src/latest.rs", PathKind::Source),
            ("docs/use.md", PathKind::Prose),
            ("README", PathKind::Prose),
            ("Cargo.lock", PathKind::Record),
            ("package-lock.json", PathKind::Record),
            ("CHANGELOG.md", PathKind::Record),
            ("dist/app.min.js", PathKind::Record),
        ] {
            assert_eq!(PathKind::of(path), kind, "{path}");
        }
    }
}
