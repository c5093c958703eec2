//! Paths inside the workspace. Only symbolic links, which `workspace` handles, can lead a [`RelPath`] outside.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{is_hazard, visible_line};

/// The longest component that file systems accept, in bytes.
const COMPONENT_LIMIT: usize = 255;
/// The longest path, in bytes.
const PATH_LIMIT: usize = 4095;

const SEPARATORS: [char; 2] = ['/', '\\'];

/// A relative path of one or more components, separated by `/`, without `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct RelPath(String);

/// Why a text is not a path inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// The path is absolute, on a drive, or leads outside through `..`. The wording is that of the specification.
    #[error("Path is outside workspace: '{}'", visible_line(.0))]
    Outside(String),
    /// The path is empty or `.`, or ends in a separator.
    #[error("Path names no file: '{}'", visible_line(.0))]
    NoFile(String),
    /// The path contains a control character, or a character that is invisible or reorders text.
    #[error("Path contains the character U+{:04X}: '{}'", u32::from(*.0), shown(*.0, .1))]
    Character(char, String),
    /// The path is longer than any file system allows.
    #[error("Path is too long: at most {COMPONENT_LIMIT} bytes a name and {PATH_LIMIT} in total")]
    TooLong,
}

impl RelPath {
    /// Parses and normalises a path: `./a//b/../c` becomes `a/c`. A backslash is a separator, too.
    ///
    /// # Examples
    /// ```
    /// use deaddrop::protocol::RelPath;
    /// assert_eq!(RelPath::parse("./src/../a..b").unwrap().as_str(), "a..b");
    /// assert!(RelPath::parse("a/../../x").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, PathFault> {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~');
        let hidden = || text.chars().find(|c| is_forbidden(*c));
        if let Some(c) = if text.bytes().all(is_plain) { None } else { hidden() } {
            return Err(PathFault::Character(c, text.to_owned()));
        }
        let outside = || Err(PathFault::Outside(text.to_owned()));
        if text.starts_with(SEPARATORS) || is_on_drive(text) {
            return outside();
        }
        let (mut path, mut last) = (String::with_capacity(text.len()), "");
        for part in text.split(SEPARATORS) {
            last = part;
            match part {
                "" | "." => {}
                ".." if path.is_empty() => return outside(),
                ".." => path.truncate(path.rfind('/').unwrap_or(0)),
                part if part.len() > COMPONENT_LIMIT => return Err(PathFault::TooLong),
                part => path.extend([if path.is_empty() { "" } else { "/" }, part]),
            }
        }
        if path.is_empty() || matches!(last, "" | "." | "..") {
            return Err(PathFault::NoFile(text.to_owned()));
        }
        // This also refuses `./c:x`, because the result must stay a valid path when it is parsed again.
        if is_on_drive(&path) {
            return outside();
        }
        if path.len() > PATH_LIMIT { Err(PathFault::TooLong) } else { Ok(Self(path)) }
    }

    /// The path as text, with `/` between its components.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components of the path, in order. There is at least one.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Whether this path is `folder` or a path in it.
    pub fn is_within(&self, folder: &Self) -> bool {
        self.0.strip_prefix(&folder.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for RelPath {
    type Error = PathFault;

    fn try_from(text: String) -> Result<Self, PathFault> {
        Self::parse(&text)
    }
}

/// Whether the path begins with a Windows drive.
fn is_on_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

/// A path in which an invisible character is replaced by its name.
fn shown(c: char, path: &str) -> String {
    let named = if is_hazard(c) || c.is_control() {
        c.to_string()
    } else {
        format!("<U+{:04X}>", u32::from(c))
    };
    visible_line(&path.replace(c, &named)).into_owned()
}

fn is_forbidden(c: char) -> bool {
    c.is_control() || is_hazard(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> String {
        RelPath::parse(text).unwrap().0
    }

    #[test]
    fn paths_inside_are_made_normal() {
        assert_eq!(ok("a"), "a");
        assert_eq!(ok("./a//b/../c"), "a/c");
        assert_eq!(ok("a/../b"), "b");
        assert_eq!(ok("a..b"), "a..b");
        assert_eq!(ok("src\\a.py"), "src/a.py");
        assert_eq!(ok("%2e%2e/x"), "%2e%2e/x");
        assert_eq!(ok("with space/é.txt"), "with space/é.txt");
    }

    #[test]
    fn paths_that_lead_out_are_outside() {
        for text in [
            "../x",
            "a/../../x",
            "/etc/passwd",
            "..\\x",
            "C:\\x",
            "c:x",
            "./c:x",
            "a/../c:x",
            "\\\\srv\\s",
            "\\x",
            "../workspace-evil/x",
            "..",
        ] {
            assert!(matches!(RelPath::parse(text), Err(PathFault::Outside(_))), "{text}");
        }
    }

    #[test]
    fn paths_that_name_no_file_or_hide_something_are_refused() {
        for text in ["", ".", "a/", "a/.", "a/b/..", "./"] {
            assert!(matches!(RelPath::parse(text), Err(PathFault::NoFile(_))), "{text:?}");
        }
        for text in
            ["a\0b", "a\nb", "a\x1b[0m", "a\u{202e}b", "a\u{200b}", "\u{feff}a", "a\u{200d}"]
        {
            assert!(matches!(RelPath::parse(text), Err(PathFault::Character(..))), "{text:?}");
        }
        assert_eq!(RelPath::parse(&"x".repeat(256)), Err(PathFault::TooLong));
        assert!(RelPath::parse(&"xy/".repeat(1700)).is_err());
        assert_eq!(RelPath::parse(&["abcd"; 1000].join("/")), Err(PathFault::TooLong));
    }

    #[test]
    fn being_within_a_folder_goes_by_components() {
        let folder = RelPath::parse("out").unwrap();
        assert!(RelPath::parse("out/a").unwrap().is_within(&folder));
        assert!(RelPath::parse("out").unwrap().is_within(&folder));
        assert!(!RelPath::parse("outbox").unwrap().is_within(&folder));
    }
}
