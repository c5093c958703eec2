//! Checks of what is written to files, shared by all dialects: fences, line numbers and diffs where
//! content belongs, and lines that stand for others. Pure.

pub(in crate::protocol) mod diff;
pub mod elision;
pub(in crate::protocol) mod fence;
mod file_kind;
pub(in crate::protocol) mod gutter;

use regex::Regex;
use serde::de::{Deserialize, Deserializer, Error};

pub(in crate::protocol) use file_kind::FileKind;
pub(crate) use file_kind::{is_code, may_be_patch};

/// Reads a pattern of a table.
pub(in crate::protocol) fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(from)?).map_err(D::Error::custom)
}
