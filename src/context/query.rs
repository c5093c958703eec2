//! The search terms of a task: words, pairs of neighbouring words, paths, and lines of files. Pure.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::near::words;

/// Stop words and, after a line `=`, words for actions (such as "add").
const EMPTY_WORDS: &str = include_str!("data/empty_words.txt");

/// The weights of words for actions, and of words that look like code. Other words weigh 1.
const ACTION: f32 = 0.25;
const CODE: f32 = 1.5;
/// The weight of a whole identifier, in addition to its words.
const IDENTIFIER: f32 = 2.0;
/// The weight of a pair of neighbouring words, as a share of the lighter word.
const PAIR: f32 = 0.7;
/// The weight of a path, a line, or a definition that the task names.
const NAMED: f32 = 4.0;

/// The most terms of a task.
const TERMS: usize = 300;
/// The most bytes of a task that are searched for terms.
const TASK: usize = 100_000;
/// The most bytes between neighbouring words.
const GAP: usize = 3;

/// The terms by which files are ranked, each identified by a number. A term is a word, a pair of neighbouring words, a
/// path, or a line of a file.
#[derive(Debug)]
pub(super) struct Query {
    weights: Vec<f32>,
    words: HashMap<Vec<u8>, usize>,
    pairs: HashMap<(usize, usize), usize>,
    /// Whole identifiers that the task names, in lower case.
    identifiers: HashMap<Vec<u8>, usize>,
    /// Whether any word of the task begins with these two bytes. Otherwise a word need not be looked up.
    beginnings: Vec<bool>,
    /// Paths or names of files, in lower case.
    paths: Vec<String>,
    /// Lines of files, written as `src/a.rs:12` or as in a Python stack trace.
    places: Vec<(String, usize)>,
}

impl Query {
    pub(super) fn new(task: &str) -> Self {
        static PLACE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r#"([\w@./+-]+\.\w+)(?::|\(|", line )(\d{1,7})"#).expect("it is a constant")
        });
        let task = &task[..task.floor_char_boundary(TASK)];
        let places = PLACE
            .captures_iter(task)
            .filter_map(|found| Some((clean_path(&found[1]), found[2].parse().ok()?)));
        let paths = words(task).filter(|word| word.len() > 2 && word.contains(['.', '/']));
        let mut query = Self {
            weights: vec![NAMED; 3],
            words: HashMap::new(),
            pairs: HashMap::new(),
            identifiers: HashMap::new(),
            beginnings: vec![false; 1 << 16],
            paths: paths.map(clean_path).take(TERMS).collect(),
            places: places.take(TERMS).collect(),
        };
        query.add_words(task);
        query.add_identifiers(task);
        query
    }

    /// Adds words that must be identifiers: `max_depth`, `maxDepth`, and words in backticks or before a parenthesis.
    fn add_identifiers(&mut self, task: &str) {
        static CALL: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"`([\w.:]+)`|(\w+)\(").expect("it is a constant"));
        let called =
            CALL.captures_iter(task).filter_map(|found| found.iter().skip(1).flatten().next());
        let called = called.flat_map(|word| identifiers(word.as_str().as_bytes()));
        let compound = identifiers(task.as_bytes()).filter(|word| parts(word).nth(1).is_some());
        for word in called.chain(compound).filter(|word| word.len() > 2) {
            if self.weights.len() < TERMS && !self.identifiers.contains_key(word) {
                self.beginnings[beginning(word)] = true;
                self.identifiers.insert(word.to_vec(), self.weights.len());
                self.weights.push(IDENTIFIER);
            }
        }
    }

    /// Whether the task names the definition with this name.
    pub(super) fn names_definition(&self, name: &str) -> bool {
        let name = name.rsplit(['.', ':']).next().unwrap_or(name);
        self.identifiers.contains_key(name.as_bytes())
    }

    /// The terms for a named path, line and definition.
    pub(super) const PATH: usize = 0;
    pub(super) const LINE: usize = 1;
    pub(super) const DEFINITION: usize = 2;

    fn add_words(&mut self, task: &str) {
        let mut empty = HashMap::new();
        let mut weight = 0.0;
        let lines = EMPTY_WORDS.lines().filter(|line| !line.starts_with('#'));
        for word in lines.flat_map(str::split_whitespace) {
            if word == "=" {
                weight = ACTION;
            }
            empty.insert(stem(word.as_bytes()), weight);
        }
        let mut before = None;
        for word in task.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;!?*=".contains(c)) {
            let word = word.trim_matches(['.', ':', '-']);
            let is_compound = identifiers(word.as_bytes()).any(|word| parts(word).nth(1).is_some());
            let weight = if is_compound || word.contains(['.', '/', ':']) { CODE } else { 1.0 };
            for part in identifiers(word.as_bytes()).flat_map(parts) {
                let stem = stem(part);
                let weight = empty.get(&stem).copied().unwrap_or(weight);
                if self.weights.len() >= TERMS || stem.iter().all(u8::is_ascii_digit) {
                    before = None;
                } else if weight > 0.0 && stem.len() > 1 {
                    let term = self.add(stem, weight);
                    if let Some(before) = before.replace(term).filter(|before| *before != term) {
                        self.add_pair(before, term);
                    }
                }
            }
        }
    }

    fn add(&mut self, stem: Vec<u8>, weight: f32) -> usize {
        self.beginnings[beginning(&stem)] = true;
        let term = *self.words.entry(stem).or_insert(self.weights.len());
        match self.weights.get_mut(term) {
            Some(known) => *known = known.max(weight),
            None => self.weights.push(weight),
        }
        term
    }

    fn add_pair(&mut self, before: usize, term: usize) {
        let weight = PAIR * self.weights[before].min(self.weights[term]);
        if *self.pairs.entry((before, term)).or_insert(self.weights.len()) == self.weights.len() {
            self.weights.push(weight);
        }
    }

    /// The weight of each term.
    pub(super) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Whether the task names the file with this path.
    pub(super) fn names(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        self.paths.iter().any(|named| is_end(named, &path))
    }

    /// The lines of the file with this path that the task names.
    pub(super) fn lines<'q>(&'q self, path: &str) -> impl Iterator<Item = usize> + use<'q> {
        let path = path.to_lowercase();
        self.places.iter().filter(move |(named, _)| is_end(named, &path)).map(|(_, line)| *line)
    }

    /// Calls `found` with each word and pair in a text, and its offset.
    pub(super) fn find(&self, text: &[u8], mut found: impl FnMut(usize, usize)) {
        let start = text.as_ptr().addr();
        let (mut before, mut buffer) = (None, Vec::new());
        let may_begin = |word: &[u8]| self.beginnings[beginning(word)];
        for word in identifiers(text) {
            if may_begin(word)
                && let Some(&term) = self.identifiers.get(word)
            {
                found(term, word.as_ptr().addr() - start);
            }
            for part in parts(word).filter(|part| may_begin(part)) {
                stem_into(part, &mut buffer);
                let Some(&term) = self.words.get(&buffer) else { continue };
                let at = part.as_ptr().addr() - start;
                found(term, at);
                if let Some((last, end)) = before
                    && at - end <= GAP
                    && let Some(&pair) = self.pairs.get(&(last, term))
                {
                    found(pair, at);
                }
                before = Some((term, at + part.len()));
            }
        }
    }
}

fn clean_path(path: &str) -> String {
    path.trim_start_matches("./").to_lowercase()
}

/// Whether one of two paths is the end of the other: a stack trace names files from the root of the system.
fn is_end(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    long.strip_suffix(short).is_some_and(|folders| folders.is_empty() || folders.ends_with('/'))
}

/// The first two letters of a word, as a number.
fn beginning(word: &[u8]) -> usize {
    let letter = |n: usize| word.get(n).map_or(0, u8::to_ascii_lowercase);
    u16::from_be_bytes([letter(0), letter(1)]).into()
}

/// The identifiers and words of a text.
pub(super) fn identifiers(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_between = |byte: &u8| !(byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80);
    text.split(is_between).filter(|word| !word.is_empty())
}

/// The words of an identifier: `maxDepth`, `max_depth` and `HTTPServer` have two.
pub(super) fn parts(identifier: &[u8]) -> impl Iterator<Item = &[u8]> {
    identifier.split(|byte| *byte == b'_').flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let begins = |n: &usize| {
                let (before, letter) = (rest[n - 1], rest[*n]);
                let is_followed = rest.get(n + 1).is_some_and(u8::is_ascii_lowercase);
                letter.is_ascii_uppercase() && (!before.is_ascii_uppercase() || is_followed)
            };
            let end = (1..rest.len()).find(begins).unwrap_or(rest.len());
            let part;
            (part, rest) = rest.split_at(end);
            (!part.is_empty()).then_some(part)
        })
    })
}

fn stem(word: &[u8]) -> Vec<u8> {
    let mut stem = Vec::new();
    stem_into(word, &mut stem);
    stem
}

/// The stem of an English word. `parsing`, `parsed`, `parser` and `parses` have the same stem.
fn stem_into(word: &[u8], stem: &mut Vec<u8>) {
    stem.clear();
    stem.extend(word.iter().map(u8::to_ascii_lowercase));
    let cut = |stem: &mut Vec<u8>, ending: &str, least: usize| {
        let left = stem.len().saturating_sub(ending.len());
        let cuts = left >= least && stem.ends_with(ending.as_bytes());
        stem.truncate(if cuts { left } else { stem.len() });
        cuts
    };
    if !stem.ends_with(b"ss") {
        cut(stem, "s", 3);
    }
    if [("ing", 3), ("ed", 3), ("er", 4), ("or", 4)]
        .iter()
        .any(|(ending, least)| cut(stem, ending, *least))
        && let [.., before, last] = stem[..]
        && before == last
        && !b"ls".contains(&last)
    {
        // As in `stopped`: remove the doubled letter.
        stem.pop();
    }
    cut(stem, "e", 3);
    if let [_, _, _, .., last @ b'y'] = &mut stem[..] {
        // So that `entry` and `entries` have the same stem.
        *last = b'i';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(task: &str, text: &str) -> Vec<String> {
        let query = Query::new(task);
        let mut found = Vec::new();
        query.find(text.as_bytes(), |term, at| {
            let rest = text[at..].split(|c: char| !c.is_alphanumeric()).next().unwrap();
            if query.identifiers.values().any(|known| *known == term) {
                return;
            }
            found.push(format!(
                "{rest}{}",
                if query.pairs.values().any(|pair| *pair == term) { "+" } else { "" }
            ));
        });
        found
    }

    #[test]
    fn words_are_found_in_all_forms_and_neighbours_count() {
        let text = "fn parse_entry(maxDepth: u8) { parsers.entries() }";
        assert_eq!(
            found("Parsing of an entry", text),
            ["parse", "entry", "entry+", "parsers", "entries", "entries+"]
        );
        assert_eq!(
            found("`--max-depth` is ignored", "max_depth, MAX_DEPTH; depth"),
            ["max", "depth", "depth+", "MAX", "DEPTH", "DEPTH+", "depth"]
        );
        assert_eq!(found("The HTTPServer", "http server"), ["http", "server", "server+"]);
        assert_eq!(found("It should be that, as of 2024", "it should 2024"), [""; 0]);
    }

    #[test]
    fn paths_and_lines_are_named() {
        let task = "Fix json/Encoder.py, see src/a.rs:12:5, and\n  File \"/x/lib/b.py\", line 7, in f\nat g (c.js:3:1)";
        let query = Query::new(task);
        assert!(
            query.names("src/json/encoder.py")
                && query.names("src/a.rs")
                && !query.names("src/json/x.py")
        );
        let lines = |path| query.lines(path).collect::<Vec<_>>();
        assert_eq!(
            (lines("src/a.rs"), lines("b/src/a.rs"), lines("c/a.rs")),
            (vec![12], vec![12], vec![])
        );
        assert_eq!((lines("d/c.js"), lines("lib/b.py")), (vec![3], vec![7]));
    }

    #[test]
    fn words_of_identifiers() {
        let of = |word: &str| {
            parts(word.as_bytes())
                .map(|part| String::from_utf8_lossy(part).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("maxDepth"), ["max", "Depth"]);
        assert_eq!(of("__MAX_DEPTH"), ["MAX", "DEPTH"]);
        assert_eq!(of("parseHTTPServer2"), ["parse", "HTTP", "Server2"]);
        assert_eq!(of("_"), [""; 0]);
    }
}
