//! Thoughts in elements whose own tags are damaged as those of commands are, or that have a name of their
//! own: `\<think\>`, `**<think>**`, `&lt;think&gt;`, `<antThinking>`, `<seed:think>`. They begin alone on a
//! line, and end at the end of one. Without its end a beginning is words, and an end without its beginning;
//! but by a name that plain ones have either counts as a plain one does.

use std::collections::HashMap;

use memchr::memchr3_iter;

use super::lead::lead;
use super::marks::{Mark, What, ends_thoughts};
use super::repairs::{Repairs, is_zero_width};
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
    /// Which of those that close each other it is, where a plain one is such.
    family: Option<u8>,
}

/// A beginning that nothing has closed.
struct Begun {
    mark: Mark,
    /// Where its tag begins, and which of those that close each other it is, where it counts without its
    /// end.
    alone: Option<(usize, u8)>,
    is_thoughts: bool,
    /// Whether it is read as it is written.
    is_exact: bool,
}

/// All of them up to `limit`, each as a mark whose name ends where they do, and those that lack an end or a
/// beginning, as such.
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
        let is_exact = length == 1 && think::tag(&text[at..]).is_some();
        let before = text[..at].trim_end_matches('\\');
        let is_quoted = before.ends_with(['`', '"', '\'']);
        let lead = lead(text, at).filter(|lead| is_line(text, lead.line));
        let decorated = |but: Repairs| {
            lead.as_ref().is_none_or(|lead| lead.repairs.decorates_beyond(but)) || is_quoted
        };
        let mut bold = Repairs::default();
        bold.add(Repairs::EMPHASIS);
        let family = tag.family;
        if tag.is_end {
            let is_exact = is_exact && !is_quoted && ends_thoughts(after);
            let is_alone = lead.is_some() && is_last;
            if !is_exact && !is_alone && (!is_last || is_quoted) {
                continue;
            }
            let last = open.get_mut(&tag.name).and_then(Vec::pop);
            if let Some(begin) = last.filter(|begin| begin.is_thoughts)
                && !(begin.is_exact && is_exact)
            {
                let mut mark = begin.mark;
                mark.name_end = if is_last { end + line } else { end };
                marks.push(mark);
            }
            // Where it did not begin, or in a body. In bold and behind words it is a word.
            let ends =
                if lead.is_some() { !decorated(bold) } else { !before.ends_with(['*', '_']) };
            if let Some(family) = family.filter(|_| !is_exact && ends) {
                marks.push(Mark::of_thoughts(What::ThinkEnd, at, at, end, family));
            }
            continue;
        }
        let begins =
            is_last || tag.name == DETAILS || family.is_some() && !decorated(Repairs::default());
        if let Some(lead) = lead.as_ref().filter(|_| begins) {
            let what = if family.is_some() { What::Musing } else { What::Aside };
            let mark = Mark::of(what, lead.line, lead.line, end);
            let is_exact = is_exact && lead.repairs.is_none();
            let counts = family.filter(|_| !is_exact && !decorated(bold));
            let alone = counts.map(|family| (at, family));
            let is_thoughts = tag.says || tag.name != DETAILS;
            open.entry(tag.name).or_default().push(Begun { mark, alone, is_thoughts, is_exact });
        }
    }
    for begin in open.into_values().flatten() {
        let Some((at, family)) = begin.alone else { continue };
        let Mark { line, name_end, .. } = begin.mark;
        marks.push(Mark::of_thoughts(What::Think, line, at, name_end, family));
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
    let family = think::family(&name, !is_end && attributes.contains("reasoning"));
    let says = name == DETAILS
        && !is_end
        && (family.is_some() || summary(&text[at + length..]).is_some_and(names_thoughts));
    Some(Tag { name, is_end, length, says, family })
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
            let mut marks = find(&text, text.len());
            marks.retain(|mark| mark.what != What::ThinkEnd);
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
            "x\n</plan>\n",
            "`<think>`\nx\n",
            "**<think>** is\nx\n",
            "all up to **</think>**\n",
            "all up to `\\</think\\>`\n",
        ] {
            assert!(find(text, text.len()).is_empty(), "{text}");
        }
    }

    #[test]
    fn what_lacks_its_end_or_its_beginning_counts_by_a_plain_name() {
        for (tag, what) in [
            ("\\<think\\>", What::Think),
            ("\\<think\\> Well", What::Think),
            ("**<Think>**", What::Think),
            ("< think >", What::Think),
            ("&lt;reasoning&gt;", What::Think),
            ("\\</think\\>", What::ThinkEnd),
            ("No.\\</think\\>", What::ThinkEnd),
            ("**</thinking>**", What::ThinkEnd),
            ("No.&lt;/think&gt;", What::ThinkEnd),
        ] {
            let text = format!("x\n{tag}\ny\n");
            let marks = find(&text, text.len());
            assert_eq!(marks.iter().map(|mark| mark.what).collect::<Vec<_>>(), [what], "{text}");
        }
    }
}
