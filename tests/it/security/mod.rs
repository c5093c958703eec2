//! Attacks on the walls between a workspace and the person, one file for each rule.

#[cfg(target_os = "linux")]
mod git;
#[cfg(target_os = "linux")]
mod nested_folders;
mod pasting;
#[cfg(target_os = "linux")]
mod paths;
mod programs;
#[cfg(target_os = "linux")]
mod protected;
mod reasoning;
mod repositories;
mod secrets;
mod set_id;
mod state;
mod terminal;
mod views;
