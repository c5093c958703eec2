//! Renders the outbox: one text with everything that the model needs (tag protocol, "Outbox Format"). Pure: the same
//! values always give the same text.
//!
//! Markers and headings are not indented. Data is indented, or in a block whose markers it cannot forge (see
//! `boundaries`). If the outbox is too long, `layout` shortens sections, and the outbox says how to see the rest.
//! [`parts`] splits an outbox for chats that accept only short messages.

mod boundaries;
mod brief;
mod budget;
mod contents;
mod events;
mod layout;
mod listing;
pub mod parts;
mod redaction;
mod results;
mod sections;

use crate::context::Offered;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Failure, FileVersion, LineRange, RelPath};
use crate::session::Session;
use crate::settings::Secrets;
use crate::workspace::Contents;
use redaction::Redaction;

pub use boundaries::contains_outbox;
pub use brief::{OutboxForm, brief};
pub use contents::files_of_first;
pub use events::{events, events_so_far, question, waiting};
pub use layout::{RenderedOutbox, render};
pub use redaction::words_messages;
pub use sections::with_words;

/// The facts for the Environment section, and the limits of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what most fields are")]
pub struct Environment {
    pub system: String,
    pub shell: String,
    /// The sandbox of commands, if any.
    pub sandbox: String,
    /// Whether commands can use the network.
    pub network: String,
    /// The protected names in the workspace.
    pub protected: String,
    /// What the policy restricts, if anything.
    pub policy: Option<String>,
    /// The default timeout of a command, and the longest timeout that it can request, in seconds.
    pub timeout: u64,
    pub longest: u64,
    /// How many characters of a command's output are kept.
    pub output_limit: usize,
    pub max_tokens: usize,
    /// The most tokens of a first outbox.
    pub context_tokens: usize,
    pub secrets: Secrets,
}

/// The files whose contents an outbox shows.
#[derive(Debug, Default)]
pub struct Files {
    /// The answers to the session's read requests, in order: the file, its beginning, or why it cannot be read. Empty
    /// in sessions of operations, since their events contain the files.
    pub requested: Vec<Result<Contents, Failure>>,
    /// The files that the first outbox may show without a request.
    pub offered: Offered,
    /// Complete files, for those of which parts were requested or are in results, unless they are too large.
    pub wholes: Vec<Contents>,
    /// Secret files ([`crate::secrets::is_secret_text_file`]). Their values are withheld wherever they occur.
    pub secrets: Vec<Contents>,
}

/// Sentences about secrets in the requested files; see [`RenderedOutbox::withheld`].
pub fn withheld(files: &Files, secrets: &Secrets) -> Vec<String> {
    let mut redaction = Redaction::new(files, secrets);
    for contents in files.requested.iter().flatten() {
        redaction.text(contents);
    }
    redaction.redactor.summaries()
}

/// The newest results of a session as [`events`], without secrets.
pub fn screened_events(session: &Session, secrets: &Secrets, files: &Files) -> EventsMessage {
    let results = Redaction::new(files, secrets).results(session, files);
    events::of_results(session, &results)
}

/// A file whose contents an outbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownFile {
    /// The path, with links resolved.
    pub path: RelPath,
    /// Whether the whole file is shown.
    pub whole: bool,
    /// The first and last line of each range that is shown, unless the whole file is.
    pub lines: Vec<(usize, usize)>,
    /// A line that is shown only in part.
    pub cut: Option<usize>,
    /// The version of the file; None if only a part of it is known.
    pub version: Option<FileVersion>,
}

impl ShownFile {
    /// Makes a value from the shown lines. Only the last line can be partial.
    fn new(path: &RelPath, lines: &LineRange, version: Option<FileVersion>) -> Self {
        let LineRange { first, last, total, uncounted, cut, within_line, .. } = *lines;
        let whole = first <= 1 && last == total && !(uncounted || cut || within_line);
        let end = last - usize::from(within_line);
        let is_part = !whole && first > 0 && end >= first;
        let lines = if is_part { vec![(first, end)] } else { Vec::new() };
        Self { path: path.clone(), whole, lines, cut: within_line.then_some(last), version }
    }
}
