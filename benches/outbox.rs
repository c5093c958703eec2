//! Listing a workspace, and rendering an outbox over it.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::fs;
use std::path::Path;

use deaddrop::clock::Timestamp;
use deaddrop::outbox::{Environment, Files, render};
use deaddrop::protocol::RelPath;
use deaddrop::session::Session;
use deaddrop::workspace::Workspace;
use deaddrop::workspace::walk::Walk;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

/// `files` small files, ten to a folder.
fn tree(root: &Path, files: usize) {
    for folder in 0..files / 10 {
        let path = root.join(format!("part{}/mod{}/m{folder}", folder % 7, folder % 61));
        fs::create_dir_all(&path).unwrap();
        for n in 0..10 {
            fs::write(path.join(format!("handler_{n}.rs")), b"fn main() {}\n").unwrap();
        }
    }
}

fn environment() -> Environment {
    Environment {
        system: "Linux".into(),
        shell: "/bin/sh -c".into(),
        sandbox: "none".into(),
        network: "open".into(),
        protected: "nothing".to_owned(),
        policy: None,
        timeout: 30,
        longest: 30,
        output_limit: 4000,
        max_tokens: 24_000,
        context_tokens: 24_000,
        secrets: deaddrop::settings::Secrets::default(),
    }
}

#[divan::bench(args = [10_000, 100_000], sample_count = 20)]
fn walk(bencher: divan::Bencher, files: usize) {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path(), files);
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    bencher.counter(ItemsCount::new(files)).bench(|| workspace.walk().unwrap());
}

#[divan::bench(args = [10_000, 100_000], sample_count = 20)]
fn walk_and_render(bencher: divan::Bencher, files: usize) {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path(), files);
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    let session = Session::new("a1b2c3d4".into(), "A task", vec![], Timestamp::now());
    bencher
        .counter(ItemsCount::new(files))
        .bench(|| render(&session, &environment(), &workspace.walk().unwrap(), &Files::default()));
}

/// What is done with a walk: it is sorted into what is listed and what is not, and rendered.
#[divan::bench(args = [1_000, 100_000, 1_000_000], sample_count = 20)]
fn render_walk(bencher: divan::Bencher, files: usize) {
    let paths: Vec<String> = (0..files)
        .map(|n| format!("part{}/mod{}/m{}/handler_{n}.rs", n % 7, n % 61, n / 10))
        .collect();
    let walk = Walk::of(paths.iter().map(|path| (path.as_str(), 13)));
    let session = Session::new("a1b2c3d4".into(), "A task", vec![], Timestamp::now());
    bencher
        .counter(ItemsCount::new(files))
        .bench(|| render(&session, &environment(), divan::black_box(&walk), &Files::default()));
}

/// Counting what ignore rules leave out, as far as it is counted.
#[divan::bench(args = [10_000, 100_000, 200_000], sample_count = 20)]
fn count_ignored(bencher: divan::Bencher, files: usize) {
    let folder = tempfile::tempdir().unwrap();
    tree(&folder.path().join("target"), files);
    fs::write(folder.path().join(".gitignore"), "target/\n").unwrap();
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    let mut walk = workspace.walk().unwrap();
    bencher
        .counter(ItemsCount::new(files))
        .bench_local(|| workspace.count_ignored(divan::black_box(&mut walk)));
}

#[divan::bench]
fn render_with_contents(bencher: divan::Bencher) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.rs"), "    let value = compute(input);\n".repeat(3000))
        .unwrap();
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    let session = Session::new("a1b2c3d4".into(), "A task", vec![], Timestamp::now());
    let path = RelPath::parse("a.rs").unwrap();
    let contents = workspace.read(&path, 1 << 20);
    let files = Files { requested: vec![contents], ..Files::default() };
    let walk = workspace.walk().unwrap();
    bencher.bench(|| render(&session, &environment(), &walk, divan::black_box(&files)));
}
