//! What was seen of the workspace at the last look, so that what is unchanged is not read again; and
//! what stood there before a command, for a turn that is taken up again.
//!
//! A file of lines, `checksum " " JSON`, that only grows within a turn; a line says what stands
//! somewhere, that nothing does, which rules hold, or where nothing could be seen. So a turn writes as much as has changed, and a
//! place in the file ([`Mark`]) stands for all that was so then. What is torn or damaged at its end
//! counts as never seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::What;
use super::hidden::Hidden;
use crate::atomic;
use crate::blobs::BlobId;
use crate::error::{Error, Result};
use crate::workspace::names::common_prefix;
use crate::workspace::walk::detailed::{FileStat, Texts};

/// An index that is so much longer than it would be anew is written anew, in bytes.
const SLACK: u64 = 256 << 10;

/// What was seen somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    #[serde(rename = "w")]
    pub(super) what: What,
    #[serde(rename = "f")]
    pub(super) facts: FileStat,
    /// Its size, as the system told it.
    #[serde(rename = "z")]
    pub(super) size: u64,
    /// Whether it is as it was where its facts are.
    #[serde(rename = "s", default)]
    pub(super) sure: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum Line {
    /// The first: which index it is.
    Id(String),
    /// What stands at a path: by how many bytes of the one before it begins with, and the rest. None where
    /// nothing does.
    At(usize, String, Option<Known>),
    /// The same of what is kept though rules leave it out.
    Ignored(usize, String, Option<Known>),
    /// The same with the whole path, as older versions wrote it.
    Set(String, Known),
    Gone(String),
    /// The rules, each folder as paths are in `At`.
    RulesAt(Vec<(usize, String, BTreeMap<String, String>)>),
    Rules(Texts),
    Hidden(Hidden),
}

type At = fn(usize, String, Option<Known>) -> Line;

/// A state of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    id: String,
    end: u64,
}

/// All that was seen.
#[derive(Debug)]
pub(super) struct Index {
    path: PathBuf,
    id: String,
    pub(super) seen: BTreeMap<String, Known>,
    /// What was seen before, while a look goes on and has not met it yet.
    pub(super) earlier: BTreeMap<String, Known>,
    /// What is kept though rules leave it out.
    pub(super) ignored: BTreeMap<String, Known>,
    pub(super) rules: Texts,
    /// Where the last look could not see.
    pub(super) hidden: Hidden,
    /// How long the file is, and how long it was when it was written anew.
    end: u64,
    fresh: u64,
    /// The path of the last line that has one.
    last: String,
    /// Lines that are not in the file yet.
    lines: String,
    is_synced: bool,
    is_loaded: bool,
}

impl Index {
    pub(super) fn new(path: PathBuf) -> Self {
        let (id, lines) = (String::new(), String::new());
        let (seen, earlier, rules) = (BTreeMap::new(), BTreeMap::new(), Texts::new());
        let (hidden, is_synced, is_loaded) = (Hidden::default(), false, false);
        Self {
            path,
            id,
            seen,
            earlier,
            ignored: BTreeMap::new(),
            rules,
            hidden,
            end: 0,
            fresh: 0,
            last: String::new(),
            lines,
            is_synced,
            is_loaded,
        }
    }

    /// What is known is to be read anew from the file.
    pub(super) fn unload(&mut self) {
        *self = Self::new(std::mem::take(&mut self.path));
    }

    /// Reads it, where that is still to be done; up to a mark, where one is given. Returns whether all
    /// up to there is there.
    pub(super) fn load(&mut self, mark: Option<&Mark>) -> Result<bool> {
        if self.is_loaded && mark.is_none() {
            return Ok(true);
        }
        self.unload();
        self.is_loaded = true;
        let bytes = match atomic::read_own(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes.map_err(|e| Error::io("read", &self.path, e))?,
        };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if mark.is_some_and(|mark| self.end >= mark.end) {
                break;
            }
            let Some(line) = read(line) else { break };
            let (line, length) = line;
            if let Line::At(same, rest, _) | Line::Ignored(same, rest, _) = &line {
                if !self.last.is_char_boundary(*same) {
                    break;
                }
                self.last.truncate(*same);
                self.last.push_str(rest);
            }
            self.end += length;
            match line {
                Line::Id(id) => self.id = id,
                Line::At(.., known) => put(&mut self.seen, &self.last, known),
                Line::Ignored(.., known) => put(&mut self.ignored, &self.last, known),
                Line::Set(path, known) => drop(self.seen.insert(path, known)),
                Line::Gone(path) => drop(self.seen.remove(&path)),
                Line::RulesAt(rules) => self.rules = whole(rules),
                Line::Rules(rules) => self.rules = rules,
                Line::Hidden(hidden) => self.hidden = hidden,
            }
        }
        self.fresh = self.end;
        Ok(mark.is_none_or(|mark| mark.id == self.id && mark.end == self.end))
    }

    pub(super) fn set(&mut self, path: String, known: Known) {
        push_at(&mut self.lines, &mut self.last, Line::At, &path, Some(&known));
        self.seen.insert(path, known);
    }

    /// Notes that nothing stands there; it was taken out of what is seen before.
    pub(super) fn gone(&mut self, path: &str) {
        push_at(&mut self.lines, &mut self.last, Line::At, path, None);
    }

    pub(super) fn set_ignored(&mut self, path: String, known: Known) {
        push_at(&mut self.lines, &mut self.last, Line::Ignored, &path, Some(&known));
        self.ignored.insert(path, known);
    }

    pub(super) fn ignored_gone(&mut self, path: &str) {
        push_at(&mut self.lines, &mut self.last, Line::Ignored, path, None);
        self.ignored.remove(path);
    }

    pub(super) fn go_by(&mut self, rules: Texts) {
        if rules != self.rules {
            self.note(&shortened(&rules));
            self.rules = rules;
        }
    }

    pub(super) fn hide(&mut self, hidden: Hidden) {
        if hidden != self.hidden {
            self.note(&Line::Hidden(hidden.clone()));
            self.hidden = hidden;
        }
    }

    fn note(&mut self, line: &Line) {
        push(&mut self.lines, line);
    }

    /// Writes what is new. With `sync` all of it is on disk then.
    pub(super) fn write(&mut self, sync: bool) -> Result<Mark> {
        let fail = |path: &PathBuf, e| Error::io("write", path, e);
        if self.id.is_empty() || self.end == 0 {
            self.write_anew()?;
        } else if !self.lines.is_empty() || sync && !self.is_synced {
            let written = self.append(sync);
            if let Err(e) = written {
                let path = self.path.clone();
                self.unload();
                return Err(fail(&path, e));
            }
        }
        Ok(Mark { id: self.id.clone(), end: self.end })
    }

    fn append(&mut self, sync: bool) -> io::Result<()> {
        let mut file = atomic::open_own(File::options().write(true), &self.path)?;
        // What follows is torn, or of a turn that is carried out anew.
        if file.metadata()?.len() != self.end {
            file.set_len(self.end)?;
        }
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(self.lines.as_bytes())?;
        self.end += self.lines.len() as u64;
        self.lines.clear();
        if sync {
            file.sync_data()?;
        }
        self.is_synced = sync;
        Ok(())
    }

    fn write_anew(&mut self) -> Result<()> {
        self.id = uuid::Uuid::new_v4().simple().to_string();
        let mut text = String::new();
        push(&mut text, &Line::Id(self.id.clone()));
        push(&mut text, &shortened(&self.rules));
        push(&mut text, &Line::Hidden(self.hidden.clone()));
        self.last.clear();
        let seen = self.seen.iter().map(|(path, known)| (Line::At as At, path, known));
        let ignored = self.ignored.iter().map(|(path, known)| (Line::Ignored as At, path, known));
        for (line, path, known) in seen.chain(ignored) {
            push_at(&mut text, &mut self.last, line, path, Some(known));
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::io("make the folder", folder, e))?;
        }
        // What is added later is synced by itself; that the file has its name is not, by that.
        atomic::write_private(&self.path, text.as_bytes())?;
        (self.end, self.fresh) = (text.len() as u64, text.len() as u64);
        self.lines.clear();
        self.is_synced = true;
        Ok(())
    }

    /// Writes it anew where it has grown long; not within a turn, whose marks would mean nothing then.
    pub(super) fn shorten(&mut self) -> Result<()> {
        self.load(None)?;
        if self.end > 2 * self.fresh + SLACK { self.write_anew() } else { Ok(()) }
    }

    /// The blobs of all that is seen, and was before a look that goes on.
    pub(super) fn blobs(&self) -> BTreeSet<BlobId> {
        let all = self.seen.values().chain(self.earlier.values()).chain(self.ignored.values());
        all.filter_map(|known| known.what.blob().cloned()).collect()
    }
}

fn push(text: &mut String, line: &Line) {
    // Strings and numbers always become JSON.
    let json = serde_json::to_string(line).unwrap_or_default();
    text.push_str(&blake3::hash(json.as_bytes()).to_hex()[..16]);
    text.push(' ');
    text.push_str(&json);
    text.push('\n');
}

/// Adds the line of a path, where `last` is that of the line before. So the paths of nested folders do not take
/// quadratic space.
fn push_at(text: &mut String, last: &mut String, line: At, path: &str, known: Option<&Known>) {
    let same = take_on(last, path);
    push(text, &line(same, path[same..].to_owned(), known.cloned()));
}

fn put(places: &mut BTreeMap<String, Known>, path: &str, known: Option<Known>) {
    match known {
        Some(known) => drop(places.insert(path.to_owned(), known)),
        None => drop(places.remove(path)),
    }
}

/// How many bytes a path begins with as the one before; it becomes that.
fn take_on(last: &mut String, path: &str) -> usize {
    let mut same = common_prefix(last, path);
    while !path.is_char_boundary(same) {
        same -= 1;
    }
    last.truncate(same);
    last.push_str(&path[same..]);
    same
}

fn shortened(rules: &Texts) -> Line {
    let mut last = String::new();
    let shortened = |(folder, texts): (&String, &BTreeMap<String, String>)| {
        let same = take_on(&mut last, folder);
        (same, folder[same..].to_owned(), texts.clone())
    };
    Line::RulesAt(rules.iter().map(shortened).collect())
}

/// The opposite of [`shortened`].
fn whole(rules: Vec<(usize, String, BTreeMap<String, String>)>) -> Texts {
    let mut last = String::new();
    let whole = |(same, rest, texts): (usize, String, BTreeMap<String, String>)| {
        // What has its checksum was written here.
        let begin = last.get(..same).unwrap_or_default();
        last = format!("{begin}{rest}");
        (last.clone(), texts)
    };
    rules.into_iter().map(whole).collect()
}

/// A line and its length; None where it is none.
fn read(bytes: &[u8]) -> Option<(Line, u64)> {
    let line = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let (sum, json) = line.split_once(' ')?;
    if *sum != blake3::hash(json.as_bytes()).to_hex()[..16] {
        return None;
    }
    Some((serde_json::from_str(json).ok()?, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workspace::checkpoint::hidden::unreadable_at;

    fn known(path: &str) -> Known {
        Known { what: unreadable_at(path), facts: FileStat::default(), size: 1, sure: false }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            paths in prop::collection::vec("[aé%/]{0,4}|(long/){30}[aàé]{0,2}", 0..12),
            cut in 0_usize..12,
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut index = Index::new(dir.path().join("index"));
            index.load(None).unwrap();
            let mut mark = None;
            for (n, path) in paths.iter().enumerate() {
                if n == cut {
                    let mark_here = index.write(false).unwrap();
                    mark = Some((mark_here, index.seen.clone(), index.rules.clone()));
                }
                if n % 3 == 2 {
                    index.seen.remove(path);
                    index.gone(path);
                } else {
                    index.set(path.clone(), known(path));
                }
                let mut rules = index.rules.clone();
                rules.insert(path.clone(), BTreeMap::from([(".ignore".to_owned(), "x".to_owned())]));
                index.go_by(rules);
            }
            index.write(true).unwrap();
            let mut again = Index::new(dir.path().join("index"));
            prop_assert!(again.load(None).unwrap());
            prop_assert_eq!((&again.seen, &again.rules), (&index.seen, &index.rules));
            if let Some((mark, seen, rules)) = mark {
                prop_assert!(again.load(Some(&mark)).unwrap());
                prop_assert_eq!((&again.seen, &again.rules), (&seen, &rules));
                // It is gone on with from there.
                again.set("long/x".to_owned(), known("x"));
                again.write(true).unwrap();
                let mut once_more = Index::new(dir.path().join("index"));
                once_more.load(None).unwrap();
                prop_assert_eq!(once_more.seen, again.seen);
            }
        }
    }
}
