//! Policies on command lines and paths.

mod bounds;
mod files;
mod lines;
mod table;
