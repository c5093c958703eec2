//! A step that a guest carries out for a host, stopped anywhere: the host asks again, and is told what
//! the step came to, or it is done now; never twice.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

#[cfg(target_os = "linux")]
#[path = "../it/guests/steps.rs"]
mod guest;
#[cfg(target_os = "linux")]
mod stopped;
#[cfg(target_os = "linux")]
#[path = "../it/support/mod.rs"]
mod support;
#[cfg(target_os = "linux")]
#[path = "../crash/trace.rs"]
#[allow(dead_code, reason = "the crash tests use the rest")]
mod trace;

/// Every trial starts this program again, to carry out a step in its first thread: that is the one
/// that is watched and stopped.
#[cfg(target_os = "linux")]
fn main() {
    use libtest_mimic::{Arguments, Trial};

    if guest::is_wanted() {
        return guest::carry_out();
    }
    let trials = stopped::ALL.map(|(name, trial)| {
        Trial::test(name, move || {
            trial();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("SKIPPED: steps are stopped on Linux alone");
}
