//! Whether a reply is the one before it once more. Pasted again, the same text may have come by another
//! way: with other line ends, or with more of the chat page around it.
//!
//! Where something of the reply before was refused, and nothing of it was done, the same text is what the
//! model was asked to send again: it is a repeat only if it was written before that was told.

use super::Session;
use crate::protocol::tags::is_button;
use crate::protocol::{Detail, Digest, Ending, Failure, FailureKind, Kind, Outcome};

impl Session {
    /// What identifies the text of a reply.
    pub(super) fn identity(reply: &str) -> Digest {
        Digest::of(bare(reply).as_bytes())
    }

    /// Whether this text is that of the reply just before, most likely pasted twice; `written` is when
    /// its file was last written, in nanoseconds since 1970, where it has one.
    pub fn is_repeat(&self, reply: &str, written: Option<i128>) -> bool {
        // Sessions that are older than this identify a text by each of its bytes.
        let is_same = self.last_reply.as_ref().is_some_and(|last| {
            *last == Self::identity(reply) || *last == Digest::of(reply.as_bytes())
        });
        is_same && (!self.asks_again() || written.is_some_and(|written| self.is_before(written)))
    }

    /// Whether something of the newest reply failed, and nothing of it was done.
    fn asks_again(&self) -> bool {
        let failed = self.last_results.iter().any(|outcome| !outcome.success());
        failed && !self.last_results.iter().any(may_have_done)
    }

    /// Whether a time is before what came of the newest reply could be read, which is known to the second.
    fn is_before(&self, written: i128) -> bool {
        written < i128::from(self.updated_at.seconds() + 1) * 1_000_000_000
    }
}

/// Whether a second time would do something twice, as far as that can be said.
fn may_have_done(outcome: &Outcome) -> bool {
    match &outcome.detail {
        Detail::Shown { .. }
        | Detail::Listed { .. }
        | Detail::Found { .. }
        | Detail::ReadLater { .. }
        | Detail::Read { .. } => false,
        Detail::Ran(execution) => !matches!(execution.ending, Ending::NotStarted(_)),
        // What a disk or a guest fails may have been done in part.
        Detail::Failed(Failure { kind, mistake, .. }) => {
            let may_be = matches!(kind, FailureKind::Execution | FailureKind::System);
            let changes = matches!(
                outcome.kind,
                Kind::Create | Kind::Edit | Kind::Delete | Kind::Move | Kind::Run
            );
            may_be && mistake.is_none() && changes
        }
        _ => true,
    }
}

/// A text without what changes on its way from a chat: how its lines end, and what stands around it.
/// Nothing within it is left out but blanks at the ends of lines.
fn bare(reply: &str) -> String {
    let lines: Vec<&str> =
        reply.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    let said = |line: &&str| !is_around(line);
    let (Some(first), Some(last)) = (lines.iter().position(said), lines.iter().rposition(said))
    else {
        return String::new();
    };
    let mut bare = lines[first..=last].join("\n");
    // The first line may be indented by what selected it.
    bare.drain(..bare.len() - bare.trim_start().len());
    bare
}

/// Whether a line before or behind a reply is none of it: blank, a fence, or a button of the page.
fn is_around(line: &str) -> bool {
    let line = line.trim();
    // A reply ends with a tag or with words: what a fence says behind its signs is one word.
    let is_fence = ["```", "~~~"].iter().any(|fence| {
        line.strip_prefix(fence)
            .is_some_and(|rest| !rest.contains(char::is_whitespace) && !rest.contains('['))
    });
    let word = line.to_lowercase();
    line.is_empty() || is_fence || is_button(&word) || word == "code"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    const REPLY: &str =
        "Here:\n[RUN_COMMAND]\necho a >> log\n\n```\n[/RUN_COMMAND]\n[READ_FILE path=\"a\"]\n";

    fn after(reply: &str) -> Session {
        let mut session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
        session.last_reply = Some(Session::identity(reply));
        session
    }

    #[test]
    fn the_same_text_by_another_way_is_the_same() {
        let trimmed = REPLY.trim_end();
        for again in [
            REPLY.to_owned(),
            trimmed.to_owned(),
            REPLY.replace('\n', "\r\n"),
            format!("\n \n{REPLY}\n\n"),
            format!("\u{feff}{REPLY}"),
            REPLY.replace('\n', "  \t\n"),
            format!("```text\n{REPLY}```\n"),
            format!("~~~~\n{REPLY}~~~~"),
            format!("Copy code\n{REPLY}"),
            format!("```\nCopy code\n\n{trimmed}\n```\nEdit\n"),
        ] {
            assert!(after(REPLY).is_repeat(&again, None), "{again:?}");
            assert!(after(&again).is_repeat(REPLY, None), "{again:?}");
        }
    }

    #[test]
    fn another_text_is_another() {
        for other in [
            REPLY.replace("log", "Log"),
            REPLY.replace("```\n", ""),
            REPLY.replace("\n\n", "\n"),
            REPLY.replace("echo", " echo"),
            format!("Copy code of it\n{REPLY}"),
            format!("{REPLY}{REPLY}"),
            String::new(),
        ] {
            assert!(!after(REPLY).is_repeat(&other, None), "{other:?}");
        }
    }

    #[test]
    fn what_was_refused_is_sent_again_where_nothing_was_done() {
        let of = |kind, detail| Outcome {
            kind,
            line: 1,
            detail,
            warnings: vec![],
            asked: None,
            at: None,
        };
        let failed = |kind, sort| of(kind, Failure::new(sort, "no").into());
        let stale = || {
            let failure = Failure::execution("no").as_a(crate::protocol::Mistake::StaleLines);
            of(Kind::Edit, failure.into())
        };
        let said = || of(Kind::Message, Detail::Shown { text: "x".into() });
        let ran = |ending| {
            let (command, output) = ("x".into(), crate::protocol::Output::default());
            let duration = std::time::Duration::ZERO;
            of(
                Kind::Run,
                Detail::Ran(crate::protocol::Execution { command, ending, output, duration }),
            )
        };
        let path = || crate::protocol::RelPath::parse("a").unwrap();
        let read = || {
            of(
                Kind::Read,
                Detail::ReadLater { path: path(), part: crate::protocol::Part::default() },
            )
        };
        let deleted = || of(Kind::Delete, Detail::Deleted { path: path() });
        for (results, is_repeat) in [
            (vec![said(), stale()], false),
            (vec![read(), failed(Kind::Create, FailureKind::Rejected)], false),
            (vec![failed(Kind::Reply, FailureKind::CutOff)], false),
            (vec![failed(Kind::Delete, FailureKind::Denied)], false),
            (vec![failed(Kind::List, FailureKind::Execution)], false),
            (vec![ran(Ending::NotStarted("no shell".into()))], false),
            (vec![failed(Kind::Create, FailureKind::System)], true),
            (vec![stale(), ran(Ending::Exited(1))], true),
            (vec![ran(Ending::Lost), stale()], true),
            (vec![deleted(), stale()], true),
            (vec![read()], true),
            (vec![said()], true),
            (vec![], true),
        ] {
            let mut session = after(REPLY);
            session.last_results = results;
            assert_eq!(session.is_repeat(REPLY, None), is_repeat, "{:?}", session.last_results);
            // Of a file that was there before anybody could read what came of it, the same text.
            session.updated_at = "2025-01-15T10:30:00Z".parse().unwrap();
            let told = i128::from(session.updated_at.seconds()) * 1_000_000_000;
            assert!(session.is_repeat(REPLY, Some(told + 5)));
            let later = session.is_repeat(REPLY, Some(told + 1_000_000_000));
            assert_eq!(later, is_repeat);
            assert!(!session.is_repeat("other", Some(told)));
        }
    }

    #[test]
    fn a_text_of_which_each_byte_was_noted_is_known_again() {
        let mut session = after(REPLY);
        session.last_reply = Some(Digest::of(REPLY.as_bytes()));
        assert!(session.is_repeat(REPLY, None) && !session.is_repeat(REPLY.trim_end(), None));
        session.last_reply = None;
        assert!(!session.is_repeat(REPLY, None));
    }
}
