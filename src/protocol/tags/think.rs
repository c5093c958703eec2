//! Tags around thoughts: `<think>` and its like, in any case, and `[THINK]`.

/// Their names, and which of them close each other.
const NAMES: [(&str, u8); 7] = [
    ("think", 0),
    ("thinking", 0),
    ("thought", 1),
    ("thoughts", 1),
    ("reasoning", 2),
    ("reflection", 3),
    ("scratchpad", 4),
];

/// Such a tag.
pub(super) struct Tag {
    pub(super) is_end: bool,
    /// Which of them close each other.
    pub(super) family: u8,
    /// How long it is, in bytes.
    pub(super) length: usize,
}

/// What those in square brackets hold; nothing follows them on their line.
pub(super) const SQUARE: &str = "THINK]";

/// The tag in square brackets of which `at` is where its name begins, and where it begins itself.
pub(super) fn square(text: &str, at: usize) -> Option<(usize, Tag)> {
    let before = &text[..at];
    let open = ["[/", "["].into_iter().find(|open| before.ends_with(open))?;
    let length = open.len() + SQUARE.len();
    let rest = &text[at + SQUARE.len()..];
    let rest = rest.trim_start_matches(|c: char| c != '\n' && c.is_whitespace());
    let is_alone = rest.is_empty() || rest.starts_with('\n');
    let is_end = open.len() > 1;
    // Thoughts may begin on the line of their tag.
    (is_alone || !is_end).then_some((at - open.len(), Tag { is_end, family: 5, length }))
}

/// The tag that a text begins with.
pub(super) fn tag(text: &str) -> Option<Tag> {
    let inner = text.strip_prefix('<')?;
    let word = inner.strip_prefix('/').unwrap_or(inner);
    let (name, family) = NAMES.iter().find(|(name, _)| {
        let is_it = word.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name));
        is_it && word.as_bytes().get(name.len()) == Some(&b'>')
    })?;
    let length = text.len() - word.len() + name.len() + 1;
    Some(Tag { is_end: word.len() < inner.len(), family: *family, length })
}

/// Whether a text ends with the end of thoughts, but for its `>`.
pub(super) fn ends_with_an_end(text: &str) -> bool {
    NAMES.iter().any(|(name, _)| {
        let at = text.len().checked_sub(name.len());
        let end = at.and_then(|at| Some((text.get(..at)?, text.get(at..)?)));
        end.is_some_and(|(before, end)| end.eq_ignore_ascii_case(name) && before.ends_with("</"))
    })
}
