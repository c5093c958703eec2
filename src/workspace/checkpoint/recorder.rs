//! What a turn changes, recorded around its operations.
//!
//! Before a file is made, changed, removed or moved, what stands there is kept. Before the first command all
//! of the workspace is looked at, and once more at the end. What the turn changed is what differs from
//! the first of these for each place; so a turn without commands needs no walk.
//!
//! Whatever goes wrong here stops nothing: the turn goes on, and cannot be taken back.

use std::collections::{BTreeMap, BTreeSet};

use super::aside::Aside;
use super::hands::Hands;
use super::look::{Difference, Looked, now, repository_at};
use super::rules::{Instead, KeptRules};
use super::{Change, Mark, Noted, Recorded, Store, What};
use crate::error::{Error, Result};
use crate::protocol::{FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::{ancestors, escaped, split};
use crate::workspace::walk::Walk;
use crate::workspace::walk::detailed::{IgnoreSource, ignores};

/// Records what one turn changes.
#[derive(Debug)]
pub struct Recorder<'a> {
    pub(super) store: &'a mut Store,
    /// What stood in each place before an operation first changed it: before the first command, and
    /// after it.
    pub(super) early: BTreeMap<String, Option<What>>,
    pub(super) late: BTreeMap<String, Option<What>>,
    pub(super) all: Option<Mark>,
    /// When its first command was about to run, as files get it for their times.
    pub(super) since: i64,
    hands: Hands,
    /// Where the person changed something after a hard stop within the turn. Where commands ran before it, nobody
    /// knows who changed what.
    theirs: BTreeSet<String>,
    is_mixed: bool,
    /// The rules that its first part left, where it had stopped to ask.
    rules: KeptRules,
    /// What was left out of the look before the first command, where that is known, and after the last.
    aside: [Option<Aside>; 2],
    /// The new names of what was left out before.
    renamed: BTreeSet<String>,
    /// Where repositories were before the first command.
    repositories: Vec<String>,
    /// What commands changed, once they have all run.
    differences: Option<Vec<Difference>>,
    /// What they deleted of ignored files that are kept.
    deleted: Vec<Difference>,
    failed: Option<String>,
}

impl<'a> Recorder<'a> {
    /// The recorder of a turn that begins.
    pub fn new(store: &'a mut Store) -> Self {
        store.hold_anew();
        let (early, late) = (BTreeMap::new(), BTreeMap::new());
        let (hands, rules) = (Hands::default(), KeptRules::default());
        let (theirs, is_mixed) = (BTreeSet::new(), false);
        let (aside, differences) = ([None, None], None);
        Self {
            store,
            early,
            late,
            all: None,
            since: i64::MIN,
            hands,
            theirs,
            is_mixed,
            rules,
            aside,
            renamed: BTreeSet::new(),
            repositories: Vec::new(),
            differences,
            deleted: Vec::new(),
            failed: None,
        }
    }

    /// The same of a turn that is taken up again after a hard stop, of which all this was noted. `theirs` is where
    /// something else stands than its operations found or left.
    pub fn resumed(store: &'a mut Store, noted: Vec<Noted>, theirs: &[RelPath]) -> Self {
        let mut recorder = Self::new(store);
        recorder.theirs = theirs.iter().map(|path| escaped(path.as_str().as_bytes())).collect();
        recorder.is_mixed = noted.iter().any(|noted| noted.all.is_some());
        for Noted { stood, all, since, touched, left, failed } in noted {
            let kept = stood.iter().filter_map(|(_, what)| what.as_ref()?.blob());
            recorder.store.hold(kept);
            recorder.since = since.unwrap_or(recorder.since);
            if let Some(mark) = &all {
                match recorder.store.index.load(Some(mark)) {
                    Ok(true) => recorder.all = all,
                    Ok(false) => recorder.fail("what the workspace was like before it is gone"),
                    Err(e) => recorder.fail(&e.to_string()),
                }
            }
            let places =
                if recorder.all.is_some() { &mut recorder.late } else { &mut recorder.early };
            for (path, what) in stood {
                places.entry(path).or_insert(what);
            }
            touched.into_iter().for_each(|(path, changed)| recorder.hands.touch(path, changed));
            left.into_iter().for_each(|(path, what)| recorder.hands.leave(path, what));
            if let Some(why) = failed {
                recorder.fail(&why);
            }
        }
        recorder
    }

    /// The turn is the rest of one that had stopped to ask: it goes by the rules from before all of it.
    #[must_use]
    pub fn going_by(mut self, rules: Result<KeptRules>) -> Self {
        match rules {
            Ok(rules) => self.rules = rules,
            Err(e) => self.fail(&e.to_string()),
        }
        self
    }

    fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| why.to_owned());
        self.store.forget();
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
    ) -> Option<Noted> {
        self.keep(|recorder, noted| {
            effects.into_iter().try_for_each(|effect| {
                let path = escaped(effect.path.as_str().as_bytes());
                recorder.keep_missing_above(workspace, &path, noted)?;
                recorder.touch(workspace, path, noted)
            })
        })
    }

    /// A file or a folder is about to be moved.
    pub fn before_move(&mut self, workspace: &Workspace, effect: &MoveEffect) -> Option<Noted> {
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

    fn keep(&mut self, what: impl FnOnce(&mut Self, &mut Noted) -> Result<()>) -> Option<Noted> {
        if self.failed.is_some() {
            return None;
        }
        let mut noted = Noted::default();
        let kept = what(self, &mut noted).and_then(|()| self.store.settle());
        match kept {
            Ok(()) => Some(noted).filter(|noted| *noted != Noted::default()),
            Err(e) => {
                self.fail(&e.to_string());
                Some(Noted { failed: Some(e.to_string()), ..Noted::default() })
            }
        }
    }

    /// Folders that are to be made on the way.
    fn keep_missing_above(
        &mut self,
        workspace: &Workspace,
        path: &str,
        noted: &mut Noted,
    ) -> Result<()> {
        let mut above = split(path).0;
        while !above.is_empty() && workspace.folder_at(above).is_err() {
            self.touch(workspace, above.to_owned(), noted)?;
            above = split(above).0;
        }
        Ok(())
    }

    fn touch(&mut self, workspace: &Workspace, path: String, noted: &mut Noted) -> Result<()> {
        if self.all.is_some() && self.hands.may_have_changed(&path) {
            let changed = self.is_changed(workspace, &path)?;
            self.hands.touch(path.clone(), changed);
            noted.touched.push((path.clone(), changed));
        }
        // What was there before the first command is in the index.
        if self.early.contains_key(&path)
            || self.late.contains_key(&path)
            || self.all.is_some() && self.store.index.seen.contains_key(&path)
        {
            return Ok(());
        }
        self.aside[0].iter_mut().for_each(|aside| aside.touch(workspace, &path));
        let what = self.store.look_at(workspace, &path, true)?;
        let places = if self.all.is_some() { &mut self.late } else { &mut self.early };
        places.insert(path.clone(), what.clone());
        noted.stood.push((path, what));
        Ok(())
    }

    /// Whether a command has changed what stands there, since an operation did or at all.
    fn is_changed(&mut self, workspace: &Workspace, path: &str) -> Result<bool> {
        let was = match self.hands.left(path) {
            Some(left) => left.clone(),
            None if self.store.is_as_seen(workspace, path) => return Ok(false),
            None => self.store.index.seen.get(path).map(|known| known.what.clone()),
        };
        let now = self.store.look_for(workspace, path, false, [was.as_ref(), None])?;
        // What is left out was not looked at before.
        Ok(now != was && (was.is_some() || !self.is_ignored(path, now.as_ref())))
    }

    /// A command is about to run. Before the first, looks at all of the workspace: gives what is to be
    /// noted, and the walk. Before others, looks at what operations have changed since.
    pub fn before_command(&mut self, workspace: &Workspace) -> Option<(Noted, Option<Walk>)> {
        if self.failed.is_some() {
            return None;
        }
        if self.all.is_some() {
            let noted = self.keep(|recorder, noted| {
                for path in recorder.hands.untold() {
                    let what = recorder.store.look_at(workspace, &path, false)?;
                    recorder.hands.leave(path.clone(), what.clone());
                    noted.left.push((path, what));
                }
                Ok(())
            });
            return noted.map(|noted| (noted, None));
        }
        // Times of files are coarse: one that is given now may be a little earlier.
        self.since = i64::try_from(now() - 20_000_000).unwrap_or(i64::MAX);
        let looked = self.look_at_all(workspace);
        Some(match looked {
            Ok((walk, mark)) => {
                self.all = Some(mark.clone());
                let since = Some(self.since);
                (Noted { all: Some(mark), since, ..Noted::default() }, Some(walk))
            }
            Err(e) => {
                self.fail(&e.to_string());
                (Noted { failed: Some(e.to_string()), ..Noted::default() }, None)
            }
        })
    }

    fn look_at_all(&mut self, workspace: &Workspace) -> Result<(Walk, Mark)> {
        // Nothing of this turn goes by a place in it yet.
        self.store.index.shorten()?;
        let by = self.rules.clone().and(self.rules_before()?).into_by();
        let Looked { walk, aside, .. } = self.store.look_at_all(workspace, &by)?;
        self.aside[0] = Some(aside);
        self.repositories = walk.repositories().map(str::to_owned).collect();
        self.store.settle()?;
        Ok((walk, self.store.index.write(true)?))
    }

    /// The rules from before the turn, where an operation of it has changed them.
    fn rules_before(&self) -> Result<Instead> {
        Instead::of(&self.early, &self.store.blobs)
    }

    /// All commands of the turn have run. Gives what the workspace is like now, where some have.
    pub fn after_commands(&mut self, workspace: &Workspace) -> Option<Walk> {
        if self.all.is_none() || self.failed.is_some() {
            return None;
        }
        let by = IgnoreSource::Given(self.store.index.rules.clone());
        match self.store.look_at_all(workspace, &by) {
            Ok(Looked { walk, differences, aside, deleted }) => {
                self.aside[1] = Some(aside);
                self.differences = Some(differences);
                self.deleted = deleted;
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
    pub fn finish(mut self, workspace: &Workspace) -> Recorded {
        let concluded = self.conclude(workspace);
        self.store.note_size();
        let not = |why| Recorded { changes: Err(why), rules: None, ignored: Vec::new() };
        match (concluded, self.failed) {
            (_, Some(why)) => not(why),
            (Err(e), None) => {
                self.store.forget();
                not(e.to_string())
            }
            (Ok((changes, rules)), None) => {
                let met = &self.store.index.seen;
                let ignored = match &self.aside {
                    [Some(before), Some(after)] => {
                        before.changed(after, &changes, &self.renamed, met)
                    }
                    _ => Vec::new(),
                };
                Recorded { changes: Ok(changes), rules: Some(rules), ignored }
            }
        }
    }

    /// Whether something is left out by the rules from before the turn.
    fn is_ignored(&self, path: &str, what: Option<&What>) -> bool {
        let is_folder = matches!(what, Some(What::Folder { .. }));
        ignores(&self.store.index.rules, path, is_folder)
    }

    fn conclude(&mut self, workspace: &Workspace) -> Result<(Vec<Change>, KeptRules)> {
        if self.failed.is_some() {
            return Ok(Default::default());
        }
        if self.all.is_some() && self.differences.is_none() {
            // The turn ended before its last command was looked after.
            self.after_commands(workspace);
        }
        let rules = match self.all {
            Some(_) => KeptRules::given(self.store.index.rules.clone()),
            None => std::mem::take(&mut self.rules).and(self.rules_before()?),
        };
        let mut all: BTreeMap<String, Change> = BTreeMap::new();
        let differences = self.differences.take().unwrap_or_default();
        if let Some(before) = &self.aside[0] {
            let by_command =
                |one: &&Difference| self.hands.is_by_command(&one.path, one.after.as_ref());
            self.renamed = before.renamed_to(differences.iter().filter(by_command));
        }
        let is_renamed = |path: &str| {
            self.renamed.contains(path)
                || ancestors(path).any(|above| self.renamed.contains(&format!("{above}/")))
        };
        for one in differences {
            // What was ignored before is left alone, but for what it took the place of: a conflict.
            let mixed = is_renamed(&one.path);
            if one.was_only_hidden(self.since) || mixed && one.before.is_none() {
                continue;
            }
            let by_command = self.hands.is_by_command(&one.path, one.after.as_ref());
            let change = Change::of(one.path.clone(), one.before, one.after);
            all.insert(one.path, Change { mixed, by_command, ..change });
        }
        for one in std::mem::take(&mut self.deleted) {
            if self.hands.is_by_command(&one.path, None) {
                // A file may have taken the place of a folder.
                let after = all.remove(&one.path).and_then(|new| new.after);
                let change = Change::of(one.path.clone(), one.before, after);
                all.insert(one.path, Change { by_command: true, ignored: true, ..change });
            }
        }
        for folder in &self.repositories {
            let path = format!("{folder}/.git").trim_start_matches('/').to_owned();
            if self.store.look_at(workspace, &path, false)?.is_none() {
                let change = Change::of(path.clone(), Some(repository_at(&path)), None);
                all.insert(path, Change { by_command: true, ..change });
            }
        }
        let touched = std::mem::take(&mut self.early).into_iter().map(|touched| (touched, true));
        let late = std::mem::take(&mut self.late).into_iter().map(|touched| (touched, false));
        for ((path, before), is_early) in touched.chain(late) {
            match all.get_mut(&path) {
                Some(known) if is_early => known.before = before,
                Some(_) => {}
                None => {
                    let after = self.store.look_at(workspace, &path, true)?;
                    // A command of the turn had made it, and it is gone: else a walk had met it, but in a
                    // folder that could not be listed.
                    let is_met = |what: &Option<What>| {
                        !self.is_ignored(&path, what.as_ref())
                            && !self.store.index.hidden.hides(&path)
                    };
                    if is_early || !(is_met(&before) && is_met(&after)) {
                        all.insert(path.clone(), Change::of(path, before, after));
                    }
                }
            }
        }
        if self.all.is_some() {
            self.store.settle()?;
            self.store.index.write(false)?;
        }
        let changes = all.into_values().filter(|change| change.before != change.after);
        let is_theirs = |path: &str| ancestors(path).any(|above| self.theirs.contains(above));
        let told = |change: Change| Change {
            mixed: change.mixed || self.is_mixed && change.by_command || is_theirs(&change.path),
            ..change
        };
        Ok((changes.map(told).collect(), rules))
    }
}
