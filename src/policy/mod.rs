//! What an operation may do, told before it is tried. Pure: it looks at the operation's text alone.
//!
//! This is a courtesy, not a wall: a text can say anything in many ways. What keeps a command from
//! doing it stands elsewhere; here is why and what to do instead, which a system error never says.

mod decision;
mod files;
pub mod git;
mod patterns;
mod readers;
pub mod reading;
mod shell;
#[cfg(test)]
mod tests;

pub use decision::{Ask, Decision, Denial, Opens};
pub use files::{Access, path};
pub use shell::{Explained, command, explain};

use crate::protocol::Failure;

/// Refuses a command that is not allowed, as far as its text tells.
pub fn refuse(command: &str) -> Result<(), Failure> {
    match git::writes_repository(command) {
        None => Ok(()),
        Some(subcommand) => Err(Failure::rejected(format!(
            "nothing of this command was run, because of its 'git {subcommand}': git may not write to its repository from here, even if the task asks for it; the user does that. Give them the git lines in a MESSAGE or in the summary of [DONE]. What only reads works: git status, diff, log, show, blame, grep, ls-files"
        ))),
    }
}
