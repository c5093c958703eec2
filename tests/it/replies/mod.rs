//! Replies: how they arrive, which of them count, and what they may do.

#[cfg(unix)]
mod added_words;
#[cfg(unix)]
mod apply;
#[cfg(unix)]
mod check;
mod handed_over;
#[cfg(unix)]
mod inbox;
#[cfg(unix)]
mod left_out;
#[cfg(unix)]
mod rejected;
#[cfg(target_os = "linux")]
mod stale_lines;
#[cfg(unix)]
pub mod which_outbox;
