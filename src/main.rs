//! The program: a helper process of the sandbox or the clipboard, an answer to a completing shell, or a command.

use std::process::ExitCode;

fn main() -> ExitCode {
    deaddrop::runner::sandbox::dispatch();
    deaddrop::clipboard::dispatch();
    deaddrop::cli::answer_shell();
    deaddrop::runner::sandbox::adopt_orphans();
    deaddrop::cli::run(std::env::args_os())
}
