//! Commands that try to get out of the sandbox, run by the real program in every tier, as root and
//! as an ordinary user. An attack is tried without a sandbox too, where that does no harm to this
//! machine: there it must get through, or it tests nothing.
//!
//! The lines of HOSTILE.md and where they are tested:
//!
//! ```text
//! Paths
//!   ../x, /etc/passwd, a sibling, "", ., a/, ESC,    security::paths::paths_that_lead_out_…,
//!   256 and 5000 bytes, C:\x, \\srv\s, bidi           a_newline_or_a_quote_…
//!   NUL                                              escapes::no_command_can_hold_a_nul, protocol::path
//!   NUL and COM1 on Windows                          protocol::path
//!   a..b, %2e%2e/x are names                         security::paths::odd_names_that_stay_inside_…
//! File system
//!   links, parents, /proc/self/root, dangling        security::paths::links_that_lead_out_…
//!   circles                                          security::paths::links_in_a_circle_…
//!   swapped 20,000 times                             projects::own_state::of_20_000_writes_…, …_reads_…
//!   hard link                                        security::paths::a_write_never_goes_through_…
//!   FIFO, device, socket                             security::paths::a_fifo_a_socket_and_a_device_…
//!   8 TiB                                            security::paths::a_sparse_file_of_8_tib_…
//!   a directory as a file                            security::paths::a_folder_is_no_file_…
//!   invalid UTF-8                                    security::paths::invalid_utf8_…
//!   very many files                                  projects::own_state::a_workspace_of_100_000_files_…
//! Commands
//!   double fork, shell exits first, background       escapes::whatever_a_command_leaves_behind_…,
//!   child, ignores TERM                              processes::of_20_hostile_trees_…
//!   fork bomb                                        limits::a_fork_bomb_is_bounded
//!   yes                                              escapes::endless_output_…
//!   reads stdin                                      escapes::standard_input_is_empty
//!   env, the daemon's environ                        escapes::no_secret_…, files_seen::other_processes_…
//!   TCP, UDP, VSOCK, UNIX sockets                    network
//!   chmod or utime outside                           files_written::metadata_outside_…
//!   signals the daemon                               processes::no_signal_reaches_others
//!   writes inbox, outbox, sessions, config           state
//!   plants .git/hooks                                protected
//!   fills the disk                                   limits::a_command_that_fills_the_disk_…
//!   output cut in a character                        escapes::output_cut_within_a_character_…
//!   TIOCSTI                                          kernel::nothing_can_be_typed_…
//! ```

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use crate::scene::{Asked, Scene, Way};

#[cfg(target_os = "linux")]
mod escapes;
mod files_seen;
mod files_written;
mod kernel;
mod limits;
mod named;
mod neighbours;
mod network;
mod own_folders;
mod processes;
mod protected;
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
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED (in part): what gets through without a sandbox is root's alone");
            return;
        }
        furnish(&mut scene);
        self.gets_through(&scene);
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

/// Files around the workspace that hold the secret alone.
pub const SECRETS: [&str; 24] = [
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
    "home/.local/share/uv/credentials/credentials.toml",
    "home/.dotnet/corefx/cryptography/x509stores/my/own.pfx",
    "home/.m2/settings.xml",
    "home/.gradle/gradle.properties",
    "home/.local/share/keyrings/login.keyring",
    "home/.nvm/versions/node/v22/etc/npmrc",
    "home/.nimble/github_api_token",
    "home/.rustup/private",
    "home/miniconda3/.condarc",
    "home/miniconda3/envs/one/pip.conf",
    "outside/secret",
    "workspace-evil/secret",
];

/// Writes what commands are not to see around the workspace, with a home folder of the person's.
pub fn furnish(scene: &mut Scene) {
    for file in SECRETS {
        scene.base.write(file, format!("{SECRET}\n"));
    }
    scene.base.write("home/.cargo/config", format!("token = \"{SECRET}\"\n"));
    scene.base.write("home/.cabal/config", format!("-- password:\npassword: {SECRET}\n"));
    scene.base.write(
        "home/.local/pipx/venvs/tool/pipx_metadata.json",
        format!("\"--index-url=https://me:word@host/{SECRET}\"\n"),
    );
    scene.base.sh("chmod 755 home/.rustup; chmod 600 home/.rustup/private");
    // What of it is a toolchain.
    scene.base.write("home/.cargo/config.toml", "# A token has no place here.\n");
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

/// Both ends of a new terminal: the one that a person would type at, and the one of programs.
#[allow(unsafe_code)]
pub fn terminal() -> Option<(OwnedFd, OwnedFd)> {
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: two integers to write to; nothing else is asked for. Both are then ours alone.
    unsafe {
        let (ours, theirs) = (&raw mut ours, &raw mut theirs);
        let name = ptr::null_mut();
        if libc::openpty(ours, theirs, name, ptr::null(), ptr::null()) != 0 {
            eprintln!("SKIPPED: no terminal can be made");
            return None;
        }
        Some((OwnedFd::from_raw_fd(*ours), OwnedFd::from_raw_fd(*theirs)))
    }
}
