//! The ignore rules from before a turn, where it has changed them: also for the rest of one that stopped to
//! ask, so that a reply cannot have the person's ignored files recorded as its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CheckpointStore, TreeEntry};
use crate::blobs::{BlobId, Blobs};
use crate::error::{Error, Result};
use crate::workspace::names::split;
use crate::workspace::walk::detailed::{IgnoreSource, Texts};
use crate::workspace::walk::ignoring::{FILES, first_lines};

/// The rules that the rest of a turn goes by: those on disk but for these files, or all, since commands have run that
/// may have changed any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptRules(pub(super) IgnoreSource);

impl Default for KeptRules {
    fn default() -> Self {
        Self(IgnoreSource::Disk(Vec::new()))
    }
}

impl KeptRules {
    /// All of them.
    pub(super) fn given(texts: Texts) -> Self {
        Self(IgnoreSource::Given(texts))
    }

    /// The same where operations have changed files since in whose places this `stood`. What was kept first counts.
    pub(super) fn and<'a>(
        mut self,
        stood: impl Iterator<Item = (&'a str, Option<&'a TreeEntry>)>,
        blobs: &Blobs,
    ) -> Result<Self> {
        let IgnoreSource::Disk(rules) = &mut self.0 else { return Ok(self) };
        let mut kept: BTreeMap<_, _> = rules.drain(..).collect();
        for (path, what) in stood {
            let (folder, name) = split(path);
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            let place = (prefix, name.to_owned());
            if !FILES.contains(&name) || kept.contains_key(&place) {
                continue;
            }
            let text = match what.and_then(TreeEntry::blob) {
                Some(blob) => blobs.read(blob)?,
                None => None,
            };
            let text = text.map(|t| String::from_utf8_lossy(first_lines(&t)).into_owned());
            kept.insert(place, text);
        }
        rules.extend(kept);
        Ok(self)
    }
}

impl CheckpointStore {
    /// The rules that were noted for the rest of a turn.
    ///
    /// # Errors
    /// They are gone.
    pub fn rules(&self, id: &BlobId) -> Result<KeptRules> {
        let bytes = self.blobs.read(id)?;
        let rules = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        rules.ok_or_else(|| Error::undo("the ignore rules from before it are gone"))
    }
}
