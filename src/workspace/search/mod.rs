//! Lists the files below a folder and searches their lines for replies. The time, the bytes read and the lines shown
//! are limited.

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
use sink::{Hits, LimitedReader, Matcher, SearchHits};

/// The longest time that a listing or search may take.
const TIME: Duration = Duration::from_secs(10);
/// The most unreadable folders, and the most partly searched files, that a warning lists.
const NAMED: usize = 20;
/// A line longer than this ends the search of its file.
const LINE_BYTES: usize = 8 << 20;
/// The most matching lines that are counted.
const COUNTED: usize = 10_000;
/// The most lines that are shown, and the most bytes of these lines.
const SHOWN: usize = 200;
const SHOWN_BYTES: usize = 32 << 10;

/// Callbacks and limits of a listing or search. The limits for what is shown are constants.
#[derive(Clone, Copy)]
pub struct SearchOptions<'a> {
    /// Whether the lines of a file with this path and size may be shown.
    readable: &'a dyn Fn(&RelPath, u64) -> bool,
    /// Whether the person wants to stop.
    interrupted: &'a dyn Fn() -> bool,
    /// Whether too much time has passed since an instant.
    is_late: &'a dyn Fn(Instant) -> bool,
    /// The most files that are listed.
    files: usize,
    /// The most bytes of one file that are searched.
    file_bytes: u64,
    /// The most bytes of all files that are searched.
    all_bytes: u64,
}

impl<'a> SearchOptions<'a> {
    /// Uses the default limits. `readable` decides whether the lines of a file with this path and size may be shown,
    /// and `interrupted` reports whether the person wants to stop.
    pub const fn new(
        readable: &'a dyn Fn(&RelPath, u64) -> bool,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Self {
        let is_late = &|begun: Instant| begun.elapsed() > TIME;
        let (files, file_bytes, all_bytes) = (200_000, 64 << 20, 2 << 30);
        Self { readable, interrupted, is_late, files, file_bytes, all_bytes }
    }

    /// Why an activity that began at `begun` must stop; None to continue.
    fn stop_reason(&self, begun: Instant) -> Option<String> {
        if (self.interrupted)() {
            return Some("the user stopped it, so the result is incomplete".to_owned());
        }
        (self.is_late)(begun).then(|| stopped_after(&format!("{} s", TIME.as_secs())))
    }
}

/// The warning for a listing or search that reached a limit.
fn stopped_after(limit: &str) -> String {
    format!("it stopped after {limit}, so the result is incomplete: name a smaller folder")
}

/// Checks that a pattern is a valid regular expression.
///
/// # Errors
/// The pattern is invalid. The message is that of the regex crate.
pub fn check_pattern(pattern: &str) -> Result<(), Failure> {
    Matcher::new(pattern).map(drop)
}

/// The limits of a running listing or search, and the warnings about what it skipped.
struct SearchBounds<'a> {
    options: &'a SearchOptions<'a>,
    begun: Instant,
    warnings: Vec<String>,
    unreadable: Vec<String>,
}

impl<'a> SearchBounds<'a> {
    fn new(options: &'a SearchOptions<'a>) -> Self {
        Self { options, begun: Instant::now(), warnings: Vec::new(), unreadable: Vec::new() }
    }

    /// Why the listing or search must stop; None to continue.
    fn stop_reason(&self) -> Option<String> {
        self.options.stop_reason(self.begun)
    }

    fn into_warnings(self) -> Vec<Warning> {
        let Self { mut warnings, unreadable, .. } = self;
        if !unreadable.is_empty() {
            warnings.push(format!("cannot be read: {}", listing(&unreadable)));
        }
        warnings.into_iter().map(|text| Warning::new(WarningKind::Search, text)).collect()
    }

    fn add_unreadable(&mut self, path: &str) {
        self.unreadable.push(visible_line(path).into_owned());
    }
}

/// Quotes and joins the first paths, and gives the number of the others.
fn listing(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let mut named: Vec<String> = paths.iter().take(NAMED).map(|path| format!("'{path}'")).collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

impl Workspace {
    /// Lists the files below a folder, including ignored ones, or a single file.
    ///
    /// # Errors
    /// Nothing exists at the path, or it cannot be accessed.
    pub fn list_below(
        &self,
        path: Option<&RelPath>,
        options: &SearchOptions,
    ) -> Result<(Detail, Vec<Warning>), Failure> {
        let detail = |path: Option<RelPath>, files: usize, shown: String| Detail::Listed {
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
                return Ok((detail(Some(spot.real.clone()), 1, listed.line() + "\n"), Vec::new()));
            }
        };
        let (mut files, mut bounds) = (Vec::new(), SearchBounds::new(options));
        self.visit_below(&folder, &prefix, EntryFilter::All, &mut |visited| {
            match visited {
                Visited::File(file) => files.push((file.path.to_owned(), file.size, file.kind)),
                Visited::Unreadable(path) => bounds.add_unreadable(path),
                Visited::Folder(_) | Visited::OwnState => {}
            }
            let enough = (files.len() >= options.files)
                .then(|| stopped_after(&format!("{} files", options.files)));
            match enough.or_else(|| bounds.stop_reason()) {
                None => ControlFlow::Continue(()),
                Some(reason) => {
                    bounds.warnings.push(reason);
                    ControlFlow::Break(())
                }
            }
        });
        let real = RelPath::parse(prefix.trim_end_matches('/')).ok();
        let walk = Walk::from_files(files, Vec::new());
        let detail = detail(real, walk.files().len(), lines_of(&walk, prefix.len()));
        Ok((detail, bounds.into_warnings()))
    }

    /// Finds the lines that match a regular expression, in one file or in all files below a folder. Searches text files
    /// that are not ignored, and does not follow links.
    ///
    /// # Errors
    /// The pattern is invalid, nothing exists at the path, or the path cannot be accessed.
    pub fn search(
        &self,
        pattern: &str,
        path: Option<&RelPath>,
        options: &SearchOptions,
    ) -> Result<(Detail, Vec<Warning>), Failure> {
        let mut search = Search {
            matcher: Matcher::new(pattern)?,
            searcher: SearcherBuilder::new()
                .line_terminator(sink::line_end())
                .binary_detection(BinaryDetection::quit(0))
                .heap_limit(Some(LINE_BYTES))
                .line_number(true)
                .build(),
            bounds: SearchBounds::new(options),
            found: SearchHits::default(),
            room: options.all_bytes,
            denied: 0,
            unnamable: 0,
            failed: Vec::new(),
            too_long: Vec::new(),
            cut: false,
        };
        match self.list_root(path)? {
            ListRoot::Folder(folder, prefix) => {
                let is_git = prefix.split('/').any(|name| name.eq_ignore_ascii_case(".git"));
                let filter = if is_git { EntryFilter::All } else { EntryFilter::NotIgnored };
                self.visit_below(&folder, &prefix, filter, &mut |visited| search.visit(&visited));
            }
            ListRoot::File(spot) => {
                let found = spot.found.as_ref().ok_or_else(|| not_found(&spot.real))?;
                let (path, size) = (spot.real.as_str(), regular_size(&spot.real, found)?);
                let _ = search.file(path, size, || {
                    open_regular(&spot.folder, OsStr::new(&spot.name)).map(File::into_std)
                });
            }
        }
        Ok(search.finish(pattern))
    }
}

/// A running search.
struct Search<'a> {
    matcher: Matcher,
    searcher: Searcher,
    bounds: SearchBounds<'a>,
    found: SearchHits,
    /// How many more bytes may be searched.
    room: u64,
    /// The number of files that the policy does not allow to be read.
    denied: usize,
    /// The number of files whose names cannot appear in a path of a reply.
    unnamable: usize,
    /// The files that could not be read to the end.
    failed: Vec<String>,
    /// The files of which only the beginning was searched.
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
                self.bounds.add_unreadable(path);
                self.check_limits()
            }
            Visited::File(_) | Visited::Folder(_) | Visited::OwnState => self.check_limits(),
        }
    }

    /// Ends the search if a limit is reached.
    fn check_limits(&mut self) -> ControlFlow<()> {
        let reason = self.bounds.stop_reason().or_else(|| {
            let all = self.bounds.options.all_bytes;
            (self.room == 0).then(|| stopped_after(&format!("{all} bytes")))
        });
        if let Some(reason) = reason {
            self.bounds.warnings.push(reason);
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
            self.unnamable += 1;
            return self.check_limits();
        };
        if !(self.bounds.options.readable)(&real, size) {
            self.denied += 1;
            return self.check_limits();
        }
        let Ok(file) = open() else {
            self.bounds.add_unreadable(path);
            return self.check_limits();
        };
        let SearchBounds { options, begun, .. } = self.bounds;
        let room = self.room.min(options.file_bytes);
        let must_stop = || options.stop_reason(begun).is_some();
        let mut reader = LimitedReader::new(file, room, &must_stop);
        let mut hits = Hits::new(&self.matcher, COUNTED - self.found.lines);
        let searched = self.searcher.search_reader(&self.matcher.0, &mut reader, &mut hits);
        self.room -= reader.read;
        let is_cut = reader.is_cut;
        if searched.is_err() && self.bounds.stop_reason().is_none() {
            self.failed.push(visible_line(path).into_owned());
        }
        if is_cut && self.room > 0 {
            self.too_long.push(visible_line(path).into_owned());
        }
        self.cut |= is_cut || searched.is_err();
        if !hits.is_binary {
            self.found.add(path, hits);
        }
        self.check_limits()
    }

    fn finish(self, pattern: &str) -> (Detail, Vec<Warning>) {
        let Self { mut bounds, found, denied, unnamable, failed, too_long, cut, .. } = self;
        let skipped = [
            (unnamable, "not searched: operations cannot name the path".to_owned()),
            (denied, "not searched: the policy does not allow reading".to_owned()),
            (
                failed.len(),
                format!(
                    "not searched to the end: a line is longer than {LINE_BYTES} bytes, or reading failed: {}",
                    listing(&failed)
                ),
            ),
            (
                too_long.len(),
                format!(
                    "searched only in the first {} bytes: {}",
                    bounds.options.file_bytes,
                    listing(&too_long)
                ),
            ),
        ];
        let skipped = skipped.into_iter().filter(|(files, _)| *files > 0);
        let skipped = skipped.map(|(files, reason)| format!("{} {reason}", count(files, "file")));
        bounds.warnings.extend(skipped);
        if found.lines >= COUNTED {
            let text = format!("it stopped after {COUNTED} lines: use a more specific pattern");
            bounds.warnings.push(text);
        }
        let detail = Detail::Found {
            pattern: pattern.to_owned(),
            lines: found.lines,
            files: found.files,
            cut,
            hits: found.hits,
        };
        (detail, bounds.into_warnings())
    }
}

#[cfg(test)]
mod tests;
