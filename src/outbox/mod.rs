//! The outbox: one text that tells a chat model all it needs, rendered from values alone (tag
//! protocol, "Outbox Format"). The same values always give the same text.
//!
//! Markers and headings stand flush left, and everything that is data is indented or stands in a
//! block whose marker it cannot forge (see `boundaries`). [`parts`] cuts a text that is longer than a
//! chat window takes.
//!
//! It fits into a chat: where all of it would be more tokens than it may, `fitting` leaves something
//! out, and says how that is asked for.

mod boundaries;
mod budget;
mod changed;
mod choosing;
mod contents;
mod events;
mod fitting;
mod header;
mod lines;
mod listing;
mod lone;
mod offered;
mod own;
pub mod parts;
mod prompt;
mod results;
mod screening;

use std::cell::RefCell;

use crate::config::Secrets;
use crate::protocol::operations::EventsMessage;
use crate::protocol::{Detail, Dialect, Outcome, RelPath, Seen};
use crate::session::Session;
use crate::workspace::Contents;
use crate::workspace::picture::Picture;
use crate::workspace::walk::Walk;

pub use choosing::{Candidate, candidates, check_pattern};
pub use contents::Requested;
pub use events::{events, waiting};
pub use listing::newest;
pub use lone::looked_into;
pub use offered::Offered;
pub use own::holds_outbox;
pub use prompt::with_words;

/// What the Environment section tells about this machine, and what bounds an outbox.
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
    /// What may not be written although it lies in the workspace.
    pub protected: String,
    /// What the policy keeps from operations; None where that is nothing.
    pub policy: Option<String>,
    /// How long a command may take by itself, in seconds.
    pub timeout: u64,
    /// How long it may ask for, in seconds.
    pub longest: u64,
    /// How many characters of its output are kept.
    pub output_limit: usize,
    /// How many tokens an outbox is at most.
    pub max_tokens: usize,
    /// What is done about secrets in it.
    pub secrets: Secrets,
}

/// The files whose contents an outbox shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Answers to the session's read requests, in their order; in a session of operations there are
    /// none, since events hold what was read.
    pub requested: Vec<Requested>,
    /// What is shown unasked, in a first outbox.
    pub offered: Option<Offered>,
    /// All of those files of which a part was requested or stands in results ([`looked_into`]), as far
    /// as they are not too large.
    pub wholes: Vec<Contents>,
    /// Files that hold secrets by their nature ([`crate::secrets::holds_secrets`]): what they hold is
    /// sought in all that is shown.
    pub secrets: Vec<Contents>,
}

/// Whether the newest results of a session, or its first outbox, show anything that a file of secrets
/// may hold as well: what a command wrote, or what files hold.
pub fn shows_contents(session: &Session) -> bool {
    let shows = |outcome: &Outcome| {
        matches!(
            outcome.detail,
            Detail::Ran(_) | Detail::Read { .. } | Detail::ReadLater { .. } | Detail::Found { .. }
        ) || outcome.detail.excerpt().is_some()
            || matches!(&outcome.detail, Detail::Failed(failure) if failure.of.is_some())
    };
    session.offer.is_some() && session.sequence == 1 || session.last_results.iter().any(shows)
}

/// What an outbox that shows these files would not show of them since it is secret, or would show all the
/// same: sentences for the person, as in [`Rendered`].
pub fn withheld(files: &Files, secrets: &Secrets) -> Vec<String> {
    let mut screen = screening::screen(files, secrets);
    let wholes = screening::Wholes::of(files, &screen);
    screening::texts(files, &wholes, &mut screen);
    screen.told()
}

/// What the person is to be told of their own words in an outbox, which stand there as they are: sentences
/// on what looks like a secret.
pub fn told_of_words(text: &str, secrets: &Secrets) -> Vec<String> {
    screening::told_of_words(text, secrets)
}

/// What the newest results of a session are as events, as [`events`] gives them, without the secrets in
/// them: they leave this machine as the outbox does.
pub fn screened_events(session: &Session, secrets: &Secrets, files: &Files) -> EventsMessage {
    let mut screen = screening::screen(files, secrets);
    let wholes = screening::Wholes::of(files, &screen);
    events(&screening::session(session, &wholes, &mut screen))
}

/// An outbox, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its text.
    pub text: String,
    /// How many tokens it is: about, or exactly where it could be more than it may. It is more only
    /// where what nobody may leave out is: the task, what the user says, and what is always there.
    pub tokens: usize,
    /// The files that the model sees in it.
    pub shown: Vec<Shown>,
    /// Whether it tells all results with the lines of files that belong to them.
    pub excerpts: bool,
    /// Where it does, lines of files in them that stand there to the letter as they are.
    pub lone: Vec<Lone>,
    /// Files of which lines in results are not shown as they are.
    pub withheld_from: Vec<RelPath>,
    /// What it does not show since it is secret, or shows all the same: sentences for the person.
    pub withheld: Vec<String>,
    /// In a session of operations, what [`screened_events`] gives of the same.
    pub events: Option<EventsMessage>,
}

/// A file whose contents stand in an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Where it really stands.
    pub path: RelPath,
    /// Whether all of it is shown.
    pub whole: bool,
    /// The first and the last line that are shown, where it is only a part and any are.
    pub lines: Option<(usize, usize)>,
    /// What it was like; None where only a part of it is known.
    pub seen: Option<Seen>,
}

/// Lines of a file that stand by themselves in results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lone {
    /// Where it really stands.
    pub path: RelPath,
    /// What it was like.
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
    let mut screen = screening::screen(files, &environment.secrets);
    let wholes = screening::Wholes::of(files, &screen);
    let texts = screening::texts(files, &wholes, &mut screen);
    screening::words(session, &mut screen);
    let (given, session) = (session, &screening::session(session, &wholes, &mut screen));
    let screen = &RefCell::new(screen);
    let picture = &Picture::of(walk, &newest(session));
    let (near, texts) = (&listing::near(session, picture), &texts);
    let values =
        fitting::Values { given, session, environment, picture, near, files, texts, screen };
    let events = (session.dialect == Dialect::Operations).then(|| events(session));
    Rendered { events, ..values.render() }
}

/// How many tokens a text is, as `count` says; those that are sure to be more than `room` are not
/// looked at closely.
fn tokens_of(text: &str, room: usize, count: impl Fn(&str) -> usize) -> usize {
    // No token is longer than 128 bytes.
    if text.len() / 128 > room { usize::MAX } else { count(text) }
}
