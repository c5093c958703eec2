//! Thoughts in elements whose own tags are damaged as those of commands are, or that have a name of their
//! own: `\<think\>`, `**<think>**`, `&lt;think&gt;`, `<antThinking>`, `<seed:think>`. They count only where
//! both tags stand alone on their lines; without its end a beginning is words.

use std::collections::HashMap;

use memchr::memchr3_iter;

use super::lead::lead;
use super::marks::{Mark, What};
use super::repairs::is_zero_width;
use super::think;

/// What the tags of an element begin and end with.
const OPENS: [&str; 3] = ["<", "&lt;", "‹"];
const ENDS: [&str; 3] = [">", "&gt;", "›"];
/// The longest name, and the longest tag, in bytes.
const NAME: usize = 48;
const LONGEST: usize = 200;
/// What a name of thoughts holds, and what it is as a whole.
const PARTS: [&str; 7] =
    ["think", "thought", "reason", "reflect", "monologue", "scratchpad", "deliberat"];
const WHOLE: [&str; 5] = ["plan", "planning", "internal", "analysis", "cot"];
/// The element that a page hides something in, and what it says over it.
const DETAILS: &str = "details";

/// A tag of an element.
struct Tag {
    /// Its name in small letters, with no other signs.
    name: String,
    is_end: bool,
    /// How long it is, in bytes.
    length: usize,
    /// Whether its attributes, or what it says over it, name thoughts.
    says: bool,
}

/// A beginning that nothing has closed.
struct Begun {
    mark: Mark,
    is_thoughts: bool,
    /// Whether it is read as it is written.
    is_exact: bool,
}

/// All of them up to `limit`, each as a mark whose name ends where they do.
pub(super) fn find(text: &str, limit: usize) -> Vec<Mark> {
    let bytes = &text.as_bytes()[..limit];
    let mut open: HashMap<String, Vec<Begun>> = HashMap::new();
    let mut marks = Vec::new();
    // The first bytes of what such a tag begins with.
    for at in memchr3_iter(b'<', b'&', 0xe2, bytes) {
        let opens = OPENS.iter().find(|open| bytes[at..].starts_with(open.as_bytes()));
        let Some(length) = opens.map(|open| open.len()) else { continue };
        let Some(tag) = tag(text, at, length) else { continue };
        let end = at + tag.length;
        // No more of a line is looked at than says nothing: others may stand behind.
        let after = &text[end..];
        let line = after.find(|c: char| c == '\n' || !decorates(c)).unwrap_or(after.len());
        let is_last = after[line..].is_empty() || after[line..].starts_with('\n');
        // What ends them in a decorated line is not read elsewhere.
        let is_exact = length == 1
            && think::tag(&text[at..]).is_some()
            && (!tag.is_end || is_last && after[..line].trim().is_empty());
        let lead = lead(text, at).filter(|lead| is_line(text, lead.line));
        let is_alone = lead.is_some() && is_last;
        let is_closed = tag.is_end && is_exact;
        if tag.is_end {
            if !is_alone && !is_closed {
                continue;
            }
            let last = open.get_mut(&tag.name).and_then(Vec::pop);
            let Some(begin) = last.filter(|begin| begin.is_thoughts) else { continue };
            if !(begin.is_exact && is_exact) {
                let mut mark = begin.mark;
                mark.name_end = end + line;
                marks.push(mark);
            }
        } else if let Some(lead) = lead.filter(|_| is_alone || tag.name == DETAILS) {
            let mark = Mark::of(What::Musing, lead.line, lead.line, end);
            let is_exact = is_exact && lead.repairs.is_none();
            let is_thoughts = tag.says || tag.name != DETAILS;
            open.entry(tag.name).or_default().push(Begun { mark, is_thoughts, is_exact });
        }
    }
    marks
}

fn is_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// Whether a sign behind a tag on its line says nothing.
fn decorates(c: char) -> bool {
    c.is_whitespace() || is_zero_width(c) || "*_`~\\".contains(c)
}

/// The tag at an offset, of an element that thoughts may stand in.
fn tag(text: &str, at: usize, open: usize) -> Option<Tag> {
    let inner = &text[at + open..];
    let is_blank = |c: char| matches!(c, ' ' | '\t' | '\\' | '|' | '｜') || is_zero_width(c);
    let word = inner.trim_start_matches(is_blank);
    let (is_slash, word) = match word.strip_prefix('/') {
        Some(word) => (true, word.trim_start_matches(is_blank)),
        None => (false, word),
    };
    // Blanks without an end are of no tag.
    if inner.len() - word.len() > NAME {
        return None;
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_-:.\\▁".contains(c);
    let length = word.find(|c| !is_of_name(c)).filter(|length| (2..=NAME).contains(length))?;
    let letters = word[..length].chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let is_signed = |sign: &str| name.strip_prefix(sign).filter(|name| are_thoughts(name));
    let (name, is_end) = match (is_signed("beginof"), is_signed("endof")) {
        (Some(name), _) => (name.to_owned(), false),
        (_, Some(name)) => (name.to_owned(), true),
        _ => (name, is_slash),
    };
    if name != DETAILS && !are_thoughts(&name) {
        return None;
    }
    let rest = word[length..].trim_start_matches(is_blank);
    let end = rest
        .char_indices()
        .take(LONGEST)
        .find(|(at, c)| *c == '\n' || ENDS.iter().any(|end| rest[*at..].starts_with(end)));
    let (end, _) = end?;
    let closing = ENDS.iter().find(|sign| rest[end..].starts_with(**sign))?;
    let attributes = &rest[..end];
    if (is_slash || !attributes.contains('='))
        && !attributes.trim_matches(is_blank).is_empty()
        && name != DETAILS
    {
        return None;
    }
    let length = text.len() - at - rest.len() + end + closing.len();
    let says = name == DETAILS
        && !is_end
        && (attributes.contains("reasoning")
            || summary(&text[at + length..]).is_some_and(names_thoughts));
    Some(Tag { name, is_end, length, says })
}

/// What an element that hides something says over it.
fn summary(rest: &str) -> Option<&str> {
    let inner = rest.trim_start();
    let open = OPENS.iter().find_map(|open| inner.strip_prefix(open));
    let inner = open?.strip_prefix("summary")?;
    let end =
        inner.char_indices().take(LONGEST).find(|(at, _)| inner[*at..].starts_with("/summary"));
    end.map(|(end, _)| &inner[..end])
}

fn names_thoughts(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PARTS.iter().any(|part| text.contains(part))
}

fn are_thoughts(name: &str) -> bool {
    WHOLE.contains(&name) || PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_known_by_their_names_however_their_tags_look() {
        for (begin, end) in [
            ("\\<think\\>", "\\</think\\>"),
            ("&lt;think&gt;", "&lt;/think&gt;"),
            ("**<think>**", "**</think>**"),
            ("< think >", "< / think >"),
            ("> <think>", "> </think>"),
            ("<think>", "**</think>**"),
            ("<reasoning_content>", "</reasoning_content>"),
            ("<seed:think>", "</seed:think>"),
            ("<antThinking>", "</antThinking>"),
            ("<｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"),
            ("‹｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"),
            ("<details>\n<summary>Thinking</summary>", "</details>"),
            ("&lt;details type=\"reasoning\"&gt;", "&lt;/details&gt;"),
            ("<plan>", "</plan>"),
        ] {
            let text = format!("x\n{begin}\ny\n{end}\nz\n");
            let marks = find(&text, text.len());
            assert_eq!(marks.len(), 1, "{text}");
            assert_eq!(&text[marks[0].name_end..], "\nz\n", "{text}");
        }
        for text in [
            "<think>\nx\n</think>\n",
            "- <think>\nx\n",
            "a <plan>\nx\n</plan>\n",
            "<plan> is\nx\n</plan>\n",
            "<explanation>\nx\n</explanation>\n",
            "<details>\n<summary>More</summary>\nx\n</details>\n",
            "<plan>\nx\n",
        ] {
            assert!(find(text, text.len()).is_empty(), "{text}");
        }
    }
}
