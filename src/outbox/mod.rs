//! The outbox: one text with all that a chat model needs, rendered from values alone (tag protocol,
//! "Outbox Format"). The same values always give the same text.
//!
//! Markers and headings are flush left. Everything that is data is indented, or in a block whose marker
//! it cannot forge (see `boundaries`). [`parts`] cuts a text that is longer than a chat window takes.
//!
//! If all of it would be more tokens than allowed, `layout` leaves something out, and the outbox says how
//! to ask for it.

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

use std::cell::RefCell;

use crate::config::Secrets;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Detail, Dialect, Outcome, RelPath, Seen};
use crate::session::Session;
use crate::workspace::Contents;
use crate::workspace::picture::Picture;
use crate::workspace::walk::Walk;
use contents::{OfferedBlocks, RequestedBlocks};
use redaction::Redaction;

pub use boundaries::holds_outbox;
pub use choosing::{Candidate, candidates, check_pattern};
pub use contents::{Offered, Requested};
pub use events::{events, waiting};
pub use listing::newest;
pub use redaction::{files_with_lines, words_messages};
pub use sections::with_words;

/// What the Environment section says of this machine, and the bounds of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The operating system.
    pub system: String,
    /// How commands are run.
    pub shell: String,
    /// What confines commands, or that nothing does.
    pub sandbox: String,
    /// Whether commands reach the network.
    pub network: String,
    /// What may not be written although it is in the workspace.
    pub protected: String,
    /// What the policy keeps from operations; None if that is nothing.
    pub policy: Option<String>,
    /// The default timeout of a command, in seconds.
    pub timeout: u64,
    /// The longest timeout that it may ask for, in seconds.
    pub longest: u64,
    /// How many characters of its output are kept.
    pub output_limit: usize,
    /// How many tokens an outbox is at most.
    pub max_tokens: usize,
    /// How secrets in it are treated.
    pub secrets: Secrets,
}

/// The files whose contents an outbox shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Answers to the session's read requests, in their order. A session of operations has none, since
    /// its events contain what was read.
    pub requested: Vec<Requested>,
    /// What is shown unasked, in a first outbox.
    pub offered: Option<Offered>,
    /// All of those files of which a part was requested or is in results ([`files_with_lines`]), unless
    /// they are too large.
    pub wholes: Vec<Contents>,
    /// Files that hold secrets by their nature ([`crate::secrets::holds_secrets`]): their values are
    /// looked for in all that is shown.
    pub secrets: Vec<Contents>,
}

/// Whether the newest results of a session, or its first outbox, show anything that a file of secrets
/// may hold as well: what a command wrote, or what files hold.
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

/// What an outbox that shows these files would withhold as secret, or show all the same: sentences for
/// the person, as in [`Rendered`].
pub fn withheld(files: &Files, secrets: &Secrets) -> Vec<String> {
    let mut redaction = Redaction::new(files, secrets);
    redaction.texts(files);
    redaction.messages()
}

/// The newest results of a session as [`events`], without the secrets in them: they leave this machine as
/// the outbox does.
pub fn screened_events(session: &Session, secrets: &Secrets, files: &Files) -> EventsMessage {
    events(&Redaction::new(files, secrets).session(session))
}

/// An outbox, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its text.
    pub text: String,
    /// About how many tokens it is, or exactly if that could be more than allowed. It is more only if
    /// what is never left out is: the task, what the person says, and what is always there.
    pub tokens: usize,
    /// The files that the model sees in it.
    pub shown: Vec<Shown>,
    /// Whether it shows all results with the lines of files that belong to them.
    pub excerpts: bool,
    /// If it does: the lines of files in them that are shown as they are.
    pub search_lines: Vec<SearchLines>,
    /// Files of which lines in results are not shown as they are.
    pub withheld_from: Vec<RelPath>,
    /// What it does not show since it is secret, or shows all the same: sentences for the person.
    pub withheld: Vec<String>,
    /// In a session of operations, what [`screened_events`] gives of the same.
    pub events: Option<EventsMessage>,
}

/// A file whose contents an outbox shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Where it really is.
    pub path: RelPath,
    /// Whether all of it is shown.
    pub whole: bool,
    /// The first and the last line that are shown, if it is only a part and any are.
    pub lines: Option<(usize, usize)>,
    /// Its version; None if only a part of it is known.
    pub seen: Option<Seen>,
}

/// Lines of a file that results show by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchLines {
    /// Where the file really is.
    pub path: RelPath,
    /// Its version.
    pub seen: Seen,
    /// The first and the last of each range.
    pub lines: Vec<(usize, usize)>,
}

/// Renders a session's newest outbox.
pub fn render(
    session: &Session,
    environment: &Environment,
    walk: &Walk,
    files: &Files,
) -> Rendered {
    let mut redaction = Redaction::new(files, &environment.secrets);
    let [requested, offered] = redaction.texts(files);
    redaction.note_words(session);
    let (given, session) = (session, &redaction.session(session));
    let picture = &Picture::of(walk, &newest(session));
    let (near, redaction) = (&listing::near(session, picture), &RefCell::new(redaction));
    let values = layout::Values { given, session, environment, picture, near, files, redaction };
    let requested = RequestedBlocks::new(session, &files.requested, &requested);
    let offering = files.offered.as_ref();
    let offered = offering.map(|files| OfferedBlocks::new(session, files, &offered));
    let events = (session.dialect == Dialect::Operations).then(|| events(session));
    Rendered { events, ..values.render(offered, requested) }
}
