//! Renders the outbox: one text with everything that the model needs (tag protocol, "Outbox Format"). Pure: the same
//! values always give the same text.
//!
//! Markers and headings are flush left. Data is indented, or in a block whose markers it cannot forge (see
//! `boundaries`). If the outbox would be too long, `layout` shortens sections, and the outbox says how to see the rest.
//! [`parts`] splits an outbox for chat windows that take only short messages.

mod boundaries;
mod budget;
mod choosing;
mod contents;
mod events;
mod layout;
mod listing;
pub mod parts;
mod redaction;
mod results;
mod sections;

use crate::config::Secrets;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Detail, Dialect, FileVersion, Outcome, RelPath};
use crate::session::Session;
use crate::workspace::Contents;
use crate::workspace::picture::Picture;
use crate::workspace::walk::Walk;
use contents::{OfferedBlocks, RequestedBlocks};
use layout::Layout;
use listing::Listing;
use redaction::Redaction;

pub use boundaries::holds_outbox;
pub use choosing::{Candidate, candidates, check_pattern};
pub use contents::{Offered, Requested};
pub use events::{events, waiting};
pub use listing::newest;
pub use redaction::{files_with_lines, words_messages};
pub use sections::with_words;

/// What the Environment section says about this machine, and the limits of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The operating system.
    pub system: String,
    /// How commands are run.
    pub shell: String,
    /// What confines commands, if anything does.
    pub sandbox: String,
    /// Whether commands can use the network.
    pub network: String,
    /// What may not be written in the workspace.
    pub protected: String,
    /// What the policy restricts, if anything.
    pub policy: Option<String>,
    /// The default timeout of a command, in seconds.
    pub timeout: u64,
    /// The longest timeout that a command can request, in seconds.
    pub longest: u64,
    /// How many characters of a command's output are kept.
    pub output_limit: usize,
    /// The most tokens of an outbox.
    pub max_tokens: usize,
    /// How secrets are treated.
    pub secrets: Secrets,
}

/// The files whose contents an outbox shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The answers to the session's read requests, in order. Sessions of operations have none: their events contain
    /// what was read.
    pub requested: Vec<Requested>,
    /// What the first outbox may show unasked.
    pub offered: Option<Offered>,
    /// The whole files of which parts were requested or are in results ([`files_with_lines`]), unless they are too
    /// large.
    pub wholes: Vec<Contents>,
    /// Secret files ([`crate::secrets::holds_secrets`]). Their values are withheld wherever they occur.
    pub secrets: Vec<Contents>,
}

/// Whether the newest outbox shows file contents or command output, which may contain the values of secret files.
pub fn shows_contents(session: &Session) -> bool {
    let shows = |outcome: &Outcome| match &outcome.detail {
        Detail::Ran(_) | Detail::Read { .. } | Detail::ReadLater { .. } | Detail::Found { .. } => {
            true
        }
        Detail::Failed(failure) => failure.of.is_some() || !failure.excerpt.is_empty(),
        detail => detail.excerpt().is_some(),
    };
    session.offer.is_some() && session.sequence == 1 || session.last_results.iter().any(shows)
}

/// What an outbox that shows the requested files would say about secrets; see [`Rendered::withheld`].
pub fn withheld(files: &Files, secrets: &Secrets) -> Vec<String> {
    let mut redaction = Redaction::new(files, secrets);
    for file in &files.requested {
        let _shown = file.contents.as_ref().map(|contents| redaction.text(contents));
    }
    redaction.messages()
}

/// The newest results of a session as [`events`], without secrets.
pub fn screened_events(session: &Session, secrets: &Secrets, files: &Files) -> EventsMessage {
    events(&Redaction::new(files, secrets).session(session))
}

/// An outbox, and what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its text.
    pub text: String,
    /// The number of its tokens: exact if that may exceed the limit, otherwise an estimate. It can only exceed the
    /// limit if what is never shortened does, such as the task and the person's words.
    pub tokens: usize,
    /// The files that the model sees.
    pub shown: Vec<Shown>,
    /// Whether it shows all results with their excerpts of files.
    pub excerpts: bool,
    /// If so, the unchanged lines of files in results.
    pub search_lines: Vec<Shown>,
    /// Files whose excerpts in results were redacted.
    pub withheld_from: Vec<RelPath>,
    /// Sentences for the person about the secrets that were found.
    pub withheld: Vec<String>,
    /// In a session of operations, its [`screened_events`].
    pub events: Option<EventsMessage>,
}

/// A file whose contents an outbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its path, with links resolved.
    pub path: RelPath,
    /// Whether all of it is shown.
    pub whole: bool,
    /// The first and last line of each range that is shown, unless all of it is.
    pub lines: Vec<(usize, usize)>,
    /// Its version; None if only a part of it is known.
    pub seen: Option<FileVersion>,
}

/// Renders a session's newest outbox.
pub fn render(
    session: &Session,
    environment: &Environment,
    walk: &Walk,
    files: &Files,
) -> Rendered {
    let mut redaction = Redaction::new(files, &environment.secrets);
    let mut text = |contents| redaction.text(contents);
    let requested = RequestedBlocks::new(session, &files.requested, &mut text);
    let offered = files.offered.as_ref();
    let offered = offered.map(|files| OfferedBlocks::new(session, files, &mut text));
    redaction.note_words(session);
    let mut shown = redaction.session(session);
    let mut events_message = None;
    if session.dialect == Dialect::Operations {
        events_message = Some(events(&shown));
        for outcome in &mut shown.last_results {
            *outcome = outcome.within(environment.output_limit);
        }
    }
    let (given, session) = (session, &shown);
    let picture = &Picture::of(walk, &newest(session));
    let listing = &Listing::of(session, picture);
    let layout = Layout { given, session, environment, listing, files, redaction };
    Rendered { events: events_message, ..layout.render(offered, requested) }
}
