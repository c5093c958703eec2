//! A walk with details: the metadata that shows whether a file, link or folder has changed, and the ignore rules, so
//! that a later walk can use the same rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Metadata, MetadataExt};
use serde::{Deserialize, Serialize};

use super::found::EntryKind;
use super::ignoring::{Budget, FILES, IgnoreRules, first_lines, here};
use crate::workspace::names::{ancestors, shown, split};
use crate::workspace::products::is_by_product;

/// Metadata that shows whether an entry has changed, without reading it.
///
/// Equality ignores the device: see [`FileStat::is_number_of`].
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(in crate::workspace) struct FileStat {
    /// The device number of the file system; 0 if unknown. It is not stored, because it can change at every boot.
    #[serde(skip)]
    pub(in crate::workspace) device: u64,
    pub(in crate::workspace) inode: u64,
    /// The permissions, as in `chmod`.
    pub(in crate::workspace) mode: u32,
    /// When the content was last written (mtime), in nanoseconds since 1970.
    pub(in crate::workspace) written: i64,
    /// When the content or metadata last changed (ctime). Programs cannot set this time.
    pub(in crate::workspace) changed: i64,
}

/// The current time, in the unit of a [`FileStat`].
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
    /// Whether both can be the same file: the inodes are equal, and so are the devices, if known. Another file system,
    /// for example one mounted within the workspace, uses the same inode numbers for other files.
    pub(in crate::workspace) fn is_number_of(&self, other: &Self) -> bool {
        let are_apart = self.device != 0 && other.device != 0 && self.device != other.device;
        self.inode == other.inode && !are_apart
    }

    /// Takes the values from metadata.
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

/// The effective texts of ignore files, by their folder (escaped, with a `/` at the end) and name.
pub(in crate::workspace) type Texts = BTreeMap<String, BTreeMap<String, String>>;

/// The ignore rules of a detailed walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::workspace) enum IgnoreSource {
    /// The rules on disk, with the texts of some files replaced. These files are given by folder and name, sorted; None
    /// means that the file is treated as absent.
    Disk(Vec<((String, String), Option<String>)>),
    /// Only these rules.
    Given(Texts),
}

/// The details of a walk.
#[derive(Debug, Default)]
pub(in crate::workspace) struct DetailedWalk {
    /// All files and folders that are not left out.
    pub(in crate::workspace) met: Vec<WalkEntry>,
    /// The left out files, and the left out folders without their entries.
    pub(in crate::workspace) left_out: Vec<WalkEntry>,
    /// The ignore rules that were used.
    pub(in crate::workspace) rules: Texts,
    /// Whether the rules on disk are different.
    pub(in crate::workspace) others: bool,
    /// Folders that could not be read, escaped and with a `/` at the end (empty for the root), and single entries that
    /// could not be inspected.
    pub(in crate::workspace) unreadable: BTreeSet<String>,
}

/// An entry of a detailed walk.
#[derive(Debug)]
pub(in crate::workspace) struct WalkEntry {
    /// The entry's path from the root, escaped.
    pub(in crate::workspace) path: String,
    /// The type; None for a folder.
    pub(in crate::workspace) kind: Option<EntryKind>,
    /// Its size in bytes.
    pub(in crate::workspace) size: u64,
    pub(in crate::workspace) facts: FileStat,
}

impl WalkEntry {
    /// Takes the values from the metadata of a path.
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
        // Reserve exactly, because doubling would waste much memory. The root is added later.
        self.met.reserve_exact(other.met.len() + 1);
        self.met.append(&mut other.met);
        self.left_out.append(&mut other.left_out);
        self.rules.append(&mut other.rules);
        self.others |= other.others;
        self.unreadable.append(&mut other.unreadable);
    }

    /// The ignore files that apply to a folder. Records them, and whether they differ from those on disk.
    pub(super) fn rules_of<'a>(
        &mut self,
        source: &IgnoreSource,
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
        let used = match source {
            IgnoreSource::Given(texts) => texts.get(folder).cloned().unwrap_or_default(),
            IgnoreSource::Disk(instead) => {
                let mut used = on_disk.clone();
                let first = instead.partition_point(|((place, _), _)| place.as_str() < folder);
                let here = instead[first..].iter().take_while(|((place, _), _)| place == folder);
                for ((_, name), text) in here {
                    match text {
                        Some(text) => drop(used.insert(name.clone(), text.clone())),
                        None => drop(used.remove(name)),
                    }
                }
                used
            }
        };
        self.others |= used != on_disk;
        if !used.is_empty() {
            self.rules.insert(folder.to_owned(), used.clone());
        }
        used
    }
}

/// The name of git's index. [`Texts`] contains an entry with this name: a description of the index file, and the paths
/// (relative to the repository's folder) of ignored files that git tracks, each after a NUL.
pub(in crate::workspace) const INDEX: &str = "index";

/// The escaped paths of files that these rules ignore, but that git tracks.
pub(in crate::workspace) fn tracked(texts: &Texts) -> impl Iterator<Item = String> {
    let indexes = texts
        .iter()
        .filter_map(|(place, names)| Some((place.strip_suffix(".git/")?, names.get(INDEX)?)));
    indexes.flat_map(|(folder, text)| {
        text.split('\0').skip(1).map(move |path| format!("{folder}{path}"))
    })
}

/// Whether these rules leave out an escaped path or a folder above it. Paths that git tracks are never left out.
pub(in crate::workspace) fn ignores(texts: &Texts, path: &str, is_folder: bool) -> bool {
    Ignoring::by(texts).leaves_out(path, is_folder)
        && !tracked(texts).any(|tracked| {
            let rest = tracked.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || is_folder && rest.starts_with('/'))
        })
}

/// Checks whether rules leave out paths, and caches the results for folders.
pub(in crate::workspace) struct Ignoring<'a> {
    texts: &'a Texts,
    budget: Budget,
    folders: HashMap<String, (Option<Arc<IgnoreRules>>, bool)>,
}

impl<'a> Ignoring<'a> {
    pub(in crate::workspace) fn by(texts: &'a Texts) -> Self {
        Self { texts, budget: Budget::new(), folders: HashMap::new() }
    }

    /// Whether the rules leave out an escaped path or a folder above it.
    pub(in crate::workspace) fn leaves_out(&mut self, path: &str, is_folder: bool) -> bool {
        let (folder, name) = split(path);
        let (rules, is_left_out) = self.folder(folder);
        is_left_out || is_ignored(rules.as_ref(), folder, name, is_folder)
    }

    /// The rules that apply in a folder, and whether the folder itself is left out.
    fn folder(&mut self, folder: &str) -> (Option<Arc<IgnoreRules>>, bool) {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        // Start at the top instead of using recursion, because the folder can be deep.
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

    /// Like [`Self::folder`], but uses the known values of the parent folder.
    fn within(
        &self,
        folder: &str,
        above: Option<Arc<IgnoreRules>>,
        is_left_out: bool,
    ) -> (Option<Arc<IgnoreRules>>, bool) {
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

/// Whether rules leave out an entry of an escaped folder.
fn is_ignored(rules: Option<&Arc<IgnoreRules>>, folder: &str, name: &str, is_folder: bool) -> bool {
    is_by_product(name, is_folder)
        || rules.is_some_and(|rules| {
            let prefix =
                if folder.is_empty() { String::new() } else { format!("{}/", shown(folder)) };
            rules.ignores(&prefix, &shown(name), is_folder)
        })
}
