//! The versions of files that the model last saw, recorded from outcomes and outboxes, so that edits by line numbers apply
//! to the intended lines. The number of files is limited.
//!
//! A file that was shown completely or in part counts as seen in that version. After a change, only the lines shown of
//! the new version count as seen.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::protocol::{
    Detail, Excerpt, FileVersion, Operation, Outcome, RelPath, Step, StepContent,
};

/// The most files that are remembered. The file that was seen longest ago is forgotten first.
const MAX_FILES: usize = 256;
/// The most line ranges per file: as many as a search shows lines. The oldest range is forgotten first.
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
    version: FileVersion,
    /// The lines that count as seen; None for all lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lines: Option<LineRanges>,
    /// Lines that were shown only in part. They do not count as seen.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    cut: BTreeSet<usize>,
    /// A logical time, to find the file that was seen longest ago.
    at: u64,
}

impl FileVersions {
    /// Whether no file is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The version in which these lines (first to last) were last seen; None if the file is unknown.
    pub fn get(&self, path: &RelPath, lines: Range) -> Option<FileVersion> {
        let last = self.0.get(path)?;
        let is_seen = last.lines.as_ref().is_none_or(|seen| seen.contain(lines));
        let is_seen = is_seen && !last.cut.iter().any(|cut| (lines.0..=lines.1).contains(cut));
        Some(if is_seen { last.version.clone() } else { FileVersion::outdated() })
    }

    /// Records that the whole file was shown, or is known for another reason.
    pub fn record(&mut self, path: RelPath, version: FileVersion) {
        self.insert(path, LastSeen { version, lines: None, cut: BTreeSet::new(), at: 0 });
    }

    /// Records that these ranges of lines were shown.
    pub fn record_lines(&mut self, path: &RelPath, now: FileVersion, shown: &[Range]) {
        let mut last = match self.0.remove(path) {
            Some(last) if last.version == now || now.may_be(&last.version) => last,
            known => {
                let lines = known.map(|_| LineRanges::default());
                LastSeen { version: now, lines, cut: BTreeSet::new(), at: 0 }
            }
        };
        last.lines = last.lines.map(|lines| lines.with(shown));
        last.cut.retain(|cut| !shown.iter().any(|(first, end)| (first..=end).contains(&cut)));
        self.insert(path.clone(), last);
    }

    /// Records that only a part of this line was shown, in the last seen version.
    pub fn record_cut(&mut self, path: &RelPath, line: usize) {
        self.0.get_mut(path).into_iter().for_each(|last| last.cut.extend([line]));
    }

    /// Records single lines, as a search shows them. If the table is full, this adds no file.
    pub fn record_search(&mut self, path: &RelPath, now: FileVersion, lines: &[(usize, usize)]) {
        if self.0.len() < MAX_FILES || self.0.contains_key(path) {
            self.record_lines(path, now, lines);
        }
    }

    fn next_time(&self) -> u64 {
        self.0.values().map(|last| last.at + 1).max().unwrap_or_default()
    }

    fn insert(&mut self, path: RelPath, last: LastSeen) {
        let at = self.next_time();
        self.0.insert(path, LastSeen { at, ..last });
        if self.0.len() > MAX_FILES
            && let Some((oldest, _)) = self.0.iter().min_by_key(|(_, last)| last.at)
        {
            let oldest = oldest.clone();
            self.0.remove(&oldest);
        }
    }

    /// Forgets the recorded lines of a file, since they were not shown after all.
    pub fn forget_newer(&mut self, path: &RelPath) {
        if let Some(lines) = self.0.get_mut(path).and_then(|last| last.lines.as_mut()) {
            lines.0.clear();
        }
    }

    /// Forgets the excerpts of these outcomes, since they were not shown after all.
    pub fn forget_excerpts(&mut self, outcomes: &[Outcome]) {
        let shown = outcomes.iter().filter_map(|outcome| outcome.detail.shown_of());
        shown.for_each(|(path, _)| self.forget_newer(path));
    }

    /// Marks files that may have changed. The model must see them again before it edits them. Marks displace no file.
    pub fn mark_outdated(&mut self, paths: impl Iterator<Item = RelPath>) {
        let (known, unknown): (Vec<_>, Vec<_>) = paths.partition(|path| self.0.contains_key(path));
        let room = MAX_FILES - self.0.len().min(MAX_FILES);
        for path in unknown.into_iter().take(room).chain(known) {
            self.record(path, FileVersion::outdated());
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

    /// Applies the effect of a step, since later steps of the same reply refer to the file after this step.
    pub fn apply(&mut self, step: &Step, outcome: &Outcome) {
        let StepContent::Operation(operation) = &step.asks else { return };
        match (operation, &outcome.detail) {
            (Operation::Create { content, .. }, Detail::Created { path, .. }) => {
                self.record(path.clone(), FileVersion::whole(content.as_bytes()));
            }
            (_, Detail::Edited { path, .. } | Detail::Replaced { path, .. }) => {
                self.edit(path, &outcome.detail);
            }
            (_, Detail::Deleted { path }) => drop(self.0.remove(path)),
            (_, Detail::Moved { path, to, .. }) => self.rename(path, to),
            _ => {}
        }
    }

    /// Applies an edit. If it changed the version that the model saw, the same lines of the new version count as seen.
    /// Otherwise the file had changed before, and only the lines shown with the edit count.
    fn edit(&mut self, path: &RelPath, detail: &Detail) {
        let Some(revision) = detail.revision() else { return drop(self.0.remove(path)) };
        let (at, after) = (self.next_time(), revision.after.clone());
        let Some(last) = self.0.get_mut(path) else { return self.record(path.clone(), after) };
        if !last.version.fits(&revision.before) {
            return;
        }
        (last.version, last.at) = (after, at);
        // Later lines count as seen under their new numbers.
        last.cut.retain(|cut| revision.excerpt.lines.first().is_some_and(|(first, _)| cut < first));
        let Some(seen) = &mut last.lines else { return };
        match (detail, revision.excerpt.lines.first()) {
            (Detail::Edited { lines, inserted, .. }, _) => seen.replace(*lines, *inserted),
            // If all changed places are shown, the lines above the first one are unchanged.
            (_, Some((first, _))) if revision.excerpt.more == 0 => seen.truncate(*first),
            _ => seen.0.clear(),
        }
    }

    /// Records that the excerpt of an outcome is shown. A shortened line does not count as seen.
    pub fn record_excerpt(&mut self, outcome: &Outcome) {
        let detail = &outcome.detail;
        if let (Some(excerpt), Some((path, now))) = (detail.excerpt(), detail.shown_of()) {
            let whole = excerpt.lines.iter().filter(|(_, text)| !Excerpt::is_cut(text));
            let lines: Vec<Range> = whole.map(|(number, _)| (*number, *number)).collect();
            self.record_lines(path, now.clone(), &lines);
        }
    }
}

/// Ranges of lines of one file, newest last. Ranges neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct LineRanges(Vec<Range>);

impl LineRanges {
    fn with(mut self, ranges: &[Range]) -> Self {
        ranges.iter().for_each(|range| self.insert(*range));
        self
    }

    fn contain(&self, (first, last): Range) -> bool {
        first <= last && self.0.iter().any(|(begin, end)| *begin <= first && last <= *end)
    }

    /// Inserts a range, merged with those that it touches. An empty range is ignored.
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

    /// Removes this line and all lines after it.
    fn truncate(&mut self, line: usize) {
        self.0.retain(|(begin, _)| *begin < line);
        self.0.iter_mut().for_each(|(_, end)| *end = (*end).min(line.saturating_sub(1)));
    }

    /// Replaces these lines by `inserted` new ones and moves later lines. A range with old lines includes the new ones.
    fn replace(&mut self, (first, last): Range, inserted: usize) {
        let moved = |line: usize| line.saturating_add(inserted).saturating_sub(last + 1 - first);
        let after = |(begin, end): Range| match (begin, end) {
            (begin, end) if end < first => (begin, end),
            (begin, end) if begin > last => (moved(begin), moved(end)),
            (begin, end) => (begin.min(first), moved(end.max(last))),
        };
        let ranges = std::mem::take(&mut self.0).into_iter().map(after);
        ranges.for_each(|range| self.insert(range));
    }
}

#[cfg(test)]
mod tests;
