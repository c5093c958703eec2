//! The versions of files that the model last saw, learnt from outcomes and outboxes, so that edits by line
//! numbers apply to the lines that it meant. The number of files is limited.
//!
//! A file that was seen, in whole or in part, counts as seen in that version. If it changes and a part of
//! the new version is shown, only the lines of that part count as seen in the new version.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::{Asks, Detail, Excerpt, Operation, Outcome, RelPath, Seen, Step};

/// How many files are remembered. The one that was seen longest ago is forgotten first.
const MAX_FILES: usize = 256;
/// How many ranges of a file are remembered: as many as one search shows lines. The oldest is forgotten
/// first.
const MAX_RANGES: usize = 200;

/// The first and the last line of a range, counted from 1.
type Range = (usize, usize);

/// The last seen versions of files, by path with links resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileVersions(BTreeMap<RelPath, LastSeen>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LastSeen {
    #[serde(flatten)]
    version: Seen,
    /// A newer version of which only some lines were seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newer: Option<Newer>,
    /// A logical time, to find the file that was seen longest ago.
    at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Newer {
    #[serde(flatten)]
    version: Seen,
    lines: LineRanges,
}

impl LastSeen {
    fn record_lines(&mut self, now: Seen, shown: &[Range]) {
        if self.version == now || now.may_be(&self.version) {
            // Another version of these lines is out of date.
            if let Some(newer) = &mut self.newer {
                shown.iter().for_each(|range| newer.lines.remove(*range));
            }
        } else if let Some(newer) = self.newer.as_mut().filter(|newer| newer.version == now) {
            shown.iter().for_each(|range| newer.lines.insert(*range));
        } else {
            self.newer = Some(Newer { version: now, lines: shown.iter().copied().collect() });
        }
        self.newer.take_if(|newer| newer.lines.0.is_empty());
    }

    /// An edit made `after` of the newer version; `lines` are those that it replaced, and by how many, if
    /// it was an edit by line numbers.
    fn edit_newer(&mut self, after: &Seen, lines: Option<(Range, usize)>, excerpt: &Excerpt) {
        let Some(newer) = &mut self.newer else { return };
        newer.version = after.clone();
        match (lines, excerpt.lines.first()) {
            (Some((replaced, inserted)), _) => newer.lines.replace(replaced, inserted),
            // Above the first changed place the lines are as before, if all places are shown.
            (None, Some((first, _))) if excerpt.more == 0 => {
                newer.lines.remove((*first, usize::MAX));
            }
            (None, _) => newer.lines = LineRanges::default(),
        }
        self.newer.take_if(|newer| newer.lines.0.is_empty());
    }
}

impl FileVersions {
    /// Whether no file is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The version in which these lines, the first and the last, were last seen; None where the file is not
    /// remembered.
    pub fn get(&self, path: &RelPath, lines: (usize, usize)) -> Option<&Seen> {
        let last = self.0.get(path)?;
        let newer = last.newer.as_ref().filter(|newer| newer.lines.contain(lines));
        Some(newer.map_or(&last.version, |newer| &newer.version))
    }

    /// The whole file was shown, or is known for another reason.
    pub fn record(&mut self, path: RelPath, version: Seen) {
        let at = self.next_time();
        self.put(path, LastSeen { version, newer: None, at });
    }

    /// These ranges of lines were shown.
    pub fn record_lines(&mut self, path: &RelPath, now: Seen, lines: &[(usize, usize)]) {
        let at = self.next_time();
        let last = match self.0.remove(path) {
            None => LastSeen { version: now, newer: None, at },
            Some(mut last) => {
                last.record_lines(now, lines);
                LastSeen { at, ..last }
            }
        };
        self.put(path.clone(), last);
    }

    /// Single lines were shown, as by a search. They say little about a file, so no other file is forgotten
    /// for it.
    pub fn record_search(&mut self, path: &RelPath, now: Seen, lines: &[(usize, usize)]) {
        if self.0.len() < MAX_FILES || self.0.contains_key(path) {
            self.record_lines(path, now, lines);
        }
    }

    fn next_time(&self) -> u64 {
        self.0.values().map(|last| last.at + 1).max().unwrap_or_default()
    }

    fn put(&mut self, path: RelPath, last: LastSeen) {
        self.0.insert(path, last);
        if self.0.len() > MAX_FILES
            && let Some((oldest, _)) = self.0.iter().min_by_key(|(_, last)| last.at)
        {
            let oldest = oldest.clone();
            self.0.remove(&oldest);
        }
    }

    /// Lines of a newer version were not shown after all.
    pub fn forget_newer(&mut self, path: &RelPath) {
        if let Some(last) = self.0.get_mut(path) {
            last.newer = None;
        }
    }

    /// The excerpts of these outcomes were not shown after all.
    pub fn forget_excerpts(&mut self, outcomes: &[Outcome]) {
        let shown = outcomes.iter().filter_map(|outcome| outcome.detail.shown_of());
        shown.for_each(|(path, _)| self.forget_newer(path));
    }

    /// These files may have changed, so that an edit needs them to be shown again. Remembered files come
    /// first: they are the last to be forgotten, and are not forgotten for the others.
    pub fn mark_outdated(&mut self, paths: impl Iterator<Item = RelPath>) {
        let (known, unknown): (Vec<_>, Vec<_>) = paths.partition(|path| self.0.contains_key(path));
        let room = MAX_FILES - self.0.len().min(MAX_FILES);
        for path in unknown.into_iter().take(room).chain(known) {
            self.record(path, Seen::outdated());
        }
    }

    fn rename(&mut self, from: &RelPath, to: &RelPath) {
        self.0.retain(|path, _| !path.is_within(to));
        let moved: Vec<RelPath> =
            self.0.keys().filter(|path| path.is_within(from)).cloned().collect();
        for path in moved {
            let place = format!("{to}{}", &path.as_str()[from.as_str().len()..]);
            if let (Some(last), Ok(place)) = (self.0.remove(&path), RelPath::parse(&place)) {
                self.0.insert(place, last);
            }
        }
    }

    /// Applies the effect of a step: later steps of the same reply meant the file as this step left it.
    pub fn apply(&mut self, step: &Step, outcome: &Outcome) {
        let Asks::Operation(operation) = &step.asks else { return };
        match (operation, &outcome.detail) {
            (Operation::Create { content, .. }, Detail::Created { path, .. }) => {
                self.record(path.clone(), Seen::whole(content.as_bytes()));
            }
            (_, Detail::Edited { path, .. } | Detail::Replaced { path, .. }) => {
                self.edit(path, &outcome.detail);
            }
            (_, Detail::Deleted { path }) => drop(self.0.remove(path)),
            (_, Detail::Moved { path, to, .. }) => self.rename(path, to),
            _ => {}
        }
    }

    fn edit(&mut self, path: &RelPath, detail: &Detail) {
        let Some(revision) = detail.revision() else { return drop(self.0.remove(path)) };
        let (before, after) = (&revision.before, &revision.after);
        let lines = match detail {
            Detail::Edited { lines, inserted, .. } => Some((*lines, *inserted)),
            _ => None,
        };
        let at = self.next_time();
        let Some(last) = self.0.get_mut(path) else {
            return self.record(path.clone(), after.clone());
        };
        let is_newer = last.newer.as_ref().is_some_and(|newer| newer.version.fits(before));
        if last.version == *before || !is_newer && last.version.fits(before) {
            (last.version, last.at) = (after.clone(), at);
        } else if is_newer {
            last.edit_newer(after, lines, &revision.excerpt);
        }
    }

    /// The excerpt of an outcome is shown. The rest of a shortened line stays unknown.
    pub fn record_excerpt(&mut self, outcome: &Outcome) {
        let detail = &outcome.detail;
        if let (Some(excerpt), Some((path, now))) = (detail.excerpt(), detail.shown_of()) {
            let whole = excerpt.lines.iter().filter(|(_, text)| !Excerpt::is_cut(text));
            let lines: Vec<Range> = whole.map(|(number, _)| (*number, *number)).collect();
            self.record_lines(path, now.clone(), &lines);
        }
    }
}

/// Ranges of lines of one file, the newest last. No two of them touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct LineRanges(Vec<Range>);

impl FromIterator<Range> for LineRanges {
    fn from_iter<I: IntoIterator<Item = Range>>(ranges: I) -> Self {
        let mut all = Self::default();
        ranges.into_iter().for_each(|range| all.insert(range));
        all
    }
}

impl LineRanges {
    fn contain(&self, (first, last): Range) -> bool {
        first <= last && self.0.iter().any(|(begin, end)| *begin <= first && last <= *end)
    }

    /// Inserts a range, merged with those that it touches. An empty one is ignored.
    fn insert(&mut self, (mut first, mut last): Range) {
        if first == 0 || first > last {
            return;
        }
        self.0.retain(|(begin, end)| {
            let touches = *begin <= last.saturating_add(1) && first <= end.saturating_add(1);
            if touches {
                (first, last) = (first.min(*begin), last.max(*end));
            }
            !touches
        });
        self.0.push((first, last));
        if self.0.len() > MAX_RANGES {
            self.0.remove(0);
        }
    }

    fn remove(&mut self, (first, last): Range) {
        let rest = |(begin, end): Range| {
            let before = (begin, end.min(first.saturating_sub(1)));
            let after = (begin.max(last.saturating_add(1)), end);
            [before, after]
        };
        *self = std::mem::take(&mut self.0).into_iter().flat_map(rest).collect();
    }

    /// Replaces these lines by `inserted` others: lines after them move, and a range that contained some
    /// of them contains the others.
    fn replace(&mut self, (first, last): Range, inserted: usize) {
        let moved = |line: usize| line.saturating_add(inserted).saturating_sub(last + 1 - first);
        let after = |(begin, end): Range| match (begin, end) {
            (begin, end) if end < first => (begin, end),
            (begin, end) if begin > last => (moved(begin), moved(end)),
            (begin, end) => (begin.min(first), moved(end.max(last))),
        };
        *self = std::mem::take(&mut self.0).into_iter().map(after).collect();
    }
}

#[cfg(test)]
mod tests;
