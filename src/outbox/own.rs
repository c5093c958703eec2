//! Tells a text that is, or holds, an outbox: on a clipboard it is easily taken for a reply, and its
//! examples for commands. PURE.

/// Whether a text is an outbox, a part of one, or holds one, as a chat page does that is copied whole.
///
/// # Examples
/// ```
/// use deaddrop::outbox::holds_outbox;
/// assert!(holds_outbox("=== HEADER ===\nSession: a1b2c3d4\nSequence: 1\n"));
/// assert!(!holds_outbox("[REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"0f0f0f0f\"]\n[DONE]\n"));
/// ```
pub fn holds_outbox(text: &str) -> bool {
    let mut headed = false;
    text.lines().map(str::trim).filter(|line| !line.is_empty()).any(|line| {
        let begins = headed && line.starts_with("Session: ");
        headed = line == "=== HEADER ===";
        begins || is_of_a_part(line) || asks_for_reply(line)
    })
}

/// The lines around a part of one.
fn is_of_a_part(line: &str) -> bool {
    let begins = ["=== PART ", "=== END OF PART "].iter().any(|begin| line.starts_with(begin));
    begins && line.ends_with(" ===") && line.contains("answer")
}

/// The line that gives the key.
fn asks_for_reply(line: &str) -> bool {
    line.starts_with("First line of your reply") && line.contains("[REPLY session=")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::parts;

    #[test]
    fn an_outbox_is_known_in_each_of_its_parts_and_within_a_page() {
        let mut outbox = "=== HEADER ===\nSession: a1b2c3d4\n".to_owned();
        outbox.push_str(&"some line of it\n".repeat(200));
        assert!(holds_outbox(&outbox));
        for part in ["1/3", "2/3", "3/3"] {
            let part = parts::part(&outbox, part.parse().unwrap(), 0).unwrap();
            assert!(holds_outbox(&part.text), "{}", part.text);
        }
        assert!(holds_outbox(&format!("A chat\nYou said:\n  {outbox}\nIt said:\n[DONE]\n")));
        let line = "First line of your reply, in its code block: [REPLY session=\"a1b2c3d4\"]";
        assert!(holds_outbox(line));
    }

    #[test]
    fn a_reply_is_no_outbox_whatever_it_says_about_them() {
        for reply in [
            "",
            "[REPLY session=\"a1b2c3d4\" sequence=\"1\" key=\"0f0f0f0f\"]\n[DONE]\n",
            "[CREATE_FILE path=\"x\"]\n=== HEADER ===\nTitle: x\n=== PART 1 ===\n[/CREATE_FILE]\n",
            "The first line of your reply was odd.\nSession: a\n",
        ] {
            assert!(!holds_outbox(reply), "{reply}");
        }
    }
}
