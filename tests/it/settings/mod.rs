//! Settings: where they come from, and who may set them.

#[cfg(unix)]
mod links;
#[cfg(target_os = "linux")]
mod planted;
#[cfg(unix)]
mod sources;
#[cfg(target_os = "linux")]
mod tracked;
