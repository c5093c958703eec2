//! What replies may look for in the workspace: the files below a folder, and the lines that a pattern
//! matches. Bounded in time, in what is looked at and in what is shown.

mod sink;

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cap_std::fs::File;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::list::{EntryFilter, ListRoot, Visited};
use super::locate::not_found;
use super::tree::lines_of;
use super::walk::{EntryKind, Listed, Walk};
use super::{Workspace, open_regular, regular_size};
use crate::protocol::{Detail, Failure, RelPath, Warning, WarningKind};
use crate::text::{count, visible_line};
use sink::{Hits, Matcher, SearchHits, Watched};

/// So long may be looked.
const TIME: Duration = Duration::from_secs(10);
/// As many folders are named that cannot be read, and as many files that were not searched whole.
const UNREADABLE: usize = 20;
/// A longer line ends the search of its file.
const LINE_BYTES: usize = 8 << 20;
/// As many lines are counted, and as many shown, with so many bytes.
const COUNTED: usize = 10_000;
const SHOWN: usize = 200;
const SHOWN_BYTES: usize = 32 << 10;

/// How something is looked for, and how much is looked at. What is shown has bounds of its own.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Whether the lines of a file of that size may be shown.
    readable: &'a dyn Fn(&RelPath, u64) -> bool,
    /// Whether the person wants to stop.
    interrupted: &'a dyn Fn() -> bool,
    /// Whether it takes too long, since then.
    is_late: &'a dyn Fn(Instant) -> bool,
    /// As many files are listed, in lines or in counts.
    files: usize,
    /// So many bytes of one file are searched.
    file_bytes: u64,
    /// So many bytes of all are searched.
    all_bytes: u64,
}

impl<'a> Terms<'a> {
    /// With the usual bounds; `readable` says whether the lines of a file of that size may be shown, `interrupted`
    /// whether the person wants to stop.
    pub const fn new(
        readable: &'a dyn Fn(&RelPath, u64) -> bool,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let is_late = &|begun: Instant| begun.elapsed() > TIME;
        let (files, file_bytes, all_bytes) = (200_000, 64 << 20, 2 << 30);
        Self { readable, interrupted, is_late, files, file_bytes, all_bytes }
    }

    /// Why no more is looked at by somebody who began then, if that is so.
    fn why_over(&self, begun: Instant) -> Option<String> {
        if (self.interrupted)() {
            return Some("the user stopped it: not all was looked at".to_owned());
        }
        (self.is_late)(begun).then(|| {
            format!(
                "it was ended after {} s: not all was looked at; name a folder with less in it",
                TIME.as_secs()
            )
        })
    }
}

/// Whether a pattern is one.
///
/// # Errors
/// It is not, in the words of the regex crate.
pub fn check(pattern: &str) -> Result<(), Failure> {
    Matcher::new(pattern).map(drop)
}

/// What is looked at until, and what is told of what was not.
struct SearchBounds<'a> {
    terms: &'a Terms<'a>,
    begun: Instant,
    told: Vec<String>,
    unreadable: Vec<String>,
}

impl<'a> SearchBounds<'a> {
    fn new(terms: &'a Terms<'a>) -> Self {
        Self { terms, begun: Instant::now(), told: Vec::new(), unreadable: Vec::new() }
    }

    /// Why no more is looked at, if that is so.
    fn is_over(&self) -> Option<String> {
        self.terms.why_over(self.begun)
    }

    fn warnings(self) -> Vec<Warning> {
        let Self { mut told, unreadable, .. } = self;
        if !unreadable.is_empty() {
            told.push(format!("cannot be read: {}", listing(&unreadable)));
        }
        told.into_iter().map(|told| Warning::new(WarningKind::Search, told)).collect()
    }

    fn unreadable(&mut self, path: &str) {
        self.unreadable.push(visible_line(path).into_owned());
    }
}

/// Names, as far as that many can be told.
fn listing(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(UNREADABLE);
    let mut named: Vec<String> =
        paths.iter().take(UNREADABLE).map(|path| format!("'{path}'")).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

impl Workspace {
    /// The files below a folder, or the line of the one file that a path names. Nothing is ignored.
    ///
    /// # Errors
    /// Nothing stands there, or it cannot be reached.
    pub fn list_below(
        &self,
        path: Option<&RelPath>,
        terms: &Terms,
    ) -> Result<(Detail, Vec<Warning>), Failure> {
        let told = |path: Option<RelPath>, files: usize, shown: String| Detail::Listed {
            path,
            files,
            shown,
        };
        let (folder, prefix) = match self.list_root(path)? {
            ListRoot::Folder(folder, prefix) => (folder, prefix),
            ListRoot::File(spot) => {
                let (size, kind) = match &spot.found {
                    Some(found) if found.is_file() => (found.len(), EntryKind::File),
                    _ => (0, EntryKind::Other),
                };
                let listed = Listed { path: spot.real.as_str(), size, kind };
                return Ok((told(Some(spot.real.clone()), 1, listed.line() + "\n"), Vec::new()));
            }
        };
        let (mut files, mut watch) = (Vec::new(), SearchBounds::new(terms));
        self.visit_below(&folder, &prefix, EntryFilter::All, &mut |visited| {
            match visited {
                Visited::File(file) => files.push((file.path.to_owned(), file.size, file.kind)),
                Visited::Unreadable(path) => watch.unreadable(path),
                Visited::Folder(_) | Visited::OwnState => {}
            }
            let enough = (files.len() >= terms.files).then(|| {
                format!("it was ended after {} files: not all was looked at; name a folder with less in it", terms.files)
            });
            match enough.or_else(|| watch.is_over()) {
                None => ControlFlow::Continue(()),
                Some(why) => {
                    watch.told.push(why);
                    ControlFlow::Break(())
                }
            }
        });
        let real = RelPath::parse(prefix.trim_end_matches('/')).ok();
        let walk = Walk::from_files(files, Vec::new());
        Ok((told(real, walk.files().len(), lines_of(&walk, prefix.len())), watch.warnings()))
    }

    /// The lines below a folder, or of one file, that a regular expression matches: of text files
    /// that no ignore rules leave out, links not followed.
    ///
    /// # Errors
    /// The pattern is none; nothing stands there, or it cannot be reached.
    pub fn search(
        &self,
        pattern: &str,
        path: Option<&RelPath>,
        terms: &Terms,
    ) -> Result<(Detail, Vec<Warning>), Failure> {
        let mut search = Search {
            matcher: Matcher::new(pattern)?,
            searcher: SearcherBuilder::new()
                .line_terminator(sink::line_end())
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(LINE_BYTES))
                .line_number(true)
                .build(),
            watch: SearchBounds::new(terms),
            found: SearchHits::default(),
            room: terms.all_bytes,
            kept_back: 0,
            unnamed: 0,
            failed: Vec::new(),
            too_long: Vec::new(),
            cut: false,
        };
        match self.list_root(path)? {
            ListRoot::Folder(folder, prefix) => {
                let is_gits = prefix.split('/').any(|name| name.eq_ignore_ascii_case(".git"));
                let which = if is_gits { EntryFilter::All } else { EntryFilter::NotIgnored };
                self.visit_below(&folder, &prefix, which, &mut |visited| search.visit(&visited));
            }
            ListRoot::File(spot) => {
                let found = spot.found.as_ref().ok_or_else(|| not_found(&spot.real))?;
                let (path, size) = (spot.real.as_str(), regular_size(&spot.real, found)?);
                let _ = search.file(path, size, || {
                    open_regular(&spot.folder, OsStr::new(&spot.name)).map(File::into_std)
                });
            }
        }
        Ok(search.end(pattern))
    }
}

/// A search on its way.
struct Search<'a> {
    matcher: Matcher,
    searcher: Searcher,
    watch: SearchBounds<'a>,
    found: SearchHits,
    /// How many bytes may be searched yet.
    room: u64,
    /// How many files the policy keeps from being read.
    kept_back: usize,
    /// How many have names that no path of a reply can have.
    unnamed: usize,
    /// Those that could not be read to their end.
    failed: Vec<String>,
    /// Those of which only the beginning was searched.
    too_long: Vec<String>,
    cut: bool,
}

impl Search<'_> {
    fn visit(&mut self, visited: &Visited) -> ControlFlow<()> {
        match visited {
            Visited::File(file) if file.kind == EntryKind::File => {
                self.file(file.path, file.size, || file.folder.open_regular(file.name))
            }
            Visited::Unreadable(path) => {
                self.watch.unreadable(path);
                self.go_on()
            }
            Visited::File(_) | Visited::Folder(_) | Visited::OwnState => self.go_on(),
        }
    }

    fn go_on(&mut self) -> ControlFlow<()> {
        let why = self.watch.is_over().or_else(|| {
            let told =
                "it was ended after {} bytes: not all was looked at; name a folder with less in it";
            let all = self.watch.terms.all_bytes;
            (self.room == 0).then(|| told.replace("{}", &all.to_string()))
        });
        if let Some(why) = why {
            self.watch.told.push(why);
            self.cut = true;
            return ControlFlow::Break(());
        }
        if self.found.lines >= COUNTED {
            self.cut = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn file(
        &mut self,
        path: &str,
        size: u64,
        open: impl FnOnce() -> io::Result<fs::File>,
    ) -> ControlFlow<()> {
        let Some(real) = RelPath::parse(path).ok().filter(|real| real.as_str() == path) else {
            self.unnamed += 1;
            return self.go_on();
        };
        if !(self.watch.terms.readable)(&real, size) {
            self.kept_back += 1;
            return self.go_on();
        }
        let Ok(file) = open() else {
            self.watch.unreadable(path);
            return self.go_on();
        };
        let SearchBounds { terms, begun, .. } = self.watch;
        let room = self.room.min(terms.file_bytes);
        let is_over = || terms.why_over(begun).is_some();
        let mut reader = Watched::new(file, room, &is_over);
        let mut hits = Hits::new(&self.matcher, COUNTED - self.found.lines);
        let searched = self.searcher.search_reader(&self.matcher.0, &mut reader, &mut hits);
        self.room -= reader.read;
        let is_cut = reader.is_cut;
        if searched.is_err() && self.watch.is_over().is_none() {
            self.failed.push(visible_line(path).into_owned());
        }
        if is_cut && self.room > 0 {
            self.too_long.push(visible_line(path).into_owned());
        }
        self.cut |= is_cut || searched.is_err();
        if !hits.is_binary {
            self.found.take(path, hits);
        }
        self.go_on()
    }

    fn end(self, pattern: &str) -> (Detail, Vec<Warning>) {
        let Self { mut watch, found, kept_back, unnamed, failed, too_long, cut, .. } = self;
        let told = [
            (
                unnamed,
                "not searched: a name holds characters that no path may have here".to_owned(),
            ),
            (kept_back, "not searched: the policy keeps them from being read".to_owned()),
            (
                failed.len(),
                format!(
                    "not searched to the end: a line in it is longer than {LINE_BYTES} bytes, or it could not be read: {}",
                    listing(&failed)
                ),
            ),
            (
                too_long.len(),
                format!(
                    "searched only in the first {} bytes: {}",
                    watch.terms.file_bytes,
                    listing(&too_long)
                ),
            ),
        ];
        let told = told.into_iter().filter(|(files, _)| *files > 0);
        watch.told.extend(told.map(|(files, told)| format!("{} {told}", count(files, "file"))));
        if found.lines >= COUNTED {
            watch.told.push(format!("it was ended after {COUNTED} lines: ask for something rarer"));
        }
        let detail = Detail::Found {
            pattern: pattern.to_owned(),
            lines: found.lines,
            files: found.files,
            cut,
            hits: found.hits,
        };
        (detail, watch.warnings())
    }
}

#[cfg(test)]
mod tests;
