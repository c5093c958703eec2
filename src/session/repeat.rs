//! Whether a reply is the one before it once more. Pasted again, the same text may have come by another
//! way: with other line ends, or with more of the chat page around it.

use super::Session;
use crate::protocol::Digest;
use crate::protocol::tags::is_button;

impl Session {
    /// What identifies the text of a reply.
    pub(super) fn identity(reply: &str) -> Digest {
        Digest::of(bare(reply).as_bytes())
    }

    /// Whether this text is that of the reply just before: most likely pasted twice.
    pub fn is_repeat(&self, reply: &str) -> bool {
        // Sessions that are older than this identify a text by each of its bytes.
        self.last_reply.as_ref().is_some_and(|last| {
            *last == Self::identity(reply) || *last == Digest::of(reply.as_bytes())
        })
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
            assert!(after(REPLY).is_repeat(&again), "{again:?}");
            assert!(after(&again).is_repeat(REPLY), "{again:?}");
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
            assert!(!after(REPLY).is_repeat(&other), "{other:?}");
        }
    }

    #[test]
    fn a_text_of_which_each_byte_was_noted_is_known_again() {
        let mut session = after(REPLY);
        session.last_reply = Some(Digest::of(REPLY.as_bytes()));
        assert!(session.is_repeat(REPLY) && !session.is_repeat(REPLY.trim_end()));
        session.last_reply = None;
        assert!(!session.is_repeat(REPLY));
    }
}
