//! A turn that waits for the person: what was done of it, what is asked, and what was decided.

use serde::{Deserialize, Serialize};

use super::Session;
use crate::clock::Timestamp;
use crate::policy::Ask;
use crate::protocol::{Digest, Kind, Outcome, Step};

/// A turn that stands at an operation which only the person can let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// The name that the reply was dropped under.
    pub reply: String,
    /// What identifies its text.
    pub text: Digest,
    /// All its steps.
    pub steps: Vec<Step>,
    /// What the steps before the one in question came to.
    pub outcomes: Vec<Outcome>,
    /// What is asked.
    pub question: Question,
    /// The guest that the turn was begun in; None for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<String>,
    /// What was decided, where somebody has yet to go on with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Verdict>,
}

/// What the person is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// About which step, counted from 0.
    pub step: usize,
    /// What the operation is called: by the LLM, or a name that was made up.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Why, and what an approval opens.
    pub ask: Ask,
    /// The operation and what it would change, as it stands: an approval counts for nothing else.
    pub digest: Digest,
    /// Since when.
    pub at: Timestamp,
}

impl Session {
    /// What the person is asked and has not decided.
    pub fn question(&self) -> Option<&Question> {
        let pending = self.pending.as_ref().filter(|pending| pending.decision.is_none());
        pending.map(|pending| &pending.question)
    }
}

/// What the person decided about a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The question, as it was when they decided.
    pub question: Question,
    /// Whether it is to be carried out.
    pub approved: bool,
    /// Their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
