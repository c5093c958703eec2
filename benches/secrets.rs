//! Screening for secrets: how fast it is, and, over folders, how often it is wrong.
//!
//! `cargo bench --bench secrets` measures. `cargo bench --bench secrets -- FOLDER…` screens every
//! text file in these folders and prints each line that has an alarm, as it stands there, so that a
//! person can tell the true ones from the false; then the alarms by sort, and how many files there were.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deaddrop::secrets::redact;
use divan::Bencher;
use divan::counter::BytesCount;

/// How many alarms of a file are printed.
const PRINTED: usize = 5;

fn main() {
    let folders: Vec<PathBuf> =
        std::env::args_os().skip(1).map(PathBuf::from).filter(|path| path.is_dir()).collect();
    if folders.is_empty() {
        return divan::main();
    }
    let mut survey = Survey::default();
    for folder in &folders {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten() {
            if entry.file_type().is_file() {
                survey.look(folder, entry.path());
            }
        }
    }
    survey.print();
}

#[derive(Default)]
struct Survey {
    files: usize,
    bytes: usize,
    distinct: HashSet<blake3::Hash>,
    alarmed: usize,
    alarmed_distinct: usize,
    /// Of each sort: in how many files, and how many in all.
    sorts: BTreeMap<String, (usize, usize)>,
    time: Duration,
}

impl Survey {
    fn look(&mut self, folder: &Path, path: &Path) {
        // What is no text is named in an outbox, not shown.
        let Some(text) = fs::read_to_string(path).ok().filter(|text| !text.contains('\0')) else {
            return;
        };
        let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
        let begun = Instant::now();
        let found = redact(&text, Some(&name)).findings;
        self.time += begun.elapsed();
        let is_new = self.distinct.insert(blake3::hash(text.as_bytes()));
        self.files += 1;
        self.bytes += text.len();
        if found.is_empty() {
            return;
        }
        self.alarmed += 1;
        self.alarmed_distinct += usize::from(is_new);
        let mut sorts = HashSet::new();
        for (n, found) in found.iter().enumerate() {
            let counts = self.sorts.entry(found.kind.to_string()).or_default();
            counts.0 += usize::from(sorts.insert(found.kind));
            counts.1 += 1;
            if n < PRINTED {
                let line = text.lines().nth(found.line - 1).unwrap_or_default();
                let line: String = line.trim().chars().take(160).collect();
                println!("{name}:{}: [{}] {line}", found.line, found.kind);
            }
        }
    }

    #[allow(clippy::cast_precision_loss)]
    fn print(&self) {
        let rate = |part: usize, of: usize| part as f64 * 1_000.0 / of.max(1) as f64;
        println!();
        for (sort, (files, all)) in &self.sorts {
            println!("{sort}: {all} in {files} files");
        }
        let distinct = self.distinct.len();
        println!(
            "{} of {} files, {:.3} in 1,000",
            self.alarmed,
            self.files,
            rate(self.alarmed, self.files)
        );
        println!(
            "of those with contents of their own: {} of {distinct}, {:.3} in 1,000",
            self.alarmed_distinct,
            rate(self.alarmed_distinct, distinct)
        );
        let speed = self.bytes as f64 / 1e6 / self.time.as_secs_f64().max(1e-9);
        println!("{:.0} MB at {speed:.0} MB/s", self.bytes as f64 / 1e6);
    }
}

/// The sources of this crate, one after the other.
fn sources() -> String {
    let mut all = String::new();
    for entry in
        walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).into_iter().flatten()
    {
        all.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
    }
    all
}

fn measured(bencher: Bencher, text: &str) {
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| redact(text, Some("a.js")).findings.len());
}

#[divan::bench]
fn ordinary_source(bencher: Bencher) {
    measured(bencher, &sources());
}

#[divan::bench]
fn one_line(bencher: Bencher) {
    measured(bencher, &sources().replace('\n', " "));
}

#[divan::bench]
fn names_everywhere(bencher: Bencher) {
    measured(bencher, &"token = password(secret, api_key);".repeat(20_000));
}

#[divan::bench]
fn base64_everywhere(bencher: Bencher) {
    measured(bencher, &"eyJhbGciOiJ/AKIAsk-ghp_Q~b2tlbi".repeat(20_000));
}
