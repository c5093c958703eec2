//! Walks the workspace: lists every file that is not ignored, with its size, sorted by path.
//!
//! Folders are opened relative to their parent's handle and never through a link. If there are many files, a second
//! thread helps.

mod counting;
pub(super) mod detailed;
mod found;
mod handle;
pub(crate) mod ignoring;
pub(super) mod tracked;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::Workspace;
use super::modes::SET_IDS;
use super::names::{escaped, shown};
use super::products::is_by_product;
use crate::error::{Error, Result};
use crate::protocol::RelPath;
use crate::secrets;
use crate::settings::is_repository;
use detailed::{FileStat, IgnoreSource, WalkEntry};
pub(super) use found::PlaceKind;
pub use found::{Count, EntryKind, LeftOut, Listed, Walk};
pub(super) use handle::{FileType, Handle, may_be_folder};
use ignoring::{Budget, IgnoreRules};

/// The number of files above which a second thread makes the walk faster.
const PARALLEL_FROM: usize = 5_000;

/// A folder still to be walked.
struct WalkJob {
    parent: Arc<Handle>,
    name: Vec<u8>,
    /// The folder's escaped path, with a `/` at the end.
    path: String,
    rules: Option<Arc<IgnoreRules>>,
}

/// The folders still to be walked. The last one added is taken first, so that few handles are open at a time.
struct Queue {
    /// The waiting jobs, and the number of jobs in progress.
    jobs: Mutex<(Vec<WalkJob>, usize)>,
    changed: Condvar,
}

/// Lists every file, including ignored ones.
pub(in crate::workspace) fn walk_all(workspace: &Workspace) -> Result<Walk> {
    walk(workspace, Some(&IgnoreSource::Given(BTreeMap::new())), None)
}

/// Lists every file that these rules do not ignore, with its metadata.
pub(in crate::workspace) fn detailed_walk(
    workspace: &Workspace,
    rules: &IgnoreSource,
) -> Result<Walk> {
    walk(workspace, Some(rules), None)
}

/// Lists every file that is not ignored. With `wanted`, lists only files whose names it accepts, and does not inspect
/// any others. With `ignore_source`, uses the rules of that source and collects details.
pub(super) fn walk(
    workspace: &Workspace,
    ignore_source: Option<&IgnoreSource>,
    wanted: Option<fn(&str) -> bool>,
) -> Result<Walk> {
    let (begun, since_1970) = (Instant::now(), detailed::now());
    let root = Handle::root(&workspace.root).map_err(|e| Error::io("list", &workspace.path, e))?;
    let queue = Queue { jobs: Mutex::new((Vec::new(), 1)), changed: Condvar::new() };
    let (state, budget) = (&*workspace.state, Budget::new());
    let walker = Walker { queue: &queue, state, budget, ignore_source, wanted };
    let walk = thread::scope(|scope| {
        let mut mine = walker.begin();
        let mut buffer = Vec::with_capacity(32 << 10);
        let (mut helper, mut tried) = (None, false);
        walker.folder(&Arc::new(root), "", None, &mut mine, &mut buffer);
        queue.done();
        while let Some(job) = queue.next() {
            walker.job(&job, &mut mine, &mut buffer);
            queue.done();
            if !tried && mine.entries.len() > PARALLEL_FROM {
                tried = true;
                // If no thread can be created, this thread continues alone.
                helper = thread::Builder::new().spawn_scoped(scope, || walker.help()).ok();
            }
        }
        mine.sort();
        match helper.map(thread::ScopedJoinHandle::join) {
            None => mine,
            Some(Ok(theirs)) => mine.merged(theirs),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    });
    workspace.note_repositories(&walk, begun.elapsed());
    Ok(Walk { begun: since_1970, ..walk })
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (Vec<WalkJob>, usize)> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next folder. Waits as long as the other thread may still add folders. None at the end of the walk.
    fn next(&self) -> Option<WalkJob> {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.0.pop() {
                queue.1 += 1;
                return Some(job);
            }
            if queue.1 == 0 {
                self.changed.notify_all();
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, jobs: &mut Vec<WalkJob>) {
        if !jobs.is_empty() {
            self.lock().0.append(jobs);
            self.changed.notify_all();
        }
    }

    /// Marks one folder as finished.
    fn done(&self) {
        let mut queue = self.lock();
        queue.1 -= 1;
        if queue.1 == 0 {
            self.changed.notify_all();
        }
    }
}

struct Walker<'a> {
    queue: &'a Queue,
    state: &'a [RelPath],
    budget: Budget,
    /// The rules of a detailed walk; None if names and sizes are enough.
    ignore_source: Option<&'a IgnoreSource>,
    /// Accepts the names of wanted files; None if all are wanted.
    wanted: Option<fn(&str) -> bool>,
}

impl Walker<'_> {
    fn begin(&self) -> Walk {
        let detailed = self.ignore_source.map(|_| Box::default());
        Walk { detailed, ..Walk::default() }
    }

    fn help(&self) -> Walk {
        let mut walk = self.begin();
        let mut buffer = Vec::with_capacity(32 << 10);
        while let Some(job) = self.queue.next() {
            self.job(&job, &mut walk, &mut buffer);
            self.queue.done();
        }
        walk.sort();
        walk
    }

    fn job(&self, job: &WalkJob, walk: &mut Walk, buffer: &mut Vec<u8>) {
        match job.parent.child(&job.name) {
            Ok(handle) => {
                self.folder(&Arc::new(handle), &job.path, job.rules.as_ref(), walk, buffer);
            }
            Err(_) => walk.note_unreadable(&job.path, b""),
        }
    }

    fn folder(
        &self,
        handle: &Arc<Handle>,
        exact: &str,
        rules: Option<&Arc<IgnoreRules>>,
        walk: &mut Walk,
        buffer: &mut Vec<u8>,
    ) {
        let before = handle.stat(b".", true).map(|(_, _, stat)| stat);
        walk.folders.push((exact.trim_end_matches('/').to_owned(), before.unwrap_or_default()));
        let Ok(entries) = handle.entries(buffer, usize::MAX) else {
            walk.note_unreadable(exact, b"");
            return;
        };
        let text = if exact.contains('%') { shown(exact).into() } else { Cow::Borrowed(exact) };
        let prefix = &*text;
        // On a case-insensitive file system, `head` counts as `HEAD`.
        let contains =
            |part: &str| entries.iter().any(|(name, _)| name.eq_ignore_ascii_case(part.as_bytes()));
        if is_repository(contains) {
            walk.note(PlaceKind::Bare, exact);
        }
        let mut names = entries.iter().map(|(name, _)| name.as_slice());
        let read = |name: &[u8]| handle.read_small(name);
        let own = match (self.ignore_source, &mut walk.detailed) {
            (Some(source), Some(detailed)) => {
                let texts = detailed.rules_of(source, exact, names, read);
                let names = texts.keys().map(String::as_bytes);
                ignoring::here(prefix, rules, names, &self.budget, |name| given(&texts, name))
            }
            _ => ignoring::here(prefix, rules, &mut names, &self.budget, read),
        };
        walk.rules.extend(own.iter().map(|own| (exact.to_owned(), own.digest)));
        let rules = own.as_ref().or(rules);

        let is_recorded = !prefix.split('/').any(|name| is_by_product(name, true));
        let mut folders = Vec::new();
        for (name, kind) in &entries {
            // On a case-insensitive file system, `.GIT` is also a repository. It is listed all the same.
            if name.eq_ignore_ascii_case(b".git") {
                walk.note(PlaceKind::Repository, exact);
            }
            let unlisted = name.as_slice() == b".gitkeep";
            if name.as_slice() == b".git" {
                continue;
            }
            let text = String::from_utf8_lossy(name);
            if self.wanted.is_some_and(|is_wanted| !may_be_folder(*kind) && !is_wanted(&text)) {
                continue;
            }
            if !self.state.is_empty() {
                let path = format!("{prefix}{text}");
                if self.state.iter().any(|place| place.as_str() == path) {
                    continue;
                }
            }
            let stat = match &walk.detailed {
                // If no details are needed, the type is enough for a folder.
                None if *kind == FileType::Directory => Ok((None, 0, FileStat::default())),
                _ => handle.stat(name, walk.detailed.is_some()),
            };
            let (kind, size, facts) = match stat {
                Ok(stat) => stat,
                Err(e) => {
                    // If permission is denied for one entry, it is denied for all, so report the folder.
                    match e.kind() {
                        ErrorKind::NotFound => {}
                        ErrorKind::PermissionDenied => walk.note_unreadable(exact, b""),
                        _ => walk.note_unreadable(exact, name),
                    }
                    continue;
                }
            };
            let place = || [exact, &*escaped(name)].concat();
            if kind == Some(EntryKind::File) && facts.mode & SET_IDS != 0 {
                walk.note(PlaceKind::SetId, &place());
            }
            if unlisted && walk.detailed.is_none() {
                continue;
            }
            let is_left_out =
                rules.is_some_and(|rules| rules.ignores(prefix, &text, kind.is_none()));
            if let (true, Some(detailed)) = (is_recorded, &mut walk.detailed) {
                let is_met = !is_left_out && !is_by_product(&text, kind.is_none());
                let entries = if is_met { &mut detailed.met } else { &mut detailed.left_out };
                entries.push(WalkEntry { path: place(), kind, size, facts });
            }
            if is_left_out {
                match kind {
                    None => walk.note(PlaceKind::Ignored, &place()),
                    Some(kind) => {
                        walk.ignored_files.add_file(size);
                        if kind == EntryKind::File && secrets::is_secret_text_file(&text) {
                            walk.note(PlaceKind::IgnoredSecret, &format!("{prefix}{text}"));
                        }
                    }
                }
                continue;
            }
            match kind {
                None => folders.push(WalkJob {
                    parent: Arc::clone(handle),
                    name: name.clone(),
                    path: place() + "/",
                    rules: rules.cloned(),
                }),
                Some(_) if unlisted => {}
                Some(kind) => walk.push(prefix, &text, size, kind),
            }
        }
        self.queue.add(&mut folders);
    }
}

/// The text of an ignore file, taken from `texts`.
fn given(texts: &BTreeMap<String, String>, name: &[u8]) -> std::io::Result<Vec<u8>> {
    let text = std::str::from_utf8(name).ok().and_then(|name| texts.get(name));
    text.map(|text| text.clone().into_bytes()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_root_that_cannot_be_read_has_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        fs::create_dir(&root).unwrap();
        let workspace = Workspace::open(&root, &[], &[]).unwrap();
        // A folder that was removed cannot be listed.
        fs::remove_dir(&root).unwrap();
        assert_eq!(workspace.walk().unwrap().unreadable().collect::<Vec<_>>(), ["."]);
    }

    #[test]
    fn files_that_hold_secrets_are_found_without_a_look_at_others() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join(".gitignore"), ".env\n").unwrap();
        for name in ["a/b/x.pem", "a/.env", "a/b/x.rs", "x.txt", "id_rsa"] {
            fs::write(root.join(name), "x").unwrap();
        }
        let workspace = Workspace::open(root, &[], &[]).unwrap();
        let walk = workspace.walk_for_secrets().unwrap();
        assert_eq!(walk.files().map(|file| file.path).collect::<Vec<_>>(), ["a/b/x.pem", "id_rsa"]);
        for walk in [walk, workspace.walk().unwrap()] {
            assert_eq!(walk.ignored_secrets().collect::<Vec<_>>(), ["a/.env"]);
        }
    }

    #[test]
    fn repositories_are_told_outside_of_ignored_folders() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in
            [&b"a/.git"[..], b"a/n\xff%/.git", b"a/b/.GIT", b"out/x/.git", b"c/.git/d/.git"]
        {
            fs::create_dir_all(root.join(OsStr::from_bytes(folder))).unwrap();
        }
        fs::create_dir(root.join("w")).unwrap();
        fs::write(root.join("w/.git"), "gitdir: ../a/.git").unwrap();
        fs::write(root.join(".gitignore"), "out/\n").unwrap();
        let walk = Workspace::open(root, &[], &[]).unwrap().walk().unwrap();
        let found: Vec<_> = walk.places(PlaceKind::Repository).collect();
        assert_eq!(found, ["a", "a/b", "a/n%FF%25", "c", "w"]);
        assert_eq!(walk.places(PlaceKind::Ignored).collect::<Vec<_>>(), ["out"]);
    }
}
