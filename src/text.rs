//! Small pure helpers for text that a person or model reads: they make control characters visible, shorten long names,
//! and find the nearest word.

use std::borrow::Cow;

/// How many characters of a command's first line a result quotes.
const NAMED_LENGTH: usize = 120;

/// Replaces every character that could control a terminal or be invisible: C0 controls by control pictures (`␛`), and
/// others by their code (`<U+202E>`). Line feeds and tabs stay, and CRLF becomes a line feed.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::text::visible("a\x1b[31m\r\nb"), "a␛[31m\nb");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    shown(text, is_hazard)
}

/// Like [`visible`], for names and paths in one line: also replaces line feeds and tabs.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    shown(text, |c| c < ' ' || is_hazard(c))
}

fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text needs no change, and checking bytes is faster.
    let is_plain = |byte: u8| byte.is_ascii() && !is_hidden(char::from(byte));
    if text.bytes().all(is_plain) || !text.chars().any(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if !is_hidden(c) => shown.push(c),
            '\r' if rest.peek() == Some(&'\n') && !is_hidden('\n') => {}
            '\0'..='\x1f' => {
                shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'));
            }
            '\x7f' => shown.push('␡'),
            _ => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

/// Writes every character in JSON that [`visible`] would replace as `\uXXXX`. The value stays the same, and the text is
/// harmless on a terminal.
pub(crate) fn ascii_controls(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hazard(c) {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character controls a terminal, reorders text, or is invisible (Unicode's `Default_Ignorable_Code_Point`, and
/// controls of lines and hieroglyphs). The joiners in emoji and several scripts (U+200C, U+200D) and the emoji variation
/// selectors (U+FE0E, U+FE0F) do not count.
pub fn is_hazard(c: char) -> bool {
    c.is_ascii_control() && !matches!(c, '\t' | '\n')
        || !c.is_ascii()
            && matches!(c,
            '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'
            | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Shortens a command to its first line, and counts the rest.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::text::named("make\nmake test"), "'make' and 1 more line");
/// ```
pub fn named(command: &str) -> String {
    let command = command.trim();
    let (first, rest) = command.split_once('\n').unwrap_or((command, ""));
    let first = visible_line(first.trim_end());
    let mut name = match first.char_indices().nth(NAMED_LENGTH) {
        None => format!("'{first}'"),
        Some((cut, _)) => {
            let more = first.chars().count() - NAMED_LENGTH;
            format!("'{}…' ({})", &first[..cut], count(more, "more character"))
        }
    };
    if !rest.is_empty() {
        let more = rest.split('\n').count();
        name.push_str(&format!(" and {}", count(more, "more line")));
    }
    name
}

/// Capitalizes the first letter: `Linux`.
pub fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Quotes a text as one word for a POSIX shell.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::text::shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A number with its noun: `1 line`, `2 lines`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Lists the first `most` names, and counts the rest of `all`.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::text::first_of(["a", "b", "c"], 2, 5), "a, b and 3 more");
/// assert_eq!(deaddrop::text::first_of(["a", "b"], 2, 2), "a, b");
/// ```
pub fn first_of<T: AsRef<str>>(
    names: impl IntoIterator<Item = T>,
    most: usize,
    all: usize,
) -> String {
    let shown: Vec<T> = names.into_iter().take(most).collect();
    let text = shown.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    let more = all.saturating_sub(shown.len());
    if more == 0 { text } else { format!("{text} and {more} more") }
}

/// Groups the digits of a number in threes: `4,812,000`.
///
/// # Examples
/// ```
/// assert_eq!(deaddrop::text::grouped(4_812_000), "4,812,000");
/// ```
pub fn grouped(n: u64) -> String {
    if n < 1_000 { n.to_string() } else { format!("{},{:03}", grouped(n / 1_000), n % 1_000) }
}

/// The candidate that is most similar to `word`, if one is similar enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(&word.to_lowercase(), &c.to_lowercase()), c))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// Indents every line by two spaces, except empty lines.
pub fn indented(text: &str) -> String {
    let indented = |line: &str| if line.is_empty() { line.to_owned() } else { format!("  {line}") };
    text.lines().map(|line| indented(line) + "\n").collect()
}

/// An exact number of bytes: `1 byte`, `48120 bytes`.
pub fn byte_count(n: u64) -> String {
    format!("{n} byte{}", if n == 1 { "" } else { "s" })
}

/// A rounded size: `312 bytes`, `5.6 MB`, `56 MB`.
pub fn size(bytes: u64) -> String {
    if bytes < 10_000 {
        return format!("{} byte{}", grouped(bytes), if bytes == 1 { "" } else { "s" });
    }
    let (unit, name) = match bytes {
        ..1_000_000 => (1_000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    match bytes / unit {
        whole @ 0..10 => format!("{whole}.{} {name}", bytes % unit / (unit / 10)),
        whole => format!("{} {name}", grouped(whole)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_shown_and_plain_text_is_borrowed() {
        assert!(matches!(visible("plain\ttext\n"), Cow::Borrowed(_)));
        assert!(matches!(visible("naïve — ok"), Cow::Borrowed(_)));
        assert_eq!(visible("a\rb"), "a␍b");
        assert_eq!(visible("a\r\nb"), "a\nb");
        assert_eq!(visible("\u{202e}x\u{e0041}"), "<U+202E>x<U+E0041>");
        assert_eq!(visible("\x1b]52;c;aGk=\x07"), "␛]52;c;aGk=␇");
        assert_eq!(visible_line("a\nb\tc"), "a␊b␉c");
    }

    #[test]
    fn long_commands_are_named_briefly() {
        assert_eq!(named("ls\n"), "'ls'");
        assert_eq!(named("cat > x <<E\na\nE\n"), "'cat > x <<E' and 2 more lines");
        assert_eq!(named(&"x".repeat(121)), format!("'{}…' (1 more character)", "x".repeat(120)));
        assert_eq!(named(&"x".repeat(125)), format!("'{}…' (5 more characters)", "x".repeat(120)));
    }

    #[test]
    fn any_text_is_one_word_for_a_shell() {
        assert_eq!(shell_word("print('a')"), r"'print('\''a'\'')'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a\n$b`c`\\"), "'a\n$b`c`\\'");
    }

    #[test]
    fn the_nearest_word_is_found_or_none() {
        let keys = ["workspace_dir", "inbox_dir", "max_output_length"];
        assert_eq!(nearest("worspace_dir", keys), Some("workspace_dir"));
        assert_eq!(nearest("zzz", keys), None);
    }
}
