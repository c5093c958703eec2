//! Records what a turn changes.
//!
//! Before an operation creates, changes, removes or moves a file, the current entry is stored. Before the first command
//! and at the end of the turn, the whole workspace is scanned. The earliest of these records is compared with the final
//! state to find a path's change. A turn without commands therefore needs no walk.
//!
//! An error here does not stop the turn, but the turn cannot be undone afterwards.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ignored_changes::{IgnoredChange, IgnoredSnapshot};
use super::rules::KeptRules;
use super::scan::{Difference, ScanResult};
use super::tree::is_folder;
use super::{CachePosition, CheckpointStore, TreeChange, TreeEntry};
use crate::error::{Error, Result};
use crate::protocol::{FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::{ancestors, escaped, split};
use crate::workspace::walk::detailed::{IgnoreSource, ignores, now};
use crate::workspace::walk::{PlaceKind, Walk};

/// What the journal must contain before an operation is carried out. All contents referenced here are already stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointNote {
    /// The current entries at the paths that are about to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stood: Vec<(String, Option<TreeEntry>)>,
    /// The state of the workspace before the first command, as a position in the cache file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) all: Option<CachePosition>,
    /// When the workspace was scanned, by the clock of file times, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<i64>,
    /// Paths that an operation changes after a command has run.
    #[serde(default, rename = "operated", skip_serializing_if = "Vec::is_empty")]
    pub(super) touched: Vec<String>,
    /// What operations had left at these paths before another command ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<(String, Option<TreeEntry>)>,
    /// Why this turn cannot be undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failed: Option<String>,
}

/// What a turn changed.
#[derive(Debug)]
pub struct RecordedChanges {
    /// All changes, sorted by path; or why they are unknown.
    pub changes: Result<Vec<TreeChange>, String>,
    /// The ignore rules for the rest of the turn, if the turn has stopped to ask a question.
    pub rules: Option<KeptRules>,
    /// Known changes to ignored files while the turn's commands ran. The contents of these files are not stored.
    pub ignored: Vec<IgnoredChange>,
}

/// Records what one turn changes.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub(super) store: &'a mut CheckpointStore,
    /// The entry at each path before an operation first changed it, and whether that was before the first command.
    stood: BTreeMap<String, (Option<TreeEntry>, bool)>,
    all: Option<CachePosition>,
    /// When the turn's first command was about to run, by the clock of file times.
    since: i64,
    /// Paths that operations have changed since the last command.
    touched: BTreeSet<String>,
    /// What operations had left at paths that they changed between the first and the last command.
    left: BTreeMap<String, Option<TreeEntry>>,
    /// Paths that the person changed after a hard stop within the turn.
    external: BTreeSet<String>,
    /// Whether commands ran before a hard stop. In that case it is unknown who changed what.
    is_mixed: bool,
    /// The ignore rules from the turn's first part, if the turn had stopped to ask a question.
    rules: KeptRules,
    /// The ignored files: in the scan before the first command, if known, and in the scan after the last command.
    ignored: [Option<IgnoredSnapshot>; 2],
    /// The repositories before the first command.
    repositories: Vec<String>,
    /// The differences that commands made; None until all commands have run.
    differences: Option<Vec<Difference>>,
    failed: Option<String>,
}

impl<'a> Recorder<'a> {
    /// A recorder for a new turn.
    pub fn new(store: &'a mut CheckpointStore) -> Self {
        store.clear_in_use();
        Self {
            store,
            stood: BTreeMap::new(),
            all: None,
            since: i64::MIN,
            touched: BTreeSet::new(),
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

    /// A recorder for a turn that is resumed after a hard stop, from the turn's notes in the journal. At the `external`
    /// paths, the current entry is neither the one that the operations found nor the one that they left.
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
                match recorder.store.cache.reload(mark) {
                    Ok(true) => recorder.all = all,
                    Ok(false) => recorder.fail("what the workspace was like before it is gone"),
                    Err(e) => recorder.fail(&e.to_string()),
                }
            }
            let is_early = recorder.all.is_none();
            for (path, what) in stood {
                recorder.stood.entry(path).or_insert((what, is_early));
            }
            recorder.touched.extend(touched);
            for (path, what) in left {
                recorder.touched.remove(&path);
                recorder.left.insert(path, what);
            }
            failed.iter().for_each(|why| recorder.fail(why));
        }
        recorder
    }

    /// Continues a turn that had stopped to ask a question: the ignore rules from before the whole turn apply.
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

    /// Why the turn cannot be undone, if an error has occurred.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Must be called before files change. Returns what must be in the journal before the change.
    pub fn before_files<'e>(
        &mut self,
        workspace: &Workspace,
        effects: impl IntoIterator<Item = &'e FileEffect>,
    ) -> Option<CheckpointNote> {
        self.keep(|recorder, noted| {
            effects.into_iter().try_for_each(|effect| {
                let path = escaped(effect.path.as_str().as_bytes());
                recorder.record_missing_parents(workspace, &path, noted)?;
                recorder.touch(workspace, path, noted)
            })
        })
    }

    /// Must be called before a file or folder is moved. Returns what must be in the journal before the move.
    pub fn before_move(
        &mut self,
        workspace: &Workspace,
        effect: &MoveEffect,
    ) -> Option<CheckpointNote> {
        let escaped = |path: &RelPath| escaped(path.as_str().as_bytes());
        let (from, to) = (escaped(&effect.from), escaped(&effect.to));
        self.keep(|recorder, noted| {
            recorder.record_missing_parents(workspace, &to, noted)?;
            let mut places = vec![from.clone()];
            if workspace.folder_at(&from).is_ok() {
                let below = workspace.folder_contents(&effect.from);
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

    /// Records the parent folders that will be created.
    fn record_missing_parents(
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
        if self.all.is_some() && self.touched.insert(path.clone()) {
            noted.touched.push(path.clone());
        }
        // The cache contains everything from before the first command.
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

    /// Whether a command was the last to change the entry at a path.
    fn is_by_command(&self, path: &str, now: Option<&TreeEntry>) -> bool {
        !self.touched.contains(path) && self.left.get(path).is_none_or(|left| left.as_ref() != now)
    }

    /// Must be called before a command runs. Before the first command, scans the whole workspace and returns what must
    /// be in the journal, and the walk. Before later commands, inspects only what operations have changed since.
    pub fn before_command(
        &mut self,
        workspace: &Workspace,
    ) -> Option<(CheckpointNote, Option<Walk>)> {
        if self.failed.is_some() {
            return None;
        }
        if self.all.is_some() {
            let noted = self.keep(|recorder, noted| {
                for path in std::mem::take(&mut recorder.touched) {
                    let what = recorder.store.inspect(workspace, &path, false)?;
                    noted.left.push((path.clone(), what.clone()));
                    recorder.left.insert(path, what);
                }
                Ok(())
            });
            return noted.map(|noted| (noted, None));
        }
        // File times are coarse: a file written now may get a slightly earlier time.
        self.since = now() - 20_000_000;
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
        let by = self.rules_before()?;
        let ScanResult { walk, ignored, .. } = self.store.scan(workspace, &by.0, false)?;
        self.ignored[0] = Some(ignored);
        self.repositories = walk.places(PlaceKind::Repository).map(str::to_owned).collect();
        self.store.sync()?;
        Ok((walk, self.store.cache.write()?))
    }

    /// The ignore rules from before the turn, even if the turn's operations have changed them since.
    fn rules_before(&self) -> Result<KeptRules> {
        let early = self.stood.iter().filter(|(_, (_, is_early))| *is_early);
        let early = early.map(|(path, (what, _))| (&**path, what.as_ref()));
        self.rules.clone().with_former(early, &self.store.blobs)
    }

    /// Must be called after all commands of the turn have run. Returns a walk of the workspace if any command has run.
    pub fn after_commands(&mut self, workspace: &Workspace) -> Option<Walk> {
        if self.all.is_none() || self.failed.is_some() {
            return None;
        }
        let by = IgnoreSource::Given(self.store.cache.rules.clone());
        match self.store.scan(workspace, &by, true) {
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

    /// Ends the turn and returns what it changed. Everything needed to undo it is on disk after the store's next sync.
    pub fn finish(mut self, workspace: &Workspace) -> RecordedChanges {
        if self.differences.is_none() {
            // The turn ended before the scan that follows its last command.
            self.after_commands(workspace);
        }
        let concluded = match self.failed.take() {
            Some(why) => Err(why),
            None => self.conclude(workspace).map_err(|e| e.to_string()),
        };
        if concluded.is_err() {
            self.store.discard_unsynced();
        }
        let failed = |why| RecordedChanges { changes: Err(why), rules: None, ignored: Vec::new() };
        concluded.unwrap_or_else(failed)
    }

    /// Whether the rules from before the turn ignore an entry.
    fn is_ignored(&self, path: &str, what: Option<&TreeEntry>) -> bool {
        ignores(&self.store.cache.rules, path, is_folder(what))
    }

    fn conclude(&mut self, workspace: &Workspace) -> Result<RecordedChanges> {
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
            let was_made_readable = one.was_only_made_readable(self.since);
            let Difference { mut change, is_scanned, .. } = one;
            let is_left_alone = !is_scanned && !change.by_command;
            change.ignored &= change.by_command;
            // A renamed ignored entry is left alone. If it replaced another entry, the change is a conflict.
            change.mixed = !change.ignored
                && (renamed.contains(&change.path)
                    || ancestors(&change.path).any(|above| renamed.contains(&format!("{above}/"))));
            if was_made_readable || is_left_alone || change.mixed && change.before.is_none() {
                continue;
            }
            // A file may have replaced an ignored folder.
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
                    // A command of the turn created the entry, and the entry is gone now. Otherwise a walk would have
                    // found it, unless its folder could not be listed.
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
        Ok(RecordedChanges { changes: Ok(changes), rules: Some(rules), ignored })
    }
}

impl Difference {
    /// Whether the entry was unreadable before and has not changed since, so that a command only made it readable.
    fn was_only_made_readable(&self, since: i64) -> bool {
        let is_old = |changed: i64| changed != 0 && changed < since;
        let before = self.change.before.as_ref();
        before.is_some_and(|before| before.is_unknown_at(&self.change.path))
            && self.facts.is_some_and(|(facts, _)| is_old(facts.changed))
    }
}
