//! Prevents file contents from posing as parts of the outbox, and an outbox from being taken for a reply.
//!
//! If content has a line that looks like a marker, the real markers around the content contain a word that nobody
//! could have predicted when writing the content. The word is derived from the session's secret, the sequence number
//! and the path, so rendering again gives the same word.

use std::sync::LazyLock;

use crate::session::Session;
use crate::text::is_hazard;

/// The beginnings of the outbox's own marker lines, in lower case.
static MARKERS: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("data/markers.txt").split_terminator("|\n").collect());

/// Whether a reader could mistake this line for a marker of the outbox. Case, the kind of white space and invisible
/// characters are ignored.
pub(super) fn could_be_marker(line: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{2800}';
    let seen = line.chars().filter(|c| is_blank(*c) || !is_unseen(*c));
    let seen = seen.map(|c| if is_blank(c) { ' ' } else { c.to_ascii_lowercase() });
    let seen = seen.skip_while(|c| *c == ' ');
    MARKERS.iter().any(|marker| seen.clone().take(marker.len()).eq(marker.chars()))
}

/// Whether a line, or a piece of a line, could be mistaken for the first or last line of an outbox part.
pub(super) fn could_be_part(text: &str) -> bool {
    text.lines().filter(|line| line.contains('=')).any(|line| {
        let shown = line.chars().filter(|c| !(c.is_whitespace() || is_unseen(*c)));
        let line: String = shown.map(|c| c.to_ascii_lowercase()).collect();
        ["=part", "=endofpart"].iter().any(|beginning| line.contains(beginning))
    })
}

/// Whether a character is invisible. This includes characters that are allowed in texts.
fn is_unseen(c: char) -> bool {
    is_hazard(c) || matches!(c, '\u{34f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// The word for the markers around `content`; None if no line looks like a marker.
pub(super) fn boundary(session: &Session, path: &str, content: &str) -> Option<String> {
    if !content.lines().any(could_be_marker) {
        return None;
    }
    let key = format!("{}\n{}\n{}\n{path}", session.secret, session.id, session.sequence);
    Some(word(content, key))
}

/// A word that `content` does not contain, derived from `key`.
pub(super) fn word(content: &str, mut key: String) -> String {
    loop {
        let word = blake3::derive_key("deaddrop outbox boundary", key.as_bytes());
        let word = blake3::Hash::from_bytes(word).to_hex();
        let absent = (6..=word.len()).step_by(2).find(|n| !content.contains(&word[..*n]));
        if let Some(length) = absent {
            return word[..length].to_owned();
        }
        // The content is probably an earlier outbox with this word. Try another one.
        key.push_str("\nanother");
    }
}

/// Whether a text contains an outbox or a part of one, as a copied chat page does. On the clipboard, such a text could
/// be mistaken for a reply, and the examples in it for commands.
pub fn contains_outbox(text: &str) -> bool {
    let mut is_headed = false;
    text.lines().map(str::trim).filter(|line| !line.is_empty()).any(|line| {
        let begins = is_headed && line.starts_with("Session: ");
        is_headed = line == "=== HEADER ===";
        let part = line.strip_suffix(" ===").filter(|line| line.contains("answer"));
        let is_part = part.is_some_and(|line| {
            line.starts_with("=== PART ") || line.starts_with("=== END OF PART ")
        });
        let gives_key =
            line.starts_with("First line of your reply") && line.contains("[REPLY session=");
        begins || is_part || gives_key
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::outbox::parts;

    #[test]
    fn the_list_of_own_lines_is_whole() {
        assert!(MARKERS.iter().all(|marker| marker.len() >= 4 && *marker == marker.to_lowercase()));
        assert!(["--- ", "=== ", "[reply "].iter().all(|marker| MARKERS.contains(marker)));
    }

    #[test]
    fn lines_that_could_be_markers_are_known() {
        for line in [
            "=== PROMPT ===",
            "  --- end src/x ---",
            "\u{200b}=== PROMPT ===",
            "\u{a0}--- a ---",
            "[OK] RUN_COMMAND: fine",
            "[failed] x",
            "## Workspace Files",
            "## Workspace File Contents",
            "--- a/file.rs",
            "=\u{200d}==\u{a0}PROMPT ===",
            "\u{2800}\u{fe0e}=== PROMPT ===",
            "First line of your reply, in its code block: [REPLY x]",
            "[REPLY session=\"a\"]",
            "... lines 2-9 are left out for room: x",
            "[... more results are left out for room: 1 OK, 0 FAILED ...]",
            "The user says:",
            "\u{200b} ## EVENTS",
        ] {
            assert!(could_be_marker(line), "{line:?}");
        }
        for line in [
            "---",
            "====",
            "## Usage",
            "## Even",
            "a === b",
            "let x = 1;",
            "... args",
            "[x] done",
            "",
            "é",
        ] {
            assert!(!could_be_marker(line), "{line:?}");
        }
    }

    #[test]
    fn lines_that_could_be_of_parts_are_known() {
        for line in [
            "=== PART 2 of 5 of one message: this is the last part ===",
            "x === end of part 1 of 2 ===",
            "=\u{200b}==\u{a0}Part",
        ] {
            assert!(could_be_part(&format!("a\n{line}\n")), "{line:?}");
        }
        for line in ["=== PROMPT ===", "part 2", "a = b, part of", "== end =="] {
            assert!(!could_be_part(line), "{line:?}");
        }
    }

    #[test]
    fn a_boundary_is_stable_and_never_in_the_content() {
        let session = Session::new("a1b2c3d4".into(), "x", vec![], Timestamp::now());
        assert_eq!(boundary(&session, "a", "plain\n"), None);
        let word = boundary(&session, "a", "=== PROMPT ===\n").unwrap();
        assert_eq!(boundary(&session, "a", "=== PROMPT ===\n").unwrap(), word);
        assert_ne!(boundary(&session, "b", "=== PROMPT ===\n").unwrap(), word);
        let longer = boundary(&session, "a", &format!("=== PROMPT ===\n{word}\n")).unwrap();
        assert!(longer.len() > word.len() && longer.starts_with(&word));

        let mut content = "=== PROMPT ===\n".to_owned();
        for _ in 0..70 {
            let word = boundary(&session, "a", &content).unwrap();
            assert!(!content.contains(&word), "{word}");
            content.push_str(&format!("{word}\n"));
        }
    }

    #[test]
    fn an_outbox_is_known_in_each_of_its_parts_and_within_a_page() {
        let mut outbox = "=== HEADER ===\nSession: a1b2c3d4\n".to_owned();
        outbox.push_str(&"some line of it\n".repeat(200));
        assert!(contains_outbox(&outbox));
        for part in ["1/3", "2/3", "3/3"] {
            let part = parts::part(&outbox, part.parse().unwrap(), 0).unwrap();
            assert!(contains_outbox(&part.text), "{}", part.text);
        }
        assert!(contains_outbox(&format!("A chat\nYou said:\n  {outbox}\nIt said:\n[DONE]\n")));
        let line = "First line of your reply, in its code block: [REPLY session=\"a1b2c3d4\"]";
        assert!(contains_outbox(line));
    }

    #[test]
    fn a_reply_is_no_outbox_whatever_it_says_about_them() {
        for reply in [
            "",
            "[REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"0f0f0f0f\"]\n[DONE]\n",
            "[CREATE_FILE path=\"x\"]\n=== HEADER ===\nTitle: x\n=== PART 1 ===\n[/CREATE_FILE]\n",
            "The first line of your reply was odd.\nSession: a\n",
        ] {
            assert!(!contains_outbox(reply), "{reply}");
        }
    }
}
