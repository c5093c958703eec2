//! Lines that stand for others, in whatever language, where a text becomes shorter: what begins with
//! dots, and what says of more than there is that it stays. In a text that grows such a line is taken
//! as it is; in one that lost lines it is what they were left out for.

use super::shorter::tells_of_more;
use super::{Between, Filled, filled, said};
use crate::protocol::RelPath;
use crate::protocol::tags::is_code;

/// How much shorter a text becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// Not at all, but it does not grow either.
    None,
    /// It loses lines, or as much within them.
    Some,
    /// It has at most half of its lines then.
    Half,
}

impl Loss {
    /// That of a text that takes the place of another; None where it grows. Blank lines do not count.
    pub(super) fn of(new: &str, replaced: &[u8]) -> Option<Self> {
        let filled = |line: &&[u8]| !line.trim_ascii().is_empty();
        let count = |text: &[u8]| text.split(|b| *b == b'\n').filter(filled).count();
        let (brought, gone) = (count(new.as_bytes()), count(replaced));
        match brought {
            _ if gone >= brought * 2 => Some(Self::Half),
            _ if gone > brought || gone == brought && new.len() < replaced.len() => {
                Some(Self::Some)
            }
            _ if gone == brought => Some(Self::None),
            _ => None,
        }
    }
}

/// Such lines of a text, with where they begin. Without a path and a loss, all that could be one in
/// some file.
pub(super) fn lines<'a>(
    new: &'a str,
    path: Option<&RelPath>,
    loss: Loss,
) -> impl Iterator<Item = (usize, &'a str)> {
    let (as_code, as_text) = (path.is_none_or(is_code), path.is_none_or(|path| !is_code(path)));
    // What a program printed may have been cut there.
    let is_output = path.is_some_and(|path| {
        let name = path.name().to_ascii_lowercase();
        [".log", ".out", ".snap"].iter().any(|end| name.ends_with(end))
    });
    let mut fences = Between::fences(new);
    let stands = move |line: &Filled| {
        as_code && stands_for_others(line, true, loss)
            || as_text
                && stands_for_others(line, false, loss)
                && !is_output
                && !fences.is_there(line.at.0)
    };
    filled(new).filter(stands).map(|line| line.at)
}

fn stands_for_others(line: &Filled, is_code: bool, loss: Loss) -> bool {
    const LONGEST: usize = 160;
    let (line, before) = (line.shown, line.before);
    if line.len() > LONGEST {
        return false;
    }
    if loss == Loss::None {
        // In a text, what is quoted is cut so.
        return is_code && matches!(line, "[...]" | "[…]");
    }
    if matches!(line, "[...]" | "[…]") {
        return true;
    }
    if matches!(line, "..." | "…" | "⋮" | "⋯") {
        // Of code they are looked at by what stands before them.
        return !is_code && loss == Loss::Half;
    }
    let Some((marker, inner)) = said(line, is_code) else {
        let is_bare =
            is_bare(line) || !is_code && dots_before(line) > 0 && says_that_more_stays(line);
        return is_bare && loss == Loss::Half;
    };
    let inner = plain(inner);
    let begins = dots_before(inner);
    if begins > 0 {
        let rest = &inner[begins..];
        if dots_behind(rest) {
            return true;
        }
        if marker.is_none() && is_code {
            // What is spread, or left open in a list.
            return rest.starts_with(' ') && !rest.trim_start().starts_with([',', ')', ']']);
        }
        // A sentence goes on behind dots, from the line before or at once behind them.
        let goes_on = marker.is_some_and(|marker| before.starts_with(marker))
            || goes_on(rest)
            || rest.starts_with(char::is_alphanumeric) && !says_that_more_stays(rest);
        return !goes_on || rest.trim().is_empty();
    }
    let begin = inner.get(..12).unwrap_or(inner).to_ascii_lowercase();
    // Standing by itself it is said of the text itself.
    let is_alone = marker.is_none();
    let is_rest = is_alone && (begin.starts_with("rest of ") || begin == "the rest of ");
    let stays = || says_that_more_stays(inner) || is_alone && tells_of_more(&as_of_a_file(inner));
    (loss == Loss::Half || is_rest) && stays()
}

/// Whether words go on with a sentence of which the beginning stands before.
fn goes_on(words: &str) -> bool {
    const JOINING: [&str; 17] = [
        "and",
        "but",
        "or",
        "then",
        "so",
        "except",
        "which",
        "otherwise",
        "unless",
        "because",
        "if",
        "when",
        "where",
        "in",
        "to",
        "with",
        "that",
    ];
    let words = words.trim();
    let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    JOINING.contains(&first) && !says_that_more_stays(words) && !words.starts_with("and so on")
}

/// Words about a text as if they were about a file.
fn as_of_a_file(words: &str) -> String {
    const TEXT: [&str; 12] = [
        "readme",
        "document",
        "documentation",
        "section",
        "sections",
        "text",
        "page",
        "chapter",
        "chapters",
        "paragraphs",
        "article",
        "changelog",
    ];
    let word = |word: &str| {
        let bare = word.trim_end_matches(['.', '!']).to_lowercase();
        let name = bare.split('.').next().unwrap_or_default();
        if TEXT.contains(&name) { "file".to_owned() } else { bare }
    };
    words.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn plain(text: &str) -> &str {
    let text = text.trim();
    text.trim_start_matches(['(', '[']).trim_end_matches([')', ']']).trim()
}

/// How long the dots before a text are; of full stops it takes three.
fn dots_before(text: &str) -> usize {
    let rest = text.trim_start_matches(['…', '⋮', '⋯', '.']);
    let dots = &text[..text.len() - rest.len()];
    if dots.starts_with(['…', '⋮', '⋯']) || dots.starts_with("...") { dots.len() } else { 0 }
}

fn dots_behind(text: &str) -> bool {
    text.ends_with("...") || text.ends_with(['…', '⋮', '⋯'])
}

/// A line of no comment that is words between dots.
fn is_bare(line: &str) -> bool {
    let begins = dots_before(line);
    let rest = &line[begins..];
    begins > 0 && rest.starts_with([' ', '(', '[']) && dots_behind(rest)
}

/// Whether these words, in one of some languages, say that what is not there stays.
fn says_that_more_stays(words: &str) -> bool {
    const ENDS: [&str; 33] = [
        "as in original",
        "as in the original",
        "as before",
        "as previously",
        "stay the same",
        "stays the same",
        "remain the same",
        "remains the same",
        "identical to before",
        "identical to the original",
        "same as before",
        "same as original",
        "same as in the original",
        ": same",
        "unchanged",
        "not changed",
        "stay as they are",
        "stays as it is",
        "and so on",
        "unverändert",
        "bleibt gleich",
        "wie bisher",
        "wie zuvor",
        "inchangé",
        "inchangée",
        "inchangés",
        "sin cambios",
        "sem alterações",
        "invariato",
        "ongewijzigd",
        "без изменений",
        "no changes",
        "no further changes",
    ];
    const BEGINS: [&str; 8] = [
        "no changes below",
        "no changes above",
        "no changes after",
        "no changes beyond",
        "nothing changes below",
        "unchanged below",
        "unchanged from here",
        "unchanged after",
    ];
    const HOLDS: [&str; 4] = ["保持不变", "代码不变", "変更なし", "변경 없음"];
    let words = words.to_lowercase();
    let words = words.trim_end_matches(['.', '…', '!', ' ']);
    let ends = |end: &&str| {
        words.strip_suffix(end).is_some_and(|of| of.trim().is_empty() || is_of_the_rest(of))
    };
    ENDS.iter().any(ends)
        || BEGINS.iter().any(|begin| words.starts_with(begin))
        || HOLDS.iter().any(|held| words.contains(held))
}

/// Whether something is said of what a text leaves out, and not of what its code does: of the rest, or of
/// things that are counted off.
fn is_of_the_rest(words: &str) -> bool {
    const REST: [&str; 14] = [
        "rest",
        "remaining",
        "remainder",
        "restliche",
        "restlichen",
        "übrige",
        "übrigen",
        "reste",
        "resto",
        "restante",
        "overige",
        "остальной",
        "остальные",
        "остальное",
    ];
    const FIRST: [&str; 20] = [
        "other",
        "others",
        "everything",
        "all",
        "existing",
        "code",
        "file",
        "and",
        "same",
        "alles",
        "andere",
        "autres",
        "tout",
        "demás",
        "otros",
        "todo",
        "outros",
        "altri",
        "tutto",
        "код",
    ];
    let mut each = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = each.clone().next().unwrap_or_default();
    let is_range = [" - ", "–", "..", "…", " to "].iter().any(|sign| words.contains(sign));
    FIRST.contains(&first)
        || each.any(|word| REST.contains(&word))
        || is_range && words.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(new: &str, path: &str, loss: Loss) -> bool {
        lines(new, Some(&RelPath::parse(path).unwrap()), loss).next().is_some()
    }

    #[test]
    fn dots_and_words_count_in_any_language() {
        for line in [
            "// ... Rest bleibt unverändert ...",
            "// ... 其余代码保持不变 ...",
            "# ... le reste du code reste inchangé",
            "# ... resto del código sin cambios ...",
            "// ... остальной код без изменений ...",
            "// Rest des Codes unverändert",
            "// Rest as in original",
            "// No changes below this line",
            "// f1 to f39 as before",
            "// (f1 - f39 stay the same)",
            "// The remaining functions are identical to before",
            "// f1..f39: same",
            "// … and so on for f1..f39",
            "// … (37 more functions)",
            "// ⋮",
            "... sonst wie gehabt ...",
            "(rest unchanged)",
        ] {
            assert!(found(&format!("f();\n{line}\n"), "a.rs", Loss::Half), "{line}");
            assert!(!found(&format!("f();\n{line}\n"), "a.rs", Loss::None), "{line}");
        }
        for (before, line) in [
            ("f()", "...rest,"),
            ("f()", "// .. and 3"),
            ("// it waits", "// ... and then goes on"),
            ("f()", "# the counter is the same"),
            ("f()", "print('// ... x ...')"),
            ("f()", "x = [...]"),
            ("f()", "# An empty key leaves the map unchanged."),
            ("f()", "/// Returns the input unchanged."),
            ("f()", "// On an error: same"),
            ("f()", "// The number of lines stays the same"),
            ("v = cache.get(k)", "# ...then the network."),
            ("f()", "# ... and nothing should happen"),
            ("f()", "[...xs, item]"),
            ("f()", "[..., None]"),
            ("f()", "(...args)"),
        ] {
            assert!(!found(&format!("{before}\n{line}\n"), "a.rs", Loss::Half), "{line}");
        }
    }

    #[test]
    fn texts_have_other_signs() {
        for (line, loss, is_one) in [
            ("*(rest of the file unchanged)*", Loss::Half, true),
            ("*… rest of the README unchanged …*", Loss::Some, true),
            ("*Rest of the file remains the same.*", Loss::Some, true),
            ("`(rest of the README unchanged)`", Loss::Some, true),
            ("> (rest of the README.md unchanged.)", Loss::Some, true),
            ("- (other sections unchanged)", Loss::Half, true),
            ("<rest of the README unchanged>", Loss::Half, true),
            ("---- rest unchanged ----", Loss::Half, true),
            ("(keep the rest of the document)", Loss::Half, true),
            ("(content omitted for brevity)", Loss::Half, true),
            ("(rest of the README omitted)", Loss::Some, true),
            ("...rest of the README unchanged...", Loss::Half, true),
            ("...rest of the README unchanged...", Loss::Some, false),
            ("**Rest of the arguments**", Loss::Half, false),
            ("*Other commands*", Loss::Half, false),
            ("- rest unchanged", Loss::Half, false),
            ("[Usage](#usage)", Loss::Half, false),
            ("---", Loss::Half, false),
            ("**", Loss::Half, false),
            ("(rest of the README unchanged)", Loss::Some, true),
            ("(this is unchanged)", Loss::Some, false),
            ("[...]", Loss::Some, true),
            ("[...]", Loss::None, false),
            ("rest of the README unchanged", Loss::Half, false),
            ("...", Loss::Half, true),
            ("...", Loss::Some, false),
            ("# ... a heading", Loss::Half, false),
            ("The rest is unchanged", Loss::Half, false),
        ] {
            assert_eq!(found(&format!("# A\n{line}\n"), "a.md", loss), is_one, "{line}");
        }
        // What a program printed is shown with gaps.
        assert!(!found("# A\n```\n$ run\n...\n```\n", "a.md", Loss::Half));
        assert!(found("# A\n```\n$ run\n```\n...\n", "a.md", Loss::Half));
        assert!(!found("run\n...\n", "a.log", Loss::Half));
    }

    #[test]
    fn the_loss_is_counted_in_filled_lines() {
        for (new, old, loss) in [
            ("a\n\n\n", "a\nb\n", Some(Loss::Half)),
            ("a\nb\n", "a\nb\nc\n", Some(Loss::Some)),
            ("a\n", "b\n", Some(Loss::None)),
            ("a\n", "b and more\n", Some(Loss::Some)),
            ("a\n\n\n", "b\n", Some(Loss::None)),
            ("a\nb\n", "a\n", None),
        ] {
            assert_eq!(Loss::of(new, old.as_bytes()), loss, "{new:?}");
        }
    }
}
