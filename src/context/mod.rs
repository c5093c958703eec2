//! Chooses what the first outbox shows of the workspace: files that the person named, files that the task needs
//! (completely or in excerpts), and an outline of others. Pure and deterministic.
//!
//! [`candidates`] chooses by path which files are read. [`Offered`] ranks these files (`query`, `symbols`, `ranking`)
//! and chooses what fits (`excerpts`, `outline`). Private files and files in folders whose names begin with a dot are
//! left out unless the person named them.

#![expect(clippy::cast_precision_loss, reason = "scores are rough")]

mod definition;
mod excerpts;
mod near;
mod outline;
mod query;
mod ranking;
pub mod symbols;

use std::thread;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::secrets::is_secret_file;
use crate::session::FilePatterns;
use crate::tokens;
use crate::workspace::Contents;
pub use definition::find_definition;
pub use near::{
    NearPlace, excerpt_path, files_with_lines, named_by_person, near_places, newest, shows_contents,
};
pub use outline::Outlined;
use query::Query;
use ranking::{PathKind, ScannedFile};

/// The most bytes that are read to rank files: in total, and for one file that the person did not name.
const ALL_BYTES: u64 = 50 << 20;
const FILE_BYTES: u64 = 1 << 20;

/// A file to be read. It is shown if it is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The path from the root.
    pub path: &'a str,
    /// The size in bytes.
    pub size: u64,
    /// Whether the person included it.
    pub included: bool,
}

/// Checks a pattern from the person.
///
/// # Errors
/// The reason why the pattern is invalid.
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

/// Chooses at most `most` of the `listed` files (paths from the root, and sizes in bytes) for the first outbox of a
/// session with this task: first files that the person included, in the order of the patterns, then files whose paths
/// the task names, then sources, tests, prose and others.
pub fn candidates<'a>(
    listed: impl Iterator<Item = (&'a str, u64)>,
    task: &str,
    offer: &FilePatterns,
    most: usize,
) -> Vec<Candidate<'a>> {
    // Invalid patterns were rejected when the session began.
    let matchers = |patterns: &[String]| -> Vec<Gitignore> {
        patterns.iter().filter_map(|pattern| matcher(pattern).ok()).collect()
    };
    let (included, excluded) = (matchers(&offer.include), matchers(&offer.exclude));
    let query = Query::new(task);
    let mut found = Vec::new();
    for (path, size) in listed {
        let names =
            |matcher: &Gitignore| matcher.matched_path_or_any_parents(path, false).is_ignore();
        if excluded.iter().any(names) {
            continue;
        }
        let pattern = included.iter().position(names);
        let is_named = query.names(path);
        if pattern.is_none() && (is_private(path) || size > FILE_BYTES && !is_named) {
            continue;
        }
        let rank = (pattern.unwrap_or(usize::MAX), !is_named, PathKind::of(path));
        found.push((rank, path.matches('/').count(), size, path, pattern.is_some()));
    }
    found.sort_unstable();
    let mut room = ALL_BYTES;
    let candidate = |(_, _, size, path, included)| Candidate { path, size, included };
    let fits = |file: &Candidate<'_>| {
        let rest = room.checked_sub(file.size);
        room = rest.unwrap_or(room);
        file.included || rest.is_some()
    };
    found.into_iter().map(candidate).filter(fits).take(most).collect()
}

/// Whether a file is shown only on request: if the person includes it, or the model requests it.
fn is_private(path: &str) -> bool {
    let (folders, _) = path.rsplit_once('/').unwrap_or_default();
    folders.split('/').any(|folder| folder.starts_with('.')) || is_secret_file(path)
}

/// Files that the first outbox may show, read and ranked.
#[derive(Debug, Default)]
pub struct Offered {
    /// The files that the person included.
    pub included: Vec<Contents>,
    /// The best other files, best first.
    pub ranked: Vec<Contents>,
    /// The scans of the ranked files.
    scans: Vec<ScannedFile>,
    scores: Vec<f32>,
    rarity: Vec<f32>,
    /// The number of other files that are not in `ranked`.
    left_out: usize,
    /// The number of files in the workspace that are neither empty nor known to be binary.
    pub listed: usize,
}

/// A file to show: its index in [`Offered::ranked`], and the ranges of its lines; None for all lines.
pub type Choice = (usize, Option<Vec<(usize, usize)>>);

impl Offered {
    /// Ranks the files `others`, which the person did not include. `commits` are the newest commits, as
    /// [`Runner::commits`](crate::runner::Runner::commits) returns them.
    ///
    /// # Panics
    /// Never: the threads that it starts are pure.
    pub fn new(
        task: &str,
        included: Vec<Contents>,
        others: Vec<Contents>,
        commits: &str,
        listed: usize,
    ) -> Self {
        let (query, subjects) = (Query::new(task), ranking::subjects(commits));
        let scan = |file: &Contents| {
            let path = file.path.as_str();
            let subjects = subjects.get(path).map_or("", String::as_str);
            ScannedFile::new(path, &file.bytes, subjects, &query)
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let share = others.len().div_ceil(threads).max(1);
        let scans: Vec<ScannedFile> = thread::scope(|scope| {
            let scans = |files: &'_ [Contents]| files.iter().map(scan).collect::<Vec<_>>();
            let started: Vec<_> =
                others.chunks(share).map(|files| scope.spawn(move || scans(files))).collect();
            started.into_iter().flat_map(|thread| thread.join().expect("it is pure")).collect()
        });
        let texts: Vec<&[u8]> = others.iter().map(|file| file.bytes.as_slice()).collect();
        let (scores, rarity) = ranking::rank(&scans, &texts, &query);
        let mut order = ranking::order(&scores);
        if let Some(changelog) = order.iter().position(|n| scans[*n].is_changelog()) {
            // The changelog is shown even if the task does not mention it.
            let last = changelog.min(excerpts::FILES - 1);
            order[last..=changelog].rotate_right(1);
        }
        let left_out = order.len().saturating_sub(excerpts::FILES);
        let mut files: Vec<Option<(Contents, ScannedFile)>> =
            others.into_iter().zip(scans).map(Some).collect();
        let order = &order[..order.len().min(excerpts::FILES)];
        let (ranked, scans) = order.iter().filter_map(|n| files[*n].take()).unzip();
        let scores = order.iter().map(|n| scores[*n]).collect();
        Self { included, ranked, scans, scores, rarity, left_out, listed }
    }

    /// All files, if they have at most about `room` tokens.
    pub fn all(&self, room: usize) -> Option<Vec<Choice>> {
        let count = |file: &Contents| tokens::estimate(&String::from_utf8_lossy(&file.bytes)).most;
        let fit = self.left_out == 0 && self.ranked.iter().map(count).sum::<usize>() <= room;
        fit.then(|| (0..self.ranked.len()).map(|file| (file, None)).collect())
    }

    /// About `room` tokens of the files that the task needs most, best first.
    pub fn choose(&self, room: usize) -> Vec<Choice> {
        self.all(room).unwrap_or_else(|| {
            let texts: Vec<&[u8]> = self.ranked.iter().map(|file| file.bytes.as_slice()).collect();
            let chosen = excerpts::choose(&self.scans, &texts, &self.scores, &self.rarity, room);
            chosen.into_iter().collect()
        })
    }

    /// An outline of the rest: other definitions of excerpted files, then other files, best first.
    pub fn outline(&self, shown: &[Choice]) -> impl Iterator<Item = Outlined<'_>> {
        let excerpted = shown.iter().filter_map(|(file, ranges)| Some((*file, ranges.as_deref()?)));
        let excerpted = excerpted.take(outline::EXCERPTED);
        let further = excerpted
            .map(|(file, ranges)| Outlined::new(&self.scans[file], ranges, &self.rarity))
            .filter(|outlined| !outlined.entries.is_empty());
        let is_shown = |file: usize| shown.iter().any(|(shown, _)| *shown == file);
        let others = (0..self.scans.len()).filter(move |file| !is_shown(*file));
        let others = others.filter(|file| self.scores[*file] > 0.0);
        further.chain(others.map(|file| Outlined::new(&self.scans[file], &[], &self.rarity)))
    }
}
