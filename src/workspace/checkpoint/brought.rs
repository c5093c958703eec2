//! What a command brought from among what is not kept, such as an ignored file that it renamed: it is no
//! work of the turn, and cannot go back to where it was, since nobody knows where that is.
//!
//! What was made before the commands ran, or not changed since, was there before: of both the file system
//! has times that nobody can set. What was made since is the turn's, but for what a move made anew: on
//! another file system, or in another layer of one. Of that, and where no time of a file's making is known,
//! what is gone of what is left out may tell: that is a guess, and called so.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::Metadata;

use super::Change;
use super::aside::{Gone, LeftOut};
use super::copies::content;
use super::look::Difference;
use super::numbers::Numbers;
use super::writing::device;
use crate::workspace::folder_cache::FolderCache;
use crate::workspace::walk::close::Facts;

/// What a time of whole seconds may be behind, in nanoseconds.
const COARSE: i128 = 2_000_000_000;

/// What is known of something that no look had met before the commands of a turn.
#[derive(Debug, Clone, Copy, Default)]
struct Stranger {
    facts: Facts,
    size: u64,
    is_folder: bool,
    /// When it was made, in nanoseconds since 1970; None where that is not known.
    made: Option<i128>,
}

/// Where something comes from that no look had met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The commands of the turn made it.
    Turn,
    /// It was in the workspace before, or beside it.
    Before,
    /// It may have been.
    Perhaps,
}

/// Now, as files get it for their times, in nanoseconds since 1970. No clock tells it: the system gives
/// files coarse times, but never one before a finer one that it has given to some file already. So a file
/// in memory is asked.
#[cfg(target_os = "linux")]
pub(super) fn now_of_files() -> i64 {
    use rustix::fs::{MemfdFlags, fstat, memfd_create};
    let file = memfd_create("now", MemfdFlags::CLOEXEC);
    let made = file.and_then(fstat).map(|made| (made.st_ctime, made.st_ctime_nsec));
    let (seconds, nanos) = made.map_or_else(
        |_| {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
            (now.tv_sec, now.tv_nsec)
        },
        |(seconds, nanos)| (seconds, i64::try_from(nanos).unwrap_or_default()),
    );
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

/// Now, as files get it for their times, in nanoseconds since 1970.
#[cfg(not(target_os = "linux"))]
pub(super) fn now_of_files() -> i64 {
    nanos(SystemTime::now()).and_then(|now| now.try_into().ok()).unwrap_or_default()
}

/// The last moment that a time of a file may stand for: some file systems have times of one second or of two.
pub(super) fn latest(time: i128) -> i128 {
    time + if time % 1_000_000_000 == 0 { COARSE - 1 } else { 0 }
}

/// When something was made, in nanoseconds since 1970; None where that is not known.
pub(super) fn made(found: &Metadata) -> Option<i128> {
    nanos(found.created().ok()?.into_std())
}

fn nanos(time: SystemTime) -> Option<i128> {
    i128::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Whether what differs was in the workspace before the commands ran, though not among what is kept.
/// `since` is when they began.
/// A guess counts only where nothing stood before: else what did is to come back, and what stands there
/// now is kept.
pub(super) fn origin(
    folders: &mut FolderCache,
    difference: &Difference,
    since: i64,
    left_out: &LeftOut<'_>,
) -> Origin {
    let Some((facts, size)) = difference.stranger else { return Origin::Turn };
    let Ok((_, found)) = folders.stands_at(&difference.path) else { return Origin::Turn };
    let made = made(&found);
    let stranger = Stranger { facts, size, is_folder: found.is_dir(), made };
    let here = device(&found);
    // What is gone was where the folder is that held it.
    let is_elsewhere = |gone: &str| {
        let gone = gone.trim_end_matches('/');
        let stands = match folders.stands_at(gone) {
            Ok((_, stands)) => Ok(stands),
            // The deepest folder on the way that is there.
            Err(_) => {
                let above = gone.rsplit_once('/').map_or("", |(above, _)| above);
                folders.nearest(above).dir_metadata()
            }
        };
        stands.is_ok_and(|stands| device(&stands) != here)
    };
    match stranger.origin(since.into(), left_out, is_elsewhere) {
        Origin::Perhaps if difference.before.is_some() => Origin::Turn,
        origin => origin,
    }
}

/// The same of a place that no look met, where an operation moved something that a command may have
/// brought before: then `since` is given. What was `kept` before the commands was not brought.
pub(super) fn with_brought(
    folders: &mut FolderCache,
    mut change: Change,
    since: Option<i64>,
    kept: &Numbers,
) -> Change {
    let (Some(since), Ok((_, found))) = (since, folders.stands_at(&change.path)) else {
        return change;
    };
    let facts = Facts::of(&found);
    let stranger = (!kept.has(&facts)).then_some((facts, found.len()));
    let path = change.path.clone();
    let difference = Difference { path, before: None, after: None, stranger };
    // It is what stands there now under an ignored name, not what still stands where it was.
    let origin = match change.before {
        None => origin(folders, &difference, since, &LeftOut::default()),
        Some(_) => Origin::Turn,
    };
    change.came_from(origin);
    change
}

/// Forgets what operations brought from where it is recorded, so that it can go back there.
pub(super) fn drop_known(all: &mut BTreeMap<String, Change>) {
    let before = all.values().filter_map(|change| content(change.before.as_ref()?));
    let before: BTreeSet<String> = before.collect();
    for change in all.values_mut().filter(|change| !change.by_command) {
        change.brought.retain(|what| content(what).is_some_and(|what| !before.contains(&what)));
    }
}

impl Change {
    /// What stands there now comes from there.
    pub(super) fn came_from(&mut self, origin: Origin) {
        if origin != Origin::Turn {
            self.brought.extend(self.after.clone().filter(|what| !what.is_unkept()));
            self.perhaps = origin == Origin::Perhaps;
        }
    }
}

impl Stranger {
    fn origin(
        self,
        since: i128,
        left_out: &LeftOut<'_>,
        mut is_elsewhere: impl FnMut(&str) -> bool,
    ) -> Origin {
        let Self { facts, size, is_folder, made } = self;
        // Another name of what still stands where it was.
        if left_out.still_has(&facts) {
            return Origin::Turn;
        }
        let is_before = |time| latest(time) < since;
        if made.is_some_and(is_before) || facts.changed != 0 && is_before(facts.changed) {
            return Origin::Before;
        }
        let perhaps = |perhaps| if perhaps { Origin::Perhaps } else { Origin::Turn };
        let is_old = latest(facts.written) < since;
        let Some(gone) = left_out.gone() else { return perhaps(made.is_none() && is_old) };
        let mut of_number = gone.of_number(&facts);
        let has_content = !is_folder && size > 0;
        let is_it =
            |then: &Gone<'_>| then.size == Some(size) && then.facts.written == facts.written;
        // In a file system of layers a file is made anew when it is renamed, and keeps its number.
        if has_content && of_number.any(is_it) {
            return Origin::Before;
        }
        perhaps(match made {
            Some(_) => {
                !is_folder
                    && (gone.was_written(size, facts.written)
                        || is_old && gone.folders.iter().any(|folder| is_elsewhere(folder)))
            }
            None => {
                is_old
                    || gone.of_number(&facts).next().is_some()
                    || !is_folder && gone.had_size(size)
            }
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::aside::Aside;
    use super::super::tests::{Scene, scene};
    use super::super::{composed, reversed};
    use super::*;

    /// A turn of a command, when what was there before is surely older than it.
    fn turn(scene: &mut Scene, script: &str) -> Vec<Change> {
        let before = now_of_files();
        while now_of_files() <= before {
            std::thread::yield_now();
        }
        scene.turn(script)
    }

    fn begun() -> Scene {
        let scene = scene();
        scene.sh("printf '.envx\nbuild/\n*.log\n' > .gitignore; echo secret > .envx; mkdir -p build/deep; \
            echo o > build/o; echo d > build/deep/d; echo a > a; ln -s gone link.log");
        scene
    }

    /// What is left of turns that are taken back, and stands: the paths that are named, and all paths.
    fn left(scene: &mut Scene, turns: Vec<Vec<Change>>) -> (Vec<String>, Vec<String>) {
        let left = scene.make(reversed(composed(turns)));
        let all = scene.all().into_keys().filter(|path| !path.is_empty());
        (left.into_iter().map(|(path, _)| path).collect(), all.collect())
    }

    #[test]
    fn what_was_ignored_and_is_renamed_stays() {
        for (script, named, all) in [
            (
                "mv .envx env.bak; mv build out; echo n > n",
                "env.bak out",
                "a build? env.bak out out/deep out/deep/d out/o",
            ),
            (
                "mv .envx e; echo more >> e; mkdir p; mv build/o p/o",
                "e p/o p",
                "a e p p/o build build/deep build/deep/d",
            ),
            ("mv .envx a", "a", "a build build/deep build/deep/d build/o"),
            // Copied with its time, and then removed: as a move to another file system does it.
            (
                "cp -p .envx e; rm .envx; echo other, longer > n",
                "e",
                "a e build build/deep build/deep/d build/o",
            ),
            ("mv link.log l", "l", ".envx a build build/deep build/deep/d build/o l"),
            // These are the turn's.
            (
                "cp .envx e; ln .envx f; cp -a build out; mv a b; sed -i s/a/b/ b",
                "",
                ".envx a build build/deep build/deep/d build/o",
            ),
            ("cp .envx e; rm .envx", "", "a build build/deep build/deep/d build/o"),
            // Of the size of what is gone or written to, and with old times.
            (
                "echo more >> .envx; rm -r build; sed -i s/a/b/ a; echo secreT > n; \
                    mkdir src; echo o > src/o; touch -d 2001-01-01 src/o src; cp -a src two",
                "",
                ".envx a",
            ),
        ] {
            let mut scene = begun();
            let done = turn(&mut scene, script);
            let (left, there) = left(&mut scene, vec![done]);
            assert_eq!(left.join(" "), named, "{script}");
            let mut expected: Vec<&str> = all.split(' ').filter(|p| !p.ends_with('?')).collect();
            expected.push(".gitignore");
            if !script.contains("link.log") {
                expected.push("link.log");
            }
            expected.sort_unstable();
            assert_eq!(there, expected, "{script}");
        }
    }

    #[test]
    fn what_was_kept_and_moved_to_an_ignored_name_goes_back() {
        use super::super::property::Act::{Command, Move};
        for script in ["echo more >> a", "true"] {
            let mut scene = begun();
            let before = now_of_files();
            while now_of_files() <= before {
                std::thread::yield_now();
            }
            let done = scene.carry_out(&[Command(script.into()), Move("a", "a.log")]);
            let (left, there) = left(&mut scene, vec![done]);
            assert_eq!(left, Vec::<String>::new(), "{script}");
            assert!(there.iter().all(|path| path != "a.log"), "{script}: {there:?}");
        }
    }

    #[test]
    fn what_a_later_turn_did_with_it_goes_back_to_what_was_brought() {
        for (second, expected) in [
            ("mv e f", "secret\n"),
            ("echo more >> e", "secret\n"),
            ("rm e", "secret\n"),
            ("mkdir d; mv e d/e; echo x > e", "secret\n"),
        ] {
            let mut scene = begun();
            let turns = vec![turn(&mut scene, "mv .envx e"), turn(&mut scene, second)];
            let (named, all) = left(&mut scene, turns);
            assert_eq!(named, ["e"], "{second}");
            assert!(!all.iter().any(|path| path == "f" || path == "d"), "{second}: {all:?}");
            let root = scene.dir.path().join("w");
            assert_eq!(std::fs::read_to_string(root.join("e")).unwrap(), expected, "{second}");
        }
        let mut scene = begun();
        let turns = vec![turn(&mut scene, "mv .envx e"), turn(&mut scene, "mv e f; mv build/o e")];
        let (named, _) = left(&mut scene, turns);
        assert_eq!(named, ["e", "f"]);
    }

    #[test]
    fn where_no_time_of_making_is_known_the_rest_tells() {
        let at =
            |inode, changed, written| Facts { inode, changed, written, mode: 0o644, device: 1 };
        let stranger = |facts, size| Stranger { facts, size, ..Stranger::default() };
        let aside = |entries: &[(&str, u64, u64)]| {
            Aside::for_tests(
                entries.iter().map(|(path, inode, size)| (*path, at(*inode, 5, 5), *size)),
            )
        };
        let before = aside(&[("x.log", 7, 30), ("build/", 8, 0)]);
        let after = aside(&[("build/", 8, 0)]);
        let both = [Some(&before), Some(&after)];
        let of =
            |stranger: Stranger, aside| stranger.origin(10, &LeftOut::between(aside), |_| false);
        // Renamed and written to; unchanged below a renamed folder; with an old time of writing.
        assert_eq!(of(stranger(at(7, 20, 20), 31), both), Origin::Perhaps);
        assert_eq!(of(stranger(at(9, 9, 20), 1), [None, None]), Origin::Before);
        assert_eq!(of(stranger(at(9, 20, 9), 1), [None, None]), Origin::Perhaps);
        // Of the size of what is gone, and of another.
        assert_eq!(of(stranger(at(9, 20, 20), 30), both), Origin::Perhaps);
        assert_eq!(of(stranger(at(9, 20, 20), 31), both), Origin::Turn);
        // Still there under its name, or written to there.
        let still = [Some(&before), Some(&before)];
        assert_eq!(of(stranger(at(7, 5, 5), 30), still), Origin::Turn);
        let longer = aside(&[("x.log", 7, 35), ("build/", 8, 0)]);
        let written = [Some(&before), Some(&longer)];
        assert_eq!(of(stranger(at(9, 20, 20), 30), written), Origin::Turn);
        // A number of another file system, such as one that is mounted there.
        let elsewhere = |facts| Facts { device: 2, ..facts };
        assert_eq!(of(stranger(elsewhere(at(7, 20, 20)), 31), both), Origin::Turn);
        assert_eq!(of(stranger(elsewhere(at(7, 5, 5)), 30), still), Origin::Before);
        // A number that was given anew, and one that a rename kept in another layer.
        let made = |stranger| Stranger { made: Some(15), ..stranger };
        assert_eq!(of(made(stranger(at(7, 20, 20), 31)), both), Origin::Turn);
        assert_eq!(of(made(stranger(at(7, 20, 5), 30)), both), Origin::Before);
    }

    #[test]
    fn what_a_move_to_another_file_system_made_anew_may_have_been_there() {
        let at = |inode, written| Facts { inode, changed: 20, written, mode: 0o644, device: 1 };
        let known = |path, inode| (path, Facts { changed: 5, ..at(inode, 5) }, 30);
        let before = Aside::for_tests([known("x.log", 7), known("m/build/", 8)].into_iter());
        let after = Aside::default();
        let both = [Some(&before), Some(&after)];
        let made = |facts, size| Stranger { facts, size, is_folder: false, made: Some(15) };
        let of = |stranger: Stranger, device: bool| {
            stranger.origin(10, &LeftOut::between(both), |gone| device && gone == "m/build/")
        };
        // By size and time of writing; the folder by its file system and an old time.
        assert_eq!(of(made(at(9, 5), 30), false), Origin::Perhaps);
        assert_eq!(of(made(at(9, 20), 30), true), Origin::Turn);
        assert_eq!(of(made(at(9, 4), 30), false), Origin::Turn);
        assert_eq!(of(made(at(9, 4), 31), true), Origin::Perhaps);
    }
}
