//! What turns changed: shown, taken back, and brought back.

#[cfg(target_os = "linux")]
mod approved;
#[cfg(target_os = "linux")]
mod closed_folders;
mod git;
mod left_in_place;
#[cfg(target_os = "linux")]
mod odd_files;
#[cfg(target_os = "linux")]
mod only_copies;
#[cfg(target_os = "linux")]
mod other_sessions;
#[cfg(target_os = "linux")]
mod patches;
#[cfg(target_os = "linux")]
mod renamed_from_ignored;
#[cfg(target_os = "linux")]
mod reported;
mod several_turns;
#[cfg(target_os = "linux")]
mod undo_and_redo;
