//! Tags around thoughts: `<think>` and its like, in any case, `[THINK]`, and what chats and templates
//! write in their place.

use super::catalogue::COMMANDS;

/// Their names, and which of them close each other.
const NAMES: [(&str, u8); 8] = [
    ("think", 0),
    ("thinking", 0),
    ("thought", 1),
    ("thoughts", 1),
    ("reasoning", 2),
    ("reflection", 3),
    ("scratchpad", 4),
    ("analysis", 6),
];

/// Others, which are written so and no other way: the beginning, the end, and which they are.
const SIGNS: [(&str, &str, u8); 3] = [
    ("<|begin_of_thought|>", "<|end_of_thought|>", 7),
    ("<|channel|>analysis", "<|channel|>final", 8),
    ("◁think▷", "◁/think▷", 9),
];
/// What follows the end of those by channels.
const MESSAGE: &str = "<|message|>";
/// What those begin with that do not begin with `<`.
pub(super) const TRIANGLE: &str = "◁";

/// The element that a page shows thoughts in, and which it is.
const DETAILS: (&str, u8) = ("details", 10);

/// Which those in square brackets are.
const SQUARES: u8 = 5;

// Marks are linked by a table with an entry for each command; those of thoughts go by these numbers.
const _: () = {
    let mut n = 0;
    while n < NAMES.len() {
        assert!((NAMES[n].1 as usize) < COMMANDS.len());
        n += 1;
    }
    n = 0;
    while n < SIGNS.len() {
        assert!((SIGNS[n].2 as usize) < COMMANDS.len());
        n += 1;
    }
    assert!((DETAILS.1 as usize) < COMMANDS.len() && (SQUARES as usize) < COMMANDS.len());
};

/// Whether the end of such thoughts says nothing without their beginning: others end so, too.
pub(super) fn needs_beginning(family: usize) -> bool {
    family == usize::from(DETAILS.1)
}

/// Which of them have that name, in small letters; `shown` tells of an element that a page shows whether it
/// holds thoughts.
pub(super) fn family(name: &str, shown: bool) -> Option<u8> {
    let names = NAMES.iter().chain(shown.then_some(&DETAILS));
    names.into_iter().find(|(known, _)| *known == name).map(|(_, family)| *family)
}

/// Whether thoughts of that family may be in bold: others are looked at by `musings`.
pub(super) fn may_be_bold(family: u8) -> bool {
    family == SQUARES
}

/// How thoughts end that begin with that tag, however that is written.
pub(super) fn end_of(begin: &str) -> String {
    if let Some((_, end, _)) = SIGNS.iter().find(|(sign, ..)| begin.starts_with(sign)) {
        return (*end).to_owned();
    }
    let inner = begin.strip_prefix("&lt;").unwrap_or(begin);
    let inner = inner.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    let name = inner.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or(inner);
    if begin.starts_with('[') { format!("[/{name}]") } else { format!("</{name}>") }
}

/// Such a tag.
pub(super) struct Tag {
    pub(super) is_end: bool,
    /// Which of them close each other.
    pub(super) family: u8,
    /// How long it is, in bytes.
    pub(super) length: usize,
}

/// What those in square brackets hold; nothing follows them on their line.
pub(super) const SQUARE: &str = "THINK";

/// The tag in square brackets of which `at` is where its name begins, and where it begins itself, be it
/// escaped or in bold.
pub(super) fn square(text: &str, at: usize) -> Option<(usize, Tag)> {
    let before = &text[..at];
    let open = ["[/", "[\\/", "["].into_iter().find(|open| before.ends_with(open))?;
    let begin = before[..at - open.len()].trim_end_matches('\\').len();
    let after = text[at + SQUARE.len()..].trim_start_matches('\\').strip_prefix(']')?;
    let head = text[..begin].trim_end_matches(['*', '_']);
    let is_bold = head.len() < begin && (head.is_empty() || head.ends_with('\n'));
    let rest = if is_bold { after.trim_start_matches(['*', '_']) } else { after };
    let rest = rest.trim_start_matches(|c: char| c != '\n' && c.is_whitespace());
    let is_alone = rest.is_empty() || rest.starts_with('\n');
    let is_end = open.len() > 1;
    let length = text.len() - if is_bold && is_end { rest.len() } else { after.len() } - begin;
    // Thoughts may begin on the line of their tag.
    (is_alone || !is_end).then_some((begin, Tag { is_end, family: SQUARES, length }))
}

/// The tag that a text begins with.
pub(super) fn tag(text: &str) -> Option<Tag> {
    for (begin, end, family) in SIGNS {
        for (sign, is_end) in [(begin, false), (end, true)] {
            let Some(rest) = text.strip_prefix(sign) else { continue };
            let more = if is_end && rest.starts_with(MESSAGE) { MESSAGE.len() } else { 0 };
            return Some(Tag { is_end, family, length: sign.len() + more });
        }
    }
    let inner = text.strip_prefix('<')?;
    if let Some(tag) = details(inner) {
        return Some(tag);
    }
    let word = inner.strip_prefix('/').unwrap_or(inner);
    let (name, family) = NAMES.iter().find(|(name, _)| {
        let is_it = word.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name));
        is_it && word.as_bytes().get(name.len()) == Some(&b'>')
    })?;
    let length = text.len() - word.len() + name.len() + 1;
    Some(Tag { is_end: word.len() < inner.len(), family: *family, length })
}

/// The element that holds thoughts, or the end of any, from behind its `<` on.
fn details(inner: &str) -> Option<Tag> {
    const LONGEST: usize = 200;
    let (name, family) = DETAILS;
    let word = inner.strip_prefix('/').unwrap_or(inner);
    let rest = word.get(..name.len()).filter(|begin| begin.eq_ignore_ascii_case(name));
    let rest = rest.map(|begin| &word[begin.len()..])?;
    let is_end = word.len() < inner.len();
    let end = rest.bytes().take(LONGEST).position(|byte| matches!(byte, b'>' | b'\n'))?;
    let is_whole = rest.as_bytes()[end] == b'>';
    let kind = |quote: char| rest[..end].contains(&format!("type={quote}reasoning{quote}"));
    let is_ours = if is_end { end == 0 } else { kind('"') || kind('\'') };
    let length = 1 + inner.len() - rest.len() + end + 1;
    (is_whole && is_ours).then_some(Tag { is_end, family, length })
}

/// Whether a text ends with the end of thoughts, but for its `>`.
pub(super) fn ends_with_an_end(text: &str) -> bool {
    let signs = SIGNS.iter().map(|(_, end, _)| *end).chain([MESSAGE]);
    let mut signs = signs.filter_map(|end| end.strip_suffix('>'));
    let mut names = NAMES.iter().map(|(name, _)| *name).chain([DETAILS.0]);
    signs.any(|end| text.ends_with(end))
        || names.any(|name| {
            let at = text.len().checked_sub(name.len());
            let end = at.and_then(|at| Some((text.get(..at)?, text.get(at..)?)));
            end.is_some_and(|(before, end)| {
                end.eq_ignore_ascii_case(name) && before.ends_with("</")
            })
        })
}

/// Whether a text ends with the end of those that do not begin with `<`.
pub(super) fn ends_with_a_triangle(text: &str) -> bool {
    SIGNS.iter().any(|(_, end, _)| end.starts_with(TRIANGLE) && text.ends_with(end))
}
