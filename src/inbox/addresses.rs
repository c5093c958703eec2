//! Caches which outbox each file of an inbox answers. Waiting files are examined in every round, so an unchanged file
//! is not read again.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use super::SIZE_LIMIT;
use super::decode;
use super::files::{is_young, open, read};
use crate::protocol::{ParsedReply, ReplyAddress};
use crate::session::record::FileId;

/// The cached address of each file, by file name. None if the file has no address.
#[derive(Debug, Default)]
pub(super) struct Addresses(HashMap<OsString, (FileId, Option<ReplyAddress>)>);

impl Addresses {
    /// The address in a file, if the file can be read and has one.
    pub(super) fn of(&mut self, path: &Path) -> Option<ReplyAddress> {
        let mut file = open(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || found.len() > SIZE_LIMIT {
            return None;
        }
        let (name, id) = (path.file_name()?, FileId::of(&file));
        match (self.0.get(name), id) {
            (Some((known, answers)), Some(id)) if *known == id => return answers.clone(),
            _ => {}
        }
        let text = read(&mut file, path).ok().and_then(|bytes| decode(bytes).ok());
        let answers = text.and_then(|text| ParsedReply::new(text).answers().cloned());
        // A file that was written just now may be written again with the same time, so do not cache it.
        if let Some(id) = id.filter(|_| !is_young(&file)) {
            self.0.insert(name.to_owned(), (id, answers.clone()));
        }
        answers
    }

    /// Forgets all files but these.
    pub(super) fn forget_others(&mut self, names: &[OsString]) {
        self.0.retain(|name, _| names.contains(name));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::protocol::parsed;

    fn write(path: &Path, sequence: u32, age: Duration) {
        fs::write(path, format!("[REPLY session=\"a1b2c3d4\" sequence=\"{sequence}\"]\n")).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_file_that_stays_as_it_is_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.txt");
        let mut addresses = Addresses::default();
        let mut read = |times: usize| {
            let before = parsed();
            let found: Vec<_> =
                (0..times).map(|_| addresses.of(&path).map(|found| found.sequence)).collect();
            (found, parsed() - before)
        };
        write(&path, 1, Duration::from_mins(1));
        assert_eq!(read(3), (vec![Some(1); 3], 1));
        write(&path, 2, Duration::from_mins(2));
        assert_eq!(read(2), (vec![Some(2); 2], 1), "of the same length, and older");
        write(&path, 3, Duration::ZERO);
        assert_eq!(read(1), (vec![Some(3)], 1), "written anew");
        fs::remove_file(&path).unwrap();
        assert_eq!(read(1), (vec![None], 0));
    }
}
