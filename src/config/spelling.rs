//! Names of files and folders in any spelling that a file system could take for them: upper or lower
//! case, the short names of Windows (`GIT~1`), dots and spaces at the end, streams
//! (`.git::$INDEX_ALLOCATION`), and characters that HFS+ does not see. Pure.

/// A name that is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    /// As the person wrote it.
    pub(crate) given: String,
    folded: String,
    /// The short name that Windows makes of it, but for the number: before it and after it.
    short: (String, String),
}

impl Name {
    /// None where a file system would see no name in it.
    pub(crate) fn new(given: &str) -> Option<Self> {
        let folded = folded(given);
        let short = short(&folded);
        (!folded.is_empty()).then(|| Self { given: given.to_owned(), folded, short })
    }

    /// Whether a file system could take a name for this one; it is given as [`folded`] has it.
    pub(crate) fn is(&self, folded: &str) -> bool {
        self.folded == folded || is_short(folded, &self.short)
    }
}

/// A name as the most forgiving of file systems compares it.
pub(crate) fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    let name: String = name.chars().filter(|c| !is_unseen(*c)).collect();
    // Both ways, since some letters (`ſ`) meet their likes only in upper case.
    name.trim_end_matches(['.', ' ']).to_uppercase().to_lowercase()
}

/// Whether HFS+ does not see the character in a name.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// What a short name of Windows begins and ends with: `gitmod` and nothing, `mcp` and `.jso`.
fn short(folded: &str) -> (String, String) {
    let name = folded.trim_start_matches('.');
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let take = |text: &str, n: usize| -> String {
        text.chars().filter(|c| !matches!(c, '.' | ' ')).take(n).collect()
    };
    let extension =
        if extension.is_empty() { String::new() } else { format!(".{}", take(extension, 3)) };
    (take(stem, 6), extension)
}

fn is_short(folded: &str, (begin, end): &(String, String)) -> bool {
    let number = folded.strip_prefix(&**begin).and_then(|rest| rest.strip_suffix(&**end));
    let number = number.and_then(|rest| rest.strip_prefix('~'));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
