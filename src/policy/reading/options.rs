//! Options in front of the words of a command, as `getopt` takes them apart.

use super::Word;

/// One option: its letter or its name, and its value if it has one.
pub(super) struct Given {
    pub(super) name: String,
    pub(super) value: Option<Word>,
}

/// The options in front of `words`, and where the rest begins; nothing where the shell puts in a word that could be
/// either. Those of the letters `short` and of the names `long` take a value that may be the next word.
pub(super) fn split(words: &[Word], short: &str, long: &[String]) -> Option<(Vec<Given>, usize)> {
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
        if let Some(option) = text.strip_prefix("--") {
            let (name, attached) = match option.split_once('=') {
                Some((name, _)) => (name, Some(word.behind(name.len() + 3))),
                None => (option, None),
            };
            let full = long.iter().map(String::as_str).find(|full| full.starts_with(name));
            let takes = full.is_some() && attached.is_none();
            let value = if takes { words.get(at).cloned() } else { attached };
            at += usize::from(takes);
            given.push(Given { name: full.unwrap_or(name).to_owned(), value });
            continue;
        }
        for (n, letter) in text.char_indices().skip(1) {
            let name = letter.to_string();
            if !short.contains(letter) {
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
