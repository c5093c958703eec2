//! Questions to the person: who is asked, how they answer, and what becomes of the turn.

#[cfg(target_os = "linux")]
mod answers;
#[cfg(unix)]
pub mod asked;
#[cfg(unix)]
pub mod at_terminal;
#[cfg(unix)]
mod decided_elsewhere;
#[cfg(target_os = "linux")]
mod moves;
#[cfg(unix)]
mod policy;
