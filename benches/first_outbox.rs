//! The first outbox of a session in a project of 2,300 files with 41 MB, beside a plain read of the same files.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use divan::counter::BytesCount;
use tempfile::TempDir;

fn main() {
    divan::main();
}

const FILES: usize = 2_300;
const FUNCTIONS: usize = 35;

/// A project of Python files whose functions call those of other files.
fn project() -> &'static Path {
    static PROJECT: OnceLock<TempDir> = OnceLock::new();
    let project = PROJECT.get_or_init(|| {
        let project = tempfile::tempdir().unwrap();
        for file in 0..FILES {
            let folder = format!("workspace/part{}/mod{}", file % 7, file % 61);
            let folder = project.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("handler_{file}.py")), source(file)).unwrap();
        }
        project
    });
    project.path()
}

fn source(file: usize) -> String {
    let function = |n: usize| {
        let other = (file * 31 + n * 7) % FILES;
        format!(
            "def encode_{file}_{n}(value, table):\n    \"\"\"Writes a value as row {n} of a table.\"\"\"\n    \
             row = table.rows[{n}] or encode_{other}_{n}(value)\n"
        ) + &"    if row.width > table.width:\n        row = row.shortened(table.width)\n".repeat(5)
            + "    return row\n\n"
    };
    (0..FUNCTIONS).map(function).collect()
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn plain_read(bencher: divan::Bencher) {
    let files: Vec<_> =
        walkdir::WalkDir::new(project().join("workspace")).into_iter().flatten().collect();
    let read = || {
        let files = files.iter().filter(|entry| entry.file_type().is_file());
        files.map(|entry| fs::read(entry.path()).unwrap().len()).sum::<usize>()
    };
    bencher.counter(BytesCount::new(read())).bench_local(read);
}

/// A new session until its outbox stands under its name.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn new_session(bencher: divan::Bencher) {
    let project = project();
    bencher.bench_local(|| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deaddrop"));
        let task = "Let encode_1200_17 write a row of a wide table";
        command.args(["new", "--quiet", "--no-watch", task]).current_dir(project);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    });
}
