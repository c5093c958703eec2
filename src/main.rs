//! The program: the helper of one command or of the clipboard, or what the command line says.

use std::process::ExitCode;

fn main() -> ExitCode {
    deaddrop::runner::sandbox::dispatch();
    deaddrop::clipboard::dispatch();
    // What a helper leaves that a command killed comes to this process, and is ended. Only a program of its own
    // can wish that: a library would take what its host starts.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    deaddrop::cli::run(std::env::args_os())
}
