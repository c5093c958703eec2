//! The source tree against its rules: budgets, layers, formatting, and documents that exist.
#![allow(clippy::disallowed_macros, reason = "a test tells of itself on its own output")]

mod budgets;
mod documents;
mod sources;
