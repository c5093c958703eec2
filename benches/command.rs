//! One command: through the helper, and bare as the least it could cost.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use deaddrop::runner::Runner;

fn main() {
    divan::main();
}

fn runner() -> Runner {
    Runner::new(env!("CARGO_BIN_EXE_deaddrop").into(), Duration::from_mins(1), 4000)
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn bare_sh() {
    let status = Command::new("/bin/sh").args(["-c", "true"]).stdin(Stdio::null()).status();
    assert!(status.unwrap().success());
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn with_helper() {
    runner().run("true", Path::new("/"), &|| false);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn hundred_megabytes_of_output() {
    let execution = runner().run("head -c 100000000 /dev/zero", Path::new("/"), &|| false);
    assert_eq!(execution.output.left_out, 100_000_000 - 4000);
}
