//! What the LLM last saw of files: a bounded memory, taken in from outcomes and from what outboxes
//! show. A file that is not in it is one that it never saw.
//!
//! A file that was seen, whole or in part, counts as seen as long as it stays as it was then. Once it is
//! another and a part of that is shown (by `READ_FILE`, by `SEARCH`, with a result), only these lines are known as they are now; of all others what
//! was seen before is what counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ranges::{Range, Ranges};
use crate::protocol::{Asks, Detail, Excerpt, Operation, Outcome, RelPath, Seen, Step};

/// So many files are remembered; the one that was seen longest ago is forgotten first.
const REMEMBERED: usize = 256;

/// Files by where they really stand, as they were last seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeenFiles(BTreeMap<RelPath, Sight>);

/// How and when a file was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Sight {
    #[serde(flatten)]
    seen: Seen,
    /// What was seen of it later, when it was another already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    newer: Option<Newer>,
    /// What was seen later has a higher number.
    at: u64,
}

/// Some lines of a file as they were later than the whole was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Newer {
    #[serde(flatten)]
    seen: Seen,
    lines: Ranges,
}

impl Sight {
    /// These lines are shown of the file as it is `now`.
    fn see_lines(&mut self, now: Seen, shown: &[Range]) {
        if self.seen == now || now.may_be(&self.seen) {
            // What was seen of these in another state is out of date.
            if let Some(newer) = &mut self.newer {
                shown.iter().for_each(|range| newer.lines.take_out(*range));
            }
        } else if let Some(newer) = self.newer.as_mut().filter(|newer| newer.seen == now) {
            shown.iter().for_each(|range| newer.lines.put_in(*range));
        } else {
            self.newer = Some(Newer { seen: now, lines: Ranges::of(shown) });
        }
        self.newer.take_if(|newer| newer.lines.is_empty());
    }

    /// What is known of lines that were seen newly, where that which was `before` became `after` by an
    /// edit; `lines` are those that were replaced, and by how many, where that is known. Of an edit by
    /// search the lines above the first that is shown with it are as they were.
    fn edit_newer(&mut self, after: &Seen, lines: Option<(Range, usize)>, excerpt: &Excerpt) {
        let Some(newer) = &mut self.newer else { return };
        newer.seen = after.clone();
        match (lines, excerpt.lines.first()) {
            (Some((replaced, inserted)), _) => newer.lines.replace(replaced, inserted),
            // Of more places than are shown any may be above them.
            (None, Some((first, _))) if excerpt.more == 0 => {
                newer.lines.take_out((*first, usize::MAX));
            }
            (None, _) => newer.lines = Ranges::default(),
        }
        self.newer.take_if(|newer| newer.lines.is_empty());
    }
}

impl SeenFiles {
    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a file was like when these of its lines, the first and the last, were last seen; None where
    /// it never was, or that was long ago.
    pub fn get(&self, path: &RelPath, lines: (usize, usize)) -> Option<&Seen> {
        let sight = self.0.get(path)?;
        let newer = sight.newer.as_ref().filter(|newer| newer.lines.hold(lines));
        Some(newer.map_or(&sight.seen, |newer| &newer.seen))
    }

    /// A file is shown whole, or is known for another reason.
    pub fn see(&mut self, path: RelPath, seen: Seen) {
        let at = self.next();
        self.put(path, Sight { seen, newer: None, at });
    }

    /// These lines of a file are shown, each the first and the last of a range.
    pub fn see_lines(&mut self, path: &RelPath, now: Seen, lines: &[(usize, usize)]) {
        let at = self.next();
        let sight = match self.0.remove(path) {
            None => Sight { seen: now, newer: None, at },
            Some(mut sight) => {
                sight.see_lines(now, lines);
                Sight { at, ..sight }
            }
        };
        self.put(path.clone(), sight);
    }

    /// The same of lines that stand by themselves in what was told. They tell little of a file, so none
    /// that was seen is forgotten for one that was not.
    pub fn see_lone(&mut self, path: &RelPath, now: Seen, lines: &[(usize, usize)]) {
        if self.0.len() < REMEMBERED || self.0.contains_key(path) {
            self.see_lines(path, now, Ranges::of(lines).all());
        }
    }

    /// The number of what is seen now.
    fn next(&self) -> u64 {
        self.0.values().map(|sight| sight.at + 1).max().unwrap_or_default()
    }

    fn put(&mut self, path: RelPath, sight: Sight) {
        self.0.insert(path, sight);
        if self.0.len() > REMEMBERED
            && let Some(oldest) = self.0.iter().min_by_key(|(_, sight)| sight.at)
        {
            let oldest = oldest.0.clone();
            self.0.remove(&oldest);
        }
    }

    /// A file is gone, or what stands there is not what was seen.
    pub fn forget(&mut self, path: &RelPath) {
        self.0.remove(path);
    }

    /// What was seen of a file after it had changed was not shown after all.
    pub fn forget_newer(&mut self, path: &RelPath) {
        if let Some(sight) = self.0.get_mut(path) {
            sight.newer = None;
        }
    }

    /// These files may be others than any that was seen: nothing goes by their lines before they are
    /// seen again. None is forgotten for that: those that were seen count, and as many of the others as
    /// there is room for, the first ones. What was seen is the last to be forgotten after it.
    pub fn doubt(&mut self, paths: impl Iterator<Item = RelPath>) {
        let mut known = Vec::new();
        for path in paths {
            if self.0.contains_key(&path) {
                known.push(path);
            } else if self.0.len() < REMEMBERED {
                self.see(path, Seen::outdated());
            }
        }
        known.into_iter().for_each(|path| self.see(path, Seen::outdated()));
    }

    /// A file or a folder stands elsewhere now.
    pub fn carry_over(&mut self, from: &RelPath, to: &RelPath) {
        self.0.retain(|path, _| !path.is_within(to));
        let moved: Vec<RelPath> =
            self.0.keys().filter(|path| path.is_within(from)).cloned().collect();
        for path in moved {
            let place = format!("{to}{}", &path.as_str()[from.as_str().len()..]);
            if let (Some(sight), Ok(place)) = (self.0.remove(&path), RelPath::parse(&place)) {
                self.0.insert(place, sight);
            }
        }
    }

    /// Takes in what a step came to, before anybody is told of it: what was asked for after it in the same
    /// reply meant the file as this left it.
    pub fn take_in(&mut self, step: &Step, outcome: &Outcome) {
        let Asks::Operation(operation) = &step.asks else { return };
        match (operation, &outcome.detail) {
            (Operation::Create { content, .. }, Detail::Created { path, .. }) => {
                self.see(path.clone(), Seen::whole(content.as_bytes()));
            }
            (_, Detail::Edited { path, .. } | Detail::Replaced { path, .. }) => {
                self.edit(path, &outcome.detail);
            }
            (_, Detail::Deleted { path }) => self.forget(path),
            (_, Detail::Moved { path, to, .. }) => self.carry_over(path, to),
            _ => {}
        }
    }

    /// A file was edited as whoever asked for it wished, and is known as far as it was before.
    fn edit(&mut self, path: &RelPath, detail: &Detail) {
        let Some(revision) = detail.revision() else { return self.forget(path) };
        let (before, after) = (&revision.before, &revision.after);
        let lines = match detail {
            Detail::Edited { lines, inserted, .. } => Some((*lines, *inserted)),
            _ => None,
        };
        let at = self.next();
        let Some(sight) = self.0.get_mut(path) else {
            return self.see(path.clone(), after.clone());
        };
        let is_newer = sight.newer.as_ref().is_some_and(|newer| newer.seen.fits(before));
        if sight.seen == *before || !is_newer && sight.seen.fits(before) {
            // Lines that were seen in yet another state still are not known in this.
            (sight.seen, sight.at) = (after.clone(), at);
        } else if is_newer {
            sight.edit_newer(after, lines, &revision.excerpt);
        }
    }

    /// Takes in what is shown with an outcome that was taken in: lines of its file as they are then. Of
    /// a line that is shown cut nobody knows the rest.
    pub fn take_in_shown(&mut self, outcome: &Outcome) {
        let detail = &outcome.detail;
        let (Some(excerpt), Some((path, now))) = (detail.excerpt(), detail.shown_of()) else {
            return;
        };
        let mut lines = Ranges::default();
        let whole = excerpt.lines.iter().filter(|(_, text)| !Excerpt::is_cut(text));
        whole.for_each(|(number, _)| lines.put_in((*number, *number)));
        self.see_lines(path, now.clone(), lines.all());
    }

    /// What was shown with these outcomes was not, since there was no room for it.
    pub fn forget_shown(&mut self, outcomes: &[Outcome]) {
        outcomes
            .iter()
            .filter_map(|outcome| outcome.detail.shown_of())
            .for_each(|(path, _)| self.forget_newer(path));
    }
}

#[cfg(test)]
mod tests;
