//! The inbox: replies as files. Finds those that are finished, takes each once and whole, and puts
//! it away: `processed/` for what was carried out, `rejected/` with a note for what cannot be.
//!
//! The folder is the truth; whatever wakes the daemon is a hint to look.

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
use crate::protocol::{Address, ParsedReply};
use crate::session::record::FileId;
use crate::text::visible_line;
use addresses::Addresses;
use files::{NameKind, Read, find, is_young, name_kind, note, open, read};
pub use files::{decode, held, too_large};
use settle::{Settler, Writer};

/// The largest reply that is read, in bytes.
pub const SIZE_LIMIT: u64 = 32 << 20;
/// The folder in an inbox for replies that are most likely a mistake.
pub const HELD: &str = "held";
/// The folder in an inbox for files that cannot be executed.
pub const REJECTED: &str = "rejected";
/// How long a reply that ends within a block may still grow (a loop of `>>` closes it between).
const UNCLOSED_WAIT: Duration = Duration::from_millis(500);

/// The inbox folder and where its files go.
#[derive(Debug)]
pub struct Inbox {
    folder: PathBuf,
    settler: Settler,
    addresses: Addresses,
}

/// A look into the inbox.
#[derive(Debug, Default)]
pub struct Look {
    /// Finished files, the oldest write time first, then by name.
    pub ready: Vec<PathBuf>,
    /// Whether some file may be finished soon without any sign of it.
    pub look_again: bool,
    /// The names of replies that somebody still writes.
    pub unfinished: Vec<OsString>,
    /// The names of files that are not taken, since no reply has their ending.
    pub others: Vec<OsString>,
}

/// A reply taken out of the inbox.
#[derive(Debug)]
pub struct Claimed {
    /// The name it was dropped under.
    pub name: OsString,
    /// Where it is now.
    path: PathBuf,
    /// Which file it is.
    pub file: FileId,
    /// What stands in it.
    pub reply: ParsedReply,
}

/// What came of an attempt to take a file.
#[derive(Debug)]
pub enum Taken {
    /// It is ours.
    Reply(Claimed),
    /// It may still grow; look again soon.
    NotYet,
    /// It is gone.
    Gone,
    /// It cannot be a reply, for this reason, and was put into `rejected/`.
    Rejected(String),
}

impl Inbox {
    /// The inbox in `folder`, made where it is missing.
    pub fn open(folder: &Path) -> Result<Self> {
        let (settler, addresses) = (Settler::default(), Addresses::default());
        let inbox = Self { folder: folder.to_owned(), settler, addresses };
        inbox.make()?;
        Ok(inbox)
    }

    /// Makes the folders that are missing: somebody may have removed them.
    pub fn make(&self) -> Result<()> {
        for folder in [self.folder.clone(), self.claims(), self.sub("processed")] {
            fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        }
        Ok(())
    }

    /// The folder that replies are dropped into.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Finds the finished replies. `closed` are names that the system said were closed or moved in.
    pub fn look(&mut self, closed: &[OsString]) -> Result<Look> {
        let fail = |e| Error::io("list", &self.folder, e);
        let mut look = Look::default();
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
                look.others.push(name);
                continue;
            }
            let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if !metadata.is_file() {
                found.push((written, entry.path()));
                continue;
            }
            // A browser makes an empty file to hold the name, and moves the real one over it.
            if metadata.len() == 0 {
                continue;
            }
            let told = closed.contains(&name);
            match self.settler.writer(&entry.path(), &metadata, told) {
                Writer::Gone => found.push((written, entry.path())),
                Writer::Busy => look.unfinished.push(name.clone()),
                Writer::Unknown => {
                    look.unfinished.push(name.clone());
                    look.look_again = true;
                }
            }
            names.push(name);
        }
        self.settler.forget_others(&names);
        self.addresses.forget_others(&names);
        found.sort();
        look.ready = found.into_iter().map(|(_, path)| path).collect();
        Ok(look)
    }

    /// Which outbox a file says it answers, before it is taken; None also where it cannot be read. One
    /// that has not changed since is not read again.
    pub fn answers(&mut self, path: &Path) -> Option<Address> {
        self.addresses.of(path)
    }

    /// Takes a finished file. From here on only what was read counts, whatever becomes of the file.
    pub fn take(&self, path: &Path) -> Result<Taken> {
        match fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
            Err(e) => return Err(Error::io("look at", path, e)),
            Ok(found) if !found.is_file() => return self.refuse(path, "it is not a regular file"),
            Ok(found) if found.len() > SIZE_LIMIT => {
                return self.refuse(path, &too_large(found.len()));
            }
            Ok(_) => {}
        }
        let mut file = match open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return self.refuse(path, "it may not be read; check its owner and rights");
            }
            other => other.map_err(|e| Error::io("read", path, e))?,
        };
        let as_read = FileId::of(&file).unwrap_or_default();
        let mut found = Read::of(read(&mut file, path)?);
        if is_young(&file) && found.ends_early() {
            return Ok(Taken::NotYet);
        }

        // The journal is text, and so are the names in it.
        let name: OsString =
            path.file_name().unwrap_or_default().to_string_lossy().into_owned().into();
        let claimed = match atomic::move_into(path, &self.claims(), &name) {
            Err(_) if !path.exists() => return Ok(Taken::Gone),
            Err(e) if self.claims().is_dir() => return Err(e),
            // Somebody removed the folder and made it anew, without those in it.
            Err(_) => {
                self.make()?;
                atomic::move_into(path, &self.claims(), &name)?
            }
            Ok(claimed) => claimed,
        };
        // Somebody may have written once more, or put another file there, before the move.
        let mut taken = open(&claimed).map_err(|e| Error::io("read", &claimed, e))?;
        if FileId::of(&taken) != Some(as_read) {
            found = Read::of(read(&mut taken, &claimed)?);
        }
        let reply = match found.reply() {
            Ok(reply) => reply,
            Err(why) => {
                self.put_into(REJECTED, &claimed, &name, Some(&why))?;
                return Ok(Taken::Rejected(why));
            }
        };
        let file = FileId::of(&taken).unwrap_or_default();
        Ok(Taken::Reply(Claimed { name, path: claimed, file, reply }))
    }

    /// Takes a reply that came another way, as if it had been dropped here under `name`.
    pub fn admit(&self, name: &str, reply: ParsedReply) -> Result<Claimed> {
        let text = reply.text().as_bytes();
        let path = atomic::write_into(&self.claims(), OsStr::new(name), text)?;
        let file = open(&path).ok().and_then(|file| FileId::of(&file)).unwrap_or_default();
        Ok(Claimed { name: name.into(), path, file, reply })
    }

    /// Puts a reply away that was carried out, wherever it is now; nothing is done where that was
    /// done before. `claim` is its name among the claimed.
    pub fn archive(&self, claim: &OsStr, name: &OsStr, file: FileId, text: &str) -> Result<()> {
        let claimed = self.claims().join(claim);
        // By identity: a later reply may have been claimed under the same name.
        let found = open(&claimed).ok().and_then(|found| FileId::of(&found));
        let unknown = file == FileId::default() && fs::symlink_metadata(&claimed).is_ok();
        if found == Some(file) || unknown {
            return self.put_into("processed", &claimed, name, None);
        }
        // A power loss may have undone the claim, and even the archiving.
        if let Some(path) = find(&self.folder, file) {
            return self.put_into("processed", &path, name, None);
        }
        if find(&self.sub("processed"), file).is_none() {
            self.make()?;
            atomic::write_into(&self.sub("processed"), name, text.as_bytes())?;
        }
        Ok(())
    }

    /// Puts a file of the inbox away that was carried out before. Returns its name if it is one.
    pub fn archive_again(&self, file: FileId) -> Result<Option<OsString>> {
        let Some(path) = find(&self.folder, file) else { return Ok(None) };
        let name = path.file_name().unwrap_or_default().to_owned();
        self.put_into("processed", &path, &name, None)?;
        Ok(Some(name))
    }

    /// Puts a reply away into [`HELD`] or [`REJECTED`], with a note beside it.
    pub fn put_away(&self, claimed: &Claimed, folder: &str, why: &str) -> Result<()> {
        self.put_into(folder, &claimed.path, &claimed.name, Some(why))
    }

    /// Removes the note beside a reply that was held, now that it is taken.
    pub fn forget_note(&self, taken: &Path) {
        if let (Some(folder), Some(name)) = (taken.parent(), taken.file_name())
            && folder == self.sub(HELD)
        {
            let _ = fs::remove_file(folder.join(note(name)));
        }
    }

    /// Removes what an interrupted write left in the folders that are deaddrop's alone.
    pub fn sweep(&self) -> Result<()> {
        let folders = [self.claims(), self.sub("processed"), self.sub(HELD), self.sub(REJECTED)];
        folders.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| atomic::sweep(folder))
    }

    /// Makes durable where files are; somebody may have removed some of the folders.
    pub fn sync(&self) -> Result<()> {
        let folders = [self.folder.clone(), self.claims(), self.sub("processed")];
        let mut there = folders.iter().filter(|folder| folder.is_dir());
        there.try_for_each(|folder| atomic::sync_folder(folder))
    }

    /// Puts a reply back that was claimed and not begun.
    pub fn put_back(&self, claim: &Path) -> Result<()> {
        let name = claim.file_name().unwrap_or_default();
        atomic::move_into(claim, &self.folder, name).map(drop)
    }

    /// Puts away a file that was not taken.
    pub fn reject_file(&self, path: &Path, why: &str) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_owned();
        self.put_into(REJECTED, path, &name, Some(why))
    }

    /// Replies that were claimed when deaddrop was stopped hard.
    pub fn left_over(&self) -> Result<Vec<PathBuf>> {
        let claims = self.claims();
        let entries = fs::read_dir(&claims).map_err(|e| Error::io("list", &claims, e))?;
        let mut paths: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    }

    fn refuse(&self, path: &Path, why: &str) -> Result<Taken> {
        self.reject_file(path, why)?;
        Ok(Taken::Rejected(why.to_owned()))
    }

    fn put_into(&self, sub: &str, from: &Path, name: &OsStr, why: Option<&str>) -> Result<()> {
        let folder = self.sub(sub);
        fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder", &folder, e))?;
        let path = match atomic::move_into(from, &folder, name) {
            // Somebody removed it, perhaps with the whole inbox: there is nothing to put away.
            Err(_) if fs::symlink_metadata(from).is_err() => return Ok(()),
            other => other?,
        };
        if let Some(why) = why {
            let note = note(path.file_name().unwrap_or_default());
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
    /// When its file was last written, in nanoseconds since 1970; None where that is not known.
    pub fn written(&self) -> Option<i128> {
        Some(self.file.written).filter(|written| *written > 0)
    }

    /// Its name among the claimed.
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
        // As journals were before.
        kept["device"] = 99_999.into();
        let kept: FileId = serde_json::from_value(kept).unwrap();
        assert_eq!(inbox.archive_again(kept).unwrap(), Some(OsString::from("r.txt")));
        assert!(dir.path().join("processed/r.txt").exists());
    }
}
