//! A whole turn as the person feels it: from the reply closed in the inbox to the next outbox under
//! its name, everything synced, by a daemon that already runs.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::fs::{self, File};
use std::hint;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

fn main() {
    divan::main();
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(base: &Path) -> Daemon {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deaddrop"));
    command.args(["new", "--quiet", "--id", "a1b2c3d4", "A task"]);
    command.current_dir(base).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = Daemon(command.spawn().unwrap());
    wait_for(base, 1);
    // The first turn also waits for the daemon to listen.
    drop_reply(base, "[MESSAGE]\nhi\n[/MESSAGE]\n", 1);
    wait_for(base, 2);
    daemon
}

fn wait_for(base: &Path, sequence: u32) {
    let path = base.join(format!("outbox/a1b2c3d4_seq{sequence:04}.txt"));
    while fs::symlink_metadata(&path).is_err() {
        hint::spin_loop();
    }
}

fn drop_reply(base: &Path, text: &str, n: u32) {
    let mut file = File::create(base.join(format!("inbox/r{n}.txt"))).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn turns(bencher: divan::Bencher, reply: &str) {
    let base = tempfile::tempdir().unwrap();
    let _daemon = start(base.path());
    let sequence = AtomicU32::new(2);
    bencher.bench_local(|| {
        let n = sequence.fetch_add(1, Ordering::Relaxed);
        // The same text twice in a row would be held as a mistake.
        drop_reply(base.path(), &format!("{n}\n{reply}"), n);
        wait_for(base.path(), n + 1);
    });
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn message(bencher: divan::Bencher) {
    turns(bencher, "[MESSAGE]\nhi\n[/MESSAGE]\n");
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn create_file(bencher: divan::Bencher) {
    turns(bencher, "[CREATE_FILE path=\"a.txt\"]\nhi\n[/CREATE_FILE]\n");
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn run_command(bencher: divan::Bencher) {
    turns(bencher, "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n");
}
