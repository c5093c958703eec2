//! Projects: how they are set up, and what belongs to deaddrop.

#[cfg(target_os = "linux")]
pub mod init;
#[cfg(target_os = "linux")]
mod other_workspace;
mod own_state;
