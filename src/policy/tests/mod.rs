//! Decisions on command lines and paths.

mod bounds;
mod files;
mod lines;
#[cfg(unix)]
mod shells;
mod table;
