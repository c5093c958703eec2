//! Lines that stand for others wherever they are put: comments that say so, and dots of a comment.

use super::{Between, Filled, filled, holds_withheld};
use crate::protocol::RelPath;
use crate::protocol::tags::is_code;

/// Those of a text that is to stand in the file at `path`, with where they begin; without one, all that
/// could be one in some file.
pub(super) fn lines<'a>(
    text: &'a str,
    path: Option<&RelPath>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let is_code = path.is_none_or(is_code);
    let mut fences = Between::fences(text);
    let stands = move |line: &Filled| {
        // An example in a text leaves out what nobody needs there.
        let is_example = |fences: &mut Between| {
            !is_code && says_nothing(line.shown) && fences.is_there(line.at.0)
        };
        is_elision(line.shown) && !is_example(&mut fences) || holds_withheld(line.shown)
    };
    filled(text).filter(stands).map(|line| line.at)
}

/// Whether a line is only dots, of a comment too.
fn says_nothing(line: &str) -> bool {
    line.chars().all(|c| "/#*;-<>!{} .…".contains(c))
}

fn is_elision(line: &str) -> bool {
    const LONGEST: usize = 160;
    const MARKERS: [&str; 9] = ["//", "#", "--", "/*", "<!--", "{/*", ";", "%", "*"];
    const WORDS: [&str; 19] = [
        "rest",
        "remain",
        "remains",
        "remaining",
        "remainder",
        "unchanged",
        "existing",
        "same as",
        "omitted",
        "previous",
        "other",
        "others",
        "keep",
        "as before",
        "no change",
        "no changes",
        "above",
        "below",
        "same code",
    ];
    // What a program tells while it works ends in dots, too.
    const CLEAR: [&str; 3] = ["rest of", "unchanged", "same as"];
    let line = line.trim();
    let begins = line.starts_with(['/', '#', '-', '<', '{', ';', '%', '*', '.', '…', '(', '[']);
    if !begins || line.len() > LONGEST {
        return false;
    }
    let marker = MARKERS.iter().find(|marker| line.starts_with(**marker));
    let mut inner = line;
    if let Some(marker) = marker {
        inner = inner[marker.len()..].trim_start_matches(marker.chars().next_back().unwrap_or(' '));
        inner =
            ["*/}", "*/", "-->"].iter().find_map(|end| inner.strip_suffix(end)).unwrap_or(inner);
    }
    let inner = inner.trim().trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
    let dots = |text: &str| text.starts_with("...") || text.starts_with('…');
    let closing = |text: &str| text.ends_with("...") || text.ends_with('…');
    let stands_for_more = dots(inner) || marker.is_some() && closing(inner);
    if !stands_for_more && marker.is_none() {
        return false;
    }
    let words = inner.trim_matches(['.', '…', ' ', '(', ')', '[', ']']).to_ascii_lowercase();
    if !stands_for_more {
        // Of a list such words are an item.
        return marker.is_some_and(|marker| !matches!(*marker, "*" | ";" | "%"))
            && is_said_of_more(&words);
    }
    // What is spread in JavaScript follows its dots at once.
    if marker.is_none() && inner.trim_start_matches(['.', '…']).starts_with(char::is_alphanumeric)
    {
        return false;
    }
    if words.is_empty() {
        // More dots are a rule, and what describes code shows examples.
        const MOST: usize = 9;
        let is_doc = line.starts_with("///") || line.starts_with("//!");
        let is_comment = marker.is_some_and(|marker| !matches!(*marker, "*" | ";" | "%"));
        return is_comment && !is_doc && inner.len() <= MOST;
    }
    // A sentence goes on behind dots, too.
    let goes_on = inner.trim_start_matches(['.', '…']).starts_with(char::is_alphanumeric);
    let sought: &[&str] = if dots(inner) && (!goes_on || closing(inner)) { &WORDS } else { &CLEAR };
    words.is_ascii() && sought.iter().any(|word| holds(&words, word))
}

/// Whether a comment without dots says of more than its file holds that it stays.
fn is_said_of_more(words: &str) -> bool {
    const WHOLE: [&str; 5] =
        ["rest of file", "rest of the file", "rest of code", "rest of the code", "existing code"];
    const BEGINS: [&str; 8] = [
        "rest of ",
        "the rest of ",
        "remaining ",
        "existing code ",
        "other ",
        "all other ",
        "rest ",
        "everything else ",
    ];
    const ENDS: [&str; 6] =
        [" unchanged", " the same", " as before", " unmodified", " as is", " same as before"];
    let words = words.strip_suffix(" here").unwrap_or(words);
    WHOLE.contains(&words)
        || BEGINS.iter().any(|begin| words.starts_with(begin))
            && ENDS.iter().any(|end| words.ends_with(end))
}

/// Whether a text holds others as whole words.
fn holds(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(is_letter) && !text[at + words.len()..].starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stand_for_others_are_told_from_code() {
        for line in [
            "// ... rest unchanged ...",
            "    # ... existing code ...",
            "/* ... the rest of the styles ... */",
            "<!-- ... other rows ... -->",
            "{/* ... remaining items ... */}",
            "-- … unchanged …",
            "// ...",
            "# rest of the file is the same as before...",
            "... (rest of the file unchanged) ...",
            "// Same as above...",
            "// ... Remaining methods",
            "// ...existing code...",
            "// ...rest of the code",
            "[... rest of the code ...]",
            "# (rest of the code remains the same)",
            "// existing code remains unchanged",
            "<!-- rest of file -->",
            "# [existing code here]",
            "/* other rules unchanged */",
        ] {
            assert!(is_elision(line), "{line}");
        }
        for line in [
            "...",
            "    ...",
            "f(...rest)",
            "let { a, ...rest } = x;",
            "...rest,",
            "print(\"...\")",
            "# Loading...",
            "# Restarting server...",
            "// Creating another connection...",
            "# Restoring backup...",
            "// Checking other hosts...",
            "# ... restart",
            "# ...keep going until all others are done",
            "# Removing the existing file...",
            "// see above",
            "# Other fields are kept in the same order",
            "* Other commands are unchanged",
            "# keeps the existing code",
            "rest of the code",
            "// The rest of the arguments",
            "match x { 0.. => () }",
            "* ...",
            "///     ...",
            "# ....................",
        ] {
            assert!(!is_elision(line), "{line}");
        }
    }
}
