//! What serves: faults, stops, state of older versions, and work that is done once.

mod faults;
#[cfg(target_os = "linux")]
mod older_versions;
#[cfg(unix)]
mod stops;
#[cfg(unix)]
mod work_done_once;
