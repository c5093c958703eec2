//! What was changed after deaddrop had been stopped hard within a turn, and before it was started again:
//! that is the person's, and an undo of the turn must not take it back unasked.
//!
//! Of an operation its Intent says what was to stand there. Of all else the times of files tell, which
//! nobody can set: what was changed later than the journal was last written. What a command did between
//! its Intent and the stop is taken for the person's, too: nobody can tell it apart. Where the journal
//! and the workspace may go by different clocks, or the clock was set back, all that differs is.

use std::collections::{BTreeMap, BTreeSet};

use cap_std::fs::Metadata;

use super::brought::{latest, made, now_of_files};
use super::clocks;
use super::hidden::Hidden;
use super::look::split;
use super::plan::ancestors;
use super::recorder::Recorder;
use super::{Noted, Store, What};
use crate::atomic::Times;
use crate::error::{Error, Result};
use crate::protocol::{Digest, Effect, MoveEffect, RelPath};
use crate::workspace::Workspace;
use crate::workspace::names::escaped;
use crate::workspace::walk::close::{By, Facts, Met};
use crate::workspace::walk::walk_closely;

/// What operations of the turn were to leave, and when it was stopped.
struct Stop<'a> {
    workspace: &'a Workspace,
    /// In nanoseconds since 1970; None where times tell nothing.
    at: Option<i128>,
    /// What was to stand in the places of operations.
    meant: BTreeMap<String, Vec<Meant<'a>>>,
    /// Folders that stand above what was to be there, and the files that were to be named so: operations make
    /// them.
    ours: BTreeSet<String>,
    /// What something new is not permitted; where that is not known, no permissions are taken for another's.
    umask: Option<u32>,
}

enum Meant<'a> {
    Content(&'a RelPath, Option<&'a Digest>),
    Moved(&'a MoveEffect),
}

impl Store {
    /// What may have been changed since a hard stop, of a turn of which this was noted and which was about to
    /// do this; `left` is when the journal was written last. None where nothing was.
    pub fn changed_since(
        &mut self,
        workspace: &Workspace,
        noted: &[Noted],
        effects: &[&Effect],
        left: Option<&Times>,
    ) -> Option<Noted> {
        let recorder = Recorder::resumed(self, noted.to_vec());
        if recorder.failed().is_some() {
            return None;
        }
        let stop = Stop::of(workspace, effects, left);
        let noted = match stop.theirs(recorder) {
            Ok(theirs) => Noted { theirs: theirs.into_iter().collect(), ..Noted::default() },
            Err(e) => Noted { failed: Some(e.to_string()), ..Noted::default() },
        };
        (noted != Noted::default()).then_some(noted)
    }
}

impl<'a> Stop<'a> {
    fn of(workspace: &'a Workspace, effects: &[&'a Effect], left: Option<&Times>) -> Self {
        let mut meant: BTreeMap<String, Vec<Meant>> = BTreeMap::new();
        let mut ours = BTreeSet::new();
        let key = |path: &RelPath| escaped(path.as_str().as_bytes());
        for effect in effects {
            let to = match effect {
                Effect::File(effect) => {
                    let (path, after) = (&effect.path, effect.after.as_ref());
                    let key = key(path);
                    ours.extend(effect.temporary.as_ref().map(|name| match split(&key).0 {
                        "" => name.clone(),
                        folder => format!("{folder}/{name}"),
                    }));
                    meant.entry(key).or_default().push(Meant::Content(path, after));
                    path
                }
                Effect::Move(effect) => {
                    let gone = Meant::Content(&effect.from, None);
                    meant.entry(key(&effect.from)).or_default().push(gone);
                    meant.entry(key(&effect.to)).or_default().push(Meant::Moved(effect));
                    &effect.to
                }
                Effect::Command | Effect::Guest { .. } => continue,
            };
            let to = key(to);
            ours.extend(ancestors(&to).filter(|above| *above != to).map(str::to_owned));
        }
        let at = comparable(workspace, left);
        Self { workspace, at, meant, ours, umask: umask() }
    }

    /// Whether something was changed later, as far as that can be told.
    fn is_late(&self, facts: &Facts) -> bool {
        self.at.is_none_or(|at| latest(facts.changed) > at)
    }

    /// Whether what stands somewhere is what an operation was to leave there, where this had stood before.
    /// It makes what is missing, and leaves the permissions of what is there.
    fn is_meant(&self, path: &str, facts: Option<&Facts>, stood: Option<&What>) -> bool {
        let has_mode = |made: u32| {
            facts.is_none_or(|facts| match stood {
                Some(stood) => stood.mode().is_none_or(|mode| facts.mode == mode),
                // The group that a folder hands on is no change.
                None => self.umask.is_none_or(|umask| facts.mode & !0o2000 == made & !umask),
            })
        };
        if facts.is_some() && self.ours.contains(path) {
            let found = self.workspace.stands_at(path).ok().map(|(_, found)| found);
            let Some(folder) = found.filter(Metadata::is_dir) else { return true };
            return stood.is_none() && has_mode(0o777) && !self.was_put_there(&folder);
        }
        match self.last_of(path) {
            Some(last) => {
                self.is_left(last, facts) && (matches!(last, Meant::Moved(_)) || has_mode(0o666))
            }
            None => self.went(path, facts),
        }
    }

    /// Whether a folder was renamed to where it stands, or the like, since nothing was put into it then.
    fn was_put_there(&self, folder: &Metadata) -> bool {
        let facts = Facts::of(folder);
        self.is_late(&facts) && self.at.is_some_and(|at| latest(facts.written) <= at)
    }

    /// Whether a folder that no look has met is older than that look.
    fn is_older(&self, path: &str, since: i64) -> bool {
        let found = self.workspace.stands_at(path).ok();
        let made = found.and_then(|(_, found)| made(&found));
        made.is_some_and(|made| latest(made) < since.into())
    }

    fn last_of(&self, path: &str) -> Option<&Meant<'a>> {
        self.meant.get(path)?.last()
    }

    /// Whether what stands there holds what this operation was to leave.
    fn is_left(&self, meant: &Meant<'_>, facts: Option<&Facts>) -> bool {
        match meant {
            Meant::Content(path, after) => {
                self.workspace.digest(path).is_ok_and(|now| now.as_ref() == *after)
            }
            // A move leaves the time of the last writing.
            Meant::Moved(effect) => facts.is_some_and(|facts| {
                facts.inode == effect.inode && self.at.is_some_and(|at| facts.written <= at)
            }),
        }
    }

    /// Whether nothing stands there since it went with a folder.
    fn went(&self, path: &str, facts: Option<&Facts>) -> bool {
        let gone = |above: &str| matches!(self.last_of(above), Some(Meant::Content(_, None)));
        facts.is_none() && ancestors(path).any(gone)
    }

    /// Whether this stands where operations were to leave other things, whatever its times tell: it came with
    /// a folder that was moved there. Only of turns whose commands cannot have left it.
    fn came(&self, path: &str, facts: Option<&Facts>) -> bool {
        let Some(all) = self.meant.get(path) else { return false };
        let is_file = self.workspace.stands_at(path).is_ok_and(|(_, found)| found.is_file());
        is_file && !all.iter().any(|meant| self.is_left(meant, facts))
    }

    fn theirs(&self, recorder: Recorder<'_>) -> Result<BTreeSet<String>> {
        let Recorder { store, early, late, all, since, .. } = recorder;
        let mut theirs = match &all {
            Some(_) => self.among_all(store, since)?,
            None => BTreeSet::new(),
        };
        for (path, stood) in early.iter().chain(&late) {
            let now = store.look_for(self.workspace, path, false, [stood.as_ref(), None])?;
            if now == *stood || theirs.contains(path) {
                continue;
            }
            let facts = |path: &str| {
                let found = self.workspace.stands_at(path).ok();
                found.map(|(_, found)| Facts::of(&found))
            };
            let own = facts(path);
            // Of what is gone, the folder that held it tells.
            let tells = own.or_else(|| {
                ancestors(path).collect::<Vec<_>>().into_iter().rev().chain([""]).find_map(facts)
            });
            let is_late = tells.is_none_or(|facts| self.is_late(&facts));
            if (is_late || all.is_none() && self.came(path, own.as_ref()))
                && !self.is_meant(path, own.as_ref(), stood.as_ref())
            {
                theirs.insert(path.clone());
            }
        }
        Ok(theirs)
    }

    /// Those among all that was looked at before the first command, which was at `since`, and all that is
    /// there now.
    fn among_all(&self, store: &Store, since: i64) -> Result<BTreeSet<String>> {
        let index = &store.index;
        let mut walk = walk_closely(self.workspace, &By::Given(index.rules.clone()))?;
        let close = walk.take_close().unwrap_or_default();
        let (mut met, hidden) = (close.met, Hidden::of(close.unreadable));
        met.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let root = self.workspace.root.dir_metadata();
        let root = root.map_err(|e| Error::io("look at", &self.workspace.path, e))?;
        let mut folders = BTreeMap::from([(String::new(), Facts::of(&root))]);
        // What came as a whole, with all that lies below it.
        let mut came: BTreeSet<&str> = BTreeSet::new();
        let mut theirs = BTreeSet::new();
        for Met { path, kind, size, facts } in &met {
            let seen = index.seen.get(path);
            let stood = seen.map(|seen| &seen.what);
            let is_late = self.is_late(facts);
            let is_same = seen.is_some_and(|seen| seen.facts.is_number_of(facts));
            if kind.is_none() {
                folders.insert(path.clone(), *facts);
                let is_other = || {
                    !self.is_meant(path, Some(facts), stood)
                        || stood.is_none() && self.is_older(path, since)
                };
                if is_late && !is_same && is_other() {
                    came.insert(path);
                }
            }
            let differs = seen.is_none_or(|seen| match (&seen.what, kind) {
                (What::Folder { mode }, None) => *mode != facts.mode,
                _ => seen.facts != *facts || seen.size != *size,
            });
            let is_theirs = is_late || ancestors(path).any(|above| came.contains(above));
            let is_meant =
                || !came.contains(path.as_str()) && self.is_meant(path, Some(facts), stood);
            if differs && is_theirs && !is_meant() {
                theirs.insert(path.clone());
            }
        }
        let there: BTreeSet<&str> = met.iter().map(|met| met.path.as_str()).collect();
        let gone = index.seen.keys().filter(|path| {
            !path.is_empty() && !there.contains(path.as_str()) && !hidden.hides(path)
        });
        for path in gone {
            let above = ancestors(path).filter_map(|above| folders.get(above)).last();
            let tells = above.or_else(|| folders.get(""));
            if tells.is_none_or(|facts| self.is_late(facts)) && !self.is_meant(path, None, None) {
                theirs.insert(path.clone());
            }
        }
        Ok(theirs)
    }
}

/// What something new is not permitted; None where the system does not tell.
fn umask() -> Option<u32> {
    let told = std::fs::read_to_string("/proc/self/status").ok()?;
    let umask = told.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// When deaddrop was stopped, in a time that those of the workspace's files can be compared with.
fn comparable(workspace: &Workspace, left: Option<&Times>) -> Option<i128> {
    let left = left?;
    if clocks::tell_in(&workspace.root) != Some(true) {
        return None;
    }
    let root = workspace.root.try_clone().ok()?;
    let root = Times::of(&root.into_std_file())?;
    let same_clock = root.device == left.device || root.are_ours && left.are_ours;
    // A clock that was set back has given later changes earlier times.
    let goes_on = !left.are_ours || left.written <= now_of_files().into();
    (same_clock && goes_on).then_some(left.written)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;

    use super::super::tests::scene;
    use super::*;
    use crate::protocol::Existing;

    /// Waits until files get a later time than they do now.
    fn next_tick() {
        let now = now_of_files();
        while now_of_files() <= now {
            std::thread::yield_now();
        }
    }

    #[test]
    fn where_clocks_cannot_be_compared_all_that_differs_is_the_persons() {
        let mut scene = scene();
        scene.sh("echo a > a; echo b > b; echo c > c");
        let noted = Recorder::new(&mut scene.store).before_command(&scene.workspace).unwrap().0;
        scene.sh("echo A > a; rm b");
        next_tick();
        let root = File::open(scene.dir.path().join("w")).unwrap();
        let later = Times { written: now_of_files().into(), ..Times::of(&root).unwrap() };
        let mut theirs = |left: Option<Times>| {
            let noted = scene.store.changed_since(
                &scene.workspace,
                std::slice::from_ref(&noted),
                &[],
                left.as_ref(),
            );
            noted.map(|noted| noted.theirs).unwrap_or_default()
        };
        assert_eq!(theirs(Some(later.clone())), Vec::<String>::new());
        let elsewhere = Times { device: later.device + 1, are_ours: false, ..later };
        let set_back = Times { written: later.written << 1, are_ours: true, ..later };
        for left in [None, Some(elsewhere), Some(set_back)] {
            assert_eq!(theirs(left.clone()), ["a", "b"], "{left:?}");
        }
    }

    /// What is the person's where a turn has begun that makes `d/x`, has made it, and this was done since it
    /// was stopped; `command` says whether a command came before.
    fn after_a_stop(begin: &str, command: bool, done: &str) -> Vec<String> {
        let mut scene = scene();
        scene.sh(begin);
        next_tick();
        let path = RelPath::parse("d/x").unwrap();
        let mut recorder = Recorder::new(&mut scene.store);
        let mut noted = Vec::new();
        if command {
            noted.extend(recorder.before_command(&scene.workspace).map(|noted| noted.0));
        }
        let plan = scene.workspace.plan_create(&path, b"made", Existing::Replace, false).unwrap();
        noted.extend(recorder.before_file(&scene.workspace, plan.effect()));
        drop(recorder);
        let effect = Effect::File(Box::new(plan.effect().clone()));
        plan.execute().unwrap();
        let root = File::open(scene.dir.path().join("w")).unwrap();
        let later = Times { written: now_of_files().into(), ..Times::of(&root).unwrap() };
        next_tick();
        scene.sh(done);
        let noted = scene.store.changed_since(&scene.workspace, &noted, &[&effect], Some(&later));
        noted.map(|noted| noted.theirs).unwrap_or_default()
    }

    #[test]
    fn permissions_that_no_operation_gives_are_the_persons() {
        for command in [false, true] {
            let theirs = |begin: &str, done: &str| after_a_stop(begin, command, done).join(" ");
            assert_eq!(theirs("true", "true"), "", "{command}");
            assert_eq!(
                theirs("mkdir -m 750 d; echo x > d/x; chmod 755 d/x", "true"),
                "",
                "{command}"
            );
            assert_eq!(theirs("true", "chmod 600 d/x"), "d/x", "{command}");
            assert_eq!(theirs("mkdir d; echo x > d/x", "chmod 600 d/x"), "d/x", "{command}");
            assert_eq!(theirs("true", "chmod 700 d"), "d", "{command}");
        }
        assert_eq!(after_a_stop("mkdir d", true, "chmod 700 d"), ["d"]);
    }

    #[test]
    fn what_came_with_a_folder_that_the_person_put_there_is_theirs_whatever_its_times() {
        let theirs = after_a_stop("mkdir new; echo mine > new/x", false, "mv d old; mv new d");
        assert_eq!(theirs, ["d", "d/x"]);
        assert_eq!(after_a_stop("mkdir d; echo x > d/x", false, "touch d/y"), Vec::<String>::new());
    }

    #[test]
    fn a_folder_that_the_person_put_in_the_place_of_a_new_one_is_theirs_with_all_that_it_holds() {
        let begin = "mkdir new; echo mine > new/x; echo z > new/z";
        // Also where something was changed in it since.
        for (more, also) in [("", ""), ("; touch d/y", " d/y")] {
            let theirs = after_a_stop(begin, true, &format!("mv d old; mv new d{more}"));
            let expected = format!("d d/x{also} d/z new new/x new/z old old/x");
            assert_eq!(theirs.join(" "), expected);
        }
        // One that operations made stays theirs.
        assert_eq!(after_a_stop("true", true, "echo y > d/y"), ["d/y"]);
    }
}
