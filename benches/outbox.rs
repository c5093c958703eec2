//! Listing a workspace, and rendering an outbox over it.

use std::fs;
use std::path::Path;

use deaddrop::clock::Timestamp;
use deaddrop::outbox::{Environment, Files, Requested, render};
use deaddrop::protocol::RelPath;
use deaddrop::session::Session;
use deaddrop::workspace::Workspace;
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

#[divan::bench]
fn render_with_contents(bencher: divan::Bencher) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.rs"), "    let value = compute(input);\n".repeat(3000))
        .unwrap();
    let workspace = Workspace::open(folder.path(), &[], &[]).unwrap();
    let session = Session::new("a1b2c3d4".into(), "A task", vec![], Timestamp::now());
    let path = RelPath::parse("a.rs").unwrap();
    let contents = workspace.read(&path, 1 << 20);
    let files = Files { requested: vec![Requested { contents }], offered: None };
    let walk = workspace.walk().unwrap();
    bencher.bench(|| render(&session, &environment(), &walk, divan::black_box(&files)));
}
