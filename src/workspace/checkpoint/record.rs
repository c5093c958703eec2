//! What a turn changes, recorded around its operations.
//!
//! Before a file is made, changed, removed or moved, what stands there is kept. Before the first command all
//! of the workspace is scanned, and once more at the end. What the turn changed is what differs from
//! the first of these for each place; so a turn without commands needs no walk.
//!
//! Whatever goes wrong here stops nothing: the turn goes on, and cannot be taken back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ignored_changes::{IgnoredChange, IgnoredSnapshot};
use super::rules::KeptRules;
use super::scan::{Difference, ScanResult, now};
use super::tree::is_folder;
use super::{CachePosition, CheckpointStore, TreeChange, TreeEntry};
use crate::error::{Error, Result};
use crate::protocol::{FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::{ancestors, escaped, split};
use crate::workspace::walk::detailed::{IgnoreSource, ignores};
use crate::workspace::walk::{PlaceKind, Walk};

/// What must not be forgotten before an operation is carried out: all that it says is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointNote {
    /// What stood where something is about to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stood: Vec<(String, Option<TreeEntry>)>,
    /// What all of the workspace was like before the first command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) all: Option<CachePosition>,
    /// When that was looked at, as files get it for their times, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// What an operation is about to change after a command has run, and whether that had changed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) touched: Vec<(String, bool)>,
    /// What operations had left there before one more command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<(String, Option<TreeEntry>)>,
    /// Why nothing of this turn can be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

/// What a turn changed.
#[derive(Debug)]
pub struct TurnChanges {
    /// All that it changed, by path; else why that is not known.
    pub changes: Result<Vec<TreeChange>, String>,
    /// The rules that the rest of the turn is to go by, where it has stopped to ask.
    pub rules: Option<KeptRules>,
    /// What changed beside that while its commands ran and is not kept, since rules leave it out; as far as
    /// that is known.
    pub ignored: Vec<IgnoredChange>,
}

/// Records what one turn changes.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub(super) store: &'a mut CheckpointStore,
    /// What stood in each place before an operation first changed it, and whether that was before the first command.
    stood: BTreeMap<String, (Option<TreeEntry>, bool)>,
    all: Option<CachePosition>,
    /// When its first command was about to run, as files get it for their times.
    since: i64,
    /// Where operations changed something after the first command, and whether a command had changed it before.
    touched: BTreeMap<String, bool>,
    /// What they left there before the last command, where one has run since.
    left: BTreeMap<String, Option<TreeEntry>>,
    /// Where the person changed something after a hard stop within the turn. Where commands ran before it, nobody
    /// knows who changed what.
    external: BTreeSet<String>,
    is_mixed: bool,
    /// The rules that its first part left, where it had stopped to ask.
    rules: KeptRules,
    /// What was left out of the scan before the first command, where that is known, and after the last.
    ignored: [Option<IgnoredSnapshot>; 2],
    /// Where repositories were before the first command.
    repositories: Vec<String>,
    /// What commands changed, once they have all run.
    differences: Option<Vec<Difference>>,
    failed: Option<String>,
}

impl<'a> Recorder<'a> {
    /// The recorder of a turn that begins.
    pub fn new(store: &'a mut CheckpointStore) -> Self {
        store.clear_in_use();
        Self {
            store,
            stood: BTreeMap::new(),
            all: None,
            since: i64::MIN,
            touched: BTreeMap::new(),
            left: BTreeMap::new(),
            external: BTreeSet::new(),
            is_mixed: false,
            rules: KeptRules::default(),
            ignored: [None, None],
            repositories: Vec::new(),
            differences: None,
            failed: None,
        }
    }

    /// The same of a turn that is taken up again after a hard stop, of which all this was noted. `external` is where
    /// something else stands than its operations found or left.
    pub fn resumed(
        store: &'a mut CheckpointStore,
        noted: Vec<CheckpointNote>,
        external: &[RelPath],
    ) -> Self {
        let mut recorder = Self::new(store);
        recorder.external = external.iter().map(|path| escaped(path.as_str().as_bytes())).collect();
        recorder.is_mixed = noted.iter().any(|noted| noted.all.is_some());
        for CheckpointNote { stood, all, since, touched, left, failed } in noted {
            recorder.store.mark_in_use(stood.iter().filter_map(|(_, what)| what.as_ref()?.blob()));
            recorder.since = since.unwrap_or(recorder.since);
            if let Some(mark) = &all {
                match recorder.store.cache.load(Some(mark)) {
                    Ok(true) => recorder.all = all,
                    Ok(false) => recorder.fail("what the workspace was like before it is gone"),
                    Err(e) => recorder.fail(&e.to_string()),
                }
            }
            let is_early = recorder.all.is_none();
            for (path, what) in stood {
                recorder.stood.entry(path).or_insert((what, is_early));
            }
            touched.into_iter().for_each(|(path, changed)| recorder.touched(path, changed));
            for (path, what) in left {
                recorder.touched.entry(path.clone()).or_default();
                recorder.left.insert(path, what);
            }
            failed.iter().for_each(|why| recorder.fail(why));
        }
        recorder
    }

    /// The turn is the rest of one that had stopped to ask: it goes by the rules from before all of it.
    #[must_use]
    pub fn with_rules(mut self, rules: Result<KeptRules>) -> Self {
        match rules {
            Ok(rules) => self.rules = rules,
            Err(e) => self.fail(&e.to_string()),
        }
        self
    }

    fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| why.to_owned());
        self.store.discard_unsynced();
    }

    /// Why the turn cannot be taken back, if that is so already.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Files are about to change. Gives what is to be noted before they do.
    pub fn before_files<'e>(
        &mut self,
        workspace: &Workspace,
        effects: impl IntoIterator<Item = &'e FileEffect>,
    ) -> Option<CheckpointNote> {
        self.keep(|recorder, noted| {
            effects.into_iter().try_for_each(|effect| {
                let path = escaped(effect.path.as_str().as_bytes());
                recorder.keep_missing_above(workspace, &path, noted)?;
                recorder.touch(workspace, path, noted)
            })
        })
    }

    /// A file or a folder is about to be moved.
    pub fn before_move(
        &mut self,
        workspace: &Workspace,
        effect: &MoveEffect,
    ) -> Option<CheckpointNote> {
        let escaped = |path: &RelPath| escaped(path.as_str().as_bytes());
        let (from, to) = (escaped(&effect.from), escaped(&effect.to));
        self.keep(|recorder, noted| {
            recorder.keep_missing_above(workspace, &to, noted)?;
            let mut places = vec![from.clone()];
            if workspace.folder_at(&from).is_ok() {
                let below = workspace.below(&effect.from);
                let below = below.map_err(|failure| Error::undo(failure.reason))?;
                let all =
                    below.folders.into_iter().chain(below.files.into_iter().map(|(file, _)| file));
                let kept = all.filter(|rest| rest.components().all(|name| name != ".git"));
                places.extend(kept.map(|rest| format!("{from}/{}", escaped(&rest))));
            }
            for place in places {
                let new = format!("{to}{}", &place[from.len()..]);
                recorder.touch(workspace, place, noted)?;
                recorder.touch(workspace, new, noted)?;
            }
            Ok(())
        })
    }

    fn keep(
        &mut self,
        what: impl FnOnce(&mut Self, &mut CheckpointNote) -> Result<()>,
    ) -> Option<CheckpointNote> {
        if self.failed.is_some() {
            return None;
        }
        let mut noted = CheckpointNote::default();
        match what(self, &mut noted).and_then(|()| self.store.sync()) {
            Ok(()) => Some(noted).filter(|noted| *noted != CheckpointNote::default()),
            Err(e) => Some(self.cannot_keep(&e)),
        }
    }

    fn cannot_keep(&mut self, error: &Error) -> CheckpointNote {
        self.fail(&error.to_string());
        CheckpointNote { failed: Some(error.to_string()), ..CheckpointNote::default() }
    }

    /// Folders that are to be made on the way.
    fn keep_missing_above(
        &mut self,
        workspace: &Workspace,
        path: &str,
        noted: &mut CheckpointNote,
    ) -> Result<()> {
        let mut above = split(path).0;
        while !above.is_empty() && workspace.folder_at(above).is_err() {
            self.touch(workspace, above.to_owned(), noted)?;
            above = split(above).0;
        }
        Ok(())
    }

    fn touch(
        &mut self,
        workspace: &Workspace,
        path: String,
        noted: &mut CheckpointNote,
    ) -> Result<()> {
        let is_as_left = self.touched.contains_key(&path) && !self.left.contains_key(&path);
        if self.all.is_some() && !is_as_left {
            let changed = self.is_changed(workspace, &path)?;
            self.touched(path.clone(), changed);
            noted.touched.push((path.clone(), changed));
        }
        // What was there before the first command is in the cache.
        let is_known = self.all.is_some() && self.store.cache.get(&path).is_some();
        if self.stood.contains_key(&path) || is_known {
            return Ok(());
        }
        self.ignored[0].iter_mut().for_each(|ignored| ignored.touch(workspace, &path));
        let what = self.store.inspect(workspace, &path, true)?;
        self.stood.insert(path.clone(), (what.clone(), self.all.is_none()));
        noted.stood.push((path, what));
        Ok(())
    }

    /// An operation is about to change that; a command may have `changed` it before.
    fn touched(&mut self, path: String, changed: bool) {
        self.left.remove(&path);
        *self.touched.entry(path).or_default() |= changed;
    }

    /// Whether a command has changed what stands there, since an operation did or at all.
    fn is_changed(&mut self, workspace: &Workspace, path: &str) -> Result<bool> {
        let was = match self.left.get(path).cloned() {
            Some(left) => left,
            None if self.store.is_unchanged_since_scan(workspace, path) => return Ok(false),
            None => self.store.cache.get(path).map(|known| known.what.clone()),
        };
        let now = self.store.inspect_as(workspace, path, false, [was.as_ref(), None])?;
        // What is left out was not scanned before.
        Ok(now != was && (was.is_some() || !self.is_ignored(path, now.as_ref())))
    }

    /// Whether a command changed what differs now from what it was before the first command.
    fn is_by_command(&self, path: &str, now: Option<&TreeEntry>) -> bool {
        self.touched.get(path).is_none_or(|by_command| *by_command)
            || self.left.get(path).is_some_and(|left| left.as_ref() != now)
    }

    /// A command is about to run. Before the first, scans all of the workspace: gives what is to be
    /// noted, and the walk. Before others, looks at what operations have changed since.
    pub fn before_command(
        &mut self,
        workspace: &Workspace,
    ) -> Option<(CheckpointNote, Option<Walk>)> {
        if self.failed.is_some() {
            return None;
        }
        if self.all.is_some() {
            let noted = self.keep(|recorder, noted| {
                let Self { store, touched, left, .. } = recorder;
                for path in touched.keys() {
                    if !left.contains_key(path) {
                        let what = store.inspect(workspace, path, false)?;
                        left.insert(path.clone(), what.clone());
                        noted.left.push((path.clone(), what));
                    }
                }
                Ok(())
            });
            return noted.map(|noted| (noted, None));
        }
        // Times of files are coarse: one that is given now may be a little earlier.
        self.since = i64::try_from(now() - 20_000_000).unwrap_or(i64::MAX);
        Some(match self.scan_before(workspace) {
            Ok((walk, mark)) => {
                self.all = Some(mark.clone());
                let since = Some(self.since);
                (CheckpointNote { all: Some(mark), since, ..CheckpointNote::default() }, Some(walk))
            }
            Err(e) => (self.cannot_keep(&e), None),
        })
    }

    fn scan_before(&mut self, workspace: &Workspace) -> Result<(Walk, CachePosition)> {
        // Nothing of this turn goes by a place in it yet.
        self.store.cache.compact()?;
        let by = self.rules_before()?;
        let ScanResult { walk, ignored, .. } = self.store.scan(workspace, &by.0)?;
        self.ignored[0] = Some(ignored);
        self.repositories = walk.places(PlaceKind::Repository).map(str::to_owned).collect();
        self.store.sync()?;
        Ok((walk, self.store.cache.write(true)?))
    }

    /// The rules from before the turn, where an operation of it has changed them before the first command.
    fn rules_before(&self) -> Result<KeptRules> {
        let early = self.stood.iter().filter(|(_, (_, is_early))| *is_early);
        let early = early.map(|(path, (what, _))| (&**path, what.as_ref()));
        self.rules.clone().and(early, &self.store.blobs)
    }

    /// All commands of the turn have run. Gives what the workspace is like now, where some have.
    pub fn after_commands(&mut self, workspace: &Workspace) -> Option<Walk> {
        if self.all.is_none() || self.failed.is_some() {
            return None;
        }
        let by = IgnoreSource::Given(self.store.cache.rules.clone());
        match self.store.scan(workspace, &by) {
            Ok(ScanResult { walk, differences, ignored }) => {
                self.ignored[1] = Some(ignored);
                self.differences = Some(differences);
                Some(walk)
            }
            Err(e) => {
                self.fail(&e.to_string());
                None
            }
        }
    }

    /// The turn is at its end: what it changed. All that is needed to take it back is on disk once the store is
    /// settled.
    pub fn finish(mut self, workspace: &Workspace) -> TurnChanges {
        if self.differences.is_none() {
            // The turn ended before its last command was looked after.
            self.after_commands(workspace);
        }
        let concluded = match self.failed.take() {
            Some(why) => Err(why),
            None => self.conclude(workspace).map_err(|e| e.to_string()),
        };
        if concluded.is_err() {
            self.store.discard_unsynced();
        }
        self.store.save_size();
        let failed = |why| TurnChanges { changes: Err(why), rules: None, ignored: Vec::new() };
        concluded.unwrap_or_else(failed)
    }

    /// Whether something is left out by the rules from before the turn.
    fn is_ignored(&self, path: &str, what: Option<&TreeEntry>) -> bool {
        ignores(&self.store.cache.rules, path, is_folder(what))
    }

    fn conclude(&mut self, workspace: &Workspace) -> Result<TurnChanges> {
        let rules = match self.all {
            Some(_) => KeptRules::given(self.store.cache.rules.clone()),
            None => self.rules_before()?,
        };
        let mut all: BTreeMap<String, TreeChange> = BTreeMap::new();
        let mut differences = self.differences.take().unwrap_or_default();
        for Difference { change, .. } in &mut differences {
            change.by_command = self.is_by_command(&change.path, change.after.as_ref());
        }
        let renamed = self.ignored[0].as_ref().map_or_else(BTreeSet::new, |before| {
            before.renamed_to(differences.iter().filter(|one| one.change.by_command))
        });
        for one in differences {
            let was_unseen = one.was_only_unseen(self.since);
            let Difference { mut change, is_scanned, .. } = one;
            let is_left_alone = !is_scanned && !change.by_command;
            change.ignored &= change.by_command;
            // What was ignored before is left alone, but for what it took the place of: a conflict.
            change.mixed = !change.ignored
                && (renamed.contains(&change.path)
                    || ancestors(&change.path).any(|above| renamed.contains(&format!("{above}/"))));
            if was_unseen || is_left_alone || change.mixed && change.before.is_none() {
                continue;
            }
            // A file may have taken the place of an ignored folder.
            if let Some(new) = all.remove(&change.path) {
                change.after = new.after;
            }
            all.insert(change.path.clone(), change);
        }
        for folder in &self.repositories {
            let path = format!("{folder}/.git").trim_start_matches('/').to_owned();
            if self.store.inspect(workspace, &path, false)?.is_none() {
                let before = Some(TreeEntry::repository_at(&path));
                let change = TreeChange::of(path.clone(), before, None);
                all.insert(path, TreeChange { by_command: true, ..change });
            }
        }
        for (path, (before, is_early)) in std::mem::take(&mut self.stood) {
            match all.get_mut(&path) {
                Some(known) if is_early => known.before = before,
                Some(_) => {}
                None => {
                    let after = self.store.inspect(workspace, &path, true)?;
                    // A command of the turn had made it, and it is gone: else a walk had met it, but in a
                    // folder that could not be listed.
                    let is_scanned = |what: &Option<TreeEntry>| {
                        !self.is_ignored(&path, what.as_ref())
                            && !self.store.cache.unreadable.hides(&path)
                    };
                    if is_early || !(is_scanned(&before) && is_scanned(&after)) {
                        all.insert(path.clone(), TreeChange::of(path, before, after));
                    }
                }
            }
        }
        if self.all.is_some() {
            self.store.sync()?;
            self.store.cache.write(false)?;
        }
        let mut changes: Vec<TreeChange> =
            all.into_values().filter(|change| change.before != change.after).collect();
        for change in &mut changes {
            change.mixed |= self.is_mixed && change.by_command
                || ancestors(&change.path).any(|above| self.external.contains(above));
        }
        let ignored = match &self.ignored {
            [Some(before), Some(after)] => {
                before.changed(after, &changes, &renamed, &self.store.cache)
            }
            _ => Vec::new(),
        };
        Ok(TurnChanges { changes: Ok(changes), rules: Some(rules), ignored })
    }
}

impl Difference {
    /// Whether it could not be met before, and is unchanged since then: all that a command did is to let it be
    /// seen.
    fn was_only_unseen(&self, since: i64) -> bool {
        let is_old = |changed: i128| changed != 0 && changed < since.into();
        let before = self.change.before.as_ref();
        before.is_some_and(|before| before.is_unknown_at(&self.change.path))
            && self.facts.is_some_and(|(facts, _)| is_old(facts.changed))
    }
}
