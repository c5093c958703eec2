//! Tests of the workspace as a whole.

mod editing;
mod moving;
#[cfg(target_os = "linux")]
mod races;

use crate::protocol::RelPath;

fn path(text: &str) -> RelPath {
    RelPath::parse(text).unwrap()
}

/// A folder for many files, in memory if possible.
fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}
