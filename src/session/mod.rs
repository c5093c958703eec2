//! Sessions: a task and the conversation about it, and their storage.

mod changes;
mod conversation;
mod file_versions;
pub mod journal;
pub mod log;
pub mod record;
mod state;
pub mod store;

pub use changes::{ChangeKind, CountedNames, FileChange, Ignored, NAMED, Reversal, TurnChanges};
pub use file_versions::FileVersions;
pub use state::{
    ApprovalDecision, DecidedQuestion, FilePatterns, Pending, Question, Run, RunRequest,
    SecretFile, Session,
};

/// The prefix of the names of runs.
const RUN: &str = "run_";

/// `{id}_seq{NNNN}.txt`
pub fn outbox_name(id: &str, sequence: u32) -> String {
    format!("{id}_seq{sequence:04}.txt")
}

/// `run_{id}`, the name of a run and the stem of its file names.
pub fn run_stem(id: &str) -> String {
    format!("{RUN}{id}")
}

/// The ID of the run with this name; None if it is not the name of a run.
pub fn run_id(stem: &str) -> Option<&str> {
    stem.strip_prefix(RUN).filter(|id| is_id(id))
}

/// Whether `text` has the form of a session id: eight lowercase hexadecimal digits.
pub fn is_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A new session id: the first digits of a random UUID.
pub fn new_id() -> String {
    let mut id = uuid::Uuid::new_v4().simple().to_string();
    id.truncate(8);
    id
}

#[cfg(test)]
mod tests;
