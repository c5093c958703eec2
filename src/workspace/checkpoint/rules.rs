//! The ignore rules from before a turn, in case the turn changes them. They also apply to the rest of a turn that
//! stopped to ask a question, so that a reply cannot cause the person's ignored files to be recorded as its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CheckpointStore, TreeEntry};
use crate::blobs::{BlobId, Blobs};
use crate::error::{Error, Result};
use crate::workspace::names::split;
use crate::workspace::walk::detailed::{IgnoreSource, Texts};
use crate::workspace::walk::ignoring::{FILES, first_lines};

/// The ignore rules for the rest of a turn: the rules on disk with some files replaced or, if commands have run (which
/// may have changed any rules), the complete set of rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptRules(pub(super) IgnoreSource);

impl Default for KeptRules {
    fn default() -> Self {
        Self(IgnoreSource::Disk(Vec::new()))
    }
}

impl KeptRules {
    /// The complete set of rules.
    pub(super) fn given(texts: Texts) -> Self {
        Self(IgnoreSource::Given(texts))
    }

    /// Adds the former contents of files that operations have changed since. The earliest content of each file is used.
    pub(super) fn with_former<'a>(
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
    /// Reads the rules that were saved for the rest of a turn.
    ///
    /// # Errors
    /// The rules were deleted.
    pub fn rules(&self, id: &BlobId) -> Result<KeptRules> {
        let bytes = self.blobs.read(id)?;
        let rules = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        rules.ok_or_else(|| Error::undo("the ignore rules from before it are gone"))
    }
}
