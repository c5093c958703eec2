//! The ignore rules from before a turn, where it has changed them: also for the rest of one that stopped to
//! ask, so that a reply cannot have the person's ignored files recorded as its own.

use serde::{Deserialize, Serialize};

use super::{Store, TreeEntry};
use crate::blobs::{BlobId, Blobs};
use crate::error::{Error, Result};
use crate::workspace::names::split;
use crate::workspace::walk::detailed::{IgnoreSource, Texts};
use crate::workspace::walk::ignoring::{FILES, first_lines};

/// What counts instead of files of rules that operations have changed, by folder and name; None where
/// there was none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Instead(Vec<((String, String), Option<String>)>);

impl Instead {
    /// Of what stood in these places.
    pub(super) fn of<'a>(
        stood: impl Iterator<Item = (&'a str, Option<&'a TreeEntry>)>,
        blobs: &Blobs,
    ) -> Result<Self> {
        let mut rules = Vec::new();
        for (path, what) in stood {
            let (folder, name) = split(path);
            if !FILES.contains(&name) {
                continue;
            }
            let text = match what.and_then(TreeEntry::blob) {
                Some(blob) => blobs.read(blob)?,
                None => None,
            };
            let text = text.map(|t| String::from_utf8_lossy(first_lines(&t)).into_owned());
            let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            rules.push(((prefix, name.to_owned()), text));
        }
        Ok(Self(rules))
    }
}

/// The rules that the rest of a turn goes by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeptRules(Kept);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kept {
    /// Those on disk, but for these.
    Disk(Instead),
    /// These, since commands have run that may have changed any.
    Given(Texts),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Disk(Instead::default())
    }
}

impl KeptRules {
    /// All of them.
    pub(super) fn given(texts: Texts) -> Self {
        Self(Kept::Given(texts))
    }

    /// The same where operations have changed these since. What was kept first counts.
    pub(super) fn and(self, Instead(later): Instead) -> Self {
        Self(match self.0 {
            Kept::Disk(Instead(mut rules)) => {
                let known = rules.len();
                for (place, text) in later {
                    if !rules[..known].iter().any(|(first, _)| *first == place) {
                        rules.push((place, text));
                    }
                }
                Kept::Disk(Instead(rules))
            }
            given @ Kept::Given(_) => given,
        })
    }

    pub(super) fn into_by(self) -> IgnoreSource {
        match self.0 {
            Kept::Disk(Instead(rules)) => IgnoreSource::Disk(rules.into_iter().collect()),
            Kept::Given(texts) => IgnoreSource::Given(texts),
        }
    }
}

impl Store {
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
