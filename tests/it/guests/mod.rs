//! Operations on another machine.

#[cfg(target_os = "linux")]
mod homes;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
mod lost_connection;
#[cfg(unix)]
pub mod sessions;
pub mod steps;
