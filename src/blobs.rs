//! Contents under their own digests: a folder of files that are whole, or not there at all, and
//! that nobody changes.
//!
//! What is added is written under a temporary name and stands nowhere until [`Blobs::sync`] has
//! brought all of it to disk at once: a few files each by itself, many with one sync of the file
//! system. So what is built upon a blob only has to wait for that one call.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::error::{Error, Result};

/// Up to so many new blobs are synced each by itself: a sync of the whole file system waits for what
/// others have written there, too.
const FEW: usize = 4;
/// Where blobs are written first.
const INCOMING: &str = "incoming";
/// Where they stand.
const BLOBS: &str = "blobs";

/// What a blob is known by: the 64 hexadecimal digits of its blake3 digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobId(String);

impl BlobId {
    /// That of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it can be one: who reads it from a file cannot know.
    fn is_one(&self) -> bool {
        self.0.len() == 64 && self.0.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    }
}

/// A store of blobs. One process at a time adds to it or removes from it; others may read.
#[derive(Debug)]
pub struct Blobs {
    folder: PathBuf,
    /// What was written and is not settled, with its length.
    waiting: BTreeMap<BlobId, u64>,
}

impl Blobs {
    /// The store in this folder, which is made with the first blob.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, waiting: BTreeMap::new() }
    }

    /// Removes what was written and never settled before the program was stopped.
    pub fn sweep(&self) {
        for entry in fs::read_dir(self.folder.join(INCOMING)).into_iter().flatten().flatten() {
            // What cannot be removed is written over.
            let _ = fs::remove_file(entry.path());
        }
    }

    fn place(&self, id: &BlobId) -> PathBuf {
        let (head, rest) = id.0.split_at_checked(2).unwrap_or((&id.0, ""));
        self.folder.join(BLOBS).join(head).join(rest)
    }

    /// Whether a blob of so many bytes is there, settled or not. One of another length is what a power loss
    /// or a failing disk has left of it.
    pub fn has(&self, id: &BlobId, length: u64) -> bool {
        self.waiting.contains_key(id) || self.length(id) == Some(length)
    }

    /// How many bytes a settled blob has; None where it is not there.
    pub fn length(&self, id: &BlobId) -> Option<u64> {
        id.is_one().then(|| fs::metadata(self.place(id)).ok().map(|found| found.len())).flatten()
    }

    /// Adds these bytes, unless they are there. They are on disk after the next [`Blobs::sync`].
    /// Tells how many bytes more the store has.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(BlobId, u64)> {
        let (id, length) = (BlobId::of(bytes), bytes.len() as u64);
        if self.has(&id, length) {
            return Ok((id, 0));
        }
        let path = self.folder.join(INCOMING).join(&id.0);
        let fail = |e| Error::io("write", &path, e);
        let mut file = match private(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(self.folder.join(INCOMING)).map_err(fail)?;
                private(&path).map_err(fail)?
            }
            file => file.map_err(fail)?,
        };
        if let Err(e) = file.write_all(bytes) {
            // Its room may be what is missing.
            let _ = fs::remove_file(&path);
            return Err(fail(e));
        }
        let more = length.saturating_sub(self.length(&id).unwrap_or_default());
        self.waiting.insert(id.clone(), length);
        Ok((id, more))
    }

    /// Brings all that was added to disk, and into its place.
    ///
    /// # Errors
    /// Nothing of what was added since the last time is there.
    pub fn sync(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let synced = self.put(&waiting);
        if synced.is_err() {
            self.drop_all(waiting.keys());
        }
        synced
    }

    /// Takes back all that was added and is not settled.
    pub fn discard_unsynced(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        self.drop_all(waiting.keys());
    }

    fn drop_all<'a>(&self, ids: impl Iterator<Item = &'a BlobId>) {
        ids.for_each(|id| drop(fs::remove_file(self.folder.join(INCOMING).join(&id.0))));
    }

    fn put(&self, waiting: &BTreeMap<BlobId, u64>) -> Result<()> {
        let incoming = self.folder.join(INCOMING);
        let fail = |e| Error::io("write", &self.folder.join(BLOBS), e);
        let together = atomic::SYNCS_ALL && waiting.len() > FEW;
        let sync_all = || File::open(&incoming).and_then(atomic::sync_all_of).map_err(fail);
        if together {
            sync_all()?;
        } else {
            let sync = |id: &BlobId| File::open(incoming.join(&id.0))?.sync_data();
            waiting.keys().try_for_each(sync).map_err(fail)?;
        }
        let mut folders: Vec<PathBuf> = Vec::new();
        for id in waiting.keys() {
            let place = self.place(id);
            let folder = place.parent().unwrap_or(&self.folder);
            if folders.last().is_none_or(|last| last != folder) {
                if !folder.exists() {
                    fs::create_dir_all(folder).map_err(fail)?;
                }
                folders.push(folder.to_owned());
            }
            fs::rename(incoming.join(&id.0), &place).map_err(fail)?;
        }
        if together {
            return sync_all();
        }
        folders.push(self.folder.join(BLOBS));
        folders.push(self.folder.clone());
        folders.extend(self.folder.parent().map(Path::to_owned));
        folders.iter().try_for_each(|folder| atomic::sync_folder(folder))
    }

    /// The bytes of a blob; None where it is not there, or is not what it was.
    pub fn read(&self, id: &BlobId) -> Result<Option<Vec<u8>>> {
        if !id.is_one() {
            return Ok(None);
        }
        let path = if self.waiting.contains_key(id) {
            self.folder.join(INCOMING).join(&id.0)
        } else {
            self.place(id)
        };
        match atomic::read_own(&path) {
            Ok(bytes) => Ok((BlobId::of(&bytes) == *id).then_some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("read", &path, e)),
        }
    }

    /// How many bytes were added and are not settled.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting.values().sum()
    }

    /// All settled blobs with their lengths in bytes.
    pub fn all(&self) -> Vec<(BlobId, u64)> {
        let Ok(heads) = fs::read_dir(self.folder.join(BLOBS)) else { return Vec::new() };
        let mut all = Vec::new();
        for head in heads.flatten() {
            let first = head.file_name().to_string_lossy().into_owned();
            for blob in fs::read_dir(head.path()).into_iter().flatten().flatten() {
                let id = BlobId(format!("{first}{}", blob.file_name().to_string_lossy()));
                if let (true, Ok(found)) = (id.is_one(), blob.metadata()) {
                    all.push((id, found.len()));
                }
            }
        }
        all
    }

    /// Removes a settled blob, which nobody may need any more.
    pub fn remove(&self, id: &BlobId) -> Result<()> {
        let path = self.place(id);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", &path, e)),
            _ => Ok(()),
        }
    }
}

/// A new file that only the user may read.
fn private(path: &Path) -> io::Result<File> {
    atomic::open_own(File::options().write(true).create(true).truncate(true), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Blobs) {
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(dir.path().join("checkpoints"));
        (dir, blobs)
    }

    #[test]
    fn what_is_added_comes_back_once_settled_also_to_others() {
        let (dir, mut blobs) = store();
        // So many that they are synced together.
        let texts: Vec<String> = (0..FEW + 2).map(|n| format!("text {n}")).collect();
        let ids: Vec<BlobId> = texts.iter().map(|t| blobs.add(t.as_bytes()).unwrap().0).collect();
        let other = Blobs::new(dir.path().join("checkpoints"));
        assert!(texts.iter().zip(&ids).all(|(text, id)| {
            let length = text.len() as u64;
            blobs.has(id, length) && !other.has(id, length)
        }));
        assert_eq!(blobs.read(&ids[0]).unwrap().unwrap(), b"text 0");
        blobs.sync().unwrap();
        for (text, id) in texts.iter().zip(&ids) {
            assert_eq!(other.read(id).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(blobs.add(b"text 1").unwrap(), (ids[1].clone(), 0));
        assert_eq!(other.all().len(), texts.len());
        other.remove(&ids[1]).unwrap();
        assert!(!blobs.has(&ids[1], 6) && blobs.read(&ids[1]).unwrap().is_none());
    }

    #[test]
    fn what_is_not_settled_can_be_taken_back_and_is_swept() {
        let (dir, mut blobs) = store();
        let (id, length) = blobs.add(b"x").unwrap();
        assert_eq!(length, 1);
        blobs.discard_unsynced();
        assert!(!blobs.has(&id, 1));
        blobs.add(b"y").unwrap();
        drop(blobs);
        let blobs = Blobs::new(dir.path().join("checkpoints"));
        blobs.sweep();
        let incoming = fs::read_dir(dir.path().join("checkpoints/incoming")).unwrap();
        assert!(incoming.count() == 0 && blobs.all().is_empty());
    }

    #[test]
    fn a_blob_that_is_not_what_it_was_is_none() {
        let (_dir, mut blobs) = store();
        let (id, _) = blobs.add(b"whole").unwrap();
        blobs.sync().unwrap();
        fs::write(blobs.place(&id), "half").unwrap();
        assert_eq!(blobs.read(&id).unwrap(), None);
        // What is added again makes it whole.
        assert!(!blobs.has(&id, 5));
        assert_eq!(blobs.add(b"whole").unwrap(), (id.clone(), 1));
        blobs.sync().unwrap();
        assert_eq!(blobs.read(&id).unwrap().unwrap(), b"whole");
        let path = BlobId("../../../etc/passwd".to_owned());
        assert!(blobs.read(&path).unwrap().is_none() && !blobs.has(&path, 0));
    }
}
