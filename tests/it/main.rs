//! The program as a person uses it: the real binary on real files.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[cfg(unix)]
mod answers;
#[cfg(unix)]
mod approvals;
#[cfg(target_os = "linux")]
mod around_git;
#[cfg(unix)]
mod asking;
mod basics;
mod budget;
#[cfg(target_os = "linux")]
mod by_hand;
#[cfg(unix)]
mod checking;
#[cfg(unix)]
mod cli;
#[cfg(target_os = "linux")]
mod clipboard;
mod closing;
#[cfg(unix)]
mod codes;
#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod completing;
#[cfg(target_os = "linux")]
mod confinement;
#[cfg(target_os = "linux")]
mod daily;
#[cfg(unix)]
mod decided_elsewhere;
#[cfg(target_os = "linux")]
mod deciding;
#[cfg(unix)]
mod doctor;
#[cfg(target_os = "linux")]
mod edits;
#[cfg(unix)]
mod events_shown;
#[cfg(target_os = "linux")]
mod examples_run;
#[cfg(target_os = "linux")]
mod finding;
#[cfg(unix)]
mod first_contents;
mod guest;
#[cfg(target_os = "linux")]
mod guest_homes;
#[cfg(unix)]
mod guests;
#[cfg(unix)]
mod guests_cut;
#[cfg(unix)]
mod guests_hostile;
mod handing_over;
#[cfg(target_os = "linux")]
mod hints;
#[cfg(target_os = "linux")]
mod hostile_outbox;
#[cfg(target_os = "linux")]
mod in_place;
#[cfg(unix)]
mod inbox;
mod init_refused;
#[cfg(unix)]
mod json_events;
#[cfg(unix)]
mod led_away;
mod listing;
#[cfg(target_os = "linux")]
mod looking;
mod manual;
mod messages;
#[cfg(target_os = "linux")]
mod moves;
#[cfg(target_os = "linux")]
mod nested;
#[cfg(target_os = "linux")]
mod not_drawn;
#[cfg(unix)]
mod once;
#[cfg(target_os = "linux")]
mod operations;
#[cfg(target_os = "linux")]
mod other_workspace;
mod outboxes;
mod own_state;
#[cfg(unix)]
mod parts;
#[cfg(target_os = "linux")]
mod patches;
#[cfg(target_os = "linux")]
mod planted;
#[cfg(unix)]
mod policy;
#[cfg(target_os = "linux")]
mod projects;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(unix)]
mod refused;
#[cfg(unix)]
mod replies;
#[cfg(unix)]
mod rpc;
#[cfg(target_os = "linux")]
mod rpc_lost;
#[cfg(target_os = "linux")]
mod rpc_methods;
#[cfg(target_os = "linux")]
mod rpc_steps;
#[cfg(unix)]
mod runs;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(unix)]
mod saying;
#[cfg(target_os = "linux")]
mod scene;
#[cfg(unix)]
mod secrets;
#[cfg(target_os = "linux")]
mod security;
#[cfg(target_os = "linux")]
mod service;
#[cfg(unix)]
mod settings;
mod sharing;
#[cfg(target_os = "linux")]
mod start;
mod steady;
#[cfg(unix)]
mod stopping;
#[cfg(target_os = "linux")]
mod stored;
mod support;
#[cfg(unix)]
mod terminal;
#[cfg(target_os = "linux")]
mod tmux;
#[cfg(target_os = "linux")]
mod tracked_settings;
#[cfg(target_os = "linux")]
mod undo;
#[cfg(target_os = "linux")]
mod undo_approved;
#[cfg(target_os = "linux")]
mod undo_brought;
mod undo_git;
#[cfg(target_os = "linux")]
mod undo_kept;
mod undo_left;
#[cfg(target_os = "linux")]
mod undo_odd;
#[cfg(target_os = "linux")]
mod undo_others;
mod undo_over;
#[cfg(target_os = "linux")]
mod undo_told;
#[cfg(target_os = "linux")]
mod undo_unseen;
#[cfg(target_os = "linux")]
mod untouched;
#[cfg(target_os = "linux")]
mod whereabouts;
