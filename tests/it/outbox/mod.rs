//! What an outbox shows, how long it is, and that nothing in it can pose as something else.

#[cfg(target_os = "linux")]
mod brief;
pub mod budget;
#[cfg(unix)]
mod events;
#[cfg(unix)]
mod first_contents;
#[cfg(target_os = "linux")]
mod hostile_contents;
mod hostile_values;
mod listing;
#[cfg(unix)]
mod parts;
#[cfg(unix)]
mod project;
#[cfg(target_os = "linux")]
mod searches;
#[cfg(unix)]
mod secrets;
mod shared_room;
#[cfg(unix)]
mod symbols;
