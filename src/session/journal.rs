//! The journal: an append-only file that records intended effects and their results. Sessions, outboxes and the archive
//! can be restored from it.
//!
//! A record is a line:
//!
//! ```text
//! record = checksum " " synced " " payload LF
//! ```
//!
//! `checksum` is 16 hexadecimal digits over the record's offset in the file and the rest of the record. `synced` is the
//! offset up to which the file was known to be on disk when the record was written. `payload` is one line of text from
//! the caller. After the last record the file contains zeros. They are written in advance, so that a full disk is
//! noticed before a turn, not during it.
//!
//! After a power loss, unsynced sectors may contain zeros. A bad record counts as a torn end, which is cut off, if
//! it looks like an unsynced write and no later record shows that it was on disk. Any other bad record is damage: the
//! journal is not used.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic;
use crate::error::{Error, Result};

/// How many bytes are reserved at a time.
const ROOM: u64 = 256 << 10;
/// The smallest unit that a disk writes completely.
const SECTOR: usize = 512;

/// An open journal. This process is its only writer.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// The offset of the next record.
    end: u64,
    /// The offset up to which the file is known to be on disk.
    synced: u64,
    /// The offset up to which the file contains records and reserved zeros.
    room: u64,
}

/// The records of a journal.
#[derive(Debug, PartialEq, Eq)]
pub struct Records<'a> {
    /// The payloads, in order.
    pub payloads: Vec<&'a str>,
    /// The end of the last good record, as an offset in bytes.
    pub end: usize,
    /// Whether a torn end follows. It must be cut off.
    pub torn: bool,
}

impl Journal {
    /// Opens or creates the journal at `path`, and returns its payloads. An existing file and its times do not change
    /// until the first record is added, so a failed start changes nothing.
    pub fn open(path: &Path) -> Result<(Self, Vec<String>)> {
        let fail = |e| Error::io("open the journal", path, e);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = atomic::open_own(&mut options, path).map_err(fail)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let contents = read(&bytes).map_err(|offset| Error::damaged_journal(path, offset))?;
        let end = contents.end as u64;
        let payloads = contents.payloads.iter().map(|payload| (*payload).to_owned()).collect();
        let room = if contents.torn { end } else { bytes.len() as u64 };
        let mut journal = Self { file, path: path.to_owned(), end, synced: 0, room };
        // The records may not be on disk yet, and later records depend on them.
        journal.sync()?;
        atomic::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        Ok((journal, payloads))
    }

    /// Adds a record. The payload is one line. The record is on disk after the next [`Journal::sync`].
    pub fn append(&mut self, payload: &str) -> Result<()> {
        debug_assert!(!payload.contains(['\n', '\0']), "a payload is one line");
        let line = line(self.end, self.synced, payload);
        self.make_room(line.len() as u64)?;
        let fail = |e| Error::io("write the journal", &self.path, e);
        self.file.seek(SeekFrom::Start(self.end)).map_err(fail)?;
        self.file.write_all(line.as_bytes()).map_err(fail)?;
        self.end += line.len() as u64;
        Ok(())
    }

    /// Waits until all records are on disk.
    pub fn sync(&mut self) -> Result<()> {
        if self.synced < self.end || self.end == 0 {
            self.file.sync_data().map_err(|e| Error::io("sync the journal", &self.path, e))?;
            self.synced = self.end;
        }
        Ok(())
    }

    /// The length of the records, in bytes.
    pub fn size(&self) -> u64 {
        self.end
    }

    /// Removes all records atomically.
    pub fn clear(&mut self) -> Result<()> {
        let room = vec![0; usize::try_from(ROOM).unwrap_or_default()];
        atomic::write_private(&self.path, &room)?;
        let fail = |e| Error::io("open the journal", &self.path, e);
        self.file =
            atomic::open_own(File::options().read(true).write(true), &self.path).map_err(fail)?;
        (self.end, self.synced, self.room) = (0, 0, room.len() as u64);
        Ok(())
    }

    /// Reserves room by writing zeros. So a full disk is noticed before a record is written, and a sync need not write
    /// a new file length. Cuts off a torn end.
    fn make_room(&mut self, wanted: u64) -> Result<()> {
        if self.end + wanted <= self.room {
            return Ok(());
        }
        let room = (self.end + wanted).next_multiple_of(ROOM) + ROOM;
        let fail = |e: io::Error| Error::io("make room in the journal", &self.path, e);
        self.file.set_len(self.room).map_err(fail)?;
        self.file.seek(SeekFrom::Start(self.room)).map_err(fail)?;
        io::copy(&mut io::repeat(0).take(room - self.room), &mut self.file).map_err(fail)?;
        self.file.sync_all().map_err(fail)?;
        self.room = room;
        Ok(())
    }
}

pub(crate) fn line(offset: u64, synced: u64, payload: &str) -> String {
    let rest = format!("{synced} {payload}\n");
    format!("{} {rest}", checksum(offset, &rest))
}

fn checksum(offset: u64, rest: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&offset.to_le_bytes());
    hasher.update(rest.as_bytes());
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Reads the bytes of a journal. Pure and total.
///
/// # Errors
/// The offset in bytes of a damaged record.
pub fn read(bytes: &[u8]) -> Result<Records<'_>, usize> {
    let mut contents = Records { payloads: Vec::new(), end: 0, torn: false };
    while let Some((payload, _, next)) = record(bytes, contents.end) {
        contents.payloads.push(payload);
        contents.end = next;
    }
    let end = contents.end;
    contents.torn = bytes[end..].iter().any(|byte| *byte != 0);
    let is_damaged = contents.torn && (!looks_torn(bytes, end) || was_on_disk(bytes, end));
    if is_damaged { Err(end) } else { Ok(contents) }
}

/// The record at `offset`: its payload, its `synced` offset, and the offset of the next record.
fn record(bytes: &[u8], offset: usize) -> Option<(&str, usize, usize)> {
    let rest = &bytes[offset..];
    let end = memchr::memchr2(b'\n', 0, rest)?;
    let line = std::str::from_utf8(&rest[..=end]).ok()?;
    let (sum, body) = line.split_at_checked(17)?;
    if sum != format!("{} ", checksum(offset as u64, body)) {
        return None;
    }
    let (synced, payload) = body.strip_suffix('\n')?.split_once(' ')?;
    Some((payload, synced.parse().ok()?, offset + end + 1))
}

/// Whether the bytes from `offset` may be an unsynced write after a power loss: a beginning followed by nothing
/// but zeros, or whole sectors of zeros in between.
fn looks_torn(bytes: &[u8], offset: usize) -> bool {
    let rest = &bytes[offset..];
    // A missing sector reads as zeros, so a line with an end and without zeros was written completely.
    if memchr::memchr2(b'\n', 0, rest).is_some_and(|end| rest[end] == b'\n') {
        return false;
    }
    // Without zeros, the file itself may have been truncated.
    let Some(zero) = memchr::memchr(0, rest) else { return true };
    let zeros = rest[zero..].iter().take_while(|b| **b == 0).count();
    let (begin, end) = (offset + zero, offset + zero + zeros);
    let to_the_end = end == bytes.len();
    // The first sector that was not synced may begin with older records.
    let sectors = (begin == offset || begin.is_multiple_of(SECTOR)) && end.is_multiple_of(SECTOR);
    to_the_end || sectors
}

/// Whether a valid later record shows that the bytes from `offset` were on disk.
fn was_on_disk(bytes: &[u8], offset: usize) -> bool {
    let starts = memchr::memchr2_iter(b'\n', 0, &bytes[offset..]).map(|n| offset + n + 1);
    starts.filter_map(|start| record(bytes, start)).any(|(_, synced, _)| synced > offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a journal with these payloads, the offset of each record, and the synced length. A flag means that
    /// the journal is synced after the record.
    fn written(payloads: &[(String, bool)]) -> (Vec<u8>, Vec<usize>, usize) {
        let (mut bytes, mut places, mut synced) = (Vec::new(), Vec::new(), 0);
        for (payload, sync) in payloads {
            places.push(bytes.len());
            let place = bytes.len() as u64;
            bytes.extend_from_slice(line(place, synced as u64, payload).as_bytes());
            if *sync {
                synced = bytes.len();
            }
        }
        (bytes, places, synced)
    }

    fn payloads() -> impl Strategy<Value = Vec<(String, bool)>> {
        prop::collection::vec(("[ -~äß€]{0,900}", any::<bool>()), 1..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn what_is_written_is_read(payloads in payloads(), room in 0usize..2000) {
            let (mut bytes, _, _) = written(&payloads);
            let end = bytes.len();
            bytes.resize(end + room, 0);
            let contents = read(&bytes).unwrap();
            prop_assert_eq!(contents.end, end);
            prop_assert!(!contents.torn);
            prop_assert!(contents.payloads.iter().eq(payloads.iter().map(|(payload, _)| payload)));
        }

        /// A crash keeps what was synced, and any sectors of the rest.
        #[test]
        fn a_torn_end_is_cut_off_and_what_was_synced_is_kept(
            payloads in payloads(),
            kept in prop::collection::vec(any::<bool>(), 64),
        ) {
            let (mut bytes, places, synced) = written(&payloads);
            for sector in 0..=bytes.len() / SECTOR {
                let (from, to) = ((sector * SECTOR).max(synced), ((sector + 1) * SECTOR).min(bytes.len()));
                if from < to && !kept[sector % kept.len()] {
                    bytes[from..to].fill(0);
                }
            }
            bytes.resize(bytes.len() + 700, 0);
            let contents = read(&bytes).unwrap();
            let durable = places.iter().filter(|place| **place < synced).count();
            prop_assert!(contents.payloads.len() >= durable);
            for (read, (payload, _)) in contents.payloads.iter().zip(&payloads) {
                prop_assert_eq!(read, payload);
            }
        }

        #[test]
        fn every_prefix_is_a_torn_end_or_whole(payloads in payloads(), cut in any::<prop::sample::Index>()) {
            let (bytes, places, _) = written(&payloads.iter().map(|(p, _)| (p.clone(), false)).collect::<Vec<_>>());
            let cut = cut.index(bytes.len() + 1);
            let contents = read(&bytes[..cut]).unwrap();
            let whole = places.iter().skip(1).chain([&bytes.len()]).filter(|end| **end <= cut).count();
            prop_assert_eq!(contents.payloads.len(), whole);
        }

        /// A record with a changed byte is never accepted.
        #[test]
        fn a_flipped_byte_is_damage(
            payloads in payloads(),
            at in any::<prop::sample::Index>(),
            flip in 1u8..=255,
        ) {
            let synced: Vec<_> = payloads.iter().map(|(p, _)| (p.clone(), true)).collect();
            let (mut bytes, places, _) = written(&synced);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let end = bytes.len();
            bytes.resize(end + 700, 0);
            let hit = places.iter().filter(|place| **place <= at).count() - 1;
            match read(&bytes) {
                Err(offset) => prop_assert_eq!(offset, places[hit]),
                // In the last record, a byte that became zero or a missing line end can look torn.
                Ok(contents) => {
                    prop_assert_eq!(contents.payloads.len(), hit);
                    prop_assert_eq!(hit, places.len() - 1);
                    prop_assert!(bytes[at] == 0 || at == end - 1, "{} {}", at, end);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_journal_goes_on_after_a_torn_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (mut journal, payloads) = Journal::open(&path).unwrap();
        assert!(payloads.is_empty());
        journal.append("one").unwrap();
        journal.sync().unwrap();
        let end = usize::try_from(journal.size()).unwrap();
        journal.append("two").unwrap();
        drop(journal);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[end + 10..].fill(0);
        std::fs::write(&path, &bytes).unwrap();

        let (mut journal, payloads) = Journal::open(&path).unwrap();
        assert_eq!(payloads, ["one"]);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "opening it alone changes nothing");
        journal.append("three").unwrap();
        journal.sync().unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, ["one", "three"]);
        journal.clear().unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, [] as [&str; 0]);
        journal.append("four").unwrap();
        journal.append("five").unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, ["four", "five"]);

        let mut bytes = std::fs::read(&path).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let error = Journal::open(&path).unwrap_err().to_string();
        assert!(error.contains("journal is damaged") && error.contains("byte 0"), "{error}");
    }
}
