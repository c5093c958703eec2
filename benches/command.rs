//! One command: under each tier, and bare as the least it could cost.
#![allow(clippy::disallowed_macros, clippy::disallowed_methods, reason = "clippy.toml is for src")]

use std::path::Path;
use std::process::{Command, Stdio};

use deaddrop::runner::{CommandSpec, Runner};
use deaddrop::settings::{Sandbox, SandboxMode};

fn main() {
    divan::main();
}

/// A workspace, a folder for the session, and a runner.
struct Scene {
    folder: tempfile::TempDir,
    runner: Runner,
}

impl Scene {
    fn new(mode: SandboxMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Sandbox { mode, ..Sandbox::default() };
        let helper = env!("CARGO_BIN_EXE_deaddrop").into();
        let workspace = folder.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let scene = Self { folder, runner: Runner::new(helper, workspace, settings) };
        scene.run("true");
        scene
    }

    fn run(&self, command: &str) -> deaddrop::protocol::Execution {
        let own = self.folder.path().join("own");
        let errand = CommandSpec::new(command, &self.runner.workspace, &own);
        self.runner.run(&errand, &|| false)
    }
}

#[divan::bench(sample_count = 200, sample_size = 1)]
fn bare_sh() {
    let status = Command::new("/bin/sh")
        .args(["-c", "true"])
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[divan::bench(sample_count = 200, sample_size = 1, args = ["auto", "bwrap", "partial", "off"])]
fn under(bencher: divan::Bencher, mode: &str) {
    let mode = match mode {
        "auto" => SandboxMode::Auto,
        "bwrap" => SandboxMode::Bwrap,
        "partial" => SandboxMode::Partial,
        _ => SandboxMode::Off,
    };
    let scene = Scene::new(mode);
    bencher.bench_local(|| scene.run("true"));
}

/// The self-test at the start.
#[divan::bench(sample_count = 50, sample_size = 1)]
fn finding_the_tier(bencher: divan::Bencher) {
    bencher.with_inputs(|| Scene::new(SandboxMode::Off)).bench_local_values(|scene| {
        let settings = Sandbox::default();
        let runner =
            Runner::new(scene.runner.helper.clone(), scene.runner.workspace.clone(), settings);
        runner.confinement(&scene.folder.path().join("own"));
        scene
    });
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn hundred_megabytes_of_output(bencher: divan::Bencher) {
    let scene = Scene::new(SandboxMode::Auto);
    bencher.bench_local(|| {
        let execution = scene.run("head -c 100000000 /dev/zero");
        assert_eq!(execution.output.captures()[0].left_out, 100_000_000 - 4000);
    });
}
