//! The program: a helper process of the sandbox or the clipboard, an answer to a completing shell, or a command.

use std::process::ExitCode;

fn main() -> ExitCode {
    deaddrop::runner::sandbox::dispatch();
    deaddrop::clipboard::dispatch();
    deaddrop::cli::answer_shell();
    #[cfg(target_env = "gnu")]
    return_freed_memory();
    deaddrop::runner::sandbox::adopt_orphans();
    deaddrop::cli::run(std::env::args_os())
}

/// Sets from which size on freed memory is returned to the system. Otherwise glibc raises these sizes with the largest list
/// that a project with many files needs, and the process keeps what it needed once.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn return_freed_memory() {
    // SAFETY: these calls set numbers of the allocator. No other thread has started.
    unsafe {
        // More than a file of a megabyte takes as JSON, so that a server uses the same memory again.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1_280 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}
