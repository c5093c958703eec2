//! Checks of what is written to files, shared by all dialects: fences, line numbers and diffs where
//! content belongs, and lines that stand for others. Pure.

pub(in crate::protocol) mod diff;
pub mod elision;
pub(in crate::protocol) mod fence;
mod file_kind;
pub(in crate::protocol) mod gutter;

pub(in crate::protocol) use file_kind::FileKind;
pub(crate) use file_kind::{is_code, may_be_patch};
