//! Which lines of a file were read, where a part of it was asked for.

use serde::{Deserialize, Serialize};

/// Which lines of a file were read where only a part of it was asked for, or its lines numbered.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lines {
    /// The first, counted from 1; 0 where the file has none.
    pub first: usize,
    /// The last, included.
    pub last: usize,
    /// How many lines the file has.
    pub total: usize,
    /// Whether it has more lines than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// Whether more lines were asked for than were read, since they are too long together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Whether the last one is longer than what was read of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_line: bool,
    /// How many bytes that line has; None where it was not looked at to its end, or was read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Whether each is to stand behind its number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub numbered: bool,
}
