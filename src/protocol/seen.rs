//! What a file was like when somebody last saw it, and what is shown of one: so that an edit by line
//! numbers meets the lines that it means.

use serde::{Deserialize, Serialize};

use super::{Detail, Digest, RelPath, Warning, WarningSort};

/// No more texts that were found loosely are told of one by one.
const LOOSELY: usize = 10;

/// What tells whether a file is still as it was when its contents were shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seen {
    /// Of its first bytes, or of all.
    digest: Digest,
    /// Of how many bytes that is; None for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    /// The size of the whole file.
    size: u64,
}

impl Seen {
    /// A file of these bytes.
    pub fn whole(bytes: &[u8]) -> Self {
        Self::of(bytes, bytes.len() as u64)
    }

    /// A file of that size, of which these first bytes were looked at.
    pub fn of(bytes: &[u8], size: u64) -> Self {
        let first = Some(bytes.len() as u64).filter(|first| *first < size);
        Self { digest: Digest::of(bytes), first, size }
    }

    /// A file that was seen when it was another, so that it is none that can be there.
    pub fn outdated() -> Self {
        Self { digest: Digest::of(b""), first: None, size: u64::MAX }
    }

    /// Whether these bytes, a whole file, are what was looked at. What was not looked at may be
    /// another, as long as the size is the same.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let first = usize::try_from(self.first.unwrap_or(self.size)).ok();
        self.size == bytes.len() as u64
            && first.and_then(|first| bytes.get(..first)).map(Digest::of).as_ref()
                == Some(&self.digest)
    }

    /// The same where only what tells of the whole file is known.
    pub fn fits(&self, whole: &Self) -> bool {
        self == whole || self.first.is_some() && self.size == whole.size
    }

    /// Whether that which was seen whole may be this, of which only a beginning was looked at.
    pub fn may_be(&self, whole: &Self) -> bool {
        self.first.is_some() && whole.first.is_none() && self.size == whole.size
    }
}

/// Lines of a file, with their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Excerpt {
    /// Number (from 1) and text without its line ending, in order; where numbers are missing, lines
    /// are left out.
    pub lines: Vec<(usize, String)>,
    /// How many more places were to be shown.
    #[serde(default)]
    pub more: usize,
}

impl Excerpt {
    /// The most lines of one.
    pub const LINES: usize = 40;
    /// The most characters of a line; one that was cut says so beyond that.
    pub const LENGTH: usize = 200;

    /// Whether it shows nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line of one was cut.
    pub fn is_cut(line: &str) -> bool {
        line.chars().nth(Self::LENGTH).is_some()
    }

    /// A line as an excerpt holds it: cut where it is long.
    pub fn line(text: &str) -> String {
        match text.char_indices().nth(Self::LENGTH) {
            None => text.to_owned(),
            Some((cut, _)) => {
                let more = crate::text::count(text[cut..].chars().count(), "more character");
                format!("{} … ({more})", &text[..cut])
            }
        }
    }
}

/// A file before and after an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// What was edited.
    pub before: Seen,
    /// What it is now.
    pub after: Seen,
    /// The lines around what changed, as they are now.
    #[serde(default, skip_serializing_if = "Excerpt::is_empty")]
    pub excerpt: Excerpt,
    /// Where a text was found that did not stand there to the letter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loosely: Vec<Loosely>,
}

/// A text that was found although it did not stand there to the letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loosely {
    /// On which line it begins, from 1, as the edits before it left the file.
    pub line: usize,
    /// What was left out of account.
    pub likeness: Likeness,
}

/// What is left out of account when a text is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Likeness {
    /// White space at the ends of lines.
    TrailingBlanks,
    /// That, and which of several characters that look alike a punctuation mark is.
    Punctuation,
}

impl Likeness {
    /// In words: that a text was found `only …`.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::TrailingBlanks => "with white space at the ends of lines left out of account",
            Self::Punctuation => {
                "with look-alike punctuation (curly quotes, dashes, fixed spaces) taken for plain"
            }
        }
    }
}

/// A file of which somebody is shown lines as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fresh {
    /// Which, links resolved.
    pub path: RelPath,
    /// What it is like.
    pub seen: Seen,
}

impl Detail {
    /// What is shown of the file that an edit was about.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        let excerpt = match self {
            Self::Failed(failure) => &failure.excerpt,
            other => &other.revision()?.excerpt,
        };
        (!excerpt.is_empty()).then_some(excerpt)
    }

    /// Of which file lines are shown with it, links resolved, and what that is like.
    pub fn shown_of(&self) -> Option<(&RelPath, &Seen)> {
        match self {
            Self::Failed(failure) => {
                failure.fresh.as_deref().map(|fresh| (&fresh.path, &fresh.seen))
            }
            Self::Edited { path, .. } | Self::Replaced { path, .. } => {
                self.revision().map(|revision| (path, &revision.after))
            }
            _ => None,
        }
    }

    /// The file before and after an edit.
    pub fn revision(&self) -> Option<&Revision> {
        match self {
            Self::Edited { revision, .. } | Self::Replaced { revision, .. } => revision.as_deref(),
            _ => None,
        }
    }

    /// What is told where a text was found that did not stand there to the letter.
    pub(super) fn loosely(&self) -> Vec<Warning> {
        let loosely = self.revision().map_or(&[][..], |revision| &revision.loosely);
        let told = loosely.iter().take(LOOSELY).map(|Loosely { line, likeness }| {
            format!("the SEARCH text was found at line {line} only {}", likeness.in_words())
        });
        let more = (loosely.len() > LOOSELY).then(|| {
            let more = crate::text::count(loosely.len() - LOOSELY, "more SEARCH text");
            format!("{more} likewise")
        });
        told.chain(more).map(|told| Warning::new(WarningSort::Loosely, told)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_was_seen_of_it() {
        let whole = Seen::whole(b"abc");
        assert!(whole.is(b"abc") && !whole.is(b"abd") && !whole.is(b"abcd") && !whole.is(b""));
        let first = Seen::of(b"ab", 3);
        assert!(first.is(b"abc") && first.is(b"abd") && !first.is(b"abcd") && !first.is(b"xbc"));
        assert!(whole.fits(&Seen::whole(b"abc")) && !whole.fits(&Seen::whole(b"abd")));
        assert!(first.fits(&Seen::whole(b"abd")) && !first.fits(&Seen::whole(b"ab")));
        assert!(first.may_be(&Seen::whole(b"abd")) && !first.may_be(&Seen::whole(b"ab")));
        assert!(!whole.may_be(&first) && !whole.may_be(&whole) && !first.may_be(&first));
        assert!(Seen::whole(b"").is(b""));
    }

    #[test]
    fn it_is_written_in_few_words() {
        let json = serde_json::to_string(&Seen::whole(b"a")).unwrap();
        let digest = Digest::of(b"a");
        assert_eq!(json, format!(r#"{{"digest":"{}","size":1}}"#, digest.as_str()));
        assert_eq!(serde_json::from_str::<Seen>(&json).unwrap(), Seen::whole(b"a"));
    }

    #[test]
    fn long_lines_are_cut_and_say_so() {
        assert_eq!(Excerpt::line("ab"), "ab");
        let long = Excerpt::line(&"é".repeat(Excerpt::LENGTH + 2));
        assert_eq!(long, format!("{} … (2 more characters)", "é".repeat(Excerpt::LENGTH)));
        assert!(Excerpt::is_cut(&long) && Excerpt::is_cut(&Excerpt::line(&"x".repeat(201))));
        assert!(!Excerpt::is_cut("") && !Excerpt::is_cut(&"é".repeat(Excerpt::LENGTH)));
    }
}
