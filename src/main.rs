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

/// Fixes the sizes from which freed memory is returned to the system. Otherwise glibc raises them to that of the largest
/// list that a project with many files needs, and the process keeps this memory.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn return_freed_memory() {
    // SAFETY: these calls set numbers of the allocator. No other thread has started.
    unsafe {
        // A file of one megabyte as JSON is smaller, so that a server reuses the memory for it.
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1_280 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}
