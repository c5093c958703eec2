//! Stores contents by their digests in packs. A pack is either complete or absent, and never changes.
//!
//! New contents are written to a new pack. [`Blobs::sync`] syncs the pack and gives it its name. Only this call waits
//! for the disk.
//!
//! ```text
//! pack  = { content } table count digest-of-table
//! table = { digest length }              digests have 32 bytes, numbers 8, little-endian
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tempfile::NamedTempFile;

use crate::atomic;
use crate::error::{Error, Result};

/// A pack with this many bytes of contents is full, and a new pack is begun. So removing contents rewrites little.
const FULL: u64 = if cfg!(test) { 4 << 20 } else { 32 << 20 };
/// Packs with fewer bytes of contents than this are small.
const SMALL: u64 = 1 << 20;
/// If there are more small packs than this, they are merged.
const MOST_SMALL: usize = 64;
/// The extension of packs.
const EXTENSION: &str = "pack";
/// The length in bytes of a row of a pack's table, and of the data after the table.
const ROW: usize = 40;

/// The BLAKE3 digest of a content, in JSON as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }
}

impl Serialize for BlobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl<'de> Deserialize<'de> for BlobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = String::deserialize(deserializer)?;
        blake3::Hash::from_hex(digits).map(|hash| Self(hash.into())).map_err(D::Error::custom)
    }
}

/// A store of contents. Only one process at a time may add or remove contents; others may read.
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
    index: OnceLock<Index>,
    /// The packs with contents that were added since the last sync.
    incoming: Vec<PackWriter>,
    /// Whether this process has synced the folders above the packs.
    is_folder_synced: bool,
}

impl Blobs {
    /// A store with packs in this folder. The folder is created with the first content.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, index: OnceLock::new(), incoming: Vec::new(), is_folder_synced: false }
    }

    /// Removes files that an interrupted process has not synced.
    pub fn remove_leftovers(&self) {
        // Files that cannot be removed are never used.
        let _ = atomic::sweep(&self.folder);
    }

    /// The index. It is loaded on first use.
    fn index(&self) -> Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let loaded = Index::load(&self.folder)?;
        Ok(self.index.get_or_init(|| loaded))
    }

    /// The number of bytes that a content takes in its pack; None if the content does not exist, synced or not.
    pub fn size_of(&self, id: &BlobId) -> Option<u64> {
        Some(self.index().ok()?.places.get(id)?.length + ROW as u64)
    }

    /// The size of all packs, in bytes.
    pub fn size(&self) -> u64 {
        let packs = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        packs.filter_map(|pack| Some(pack.metadata().ok()?.len())).sum()
    }

    /// Adds a content unless it exists, and returns by how many bytes the store grows. The content is on disk after the
    /// next [`Blobs::sync`].
    ///
    /// # Errors
    /// The content cannot be written, or the packs cannot be listed.
    pub fn add(&mut self, id: &BlobId, bytes: &[u8]) -> Result<u64> {
        if self.index()?.places.contains_key(id) {
            return Ok(0);
        }
        let Some(index) = self.index.get_mut() else { return Ok(0) };
        if self.incoming.last().is_none_or(|pack| pack.length >= FULL) {
            let pack = PackWriter::create(&self.folder, index.new_number())?;
            let path = pack.file.path().to_owned();
            index.packs.insert(pack.number, Pack { path, length: 0 });
            self.incoming.push(pack);
        }
        if let Some(pack) = self.incoming.last_mut() {
            index.places.insert(id.clone(), pack.add(id, bytes)?);
        }
        Ok((bytes.len() + ROW) as u64)
    }

    /// Syncs all added contents to disk.
    ///
    /// # Errors
    /// Contents that were added since the last sync may be lost.
    pub fn sync(&mut self) -> Result<()> {
        if self.incoming.is_empty() {
            return Ok(());
        }
        self.finish_incoming().inspect_err(|_| self.discard_unsynced())?;
        let Some(index) = self.index.get_mut() else { return Ok(()) };
        let small = index.packs.iter().filter(|(_, pack)| pack.length < SMALL);
        let small: Vec<u32> = small.map(|(number, _)| *number).collect();
        if small.len() > MOST_SMALL {
            // If merging fails, there are only more packs.
            let _ = index.rewrite(&small, |_| true, &self.folder);
        }
        Ok(())
    }

    /// Checks that all packs can be read.
    ///
    /// # Errors
    /// A pack cannot be read, so its contents are unknown.
    pub fn check(&self) -> Result<()> {
        self.index()?.check()
    }

    fn finish_incoming(&mut self) -> Result<()> {
        if !self.is_folder_synced {
            // The parents of the packs' folder.
            self.folder.ancestors().skip(1).take(2).try_for_each(atomic::sync_folder)?;
            self.is_folder_synced = true;
        }
        let Some(index) = self.index.get_mut() else { return Ok(()) };
        while let Some(pack) = self.incoming.pop() {
            index.finish(pack, &self.folder)?;
        }
        Ok(())
    }

    /// Removes all contents that were added since the last sync.
    pub fn discard_unsynced(&mut self) {
        let Some(index) = self.index.get_mut() else { return };
        self.incoming.drain(..).for_each(|pack| index.forget(pack.number));
    }

    /// Returns the bytes of a content; None if it does not exist or is damaged.
    ///
    /// # Errors
    /// The content cannot be read, or it was not found and one of the packs cannot be read.
    pub fn read(&self, id: &BlobId) -> Result<Option<Vec<u8>>> {
        let index = self.index()?;
        let read = index.read(id);
        match index.places.get(id) {
            // Another process has rewritten the pack.
            Some(place) if read.is_err() && !index.packs[&place.pack].path.exists() => {
                Index::load(&self.folder)?.read(id)
            }
            _ => read,
        }
    }

    /// Removes all synced contents that are not needed, by rewriting the packs that contain them.
    ///
    /// # Errors
    /// A pack cannot be read, rewritten or removed. This pack stays; the others are still processed.
    pub fn retain(&mut self, is_needed: impl Fn(&BlobId) -> bool) -> Result<()> {
        self.index()?;
        let Some(index) = self.index.get_mut() else { return Ok(()) };
        let mut needed: BTreeMap<u32, u64> = BTreeMap::new();
        for (_, place) in index.places.iter().filter(|(id, _)| is_needed(id)) {
            *needed.entry(place.pack).or_default() += place.length;
        }
        let is_incoming = |number: &u32| self.incoming.iter().any(|pack| pack.number == *number);
        let old = index.packs.iter().filter(|(number, pack)| {
            !is_incoming(number) && needed.get(number) != Some(&pack.length)
        });
        let mut old: Vec<u32> = old.map(|(number, _)| *number).collect();
        // Rewriting packs with few needed bytes needs the least space, so they come first. This helps on a full disk.
        old.sort_by_key(|number| needed.get(number));
        let mut result = Ok(());
        for pack in old {
            result = result.and(index.rewrite(&[pack], &is_needed, &self.folder));
        }
        result
    }
}

/// The places of all contents.
#[derive(Debug, Default)]
struct Index {
    places: BTreeMap<BlobId, Place>,
    packs: BTreeMap<u32, Pack>,
    /// The number of the last pack.
    last: u32,
    /// A pack that cannot be read, and why.
    unreadable: Option<(PathBuf, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    pack: u32,
    offset: u64,
    length: u64,
}

#[derive(Debug)]
struct Pack {
    path: PathBuf,
    /// The length of the contents in bytes; known when the pack is finished.
    length: u64,
}

impl Index {
    fn load(folder: &Path) -> Result<Self> {
        let mut index = Self::default();
        let entries = match fs::read_dir(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(index),
            entries => entries.map_err(|e| Error::io("list", folder, e))?,
        };
        for entry in entries {
            let path = entry.map_err(|e| Error::io("list", folder, e))?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                match read_table(&path) {
                    Ok(table) => index.insert(path, &table),
                    // Another process has rewritten the pack. The new pack may not have been listed.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => return Self::load(folder),
                    Err(e) => index.unreadable = Some((path, e.to_string())),
                }
            }
        }
        Ok(index)
    }

    /// Adds a pack with this table.
    fn insert(&mut self, path: PathBuf, table: &[u8]) {
        let (pack, mut offset) = (self.new_number(), 0);
        for row in table.chunks_exact(ROW) {
            let (digest, length) = row.split_at(32);
            let (digest, length) = (digest.try_into().unwrap_or_default(), number(length));
            self.places.insert(BlobId(digest), Place { pack, offset, length });
            offset += length;
        }
        self.packs.insert(pack, Pack { path, length: offset });
    }

    /// Syncs a new pack and gives it its name. If this fails, forgets its contents.
    fn finish(&mut self, pack: PackWriter, folder: &Path) -> Result<()> {
        let (number, length) = (pack.number, pack.length);
        let path = pack.finish(folder).inspect_err(|_| self.forget(number))?;
        self.packs.insert(number, Pack { path, length });
        Ok(())
    }

    /// Forgets an unfinished pack and its contents.
    fn forget(&mut self, number: u32) {
        self.packs.remove(&number);
        self.places.retain(|_, place| place.pack != number);
    }

    fn check(&self) -> Result<()> {
        let Some((path, why)) = &self.unreadable else { return Ok(()) };
        Err(Error::io("read", path, io::Error::other(&**why)))
    }

    fn read(&self, id: &BlobId) -> Result<Option<Vec<u8>>> {
        let Some(Place { pack, offset, length }) = self.places.get(id) else {
            return self.check().map(|()| None);
        };
        let path = &self.packs[pack].path;
        let file = atomic::open_own(File::options().read(true), path);
        let bytes = file.and_then(|file| read_at(&file, *offset, *length));
        let bytes = bytes.map_err(|e| Error::io("read", path, e))?;
        Ok(Some(bytes).filter(|bytes| BlobId::of(bytes) == *id))
    }

    /// Replaces these packs by one pack with their needed contents.
    fn rewrite(
        &mut self,
        old: &[u32],
        is_needed: impl Fn(&BlobId) -> bool,
        folder: &Path,
    ) -> Result<()> {
        let moved = self.places.iter();
        let moved = moved.filter(|(id, place)| old.contains(&place.pack) && is_needed(id));
        let mut moved: Vec<_> = moved.map(|(id, place)| (*place, id.clone())).collect();
        moved.sort_unstable();
        if !moved.is_empty() {
            let mut pack = PackWriter::create(folder, self.new_number())?;
            let mut places = Vec::with_capacity(moved.len());
            for (_, id) in moved {
                // A damaged content is lost.
                if let Some(bytes) = self.read(&id)? {
                    let place = pack.add(&id, &bytes)?;
                    places.push((id, place));
                }
            }
            self.finish(pack, folder)?;
            self.places.extend(places);
        }
        self.places.retain(|_, place| !old.contains(&place.pack));
        for number in old {
            if let Some(Pack { path, .. }) = self.packs.remove(number) {
                fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
            }
        }
        Ok(())
    }

    fn new_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }
}

/// A pack that is being written. If it is dropped unfinished, its file is removed.
#[derive(Debug)]
struct PackWriter {
    number: u32,
    file: NamedTempFile,
    /// The length of the contents in bytes.
    length: u64,
    table: Vec<u8>,
}

impl PackWriter {
    fn create(folder: &Path, number: u32) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        Ok(Self { number, file: atomic::new_private(folder)?, length: 0, table: Vec::new() })
    }

    fn add(&mut self, id: &BlobId, bytes: &[u8]) -> Result<Place> {
        let place = Place { pack: self.number, offset: self.length, length: bytes.len() as u64 };
        // If this fails, the next content is written to the same offset.
        let written = self.file.as_file().write_all_at(bytes, place.offset);
        written.map_err(|e| Error::io("write", self.file.path(), e))?;
        self.table.extend(id.0);
        self.table.extend(place.length.to_le_bytes());
        self.length += place.length;
        Ok(place)
    }

    /// Syncs the pack and gives it its name. Returns its path.
    fn finish(mut self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(uuid::Uuid::new_v4().simple().to_string()).with_extension(EXTENSION);
        let fail = |e| Error::io("write", &path, e);
        let (count, digest) = (self.table.len() / ROW, blake3::hash(&self.table));
        self.table.extend((count as u64).to_le_bytes());
        self.table.extend(digest.as_bytes());
        let file = self.file.as_file();
        file.write_all_at(&self.table, self.length).map_err(fail)?;
        file.set_len(self.length + self.table.len() as u64).map_err(fail)?;
        atomic::persist(self.file, &path)?;
        Ok(path)
    }
}

fn read_at(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Reads the table of a pack.
fn read_table(path: &Path) -> io::Result<Vec<u8>> {
    let file = atomic::open_own(File::options().read(true), path)?;
    let is_damaged =
        || io::Error::other("it is damaged; stop deaddrop and move it away to go on without it");
    let end = file.metadata()?.len().checked_sub(ROW as u64).ok_or_else(is_damaged)?;
    let last = read_at(&file, end, ROW as u64)?;
    let (count, digest) = last.split_at(8);
    let length = number(count).checked_mul(ROW as u64).filter(|length| *length <= end);
    let contents = end - length.ok_or_else(is_damaged)?;
    let table = read_at(&file, contents, end - contents)?;
    let mut lengths = table.chunks_exact(ROW).map(|row| number(&row[32..]));
    let sum = lengths.try_fold(0_u64, u64::checked_add);
    let is_whole = blake3::hash(&table).as_bytes() == digest && sum == Some(contents);
    Some(table).filter(|_| is_whole).ok_or_else(is_damaged)
}

/// Reads eight bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Blobs) {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().join("checkpoints/packs"));
        (dir, blobs)
    }

    fn synced(blobs: &mut Blobs, texts: &[String]) -> Vec<BlobId> {
        let ids: Vec<_> = texts.iter().map(|text| BlobId::of(text.as_bytes())).collect();
        for (id, text) in ids.iter().zip(texts) {
            blobs.add(id, text.as_bytes()).unwrap();
        }
        blobs.sync().unwrap();
        ids
    }

    fn read(blobs: &Blobs, text: &str) -> Option<String> {
        let bytes = blobs.read(&BlobId::of(text.as_bytes())).unwrap();
        bytes.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn packs(blobs: &Blobs) -> Vec<PathBuf> {
        let mut packs: Vec<_> =
            fs::read_dir(&blobs.folder).unwrap().map(|pack| pack.unwrap().path()).collect();
        packs.sort();
        packs
    }

    #[test]
    fn contents_can_be_read_once_added_and_by_others_once_synced() {
        let (_dir, mut blobs) = store();
        let texts: Vec<String> = (0..9).map(|n| "text ".to_owned() + &"n".repeat(n)).collect();
        assert_eq!(blobs.size(), 0);
        let id = BlobId::of(texts[0].as_bytes());
        assert_eq!(blobs.add(&id, texts[0].as_bytes()).unwrap(), 45);
        assert_eq!(blobs.add(&id, texts[0].as_bytes()).unwrap(), 0);
        assert_eq!(read(&blobs, &texts[0]).as_ref(), Some(&texts[0]));
        assert_eq!(read(&Blobs::new(blobs.folder.clone()), &texts[0]), None);
        let ids = synced(&mut blobs, &texts);
        assert_eq!(packs(&blobs).len(), 1);
        let mut other = Blobs::new(blobs.folder.clone());
        for blobs in [&blobs, &other] {
            assert!(texts.iter().all(|text| read(blobs, text).as_ref() == Some(text)));
            assert_eq!(ids.iter().map(|id| blobs.size_of(id).unwrap()).sum::<u64>(), 9 * 45 + 36);
            assert_eq!(blobs.size(), 10 * 40 + 9 * 5 + 36);
        }
        assert_eq!(other.add(&ids[3], texts[3].as_bytes()).unwrap(), 0);
        let json = serde_json::to_string(&ids[3]).unwrap();
        assert_eq!(json.len(), 66);
        assert_eq!(serde_json::from_str::<BlobId>(&json).unwrap(), ids[3]);
    }

    #[test]
    fn what_is_not_needed_is_removed_and_the_rest_stays() {
        let (_dir, mut blobs) = store();
        let large: Vec<String> = (0..3).map(|n| n.to_string().repeat(1 << 20)).collect();
        let small: Vec<String> = (3..9).map(|n| format!("text {n}")).collect();
        let ids = synced(&mut blobs, &large);
        small.iter().for_each(|text| drop(synced(&mut blobs, std::slice::from_ref(text))));
        let other = Blobs::new(blobs.folder.clone());
        assert!(read(&other, &large[2]).is_some());
        let before = packs(&blobs);
        blobs.retain(|_| true).unwrap();
        assert_eq!(packs(&blobs), before);
        // `retain` neither removes nor syncs contents that are not synced yet.
        blobs.add(&BlobId::of(b"new"), b"new").unwrap();
        blobs.retain(|id| *id != ids[1] && *id != BlobId::of(b"text 4")).unwrap();
        assert!(blobs.size() < 2 * SMALL + 1000);
        for blobs in [&blobs, &Blobs::new(blobs.folder.clone()), &other] {
            let all = large.iter().chain(&small);
            let gone: Vec<&String> = all.filter(|text| read(blobs, text).is_none()).collect();
            assert_eq!(gone, [&large[1], &small[1]]);
        }
        assert_eq!(read(&Blobs::new(blobs.folder.clone()), "new"), None);
        blobs.sync().unwrap();
        assert_eq!(read(&Blobs::new(blobs.folder.clone()), "new").unwrap(), "new");
        blobs.retain(|_| false).unwrap();
        assert_eq!((packs(&blobs).len(), blobs.size()), (0, 0));
    }

    #[test]
    fn a_full_pack_is_followed_by_another() {
        let (_dir, mut blobs) = store();
        let texts: Vec<String> = (0..6).map(|n| n.to_string().repeat(1 << 20)).collect();
        let ids = synced(&mut blobs, &texts);
        assert_eq!(packs(&blobs).len(), 2);
        let before = packs(&blobs);
        blobs.retain(|id| *id != ids[5]).unwrap();
        assert!(packs(&blobs).iter().any(|pack| before.contains(pack)), "one is not rewritten");
        let other = Blobs::new(blobs.folder.clone());
        assert!(texts[..5].iter().all(|text| read(&other, text).as_ref() == Some(text)));
    }

    #[test]
    fn a_pack_that_cannot_be_rewritten_keeps_no_room_from_being_made() {
        let (_dir, mut blobs) = store();
        let texts: Vec<String> = (0..4).map(|n| format!("text {n}")).collect();
        let ids = synced(&mut blobs, &texts[..2]);
        let pack = packs(&blobs).remove(0);
        synced(&mut blobs, &texts[2..]);
        fs::remove_file(&pack).unwrap();
        fs::create_dir(&pack).unwrap();
        assert!(blobs.retain(|id| *id == ids[0]).is_err());
        assert_eq!(packs(&blobs), [pack]);
    }

    #[test]
    fn many_small_packs_become_one() {
        let (_dir, mut blobs) = store();
        let texts: Vec<String> = (0..=MOST_SMALL).map(|n| format!("text {n}")).collect();
        texts.iter().for_each(|text| drop(synced(&mut blobs, std::slice::from_ref(text))));
        assert_eq!(packs(&blobs).len(), 1);
        for blobs in [&blobs, &Blobs::new(blobs.folder.clone())] {
            assert!(texts.iter().all(|text| read(blobs, text).as_ref() == Some(text)));
        }
    }

    #[test]
    fn what_is_not_synced_can_be_discarded_and_leaves_nothing() {
        let (_dir, mut blobs) = store();
        blobs.add(&BlobId::of(b"x"), b"x").unwrap();
        blobs.discard_unsynced();
        assert_eq!((read(&blobs, "x"), packs(&blobs).len()), (None, 0));
        blobs.add(&BlobId::of(b"y"), b"y").unwrap();
        let next = Blobs::new(blobs.folder.clone());
        // A killed process leaves its files like this.
        std::mem::forget(blobs);
        assert_eq!((read(&next, "y"), packs(&next).len()), (None, 1));
        next.remove_leftovers();
        assert_eq!(packs(&next).len(), 0);
    }

    #[test]
    fn damage_is_reported_and_never_read() {
        let (_dir, mut blobs) = store();
        let [first, second] = ["first", "second"].map(str::to_owned);
        synced(&mut blobs, std::slice::from_ref(&first));
        let pack = packs(&blobs).remove(0);
        let bytes = fs::read(&pack).unwrap();
        synced(&mut blobs, std::slice::from_ref(&second));
        for n in 0..=bytes.len() {
            for damaged in [Some(0_u8), Some(0xff), None] {
                let mut other = bytes.clone();
                match damaged {
                    Some(byte) if n < bytes.len() && byte != bytes[n] => other[n] = byte,
                    None => other.truncate(n),
                    Some(_) => continue,
                }
                fs::write(&pack, &other).unwrap();
                let blobs = Blobs::new(blobs.folder.clone());
                match blobs.read(&BlobId::of(first.as_bytes())) {
                    // The damaged byte is in the content.
                    Ok(None) => assert!(n < first.len()),
                    Ok(Some(read)) => assert!(read == first.as_bytes() && other == bytes),
                    Err(e) => assert!(e.to_string().contains(pack.to_str().unwrap()), "{e}"),
                }
                assert_eq!(read(&blobs, &second).as_ref(), Some(&second));
            }
        }
        // Adding the content again repairs it. Without the damaged pack, nothing is damaged.
        fs::write(&pack, &bytes[1..]).unwrap();
        let mut blobs = Blobs::new(blobs.folder.clone());
        synced(&mut blobs, std::slice::from_ref(&first));
        assert_eq!(read(&blobs, &first), Some(first));
        assert!(blobs.read(&BlobId::of(b"third")).is_err() && blobs.check().is_err());
        fs::remove_file(&pack).unwrap();
        assert_eq!(read(&Blobs::new(blobs.folder.clone()), "third"), None);
    }
}
