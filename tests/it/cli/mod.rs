//! The command line: what a person types, and what they read.

mod basics;
#[cfg(target_os = "linux")]
mod by_hand;
mod close;
#[cfg(unix)]
mod codes;
#[cfg(unix)]
pub mod command_line;
#[cfg(target_os = "linux")]
mod completions;
#[cfg(target_os = "linux")]
mod config_man_demo;
#[cfg(unix)]
mod doctor;
#[cfg(target_os = "linux")]
mod examples;
#[cfg(target_os = "linux")]
mod init_refused;
#[cfg(unix)]
mod json_events;
mod manual;
#[cfg(target_os = "linux")]
mod nothing_written;
#[cfg(target_os = "linux")]
mod progress;
#[cfg(target_os = "linux")]
mod readme_session;
#[cfg(target_os = "linux")]
mod service;
#[cfg(unix)]
mod status_and_show;
#[cfg(target_os = "linux")]
mod status_of_waiting;
#[cfg(target_os = "linux")]
mod tutorial;
#[cfg(target_os = "linux")]
mod which_project;
#[cfg(target_os = "linux")]
mod without_terminal;
