//! What is read, without a file or a process: properties of the parsers, and the time that they take. Much of
//! it is faster with `--release`.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]
#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod dialects;
mod fuzz_corpus;
mod linear;
mod properties;
mod tolerance;
