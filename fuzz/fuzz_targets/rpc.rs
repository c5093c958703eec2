//! Any bytes, read as a line of JSON-RPC: see `properties/rpc.rs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../properties/rpc.rs"]
mod properties;

fuzz_target!(|bytes: &[u8]| properties::hold(bytes));
