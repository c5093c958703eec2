//! Commands that try to get out of the sandbox, run by the real program in every tier, as root and
//! as an ordinary user. An attack is tried without a sandbox too, where that does no harm to this
//! machine: there it must get through, or it tests nothing.

use std::path::Path;

use crate::scene::{Asked, Scene, Way};

mod files_seen;
mod files_written;
mod kernel;
mod limits;
mod network;
mod own_folders;
mod processes;
mod settings;
mod state;
mod tiers;
mod toolchains;

/// What no command is to see.
pub const SECRET: &str = "the secret of the surroundings";
/// Where Python is that no version manager stands before.
const PYTHON: &str = "/usr/bin/python3";

/// Attempts, each with a name: a shell condition that holds if it got through.
#[derive(Default)]
pub struct Attack {
    tries: Vec<(String, String)>,
}

impl Attack {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attempt.
    pub fn by(mut self, name: impl Into<String>, condition: impl Into<String>) -> Self {
        self.tries.push((name.into(), condition.into()));
        self
    }

    /// Asserts that no attempt gets through.
    #[track_caller]
    pub fn fails_in(&self, scene: &Scene) {
        self.run(scene, Some("HELD"));
    }

    /// Asserts that every attempt gets through: that it is one.
    #[track_caller]
    pub fn gets_through(&self, scene: &Scene) {
        self.run(scene, Some("THROUGH"));
    }

    /// The same, for root without a sandbox.
    #[track_caller]
    pub fn gets_through_as_root(&self, furnish: impl FnOnce(&mut Scene)) {
        let Some(mut scene) = Scene::with(Way::AsItIs, Asked::Off) else { return };
        if rustix::process::geteuid().is_root() {
            furnish(&mut scene);
            self.gets_through(&scene);
        }
    }

    /// Tries everything, whatever comes of it.
    #[track_caller]
    pub fn run_in(&self, scene: &Scene) {
        self.run(scene, None);
    }

    #[track_caller]
    fn run(&self, scene: &Scene, expected: Option<&str>) {
        let commands: Vec<String> = self
            .tries
            .iter()
            .enumerate()
            .map(|(n, (_, condition))| {
                format!(
                    "if ( {condition}\n) >/dev/null 2>&1; then echo THROUGH {n}.; else echo HELD {n}.; fi"
                )
            })
            .collect();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let results = scene.run(&commands, &[]);
        let Some(expected) = expected else { return };
        let other: Vec<&String> = (self.tries.iter().enumerate())
            .filter(|(n, _)| !results.contains(&format!("  Output: {expected} {n}.")))
            .map(|(_, (name, _))| name)
            .collect();
        assert!(other.is_empty(), "{}: not {expected}: {other:#?}\n{results}", scene.name());
    }
}

/// Writes what commands are not to see around the workspace, with a home folder of the person's.
pub fn furnish(scene: &mut Scene) {
    for file in [
        "home/diary",
        "home/.ssh/id_ed25519",
        "home/.netrc",
        "home/.npmrc",
        "home/.pypirc",
        "home/.git-credentials",
        "home/.bash_history",
        "home/.aws/credentials",
        "home/.docker/config.json",
        "home/.config/gh/hosts.yml",
        "home/.cargo/credentials.toml",
        "home/.cargo/credentials",
        "home/.m2/settings.xml",
        "home/.gradle/gradle.properties",
        "home/.local/share/keyrings/login.keyring",
        "outside/secret",
        "workspace-evil/secret",
    ] {
        scene.base.write(file, format!("{SECRET}\n"));
    }
    // What of it is a toolchain.
    scene.base.write("home/.cargo/config.toml", "# nothing\n");
    scene.base.write("home/.cargo/registry/cached", "cached\n");
    scene.base.write("home/.local/bin/tool", "#!/bin/sh\necho a tool\n");
    scene.base.sh("chmod +x home/.local/bin/tool");
    scene.environment.push(("HOME", scene.base.at("home")));
    for variable in ["CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT"] {
        scene.environment.push((variable, "".into()));
    }
    scene.hand_over();
}

/// A command line of Python; None, and said so, where there is none.
pub fn python(script: &str) -> Option<String> {
    if !Path::new(PYTHON).exists() {
        eprintln!("SKIPPED: there is no {PYTHON}");
        return None;
    }
    assert!(!script.contains('\''), "{script}");
    Some(format!("{PYTHON} -c '{script}'"))
}
