//! Starts a program through another one, such as strace or a shell.

use std::process::Command;

/// Lets `outer` run what `plain` would have run: its arguments behind those that are there, in its folder
/// and with its environment.
pub fn wrap(outer: &mut Command, plain: &Command) {
    outer.arg(plain.get_program()).args(plain.get_args());
    with_environment(outer, plain);
    if let Some(folder) = plain.get_current_dir() {
        outer.current_dir(folder);
    }
}

/// Gives a command what another one's environment was changed to.
pub fn with_environment(command: &mut Command, of: &Command) {
    for (name, value) in of.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}
