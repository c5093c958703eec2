//! What a turn changes, recorded around its operations.
//!
//! Before a file is made, changed, removed or moved, what stands there is kept. Before the first command all
//! of the workspace is looked at, and once more at the end. What the turn changed is what differs from
//! the first of these for each place; so a turn without commands needs no walk.
//!
//! Whatever goes wrong here stops nothing: the turn goes on, and cannot be taken back.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::below::below;
use super::look::{Difference, split};
use super::{Change, Mark, Store, What};
use crate::error::{Error, Result};
use crate::protocol::{FileEffect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::escaped;
use crate::workspace::walk::Walk;
use crate::workspace::walk::close::{By, ignores};
use crate::workspace::walk::ignoring::{FILES, first_lines};

/// What must not be forgotten before an operation is carried out: all that it says is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Noted {
    /// What stood where something is about to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stood: Vec<(String, Option<What>)>,
    /// What all of the workspace was like before the first command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<Mark>,
    /// Why nothing of this turn can be taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// What a turn changed.
#[derive(Debug)]
pub struct Recorded {
    /// All that it changed, by path; else why that is not known.
    pub changes: Result<Vec<Change>, String>,
    /// Which of these commands changed, by number.
    pub by_commands: Vec<usize>,
}

/// Records what one turn changes.
#[derive(Debug)]
pub struct Recorder<'a> {
    store: &'a mut Store,
    /// What stood in each place before an operation first changed it: before the first command, and
    /// after it.
    early: BTreeMap<String, Option<What>>,
    late: BTreeMap<String, Option<What>>,
    all: Option<Mark>,
    /// What commands changed, once they have all run.
    differences: Option<Vec<Difference>>,
    failed: Option<String>,
}

impl<'a> Recorder<'a> {
    /// The recorder of a turn that begins.
    pub fn new(store: &'a mut Store) -> Self {
        let (early, late) = (BTreeMap::new(), BTreeMap::new());
        Self { store, early, late, all: None, differences: None, failed: None }
    }

    /// The same of a turn that is taken up again, of which all this was noted.
    pub fn resumed(store: &'a mut Store, noted: Vec<Noted>) -> Self {
        let mut recorder = Self::new(store);
        for Noted { stood, all, failed } in noted {
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
            if let Some(why) = failed {
                recorder.fail(&why);
            }
        }
        recorder
    }

    fn fail(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| why.to_owned());
        self.store.forget();
    }

    /// Why the turn cannot be taken back, if that is so already.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// A file is about to change. Gives what is to be noted before it does.
    pub fn before_file(&mut self, workspace: &Workspace, effect: &FileEffect) -> Option<Noted> {
        let path = escaped(effect.path.as_str().as_bytes());
        self.keep(|recorder, stood| {
            recorder.keep_missing_above(workspace, &path, stood)?;
            recorder.touch(workspace, path, stood)
        })
    }

    /// A file or a folder is about to be moved.
    pub fn before_move(&mut self, workspace: &Workspace, effect: &MoveEffect) -> Option<Noted> {
        let escaped = |path: &RelPath| escaped(path.as_str().as_bytes());
        let (from, to) = (escaped(&effect.from), escaped(&effect.to));
        self.keep(|recorder, stood| {
            recorder.keep_missing_above(workspace, &to, stood)?;
            let mut places = vec![from.clone()];
            if workspace.folder_at(&from).is_ok() {
                let below = below(workspace, &from);
                places.extend(below.map_err(|e| Error::io("list", from.as_ref(), e))?);
            }
            for place in places {
                let new = format!("{to}{}", &place[from.len()..]);
                recorder.touch(workspace, place, stood)?;
                recorder.touch(workspace, new, stood)?;
            }
            Ok(())
        })
    }

    fn keep(
        &mut self,
        what: impl FnOnce(&mut Self, &mut Vec<(String, Option<What>)>) -> Result<()>,
    ) -> Option<Noted> {
        if self.failed.is_some() {
            return None;
        }
        let mut stood = Vec::new();
        let kept = what(self, &mut stood).and_then(|()| self.store.settle());
        match kept {
            Ok(()) if stood.is_empty() => None,
            Ok(()) => Some(Noted { stood, ..Noted::default() }),
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
        stood: &mut Vec<(String, Option<What>)>,
    ) -> Result<()> {
        let mut above = split(path).0;
        while !above.is_empty() && workspace.folder_at(above).is_err() {
            self.touch(workspace, above.to_owned(), stood)?;
            above = split(above).0;
        }
        Ok(())
    }

    fn touch(
        &mut self,
        workspace: &Workspace,
        path: String,
        stood: &mut Vec<(String, Option<What>)>,
    ) -> Result<()> {
        // What was there before the first command is in the index.
        if self.early.contains_key(&path)
            || self.late.contains_key(&path)
            || self.all.is_some() && self.store.index.seen.contains_key(&path)
        {
            return Ok(());
        }
        let what = self.store.look_at(workspace, &path, true)?;
        let places = if self.all.is_some() { &mut self.late } else { &mut self.early };
        places.insert(path.clone(), what.clone());
        stood.push((path, what));
        Ok(())
    }

    /// A command is about to run. Before the first, looks at all of the workspace: gives what is to be
    /// noted, and the walk.
    pub fn before_command(&mut self, workspace: &Workspace) -> Option<(Noted, Option<Walk>)> {
        if self.all.is_some() || self.failed.is_some() {
            return None;
        }
        let looked = self.look_at_all(workspace);
        Some(match looked {
            Ok((walk, mark)) => {
                self.all = Some(mark.clone());
                (Noted { all: Some(mark), ..Noted::default() }, Some(walk))
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
        let by = By::Disk(self.rules_before()?);
        let (walk, _) = self.store.look_at_all(workspace, &by)?;
        self.store.settle()?;
        Ok((walk, self.store.index.write(true)?))
    }

    /// The rules from before the turn, where an operation of it has changed them.
    fn rules_before(&self) -> Result<BTreeMap<(String, String), Option<String>>> {
        let mut rules = BTreeMap::new();
        for (path, what) in &self.early {
            let (folder, name) = split(path);
            if !FILES.contains(&name) {
                continue;
            }
            let text = match what {
                Some(What::File { blob, .. }) => self.store.blobs.read(blob)?,
                _ => None,
            };
            let text = text.map(|t| String::from_utf8_lossy(first_lines(&t)).into_owned());
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            rules.insert((prefix, name.to_owned()), text);
        }
        Ok(rules)
    }

    /// All commands of the turn have run. Gives what the workspace is like now, where some have.
    pub fn after_commands(&mut self, workspace: &Workspace) -> Option<Walk> {
        if self.all.is_none() || self.failed.is_some() {
            return None;
        }
        let by = By::Given(self.store.index.rules.clone());
        match self.store.look_at_all(workspace, &by) {
            Ok((walk, differences)) => {
                self.differences = Some(differences);
                Some(walk)
            }
            Err(e) => {
                self.fail(&e.to_string());
                None
            }
        }
    }

    /// The turn is at its end: what it changed. All that is needed to take it back is on disk then.
    pub fn finish(mut self, workspace: &Workspace) -> Recorded {
        let (changes, by_commands) = match self.conclude(workspace) {
            Ok(done) => done,
            Err(e) => {
                self.fail(&e.to_string());
                (Vec::new(), Vec::new())
            }
        };
        self.store.note_size();
        match self.failed {
            Some(why) => Recorded { changes: Err(why), by_commands: Vec::new() },
            None => Recorded { changes: Ok(changes), by_commands },
        }
    }

    /// Whether something is left out by the rules from before the turn.
    fn is_ignored(&self, path: &str, what: Option<&What>) -> bool {
        let is_folder = matches!(what, Some(What::Folder { .. }));
        ignores(&self.store.index.rules, path, is_folder)
    }

    fn conclude(&mut self, workspace: &Workspace) -> Result<(Vec<Change>, Vec<usize>)> {
        if self.failed.is_some() {
            return Ok(Default::default());
        }
        if self.all.is_some() && self.differences.is_none() {
            // The turn ended before its last command was looked after.
            self.after_commands(workspace);
        }
        let differences = self.differences.take().unwrap_or_default();
        let commands: BTreeSet<String> = differences
            .iter()
            .map(|(path, ..)| path.clone())
            .filter(|path| !self.late.contains_key(path))
            .collect();
        let mut all: BTreeMap<String, (Option<What>, Option<What>)> =
            differences.into_iter().map(|(path, before, after)| (path, (before, after))).collect();
        let touched = std::mem::take(&mut self.early).into_iter().map(|touched| (touched, true));
        let late = std::mem::take(&mut self.late).into_iter().map(|touched| (touched, false));
        for ((path, before), is_early) in touched.chain(late) {
            match all.get_mut(&path) {
                Some(known) if is_early => known.0 = before,
                Some(_) => {}
                // A command of the turn had made it, and it is gone: else a walk had met it.
                None if !is_early && !self.is_ignored(&path, before.as_ref()) => {}
                None => {
                    let after = self.store.look_at(workspace, &path, true)?;
                    all.insert(path, (before, after));
                }
            }
        }
        self.store.settle()?;
        if self.all.is_some() {
            // It is only a memory: what is lost of it is read again.
            self.store.index.write(false)?;
        }
        let differs =
            |(_, (before, after)): &(String, (Option<What>, Option<What>))| before != after;
        let changes: Vec<Change> = all
            .into_iter()
            .filter(differs)
            .map(|(path, (before, after))| Change { path, before, after, mixed: false })
            .collect();
        let by_commands = changes.iter().enumerate();
        let by_commands = by_commands.filter(|(_, change)| commands.contains(&change.path));
        let by_commands = by_commands.map(|(n, _)| n).collect();
        Ok((changes, by_commands))
    }
}
