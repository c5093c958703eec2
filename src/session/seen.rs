//! What the LLM last saw of files: a bounded memory, taken in from outcomes and from what outboxes
//! show. A file that is not in it is one that it never saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::{Asks, Detail, Fresh, Operation, Outcome, RelPath, Seen, Step};

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
    /// What was seen later has a higher number.
    at: u64,
}

impl SeenFiles {
    /// Whether nothing was seen yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a file was like when it was last seen; None where it never was, or that was long ago.
    pub fn get(&self, path: &RelPath) -> Option<&Seen> {
        self.0.get(path).map(|sight| &sight.seen)
    }

    /// A file is shown, in part at least.
    pub fn see(&mut self, path: RelPath, seen: Seen) {
        let at = self.0.values().map(|sight| sight.at + 1).max().unwrap_or_default();
        self.0.insert(path, Sight { seen, at });
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

    /// These files may be others than any that was seen: nothing goes by their lines before they are
    /// seen again. Of more than can be remembered, those that were seen count, and the first others.
    pub fn doubt(&mut self, paths: impl Iterator<Item = RelPath>) {
        let mut unseen = Vec::new();
        for path in paths {
            match self.0.get_mut(&path) {
                Some(sight) => sight.seen = Seen::outdated(),
                None if unseen.len() < REMEMBERED / 2 => unseen.push(path),
                None => {}
            }
        }
        unseen.into_iter().for_each(|path| self.see(path, Seen::outdated()));
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
                match outcome.detail.revision() {
                    // Of a file that had changed before, an edit by search changes only a part.
                    Some(revision)
                        if self.get(path).is_some_and(|seen| !seen.fits(&revision.before)) => {}
                    Some(revision) => self.see(path.clone(), revision.after.clone()),
                    None => self.forget(path),
                }
            }
            (_, Detail::Deleted { path }) => self.forget(path),
            (_, Detail::Moved { path, to, .. }) => self.carry_over(path, to),
            _ => {}
        }
    }

    /// What is seen once the outcomes that were taken in are told. Lines that were shown as they are now
    /// count, unless something was changed there afterwards.
    #[must_use]
    pub fn told(mut self, outcomes: &[Outcome]) -> Self {
        let mut fresh: BTreeMap<&RelPath, &Fresh> = BTreeMap::new();
        for outcome in outcomes {
            match &outcome.detail {
                Detail::Failed(failure) => {
                    fresh.extend(failure.fresh.as_deref().map(|fresh| (&fresh.path, fresh)));
                }
                Detail::Created { path, .. }
                | Detail::Edited { path, .. }
                | Detail::Replaced { path, .. }
                | Detail::Deleted { path }
                | Detail::Moved { path, .. } => drop(fresh.remove(path)),
                _ => {}
            }
        }
        for Fresh { path, seen: now } in fresh.into_values() {
            self.see(path.clone(), now.clone());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Change, Excerpt, Existing, Failure, Revision};

    fn path(text: &str) -> RelPath {
        RelPath::parse(text).unwrap()
    }

    fn seen(files: &[(&str, &str)]) -> SeenFiles {
        let mut all = SeenFiles::default();
        files.iter().for_each(|(at, text)| all.see(path(at), Seen::whole(text.as_bytes())));
        all
    }

    /// An edit by search of `a`, and what it came to.
    fn edit(before: &str, after: &str) -> (Operation, Detail) {
        let (before, after) = (Seen::whole(before.as_bytes()), Seen::whole(after.as_bytes()));
        let revision = Revision { before, after, excerpt: Excerpt::default(), loosely: vec![] };
        let revision = Some(Box::new(revision));
        let change = Change::Once(Vec::new());
        let detail = Detail::Replaced { path: path("a"), edits: 1, revision };
        (Operation::Edit { path: path("a"), change }, detail)
    }

    /// An edit by lines that was refused, since `a` is this now.
    fn refused(now: &str) -> (Operation, Detail) {
        let fresh = Fresh { path: path("a"), seen: Seen::whole(now.as_bytes()) };
        let failure = Failure { fresh: Some(Box::new(fresh)), ..Failure::execution("x") };
        let change = Change::Lines { start: 1, end: 1, with: String::new(), seen: None };
        (Operation::Edit { path: path("a"), change }, failure.into())
    }

    fn create(text: &str) -> (Operation, Detail) {
        let (content, existing) = (text.into(), Existing::Replace);
        let detail = Detail::Created { path: path("a"), bytes: 1, replaced: true };
        (Operation::Create { path: path("a"), content, existing }, detail)
    }

    /// What is known of `a` after a reply, where it was seen as `old`.
    fn after(old: Option<&str>, came_to: Vec<(Operation, Detail)>) -> Option<Seen> {
        let old: Vec<_> = old.iter().map(|old| ("a", *old)).collect();
        let mut seen = seen(&old);
        let mut outcomes = Vec::new();
        for (step, outcome) in came_to.into_iter().map(step) {
            seen.take_in(&step, &outcome);
            outcomes.push(outcome);
        }
        seen.told(&outcomes).get(&path("a")).cloned()
    }

    fn step((operation, detail): (Operation, Detail)) -> (Step, Outcome) {
        let (warnings, asked) = (Vec::new(), None);
        let asks = Asks::Operation(operation);
        let step = Step { line: 1, asks, ends: false, warnings, asked };
        let outcome = Outcome::of(&step, detail);
        (step, outcome)
    }

    #[test]
    fn what_was_written_is_seen_and_what_is_gone_forgotten() {
        let whole = |text: &str| Some(Seen::whole(text.as_bytes()));
        assert_eq!(after(None, vec![create("1")]), whole("1"));
        assert_eq!(after(None, vec![edit("1", "2")]), whole("2"));
        assert_eq!(after(Some("1"), vec![edit("1", "2"), edit("2", "3")]), whole("3"));
        let delete =
            || (Operation::Delete { path: path("a") }, Detail::Deleted { path: path("a") });
        assert_eq!(after(Some("1"), vec![delete()]), None);
        // Of an edit of an older version nothing is known but that it was made.
        let (operation, _) = edit("1", "2");
        let detail = Detail::Replaced { path: path("a"), edits: 1, revision: None };
        assert_eq!(after(Some("1"), vec![(operation, detail)]), None);
    }

    #[test]
    fn a_file_that_had_changed_is_not_seen_for_an_edit_by_search() {
        let whole = |text: &str| Some(Seen::whole(text.as_bytes()));
        assert_eq!(after(Some("1"), vec![edit("x", "y")]), whole("1"));
        assert_eq!(after(Some("1"), vec![edit("x", "y"), create("2")]), whole("2"));
    }

    #[test]
    fn fresh_lines_count_when_they_are_told_and_nothing_came_after_them() {
        let whole = |text: &str| Some(Seen::whole(text.as_bytes()));
        assert_eq!(after(Some("1"), vec![refused("x")]), whole("x"));
        assert_eq!(after(Some("1"), vec![refused("x"), refused("y")]), whole("y"));
        assert_eq!(after(Some("1"), vec![refused("x"), edit("x", "y")]), whole("1"));
        assert_eq!(after(Some("1"), vec![edit("x", "y"), refused("y")]), whole("y"));
        let mut within = seen(&[("a", "1")]);
        let (step, outcome) = step(refused("x"));
        within.take_in(&step, &outcome);
        assert_eq!(within, seen(&[("a", "1")]));
    }

    #[test]
    fn what_is_moved_is_still_seen() {
        let mut all = seen(&[("f/a", "1"), ("f/b/c", "2"), ("fa", "3"), ("g/a", "old")]);
        all.carry_over(&path("f"), &path("g"));
        let paths: Vec<&str> = all.0.keys().map(RelPath::as_str).collect();
        assert_eq!(paths, ["fa", "g/a", "g/b/c"]);
        assert_eq!(all.get(&path("g/a")), Some(&Seen::whole(b"1")));
        all.carry_over(&path("fa"), &path("x"));
        assert!(all.get(&path("fa")).is_none() && all.get(&path("x")).is_some());
    }

    #[test]
    fn what_is_in_doubt_is_like_nothing_that_stands_there() {
        let mut all = seen(&[("a", "1"), ("b", "2")]);
        let many = (0..REMEMBERED).map(|n| path(&format!("n{n}")));
        all.doubt(many.chain([path("a")]));
        let a = all.get(&path("a")).unwrap();
        assert!(!a.is(b"1") && !a.is(b"") && !a.fits(&Seen::whole(b"1")));
        assert!(all.get(&path("b")).unwrap().is(b"2"));
        assert!(all.get(&path("n0")).is_some() && all.0.len() == REMEMBERED / 2 + 2);
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut all = SeenFiles::default();
        for n in 0..REMEMBERED + 2 {
            all.see(path(&format!("{n}")), Seen::whole(b""));
            all.see(path("0"), Seen::whole(b""));
        }
        assert_eq!(all.0.len(), REMEMBERED);
        assert!(all.get(&path("0")).is_some() && all.get(&path("1")).is_none());
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<SeenFiles>(&json).unwrap(), all);
    }
}
