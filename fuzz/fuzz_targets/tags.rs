//! Any text, read as a reply: see `properties/tags.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../properties/tags.rs"]
mod properties;

fuzz_target!(|bytes: &[u8]| properties::hold(&String::from_utf8_lossy(bytes)));
