//! `rpc`: serves the workspace, or any folder, to programs over JSON-RPC.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{CliContext, output};
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::program;
use crate::rpc::{At, Listening, Projects, ScratchDir, Served, Serving};
use crate::runner::Runner;
use crate::runner::sandbox;
use crate::settings::{
    Config, SandboxMode, problem_in_git_directory, registered_within, user_state_folder,
};
use crate::watch::Stop;
use crate::workspace::Workspace;

#[derive(Debug, Args)]
pub(super) struct Rpc {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Serve this folder instead of the workspace
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Time limit of a command
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 25,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    command_timeout: u64,
}

/// Where clients come from.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct Endpoint {
    /// Serve standard input and output (the default)
    #[arg(long)]
    stdio: bool,
    /// Listen on a Unix socket that only you can connect to
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Listen on a port for the host of this virtual machine
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u32).range(1..0xFFFF_FFFF))]
    vsock: Option<u32>,
}

impl Endpoint {
    fn at(self) -> At {
        #[cfg(target_os = "linux")]
        if let Some(port) = self.vsock {
            return At::Vsock(port);
        }
        self.unix.map_or(At::Stdio, At::Unix)
    }
}

/// Serves programs. `has_policy_flag` is whether --policy was given. A policy from the settings does not apply.
pub(super) fn rpc(context: &CliContext, arguments: Rpc, has_policy_flag: bool) -> Result<ExitCode> {
    let config = &context.config;
    let root = Root::of(config, arguments.root.as_deref())?;
    let policy = match &config.policy {
        Some(name) if has_policy_flag => Some(config.policy(name)?),
        _ => None,
    };
    let timeout = Duration::from_secs(arguments.command_timeout);
    let at = arguments.endpoint.at();
    let is_stdio = at == At::Stdio;
    let helper = program::own_executable()
        .map_err(|e| Error::io("find", Path::new("deaddrop's own program"), e))?;

    let projects = match &root.requested {
        Some(requested) => Projects::of(&root.path, requested, config)?,
        None => Projects::default(),
    };
    // Signals are handled before clients can connect, so that a signal always ends the process properly.
    let stop = Stop::on_signals()?;
    // Listen before anything is created, because this may fail.
    let listening = Listening::open(at)?;
    if root.requested.is_none()
        && let Err(e) = config.claim_dirs([&config.sessions, &config.inbox])
    {
        output::warning(&format!("{e}. The next start asks whose the folders here are"));
    }
    let _lock = root.requested.is_none().then(|| Lock::take(config)).transpose()?;
    let borrowed: Result<Vec<_>> = projects.around.iter().map(Lock::borrow).collect();
    let _borrowed = borrowed?;
    projects.messages.iter().for_each(|message| output::warning(message));
    sandbox::close_to_commands();
    root.make()?;
    // What neither paths nor commands can access: this project's state, the state of other roots within this one, and the
    // state of other projects.
    let hidden = config.state().into_iter().chain(registered_within(&root.path)?);
    let hidden: Vec<PathBuf> = hidden.chain(projects.state).collect();
    // If the root contains `/proc`, hide this process's own memory and environment.
    let own = ["/proc/self".to_owned(), format!("/proc/{}", std::process::id())];
    let state: Vec<PathBuf> =
        hidden.iter().cloned().chain(own.into_iter().map(PathBuf::from)).collect();
    let workspace = Workspace::open(&root.path, &state, &config.protected_names)?;
    let mut runner = Runner::of(config, workspace.path(), helper);
    runner.hidden = hidden;
    // The client may be another person than the owner of the settings, and the settings may come from another project.
    runner.shown = None;
    // Commands run in parallel, and none is continued after a stop.
    runner.lock = PathBuf::new();
    let message = format!("Serving {} at {listening}", context.display(workspace.path()));

    let scratch_dir = ScratchDir::make(&root.state)?;
    let state = root.state;
    let served = Served::new(Serving {
        workspace,
        runner,
        timeout,
        policy,
        scratch_dir: scratch_dir.for_commands(),
        state,
        stop: stop.clone(),
    })?;
    if !is_stdio {
        output::say(&message);
    }
    let ended = listening.serve(served, &stop);
    drop(scratch_dir);
    ended?;
    if stop.is_interrupted() { Err(Error::interrupted()) } else { Ok(ExitCode::SUCCESS) }
}

/// The folder that is served.
struct Root {
    path: PathBuf,
    /// The value of --root; None for the project's own workspace.
    requested: Option<PathBuf>,
    /// deaddrop's own folder for it.
    state: PathBuf,
}

impl Root {
    fn of(config: &Config, requested: Option<&Path>) -> Result<Self> {
        let workspace = Self {
            path: config.workspace.clone(),
            requested: None,
            state: config.sessions.clone(),
        };
        let Some(requested) = requested else { return Ok(workspace) };
        let path = requested.canonicalize().map_err(|e| Error::io("open --root", requested, e))?;
        if !path.is_dir() {
            return Err(Error::usage(format!("--root '{}' is not a folder", requested.display())));
        }
        if let Some(why) = problem_in_git_directory(&path) {
            return Err(Error::usage(format!("--root '{}': {why}", requested.display())));
        }
        if path.parent().is_none() && config.sandbox.mode != SandboxMode::Off {
            return Err(Error::usage(
                "--root /: commands cannot be confined to the whole machine; in a virtual machine or container, which then is the wall, use --sandbox off",
            ));
        }
        if config.workspace.canonicalize().is_ok_and(|workspace| workspace == path) {
            return Ok(workspace);
        }
        let home = user_state_folder().ok_or_else(|| {
            Error::usage("--root: without HOME there is no folder for deaddrop's own files; set HOME or XDG_STATE_HOME")
        })?;
        let name = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..16].to_owned();
        let state = home.join("rpc").join(name);
        Ok(Self { path, requested: Some(requested.to_owned()), state })
    }

    /// Creates missing folders.
    fn make(&self) -> Result<()> {
        if self.requested.is_none() {
            return fs::create_dir_all(&self.path)
                .map_err(|e| Error::io("make the folder", &self.path, e));
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.state);
        made.map_err(|e| Error::io("make the folder", &self.state, e))
    }
}
