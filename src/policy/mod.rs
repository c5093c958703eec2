//! What an operation may do, told before it is tried. Pure: it looks at the operation's text alone.
//!
//! This is a courtesy, not a wall: a text can say anything in many ways. What keeps a command from
//! doing it stands elsewhere; here is why and what to do instead, which a system error never says.

mod decision;
mod files;
pub mod git;
mod patterns;
pub mod reading;
mod shell;
#[cfg(test)]
mod tests;
mod told;

pub use decision::{Ask, Decision, Denial, Opens};
pub use files::{Access, folder, may_search, path};
pub use shell::{Explained, NEW_REPOSITORY, REPOSITORY, command, explain, run};
pub use told::told;
