//! Versions of files, and excerpts of them. An edit by line numbers must apply to the version that the model saw.
#![expect(missing_docs, reason = "the names say what most fields are")]

use serde::{Deserialize, Serialize};

use super::{Detail, Digest, RelPath, Warning, WarningKind};

/// Identifies a version of a file that was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileVersion {
    digest: Digest,
    /// How many bytes at the beginning of the file the digest covers; None for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<u64>,
    /// The size of the whole file.
    size: u64,
}

impl FileVersion {
    /// The version with these bytes.
    pub fn whole(bytes: &[u8]) -> Self {
        Self::of(bytes, bytes.len() as u64)
    }

    /// The version with this size and these first bytes.
    pub fn of(bytes: &[u8], size: u64) -> Self {
        let first = Some(bytes.len() as u64).filter(|first| *first < size);
        Self { digest: Digest::of(bytes), first, size }
    }

    /// A version that no file has. It is used for a file that has changed since it was seen.
    pub fn outdated() -> Self {
        Self { digest: Digest::of(b""), first: None, size: u64::MAX }
    }

    /// Whether a file with these bytes is this version. Of a part that was not seen, only the size is compared.
    pub fn is(&self, bytes: &[u8]) -> bool {
        let first = usize::try_from(self.first.unwrap_or(self.size)).ok();
        self.size == bytes.len() as u64
            && first.and_then(|first| bytes.get(..first)).map(Digest::of).as_ref()
                == Some(&self.digest)
    }

    /// Whether the complete version `whole` can be this version.
    pub fn fits(&self, whole: &Self) -> bool {
        self == whole || self.first.is_some() && self.size == whole.size
    }

    /// Whether this version, of which only the beginning was seen, may be the same as `whole`.
    pub fn may_be(&self, whole: &Self) -> bool {
        self.first.is_some() && whole.first.is_none() && self.size == whole.size
    }
}

/// Lines of a file, with their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Excerpt {
    /// The number (from 1) and the text of each line, in order, without line endings. Lines in between may be missing.
    pub lines: Vec<(usize, String)>,
    /// How many more places are not shown.
    #[serde(default)]
    pub more: usize,
}

impl Excerpt {
    /// The most lines of an excerpt.
    pub const LINES: usize = 40;
    /// The most characters of a line, not counting the note that it was shortened.
    pub const LENGTH: usize = 200;

    /// Whether the excerpt has no lines.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether a line of an excerpt was shortened.
    pub fn is_cut(line: &str) -> bool {
        line.chars().nth(Self::LENGTH).is_some()
    }

    /// Shortens a line for an excerpt.
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
    pub before: FileVersion,
    pub after: FileVersion,
    /// The lines around the changes, with their current text.
    #[serde(default, skip_serializing_if = "Excerpt::is_empty")]
    pub excerpt: Excerpt,
    /// Texts that were found only by a fuzzy match.
    #[serde(default, rename = "loosely", skip_serializing_if = "Vec::is_empty")]
    pub fuzzy_matches: Vec<FuzzyMatch>,
}

/// A text that was found although it differs from the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyMatch {
    /// The line (from 1) on which the text begins, after the edits before this one.
    pub line: usize,
    /// The differences that were ignored.
    pub likeness: Likeness,
}

/// The differences that a search for a text ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Likeness {
    /// Differences in white space at the ends of lines.
    TrailingBlanks,
    /// The same differences, and differences between punctuation marks that look alike.
    Punctuation,
}

impl Likeness {
    /// A phrase that follows "only".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::TrailingBlanks => "by ignoring white space at the ends of lines",
            Self::Punctuation => {
                "by treating similar punctuation (curly quotes, dashes, fixed spaces) as equal"
            }
        }
    }
}

/// A file whose current lines are shown, with its resolved path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PresentFile {
    pub path: RelPath,
    pub seen: FileVersion,
}

impl Detail {
    /// The excerpt that shows an edited file.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        let excerpt = match self {
            Self::Failed(failure) => &failure.excerpt,
            other => &other.revision()?.excerpt,
        };
        (!excerpt.is_empty()).then_some(excerpt)
    }

    /// The file whose lines are shown, and its version.
    pub fn shown_of(&self) -> Option<(&RelPath, &FileVersion)> {
        match self {
            Self::Failed(failure) => {
                failure.present_file.as_deref().map(|file| (&file.path, &file.seen))
            }
            Self::Edited { path, revision, .. } | Self::Replaced { path, revision, .. } => {
                revision.as_ref().map(|revision| (path, &revision.after))
            }
            _ => None,
        }
    }

    /// The versions before and after an edit.
    pub fn revision(&self) -> Option<&Revision> {
        match self {
            Self::Edited { revision, .. } | Self::Replaced { revision, .. } => revision.as_deref(),
            _ => None,
        }
    }

    /// Warnings about texts that were found only by a fuzzy match.
    pub(super) fn fuzzy_match_warnings(&self) -> Vec<Warning> {
        const LIMIT: usize = 10;
        let matches = self.revision().map_or(&[][..], |revision| &revision.fuzzy_matches);
        let warnings = matches.iter().take(LIMIT).map(|FuzzyMatch { line, likeness }| {
            format!("the SEARCH text was found at line {line} only {}", likeness.in_words())
        });
        let more = (matches.len() > LIMIT).then(|| {
            let more = crate::text::count(matches.len() - LIMIT, "more SEARCH text");
            format!("{more} likewise")
        });
        warnings.chain(more).map(|text| Warning::new(WarningKind::Loosely, text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_was_seen_of_it() {
        let whole = FileVersion::whole(b"abc");
        assert!(whole.is(b"abc") && !whole.is(b"abd") && !whole.is(b"abcd") && !whole.is(b""));
        let first = FileVersion::of(b"ab", 3);
        assert!(first.is(b"abc") && first.is(b"abd") && !first.is(b"abcd") && !first.is(b"xbc"));
        assert!(
            whole.fits(&FileVersion::whole(b"abc")) && !whole.fits(&FileVersion::whole(b"abd"))
        );
        assert!(first.fits(&FileVersion::whole(b"abd")) && !first.fits(&FileVersion::whole(b"ab")));
        assert!(
            first.may_be(&FileVersion::whole(b"abd")) && !first.may_be(&FileVersion::whole(b"ab"))
        );
        assert!(!whole.may_be(&first) && !whole.may_be(&whole) && !first.may_be(&first));
        assert!(FileVersion::whole(b"").is(b""));
    }

    #[test]
    fn it_is_written_in_few_words() {
        let json = serde_json::to_string(&FileVersion::whole(b"a")).unwrap();
        let digest = Digest::of(b"a");
        assert_eq!(json, format!(r#"{{"digest":"{}","size":1}}"#, digest.as_str()));
        assert_eq!(serde_json::from_str::<FileVersion>(&json).unwrap(), FileVersion::whole(b"a"));
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
