//! Allows, asks about or denies an operation before it is tried. Pure: only the text of the operation counts.
//!
//! This is a courtesy, not a security boundary, since a command can be written in many ways. The sandbox enforces the
//! limits. The policy explains why something is denied and what to do instead; a system error does not.

mod decision;
mod files;
pub mod git;
mod patterns;
pub mod reading;
mod shell;
mod summary;
#[cfg(test)]
mod tests;

pub use decision::{Ask, Denial, Grant, Verdict};
pub use files::{Access, folder, may_search, path};
pub use shell::{Explanation, NEW_REPOSITORY, REPOSITORY, command, explain, run};
pub use summary::summary;
