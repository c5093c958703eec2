//! The program: the helper of one command or of the clipboard, or what the command line says.

use std::process::ExitCode;

fn main() -> ExitCode {
    deaddrop::runner::sandbox::dispatch();
    deaddrop::clipboard::dispatch();
    deaddrop::cli::answer_shell();
    deaddrop::runner::sandbox::adopt_orphans();
    deaddrop::cli::run(std::env::args_os())
}
