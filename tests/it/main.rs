//! The program as a person uses it: the real binary on real files.
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod basics;
#[cfg(unix)]
mod commands;
mod support;
mod tidy;
