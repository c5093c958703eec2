//! Options in front of the words of a command, as `getopt` takes them apart.

use super::Word;

/// Which options of a program take a value that may stand in the next word.
#[derive(Clone, Copy)]
pub(super) struct Valued {
    /// Single letters.
    pub(super) short: &'static str,
    /// Names behind `--`.
    pub(super) long: &'static [&'static str],
}

/// One option: its letter or its name, and its value if it has one.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Option<Word>,
}

/// The options in front of `words`, and where the rest begins; nothing where the shell puts in a
/// word that could be either.
pub(super) fn split(words: &[Word], valued: Valued) -> Option<(Vec<Given>, usize)> {
    let mut given = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.text();
        if word.is_open() && (text.is_empty() || text.starts_with('-')) {
            return None;
        }
        if text == "--" {
            return Some((given, at + 1));
        }
        if text == "-" || !text.starts_with('-') {
            break;
        }
        at += 1;
        if let Some(long) = text.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, _)) => (name, Some(word.behind(name.len() + 3))),
                None => (long, None),
            };
            let full = valued.long.iter().find(|full| full.starts_with(name));
            let takes = full.is_some() && attached.is_none();
            let value = if takes { words.get(at).cloned() } else { attached };
            at += usize::from(takes);
            given.push(Given { name: full.map_or(name, |full| *full).to_owned(), value });
            continue;
        }
        for (n, letter) in text.char_indices().skip(1) {
            let name = letter.to_string();
            if !valued.short.contains(letter) {
                given.push(Given { name, value: None });
                continue;
            }
            let end = n + letter.len_utf8();
            let attached = (end < text.len()).then(|| word.behind(end));
            let takes = attached.is_none();
            let value = if takes { words.get(at).cloned() } else { attached };
            at += usize::from(takes);
            given.push(Given { name, value });
            break;
        }
    }
    Some((given, at.min(words.len())))
}
