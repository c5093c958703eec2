//! The inbox contains replies as files. This module finds finished files and claims each one once and completely. It
//! moves a file to `processed/` after the reply was carried out, or to `rejected/` with a note if that is impossible.
//!
//! The folder is the truth. An event that wakes the daemon is only a hint to scan the folder.

mod addresses;
mod files;
mod settle;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::atomic;
use crate::error::{Error, Result};
use crate::protocol::{ParsedReply, ReplyAddress};
use crate::session::record::FileId;
use crate::text::visible_line;
use addresses::Addresses;
use files::{DecodedReply, NameKind, find, is_young, name_kind, note_name, open, read};
pub use files::{decode, held_replies, too_large};
use settle::{Settler, Writer};

/// The largest reply that is read, in bytes.
pub const SIZE_LIMIT: u64 = 32 << 20;
/// The folder in an inbox for replies that were probably delivered by mistake.
pub const HELD: &str = "held";
/// The folder in an inbox for files that cannot be executed.
pub const REJECTED: &str = "rejected";
/// How long a reply that ends within a block may still grow. A shell loop with `>>` closes the file after each line.
const UNCLOSED_WAIT: Duration = Duration::from_millis(500);

/// An inbox folder with its subfolders.
#[derive(Debug)]
pub struct Inbox {
    folder: PathBuf,
    settler: Settler,
    addresses: Addresses,
}

/// The result of scanning an inbox.
#[derive(Debug, Default)]
pub struct InboxScan {
    /// Finished files, sorted by the time of the last write, oldest first, then by name.
    pub ready: Vec<PathBuf>,
    /// Whether to scan again soon: a file may become finished without an event.
    pub scan_again: bool,
    /// The names of replies that are still being written.
    pub unfinished: Vec<OsString>,
    /// The names of files that are ignored because of their extension.
    pub others: Vec<OsString>,
}

/// A reply that was moved out of the inbox.
#[derive(Debug)]
pub struct Claimed {
    /// The file's name in the inbox.
    pub name: OsString,
    /// The file's current path.
    path: PathBuf,
    /// The identity of the file.
    pub file: FileId,
    /// The content of the file.
    pub reply: ParsedReply,
}

/// The result of claiming a file.
#[derive(Debug)]
pub enum ClaimOutcome {
    /// The reply was claimed.
    Reply(Claimed),
    /// The file may still grow; try again soon.
    NotYet,
    /// The file no longer exists.
    Gone,
    /// The file cannot be a reply, for this reason. It was moved to `rejected/`.
    Rejected(String),
}

impl Inbox {
    /// Opens the inbox in `folder`, and creates missing folders.
    pub fn open(folder: &Path) -> Result<Self> {
        let (settler, addresses) = (Settler::default(), Addresses::default());
        let inbox = Self { folder: folder.to_owned(), settler, addresses };
        inbox.create_folders()?;
        Ok(inbox)
    }

    /// Creates folders that are missing or were removed.
    pub fn create_folders(&self) -> Result<()> {
        for folder in [self.folder.clone(), self.claims(), self.sub("processed")] {
            fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
        Ok(())
    }

    /// The folder that receives replies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the finished replies. `closed` contains the names of files that the system reported as closed or moved in.
    pub fn scan(&mut self, closed: &[OsString]) -> Result<InboxScan> {
        let fail = |e| Error::io("list", &self.folder, e);
        let mut scan = InboxScan::default();
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let kind = name_kind(&name);
            let Ok(metadata) = entry.metadata() else { continue };
            if kind == NameKind::Temporary {
                continue;
            }
            let is_named_as_file =
                kind == NameKind::Reply && Path::new(&name).extension().is_some();
            if metadata.is_dir() && !is_named_as_file {
                continue;
            }
            if kind == NameKind::Other {
                scan.others.push(name);
                continue;
            }
            let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if !metadata.is_file() {
                found.push((written, entry.path()));
                continue;
            }
            // A browser creates an empty file to reserve the name, and later moves the real file over it.
            if metadata.len() == 0 {
                continue;
            }
            let was_closed = closed.contains(&name);
            match self.settler.writer(&entry.path(), &metadata, was_closed) {
                Writer::Gone => found.push((written, entry.path())),
                Writer::Busy => scan.unfinished.push(name.clone()),
                Writer::Unknown => {
                    scan.unfinished.push(name.clone());
                    scan.scan_again = true;
                }
            }
            names.push(name);
        }
        self.settler.forget_others(&names);
        self.addresses.forget_others(&names);
        found.sort();
        scan.ready = found.into_iter().map(|(_, path)| path).collect();
        Ok(scan)
    }

    /// The outbox that an unclaimed file answers; None if it names no outbox or cannot be read. An unchanged file is
    /// not read again.
    pub fn answers(&mut self, path: &Path) -> Option<ReplyAddress> {
        self.addresses.of(path)
    }

    /// Claims a finished file. From now on only the text that was read counts, even if the file changes.
    pub fn claim(&self, path: &Path) -> Result<ClaimOutcome> {
        match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(ClaimOutcome::Gone),
            Err(e) => return Err(Error::io("look at", path, e)),
            Ok(found) if !found.is_file() => return self.refuse(path, "it is not a regular file"),
            Ok(found) if found.len() > SIZE_LIMIT => {
                return self.refuse(path, &too_large(found.len()));
            }
            Ok(_) => {}
        }
        let mut file = match open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(ClaimOutcome::Gone),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return self.refuse(path, "it may not be read; check its owner and rights");
            }
            other => other.map_err(|e| Error::io("read", path, e))?,
        };
        let as_read = FileId::of(&file).unwrap_or_default();
        let mut decoded = DecodedReply::of(read(&mut file, path)?);
        if is_young(&file) && decoded.ends_early() {
            return Ok(ClaimOutcome::NotYet);
        }

        // The journal contains the name as text.
        let name: OsString =
            path.file_name().unwrap_or_default().to_string_lossy().into_owned().into();
        let claimed = match atomic::move_into(path, &self.claims(), &name) {
            Err(_) if !path.exists() => return Ok(ClaimOutcome::Gone),
            Err(e) if self.claims().is_dir() => return Err(e),
            // The inbox was replaced by a new folder without subfolders.
            Err(_) => {
                self.create_folders()?;
                atomic::move_into(path, &self.claims(), &name)?
            }
            Ok(claimed) => claimed,
        };
        // The file may have been changed or replaced before the move.
        let mut taken = open(&claimed).map_err(|e| Error::io("read", &claimed, e))?;
        if FileId::of(&taken) != Some(as_read) {
            decoded = DecodedReply::of(read(&mut taken, &claimed)?);
        }
        let reply = match decoded.reply() {
            Ok(reply) => reply,
            Err(why) => {
                self.put_into(REJECTED, &claimed, &name, Some(&why))?;
                return Ok(ClaimOutcome::Rejected(why));
            }
        };
        let file = FileId::of(&taken).unwrap_or_default();
        Ok(ClaimOutcome::Reply(Claimed { name, path: claimed, file, reply }))
    }

    /// Claims a reply under `name` that did not come as a file in the inbox.
    pub fn claim_text(&self, name: &str, reply: ParsedReply) -> Result<Claimed> {
        let text = reply.text().as_bytes();
        let path = atomic::write_into(&self.claims(), OsStr::new(name), text)?;
        let file = open(&path).ok().and_then(|file| FileId::of(&file)).unwrap_or_default();
        Ok(Claimed { name: name.into(), path, file, reply })
    }

    /// Moves the file of a processed reply to `processed/`, wherever the file is now. Can be repeated. `claim` is its
    /// name in `.claimed/`.
    pub fn archive(&self, claim: &OsStr, name: &OsStr, file: FileId, text: &str) -> Result<()> {
        let claimed = self.claims().join(claim);
        // Compare the file's identity: a later reply may have been claimed under the same name.
        let found = open(&claimed).ok().and_then(|found| FileId::of(&found));
        let unknown = file == FileId::default() && fs::symlink_metadata(&claimed).is_ok();
        if found == Some(file) || unknown {
            return self.put_into("processed", &claimed, name, None);
        }
        // A power loss may have undone the claim, or even the archiving.
        if let Some(path) = find(&self.folder, file) {
            return self.put_into("processed", &path, name, None);
        }
        if find(&self.sub("processed"), file).is_none() {
            self.create_folders()?;
            atomic::write_into(&self.sub("processed"), name, text.as_bytes())?;
        }
        Ok(())
    }

    /// Archives an already processed reply if its file is in the inbox again. Returns the file's name.
    pub fn archive_again(&self, file: FileId) -> Result<Option<OsString>> {
        let Some(path) = find(&self.folder, file) else { return Ok(None) };
        let name = path.file_name().unwrap_or_default().to_owned();
        self.put_into("processed", &path, &name, None)?;
        Ok(Some(name))
    }

    /// Moves a claimed reply to [`HELD`] or [`REJECTED`], with a note next to it.
    pub fn put_away(&self, claimed: &Claimed, folder: &str, why: &str) -> Result<()> {
        self.put_into(folder, &claimed.path, &claimed.name, Some(why))
    }

    /// Removes the note about a held reply that is now processed.
    pub fn forget_note(&self, reply: &Path) {
        if let (Some(folder), Some(name)) = (reply.parent(), reply.file_name())
            && folder == self.sub(HELD)
        {
            let _ = fs::remove_file(folder.join(note_name(name)));
        }
    }

    /// Removes temporary files of interrupted writes from the subfolders. The inbox itself belongs to the person.
    pub fn sweep(&self) -> Result<()> {
        let folders = [self.claims(), self.sub("processed"), self.sub(HELD), self.sub(REJECTED)];
        folders.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| atomic::sweep(folder))
    }

    /// Makes moves of files durable. Folders may be missing.
    pub fn sync(&self) -> Result<()> {
        let folders = [self.folder.clone(), self.claims(), self.sub("processed")];
        let mut there = folders.iter().filter(|folder| folder.is_dir());
        there.try_for_each(|folder| atomic::sync_folder(folder))
    }

    /// Moves a reply that was claimed, but not begun, back to the inbox.
    pub fn put_back(&self, claim: &Path) -> Result<()> {
        let name = claim.file_name().unwrap_or_default();
        atomic::move_into(claim, &self.folder, name).map(drop)
    }

    /// Moves an unclaimed file to `rejected/`.
    pub fn reject_file(&self, path: &Path, why: &str) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_owned();
        self.put_into(REJECTED, path, &name, Some(why))
    }

    /// The replies that were claimed when deaddrop was killed.
    pub fn leftover_claims(&self) -> Result<Vec<PathBuf>> {
        let claims = self.claims();
        let entries = fs::read_dir(&claims).map_err(|e| Error::io("list", &claims, e))?;
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }

    fn refuse(&self, path: &Path, why: &str) -> Result<ClaimOutcome> {
        self.reject_file(path, why)?;
        Ok(ClaimOutcome::Rejected(why.to_owned()))
    }

    fn put_into(&self, sub: &str, from: &Path, name: &OsStr, why: Option<&str>) -> Result<()> {
        let folder = self.sub(sub);
        fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        let path = match atomic::move_into(from, &folder, name) {
            // The file was removed, perhaps together with the inbox.
            Err(_) if fs::symlink_metadata(from).is_err() => return Ok(()),
            other => other?,
        };
        if let Some(why) = why {
            let note = note_name(path.file_name().unwrap_or_default());
            atomic::write_into(
                &folder,
                note.as_ref(),
                format!("{}: {why}\n", visible_line(&name.to_string_lossy())).as_bytes(),
            )?;
        }
        Ok(())
    }

    fn sub(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn claims(&self) -> PathBuf {
        self.sub(".claimed")
    }
}

impl Claimed {
    /// When the file was last written, in nanoseconds since 1970; None if unknown.
    pub fn written(&self) -> Option<i64> {
        Some(self.file.written).filter(|written| *written > 0)
    }

    /// The file's name in `.claimed/`.
    pub fn claim(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_came_back_is_known_whatever_number_its_device_has_now() {
        let dir = tempfile::tempdir().unwrap();
        let inbox = Inbox::open(dir.path()).unwrap();
        let path = dir.path().join("r.txt");
        fs::write(&path, "[DONE]\n").unwrap();
        let mut kept = serde_json::to_value(FileId::of(&open(&path).unwrap())).unwrap();
        // Older journals contain the device.
        kept["device"] = 99_999.into();
        let kept: FileId = serde_json::from_value(kept).unwrap();
        assert_eq!(inbox.archive_again(kept).unwrap(), Some(OsString::from("r.txt")));
        assert!(dir.path().join("processed/r.txt").exists());
    }
}
