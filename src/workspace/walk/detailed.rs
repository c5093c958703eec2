//! A walk that looks closely: all that tells whether a file, a link or a folder is as it was, and the
//! rules that left others out, so that a later walk can go by the same.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Metadata, MetadataExt};
use serde::{Deserialize, Serialize};

use super::found::EntryKind;
use super::ignoring::{Budget, FILES, Rules, first_lines, here};
use crate::workspace::names::{ancestors, shown, split};
use crate::workspace::products::is_by_product;

/// What tells whether something is as it was, without a look into it.
///
/// Two are equal whatever file systems they are of: see [`FileStat::is_number_of`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(in crate::workspace) struct FileStat {
    /// Its file system; 0 where that is not known. A machine numbers those anew at every start, so it is kept
    /// nowhere.
    #[serde(skip)]
    pub(in crate::workspace) device: u64,
    /// Its number on its file system.
    pub(in crate::workspace) inode: u64,
    /// Its permissions, as `chmod` has them.
    pub(in crate::workspace) mode: u32,
    /// When its content was last written, in nanoseconds since 1970.
    pub(in crate::workspace) written: i64,
    /// When anything of it was last changed, which nobody can set.
    pub(in crate::workspace) changed: i64,
}

/// The time now, as a [`FileStat`] has it.
pub(in crate::workspace) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or_default()
}

impl PartialEq for FileStat {
    fn eq(&self, other: &Self) -> bool {
        let all = |of: &Self| (of.inode, of.mode, of.written, of.changed);
        all(self) == all(other)
    }
}

impl Eq for FileStat {}

impl FileStat {
    /// Whether both are of the same file, as far as its number tells: another file system, such as one that is
    /// mounted within the workspace, has the same numbers for other files.
    pub(in crate::workspace) fn is_number_of(&self, other: &Self) -> bool {
        let are_apart = self.device != 0 && other.device != 0 && self.device != other.device;
        self.inode == other.inode && !are_apart
    }

    /// Those of something that was looked at.
    pub(in crate::workspace) fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            mode: found.mode() & 0o7777,
            written: crate::clock::nanos(found.mtime(), found.mtime_nsec()),
            changed: crate::clock::nanos(found.ctime(), found.ctime_nsec()),
        }
    }
}

/// The texts of files of rules, by the folder that they stand in (escaped, with a `/` at its end) and
/// their names; of each what counts of it.
pub(in crate::workspace) type Texts = BTreeMap<String, BTreeMap<String, String>>;

/// By which rules a close walk goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::workspace) enum IgnoreSource {
    /// Those on disk, but for these files, by folder and name: what counts instead; None where there
    /// was none. In their order.
    Disk(Vec<((String, String), Option<String>)>),
    /// These, and no others.
    Given(Texts),
}

/// What a close walk found.
#[derive(Debug, Default)]
pub(in crate::workspace) struct DetailedWalk {
    /// All that is not left out, folders too.
    pub(in crate::workspace) met: Vec<WalkEntry>,
    /// What is left out: single files, and folders as a whole.
    pub(in crate::workspace) left_out: Vec<WalkEntry>,
    /// The rules that it went by.
    pub(in crate::workspace) rules: Texts,
    /// Whether those on disk are others.
    pub(in crate::workspace) others: bool,
    /// Folders that could not be read, escaped, with a `/` at their end (the root is empty), and single
    /// entries that could not be looked at.
    pub(in crate::workspace) unreadable: BTreeSet<String>,
}

/// Something that a close walk met.
#[derive(Debug)]
pub(in crate::workspace) struct WalkEntry {
    /// Its path from the root, escaped.
    pub(in crate::workspace) path: String,
    /// What it is; None for a folder.
    pub(in crate::workspace) kind: Option<EntryKind>,
    /// Its size in bytes.
    pub(in crate::workspace) size: u64,
    pub(in crate::workspace) facts: FileStat,
}

impl WalkEntry {
    /// What was looked at under a path.
    pub(in crate::workspace) fn of(path: String, found: &Metadata) -> Self {
        let kind = match () {
            () if found.is_dir() => None,
            () if found.is_file() => Some(EntryKind::File),
            () if found.is_symlink() => Some(EntryKind::Link),
            () => Some(EntryKind::Other),
        };
        Self { path, kind, size: found.len(), facts: FileStat::of(found) }
    }
}

impl DetailedWalk {
    pub(super) fn append(&mut self, mut other: Self) {
        // Of many files, twice the room would be much. The root is added later.
        self.met.reserve_exact(other.met.len() + 1);
        self.met.append(&mut other.met);
        self.left_out.append(&mut other.left_out);
        self.rules.append(&mut other.rules);
        self.others |= other.others;
        self.unreadable.append(&mut other.unreadable);
    }

    /// The rules that count in a folder; notes them, and whether they are those on disk.
    pub(super) fn rules_of<'a>(
        &mut self,
        by: &IgnoreSource,
        folder: &str,
        names: impl Iterator<Item = &'a [u8]>,
        read: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> BTreeMap<String, String> {
        let mut on_disk = BTreeMap::new();
        for name in names.filter_map(|name| std::str::from_utf8(name).ok()) {
            if FILES.contains(&name)
                && let Ok(bytes) = read(name.as_bytes())
            {
                let text = String::from_utf8_lossy(first_lines(&bytes)).into_owned();
                on_disk.insert(name.to_owned(), text);
            }
        }
        let counts = match by {
            IgnoreSource::Given(texts) => texts.get(folder).cloned().unwrap_or_default(),
            IgnoreSource::Disk(instead) => {
                let mut counts = on_disk.clone();
                let first = instead.partition_point(|((place, _), _)| place.as_str() < folder);
                let here = instead[first..].iter().take_while(|((place, _), _)| place == folder);
                for ((_, name), text) in here {
                    match text {
                        Some(text) => drop(counts.insert(name.clone(), text.clone())),
                        None => drop(counts.remove(name)),
                    }
                }
                counts
            }
        };
        self.others |= counts != on_disk;
        if !counts.is_empty() {
            self.rules.insert(folder.to_owned(), counts.clone());
        }
        counts
    }
}

/// The name of git's index, whose part of the rules stands under its place: what is told of the file, and the
/// paths from its repository's folder of what git tracks though rules leave it out, each after a NUL.
pub(in crate::workspace) const INDEX: &str = "index";

/// What git tracks though these rules leave it out, by its escaped path.
pub(in crate::workspace) fn tracked(texts: &Texts) -> impl Iterator<Item = String> {
    let indexes = texts
        .iter()
        .filter_map(|(place, names)| Some((place.strip_suffix(".git/")?, names.get(INDEX)?)));
    indexes.flat_map(|(folder, text)| {
        text.split('\0').skip(1).map(move |path| format!("{folder}{path}"))
    })
}

/// Whether these rules leave out what has this path, escaped, or a folder above it; but for what git tracks.
pub(in crate::workspace) fn ignores(texts: &Texts, path: &str, is_folder: bool) -> bool {
    Ignoring::by(texts).leaves_out(path, is_folder)
        && !tracked(texts).any(|tracked| {
            let rest = tracked.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || is_folder && rest.starts_with('/'))
        })
}

/// Tells of one path after another whether rules leave it out; what is known of a folder is kept.
pub(in crate::workspace) struct Ignoring<'a> {
    texts: &'a Texts,
    budget: Budget,
    folders: HashMap<String, (Option<Arc<Rules>>, bool)>,
}

impl<'a> Ignoring<'a> {
    pub(in crate::workspace) fn by(texts: &'a Texts) -> Self {
        Self { texts, budget: Budget::new(), folders: HashMap::new() }
    }

    /// Whether they leave out what has this path, escaped, or a folder above it.
    pub(in crate::workspace) fn leaves_out(&mut self, path: &str, is_folder: bool) -> bool {
        let (folder, name) = split(path);
        let (rules, is_left_out) = self.folder(folder);
        is_left_out || is_ignored(rules.as_ref(), folder, name, is_folder)
    }

    /// The rules that count in a folder, and whether it is left out itself.
    fn folder(&mut self, folder: &str) -> (Option<Arc<Rules>>, bool) {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        // From the top, not by recursion: there can be many folders above it.
        let mut known = (None, false);
        for folder in [""].into_iter().chain(ancestors(folder)) {
            if let Some(there) = self.folders.get(folder) {
                known.clone_from(there);
                continue;
            }
            let (above, name) = split(folder);
            let (rules, is_left_out) = known;
            let is_left_out = is_left_out || is_ignored(rules.as_ref(), above, name, true);
            known = self.within(folder, rules, is_left_out);
            self.folders.insert(folder.to_owned(), known.clone());
        }
        known
    }

    /// The same, where that is known of the folder above.
    fn within(
        &self,
        folder: &str,
        above: Option<Arc<Rules>>,
        is_left_out: bool,
    ) -> (Option<Arc<Rules>>, bool) {
        let [prefix, exact] = match folder {
            "" => [String::new(), String::new()],
            _ => [format!("{}/", shown(folder)), format!("{folder}/")],
        };
        let own = self.texts.get(&exact).and_then(|own| {
            let read = |name: &[u8]| super::given(own, name);
            here(&prefix, above.as_ref(), own.keys().map(String::as_bytes), &self.budget, read)
        });
        (own.or(above), is_left_out)
    }
}

/// Whether rules leave out what has this name in an escaped folder.
fn is_ignored(rules: Option<&Arc<Rules>>, folder: &str, name: &str, is_folder: bool) -> bool {
    is_by_product(name, is_folder)
        || rules.is_some_and(|rules| {
            let prefix =
                if folder.is_empty() { String::new() } else { format!("{}/", shown(folder)) };
            rules.ignores(&prefix, &shown(name), is_folder)
        })
}
